"""The nine permissions of the decisions, and those that came after them."""

import pytest

from factbook.auth.permissions import (
    CHECK_READ,
    OPERATIONS_MANAGE,
    PERMISSIONS,
    SOURCE_READ,
    SOURCE_WRITE,
    TITLES,
    TOKEN_MANAGE,
    add_included,
    check_permissions,
)
from factbook.errors import InputError


@pytest.mark.spec("permissions.the-nine-names")
def test_there_are_exactly_the_nine_and_those_that_came_after_them() -> None:
    assert [permission.name for permission in PERMISSIONS] == [
        "catalog.entity.read",
        "catalog.entity-set.write",
        "tech-insights.data-source.read",
        "tech-insights.data-source.write",
        "tech-insights.source.run",
        "tech-insights.fact.write",
        "access.token.manage",
        "events.read",
        "audit.read",
        "scim.write",
        "tech-insights.check.read",
        "tech-insights.check.write",
        "tech-insights.scorecard.write",
        "tech-insights.exemption.request",
        "tech-insights.exemption.decide",
        "operations.manage",
        "own.write",
    ]


@pytest.mark.spec("permissions.titles-of-the-seed")
def test_two_have_the_titles_of_the_seed_and_each_has_one_of_its_own() -> None:
    assert TITLES["catalog.entity.read"] == "Catalog entity read (*)"
    assert TITLES["tech-insights.data-source.read"] == "Tech Insights Data Source Read"
    assert len(set(TITLES.values())) == len(PERMISSIONS)


@pytest.mark.spec("permissions.the-nine-names")
def test_another_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(InputError, match=r"no permission a\.b, c\. There are: access\.token"):
        check_permissions(["c", "catalog.entity.read", "a.b"])


def test_who_reads_data_sources_reads_checks() -> None:
    assert add_included(frozenset({SOURCE_READ})) == {SOURCE_READ, CHECK_READ}
    assert add_included(frozenset({SOURCE_WRITE})) == {SOURCE_WRITE}


def test_who_managed_tokens_before_there_was_a_permission_for_webhooks_manages_them() -> None:
    assert add_included(frozenset({TOKEN_MANAGE})) == {TOKEN_MANAGE, OPERATIONS_MANAGE}


def test_no_name_means_all_of_them() -> None:
    assert check_permissions([]) == frozenset()
    assert check_permissions(["events.read"]) == {"events.read"}

"""Roles: what each allows, and what pages say of it."""

from itertools import pairwise

import pytest

from factbook.auth import permissions
from factbook.errors import InputError


def test_an_administrator_may_do_everything_and_a_viewer_only_read() -> None:
    assert permissions.ROLES[permissions.ADMINISTRATOR] == permissions.PERMISSION_NAMES
    assert permissions.ROLES[permissions.VIEWER] == {
        "catalog.entity.read",
        "tech-insights.check.read",
        "tech-insights.data-source.read",
    }


def test_a_role_has_all_that_those_below_it_have() -> None:
    found = list(permissions.ROLES.values())
    assert list(permissions.ROLES) == ["administrator", "operator", "editor", "viewer"]
    assert all(higher > lower for higher, lower in pairwise(found))


def test_an_operator_has_nothing_that_is_about_people() -> None:
    assert permissions.ROLES[permissions.OPERATOR].isdisjoint(
        {permissions.TOKEN_MANAGE, permissions.SCIM_WRITE, permissions.AUDIT_READ}
    )


def test_a_role_has_what_its_permissions_include() -> None:
    for held in permissions.ROLES.values():
        assert permissions.add_included(held) == held


def test_every_role_has_a_title_and_a_sentence() -> None:
    assert (
        set(permissions.ROLE_TITLES) == set(permissions.ROLE_DESCRIPTIONS) == set(permissions.ROLES)
    )
    assert all(sentence.endswith(".") for sentence in permissions.ROLE_DESCRIPTIONS.values())


def test_a_role_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    assert permissions.check_role("viewer") == "viewer"
    with pytest.raises(
        InputError, match=r'no role "owner".*administrator, operator, editor, viewer'
    ):
        permissions.check_role("owner")

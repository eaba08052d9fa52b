"""What is collected of projects and issues, and what is not determined."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from factbook.clock import MINUTE
from factbook.integrations.snyk import INTEGRATION
from tests.fakes.snyk import Organization, Project, Token, uuid
from tests.integrations.snyk.asking import (
    ACME,
    EVERYTHING,
    GROUP,
    KEY,
    OTHER,
    figures,
    full,
    started,
)


async def test_the_projects_that_annotations_select_are_summed(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], dict[str, int]]] = [
        ({"slug": "acme/app"}, EVERYTHING),
        ({"slug": "acme/app", "org_id": ACME}, EVERYTHING),
        ({"slug": "acme/clean"}, figures(0, 0, 0, 0)),
        ({"slug": "acme/app", "exclude_project_ids": uuid(11)}, figures(1, 2, 3, 4)),
        ({"targets": "acme/app"}, figures(1, 1012, 3, 9)),
        ({"targets": "acme/app,local"}, figures(1, 1012, 10, 9)),
        ({"target_id": Project(20, "acme/clean").target_id}, figures(0, 0, 0, 0)),
        ({"target_name": "acme/on"}, figures(0, 0, 7, 0)),
        ({"project_ids": f"{uuid(10)},{uuid(40)}"}, figures(1, 2, 10, 4)),
        ({"project_ids": uuid(10), "targets": "local"}, figures(1, 2, 10, 4)),
        ({"project_ids": uuid(10), "target_name": "acme/app"}, figures(1, 1012, 3, 9)),
        ({"location": "url:https://gitlab.com/acme/app"}, figures(0, 1010, 0, 5)),
        ({"location": "url:https://git.acme.test/acme/bare"}, figures(0, 0, 0, 2)),
    ]
    for annotations, expected in cases:
        with subtests.test(annotations=annotations):
            _, collector = started()
            assert await collector.said(**annotations) == expected


async def test_what_is_not_determined_is_no_zero(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"slug": "acme/none"}, "no-annotation: Snyk has no project of the repository"),
        ({"slug": "acme/app", "org_id": OTHER}, "no-annotation: Snyk has no project of the"),
        ({"targets": "acme/none"}, "not-found: no project of Snyk is what the annotations name"),
        (
            {"project_ids": f"{uuid(10)},{uuid(99)}"},
            "not-found: Snyk lacks some of what the annotations name",
        ),
        ({"targets": f"acme/app,{uuid(99)}"}, "not-found: Snyk lacks some of what"),
        ({"location": "url:https://evil.example.com/acme/clean"}, "no-annotation"),
        ({"slug": "acme/new"}, "not-applicable: a project has no snapshot in Snyk yet"),
        ({"targets": "acme/app,acme/new"}, "not-applicable: a project has no snapshot"),
        ({"slug": "acme/old"}, "feature-off: every project is deactivated in Snyk"),
        (
            {"project_ids": uuid(10), "exclude_project_ids": uuid(10)},
            "not-applicable: every project is excluded",
        ),
    ]
    for annotations, reason in cases:
        with subtests.test(annotations=annotations):
            for exact in (False, True):
                _, collector = started(exact=exact)
                said = await collector.said(**annotations)
                assert isinstance(said, str)
                assert said.startswith(reason)


async def test_exact_counts_leave_out_what_is_ignored_resolved_or_of_no_project() -> None:
    fake, collector = started(exact=True)
    assert await collector.said(slug="acme/app", org_id=ACME) == figures(1, 1, 0, 1)
    assert await collector.said(slug="acme/clean") == figures(0, 0, 0, 0)
    asked = [query for query in fake.asked if "status" in query]
    assert {query["effective_severity_level"] for query in asked} == EVERYTHING.keys() - {"total"}
    assert {(query["status"], query["ignored"]) for query in asked} == {("open", "false")}


async def test_an_organization_that_was_taken_out_of_the_settings_is_not_asked() -> None:
    _, before = started()
    target = before.target(slug="acme/app", org_id=OTHER)
    fake, after = started(organizations=[ACME])
    collected = await after.one(str(target))
    assert collected.reasons == {"": "no-annotation: an organization that is not configured"}
    assert fake.requests == {}


async def test_the_number_of_entities_does_not_change_the_number_of_calls() -> None:
    projects = [Project(number, f"acme/app-{number}", (1, 0, 0, 0)) for number in range(10, 310)]
    fake, collector = started(Organization(1, projects), Organization(2))
    targets = [str(collector.target(slug=f"acme/app-{number}")) for number in range(10, 310)]
    collected = await collector.collect(*targets)
    assert [one.values[f"{GROUP}.total"] for one in collected.values()] == [1] * 300
    assert fake.requests == {"projects": 5}


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        (
            Token("another"),
            "forbidden: api.snyk.io: answered 401; the credential is not accepted: wrong, expired "
            "or revoked; renew it",
        ),
        (Token(KEY, plan_has_api=False), "forbidden: api.snyk.io: answered 403"),
        (Token(KEY, forbidden=frozenset({2})), "forbidden: api.snyk.io: answered 403"),
        (
            Token(KEY, reads_history=False),
            "forbidden: no project came with figures; they need View Project History",
        ),
    ],
    ids=repr,
)
async def test_what_may_not_be_read_is_forbidden(token: Token, reason: str) -> None:
    _, collector = started(token=token)
    assert await collector.said(slug="acme/app") == reason
    assert await collector.said(slug="acme/app", org_id=OTHER) != EVERYTHING


async def test_an_organization_that_fails_costs_only_those_that_it_may_hold() -> None:
    _, collector = started(full())  # the other one is not there
    assert await collector.said(slug="acme/app", org_id=ACME) == EVERYTHING
    assert await collector.said(slug="acme/app") == "not-found: api.snyk.io: answered 404"


async def test_a_limit_in_the_middle_of_a_run_passes() -> None:
    fake, collector = started(organizations=[ACME], exact=True)
    fake.limit = 3
    collected = await collector.of(slug="acme/app")
    assert collected.reasons[GROUP].startswith("rate-limited")
    assert collected.passing == {GROUP}
    fake.limit = None
    collector.time.advance(15 * MINUTE)
    assert await collector.said(slug="acme/app") == figures(1, 1, 0, 1)


async def test_values_are_those_of_the_facts_that_the_source_declares() -> None:
    _, collector = started()
    collected = await collector.of(slug="acme/app")
    assert set(collected.values) == {fact.name for fact in INTEGRATION.facts}
    assert collector.integration.source.check(collected.values).reasons == {}
    assert await collector.collect() == {}


async def test_the_end_of_a_version_is_logged_once_in_a_process() -> None:
    fake, collector = started(version="2024-05-31")
    with capture_logs() as logs:
        await collector.said(slug="acme/app")
        fake.headers = {"deprecation": "2026-10-01T00:00:00Z", "sunset": "2027-04-01"}
        for _ in range(3):
            assert await collector.said(slug="acme/app") == EVERYTHING
    warnings = [entry for entry in logs if entry["event"] == "snyk.version_ends"]
    assert warnings == [
        {
            "event": "snyk.version_ends",
            "log_level": "warning",
            "host": "api.snyk.io",
            "version": "2024-05-31",
            "deprecated": "2026-10-01",
            "sunset": "2027-04-01",
        }
    ]

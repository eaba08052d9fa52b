"""Pages to their end, and what is left when Snyk answers badly."""

import itertools
from typing import Any

import pytest

from tests.fakes import faults
from tests.fakes.faults import Fault
from tests.fakes.snyk import Issue, Organization, Project, uuid
from tests.integrations.snyk.asking import ACME, GROUP, figures, started

PROJECT = {"id": uuid(999), "type": "project"}
ATTRIBUTES = {"name": "acme/app", "origin": "github", "status": "active"}


@pytest.mark.slow
async def test_pages_are_read_to_the_end_that_their_links_do_not_tell(
    subtests: pytest.Subtests,
) -> None:
    for circular in (False, True):
        for links in ("/rest", "", "https://elsewhere.example.com/rest"):
            with subtests.test(circular=circular, links=links):
                projects = [Project(number, "acme/app", (0, 1, 0, 0)) for number in range(10, 260)]
                issues = [Issue(number, 10, "critical") for number in range(250)]
                fake, collector = started(Organization(1, projects, issues), organizations=[ACME])
                fake.links, fake.circular = links, circular
                assert await collector.said(slug="acme/app") == figures(0, 250, 0, 0)
                assert fake.requests == {"projects": 4}
                assert {query["limit"] for query in fake.asked} == {"100"}
                fake, exact = started(
                    Organization(1, projects, issues), organizations=[ACME], exact=True
                )
                fake.links, fake.circular = links, circular
                assert await exact.said(slug="acme/app") == figures(250, 0, 0, 0)
                assert fake.requests == {"projects": 4, "issues": 7}


async def test_a_link_may_be_nothing_an_address_or_an_object(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, int]] = [
        (None, 1),
        ("", 1),
        ("/rest?starting_after=", 1),
        ({"href": "/rest?starting_after="}, 1),
        ({"href": "//[x"}, 1),
        ({"href": "/rest?starting_after=v1.next"}, 2),
    ]
    for following, calls in cases:
        with subtests.test(following=following):
            meta = {"latest_issue_counts": {"critical": 1, "high": 0, "medium": 0, "low": 0}}
            page = {
                "data": [PROJECT | {"attributes": ATTRIBUTES, "meta": meta}],
                "links": {"next": following},
            }
            fake, collector = started(organizations=[ACME])
            fake.fail("projects", faults.saying(page), times=9)
            said = await collector.said(slug="acme/app")
            unreadable = following == {"href": "//[x"}
            assert said == (
                "upstream-error: answered in an unknown format"
                if unreadable
                else figures(1, 0, 0, 0)
            )
            assert fake.requests == {"projects": calls}


async def test_a_listing_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factbook.integrations.snyk.MOST_PAGES", 2)
    projects = [Project(number, "acme/app", (0, 1, 0, 0)) for number in range(10, 260)]
    fake, collector = started(Organization(1, projects), organizations=[ACME])
    for _ in range(2):
        said = await collector.said(slug="acme/app")
        assert said == "too-large: more than 50,000 rows in one listing of Snyk"
        assert fake.requests == {"projects": 2}


BROKEN: list[tuple[Fault, str]] = [
    (faults.not_json, "upstream-error"),
    (faults.cut_off, "upstream-error"),
    (faults.bad_gateway, "upstream-error"),
    (faults.unavailable, "upstream-error"),
    (faults.saying([]), "upstream-error: answered in an unknown format"),
    (faults.saying(None), "upstream-error: answered in an unknown format"),
    (faults.saying({"jsonapi": {}, "links": {}}), "upstream-error"),
    (faults.saying({"data": {"id": uuid(10)}}), "upstream-error"),
    (faults.saying({"data": [PROJECT]}), "upstream-error"),
    (faults.saying({"data": [PROJECT | {"attributes": [ATTRIBUTES]}]}), "upstream-error"),
    (faults.saying({"data": [PROJECT | {"attributes": ATTRIBUTES, "meta": 7}]}), "upstream-error"),
    (
        faults.saying(
            {"data": [PROJECT | {"attributes": ATTRIBUTES}], "links": {"next": "/rest?page=2"}}
        ),
        "upstream-error",
    ),
    (
        faults.saying(
            {"data": [PROJECT | {"attributes": ATTRIBUTES}], "links": {"next": "https://[x"}}
        ),
        "upstream-error",
    ),
    (faults.saying({"errors": [{"status": "400", "detail": "evil"}]}, 400), "upstream-error"),
    (faults.saying({"message": "moved"}, 301, {"location": "https://evil.test"}), "upstream-error"),
    (faults.saying({"errors": []}, 429, {"retry-after": "30"}), "rate-limited"),
]


async def test_a_broken_answer_is_a_reason_and_no_figure(subtests: pytest.Subtests) -> None:
    for (number, (fault, reason)), after in itertools.product(enumerate(BROKEN), (0, 1)):
        with subtests.test(number=number, reason=reason, after=after):
            projects = [Project(n, "acme/app", (0, 1, 0, 0)) for n in range(10, 160)]
            fake, collector = started(Organization(1, projects), organizations=[ACME])
            fake.fail("projects", fault, times=9, after=after)
            said = await collector.said(slug="acme/app")
            assert isinstance(said, str)
            assert said.startswith(reason)
            assert "evil" not in said


@pytest.mark.parametrize("fault", [faults.not_json, faults.saying({"data": [{"id": 1}]})])
async def test_a_broken_answer_about_issues_is_no_zero(fault: Fault) -> None:
    fake, collector = started(exact=True)
    fake.fail("issues", fault, times=9)
    said = await collector.said(slug="acme/app", org_id=ACME)
    assert isinstance(said, str)
    assert said.startswith("upstream-error")


async def test_figures_of_another_form_concern_only_their_project_and_severity(
    subtests: pytest.Subtests,
) -> None:
    cases: list[Any] = [
        {"critical": 1, "high": 1, "medium": 1},
        {"critical": -1, "high": 1, "medium": 1, "low": 1},
        {"critical": 0.5, "high": 1, "medium": 1, "low": 1},
        {"critical": 1e300, "high": 1, "medium": 1, "low": 1},
        {"critical": True, "high": 1, "medium": 1, "low": 1},
        {"critical": "1", "high": 1, "medium": 1, "low": 1},
        [1, 1, 1, 1],
        7,
    ]
    for counts in cases:
        with subtests.test(counts=counts):
            good = {"critical": 1, "high": 2.0, "medium": 3, "low": 0}
            rows = [
                PROJECT | {"attributes": ATTRIBUTES, "meta": {"latest_issue_counts": counts}},
                {
                    "id": uuid(11),
                    "attributes": ATTRIBUTES | {"name": "acme/b:pom.xml"},
                    "meta": {"latest_issue_counts": good},
                },
            ]
            fake, collector = started(organizations=[ACME])
            fake.fail("projects", faults.saying({"data": rows}), times=2)
            assert await collector.said(slug="acme/b") == figures(1, 2, 3, 0)
            collected = await collector.of(slug="acme/app")
            given = counts if isinstance(counts, dict) else {}
            known = {name for name, count in given.items() if count == 1 and count is not True}
            assert collected.values == {f"{GROUP}.{name}": 1 for name in known}
            unknown = {"total", "critical", "high", "medium", "low"} - known
            why = "upstream-error: Snyk left out a figure of a project"
            assert collected.reasons == {f"{GROUP}.{name}": why for name in unknown}
            # The listing would say the same again.
            assert not any(missing.retried for missing in collected.missing.values())


async def test_exact_counts_do_not_need_all_figures_of_the_snapshot() -> None:
    meta = {"latest_issue_counts": {"high": 1}}
    rows = [PROJECT | {"attributes": ATTRIBUTES, "meta": meta}]
    fake, collector = started(organizations=[ACME], exact=True)
    fake.fail("projects", faults.saying({"data": rows}))
    assert await collector.said(slug="acme/app") == figures(0, 0, 0, 0)

"""Numbers beside an owner are those of what it owns: with the groups below it, where they say so.

A number that groups by owner counts each entity once, for its own owner. An answer about one owner,
and a sum of teams, is with the groups below.
"""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from factbook.catalog.ref import canonicalize_ref
from tests.api.checking import (
    CARDS,
    RESULTS,
    SCORECARDS,
    check,
    evaluated,
    put,
    scorecard,
    with_source,
)
from tests.api.defining import FACTS, item, push
from tests.api.messages import expect_result, message, tool_call
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.scoring import group
from tests.web.visiting import Browser, signed_in

OWNED = {"unit": 1, "team-a": 3, "team-b": 2, "team-c": 4, "user:default/ann": 1}
OWN = {canonicalize_ref(owner, kind="group"): number for owner, number in OWNED.items()}
UNIT = "group:default/unit"
BELOW = {"unit": 6, "team-a": 3}


@pytest.fixture
async def service(start: StartService) -> Service:
    """The group unit with two teams below it, another team and a person; all of them own parts."""
    service = await start()
    await with_source(service)
    groups = [group("unit"), group("team-c"), group("team-a"), group("team-b")]
    for one in groups[2:]:
        one["spec"]["parent"] = "unit"
    owned = [
        component(f"{owner.rpartition('/')[2]}-{number}", owner=owner)
        for owner, many in OWNED.items()
        for number in range(many)
    ]
    nobody = component("nobodys")
    del nobody["spec"]["owner"]
    parts = [*owned, nobody]
    assert (await service.push("all", *groups, *parts)).status_code == 200
    refs = [f"component:default/{one['metadata']['name']}" for one in parts]
    await push(service, *(item(ref, lines=10) for ref in refs))
    await put(service, check(appliesTo={"kind": "component"}), publish=True)
    card = scorecard("ready", appliesTo={"kind": "component"})
    answer = await service.http.put(f"{SCORECARDS}/ready?publish=true", json=card)
    assert answer.status_code == 200, answer.text
    await evaluated(service)
    return service


async def rest(service: Service, path: str) -> Any:
    answer = await service.http.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def checks(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    asked = message("tools/call", tool_call(tool, arguments))
    answer = await service.http.post("/api/mcp/v1/tech-insights-checks", json=asked)
    found: dict[str, Any] = expect_result(answer)["structuredContent"]
    return found


async def test_groups_by_owner_count_each_entity_for_its_own_owner(service: Service) -> None:
    facets = await rest(service, "/api/catalog/entity-facets?facet=relations.ownedBy")
    listed = facets["facets"]["relations.ownedBy"]
    assert {one["value"]: one["count"] for one in listed} == OWN
    with_nobody = {*OWN.items(), (None, 1)}
    kind = {"kind": "component", "groupBy": "owner"}
    for tool, arguments in (
        ("find-entities", kind),
        ("get-all-entities-facts", {"dataSourceId": "coverage", **kind}),
        (
            "get-all-entities-facts",
            {
                "dataSourceId": "coverage",
                **kind,
                "where": {"fact": "lines", "operator": "isKnown"},
            },
        ),
    ):
        found = await service.facts(tool, **arguments)
        assert {(one["value"], one["count"]) for one in found["groups"]} == with_nobody
    found = await rest(service, f"{FACTS}/coverage/distribution?fact=lines&by=owner&kind=component")
    assert {(one.get("name"), one["entities"]) for one in found["groups"]} == with_nobody
    for owner, number in OWN.items():
        kind_, _, name = owner.partition(":default/")
        if kind_ == "group":
            entity = await service.facts("get-entity", kind=kind_, name=name)
            assert entity["relations"]["ownerOf"]["total"] == number


@pytest.mark.parametrize("team", BELOW)
async def test_answers_about_a_group_are_with_the_groups_below_it(
    service: Service, team: str
) -> None:
    number, ref = BELOW[team], f"group:default/{team}"
    found = await service.facts("find-entities", owner=team, limit=0)
    assert found["total"] == number
    found = await service.facts(
        "get-all-entities-facts", dataSourceId="coverage", owner=team, count=True
    )
    assert found["totalCount"] == number
    found = await checks(service, "get-check-results", checkId="covered", owner=team)
    assert (found["counts"], len(found["entities"])) == ({"fail": number}, number)
    found = await checks(service, "get-check-results", scorecardId="ready", owner=team)
    assert (found["counts"]["none"], len(found["entities"])) == (number, number)
    for rollup in (
        await checks(service, "get-scorecard-rollup", scorecardId="ready"),
        await rest(service, f"{CARDS}/ready/rollup"),
    ):
        assert of_group(rollup["groups"], ref) == number
    found = await rest(service, f"{FACTS}/coverage/distribution?fact=lines&owner={team}")
    assert found["known"] == number


def of_group(rows: Sequence[Any], name: str) -> int | None:
    """The total of a group, at whatever depth it is."""
    for row in rows:
        if row.get("name") == name:
            return int(row["total"])
        if (found := of_group(row.get("children", ()), name)) is not None:
            return found
    return None


async def test_results_of_one_owner_are_its_own_where_the_parameter_says_so(
    service: Service,
) -> None:
    for owner, number in OWN.items():
        found = await rest(service, f"{RESULTS}?checkIds=covered&owner={owner}")
        assert len(found["results"]) == number


async def page(browser: Browser, path: str) -> str:
    """The text of a page, without its frame."""
    text = re.sub(r"<svg.*?</svg>", " ", await browser.text(path), flags=re.DOTALL)
    main = text[text.index("<main") :]
    return " ".join(re.sub(r"<[^>]+>", " ", main).split())


async def test_pages_show_the_numbers_of_an_owner_beside_it(service: Service) -> None:
    browser = await signed_in(service, role="viewer")
    cases = {
        "/": ["unit 0% of 6", "team-c 0% of 4"],
        "/scorecards/ready": ["each with all groups below it", "unit 6 0%", "team-a 3 0%"],
        "/scorecards/ready/teams": ["and all groups below it", "fail 6 of 6 team-a ✕ fail 3 of 3"],
        f"/scorecards/ready?team={UNIT}": ["Levels 6 entities", "today of 6 of 6 entities"],
        f"/checks/covered?team={UNIT}": ["6 entities Failing entities of 90 days, of all owners"],
        f"/checks/covered?owner={UNIT}": ["1 entity Failing entities of 90 days, of all owners"],
        "/catalog?owner=unit": ["1 entity found"],
        "/catalog/group/default/unit": ["of all below", "mean score of 6 of 6", "Owns 6 entities"],
        "/catalog/group/default/unit/contents": ["6 entities, including subteams"],
        f"/data-sources/coverage/facts/lines?owner={UNIT}": [
            "6 of 6 entities known",
            "each without the groups below it",
            "unit 1 of 1 10",
        ],
        "/catalog/component/default/unit-0/facts/coverage/lines": [
            "Team median 10 of 6 Catalog median 10 of 12"
        ],
    }
    for path, parts in cases.items():
        text = await page(browser, path)
        for part in parts:
            assert part in text, f"{path}: {part}: {text}"

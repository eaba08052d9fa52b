"""The path of a platform team: checks of Backstage, from their configuration to a trend."""

from functools import partial
from typing import Any

import pytest

from factbook.checks import scorecard_figures, takeover
from factbook.clock import DAY
from tests.api.checking import CARDS, CHECKS, EXEMPTIONS, RESULTS, SCORECARDS, evaluated
from tests.conftest import StartService
from tests.service import Service, component

BASKET, OLD = "component:default/basket", "component:default/old"


def rule(fact: str) -> dict[str, Any]:
    return {"conditions": {"all": [{"fact": fact, "operator": "equal", "value": True}]}}


def of_backstage() -> dict[str, Any]:
    """The part of an app-config with two checks of two ranks."""
    kind = {"type": "json-rules-engine", "filter": {"kind": "component"}}
    owner = {
        "name": "A group owns it",
        "factIds": ["entityOwnershipFactRetriever"],
        "rule": rule("hasGroupOwner"),
        "metadata": {"rank": 1},
    }
    description = {
        "name": "It has a description",
        "factIds": ["entityMetadataFactRetriever"],
        "rule": rule("hasDescription"),
        "metadata": {"rank": 2, "solution": "Describe it."},
    }
    checks = {"owner": kind | owner, "description": kind | description}
    return {"techInsights": {"factChecker": {"checks": checks}}}


def components(**described: bool) -> list[dict[str, Any]]:
    """Components, of which some have a description; the one called old has no group."""
    found = [component(name) for name in described]
    for one, is_described in zip(found, described.values(), strict=True):
        if is_described:
            one["metadata"]["description"] = "What it is for."
        if one["metadata"]["name"] == "old":
            one["spec"]["owner"] = "user:alice"
    return found


@pytest.fixture
async def service(start: StartService) -> Service:
    """A catalog of three components, and the checks taken over, before they are published."""
    service = await start()
    answer = await service.push("shop", *components(checkout=True, basket=False, old=True))
    assert answer.status_code == 200
    return service


def documents() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The checks, and the scorecards, that Backstage's are taken over as."""
    taken = takeover.take_over_backstage(of_backstage(), {})
    assert not taken.remarks
    found = {
        kind: [each for of, each in taken.documents if of == kind] for kind, _ in taken.documents
    }
    return found["check"], found["scorecard"]


async def publish(service: Service) -> None:
    checks, scorecards = documents()
    for path, found in ((CHECKS, checks), (SCORECARDS, scorecards)):
        for each in found:
            document = each | {"appliesTo": {"kind": "component"}}
            answer = await service.http.put(f"{path}/{each['id']}?publish=true", json=document)
            assert answer.status_code == 200, answer.text
    await evaluated(service)


async def failing(service: Service) -> set[str]:
    """Who fails, by check and entity."""
    answer = await service.http.get(RESULTS, params={"state": "fail"})
    return {f"{one['checkId']} {one['entityRef']}" for one in answer.json()["results"]}


async def levels(service: Service) -> dict[str, str | None]:
    """The level of each component."""
    answer = await service.http.get(f"{CARDS}/maturity")
    return {one["entityRef"]: one["level"] for one in answer.json()["entities"]}


async def test_a_preview_tells_what_publishing_would_bring_and_stores_nothing(
    service: Service,
) -> None:
    checks, _ = documents()
    [description] = [each for each in checks if each["id"] == "description"]
    answer = await service.http.post(f"{CHECKS}/preview", json={"definition": description})
    assert answer.json()["then"]["failing"] == 1
    assert (await service.http.get(CHECKS)).json()["totalCount"] == 0
    await publish(service)
    assert await failing(service) == {f"owner {OLD}", f"description {BASKET}"}


async def test_an_exemption_counts_until_its_day_and_a_push_moves_level_and_trend(
    service: Service,
) -> None:
    await publish(service)
    assert (await levels(service))[BASKET] == "bronze"
    wish = {"check": "owner", "entity": OLD, "reason": "Shut down soon"}
    until = {"until": "2026-11-24T12:00:00+00:00"}
    asked = await service.http.post(EXEMPTIONS, json=wish | until)
    assert asked.status_code == 201, asked.text
    token = await service.token(
        "tech-insights.check.read", "tech-insights.exemption.decide", owner="user:default/lead"
    )
    async with service.client(token) as lead:
        approved = await lead.post(f"{EXEMPTIONS}/{asked.json()['id']}/approve")
    assert approved.status_code == 200, approved.text
    assert await failing(service) == {f"description {BASKET}"}
    await service.state.database.write(partial(scorecard_figures.record_trends, now=service.time()))
    service.time.advance(DAY)
    await service.push("shop", *components(checkout=True, basket=True, old=True))
    assert (await levels(service))[BASKET] == "silver"
    points = (await service.http.get(f"{CARDS}/maturity/trend")).json()["points"]
    assert [point["levels"]["silver"] for point in points] == [2, 3]
    service.time.advance(5 * DAY)
    await evaluated(service)
    assert await failing(service) == {f"owner {OLD}"}
    lines = (await service.http.get(f"{RESULTS}.csv", params={"state": "fail"})).text.splitlines()
    assert lines[1:] == [f"owner,{OLD},user:default/alice,fail,false"]

"""Results of scorecards over HTTP: levels, rollups, trends, next steps, CSV."""

from typing import Any

import pytest

from factbook.clock import DAY, iso
from tests.api.checking import (
    CARDS,
    COVERED,
    RESULTS,
    SCORECARDS,
    check,
    evaluated,
    put,
    scorecard,
    with_source,
)
from tests.api.defining import item, push, refusal
from tests.conftest import StartService
from tests.service import Service, component

WEB, API, OLD = (f"component:default/{name}" for name in ("web", "api", "old"))


def group(name: str, *children: str) -> dict[str, Any]:
    spec = {"type": "team", "children": [*children]}
    version = "backstage.io/v1alpha1"
    return {"apiVersion": version, "kind": "Group", "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def service(start: StartService) -> Service:
    """Three components in two teams of one department, of which one has no facts."""
    service = await start()
    await with_source(service)
    entities = [
        component("web", owner="team-a"),
        component("api", owner="team-b"),
        component("old", owner="team-b"),
        group("department", "team-a", "team-b"),
        group("team-a"),
        group("team-b"),
    ]
    assert (await service.push("shop", *entities)).status_code == 200
    await push(service, item(WEB, lines=90), item(API, lines=10))
    only = {"kind": "component"}
    much = {**COVERED, "value": 95}
    await put(service, check(appliesTo=only), publish=True)
    await put(service, check("much", rule=much, appliesTo=only), publish=True)
    entries = [
        {"check": "covered", "level": "bronze"},
        {"check": "much", "level": "silver", "weight": 3},
    ]
    document = scorecard(entries=entries, appliesTo=only)
    answer = await service.http.put(f"{SCORECARDS}/readiness?publish=true", json=document)
    assert answer.status_code == 200, answer.text
    await evaluated(service)
    return service


async def shown(service: Service, path: str = "", **query: Any) -> Any:
    answer = await service.http.get(f"{CARDS}/readiness{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_scorecard_has_its_figures_and_the_levels_of_its_entities(
    service: Service,
) -> None:
    found = await shown(service)
    assert (found["total"], found["levels"], found["noLevel"]) == (3, {"bronze": 1, "silver": 0}, 2)
    by_ref = {one.pop("entityRef"): one for one in found["entities"]}
    bronze = {"level": "bronze", "levelIfKnown": "bronze", "score": 25, "coverage": 100}
    assert by_ref[WEB] == bronze
    unknown = {"level": None, "levelIfKnown": "silver", "score": None, "coverage": 0}
    assert by_ref[OLD] == unknown
    [figures] = (await service.http.get(CARDS)).json()["scorecards"]
    assert (figures["scorecardId"], figures["levels"]) == ("readiness", {"bronze": 1, "silver": 0})


async def test_levels_are_narrowed_and_come_page_by_page(service: Service) -> None:
    def refs(found: Any) -> list[str]:
        return [one["entityRef"] for one in found["entities"]]

    assert refs(await shown(service, level="bronze")) == [WEB]
    assert refs(await shown(service, level="none", owner="team-b")) == [API, OLD]
    first = await shown(service, limit="2")
    rest = await shown(service, cursor=first["nextCursor"])
    assert sorted([*refs(first), *refs(rest)]) == sorted([WEB, API, OLD])
    wrong = await service.http.get(f"{CARDS}/readiness", params={"level": "gold"})
    assert "bronze, silver, none" in refusal(wrong, 400)
    same = await service.http.get("/api/tech-insights/v1/scorecards/entity-results/readiness")
    assert same.json() == await shown(service)


async def test_levels_move_with_the_facts(service: Service) -> None:
    service.time.advance(60_000)
    await push(service, item(WEB, lines=99), item(OLD, lines=90))
    found = await shown(service)
    assert (found["levels"], found["noLevel"]) == ({"bronze": 1, "silver": 1}, 1)


async def test_a_rollup_has_groups_with_all_below_them(service: Service) -> None:
    found = await shown(service, "/rollup", depth="1")
    [top] = found["groups"]
    assert (top["name"], top["total"]) == ("group:default/department", 3)
    assert {one["name"]: one["total"] for one in top["children"]} == {
        "group:default/team-a": 1,
        "group:default/team-b": 2,
    }
    by_kind = await shown(service, "/rollup", by="kind")
    assert [(one["name"], one["total"]) for one in by_kind["groups"]] == [("component", 3)]
    of_group = await shown(service, "/rollup", group="team-b", depth="0")
    assert [one["total"] for one in of_group["groups"]] == [2]
    wrong = await service.http.get(f"{CARDS}/readiness/rollup", params={"by": "colour"})
    assert wrong.status_code == 400


async def test_a_trend_ends_with_today(service: Service) -> None:
    service.time.advance(DAY)
    [today] = (await shown(service, "/trend"))["points"]
    assert (today["date"], today["levels"]) == ("2026-11-22", {"bronze": 1})
    [of_team] = (await shown(service, "/trend", group="team-b"))["points"]
    assert of_team["total"] == 2


async def test_next_steps_are_those_of_the_next_level_first(service: Service) -> None:
    found = await shown(service, "/next-steps", entity="component:api")
    assert (found["entityRef"], found["level"]) == (API, None)
    assert [(one["checkId"], one["level"], one["gain"]) for one in found["steps"]] == [
        ("covered", "bronze", 0.25),
        ("much", "silver", 0.75),
    ]
    outside = {"entity": "group:team-a"}
    answer = await service.http.get(f"{CARDS}/readiness/next-steps", params=outside)
    assert "does not apply" in refusal(answer, 404)
    answer = await service.http.get(f"{CARDS}/readiness/next-steps", params={"entity": "api:none"})
    assert answer.status_code == 404


async def test_csv_has_the_level_of_every_entity(service: Service) -> None:
    answer = await service.http.get(f"{CARDS}/readiness.csv")
    lines, as_of = answer.text.split("\r\n"), iso(service.time())
    assert lines[0] == "entity,level,levelIfKnown,score,coverage,asOf"
    assert f"{WEB},bronze,bronze,25,100,{as_of}" in lines
    assert f"{OLD},none,silver,,0,{as_of}" in lines
    assert len(lines) == 5


async def test_a_scorecard_that_is_not_published_has_no_results(service: Service) -> None:
    await service.http.put(f"{SCORECARDS}/other", json=scorecard("other"))
    assert "no results yet" in refusal(await service.http.get(f"{CARDS}/other"), 404)
    assert (await service.http.get(f"{CARDS}/none")).status_code == 404


async def test_next_steps_show_values_to_who_may_read_them(service: Service) -> None:
    messages = {"fail": "covers {{ facts.coverage['lines'] }}"}
    only = {"kind": "component"}
    await put(service, check(appliesTo=only, messages=messages), publish=True)
    await evaluated(service)
    found = await shown(service, "/next-steps", entity=API)
    assert found["steps"][0]["message"] == "covers 10"
    token = await service.token("catalog.entity.read", "tech-insights.check.read")
    async with service.client(token) as http:
        answer = await http.get(f"{CARDS}/readiness/next-steps", params={"entity": API})
        assert [one["checkId"] for one in answer.json()["steps"]] == ["covered", "much"]
        assert "message" not in answer.json()["steps"][0]


async def test_a_check_before_its_day_is_shown_and_counts_from_then_on(service: Service) -> None:
    only = {"kind": "component"}
    later = check(rule={"not": COVERED}, appliesTo=only, effectiveFrom="2026-11-23")
    assert (await put(service, later, publish=True)).status_code == 200
    await evaluated(service)

    async def seen() -> tuple[str, int, str | None]:
        result = await service.http.get(f"{RESULTS}/covered/{API}")
        found = await service.http.get(f"{CARDS}/readiness")
        [one] = [one for one in found.json()["entities"] if one["entityRef"] == API]
        return result.json()["state"], one["score"], one.get("level")

    assert await seen() == ("pass", 0, None)
    # The last moment before the day, and its first.
    service.time.now = 1_795_392_000_000 - 1
    await evaluated(service)
    assert await seen() == ("pass", 0, None)
    service.time.advance(1)
    # Grading is begun by one round, and done by the next.
    await evaluated(service)
    await evaluated(service)
    assert await seen() == ("pass", 25, "bronze")

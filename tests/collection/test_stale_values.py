"""Old values are marked as stale by every interface, while their source fails or does not run."""

import re
from typing import Any

import pytest

from factbook.clock import HOUR, MINUTE, iso, minute
from factbook.integrations import SOURCES
from factbook.outbound.outcomes import Missing, Outcome
from tests.api.checking import CARDS, RESULTS, SCORECARDS, check, evaluated, put, scorecard
from tests.api.messages import expect_result, message, tool_call
from tests.collection.madeup import DOWN, LIMITED, Fault, Vendor, integration
from tests.collection.world import OPEN, World
from tests.conftest import StartService
from tests.service import Service
from tests.web.scoring import group
from tests.web.visiting import signed_in, words

REF = "component:default/web"
CHECK_TOOLS = "/api/mcp/v1/tech-insights-checks"
VALUES = "/api/tech-insights/v1/facts/vendor/values"
BY_CHECK = {"source": "checks", "fact": "covered", "operator": "equal", "value": "pass"}
RULE = {"source": "vendor", "fact": OPEN, "operator": "greaterThan", "value": 0}
REFUSED = Missing(Outcome.REFUSED, "vendor.test: answered 401")


@pytest.fixture
async def world(start: StartService) -> World:
    """A collected entity with a failing check."""
    world = World(await start(sources=[*SOURCES, integration(Vendor()).source]))
    await world.push("web")
    await world.collector.drain()
    await put(world.service, check(rule=RULE), publish=True)
    await evaluated(world.service)
    return world


async def fail(world: World, fault: Fault) -> None:
    """Let the next run fail to its end."""
    world.vendor.faults[""] = fault
    await world.next_run()
    for _ in range(8):
        world.service.time.advance(10 * MINUTE)
        await world.collector.drain()


async def ask(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool of checks."""
    asked = message("tools/call", tool_call(tool, arguments))
    result = expect_result(await service.http.post(CHECK_TOOLS, json=asked))
    found: dict[str, Any] = result["structuredContent"]
    return found


async def marks(world: World) -> dict[str, bool]:
    """Whether each interface marks the value, or a result that rests on it, as stale."""
    service, http = world.service, world.service.http
    found: dict[str, Any] = {}
    named = {"dataSourceId": "vendor", "name": "web"}
    entity = await service.facts("get-entity-facts", **named)
    found["get-entity-facts"] = entity
    everything = await service.facts("get-all-entities-facts", dataSourceId="vendor")
    [found["get-all-entities-facts"]] = everything["entities"]
    some = await service.facts("get-all-entities-facts", dataSourceId="vendor", facts=[OPEN])
    [found["get-all-entities-facts facts"]] = some["entities"]
    owned = await service.facts("get-all-entities-facts", dataSourceId="vendor", owner="team-a")
    [found["get-all-entities-facts owner"]] = owned["entities"]
    counted = await service.facts("get-all-entities-facts", dataSourceId="vendor", groupBy=OPEN)
    found["get-all-entities-facts groupBy"] = {"stale": counted.get("staleCount") == 1}
    found["get-codehost-metrics"] = await service.facts("get-codehost-metrics", name="web")
    results = await ask(service, "get-entity-check-results", entityRef="web")
    [found["get-entity-check-results"]] = results["results"]
    [found["get-entity-check-results evidence"]] = results["results"][0]["because"]
    listed = await ask(service, "get-check-results", checkId="covered")
    [found["get-check-results"]] = listed["entities"]

    async def get(path: str, **query: Any) -> Any:
        answer = await http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    facts = "/api/tech-insights/v1/facts/vendor"
    [found["GET facts"]] = (await get(facts))["entities"]
    [found["GET facts of one"]] = (await get(facts, entity=REF))["entities"]
    [found["GET values"]] = (await get(VALUES, fact=OPEN))["entities"]
    [found["GET check-results"]] = (await get(RESULTS))["results"]
    [found["GET check-results of one"]] = (await get(RESULTS, entity=REF))["results"]
    found["GET check-results/id/ref"] = await get(f"{RESULTS}/covered/{REF}")
    marked = {name: bool(one.get("stale")) for name, one in found.items()}
    distribution = await get("/api/tech-insights/v1/facts/vendor/distribution", fact=OPEN)
    marked["GET distribution"] = distribution["kept"] == 1
    browser = await signed_in(service, f"viewer-{service.time()}", role="viewer")
    for name, text in {
        "GET values.csv": await get(f"{VALUES}.csv", fact=OPEN),
        "GET check-results.csv": await get(f"{RESULTS}.csv"),
        "export of a check": await browser.text("/checks/covered/export"),
        "export of the catalog": await browser.text("/catalog/export", column=f"vendor/{OPEN}"),
    }.items():
        head, line = (row.split(",") for row in text.splitlines())
        marked[name] = line[[cell.endswith("stale") for cell in head].index(True)] == "true"
    for path in (
        "/catalog/component/default/web",
        f"/catalog/component/default/web/facts/vendor/{OPEN}",
        f"/data-sources/vendor/facts/{OPEN}",
        f"/catalog?column=vendor/{OPEN}",
        "/checks/covered",
    ):
        marked[path] = "stale" in words(await browser.text(path))
    return marked


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(DOWN, id="503"),
        pytest.param(REFUSED, id="401", marks=pytest.mark.slow),
        pytest.param(LIMITED, id="rate limit", marks=pytest.mark.slow),
    ],
)
async def test_a_value_that_a_failed_run_did_not_renew_is_stale_everywhere(
    world: World, fault: Fault
) -> None:
    current = await marks(world)
    assert [name for name, is_stale in current.items() if is_stale] == []
    await fail(world, fault)
    failing = await marks(world)
    assert [name for name, is_stale in failing.items() if not is_stale] == []
    world.vendor.faults.clear()
    await world.next_run()
    again = await marks(world)
    assert [name for name, is_stale in again.items() if is_stale] == []


async def test_a_value_is_stale_everywhere_once_its_run_is_overdue(world: World) -> None:
    world.service.time.advance(HOUR)
    assert not any((await marks(world)).values())
    world.service.time.advance(2 * HOUR)
    overdue = await marks(world)
    assert [name for name, is_stale in overdue.items() if not is_stale] == []


async def ages(world: World) -> dict[str, tuple[Any, Any]]:
    """As of when each interface says that its figures are, and which sources are stale."""
    service, http = world.service, world.service.http
    found: dict[str, Any] = {}
    scorecard = {"scorecardId": "ready"}
    listed = await ask(service, "get-scorecard-discovery")
    for name in ("scorecards", "checks"):
        [one] = listed[name]
        found[f"get-scorecard-discovery {name}"] = {"asOf": listed["asOf"], **one}
    found["get-scorecard-rollup"] = await ask(service, "get-scorecard-rollup", **scorecard)
    found["get-check-results"] = await ask(service, "get-check-results", checkId="covered")
    found["get-check-results scorecard"] = await ask(service, "get-check-results", **scorecard)
    found["get-check-preview"] = await ask(service, "get-check-preview", checkId="covered")
    found["get-entity-check-results"] = await ask(
        service, "get-entity-check-results", entityRef="web"
    )
    found["get-entity"] = await service.facts("get-entity", name="web")
    for name, where in (("facts", RULE), ("checks", BY_CHECK)):
        found[f"find-entities {name}"] = await service.facts("find-entities", where=where, limit=0)
    for name, given in (("count", {"count": True}), ("groupBy", {"groupBy": "owner"})):
        counted = await service.facts("get-all-entities-facts", dataSourceId="vendor", **given)
        found[f"get-all-entities-facts {name}"] = counted

    async def get(path: str, **query: Any) -> Any:
        answer = await http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    [found["GET scorecard-results"]] = (await get(CARDS))["scorecards"]
    for name in ("", "/rollup", "/trend"):
        found[f"GET scorecard-results/id{name}"] = await get(f"{CARDS}/ready{name}")
    found["GET next-steps"] = await get(f"{CARDS}/ready/next-steps", entity=REF)
    found["GET check-results/id"] = await get(f"{RESULTS}/covered")
    asked = await http.post("/api/tech-insights/v1/checks/preview", json={"checkId": "covered"})
    found["POST preview"] = asked.json()
    told = {name: (one["asOf"], one.get("staleSources", [])) for name, one in found.items()}
    head, line = (row.split(",") for row in (await get(f"{CARDS}/ready.csv")).splitlines())
    told["GET scorecard-results/id.csv"] = line[head.index("asOf")], told["GET check-results/id"][1]
    browser = await signed_in(service, f"viewer-{service.time()}", role="viewer")
    for path in (
        "/",
        "/catalog/component/default/web",
        "/catalog/group/default/team-a",
        "/catalog/group/default/team-a/contents",
        "/checks",
        "/checks/covered",
        f"/data-sources/vendor/facts/{OPEN}",
        "/scorecards",
        "/scorecards/ready",
        "/scorecards/ready/entities",
        "/scorecards/ready/teams",
    ):
        page = await browser.text(path)
        moment = re.search(r'class="as-of">[^<]*<time datetime="([^"]+)"', page)
        stale = re.search(r"stale no new data from (\S+)", words(page))
        told[path] = moment and moment[1], [stale[1]] if stale else []
    return told


@pytest.mark.slow
async def test_figures_are_as_of_the_last_success_of_a_source_that_is_down(world: World) -> None:
    applies = {"kind": "component"}
    card = scorecard("ready", appliesTo=applies, public=True)
    await world.service.push("teams", group("team-a"))
    published = await world.service.http.put(f"{SCORECARDS}/ready?publish=true", json=card)
    assert published.status_code == 200, published.text
    await evaluated(world.service)
    badge = "/api/tech-insights/v1/badges/ready/component:default/web.json"
    renewed_at = world.service.time()
    current = await ages(world)
    assert {name: one for name, one in current.items() if one != (iso(renewed_at), [])} == {}
    assert "as of" not in (await world.service.http.get(badge)).text
    await fail(world, DOWN)
    old = await ages(world)
    assert {name: one for name, one in old.items() if one != (iso(renewed_at), ["vendor"])} == {}
    assert f"as of {minute(renewed_at)}" in (await world.service.http.get(badge)).text
    world.vendor.faults.clear()
    now = await world.next_run()
    again = await ages(world)
    assert {name: one for name, one in again.items() if one != (iso(now), [])} == {}

"""Old values are marked as stale by every interface, while their source fails or does not run."""

from typing import Any

import pytest

from factbook.clock import HOUR, MINUTE
from factbook.integrations import SOURCES
from factbook.outbound.outcomes import Missing, Outcome
from tests.api.checking import RESULTS, check, evaluated, put
from tests.api.messages import expect_result, message, tool_call
from tests.collection.madeup import DOWN, LIMITED, Fault, Vendor, integration
from tests.collection.world import OPEN, World
from tests.conftest import StartService
from tests.service import Service
from tests.web.visiting import signed_in, words

REF = "component:default/web"
CHECK_TOOLS = "/api/mcp/v1/tech-insights-checks"
VALUES = "/api/tech-insights/v1/facts/vendor/values"
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

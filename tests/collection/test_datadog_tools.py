"""From a Datadog to the tools: what a tool call says of an entity's monitors and objectives."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, iso
from factbook.facts.schema import REASONS
from factbook.integrations import SOURCES
from tests.collection.tools import ToolWorld
from tests.conftest import StartService
from tests.fakes.datadog import Keys, Monitor
from tests.fakes.faults import saying, unavailable
from tests.integrations.datadog.asking import MONITORS, known, started
from tests.service import NOON, Service, component

TOOL = "get-observability-metrics"
EVERYTHING = {"sloCount": 3, "monitorCount": 2}
LEAVES = {"monitors": "monitorCount", "slos": "sloCount"}
SERVICE = "datadoghq.com/service-name"

Make = Callable[..., Awaitable["World"]]


def mapped(name: str, service: str = "app", **annotations: Any) -> dict[str, Any]:
    """A component whose annotations name a service of Datadog."""
    entity = component(name)
    entity["metadata"]["annotations"] = {SERVICE: service} | annotations
    return entity


class World(ToolWorld):
    """A service, a Datadog, and the collector between them."""

    def __init__(self, service: Service, keys: Keys | None) -> None:
        self.fake, asking = started(keys=keys)
        super().__init__(service, asking)

    async def refusal(self, name: str = "app") -> str:
        """Why the tool has no result."""
        return await self.service.refusal(TOOL, name=name)

    async def facts(self, name: str = "app") -> dict[str, Any]:
        """What is stored."""
        tool = "get-entity-facts"
        found: dict[str, Any] = await self.service.facts(tool, dataSourceId="datadog", name=name)
        return {path.removeprefix("observability."): one for path, one in found["facts"].items()}


@pytest.fixture
async def make(start: StartService) -> Make:
    async def make(keys: Keys | None = None, *, configured: bool = True) -> World:
        _, asking = started()
        sources = (*SOURCES, asking.integration.source) if configured else SOURCES
        return World(await start(sources=sources), keys)

    return make


@pytest.mark.spec("tools.facts.real-values")
async def test_with_all_rights_both_counts_are_there_with_their_time(make: Make) -> None:
    world = await make()
    world.fake.monitors.append(Monitor(9, ("team:one", "tier:1")))
    slo = {"datadoghq.com/slo_tag": "env:prod", "datadoghq.com/monitor_tags": "tier:1,team:one"}
    await world.run(mapped("app"), mapped("tagged", **slo), mapped("quiet", "no-such-service"))
    assert await world.ask("observability") == EVERYTHING | {
        "unknownReasons": {},
        "collectedAt": {"sloCount": iso(NOON), "monitorCount": iso(NOON)},
    }
    assert await world.told("observability", "tagged") == ({"sloCount": 1, "monitorCount": 1}, {})
    assert await world.told("observability", "quiet") == ({"sloCount": 0, "monitorCount": 0}, {})
    assert world.fake.requests == {"monitors": 1, "slos": 1}


@pytest.mark.spec("unknown.reasons-of-collections", "tools.observability.unavailable-is-an-error")
@pytest.mark.parametrize("denied", LEAVES)
async def test_a_count_that_the_keys_may_not_read_is_named_and_the_other_one_is_stored(
    make: Make, denied: str
) -> None:
    [other] = LEAVES.keys() - {denied}
    world = await make(known(other))
    await world.run(mapped("app"))
    text = await world.refusal()
    assert text.startswith(
        f"Observability metrics are not available: {LEAVES[denied]} is not known (forbidden: "
    )
    known_one = f"Known: {LEAVES[other]} is {EVERYTHING[LEAVES[other]]}."
    assert text.endswith(f" {known_one} {REASONS['forbidden']}")
    assert await world.facts() == {LEAVES[other]: EVERYTHING[LEAVES[other]]}


@pytest.mark.spec("tools.facts.misconfigured-is-unavailable")
async def test_with_keys_that_datadog_does_not_know_nothing_is_made_up(make: Make) -> None:
    world = await make(Keys("another", "pair"))
    await world.run(mapped("app"))
    assert "nothing is known (forbidden: " in await world.refusal()
    assert await world.facts() == {}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_objectives_that_the_plan_lacks_are_switched_off_and_not_none(make: Make) -> None:
    world = await make()
    error = {"errors": ["SLOs are not available on your current plan"]}
    world.fake.fail("slos", saying(error, 403))
    await world.run(mapped("app"))
    text = await world.refusal()
    assert "sloCount is not known (feature-off" in text
    assert "Known: monitorCount is 2." in text
    assert await world.facts() == {"monitorCount": 2}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_no_annotation_half_of_them_and_a_foreign_site_are_told_as_such(make: Make) -> None:
    world = await make()
    half = component("half")
    half["metadata"]["annotations"] = {"datadoghq.com/monitor_tags": "service:app"}
    await world.run(
        mapped("app"),
        half,
        component("plain"),
        mapped("foreign", **{"datadoghq.com/site": "evil.example.net"}),
        mapped("empty", "-", **{"datadoghq.com/slo_tag": ":", SERVICE: ""}),
    )
    for name in ("half", "plain", "foreign", "empty"):
        text = await world.refusal(name)
        what = "sloCount is not" if name == "half" else "nothing is"
        reason = "bad-annotation" if name == "empty" else "no-annotation"
        assert f"{what} known ({reason}" in text, name
        assert ("Known: monitorCount is 2." in text) is (name == "half")
    assert await world.facts("half") == {"monitorCount": 2}
    assert await world.told("observability") == (EVERYTHING, {})
    assert {one.headers["host"] for one in world.fake.exchanges} == {"api.datadoghq.com"}


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_a_rate_limit_before_the_first_value_is_told_and_later_keeps_the_last(
    make: Make,
) -> None:
    world = await make(known(limit=10))
    world.fake.keys.used = {"monitors": 10, "slos": 10}
    world.wait(NOON + 50 * MINUTE)
    await world.run(mapped("app"))
    assert "nothing is known (rate-limited: api.datadoghq.com" in await world.refusal()
    world.fake.keys.used.clear()
    world.wait(NOON + HOUR)
    await world.run()
    assert await world.told("observability") == (EVERYTHING, {})
    world.fake.fail("slos", saying({"errors": ["Too many requests"]}, 429), times=1_000)
    world.fake.monitors = list(MONITORS[:1])
    await world.next_run()
    found = await world.ask("observability")
    assert (found["sloCount"], found["monitorCount"]) == (3, 1)
    assert found["collectedAt"] == {
        "sloCount": iso(NOON + HOUR),
        "monitorCount": iso(world.times[0].now),
    }


@pytest.mark.spec("unknown.reasons-of-collections")
async def test_while_datadog_is_down_counts_stay_for_three_cadences_and_then_expire(
    make: Make,
) -> None:
    world = await make()
    await world.run(mapped("app"))
    for kind in LEAVES:
        world.fake.fail(kind, unavailable, times=1_000)
    for _ in range(3):
        await world.next_run()
        assert await world.told("observability") == (EVERYTHING, {})
        assert world.is_stale
    await world.next_run()
    assert "(expired: upstream-error" in await world.refusal()
    world.fake.recover()
    world.wait(world.times[0].now + DAY)
    await world.run()
    assert await world.told("observability") == (EVERYTHING, {})


async def test_without_the_integration_nothing_is_asked_and_nothing_is_known(make: Make) -> None:
    world = await make(configured=False)
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    assert "nothing is known (not-configured)" in await world.refusal()
    assert world.fake.requests == {}


async def test_an_entity_that_no_run_has_reached_was_never_collected(make: Make) -> None:
    world = await make()
    assert (await world.service.push("all", mapped("app"))).status_code == 200
    assert "(never-collected)" in await world.refusal()

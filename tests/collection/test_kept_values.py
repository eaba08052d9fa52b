"""What becomes of the last values when a vendor denies or fails."""

from typing import Any

from factbook.clock import HOUR, MINUTE
from factbook.integrations import SOURCES
from tests.collection.madeup import DENIED, DOWN, LIMITED, Vendor, integration
from tests.collection.world import CLOSED, LATEST, OPEN, World
from tests.service import NOON


async def test_a_denied_value_is_unknown_at_once_and_a_failing_one_is_kept(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    world.vendor.faults["acme/web"] = {"codehost.issues": DOWN, LATEST: DENIED}
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert found.facts == {OPEN: 0, CLOSED: 0}
    assert found.kept == {OPEN: NOON, CLOSED: NOON}
    assert (found.reasons, found.written_at) == ({LATEST: "forbidden"}, when)


async def test_values_are_kept_through_three_failing_runs_and_expire_with_the_fourth(
    world: World,
) -> None:
    await world.push("web", "new")
    world.vendor.faults["acme/new"] = DOWN
    await world.collector.drain()
    world.vendor.faults[""] = DOWN
    seen = []
    for _ in range(5):
        await world.next_run()
        for _ in range(3):
            world.service.time.advance(MINUTE)
            await world.collector.drain()
        found = await world.facts("web")
        assert found is not None
        seen.append((found.facts.get(OPEN), found.written_at - NOON, found.reasons.get("")))
    kept, expired = (0, 0, None), (None, 0, "expired")
    assert seen == [kept, kept, kept, expired, expired]
    assert (await world.reasons("new"))[""].startswith("upstream-error")
    world.vendor.faults.clear()
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert (found.facts[OPEN], found.reasons, found.written_at) == (0, {}, when)


async def test_an_entity_that_was_never_collected_has_no_time(start: Any) -> None:
    vendor = Vendor()
    source = integration(vendor).source
    world = World(await start(sources=[*SOURCES, source]))
    await world.push("web")
    world.vendor.faults[""] = LIMITED
    world.vendor.limit(0, NOON + HOUR)
    await world.collector.drain()
    found = await world.service.facts("get-entity-facts", dataSourceId="vendor", name="web")
    assert found["facts"] == {}
    assert "timestamp" not in found

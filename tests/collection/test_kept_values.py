"""What becomes of the last values when a vendor denies or fails."""

from typing import Any

from factbook.clock import DAY, HOUR, MINUTE, Throttle
from factbook.facts import retention
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
        assert found.written_at == NOON
        seen.append((found.facts.get(OPEN), found.kept.get(OPEN), found.reasons.get("")))
    kept = (0, NOON, None)
    expired = (None, None, "expired: upstream-error: vendor.test: answered 502")
    assert seen == [kept, kept, kept, expired, expired]
    assert (await world.reasons("new"))[""].startswith("upstream-error")
    world.vendor.faults.clear()
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert (found.facts[OPEN], found.reasons, found.written_at) == (0, {}, when)


async def test_a_failed_run_and_a_recovery_leave_one_row_of_history(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    world.vendor.faults[""] = DOWN
    await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert found.kept.keys() == found.facts.keys()
    world.vendor.faults.clear()
    await world.next_run()
    when = await world.next_run()
    found = await world.facts("web")
    assert found is not None
    assert (found.kept, found.written_at) == ({}, when)
    assert await world.count("facts_history") == 1


async def test_values_expire_with_nothing_that_collects_once_a_run_had_time_to_renew_them(
    world: World,
) -> None:
    await world.push("web")
    await world.collector.drain()
    service, database = world.service, world.database
    sources = [world.integration.source]

    async def sweep() -> int:
        return await retention.sweep_expired(database, sources, service.time(), Throttle())

    service.time.advance(30 * DAY)  # the service was down
    assert await sweep() == 0
    service.time.advance(HOUR)
    assert await sweep() == 1
    assert await sweep() == 0
    assert await world.values("web") == {}
    assert (await world.reasons("web"))[""].startswith("expired: upstream-error: no run since 20")


async def test_values_are_not_expired_while_a_run_renews_them(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    service, sources = world.service, [world.integration.source]
    await retention.sweep_expired(world.database, sources, service.time(), Throttle())
    service.time.advance(3 * HOUR)
    assert await retention.sweep_expired(world.database, sources, service.time(), Throttle()) == 0
    service.time.advance(1)
    assert await world.collector.begin_due() == 1
    assert await retention.sweep_expired(world.database, sources, service.time(), Throttle()) == 0


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

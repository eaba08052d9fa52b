"""Processes that take over from each other, and what they remember."""

import asyncio

import pytest

from factbook.clock import DAY
from factbook.datasources import clients
from factbook.datasources.clients import DatabaseMemory
from tests.collection.world import OPEN, World
from tests.service import Service

pytestmark = pytest.mark.both_databases


def held(world: World) -> tuple[asyncio.Event, asyncio.Event]:
    """The vendor keeps its answers back: when it is asked, and when it is to answer."""
    asked, answer = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        asked.set()
        await answer.wait()

    world.vendor.faults[""] = wait
    return asked, answer


@pytest.mark.slow
async def test_what_two_processes_work_on_at_once_is_stored_once(service: Service) -> None:
    world = World(service, size=1, at_once=4)
    await world.push(*(f"part-{number}" for number in range(60)))
    await asyncio.gather(*(world.another(f"w{number}").drain() for number in range(2)))
    assert (await world.last()).covered == 60
    assert await world.count("facts_history") == 60
    assert await world.count("runs") == 1


async def test_what_a_process_brings_after_another_has_taken_over_is_not_stored(
    world: World,
) -> None:
    await world.push("web")
    asked, answer = held(world)
    silent = asyncio.create_task(world.collector.drain())
    await asked.wait()
    world.vendor.faults.clear()
    await world.another("b").drain()
    world.vendor.open["acme/web"] = 99
    answer.set()
    await silent
    assert (await world.values("web"))[OPEN] == 0
    assert await world.count("facts_history") == 1


async def test_a_worker_that_stops_leaves_its_batch_to_others_at_once(world: World) -> None:
    await world.push("web")
    asked, _ = held(world)
    await world.collector.begin_due()
    await world.collector.take()
    await asked.wait()
    await world.collector.stop()
    world.vendor.faults.clear()
    await world.another("b").drain()
    assert (await world.last()).covered == 1
    assert world.vendor.client.closed


# Memory


async def test_an_integration_remembers_from_run_to_run_until_its_days_are_over(
    world: World,
) -> None:
    await world.push("web")
    world.vendor.remembers = True
    await world.collector.drain()
    await world.next_run()
    assert world.vendor.recalled == [None, b"acme/web"]
    assert await world.count("memories") == 2
    world.service.time.advance(2 * DAY)
    await world.collector.drain()
    assert world.vendor.recalled[2:] == [None]
    later = world.service.time() + 2 * DAY

    assert await clients.sweep_memories(world.database, ["vendor"], later) == 1
    gone = later + 40 * DAY
    without = await clients.sweep_memories(world.database, ["another"], gone)
    assert (without, await world.count("memories")) == (1, 0)


async def test_what_is_asked_of_the_memory_at_the_same_moment_is_answered_to_each(
    service: Service,
) -> None:
    database, now = service.state.database, service.time()
    memory = DatabaseMemory(database, "vendor", now)
    for name in ("a", "b"):
        await memory.put(name, name.encode())
    await database.write(memory.flush)
    again = DatabaseMemory(database, "vendor", now)
    await again.put("c", b"fresh")
    asking = [asyncio.create_task(again.get(name)) for name in ("a", "a", "b", "c", "d")]
    await asyncio.sleep(0)  # until all have asked
    asking[0].cancel()
    assert await asyncio.gather(*asking[1:]) == [b"a", b"b", b"fresh", None]
    assert asking[0].cancelled()
    assert await DatabaseMemory(database, "another", now).get("a") is None

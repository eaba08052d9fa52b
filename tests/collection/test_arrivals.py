"""New entities: each source collects them soon, and each of them once."""

import asyncio
import dataclasses
from collections.abc import Sequence
from functools import partial

import pytest

from factbook.clock import DAY, MINUTE, SECOND, Throttle
from factbook.collection import run_start
from factbook.collection.run_start import ARRIVALS_PAUSE
from factbook.events.store import delete_old_events, restart_feed
from factbook.integrations import SOURCES
from factbook.worker import Worker
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.collection.world import OPEN, World
from tests.importers.reading import Imports, item, part
from tests.service import Service, component, registry


def worker(world: World) -> Worker:
    """A process that collects."""
    state, time = world.service.state, world.service.time
    known = registry(world.service, SOURCES, [world.integration])
    return Worker(state.database, state.settings, known, time, "a", world.collector)


@pytest.fixture
async def process(world: World) -> Worker:
    """A process whose source has collected the empty catalog just now."""
    await world.collector.drain()
    world.service.time.advance(MINUTE)
    return worker(world)


async def after_pause(world: World, process: Worker) -> int:
    """The number of new entities that are looked at when the next look is due."""
    world.service.time.advance(ARRIVALS_PAUSE)
    looked_at = await process.collect_new()
    await world.collector.drain()
    return looked_at


async def test_entities_that_are_pushed_are_collected_at_once(
    world: World, process: Worker
) -> None:
    world.vendor.open["acme/web"] = 5
    await world.push("web", "shop")
    assert await process.collect_new() == 2
    await world.collector.drain()
    assert (await world.values("web"))[OPEN] == 5
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}
    assert await after_pause(world, process) == 0


async def test_entities_that_are_imported_are_collected_at_once(
    world: World, process: Worker
) -> None:
    imports = Imports(world.database)
    await imports.write(part(*(item(name, entity=repository(name)) for name in ("web", "shop"))))
    assert await process.collect_new() == 2
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}


async def test_entities_that_a_source_knows_are_not_asked_for_again(
    world: World, process: Worker
) -> None:
    await world.push("web", "shop")
    await process.collect_new()
    await world.collector.drain()
    await world.push("web")
    await world.push("web", "shop", "new")
    assert await after_pause(world, process) == 2
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1, "acme/new": 1}


async def test_an_entity_that_another_owner_has_now_is_not_new(
    world: World, process: Worker
) -> None:
    await world.push("web")
    await process.collect_new()
    taken = await world.service.push("other", repository("web"), onConflict="take")
    assert taken.status_code == 200
    assert await after_pause(world, process) == 0


async def test_a_source_is_not_asked_for_what_it_is_not_about(
    world: World, process: Worker
) -> None:
    await world.service.push("all", component("plain"))
    assert await process.collect_new() == 1
    await world.collector.drain()
    assert world.vendor.asked == {}
    assert await world.count("runs") == 1


async def test_entities_that_the_first_run_of_a_source_plans_for_are_asked_for_once(
    world: World,
) -> None:
    await world.push("web", "shop")
    process = worker(world)
    assert await process.collect_new() == 0
    await world.collector.begin_due()
    assert await process.collect_new() == 2
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}
    assert await world.count("runs") == 1


async def test_entities_that_wait_in_a_run_are_not_asked_for_again(service: Service) -> None:
    world = World(service, size=1)
    await world.collector.drain()
    process = worker(world)
    await world.push("web", "shop")
    body = {"entityRef": "component:web"}
    assert (await service.http.post("/api/catalog/refresh", json=body)).status_code == 200
    await process.collect()
    assert await process.collect_new() == 2
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}


async def test_a_source_without_a_cadence_waits_until_it_is_asked(service: Service) -> None:
    world = World(service, cadence=None)
    await world.push("web")
    assert await worker(world).collect_new() == 1
    await world.collector.drain()
    assert world.vendor.asked == {}


async def test_a_draft_is_not_collected(service: Service) -> None:
    world = World(service, draft=True)
    await world.push("web")
    await worker(world).collect_new()
    await world.collector.drain()
    assert world.vendor.asked == {}


@pytest.mark.both_databases
async def test_entities_that_come_one_by_one_share_runs(world: World, process: Worker) -> None:
    names = list[str]()
    for name in "abcdefghij":
        names.append(name)
        await world.push(*names)
        await process.collect_new()
        world.service.time.advance(SECOND)
    await process.collect_new()
    await world.collector.drain()
    assert world.vendor.asked == {f"acme/{name}": 1 for name in names}
    assert await world.count("runs") == 3


@pytest.mark.both_databases
async def test_many_entities_are_collected_in_several_looks(
    world: World, process: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_start, "_EVENTS_AT_ONCE", 20)
    # A look reads whole pushes: the first takes two of them, the next takes the last.
    for count in (10, 20, 21):
        await world.push(*(f"a{number}" for number in range(count)))
    assert await process.collect_new() == 20
    assert await process.collect_new() == 0
    assert await after_pause(world, process) == 1
    assert len(world.vendor.asked) == 21
    assert set(world.vendor.asked.values()) == {1}


@pytest.mark.both_databases
async def test_of_two_processes_one_begins_to_collect(world: World, process: Worker) -> None:
    other = worker(world)
    await world.push("web", "shop")
    looked_at = await asyncio.gather(process.collect_new(), other.collect_new())
    await world.collector.drain()
    assert sorted(looked_at) == [0, 2]
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}


def broken(targets: Sequence[str]) -> list[list[str]]:
    raise ValueError("broken")


async def test_a_source_that_cannot_plan_does_not_keep_others_from_new_entities(
    world: World,
) -> None:
    state, time, later = world.service.state, world.service.time, Vendor()
    good = integration(later, "later")
    pairs = (world.vendor, world.integration), (later, good)
    collecting = collector(state.database, *pairs, clock=time, holder="a")
    await collecting.drain()
    time.advance(MINUTE)
    await world.push("web")
    failing = dataclasses.replace(world.integration, batches=broken)
    known = registry(world.service, SOURCES, [failing, good])
    process = Worker(state.database, state.settings, known, time, "a", collecting)
    assert await process.collect_new() == 1
    await collecting.drain()
    assert (world.vendor.asked, later.asked) == ({}, {"acme/web": 1})
    errors = await world.database.all(
        "SELECT error FROM runs WHERE source_id = 'vendor' AND error <> ''"
    )
    assert errors == [("upstream-error: the run could not be planned; the log has more",)]
    # What it knows nothing of is left to its next run.
    time.advance(DAY)
    await collecting.drain()
    assert world.vendor.asked == {"acme/web": 1}


@pytest.mark.both_databases
async def test_another_process_goes_on_where_one_ended(world: World, process: Worker) -> None:
    await world.push("web")
    await process.collect_new()
    await world.push("web", "shop")
    assert await worker(world).collect_new() == 1
    await world.collector.drain()
    assert world.vendor.asked == {"acme/web": 1, "acme/shop": 1}


@pytest.mark.both_databases
async def test_after_events_were_forgotten_those_since_count(world: World, process: Worker) -> None:
    await world.push("web")
    await delete_old_events(world.database, world.service.time() + DAY, Throttle())
    assert await process.collect_new() == 0
    await world.push("web", "shop")
    assert await process.collect_new() == 1
    await world.collector.drain()
    assert world.vendor.asked == {"acme/shop": 1}


@pytest.mark.both_databases
async def test_events_of_a_restored_database_are_not_waited_for(
    world: World, process: Worker
) -> None:
    await world.push("web")
    await process.collect_new()
    await world.database.write(partial(restart_feed, above=5_000))
    await world.push("web", "shop")
    world.service.time.advance(ARRIVALS_PAUSE)
    await process.collect_new()
    await world.push("web", "shop", "cart")
    await after_pause(world, process)
    assert world.vendor.asked["acme/cart"] == 1

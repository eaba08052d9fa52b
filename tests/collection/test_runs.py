"""Runs of a source: what is collected when, and what is stored of it."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from factbook.clock import DAY, MINUTE, SECOND
from factbook.collection import run_start
from factbook.facts.freshness import Latest
from factbook.integrations import SOURCES
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import Lane
from factbook.scheduling.schedule import find_next_start
from factbook.worker import Worker
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.collection.world import CLOSED, LATEST, OPEN, World
from tests.service import NOON, Service, component, registry

pytestmark = pytest.mark.both_databases


async def test_a_run_collects_every_entity_that_the_filter_lets_through(world: World) -> None:
    names = [f"part-{number}" for number in range(7)]
    pushed = [*map(repository, names), component("unmapped")]
    await world.service.push("all", *pushed)
    world.vendor.open.update({"acme/part-0": 4})
    await world.collector.drain()
    found = await world.facts("part-0")
    values = {OPEN: 4, CLOSED: 0, LATEST: "of acme/part-0"}
    assert found == Latest(values, {}, "1.0.0", NOON)
    assert await world.facts("unmapped") is None
    assert set(world.vendor.asked) == {f"acme/{name}" for name in names}
    run = await world.last()
    assert (run.state, run.covered, run.failed, run.calls) == ("done", 7, 0, 3)
    assert await world.count("batches") == 0


async def test_a_source_runs_once_for_each_moment_of_its_cadence(world: World) -> None:
    await world.push("web")
    await world.collector.drain()
    await world.collector.drain()
    assert world.vendor.asked.total() == 1
    start = find_next_start("vendor", "0 * * * *", NOON)
    assert NOON < start < NOON + 15 * MINUTE
    world.service.time.now = start - 1
    await world.collector.drain()
    assert world.vendor.asked.total() == 1
    world.service.time.now = start
    await world.collector.drain()
    assert world.vendor.asked.total() == 2
    world.service.time.advance(5 * DAY)
    await world.collector.drain()
    assert world.vendor.asked.total() == 3  # one makes up for all that were missed


@pytest.mark.slow
async def test_entities_that_point_to_the_same_share_one_answer(world: World) -> None:
    pushed = [repository(f"part-{number}", "acme/mono") for number in range(5)]
    await world.service.push("all", *pushed)
    world.vendor.open["acme/mono"] = 9
    await world.collector.drain()
    assert world.vendor.asked == {"acme/mono": 1}
    for number in range(5):
        assert (await world.values(f"part-{number}"))[OPEN] == 9
    assert (await world.last()).covered == 5


async def test_entities_without_a_target_are_skipped_with_the_reason_stored_once(
    world: World,
) -> None:
    await world.service.push("all", repository("web"), repository("odd", "no-slash"))
    await world.collector.drain()
    assert await world.reasons("odd") == {"": "no-annotation: not owner/name"}
    run = await world.last()
    assert (run.state, run.covered, run.skipped) == ("done", 1, 1)
    rows = await world.count("facts_history")
    world.vendor.open["acme/web"] = 5
    await world.next_run()
    assert await world.count("facts_history") == rows + 1  # of web alone


async def test_an_entity_whose_annotations_break_the_integration_costs_no_other_its_facts(
    world: World,
) -> None:
    await world.service.push("all", repository("web"), repository("odd", "broken"))
    await world.collector.drain()
    assert (await world.values("web"))[LATEST] == "of acme/web"
    assert (await world.reasons("odd"))[""].startswith("upstream-error: ")
    run = await world.last()
    assert (run.state, run.covered, run.failed) == ("partial", 1, 1)


async def test_an_entity_that_loses_its_annotation_loses_its_latest_facts(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.drain()
    await world.service.push("all", component("web"), repository("shop"))
    await world.next_run()
    assert await world.facts("web") is None
    assert await world.facts("shop") is not None


async def test_a_draft_is_collected_on_demand_only(service: Service) -> None:
    world = World(service, draft=True)
    await world.push("web")
    await world.collector.drain()
    assert world.vendor.asked.total() == 0


@pytest.mark.slow
async def test_a_large_catalog_is_read_in_portions(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_start, "_ENTITIES_IN_PORTION", 50)
    count = 120
    await world.push(*(f"part-{number}" for number in range(count)))
    await world.collector.drain()
    run = await world.last()
    assert (run.covered, len(world.vendor.asked)) == (count, count)
    assert set(world.vendor.asked.values()) == {1}


async def test_what_was_not_collected_for_longest_comes_first(service: Service) -> None:
    world = World(service, size=1)
    await world.push("old")
    await world.collector.drain()
    await world.push("old", "new")
    world.service.time.now = find_next_start("vendor", "0 * * * *", world.service.time.now)
    await world.collector.begin_due()
    rows = await world.database.all("SELECT work FROM batches ORDER BY number")
    assert ["new" in work for (work,) in rows] == [True, False]


# Asked for


def worker(world: World) -> Worker:
    state, time = world.service.state, world.service.time
    known = registry(world.service, SOURCES, [world.integration])
    return Worker(state.database, state.settings, known, time, "a", world.collector)


@pytest.mark.spec("catalog.refresh")
async def test_refreshing_an_entity_collects_it_from_every_integration(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.drain()
    world.vendor.open["acme/web"] = 5
    world.service.time.advance(SECOND)
    body = {"entityRef": "component:web"}
    answer = await world.service.http.post("/api/catalog/refresh", json=body)
    assert answer.status_code == 200
    assert await worker(world).collect() == 1
    await world.collector.drain()
    assert (await world.values("web"))[OPEN] == 5
    assert world.vendor.asked == {"acme/web": 2, "acme/shop": 1}
    assert (await world.last()).covered == 2  # the figures of the source are those of whole runs


async def test_what_is_asked_for_comes_before_the_rest_of_a_run(service: Service) -> None:
    world = World(service, size=1)
    await world.push("a", "b", "c")
    await world.collector.begin_due()
    await world.service.http.post("/api/catalog/refresh", json={"entityRef": "component:c"})
    await worker(world).collect()
    lane = Lane("vendor token", 1, 0)
    take = partial(run_queue.take_batch, holder="x", source_ids=["vendor"], lane=lane, now=NOON)
    first = await world.database.write(take)
    assert first is not None
    assert "acme/c" in first.work


async def test_facts_of_an_entity_that_went_meanwhile_are_not_stored(world: World) -> None:
    await world.push("web", "shop")
    await world.collector.begin_due()
    await world.push("shop")
    await world.collector.drain()
    assert await world.count("facts_latest") == 1


async def test_batches_of_one_source_are_worked_on_while_the_next_is_planned(
    service: Service,
) -> None:
    await service.push("all", repository("web"))
    first, second = Vendor(), Vendor()
    asked = threading.Event()

    async def note() -> None:
        asked.set()

    def target(entity: Mapping[str, Any]) -> str:
        assert asked.wait(60)
        return "acme/web"

    first.faults[""] = note
    later = replace(integration(second, "second"), target=target)
    pairs = (first, integration(first, "first")), (second, later)
    worker = collector(service.state.database, *pairs, clock=service.time)
    await worker.tick()
    await worker.drain()
    assert second.asked == {"acme/web": 1}

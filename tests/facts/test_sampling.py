"""The work beside requests: daily samples of the catalog's own facts, and trimming to lifecycle."""

import json
from typing import Any

import pytest

from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.collection import run_start
from factbook.errors import FactbookError
from factbook.facts import store
from factbook.facts.datasource import DataSource, Lifecycle
from factbook.facts.freshness import Observation
from factbook.facts.schema import Fact
from factbook.integrations import SOURCES
from factbook.worker import Worker
from tests.service import NOON, Service, component, registry
from tests.storage.evaluating import evaluating

MIDNIGHT = NOON + 12 * HOUR
ROUND = 10 * MINUTE
COVERAGE = DataSource(
    id="coverage",
    title="Coverage",
    lifecycle=Lifecycle(max_items=2),
    schema=(Fact("lines", "integer"),),
)


def worker(service: Service, holder: str = "a") -> Worker:
    """The service's own worker, which a test tells when to work and what time it is."""
    state, known = service.state, registry(service, (*SOURCES, COVERAGE))
    return Worker(state.database, state.settings, known, service.time, holder)


async def history(service: Service, source: str, name: str = "payments") -> list[tuple[int, Any]]:
    """Milliseconds after noon, and facts, of each row about a component, oldest first."""
    rows = await service.state.database.all(
        "SELECT h.written_at, h.facts FROM facts_history h JOIN entities e ON e.id = h.entity_id "
        "WHERE h.source_id = ? AND e.ref = ? ORDER BY h.written_at",
        (source, f"component:default/{name}"),
    )
    return [(written_at - NOON, json.loads(facts)) for written_at, facts in rows]


async def rows(service: Service) -> int:
    row = await service.state.database.one("SELECT COUNT(*) FROM facts_history")
    assert row is not None
    return int(row[0])


async def record(service: Service, lines: int) -> None:
    now, observed = service.time(), Observation(1, {"lines": lines})
    await service.state.database.write(
        evaluating(lambda tx: store.record_facts(tx, COVERAGE, [observed], now))
    )


# Samples


@pytest.mark.slow
@pytest.mark.spec("facts.catalog-facts-sampled-daily")
async def test_the_catalogs_facts_are_sampled_once_a_day_where_they_changed(
    service: Service,
) -> None:
    await service.push("first", component("payments"), component("orders"))
    work = worker(service).work
    assert await work()
    untitled = {"hasTitle": False, "hasDescription": False, "hasTags": False, "hasOwner": True}
    assert await history(service, "entity-metadata") == [(0, untitled)]
    assert await history(service, "techdocs") == [(0, {"hasTechdocsRef": False})]

    titled = component("payments")
    titled["metadata"]["title"] = "Payments"
    await service.push("first", titled, component("orders"))
    service.time.advance(12 * HOUR - SECOND)  # still the same day
    assert await work()
    assert len(await history(service, "entity-metadata")) == 1

    service.time.advance(SECOND)
    assert service.time() == MIDNIGHT
    assert await work()
    assert await history(service, "entity-metadata") == [
        (0, untitled),
        (12 * HOUR, untitled | {"hasTitle": True}),
    ]
    assert len(await history(service, "techdocs")) == 1
    assert len(await history(service, "entity-metadata", "orders")) == 1
    before = await rows(service)
    service.time.advance(DAY)
    assert await work()
    assert await rows(service) == before


@pytest.mark.spec("facts.catalog-facts-sampled-daily", "facts.other-sets-change-relations")
async def test_a_sample_sees_what_another_set_changed(service: Service) -> None:
    await service.push("first", component("payments"))
    await worker(service).work()
    await service.push("second", component("shop", dependsOn=["component:payments"]))
    service.time.advance(DAY)
    await worker(service).work()
    sampled = [facts["hasRelationships"] for _, facts in await history(service, "entity-ownership")]
    assert sampled == [False, True]


@pytest.mark.slow
async def test_a_catalog_of_many_entities_is_sampled_whole(service: Service) -> None:
    count = 2_100
    await service.push("many", *(component(f"part-{number}") for number in range(count)))
    database = service.state.database
    assert await run_start.sample_catalog(database, SOURCES, NOON) == count
    assert await rows(service) == 3 * count
    assert await run_start.sample_catalog(database, SOURCES, NOON + HOUR) == 0


async def test_samples_that_failed_are_taken_in_the_next_round(service: Service) -> None:
    await service.push("first", component("payments"))
    database, work = service.state.database, worker(service).work
    hide = "ALTER TABLE facts_history RENAME TO hidden"
    await database.write(lambda tx: tx.run(hide))
    with pytest.raises(Exception, match="facts_history") as failure:
        await run_start.sample_catalog(database, SOURCES, NOON)
    assert not isinstance(failure.value, FactbookError)
    await database.write(lambda tx: tx.run("ALTER TABLE hidden RENAME TO facts_history"))
    service.time.advance(ROUND)
    assert await work()
    assert await rows(service) == 3


# Who works


async def test_of_two_workers_one_works_until_it_falls_silent(service: Service) -> None:
    first, second = worker(service, "first"), worker(service, "second")
    assert await first.work()
    assert not await second.work()
    service.time.advance(2 * ROUND - 1)
    assert not await second.work()
    service.time.advance(1)
    assert await second.work()
    assert not await first.work()


# Trimming


@pytest.mark.spec("facts.history-is-trimmed-by-lifecycle", "facts.history-is-append-only")
async def test_the_worker_trims_history_to_the_number_of_items_of_its_source(
    service: Service,
) -> None:
    await service.push("first", component("payments"))
    for lines in range(4):
        await record(service, lines)
        service.time.advance(SECOND)
    assert [facts["lines"] for _, facts in await history(service, "coverage")] == [0, 1, 2, 3]
    assert await worker(service).work()
    assert [facts["lines"] for _, facts in await history(service, "coverage")] == [2, 3]
    latest = await store.find_latest(service.state.database, "coverage", 1)
    assert latest is not None
    assert latest.facts == {"lines": 3}


@pytest.mark.slow
@pytest.mark.spec("facts.history-is-trimmed-by-lifecycle")
async def test_the_worker_trims_samples_that_have_outlived_their_90_days(service: Service) -> None:
    await service.push("first", component("payments"))
    await worker(service).work()
    titled = component("payments")
    titled["metadata"]["title"] = "Payments"
    service.time.advance(DAY)
    await service.push("first", titled)
    await worker(service).work()
    assert [time for time, _ in await history(service, "entity-metadata")] == [0, DAY]
    for days in (20, 20, 20, 20, 9):  # the first is 90 days old then
        service.time.advance(days * DAY)
        await worker(service).work()
    assert [time for time, _ in await history(service, "entity-metadata")] == [0, DAY]
    service.time.advance(SECOND)
    await worker(service).work()
    assert [time for time, _ in await history(service, "entity-metadata")] == [DAY]


@pytest.mark.spec("removed.forgotten-after-the-keep-time")
async def test_the_worker_forgets_facts_of_an_entity_that_was_long_removed(
    service: Service,
) -> None:
    await service.push("first", component("payments"))
    await record(service, 7)
    await service.push("first")
    service.time.advance(7 * DAY)
    await worker(service).work()
    assert await store.find_latest(service.state.database, "coverage", 1) is not None
    service.time.advance(ROUND)
    await worker(service).work()
    assert await store.find_latest(service.state.database, "coverage", 1) is None
    assert await rows(service) == 0

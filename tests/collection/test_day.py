"""A simulated day of several sources with faults: nothing piles up."""

import asyncio
import gc
import random
from contextlib import AbstractAsyncContextManager
from weakref import ReferenceType

import pytest

from factbook.clock import DAY, HOUR, MINUTE
from factbook.facts.datasource import Lifecycle
from factbook.scheduling import runs
from factbook.worker import Worker
from tests.collection.dispatchers import ALONE_OR_SHARING, dispatcher
from tests.collection.madeup import (
    DENIED,
    DOWN,
    LIMITED,
    Fault,
    Vendor,
    integration,
    repository,
)
from tests.collection.tools import Dispatcher
from tests.no_rest import NoRest
from tests.service import NOON, Service, registry

ENTITIES = 250
STEP = 10 * MINUTE
KEPT = 3
CADENCES = {
    "hourly": "0 * * * *",
    "often": "*/30 * * * *",
    "quarterly": "0 */6 * * *",
    "daily": "30 4 * * *",
}
FAULTS: list[Fault] = [DOWN, LIMITED, DENIED, {"codehost.issues": DOWN}]


class Day:
    """The sources, each with a vendor of its own that fails in its own way."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.chance = random.Random(11)
        self.vendors = {name: Vendor() for name in CADENCES}
        self.integrations = [
            integration(
                self.vendors[name],
                name,
                cadence=line,
                size=25,
                lifecycle=Lifecycle(max_items=KEPT),
            )
            for name, line in CADENCES.items()
        ]
        state, known = service.state, registry(service, (), self.integrations)
        self.worker = Worker(
            state.database, state.settings, known, service.time, "a", throttle=NoRest
        )

    def dispatcher(self, *, shares: bool) -> AbstractAsyncContextManager[Dispatcher]:
        """What collects from the vendors."""
        return dispatcher(
            self.service,
            self.integrations,
            lambda one: self.vendors[one.source.id].client,
            shares=shares,
        )

    def inject(self) -> None:
        """Some targets fail each in a way; once in a while a whole vendor does."""
        for vendor in self.vendors.values():
            vendor.faults = {
                f"acme/part-{self.chance.randrange(ENTITIES)}": self.chance.choice(FAULTS)
                for _ in range(10)
            }
            if self.chance.random() < 0.15:
                vendor.faults[""] = self.chance.choice([DOWN, LIMITED])
            if vendor is self.vendors["quarterly"]:
                vendor.faults["acme/part-7"] = KeyError("broken")
            vendor.remembers = True
            vendor.limit(50, self.service.time() + self.chance.randrange(HOUR))

    async def pass_by(self, collector: Dispatcher, duration: int) -> None:
        end = self.service.time() + duration
        while self.service.time() < end:
            self.inject()
            await collector.drain()
            self.service.time.advance(STEP)
            await self.worker.work()

    async def rows(self) -> dict[str, int]:
        tables = "runs", "batches", "facts_latest", "facts_history", "memories", "queues", "leases"
        found = {}
        for table in tables:
            row = await self.service.state.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - ours
            assert row is not None
            found[table] = int(row[0])
        return found


@pytest.mark.system  # for the time that it takes
@pytest.mark.timeout(1200)
@ALONE_OR_SHARING
async def test_a_day_of_several_sources_with_faults_leaves_nothing_behind(
    service: Service, sharing: bool
) -> None:
    await service.push("all", *(repository(f"part-{number}") for number in range(ENTITIES)))
    day = Day(service)
    async with day.dispatcher(shares=sharing) as collector:
        await day.pass_by(collector, 12 * HOUR)
        tasks, objects = len(asyncio.all_tasks()), count_objects()
        await day.pass_by(collector, 12 * HOUR)
        assert service.time() == NOON + DAY

        assert len(asyncio.all_tasks()) == tasks
        assert count_objects() < objects * 1.1
    found = await day.rows()
    many = ENTITIES * len(CADENCES)
    assert found["facts_latest"] == many
    assert found["facts_history"] <= KEPT * many
    assert found["runs"] <= runs.RUNS_KEPT * len(CADENCES)
    assert found["memories"] == 2 * len(CADENCES)
    assert (found["queues"], found["leases"]) == (len(CADENCES), 1)
    health = await runs.fetch_health(service.state.database)
    assert health.keys() == CADENCES.keys()
    for name in CADENCES:
        last = health[name].last
        assert last is not None
        assert service.time() - last.started_at < 7 * HOUR or name == "daily"
        assert last.covered + last.failed == ENTITIES


def count_objects() -> int:
    """Count what the garbage collector tracks, except weak references to what is gone.

    Each connection of sqlite3 has up to 200 of these, and drops all of them with the next cursor.
    """
    gc.collect()
    dead = sum(type(each) is ReferenceType and each() is None for each in gc.get_objects())
    return len(gc.get_objects()) - dead

"""Workers whose clocks are wrong, and which are killed: nothing is lost, nothing is stored twice.

In the long form 50 of them are killed.
"""

import asyncio
import os
import random
import signal
import sys
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

import pytest

from factbook.clock import now
from factbook.collection import collector, run_start
from factbook.collection.run_start import UnderWayError
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from tests.collection.dispatchers import ALONE_AND_SHARING
from tests.collection.madeup import Vendor, repository
from tests.collection.process import KILLER, SIZE, made_up
from tests.conftest import StartService
from tests.service import Service
from tests.system.forked import ForkedProcess
from tests.system.test_collecting_crash import worker
from tests.waiting import TAKEN_OVER, soon

SOAK = "FACTBOOK_SOAK" in os.environ

pytestmark = [pytest.mark.system, pytest.mark.timeout(7_200 if SOAK else 2_000), ALONE_AND_SHARING]

KILLS = 50 if SOAK else 2
ENTITIES = 900
AT_ONCE = 6
LATENCY = 0.2
# In seconds. All processes on a file have the clock of one machine.
AHEAD = {"sqlite": (0, 0, 0), "postgresql": (0, 3_600, -3_600)}


class Workers:
    """Three workers, which are started again when they are gone."""

    def __init__(self, service: Service, folder: Path, sharing: bool) -> None:
        self.service = service
        self._folder = folder
        self._sharing = sharing
        self._stack = ExitStack()
        self._ahead = AHEAD[service.state.database.dialect]
        self.running: dict[int, ForkedProcess] = {}

    def complete(self) -> None:
        """Start those that are not there."""
        for number in range(len(self._ahead)):
            if number not in self.running or self.running[number].poll() is not None:
                self.running[number] = self._stack.enter_context(self._worker(number))

    def _worker(self, number: int) -> AbstractContextManager[ForkedProcess]:
        return worker(
            self.service.database_url,
            self._folder / str(number),
            at_once=AT_ONCE,
            latency=LATENCY,
            sharing=self._sharing,
            ahead=self._ahead[number],
        )

    def close(self) -> None:
        """Stop all."""
        self._stack.close()

    async def leader(self) -> ForkedProcess | None:
        """The one that leads, if it is known."""
        row = await self.service.state.database.one(
            "SELECT holder FROM leases WHERE name = 'collector'"
        )
        pid = row[0].partition("-")[0] if row else ""
        return next((one for one in self.running.values() if str(one.pid) == pid), None)

    async def bury(self) -> None:
        """Let the leases of those that are gone lapse at once."""
        gone = [f"{one.pid}-%" for one in self.running.values() if one.poll() is not None]
        for name in gone:
            await self.service.state.database.write(
                lambda tx, name=name: tx.run(  # type: ignore[misc]
                    "UPDATE leases SET held_until = 1 WHERE holder LIKE ?", (name,)
                )
            )


async def test_workers_with_wrong_clocks_that_are_killed_lose_and_double_nothing(
    start: StartService, tmp_path: Path, sharing: bool
) -> None:
    service = await start(collect=False)
    await service.push("all", *(repository(f"part-{number}") for number in range(ENTITIES)))
    chance, workers = random.Random(17), Workers(service, tmp_path, sharing)
    slowest = 0.0
    try:
        workers.complete()
        run = await next_run(service, None)
        for number in range(KILLS):
            await asyncio.sleep(chance.uniform(0, 3))
            victim = workers.running[chance.randrange(len(workers.running))]
            if number % 3 == 0:
                victim = await workers.leader() or victim
            os.kill(victim.pid, signal.SIGKILL)
            victim.wait()
            if number % 2:
                workers.complete()
            killed_at = now()
            ended = await end_of(service, run)
            slowest = max(slowest, (now() - killed_at) / 1_000)
            assert (ended.covered, ended.failed, ended.error) == (ENTITIES, 0, None), number
            workers.complete()
            run = await next_run(service, run)
    finally:
        workers.close()
    sys.stdout.write(f"{KILLS} killed, the longest run ended {slowest:.0f} s later\n")


async def next_run(service: Service, before: int | None) -> int:
    """A run of everything that has begun to bring something; its id."""
    database, integration = service.state.database, made_up(Vendor(), AT_ONCE)
    found = list[RunRecord]()

    async def is_under_way() -> bool:
        with suppress(UnderWayError):
            if before is not None:
                await run_start.begin_run(database, integration, now())
        health = (await runs.fetch_health(database)).get("vendor")
        if health is not None and health.running is not None and health.running.covered:
            found.append(health.running)
        return bool(found)

    await soon(is_under_way, TAKEN_OVER, pause=0.2)
    return found[-1].id


async def end_of(service: Service, run_id: int) -> RunRecord:
    """The run, once it has ended."""
    database = service.state.database

    async def has_ended() -> bool:
        found = await runs.fetch_run(database, run_id)
        return found is not None and found.finished_at is not None

    await soon(has_ended, TAKEN_OVER, pause=0.5)
    found = await runs.fetch_run(database, run_id)
    assert found is not None
    return found


async def test_a_batch_that_ends_its_process_is_given_up_and_holds_no_other_back(
    start: StartService, tmp_path: Path, sharing: bool
) -> None:
    service = await start(collect=False)
    names = [f"part-{number}" for number in range(ENTITIES - 1)]
    killer = repository("killer", KILLER)
    await service.push("all", *map(repository, names), killer)
    workers = Workers(service, tmp_path, sharing)

    async def has_ended() -> bool:
        await workers.bury()
        workers.complete()
        health = (await runs.fetch_health(service.state.database)).get("vendor")
        return health is not None and health.last is not None

    try:
        await soon(has_ended, TAKEN_OVER, pause=0.5)
    finally:
        workers.close()
    [listed] = await runs.list_given_up_batches(service.state.database)
    assert KILLER in listed.work
    assert listed.attempts == collector.MOST_ATTEMPTS
    last = (await runs.fetch_health(service.state.database))["vendor"].last
    assert last is not None
    assert (last.covered, last.failed) == (ENTITIES - SIZE, SIZE)

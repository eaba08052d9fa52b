"""A worker that is killed in the middle of a run: no fact is lost, none is stored twice."""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from factbook import clock
from factbook.collection import run_start
from factbook.collection.run_start import UnderWayError
from factbook.integrations.integration import Integration
from factbook.scheduling import runs
from factbook.storage import Database
from tests.collection.dispatchers import ALONE_AND_SHARING
from tests.collection.madeup import Vendor, repository
from tests.collection.process import SIZE, made_up, main
from tests.conftest import StartService
from tests.processes import clean_environment
from tests.service import Service
from tests.system.forked import ForkedProcess, fork
from tests.waiting import TAKEN_OVER, soon

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

ENTITIES = 300
KILLED_AFTER = 60
AT_ONCE = 2


@contextmanager
def worker(
    database_url: str,
    asked: Path,
    *,
    at_once: int = AT_ONCE,
    latency: float = 0.05,
    sharing: bool = False,
    ahead: float = 0,
) -> Iterator[ForkedProcess]:
    """A worker's process; stopped at the end of the block."""
    process = fork(
        main,
        *(database_url, asked, at_once, latency, sharing, ahead),
        environment=clean_environment(),
        log=asked.with_suffix(".log"),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def counted(asked: Path) -> Counter[str]:
    """How often each target was asked for."""
    return Counter(asked.read_text().split()) if asked.exists() else Counter()


async def rows(service: Service, table: str, condition: str = "1 = 1") -> int:
    row = await service.state.database.one(
        f"SELECT COUNT(*) FROM {table} WHERE {condition}"  # noqa: S608 - ours
    )
    assert row is not None
    return int(row[0])


@ALONE_AND_SHARING
async def test_a_run_survives_the_death_of_a_worker(
    start: StartService, tmp_path: Path, sharing: bool
) -> None:
    service = await start()
    await service.push("all", *(repository(f"part-{number}") for number in range(ENTITIES)))
    first, second = tmp_path / "first", tmp_path / "second"

    async def is_in_the_middle() -> bool:
        return counted(first).total() >= KILLED_AFTER

    async def has_ended() -> bool:
        health = (await runs.fetch_health(service.state.database)).get("vendor")
        return health is not None and health.last is not None

    with worker(service.database_url, first, sharing=sharing) as victim:
        await soon(is_in_the_middle)
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
    assert counted(first).total() < ENTITIES
    with worker(service.database_url, second, sharing=sharing):
        await soon(has_ended, TAKEN_OVER, pause=0.5)

    [health] = (await runs.fetch_health(service.state.database)).values()
    assert health.last is not None
    assert (health.last.covered, health.last.failed) == (ENTITIES, 0)
    assert await rows(service, "facts_latest") == ENTITIES
    assert (
        await rows(service, "facts_history", "source_id = 'vendor'") == ENTITIES
    )  # no fact was stored twice
    asked = counted(first) + counted(second)
    assert len(asked) == ENTITIES
    twice = [target for target, count in asked.items() if count > 1]
    assert len(twice) <= AT_ONCE * SIZE
    assert max(asked.values()) <= 2


@ALONE_AND_SHARING
async def test_of_workers_in_several_processes_none_does_what_another_does(
    start: StartService, tmp_path: Path, sharing: bool
) -> None:
    service = await start()
    database = service.state.database
    one, two = tmp_path / "one", tmp_path / "two"
    integration = made_up(Vendor(), at_once=16)

    async def are_working() -> bool:
        logs = (path.with_suffix(".log") for path in (one, two))
        return all("worker.started" in log.read_text() for log in logs)

    async def has_ended() -> bool:
        health = (await runs.fetch_health(database)).get("vendor")
        return health is not None and health.last is not None and health.last.entities > 0

    with (
        worker(service.database_url, one, at_once=16, latency=0.5, sharing=sharing),
        worker(service.database_url, two, at_once=16, latency=0.5, sharing=sharing),
    ):
        await soon(are_working)
        await service.push("all", *(repository(f"part-{number}") for number in range(ENTITIES)))
        await soon(lambda: _begun(database, integration, clock.now()))
        await soon(has_ended)
    asked = counted(one) + counted(two)
    assert set(asked.values()) == {1}
    assert await rows(service, "facts_history", "source_id = 'vendor'") == ENTITIES
    least = min(counted(one).total(), counted(two).total())
    assert least >= 0.2 * ENTITIES if sharing else least == 0


async def _begun(database: Database, integration: Integration, now: int) -> bool:
    """Whether a run begins; the workers' first one, of an empty catalog, may be in the way."""
    with suppress(UnderWayError):
        await run_start.begin_run(database, integration, now)
        return True
    return False

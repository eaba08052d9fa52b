"""The lag of a read replica in seconds: at rest, while it stands still, and while it is away."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from factbook.errors import UnavailableError
from factbook.settings import Settings
from factbook.storage import Database
from tests.conftest import TOKEN_KEY
from tests.service import started
from tests.system.postgresql_server import Cluster
from tests.system.test_read_replica import opened, prepared, write
from tests.waiting import soon
from tests.web.visiting import signed_in, words

pytestmark = pytest.mark.system

SINCE_LAST = "SELECT extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())"


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    # Between two commits it writes nothing to its log, as when nobody uses it.
    with Cluster.running(autovacuum="off") as cluster:
        asyncio.run(prepared(cluster))
        yield cluster


@pytest.fixture(scope="module")
def replica(primary: Cluster) -> Iterator[Cluster]:
    with primary.replica() as replica:
        yield replica


async def lag(database: Database) -> float:
    use = database.replica()
    assert use is not None
    return await use.lag()


async def is_current(database: Database) -> bool:
    """Whether the replica has everything; one that has just begun has shown nothing yet."""
    with suppress(UnavailableError):
        return await lag(database) == 0
    return False


@contextmanager
def paused(replica: Cluster) -> Iterator[None]:
    """Within the block the replica receives the log and replays none of it."""
    replica.run("SELECT pg_wal_replay_pause()")
    try:
        yield
    finally:
        replica.run("SELECT pg_wal_replay_resume()")


async def test_a_replica_that_has_everything_has_no_lag_however_old_the_last_commit_is(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        await write(database, 1)
        await soon(lambda: is_current(database))
        [(age,)] = replica.run(SINCE_LAST)
        assert age > 0
        assert await lag(database) == 0


async def test_what_a_replica_lacks_is_told_from_the_last_time_that_it_had_everything(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        with paused(replica):
            # It had everything later than the last commit that it shows was made.
            assert await lag(database) == 0
            await write(database, 1)
            first = await lag(database)
            [(age,)] = replica.run(SINCE_LAST)
            assert 0 < first < age
            assert await lag(database) > first
        await soon(lambda: is_current(database))


async def test_a_process_that_never_saw_it_up_to_date_tells_the_last_commit_that_it_shows(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        with paused(replica):
            await write(database, 1)
            found = await lag(database)
            [(age,)] = replica.run(SINCE_LAST)
            assert 0 < found < age
        await soon(lambda: is_current(database))


async def test_the_lag_of_a_replica_that_is_away_is_not_known(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        await soon(lambda: is_current(database))
        with replica.silent(), pytest.raises(UnavailableError, match="it does not answer"):
            await lag(database)
    async with opened(primary, replica) as database:
        with replica.away(), pytest.raises(UnavailableError, match=r"\w"):
            await lag(database)


async def test_of_a_new_replica_that_has_replayed_nothing_and_of_a_promoted_one_none_is_known(
    primary: Cluster,
) -> None:
    with primary.replica() as replica:
        async with opened(primary, replica) as database:
            with paused(replica):
                await write(database, 1)
                with pytest.raises(UnavailableError, match="it has replayed no commit"):
                    await lag(database)
            await soon(lambda: is_current(database))
            replica.promote()
            with pytest.raises(UnavailableError, match="it is no standby"):
                await lag(database)


async def test_the_status_and_the_metrics_tell_the_lag(primary: Cluster, replica: Cluster) -> None:
    settings = Settings(
        database_url=primary.url(), replica_url=replica.url(), token_key=TOKEN_KEY, replica_lag=5
    )
    async with started(settings) as service:
        ada = await signed_in(service)

        async def shows(line: str) -> bool:
            return re.search(rf" Lag {line} ", words(await ada.text("/status"))) is not None

        async def measured() -> list[str]:
            metrics = (await service.http.get("/metrics")).text
            return re.findall(
                r"^factbook_database_replica_lag_seconds (\S+)", metrics, re.MULTILINE
            )

        await soon(lambda: shows("0 s"))
        with paused(replica):
            await write(service.state.database, 1)
            await soon(lambda: shows(r"at most [\d.]+ s"))
            [seconds] = await measured()
            assert float(seconds) > 0
        with replica.away():
            await soon(lambda: shows(r"unknown: \S.*"))
            assert await measured() == []

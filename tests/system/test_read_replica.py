"""A read replica: what goes there, and what becomes of reads when it lags, dies or is promoted."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import structlog

from factbook.errors import ConfigurationError, UnavailableError
from factbook.operations.doctor import database as databases
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests.processes import serving
from tests.service import NOON, PUSH, component
from tests.system.postgresql_pair import Pair
from tests.system.postgresql_server import Cluster
from tests.waiting import soon

pytestmark = pytest.mark.system

WHERE = "SELECT pg_is_in_recovery()"
NUMBERS = "SELECT n FROM numbers ORDER BY n"


@pytest.fixture(scope="module")
def primary() -> Iterator[Cluster]:
    with Cluster.running() as cluster:
        asyncio.run(prepared(cluster))
        yield cluster


async def prepared(cluster: Cluster) -> None:
    """Migrate the database of a server, and add a table."""
    database = await open_database(cluster.url())
    await migrate(database, NOON)
    await database.close()
    cluster.run("CREATE TABLE numbers (n BIGINT)")


@pytest.fixture(scope="module")
def shared_replica(primary: Cluster) -> Iterator[Cluster]:
    with primary.replica() as replica:
        yield replica


@pytest.fixture
def replica(primary: Cluster, shared_replica: Cluster) -> Cluster:
    primary.run("DELETE FROM numbers")
    return shared_replica


@asynccontextmanager
async def opened(
    primary: Cluster, replica: Cluster, *, longest_lag: float = 5.0
) -> AsyncIterator[Database]:
    """A database of both, which waits for the replica however busy the machine is."""
    database = await open_database(
        primary.url(), replica_url=replica.url(), longest_lag=longest_lag
    )
    try:
        yield database
    finally:
        await database.close()


async def write(database: Database, number: int) -> None:
    await database.write(lambda tx: tx.run("INSERT INTO numbers VALUES (?)", (number,)))


async def found(database: Database) -> list[int]:
    return [number for (number,) in await database.search(NUMBERS)]


async def is_on_replica(database: Database) -> bool:
    [(recovers,)] = await database.search(WHERE)
    return bool(recovers)


async def test_long_reads_go_to_the_replica_and_those_of_single_rows_to_the_primary(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        assert await is_on_replica(database)
        assert [rows async for rows in database.pages(WHERE)] == [[(True,)]]
        async with database.moment() as moment:
            assert await moment.columns("SELECT array_agg(pg_is_in_recovery())") == [[True]]
        assert await database.one(WHERE) == (False,)
        assert await database.all(WHERE) == [(False,)]
        use = database.replica()
        assert use is not None
        assert use[:3] == (3, 0, None)


async def test_every_read_sees_what_was_written_before_it(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        for number in range(200):
            await write(database, number)
            assert await found(database) == list(range(number + 1))
        use = database.replica()
        assert use is not None
        assert use.served == 200


async def test_while_the_replica_lags_the_primary_serves_and_that_is_told_once(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica, longest_lag=0.05) as database:
        assert await is_on_replica(database)
        replica.run("SELECT pg_wal_replay_pause()")
        with structlog.testing.capture_logs() as logs:
            try:
                for number in range(20):
                    await write(database, number)
                    assert await found(database) == list(range(number + 1))
            finally:
                replica.run("SELECT pg_wal_replay_resume()")
        assert [log["event"] for log in logs] == ["replica.left"]
        use = database.replica()
        assert use is not None
        assert use.reason == "it lags behind the primary"
        await returned(database)
        assert await found(database) == list(range(20))


async def returned(database: Database) -> None:
    """Return when the replica serves again."""
    await soon(lambda: is_on_replica(database))


async def test_a_service_starts_without_its_replica_and_uses_it_once_it_is_there(
    primary: Cluster, replica: Cluster
) -> None:
    with replica.away():
        async with opened(primary, replica) as database:
            await write(database, 1)
            assert await found(database) == [1]
            use = database.replica()
            assert use is not None
            assert (use.served, use.reason is None) == (0, False)
            replica.start()
            await returned(database)
            assert await found(database) == [1]
        replica.stop()


async def test_a_replica_that_dies_and_returns_costs_no_search(
    primary: Cluster, replica: Cluster
) -> None:
    async with opened(primary, replica) as database:
        for mode in ("fast", "immediate"):
            assert await is_on_replica(database)
            replica.restart(mode)  # every connection to it is dead
            await write(database, 1)
            assert 1 in await found(database)
            await returned(database)


async def test_a_silent_replica_costs_no_search(primary: Cluster, replica: Cluster) -> None:
    async with opened(primary, replica) as database:
        assert await is_on_replica(database)
        with replica.silent():
            await write(database, 1)
            assert await found(database) == [1]
            use = database.replica()
            assert use is not None
            assert use.reason == "it does not answer"
        await returned(database)


async def test_a_list_that_the_replica_cuts_off_is_an_error_and_never_a_shorter_list(
    primary: Cluster, replica: Cluster
) -> None:
    primary.run("INSERT INTO numbers SELECT generate_series(1, 50000)")
    async with opened(primary, replica) as database:
        pages = database.pages(NUMBERS)
        assert len(await anext(pages)) == 1000
        replica.restart("immediate")
        with pytest.raises(UnavailableError):
            async for _ in pages:
                pass
        assert len(await found(database)) == 50_000


async def test_a_search_that_conflicts_with_the_replica_is_served_by_the_primary(
    primary: Cluster, replica: Cluster
) -> None:
    # A terminated session is to the driver what a conflict is: the replica ends what it had begun.
    ended = "SELECT pg_terminate_backend(pg_backend_pid()) WHERE pg_is_in_recovery()"
    async with opened(primary, replica) as database:
        assert await is_on_replica(database)
        assert await database.search(ended) == []


async def test_a_list_that_the_replica_ends_before_its_first_row_is_served_by_the_primary(
    primary: Cluster, replica: Cluster
) -> None:
    # Rows are made one after another: the replica ends at the first, or in the second page.
    ended = (
        "SELECT n, CASE WHEN n = ? AND pg_is_in_recovery() "
        "THEN pg_terminate_backend(pg_backend_pid()) END FROM numbers ORDER BY n"
    )
    async with opened(primary, replica) as database:
        for number in range(4):
            await write(database, number)
        pages = [rows async for rows in database.pages(ended, (0,), size=2)]
        assert pages == [[(0, None), (1, None)], [(2, None), (3, None)]]
        await returned(database)
        with pytest.raises(UnavailableError):
            [rows async for rows in database.pages(ended, (3,), size=2)]
        # What it serves afterwards is whole, and so is the connection to it.
        await returned(database)
        assert await found(database) == [0, 1, 2, 3]


async def test_a_snapshot_that_the_replica_ends_at_its_first_statement_is_one_of_the_primary(
    primary: Cluster, replica: Cluster
) -> None:
    ended = (
        "SELECT array_agg(n) FROM numbers "
        "WHERE NOT (pg_is_in_recovery() AND pg_terminate_backend(pg_backend_pid()))"
    )
    async with opened(primary, replica) as database:
        await write(database, 1)
        async with database.moment() as moment:
            assert await moment.columns(ended) == [[1]]
            await write(database, 2)
            assert await moment.columns("SELECT array_agg(n) FROM numbers") == [[1]]
        assert await found(database) == [1, 2]


async def test_a_promoted_replica_serves_nothing(primary: Cluster) -> None:
    primary.run("DELETE FROM numbers")
    with primary.replica() as replica:
        async with opened(primary, replica) as database:
            assert await is_on_replica(database)
            replica.promote()
            replica.run("INSERT INTO numbers VALUES (77)")
            await write(database, 1)
            assert await found(database) == [1]
            use = database.replica()
            assert use is not None
            assert use.reason is not None
            assert "it is no standby" in use.reason


async def test_after_a_failover_the_new_standby_among_several_hosts_serves() -> None:
    with Pair.running() as pair:
        await prepared(pair.primary)
        database = await open_database(pair.url, replica_url=pair.url, longest_lag=5.0)
        try:
            assert await is_on_replica(database)
            await asyncio.to_thread(pair.fail_over)
            await soon(lambda: is_on_replica(database))
        finally:
            await database.close()


async def test_a_standby_of_another_primary_serves_nothing_however_far_its_log_is(
    primary: Cluster,
) -> None:
    primary.run("DELETE FROM numbers")
    with Cluster.running() as other:
        await prepared(other)
        other.run("INSERT INTO numbers VALUES (77)")
        while not (further(other) > further(primary)):
            other.run("SELECT pg_switch_wal()")
            other.run("INSERT INTO numbers VALUES (77)")
        with other.replica() as strange:
            async with opened(primary, strange) as database:
                await write(database, 1)
                assert await found(database) == [1]
                use = database.replica()
                assert use is not None
                assert use.reason == "it follows another primary than the one in database_url"


def further(cluster: Cluster) -> float:
    """The place of a server's log, in bytes."""
    [(place,)] = cluster.run("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    return float(place)


def test_pages_and_lists_of_a_service_come_from_the_replica(
    primary: Cluster, replica: Cluster, tmp_path: Path
) -> None:
    given = {"FACTBOOK_REPLICA_URL": replica.url(), "FACTBOOK_REPLICA_LAG": "5"}
    with (
        serving(primary.url(), tmp_path, **given) as server,
        server.client(server.token()) as client,
    ):
        for version in range(20):
            items = [component("a", version=version), component("b")]
            assert client.put(f"{PUSH}/sets/one", json={"items": items}).status_code == 200
            shown = client.get("/api/catalog/entities").json()
            assert [one["spec"].get("version") for one in shown] == [version, None]
        metrics = client.get("/metrics").text

        def count(server: str) -> float:
            name = f'factbook_database_replica_reads_total{{server="{server}"}} '
            return float(metrics.partition(name)[2].partition("\n")[0])

        assert count("replica") >= 20
        assert count("primary") == 0
        assert "factbook_database_replica_usable 1.0" in metrics
        assert "factbook_database_replica_lag_seconds " in metrics


@pytest.mark.parametrize(
    ("url", "replica_url"),
    [("sqlite:///x.db", "postgresql://h/d"), ("postgresql://h/d", "sqlite:///x.db")],
)
async def test_a_replica_is_of_postgresql_alone(url: str, replica_url: str) -> None:
    with pytest.raises(ConfigurationError, match="replica_url has to start with postgresql"):
        await open_database(url, replica_url=replica_url)


async def test_a_malformed_address_of_a_replica_is_refused_without_its_password() -> None:
    for password in ("secret", "secret%ZZ", "my secret"):
        url = f"postgresql://me:{password}@host/factbook?nonsense=1"
        with pytest.raises(ConfigurationError, match="replica_url cannot be read") as refused:
            await open_database("postgresql://h/d", replica_url=url)
        assert "secret" not in str(refused.value)


async def test_the_doctor_says_what_is_wrong_with_the_replica(
    primary: Cluster, replica: Cluster
) -> None:
    async def told(replica_url: str) -> str:
        settings = Settings(database_url=primary.url(), replica_url=replica_url)
        async with opened(primary, replica) as database:
            findings = [one async for one in databases.check_postgresql(database, settings)]
        return "\n".join(f"{one.what} {one.advice}" for one in findings)

    found = await told(replica.url())
    assert "Set hot_standby_feedback = on" in found
    assert re.search(r"The replica is (up to date|at most [\d.]+ s behind)\.", found)
    assert "is no standby" in await told(primary.url())
    with replica.away():
        assert "The replica cannot be reached" in await told(replica.url())

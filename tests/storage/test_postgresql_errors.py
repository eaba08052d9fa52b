"""What PostgreSQL refuses is told apart: what may be run again, what is away, what is a bug."""

from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import errors

from factbook.errors import ConfigurationError, UnavailableError
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database

ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
# The names that appendix A of PostgreSQL's documentation gives to the codes.
FAILURES = {
    "admin_shutdown": errors.AdminShutdown,
    "cannot_connect_now": errors.CannotConnectNow,
    "deadlock_detected": errors.DeadlockDetected,
    "disk_full": errors.DiskFull,
    "insufficient_privilege": errors.InsufficientPrivilege,
    "io_error": errors.IoError,
    "lock_not_available": errors.LockNotAvailable,
    "out_of_memory": errors.OutOfMemory,
    "query_canceled": errors.QueryCanceled,
    "read_only_sql_transaction": errors.ReadOnlySqlTransaction,
    "data_corrupted": errors.DataCorrupted,
    "serialization_failure": errors.SerializationFailure,
    "too_many_connections": errors.TooManyConnections,
}


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    database = await open_database(database_url, connections=6)
    await database.write(lambda tx: tx.run("CREATE TABLE notes (name TEXT PRIMARY KEY)"))
    yield database
    await database.close()


async def setting(database: Database, name: str) -> tuple[str, str]:
    """What a setting is for reads, and for writes."""
    sql = f"SHOW {name}"
    rows = (await database.one(sql), await database.write(lambda tx: tx.one(sql)))
    [[reading], [writing]] = (row or [] for row in rows)
    return reading, writing


def raising(condition: str) -> str:
    """SQL that fails as the server does on this condition."""
    return f"DO $$ BEGIN RAISE {condition}; END $$"


def failing(condition: str, times: int) -> tuple[Callable[[Transaction], int], list[int]]:
    """A write that fails so often and then is done; and the runs of it."""
    runs: list[int] = []

    def work(transaction: Transaction) -> int:
        runs.append(len(runs) + 1)
        transaction.run("INSERT INTO notes VALUES (?)", (f"run {len(runs)}",))
        if len(runs) <= times:
            transaction.run(raising(condition))
        return len(runs)

    return work, runs


async def names(database: Database) -> list[str]:
    return [name for (name,) in await database.all("SELECT name FROM notes ORDER BY name")]


@pytest.mark.spec("faults.postgresql-refuses")
@ON_POSTGRESQL
async def test_what_operators_can_mend_is_unavailable_with_its_cause(database: Database) -> None:
    for condition, cause in FAILURES.items():
        work, _ = failing(condition, 99)
        for asked in (database.write(work), database.all(raising(condition))):
            with pytest.raises(UnavailableError) as raised:
                await asked
            assert isinstance(raised.value.__cause__, cause)
            assert condition not in raised.value.message
            assert cause.__name__ in raised.value.cause
    assert await names(database) == []
    assert await database.write(lambda tx: tx.one("SELECT 1")) == (1,)


@ON_POSTGRESQL
async def test_what_our_own_sql_does_wrong_stays_a_bug(database: Database) -> None:
    for condition in ("division_by_zero", "undefined_table", "not_null_violation"):
        work, runs = failing(condition, 99)
        for asked in (database.write(work), database.all(raising(condition))):
            with pytest.raises(psycopg.Error, match=condition):
                await asked
        assert runs == [1]


@ON_POSTGRESQL
async def test_what_is_inserted_twice_is_run_again_and_a_bug_if_that_does_not_help(
    database: Database,
) -> None:
    work, runs = failing("unique_violation", 2)
    assert await database.write(work) == 3
    for_ever, runs = failing("unique_violation", 99)
    with pytest.raises(psycopg.Error, match="unique_violation"):
        await database.write(for_ever)
    assert runs == [1, 2, 3, 4]


@pytest.mark.spec("faults.deadlocks-are-run-again")
@ON_POSTGRESQL
@pytest.mark.parametrize("condition", ["deadlock_detected", "serialization_failure"])
async def test_a_write_that_stood_in_anothers_way_is_run_again(
    database: Database, condition: str
) -> None:
    work, runs = failing(condition, 2)
    assert await database.write(work) == 3
    assert runs == [1, 2, 3]
    assert await names(database) == ["run 3"]
    await database.write(lambda tx: tx.run("DELETE FROM notes"))
    for_ever, runs = failing(condition, 99)
    with pytest.raises(UnavailableError, match="nothing was written"):
        await database.write(for_ever)
    assert runs == [1, 2, 3, 4]
    assert await names(database) == []


@ON_POSTGRESQL
async def test_a_read_is_the_work_of_one_process_unless_the_address_says_otherwise(
    database: Database, database_url: str
) -> None:
    assert (await setting(database, "max_parallel_workers_per_gather"))[0] == "0"
    own = "options=-c%20max_parallel_workers_per_gather%3D3"
    other = await open_database(with_query(database_url, own), connections=6)
    assert (await setting(other, "max_parallel_workers_per_gather"))[0] == "3"
    await other.close()


@ON_POSTGRESQL
async def test_an_address_says_how_long_locks_are_waited_for(
    database: Database, database_url: str
) -> None:
    assert await setting(database, "lock_timeout") == ("10s", "2min")
    assert await setting(database, "idle_in_transaction_session_timeout") == ("0", "1min")
    assert await setting(database, "application_name") == ("factbook", "factbook")
    own = "options=-c%20lock_timeout%3D700ms&application_name=ours"
    other = await open_database(with_query(database_url, own), connections=6)
    assert await setting(other, "lock_timeout") == ("700ms", "700ms")
    assert await setting(other, "application_name") == ("ours", "ours")
    await other.close()


@ON_POSTGRESQL
async def test_a_lock_of_somebody_else_is_not_waited_for_for_ever(
    database: Database, database_url: str
) -> None:
    soon = with_query(database_url, "options=-c%20lock_timeout%3D200ms")
    impatient = await open_database(soon, connections=6)
    with psycopg.connect(database_url) as other:
        other.execute("LOCK TABLE notes")
        for asked in (impatient.write(lambda tx: tx.one("SELECT 1 FROM notes")), names(impatient)):
            with pytest.raises(UnavailableError, match="Others hold") as raised:
                await asked
            assert isinstance(raised.value.__cause__, errors.LockNotAvailable)
    assert await names(impatient) == []
    await impatient.close()


async def test_an_address_that_the_driver_cannot_read_is_a_mistake_of_the_settings() -> None:
    for wrong in ("postgresql://u:secret@host/db?no=such", "postgresql://u:secret@host:x y/db"):
        with pytest.raises(ConfigurationError, match="database_url cannot be read") as raised:
            await open_database(wrong)
        assert "secret" not in str(raised.value)


def with_query(url: str, query: str) -> str:
    """The address with further parameters."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, query)))))

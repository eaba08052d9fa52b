"""`find`: the cheapest read, shared where that helps, and never older than its call."""

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from factbook.storage import Database
from factbook.storage.database_url import open_database
from tests.storage.waiting_locks import is_lock_awaited
from tests.waiting import soon

FIND = "SELECT name, value FROM things WHERE name IN LIST(?)"
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with a hundred things, each with the value 0."""
    database = await open_database(database_url, connections=6)
    await database.write(lambda tx: tx.run("CREATE TABLE things (name TEXT, value BIGINT)"))
    rows = [(f"t{number}", 0) for number in range(100)]
    await database.write(lambda tx: tx.insert("things", ("name", "value"), rows))
    yield database
    await database.close()


@pytest.fixture
async def other(database: Database, database_url: str) -> AsyncIterator[Database]:
    """The same database, opened once more as another process would."""
    other = await open_database(database_url, connections=4)
    yield other
    await other.close()


async def set_value(database: Database, name: str, value: int) -> None:
    """Write one value."""
    sql = "UPDATE things SET value = ? WHERE name = ?"
    await database.write(lambda tx: tx.run(sql, (value, name)))


async def test_many_at_once_each_get_their_own_row(database: Database) -> None:
    names = [f"t{number}" for number in range(120)] * 2
    rows = await asyncio.gather(*(database.find(FIND, name) for name in names))
    assert rows == [(name, 0) if int(name[1:]) < 100 else None for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("small", [False, True])
async def test_a_find_sees_every_commit_made_before_it(
    database: Database, other: Database, small: bool
) -> None:
    stop = False

    async def crowd() -> None:
        while not stop:
            await database.find(FIND, "t1", small=small)
            await asyncio.sleep(0)

    crowds = [asyncio.create_task(crowd()) for _ in range(5)]
    for value in range(1, 60):
        await set_value(database if value % 2 else other, "t1", value)
        database.refresh()
        assert await database.find(FIND, "t1", small=small) == ("t1", value)
    stop = True
    await asyncio.gather(*crowds)


async def test_a_small_row_that_comes_or_goes_is_noticed(
    database: Database, other: Database
) -> None:
    for row in (None, ("new", 1), None):
        if row:
            await other.write(lambda tx: tx.run("INSERT INTO things VALUES ('new', 1)"))
        else:
            await other.write(lambda tx: tx.run("DELETE FROM things WHERE name = 'new'"))
        database.refresh()
        for _ in range(2):
            assert await database.find(FIND, "new", small=True) == row


@ON_POSTGRESQL
async def test_finds_that_wait_together_share_a_query(database: Database) -> None:
    sql = "SELECT name, pg_current_xact_id()::text FROM things WHERE name IN LIST(?)"
    rows = await asyncio.gather(*(database.find(sql, f"t{number}") for number in range(100)))
    assert [row and row[0] for row in rows] == [f"t{number}" for number in range(100)]
    assert len({row[1] for row in rows if row}) <= 2


@ON_POSTGRESQL
async def test_a_find_never_joins_a_query_that_is_under_way(
    database: Database, other: Database, database_url: str
) -> None:
    held = "SELECT name, value FROM things, pg_advisory_xact_lock_shared(7) WHERE name IN LIST(?)"
    with psycopg.connect(database_url) as holder:
        holder.execute("SELECT pg_advisory_xact_lock(7)")
        early = asyncio.create_task(database.find(held, "t1"))
        await soon(lambda: is_lock_awaited(other))
        await set_value(other, "t1", 7)
        assert not early.done()
        late = asyncio.create_task(database.find(held, "t1"))
        await asyncio.sleep(0)
    assert (await early, await late) == (("t1", 0), ("t1", 7))


async def test_one_who_stops_waiting_takes_nobody_along(database: Database) -> None:
    tasks = [asyncio.create_task(database.find(FIND, f"t{number % 3}")) for number in range(9)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert found[1::2] == [(f"t{number % 3}", 0) for number in range(1, 9, 2)]
    assert await database.find(FIND, "t1") == ("t1", 0)


async def test_a_find_that_fails_tells_everyone_and_the_next_one_works(database: Database) -> None:
    await database.write(lambda tx: tx.run("ALTER TABLE things RENAME TO away"))
    found = await asyncio.gather(
        *(database.find(FIND, f"t{number}") for number in range(5)), return_exceptions=True
    )
    assert all("things" in str(error) for error in found)
    await database.write(lambda tx: tx.run("ALTER TABLE away RENAME TO things"))
    assert await database.find(FIND, "t1") == ("t1", 0)

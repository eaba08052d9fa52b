"""What both databases promise alike: reads, transactions, pages of one moment."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from factbook.errors import ConfigurationError, InputError
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database

BAD_ROW = ("a", None)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open database with one table of notes."""
    database = await open_database(database_url, connections=6)
    await database.write(
        lambda tx: tx.run("CREATE TABLE notes (name TEXT PRIMARY KEY, size BIGINT NOT NULL)")
    )
    yield database
    await database.close()


async def fill(database: Database, count: int) -> None:
    """So many notes: n0000 with size 0, and so on."""
    rows = [(f"n{number:04}", number) for number in range(count)]
    await database.write(lambda tx: tx.insert("notes", ("name", "size"), rows))


async def count(database: Database) -> int:
    """How many notes there are."""
    row = await database.one("SELECT count(*) FROM notes")
    assert row is not None
    return int(row[0])


async def test_reads_give_one_row_or_all_or_none(database: Database) -> None:
    await fill(database, 3)
    assert await database.one("SELECT * FROM notes WHERE name = ?", ("n0001",)) == ("n0001", 1)
    assert await database.one("SELECT * FROM notes WHERE name = ?", ("nope",)) is None
    rows = await database.all("SELECT name FROM notes WHERE size > ? ORDER BY name DESC", (0,))
    assert rows == [("n0002",), ("n0001",)]
    assert await database.all("SELECT name FROM notes WHERE size > ?", (9,)) == []


async def test_a_list_is_one_parameter_among_others(database: Database) -> None:
    await fill(database, 5)
    sql = "SELECT size FROM notes WHERE name IN LIST(?) AND size < ? ORDER BY size"
    assert await database.all(sql, (["n0001", "n0004", "x'\"", "n0002"], 4)) == [(1,), (2,)]
    assert await database.all(sql, ([], 4)) == []
    by_size = "SELECT name FROM notes WHERE size IN LIST(?) ORDER BY name"
    assert await database.all(by_size, ([3, 0],)) == [("n0000",), ("n0003",)]
    many = [f"n{number:04}" for number in range(40_000)]
    assert len(await database.all(sql, (many, 99))) == 5


async def test_percent_signs_are_only_text(database: Database) -> None:
    await fill(database, 2)
    assert await database.all("SELECT name FROM notes WHERE name LIKE '%1'") == [("n0001",)]
    row = await database.one("SELECT size % 2 FROM notes WHERE name = ?", ("n0001",))
    assert row == (1,)


async def test_a_write_returns_what_its_function_returns_and_is_seen_at_once(
    database: Database, database_url: str
) -> None:
    other = await open_database(database_url, connections=3)

    def work(tx: Transaction) -> tuple[object, ...]:
        assert tx.run("INSERT INTO notes VALUES (?, ?)", ("a", 1)) == 1
        tx.many("INSERT INTO notes VALUES (?, ?)", [("b", 2), ("c", 3)])
        tx.insert("notes", ("size", "name"), [(4, "d"), (5, "e")])
        tx.insert("notes", ("size", "name"), [])
        assert tx.run("UPDATE notes SET size = size + ? WHERE size < ?", (10, 3)) == 2
        tx.update("notes", ("name", "size"), [("d", 40), ("nope", 1), ("e", 5)])
        assert tx.one("SELECT size FROM notes WHERE name = ?", ("d",)) == (40,)
        tx.update("notes", ("name", "size"), [("d", 4)])
        tx.update("notes", ("name", "size"), [])
        tx.delete("notes", ("name", "size"), [("c", 3), ("d", 99)])
        tx.delete("notes", ("size",), [(5,)])
        tx.delete("notes", ("size",), [])
        assert tx.one("SELECT name FROM notes WHERE name IN LIST(?)", (["d"],)) == ("d",)
        return tuple(tx.all("SELECT name, size FROM notes ORDER BY name"))

    expected = [("a", 11), ("b", 12), ("d", 4)]
    assert await database.write(work) == tuple(expected)
    for reader in (database, other):
        assert await reader.all("SELECT name, size FROM notes ORDER BY name") == expected
    await other.close()


@pytest.mark.parametrize("error", [ValueError, InputError, KeyboardInterrupt])
async def test_a_write_that_raises_leaves_nothing(
    database: Database, error: type[BaseException]
) -> None:
    def work(tx: Transaction) -> None:
        tx.run("INSERT INTO notes VALUES (?, ?)", ("a", 1))
        raise error

    with pytest.raises(error):
        await database.write(work)
    assert await count(database) == 0
    await fill(database, 1)
    assert await count(database) == 1


async def test_a_write_that_the_database_refuses_leaves_nothing(database: Database) -> None:
    def work(tx: Transaction) -> None:
        tx.run("INSERT INTO notes VALUES (?, ?)", ("good", 1))
        tx.run("INSERT INTO notes VALUES (?, ?)", BAD_ROW)

    with pytest.raises(Exception, match=r"(?i)not.null"):
        await database.write(work)
    with pytest.raises(Exception, match="nowhere"):
        await database.write(lambda tx: tx.run("INSERT INTO nowhere VALUES (1)"))
    assert await count(database) == 0


async def test_a_write_goes_on_when_nobody_waits_for_it_any_more(database: Database) -> None:
    task = asyncio.create_task(fill(database, 2))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(60):
        while not (found := await count(database)):  # noqa: ASYNC110 - nothing tells of its end
            await asyncio.sleep(0)
    assert found == 2


async def test_what_a_lock_guards_is_done_by_one_at_a_time(
    database: Database, database_url: str
) -> None:
    other = await open_database(database_url, connections=4)
    await fill(database, 1)

    def increment(tx: Transaction) -> None:
        tx.lock("notes")
        row = tx.one("SELECT size FROM notes")
        assert row is not None
        tx.run("UPDATE notes SET size = ?", (row[0] + 1,))

    await asyncio.gather(*(base.write(increment) for _ in range(20) for base in (database, other)))
    assert await database.one("SELECT size FROM notes") == (40,)
    await other.close()


async def test_pages_are_all_of_the_moment_at_which_they_began(database: Database) -> None:
    await fill(database, 2500)
    sizes: list[int] = []
    names: list[str] = []
    async for rows in database.pages("SELECT name FROM notes WHERE size >= ? ORDER BY name", (0,)):
        if not sizes:
            await database.write(lambda tx: tx.run("DELETE FROM notes WHERE size > 1200"))
            assert await count(database) == 1201
        sizes.append(len(rows))
        names += [row[0] for row in rows]
    assert sizes == [1000, 1000, 500]
    assert names == [f"n{number:04}" for number in range(2500)]
    assert [rows async for rows in database.pages("SELECT 1 FROM notes WHERE size < 0")] == []


async def test_pages_come_in_the_size_that_is_asked_for(database: Database) -> None:
    await fill(database, 5)
    pages = [rows async for rows in database.pages("SELECT size FROM notes ORDER BY size", size=2)]
    assert pages == [[(0,), (1,)], [(2,), (3,)], [(4,)]]


async def test_pages_that_are_left_early_hold_nothing_back(database: Database) -> None:
    await fill(database, 10)
    for _ in range(20):
        pages = database.pages("SELECT size FROM notes ORDER BY size", size=3)
        assert await anext(pages) == [(0,), (1,), (2,)]
        await pages.aclose()  # type: ignore[attr-defined]
    await fill_more(database)
    assert await count(database) == 11


async def fill_more(database: Database) -> None:
    """One more note."""
    await database.write(lambda tx: tx.run("INSERT INTO notes VALUES (?, ?)", ("more", 0)))


async def test_slow_readers_of_pages_leave_room_for_short_reads(database: Database) -> None:
    await fill(database, 10)
    readers = [database.pages("SELECT size FROM notes", size=1) for _ in range(8)]
    first = [asyncio.ensure_future(anext(reader)) for reader in readers]
    async with asyncio.timeout(60):
        await first[0]
        sql = "SELECT name, size FROM notes WHERE name IN LIST(?)"
        assert await database.find(sql, "n0004") == ("n0004", 4)
        assert await count(database) == 10
        for task, reader in zip(first, readers, strict=True):
            await task
            await reader.aclose()  # type: ignore[attr-defined]


async def test_a_text_that_no_database_holds_is_found_nowhere(database: Database) -> None:
    await fill(database, 1)
    find = "SELECT name, size FROM notes WHERE name IN LIST(?)"
    assert await database.find(find, "n0000\0") is None
    by_name = "SELECT * FROM notes WHERE name = ?"
    if database.dialect == "sqlite":
        assert await database.all(by_name, ("\0",)) == []
        return
    for asked in (
        database.all(by_name, ("\0",)),
        database.write(lambda tx: tx.all(by_name, ("\0",))),
    ):
        with pytest.raises(InputError, match="NUL"):
            await asked


async def test_an_address_that_names_no_database_is_refused(subtests: pytest.Subtests) -> None:
    urls = ["", "mysql://user:secret@host/db", "sqlite://", "sqlite:///", "sqlite:///:memory:"]
    for url in urls:
        with subtests.test(url=url):
            with pytest.raises(ConfigurationError, match="database_url") as raised:
                await open_database(url)
            assert "secret" not in str(raised.value)

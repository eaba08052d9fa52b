"""What happens when a database cannot be reached, and when it is back."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from factbook.errors import UnavailableError
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import list_migrations
from tests.storage.outage import cut_connections, unreachable

FIND = "SELECT name, applied_at FROM schema_migrations WHERE name IN LIST(?)"
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@ON_POSTGRESQL
async def test_connections_that_were_cut_are_replaced_and_nobody_notices(
    database: Database, database_url: str
) -> None:
    first = list_migrations()[0]
    for _ in range(2):
        # One connection for reads and one for writes; pools may still be opening others.
        await database.one("SELECT 1")
        await database.write(lambda tx: tx.one("SELECT 1"))
        assert cut_connections(database_url) >= 2
        rows = await asyncio.gather(*(database.find(FIND, first) for _ in range(5)))
        assert all(row and row[0] == first for row in rows)
        assert await database.one("SELECT 1") == (1,)
        await database.check()
        cut_connections(database_url)
        assert await database.write(lambda tx: tx.one("SELECT 2")) == (2,)


@ON_POSTGRESQL
async def test_a_connection_that_is_lost_in_a_transaction_leaves_nothing(
    database: Database, database_url: str
) -> None:
    def work(tx: object) -> None:
        tx.run("INSERT INTO leases VALUES ('a', 'b', 1)")  # type: ignore[attr-defined]
        cut_connections(database_url)
        tx.run("INSERT INTO leases VALUES ('c', 'd', 1)")  # type: ignore[attr-defined]

    with pytest.raises(UnavailableError):
        await database.write(work)
    assert await database.all("SELECT * FROM leases") == []


@pytest.mark.slow
@ON_POSTGRESQL
async def test_a_database_that_is_away_is_unavailable_until_it_is_back(
    database: Database, database_url: str
) -> None:
    with unreachable(database_url):
        found = await asyncio.gather(
            database.find(FIND, "a"),
            database.one("SELECT 1"),
            database.check(),
            database.write(lambda tx: tx.one("SELECT 1")),
            anext(database.pages("SELECT 1")),
            return_exceptions=True,
        )
        assert [type(error) for error in found] == [UnavailableError] * 5
    await database.check()
    assert await database.find(FIND, list_migrations()[0]) is not None
    assert await database.write(lambda tx: tx.one("SELECT 1")) == (1,)


async def test_a_sqlite_file_that_cannot_be_opened_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("this is no database" * 100)
    (tmp_path / "folder.db").mkdir()
    for path in ("file", "file/below.db", "folder.db"):
        with pytest.raises(UnavailableError, match=f"{path} cannot be opened: .+"):
            await open_database(f"sqlite:///{tmp_path / path}")


async def test_a_sqlite_file_is_made_with_the_folders_above_it(tmp_path: Path) -> None:
    database = await open_database(f"sqlite:///{tmp_path}/new/deep/facts.db")
    await database.check()
    await database.close()
    assert (tmp_path / "new/deep/facts.db").is_file()


async def test_other_users_of_the_machine_cannot_read_a_new_sqlite_file(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    database = await open_database(f"sqlite:///{path}")
    await database.write(lambda tx: tx.run("CREATE TABLE notes (text TEXT)"))
    modes = _modes(tmp_path)
    await database.close()
    assert modes == {"facts.db": 0o600, "facts.db-wal": 0o600, "facts.db-shm": 0o600}


def _modes(folder: Path) -> dict[str, int]:
    """Who may do what with each file."""
    return {file.name: file.stat().st_mode & 0o777 for file in folder.iterdir()}


async def test_a_broken_sqlite_file_is_unavailable_in_words_of_our_own(tmp_path: Path) -> None:
    path = tmp_path / "facts.db"
    database = await open_database(f"sqlite:///{path}")
    rows = [("x" * 1000,)] * 500
    await database.write(lambda tx: tx.run("CREATE TABLE notes (text TEXT)"))
    await database.write(lambda tx: tx.insert("notes", ("text",), rows))
    await database.close()
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    database = await open_database(f"sqlite:///{path}")
    with pytest.raises(UnavailableError) as raised:
        await database.all("SELECT * FROM notes")
    assert isinstance(raised.value.__cause__, sqlite3.DatabaseError)
    assert "malformed" not in raised.value.message
    await database.close()

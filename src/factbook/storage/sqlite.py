"""SQLite: reads on the spot, on the event loop's own connection; writes one after another.

A point read takes about 5 µs, less than handing it to a thread would. Write-ahead logging lets
reads go on while a write is under way, in this process or in another.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from factbook.errors import UnavailableError
from factbook.storage import dialects
from factbook.storage.database import Dialect, Moment, Parameters, Row, Transaction
from factbook.storage.searching import LONGEST_SEARCH, in_time
from factbook.storage.sqlite_connections import CACHE, LONG_CACHE, WRITER_CACHE, Readers, connect

T = TypeVar("T")

_MOST_KEPT = 20_000
# Searches work all the time that they take, and more at once would only make all of them slower;
# long reads mostly wait for those who receive them.
_MOST_SEARCHES = 2
_MOST_LONG = 32
# Rows of a long text that are put together at once: what they hold stays in the processor's cache.
_TEXT_ROWS = 100
# Of the codes of failures, those that SQL or its parameters bring about.
_BUGS = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
}


class SQLite:
    """A SQLite file; made when it does not exist."""

    dialect: Dialect = "sqlite"

    def __init__(self, path: Path, *, longest_search: float = LONGEST_SEARCH) -> None:
        self._path = path
        self._longest_search = longest_search
        self._writer: sqlite3.Connection | None = None
        self._reader = connect(path, mapped=True)
        self._finder = self._reader.cursor()
        self._version = 0
        self._kept: dict[tuple[str, str], Row] = {}  # small rows of this version
        self._searches = Readers(path, most=_MOST_SEARCHES, cache=CACHE, mapped=True)
        # What comes by each page once need not keep it, nor map the whole file.
        self._long_reads = Readers(path, most=_MOST_LONG, cache=LONG_CACHE, mapped=False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        row: Row | None = _execute(self._reader, sql, parameters).fetchone()
        return row

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return _execute(self._reader, sql, parameters).fetchall()

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        async with self._searches.one() as connection, in_time(self._longest_search):
            work = asyncio.ensure_future(asyncio.to_thread(_fetch_all, connection, sql, parameters))
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                # The connection goes to somebody else only when this is over.
                connection.interrupt()
                await asyncio.wait([work])
                work.exception()  # is the interruption itself, and looked at
                raise

    def refresh(self) -> None:
        try:
            [version] = self._finder.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            raise _unavailable(error) from error
        if version != self._version:
            self._version = version
            self._kept.clear()

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        if small and (sql, key) in self._kept:
            return self._kept[sql, key]
        try:
            # The one row is fetched to its end, which lets go of the moment that it was read at.
            row: Row | None = self._finder.execute(dialects.sqlite_find(sql), (key,)).fetchone()
        except sqlite3.Error as error:
            raise _unavailable(error) from error
        if small and row is not None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[sql, key] = row
        return row

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        async with self._long_reads.one() as connection:
            with closing(_execute(connection, sql, parameters)) as cursor:
                while rows := cursor.fetchmany(size):
                    yield rows
                    await asyncio.sleep(0)

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async with self._long_reads.one() as connection:
            connection.text_factory = bytes
            try:
                with closing(_execute(connection, sql, parameters)) as cursor:
                    while rows := cursor.fetchmany(_TEXT_ROWS):
                        yield b"".join(chain.from_iterable(rows))
                        await asyncio.sleep(0)
            finally:
                connection.text_factory = str

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[Moment]:
        async with self._long_reads.one() as connection:
            _execute(connection, "BEGIN", ())
            try:
                yield _SQLiteMoment(connection)
            finally:
                connection.execute("COMMIT")

    async def write(self, function: Callable[[Transaction], T]) -> T:
        loop = asyncio.get_running_loop()
        # Shielded: a client that hangs up must not leave a transaction half-way.
        return await asyncio.shield(loop.run_in_executor(self._thread, self._write, function))

    def _write(self, function: Callable[[Transaction], T]) -> T:
        if self._writer is None:
            self._writer = connect(self._path, cache=WRITER_CACHE, durable=True)
        connection = self._writer
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _unavailable(error) from error
        try:
            result = function(_SQLiteTransaction(connection))
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError):
                raise _unavailable(error) from error
            raise
        return result

    async def check(self) -> None:
        # An open file can be read and written after it was deleted, and all of that would be lost.
        if not self._path.exists():
            raise UnavailableError("The database is gone.")
        await self.one("SELECT count(*) FROM sqlite_master")

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._writer is not None:
            self._writer.close()
        self._reader.close()
        self._searches.close()
        self._long_reads.close()


class _SQLiteMoment:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        await asyncio.sleep(0)  # others are answered between two of these
        row = _execute(self._connection, sql, parameters).fetchone()
        return [msgspec.json.decode(text) for text in row]


class _SQLiteTransaction:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        row: Row | None = _execute(self._connection, sql, parameters).fetchone()
        return row

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return _execute(self._connection, sql, parameters).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return _execute(self._connection, sql, parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        places = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        where = " AND ".join(f"{column} = ?" for column in columns)
        self.many(f"DELETE FROM {table} WHERE {where}", rows)

    def lock(self, name: str) -> None:
        """A write transaction of SQLite is alone already."""

    def relax(self) -> None:
        """SQLite decides this for a connection, not for a transaction."""


def _execute(connection: sqlite3.Connection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    text, listed = dialects.sqlite(sql)
    if listed:
        parameters = [_json(value) if isinstance(value, list) else value for value in parameters]
    try:
        return connection.execute(text, parameters)
    except sqlite3.IntegrityError:
        raise
    except sqlite3.Error as error:
        raise _unavailable(error) from error


def _fetch_all(connection: sqlite3.Connection, sql: str, parameters: Parameters) -> list[Row]:
    return _execute(connection, sql, parameters).fetchall()


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def _unavailable(error: Exception) -> Exception:
    """What the database cannot do now is told; what our own SQL does wrong stays a bug."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code & 0xFF in _BUGS:
        return error
    return UnavailableError("The database cannot do that now.")

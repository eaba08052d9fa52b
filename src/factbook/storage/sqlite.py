"""SQLite: reads on the event loop's own connection; writes one after another on a thread.

A point read takes about 5 µs, less than handing it to a thread would. Write-ahead logging lets
reads continue during a write, in this process or in another.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from factbook.storage import dialects
from factbook.storage import sqlite_statements as statements
from factbook.storage.database import (
    Dialect,
    Parameters,
    Reads,
    ReadSnapshot,
    Remembered,
    Row,
    Transaction,
)
from factbook.storage.searching import LONGEST_SEARCH, in_time
from factbook.storage.sqlite_connections import (
    BUSY_SECONDS,
    CACHE,
    LONG_CACHE,
    READ_SECONDS,
    WRITER_CACHE,
    Connection,
    Readers,
    connect,
)
from factbook.storage.sqlite_file import DatabaseFile, SQLiteError

T = TypeVar("T")

_MOST_KEPT = 20_000
# Searches work all the time that they take, and more at once would only make all of them slower;
# long reads mostly wait for those who receive them.
_MOST_SEARCHES = 2
_MOST_LONG = 32
# Rows of a long text that are put together at once: what they hold stays in the processor's cache.
_TEXT_ROWS = 100
# A write that waited while another one waited for the lock in vain, waits for it so much longer.
_LEAST_SECONDS = 0.1


class SQLite:
    """A SQLite file, created if it does not exist."""

    dialect: Dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        longest_search: float = LONGEST_SEARCH,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        """Open the file; raises UnavailableError, with advice as notes, on failure.

        A write waits `busy_seconds` for other processes that write.
        """
        self._file = DatabaseFile(path)
        self.remembered = Remembered()
        self._longest_search = longest_search
        self._busy_seconds = busy_seconds
        self._writer: Connection | None = None
        self._in_vain_until = 0.0  # when a write last gave up to wait for the lock
        self._reader = self._first_connection()
        self._finder = self._reader.cursor()
        self._version = 0
        self._kept: dict[tuple[str, str], Row] = {}  # small rows of this version
        self._searches = Readers(self._file, most=_MOST_SEARCHES, cache=CACHE, mapped=True)
        # What comes by each page once need not keep it, nor map the whole file.
        self._long_reads = Readers(self._file, most=_MOST_LONG, cache=LONG_CACHE, mapped=False)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")

    def _first_connection(self) -> Connection:
        """For reads; what it finds tells whether the file can be read at all."""
        self._file.target.parent.mkdir(parents=True, exist_ok=True)
        # Other users of the machine may not read what needs a permission here.
        with suppress(OSError):
            self._file.target.touch(mode=0o600, exist_ok=False)
        self._file.verify_writable()
        self._file.verify_log()
        connection = connect(self._file, mapped=True, wait=self._busy_seconds, new=True)
        try:
            statements.one(connection, "SELECT count(*) FROM sqlite_master", ())
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * READ_SECONDS)}")
        except BaseException:
            connection.close()
            raise
        self._file.remember()
        return connection

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return statements.one(self._reader, sql, parameters)

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return statements.all_rows(self._reader, sql, parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        async with self._searches.one() as connection, in_time(self._longest_search):
            return await statements.all_rows_apart(connection, sql, parameters)

    def refresh(self) -> None:
        try:
            [version] = self._finder.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            self._file.tell(error)
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
            self._file.tell(error)
        if small and row is not None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[sql, key] = row
        return row

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        async with self._long_reads.one() as connection:
            with closing(statements.execute(connection, sql, parameters)) as cursor:
                while rows := statements.some(connection, cursor, size):
                    yield rows
                    await asyncio.sleep(0)

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async with self._long_reads.one() as connection:
            connection.text_factory = bytes
            try:
                with closing(statements.execute(connection, sql, parameters)) as cursor:
                    while rows := statements.some(connection, cursor, _TEXT_ROWS):
                        yield b"".join(chain.from_iterable(rows))
                        await asyncio.sleep(0)
            finally:
                connection.text_factory = str

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._long_reads.one() as connection:
            statements.execute(connection, "BEGIN", ())
            try:
                yield _SQLiteMoment(connection)
            finally:
                statements.execute(connection, "COMMIT", ())

    async def write(self, function: Callable[[Transaction], T]) -> T:
        loop, now = asyncio.get_running_loop(), time.monotonic()
        work = loop.run_in_executor(self._thread, self._noted_write, function, now)
        # Shielded: a client that hangs up must not leave a transaction half-way.
        return await asyncio.shield(work)

    def _noted_write(self, function: Callable[[Transaction], T], asked_at: float) -> T:
        try:
            return self._write(function, asked_at)
        except SQLiteError as error:
            self._file.note_write(error)
            raise

    def _write(self, function: Callable[[Transaction], T], asked_at: float) -> T:
        self._file.verify()
        if self._writer is None:
            self._writer = connect(self._file, cache=WRITER_CACHE, durable=True)
        connection = self._writer
        self._begin(connection, asked_at)
        changes = connection.total_changes
        try:
            result = function(_SQLiteTransaction(connection))
            # Written elsewhere it would be lost.
            self._file.verify()
            connection.execute("COMMIT")
        except BaseException as error:
            self._roll_back(connection)
            if isinstance(error, sqlite3.Error):
                self._file.tell(error)
            raise
        if connection.total_changes > changes:
            self._file.note_write(None)
        return result

    def _begin(self, connection: Connection, asked_at: float) -> None:
        """Wait for the lock of the file, then begin a transaction."""
        seconds = self._busy_seconds
        if asked_at < self._in_vain_until:
            seconds = max(_LEAST_SECONDS, asked_at + seconds - time.monotonic())
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._in_vain_until = time.monotonic()
            self._file.tell(error)

    def _roll_back(self, connection: Connection) -> None:
        if not connection.in_transaction:
            return  # SQLite has done it
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._writer = None
            connection.close()

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        def work(transaction: Transaction) -> bool:
            if transaction.one(unless) is not None:
                return False
            for statement in statements:
                transaction.run(statement)
            return True

        return await self.write(work)  # whoever writes is alone here, transaction or not

    def reads(self) -> Reads:
        return Reads(
            self._searches.taken + self._long_reads.taken,
            self._searches.waiting + self._long_reads.waiting,
            _MOST_SEARCHES + _MOST_LONG,
        )

    async def check(self) -> None:
        self._file.verify()
        await self.one("SELECT count(*) FROM sqlite_master")

    def trouble(self) -> str | None:
        return self._file.trouble

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._writer is not None:
            self._writer.close()
        self._reader.close()
        self._searches.close()
        self._long_reads.close()


class _SQLiteMoment:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        await asyncio.sleep(0)  # others are answered between two of these
        row = statements.one(self._connection, sql, parameters)
        return [msgspec.json.decode(text) for text in row or ()]


class _SQLiteTransaction:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return statements.one(self._connection, sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return statements.all_rows(self._connection, sql, parameters)

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return statements.execute(self._connection, sql, parameters).rowcount

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

"""SQLite: reads on the event loop's own connection; writes one after another on a thread.

A point read takes about 5 µs, less than handing it to a thread would. Write-ahead logging lets
reads continue during a write, in this process or in another.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TypeVar

from factbook.errors import UnavailableError
from factbook.storage import dialects
from factbook.storage.database import (
    BUSY_SECONDS,
    LONGEST_SEARCH,
    Dialect,
    Parameters,
    Reads,
    ReadSnapshot,
    Remembered,
    Row,
    Transaction,
    in_time,
)
from factbook.storage.sqlite_connection import (
    READ_SECONDS,
    SQLiteConnection,
    SQLiteSnapshot,
    SQLiteTransaction,
    connect,
    keep_open,
)
from factbook.storage.sqlite_file import DatabaseFile, SQLiteError, is_full
from factbook.storage.sqlite_readers import Readers
from factbook.storage.touches import BeforeCommit

T = TypeVar("T")

_MOST_KEPT = 20_000
_WRITER_CACHE = 65536  # KiB of pages
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
        self._before_commit = self.remembered.of(BeforeCommit)
        self._longest_search = longest_search
        self._busy_seconds = busy_seconds
        self._writer: SQLiteConnection | None = None
        self._in_vain_until = 0.0  # when a write last gave up to wait for the lock
        self._reader = self._made()
        self._finder = self._reader.cursor()
        self._version = 0
        self._is_fresh = False  # the version was read in this turn of the event loop
        self._kept: dict[tuple[str, str], Row] = {}  # small rows of this version
        self._searches = Readers.for_searches(self._file)
        self._long_reads = Readers.for_long_reads(self._file)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")

    def _made(self) -> SQLiteConnection:
        """The first connection to the file, which is created if missing."""
        self._file.target.parent.mkdir(parents=True, exist_ok=True)
        # Other users of the machine may not read what needs a permission here.
        with suppress(OSError):
            self._file.target.touch(mode=0o600, exist_ok=False)
        self._file.verify_writable()
        self._file.verify_log()
        return self._first_connection(self._busy_seconds)

    def _first_connection(self, wait: float, *, again: bool = False) -> SQLiteConnection:
        """Connect, read-only if the disk is full; with `again`, read-only after any error."""
        try:
            return self._connected(wait)
        except SQLiteError as error:
            if not (again or is_full(error)):
                raise
            self._file.read_only = True
            with suppress(SQLiteError):
                connection = self._connected(wait)
                self._file.note_write(error)
                return connection
            raise

    def _connected(self, wait: float) -> SQLiteConnection:
        """Connect and read once, to detect a file that cannot be read at all."""
        connection = connect(self._file, mapped=True, wait=wait, new=True)
        try:
            connection.one("SELECT count(*) FROM sqlite_master")
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * READ_SECONDS)}")
        except BaseException:
            connection.close()
            raise
        self._file.remember()
        return connection

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return self._reader.one(sql, parameters)

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self._reader.all(sql, parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        async with self._searches.one() as connection, in_time(self._longest_search):
            return await connection.all_apart(sql, parameters)

    def refresh(self) -> None:
        # What a turn of the loop works on came before it, so one look is as good as one for each.
        if self._is_fresh:
            return
        try:
            [version] = self._finder.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            self._file.tell(error)
        if version != self._version:
            self._version = version
            self._kept.clear()
        self._is_fresh = True
        asyncio.get_running_loop().call_soon(setattr, self, "_is_fresh", False)

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        self._reader.verify()
        if small and (kept := self._kept.get((sql, key))) is not None:
            return kept
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
            with connection.begun(sql, parameters) as cursor:
                while rows := connection.some(cursor, size):
                    yield rows
                    await asyncio.sleep(0)

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async with self._long_reads.one() as connection:
            connection.text_factory = bytes
            try:
                with connection.begun(sql, parameters) as cursor:
                    while rows := connection.some(cursor, _TEXT_ROWS):
                        yield b"".join(chain.from_iterable(rows))
                        await asyncio.sleep(0)
            finally:
                connection.text_factory = str

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._long_reads.one() as connection:
            connection.run("BEGIN")
            try:
                yield SQLiteSnapshot(connection)
            finally:
                if not connection.is_closed:
                    connection.run("COMMIT")

    def _reopen(self) -> None:
        """Reopen a file for writes that was opened on a full disk, once there is room.

        SQLite switches only if the process has no other connection to the file, so searches on
        threads are awaited.
        """
        if not self._file.read_only or self._searches.taken or not self._file.has_room():
            return
        self._file.verify()  # or another file would be made in its place
        self._searches.close_all()
        self._long_reads.close_all()
        self._reader.close()
        self._file.read_only = False
        self._reader = self._first_connection(READ_SECONDS, again=True)
        self._finder = self._reader.cursor()
        self._version = 0
        self._kept.clear()
        if not self._file.read_only:
            self._file.note_write(None)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        self._reopen()
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
        self._file.verify_room()
        if self._writer is None:
            self._writer = connect(self._file, cache=_WRITER_CACHE, durable=True)
        connection = self._writer
        self._begin(connection, asked_at)
        changes = connection.total_changes
        try:
            result = self._before_commit.complete(function, SQLiteTransaction(connection))
            # Written elsewhere it would be lost.
            self._file.verify()
            connection.execute("COMMIT")
            # What is acknowledged has to be where the next process looks for it.
            self._file.verify()
        except BaseException as error:
            if not connection.roll_back():
                self._writer = None
            if isinstance(error, sqlite3.Error):
                self._file.tell(error)
            raise
        if connection.total_changes > changes:
            self._file.note_write(None)
        return result

    def _begin(self, connection: SQLiteConnection, asked_at: float) -> None:
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
            self._searches.most + self._long_reads.most,
        )

    async def check(self) -> None:
        self._reopen()
        self._file.verify()
        await self.one("SELECT count(*) FROM sqlite_master")

    def replica(self) -> None:
        return None

    def trouble(self) -> str | None:
        return self._file.trouble

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._writer is not None:
            self._writer.close()
        with suppress(UnavailableError):
            self._file.verify()
        if self._file.is_divided:
            keep_open(self._reader)
        else:
            self._reader.close()
        self._searches.close()
        self._long_reads.close()

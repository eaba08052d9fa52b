"""Connections to a SQLite file, for reads and for the one writer."""

import asyncio
import ctypes
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import quote

from factbook.errors import UnavailableError
from factbook.storage.sqlite_file import DatabaseFile

# KiB of pages that a connection keeps. With less of them to look through, a long read takes a
# fifth less time.
CACHE = 16384
WRITER_CACHE = 65536
LONG_CACHE = 4096
# Searches work all the time that they take, and more at once would only make all of them slower;
# long reads mostly wait for those who receive them.
MOST_SEARCHES: Final = 2
MOST_LONG: Final = 32
# Reads wait for nothing but a file that another process just puts in order, and all others wait
# with them.
READ_SECONDS: Final = 2.0
# How many of these connections are kept for the next who needs one.
_MOST_IDLE = 4
_WAIT_SECONDS = 10
_REOPENED: Final = "The database was opened for writes again. Try again."
# What reads without room on the disk for the index of the log, which it then has in memory. Another
# process may write meanwhile, and is seen.
_READ_ONLY: Final = "ro&readonly_shm=1"


class SQLiteConnection(sqlite3.Connection):
    """A connection with a reference to its file."""

    file: DatabaseFile
    is_closed = False
    begun: sqlite3.Cursor | None = None  # of a statement whose rows are fetched bit by bit

    def close(self) -> None:
        """Close the connection, even if in use: later statements on it raise UnavailableError."""
        if self.begun is not None and not self.is_closed:
            self.begun.close()  # or SQLite would keep the file open for it
        self.is_closed = True
        super().close()

    def verify(self) -> None:
        """Raise UnavailableError if the connection can no longer read."""
        if self.is_closed:
            raise UnavailableError(_REOPENED)
        self.file.verify_readable()


def connect(
    file: DatabaseFile,
    *,
    cache: int = CACHE,
    mapped: bool = False,
    wait: float = READ_SECONDS,
    durable: bool = False,
    new: bool = False,
) -> SQLiteConnection:
    """Open a connection; if `durable`, a commit is on disk before it returns.

    It waits `wait` seconds for locks. If `new`, a missing file is created. Raises UnavailableError.
    """
    try:
        return _connected(file, cache, mapped, wait, durable, new)
    except sqlite3.Error as error:
        file.tell(error)


def _connected(
    file: DatabaseFile, cache: int, mapped: bool, wait: float, durable: bool, new: bool
) -> SQLiteConnection:
    mode = _READ_ONLY if file.read_only else "rwc" if new else "rw"
    # The threads take turns: one connection is the loop's, the other the writer's.
    connection = sqlite3.connect(
        f"file:{quote(str(file.target))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=wait,
        check_same_thread=False,
        factory=SQLiteConnection,
    )
    connection.file = file
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = {-cache}")
        if mapped:  # which spares a system call for a page outside the cache
            connection.execute("PRAGMA mmap_size = 268435456")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def keep_open(connection: SQLiteConnection) -> None:
    """Keep a connection open for the life of the process, without closing it on exit.

    SQLite makes the last connection checkpoint the log into the database and delete it; a
    connection that has lost the index would omit commits of other processes and delete those.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


class Readers:
    """Connections for reads that run concurrently.

    Each keeps reading its initial snapshot, which the event loop's own connection must not do.
    """

    def __init__(self, file: DatabaseFile, *, most: int, cache: int, mapped: bool) -> None:
        self._file = file
        self._cache = cache
        self._mapped = mapped
        self._free = asyncio.Semaphore(most)
        self.taken = 0
        self.waiting = 0
        self._idle: list[SQLiteConnection] = []
        self._taken: set[SQLiteConnection] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[SQLiteConnection]:
        """An exclusive connection; raises UnavailableError if too many are in use."""
        self.waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise UnavailableError("Too many long answers are in progress.") from error
        finally:
            self.waiting -= 1
        self.taken += 1
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            self._taken.add(connection)
            try:
                yield connection
            finally:
                self._taken.discard(connection)
                self._put_back(connection)
        finally:
            self.taken -= 1
            self._free.release()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def close_all(self) -> None:
        """Close all connections, even those in use: their reads fail with UnavailableError."""
        self.close()
        for connection in self._taken:
            connection.close()

    def _connect(self) -> SQLiteConnection:
        # Another file at the path would answer what this one does not hold.
        self._file.verify()
        return connect(self._file, cache=self._cache, mapped=self._mapped)

    def _put_back(self, connection: SQLiteConnection) -> None:
        if connection.is_closed:
            return
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

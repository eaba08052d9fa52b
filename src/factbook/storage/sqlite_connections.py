"""Connections to a SQLite file, for reads and for the one writer."""

import asyncio
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
# How long a write waits for the write of another process: a push of the largest set takes less.
BUSY_SECONDS: Final = 60.0
# Reads wait for nothing but a file that another process just puts in order, and all others wait
# with them.
READ_SECONDS: Final = 2.0
# How many of these connections are kept for the next who needs one.
_MOST_IDLE = 4
_WAIT_SECONDS = 10


class Connection(sqlite3.Connection):
    """A connection that knows the file it leads to."""

    file: DatabaseFile


def connect(
    file: DatabaseFile,
    *,
    cache: int = CACHE,
    mapped: bool = False,
    wait: float = READ_SECONDS,
    durable: bool = False,
    new: bool = False,
) -> Connection:
    """Open a connection; if `durable`, a commit is on disk before it returns.

    It waits `wait` seconds for locks. If `new`, a missing file is created. Raises UnavailableError.
    """
    try:
        return _connected(file, cache, mapped, wait, durable, new)
    except sqlite3.Error as error:
        file.tell(error)


def _connected(
    file: DatabaseFile, cache: int, mapped: bool, wait: float, durable: bool, new: bool
) -> Connection:
    # The threads take turns: one connection is the loop's, the other the writer's.
    connection = sqlite3.connect(
        f"file:{quote(str(file.target))}?mode={'rwc' if new else 'rw'}",
        uri=True,
        isolation_level=None,
        timeout=wait,
        check_same_thread=False,
        factory=Connection,
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
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[Connection]:
        """An exclusive connection; raises UnavailableError if too many are in use."""
        self.waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise UnavailableError("Too many long answers are under way.") from error
        finally:
            self.waiting -= 1
        self.taken += 1
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self.taken -= 1
            self._free.release()

    def close(self) -> None:
        """Close those that nobody has."""
        for connection in self._idle:
            connection.close()

    def _connect(self) -> Connection:
        # Another file at the path would answer what this one does not hold.
        self._file.verify()
        return connect(self._file, cache=self._cache, mapped=self._mapped)

    def _put_back(self, connection: Connection) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

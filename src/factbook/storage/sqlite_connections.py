"""Connections to a SQLite file, for reads and for the one writer."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from factbook.errors import UnavailableError

# KiB of pages that a connection keeps. With less of them to look through, a long read takes a
# fifth less time.
CACHE = 16384
WRITER_CACHE = 65536
LONG_CACHE = 4096
# How long a write waits for the write of another process: a push of the largest set takes less.
_BUSY_SECONDS = 120
# How many of these connections are kept for the next who needs one.
_MOST_IDLE = 4
_WAIT_SECONDS = 10


def connect(
    path: Path, *, cache: int = CACHE, mapped: bool = False, durable: bool = False
) -> sqlite3.Connection:
    """A connection; when `durable`, a commit is on the disk before it returns."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # The threads take turns: one connection is the loop's, the other the writer's.
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = {-cache}")
        if mapped:  # which spares a system call for a page outside the cache
            connection.execute("PRAGMA mmap_size = 268435456")
    except (sqlite3.Error, OSError) as error:
        raise UnavailableError("The database cannot be opened.") from error
    return connection


class Readers:
    """Connections for reads that go on while others begin.

    Each keeps reading the moment at which it began, which the loop's own must not do.
    """

    def __init__(self, path: Path, *, most: int, cache: int, mapped: bool) -> None:
        self._path = path
        self._cache = cache
        self._mapped = mapped
        self._free = asyncio.Semaphore(most)
        self._idle: list[sqlite3.Connection] = []

    @asynccontextmanager
    async def one(self) -> AsyncIterator[sqlite3.Connection]:
        """A connection of one's own; raises UnavailableError when too many are taken."""
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise UnavailableError("Too many long answers are under way.") from error
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    def close(self) -> None:
        """Close those that nobody has."""
        for connection in self._idle:
            connection.close()

    def _connect(self) -> sqlite3.Connection:
        return connect(self._path, cache=self._cache, mapped=self._mapped)

    def _put_back(self, connection: sqlite3.Connection) -> None:
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

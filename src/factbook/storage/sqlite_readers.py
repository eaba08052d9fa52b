"""Pool of connections to a SQLite file, for reads that run at the same time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, Self

from factbook.errors import UnavailableError
from factbook.storage.sqlite_connection import CACHE, SQLiteConnection, connect
from factbook.storage.sqlite_file import DatabaseFile

# Searches work all the time that they take, and more at once would only make all of them slower;
# long reads mostly wait for those who receive them.
_MOST_SEARCHES: Final = 2
_MOST_LONG: Final = 32
# KiB of pages: with less of them to look through, a long read takes a fifth less time.
_LONG_CACHE: Final = 4096
# How many of these connections are kept for the next who needs one.
_MOST_IDLE = 4
_WAIT_SECONDS = 10


class Readers:
    """Connections for reads that run concurrently.

    Each keeps reading its initial snapshot, which the event loop's own connection must not do.
    """

    def __init__(self, file: DatabaseFile, most: int, *, cache: int, mapped: bool) -> None:
        self.most = most
        self._file = file
        self._cache = cache
        self._mapped = mapped
        self._free = asyncio.Semaphore(most)
        self.taken = 0
        self.waiting = 0
        self._idle: list[SQLiteConnection] = []
        self._taken: set[SQLiteConnection] = set()

    @classmethod
    def for_searches(cls, file: DatabaseFile) -> Self:
        """The connections for searches."""
        return cls(file, _MOST_SEARCHES, cache=CACHE, mapped=True)

    @classmethod
    def for_long_reads(cls, file: DatabaseFile) -> Self:
        """Connections for long reads; what comes by once is not kept, nor is the file mapped."""
        return cls(file, _MOST_LONG, cache=_LONG_CACHE, mapped=False)

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

"""PostgreSQL: reads from a pool on the event loop, writes on threads.

Point reads that wait at the same moment share one query. A read never joins a query that has
already started, so it sees every commit made before it was requested.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    suppress,
)
from functools import partial
from itertools import chain
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg import AsyncServerCursor

from factbook import shutdown
from factbook.errors import UnavailableError
from factbook.storage import dialects
from factbook.storage.database import (
    LONGEST_LAG,
    LONGEST_SEARCH,
    ChecksPort,
    Dialect,
    Parameters,
    Reads,
    ReadSnapshot,
    Remembered,
    ReplicaUse,
    Row,
    Transaction,
    in_time,
)
from factbook.storage.point_reads import Finder
from factbook.storage.postgresql_commits import LONGEST_COMMIT
from factbook.storage.postgresql_connections import (
    SOON_SECONDS,
    WAIT_SECONDS,
    Pools,
    ReadConnection,
)
from factbook.storage.postgresql_errors import is_lost
from factbook.storage.postgresql_replica import Replica, ReplicaReadError
from factbook.storage.postgresql_writer import PostgreSQLWriter

T = TypeVar("T")

# Begins a read on a connection.
Begin = Callable[[ReadConnection], AbstractAsyncContextManager[T]]
_Snapshot = tuple[ReadConnection, list[Row]]

# A server that keeps its connections and says nothing is as good as gone.
_SILENT_SECONDS: Final = 60.0
_SILENT: Final = "The database is silent. Try again."


class PostgreSQL:
    """A PostgreSQL database."""

    dialect: Dialect = "postgresql"

    def __init__(
        self, pools: Pools, longest_search: float, longest_commit: float, longest_lag: float
    ) -> None:
        self.remembered = Remembered()
        self._pools = pools
        self._reads = pools.reads
        self._replica: Replica | None = None
        if pools.replica is not None:
            self._replica = Replica(*pools.replica, self._primary, longest_lag)
        self._longest_search = longest_search
        self._writer = PostgreSQLWriter(pools, longest_commit, self.remembered.of(ChecksPort))
        # However slowly clients take long answers, a connection is left for short ones.
        self._long_reads = asyncio.Semaphore(pools.reads.max_size - 1)
        self._finders: dict[str, Finder] = {}

    @classmethod
    async def open(
        cls,
        url: str,
        connections: int,
        *,
        longest_search: float = LONGEST_SEARCH,
        longest_commit: float = LONGEST_COMMIT,
        replica_url: str | None = None,
        longest_lag: float = LONGEST_LAG,
    ) -> Self:
        """Connect; raises UnavailableError with the reason if the server refuses."""
        pools = Pools(url, connections, replica_url)
        await pools.open()
        opened = cls(pools, longest_search, longest_commit, longest_lag)
        if opened._replica is not None:
            await opened._replica.open()
        return opened

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return await self._read(dialects.postgresql(sql), parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        # The driver tells the server to stop when what waits for the answer is cancelled.
        async with in_time(self._longest_search):
            with suppress(ReplicaReadError):
                async with self._current_replica() as connection:
                    if connection is not None:
                        return await _rows(connection, dialects.postgresql(sql), parameters)
            return await self.all(sql, parameters)

    async def _read(
        self, text: str, parameters: Parameters, wait: float | None = None
    ) -> list[Row]:
        with self._pools.telling():
            try:
                return await self._fetch(text, parameters, wait)
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
            # After a restart of the server every connection in the pool is dead.
            await self._pools.look()
            return await self._fetch(text, parameters, SOON_SECONDS)

    async def _fetch(self, text: str, parameters: Parameters, wait: float | None) -> list[Row]:
        # Nothing is begun on it, and the context of a pool's connection would commit each read.
        connection = await self._reads.getconn(wait)
        try:
            return await _rows(connection, text, parameters)
        finally:
            await self._reads.putconn(connection)

    async def _primary(self, text: str, parameters: Parameters) -> list[Row]:
        return await self._read(text, parameters, SOON_SECONDS)

    def refresh(self) -> None:
        """Do nothing: no rows are cached."""

    def reads(self) -> Reads:
        found = self._reads.get_stats()
        taken = found["pool_size"] - found["pool_available"]
        return Reads(taken, found["requests_waiting"], self._reads.max_size)

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        if "\0" in key:  # which no text of PostgreSQL holds
            return None
        finder = self._finders.get(sql)
        if finder is None:
            finder = self._finders[sql] = Finder(self.all, sql)
        return await finder.find(key)

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        begin = partial(_cursor, text=dialects.postgresql(sql), parameters=parameters, size=size)
        with self._pools.telling():
            async with AsyncExitStack() as stack:
                cursor, rows = await self._long_read(stack, begin)
                while len(rows) == size:
                    yield rows
                    rows = await _answered(cursor.fetchmany(size))
        # Whoever takes the last ones slowly holds nothing, and nothing can go wrong any more.
        if rows:
            yield rows

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async for rows in self.pages(sql, parameters):
            yield "".join(chain.from_iterable(rows)).encode()

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        with self._pools.telling():
            async with AsyncExitStack() as stack:
                yield _PostgreSQLSnapshot(partial(self._long_read, stack))

    async def _long_read(self, stack: AsyncExitStack, begin: Begin[T]) -> T:
        """Begin a read that lasts as long as the stack, on the replica if that is current.

        What the replica ends before it has begun is begun again on the primary.
        """
        with suppress(ReplicaReadError):
            async with AsyncExitStack() as attempt:
                connection = await attempt.enter_async_context(self._current_replica())
                if connection is not None:
                    begun = await attempt.enter_async_context(begin(connection))
                    await stack.enter_async_context(attempt.pop_all())
                    return begun
        await stack.enter_async_context(self._turn())
        connection = await stack.enter_async_context(self._reads.connection())
        return await stack.enter_async_context(begin(connection))

    @asynccontextmanager
    async def _current_replica(self) -> AsyncIterator[ReadConnection | None]:
        if self._replica is None:
            yield None
            return
        async with self._replica.connection() as connection:
            yield connection

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait until another long read may use a connection to the primary."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                await self._long_reads.acquire()
        except TimeoutError as error:
            raise UnavailableError from error
        try:
            yield
        finally:
            self._long_reads.release()

    async def write(self, function: Callable[[Transaction], T]) -> T:
        return await self._writer.write(function)

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        return await self._writer.apart(lock, statements, unless)

    async def check(self) -> None:
        await _answered(self._read("SELECT 1", (), SOON_SECONDS), 2 * SOON_SECONDS)

    def trouble(self) -> str | None:
        return None

    def replica(self) -> ReplicaUse | None:
        return None if self._replica is None else self._replica.use

    async def close(self) -> None:
        written = asyncio.ensure_future(self._writer.close())
        await asyncio.wait({written}, timeout=shutdown.RELEASE_SECONDS)
        if not written.done():  # those that wait for a connection while the server is away
            await self._pools.refuse_writes()
        await written
        if self._replica is not None:
            await self._replica.close()
        await self._pools.close()


async def _rows(connection: ReadConnection, text: str, parameters: Parameters) -> list[Row]:
    cursor = await _answered(connection.execute(text, parameters))
    return await cursor.fetchall()


async def _answered(answer: Awaitable[T], seconds: float = _SILENT_SECONDS) -> T:
    """Await the response; raises UnavailableError after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise UnavailableError(_SILENT) from error


@asynccontextmanager
async def _cursor(
    connection: ReadConnection, text: str, parameters: Parameters, size: int
) -> AsyncIterator[tuple[AsyncServerCursor[Row], list[Row]]]:
    """A cursor over the rows of a statement, and the first of them."""
    async with connection.transaction(), connection.cursor("pages") as cursor:
        await _answered(cursor.execute(text, parameters))
        yield cursor, await _answered(cursor.fetchmany(size))


@asynccontextmanager
async def _snapshot(
    connection: ReadConnection, text: str, parameters: Parameters
) -> AsyncIterator[tuple[ReadConnection, list[Row]]]:
    """A connection that shows one moment, and the rows of its first statement."""
    await _answered(connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    try:
        yield connection, await _rows(connection, text, parameters)
    finally:
        await connection.execute("COMMIT")


class _PostgreSQLSnapshot:
    """A snapshot that is taken with the first statement."""

    def __init__(self, open: Callable[[Begin[_Snapshot]], Awaitable[_Snapshot]]) -> None:
        self._open = open
        self._connection: ReadConnection | None = None

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        text = dialects.postgresql(sql)
        if self._connection is None:
            begin = partial(_snapshot, text=text, parameters=parameters)
            self._connection, rows = await self._open(begin)
        else:
            rows = await _rows(self._connection, text, parameters)
        return [gathered or [] for row in rows for gathered in row]

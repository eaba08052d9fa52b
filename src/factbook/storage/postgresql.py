"""PostgreSQL: a pool for reads on the event loop, a pool and threads for writes.

Point reads that wait at the same moment share one query: a read never joins a query that has
already started, so each sees every commit made before it was asked for.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from itertools import chain
from typing import Any, Self, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from factbook.errors import InputError, UnavailableError
from factbook.storage import dialects
from factbook.storage.database import Dialect, Moment, Parameters, Row, Transaction
from factbook.storage.finding import Finder
from factbook.storage.searching import LONGEST_SEARCH, in_time

T = TypeVar("T")

_WAIT_SECONDS = 10.0
_SOON_SECONDS = 2.0
# After that a pool tries again when somebody asks, and not ever more rarely by itself.
_RETRY_SECONDS = 4.0
_WRITERS = 4
_LOCK_SPACE = 0x0FAC

# The server or the connection is gone, or no connection came free in time (PoolTimeout).
_LOST = (psycopg.OperationalError, psycopg.InterfaceError)


class PostgreSQL:
    """A PostgreSQL database."""

    dialect: Dialect = "postgresql"

    def __init__(
        self, reads: AsyncConnectionPool, writes: ConnectionPool, longest_search: float
    ) -> None:
        self._reads = reads
        self._longest_search = longest_search
        self._writes = writes
        self._threads = ThreadPoolExecutor(_WRITERS, thread_name_prefix="postgresql-writer")
        # However slowly clients take long answers, a connection is left for short ones.
        self._long_reads = asyncio.Semaphore(reads.max_size - 1)
        self._finders: dict[str, Finder] = {}

    @classmethod
    async def open(
        cls, url: str, connections: int, *, longest_search: float = LONGEST_SEARCH
    ) -> Self:
        """Connect; raise UnavailableError when the server does not answer."""
        options = {"autocommit": True, "prepare_threshold": 1}
        readers = max(2, connections - _WRITERS)
        reads = AsyncConnectionPool(
            url,
            min_size=2,
            max_size=readers,
            kwargs=options,
            open=False,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_RETRY_SECONDS,
        )
        writes = ConnectionPool(
            url,
            min_size=1,
            max_size=_WRITERS,
            kwargs=options,
            open=False,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_RETRY_SECONDS,
            check=ConnectionPool.check_connection,
        )
        try:
            await reads.open(wait=True, timeout=_WAIT_SECONDS)
            await asyncio.to_thread(writes.open, wait=True, timeout=_WAIT_SECONDS)
        except (psycopg.Error, PoolTimeout) as error:
            await reads.close()
            raise UnavailableError("PostgreSQL does not answer.") from error
        return cls(reads, writes, longest_search)

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        rows = await self.all(sql, parameters)
        return rows[0] if rows else None

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        text = dialects.postgresql(sql)
        try:
            return await self._fetch(text, parameters)
        except PoolTimeout as error:
            raise UnavailableError from error
        except _LOST:
            return await self._fetch_again(text, parameters)
        except psycopg.DataError as error:
            raise _data_error(error) from error

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        # The driver tells the server to stop when what waits for the answer is cancelled.
        async with in_time(self._longest_search):
            return await self.all(sql, parameters)

    async def _fetch(
        self, text: str, parameters: Parameters, wait: float | None = None
    ) -> list[Row]:
        async with self._reads.connection(wait) as connection:
            cursor = await connection.execute(text, parameters)
            return await cursor.fetchall()

    async def _fetch_again(self, text: str, parameters: Parameters) -> list[Row]:
        """Ask once more: after a restart of the server every connection in the pool is dead."""
        try:
            await self._reads.check()
            return await self._fetch(text, parameters, _SOON_SECONDS)
        except _LOST as error:
            raise UnavailableError from error

    def refresh(self) -> None:
        """Nothing to do: no row is kept."""

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
        try:
            async with (
                self._long_read(),
                self._reads.connection() as connection,
                connection.transaction(),
                connection.cursor("pages") as cursor,
            ):
                await cursor.execute(dialects.postgresql(sql), parameters)
                while rows := await cursor.fetchmany(size):
                    yield rows
        except _LOST as error:
            raise UnavailableError from error
        except psycopg.DataError as error:
            raise _data_error(error) from error

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async for rows in self.pages(sql, parameters):
            yield "".join(chain.from_iterable(rows)).encode()

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[Moment]:
        try:
            async with self._long_read(), self._reads.connection() as connection:
                await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                try:
                    yield _PostgreSQLMoment(connection)
                finally:
                    await connection.execute("COMMIT")
        except _LOST as error:
            raise UnavailableError from error

    @asynccontextmanager
    async def _long_read(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._long_reads.acquire()
        except TimeoutError as error:
            raise UnavailableError from error
        try:
            yield
        finally:
            self._long_reads.release()

    async def write(self, function: Callable[[Transaction], T]) -> T:
        loop = asyncio.get_running_loop()
        # Shielded: a client that hangs up must not leave a transaction half-way.
        return await asyncio.shield(loop.run_in_executor(self._threads, self._write, function))

    def _write(self, function: Callable[[Transaction], T]) -> T:
        try:
            with self._writes.connection() as connection, connection.transaction():
                return function(_PostgreSQLTransaction(connection))
        except _LOST as error:
            raise UnavailableError from error
        except psycopg.DataError as error:
            raise _data_error(error) from error

    async def check(self) -> None:
        try:
            await self._fetch("SELECT 1", (), _SOON_SECONDS)
        except _LOST:
            await self._fetch_again("SELECT 1", ())

    async def close(self) -> None:
        await asyncio.to_thread(self._threads.shutdown)
        await self._reads.close()
        await asyncio.to_thread(self._writes.close)


class _PostgreSQLMoment:
    def __init__(self, connection: psycopg.AsyncConnection[Row]) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        cursor = await self._connection.execute(dialects.postgresql(sql), parameters)
        row = await cursor.fetchone()
        return [gathered or [] for gathered in row or ()]


class _PostgreSQLTransaction:
    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return self._connection.execute(dialects.postgresql(sql), parameters).fetchone()

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self._connection.execute(dialects.postgresql(sql), parameters).fetchall()

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.execute(dialects.postgresql(sql), parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(dialects.postgresql(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        if not rows:
            return
        types = ["bigint[]" if isinstance(value, int) else "text[]" for value in rows[0]]
        arrays = ", ".join(f"%s::{type_}" for type_ in types)
        gone = ", ".join(f"gone.{column}" for column in columns)
        kept = ", ".join(f"{table}.{column}" for column in columns)
        self._connection.execute(
            f"DELETE FROM {table} USING unnest({arrays}) AS gone ({', '.join(columns)}) "
            f"WHERE ({kept}) = ({gone})",
            [list(column) for column in zip(*rows, strict=True)],
        )

    def lock(self, name: str) -> None:
        key = zlib.crc32(name.encode()) & 0x7FFFFFFF
        self._connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", (_LOCK_SPACE, key))

    def relax(self) -> None:
        self._connection.execute("SET LOCAL synchronous_commit TO off")


def _data_error(error: psycopg.DataError) -> Exception:
    """What a client sent that no text can hold is told; what our own SQL does wrong is a bug."""
    if error.sqlstate is None and "NUL" in str(error):
        return InputError("A text with the character NUL cannot be stored or found.")
    return error

"""PostgreSQL: reads from a pool on the event loop, writes in transactions on threads.

Point reads that wait at the same moment share one query. A read never joins a query that has
already started, so it sees every commit made before it was requested. Writes that conflict are
retried.
"""

import asyncio
import hashlib
import random
import time
import zlib
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from itertools import chain
from typing import Any, Final, Self, TypeVar

import psycopg
import structlog
from psycopg import AsyncServerCursor, errors

from factbook import shutdown
from factbook.errors import UnavailableError
from factbook.storage.database import (
    LONGEST_LAG,
    LONGEST_SEARCH,
    ChecksPort,
    Dialect,
    EvaluateChecks,
    Parameters,
    Reads,
    ReadSnapshot,
    Remembered,
    ReplicaUse,
    RestartError,
    Row,
    Touching,
    Transaction,
    limit_time,
    translate_to_postgresql,
)
from factbook.storage.partitions import LOCK_TIMEOUT, PAUSE_SECONDS
from factbook.storage.postgresql_connections import (
    AGAIN,
    LONGEST_COMMIT,
    SOON_SECONDS,
    WAIT_SECONDS,
    WRITERS,
    Commits,
    PendingCommit,
    Pools,
    ReadConnection,
    is_connection_lost,
)
from factbook.storage.postgresql_replica import Replica, ReplicaReadError

Fetch = Callable[[str, Parameters], Awaitable[list[Row]]]


class Finder:
    """Collects the keys requested while a query runs, and reads them with the next one."""

    def __init__(self, fetch: Fetch, sql: str) -> None:
        self._fetch = fetch
        self._sql = sql
        self._waiting: dict[str, list[asyncio.Future[Row | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, key: str) -> Row | None:
        """The row whose first column is the key."""
        future: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, []).append(future)
        if self._task is None:
            self._task = asyncio.create_task(self._answer())
        return await future

    async def _answer(self) -> None:
        try:
            while self._waiting:
                asked, self._waiting = self._waiting, {}
                await self._query(asked)
        finally:
            self._task = None

    async def _query(self, asked: dict[str, list[asyncio.Future[Row | None]]]) -> None:
        try:
            rows = await self._fetch(self._sql, (list(asked),))
        except BaseException as error:
            for future in (future for futures in asked.values() for future in futures):
                if not future.done():
                    future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        found = {row[0]: row for row in rows}
        for key, futures in asked.items():
            for future in futures:
                if not future.done():
                    future.set_result(found.get(key))


_LOCK_SPACE: Final = 0x0FAC
_PIECE: Final = 10_000  # rows per fetch
# How long `lock_patiently` tries.
_PATIENCE_SECONDS: Final = 120.0

Spare = Callable[[], AbstractContextManager[psycopg.Connection[Row]]]


class PostgreSQLTransaction(Touching):
    """The current transaction of a write connection; `spare` lends another connection."""

    is_alone = False

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        spare: Spare,
        evaluation: EvaluateChecks | None = None,
    ) -> None:
        super().__init__(evaluation)
        self._connection = connection
        self._spare = spare

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return self._connection.execute(translate_to_postgresql(sql), parameters).fetchone()

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        cursor = self._connection.execute(translate_to_postgresql(sql), parameters)
        rows: list[Row] = []
        # Other threads can run between two driver calls, but not while the driver builds rows.
        while piece := cursor.fetchmany(_PIECE):
            rows += piece
        return rows

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.execute(translate_to_postgresql(sql), parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(translate_to_postgresql(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        key, *others = columns
        values = ", ".join(f"{column} = new.{column}" for column in others)
        for start in range(0, len(rows), _PIECE):
            given = [list(column) for column in zip(*rows[start : start + _PIECE], strict=True)]
            arrays = ", ".join(map(_render_array, given))
            self._connection.execute(
                f"UPDATE {table} SET {values} FROM unnest({arrays}) AS new ({', '.join(columns)}) "
                f"WHERE {table}.{key} = new.{key}",
                given,
            )

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

    def lock(self, name: str, *, shared: bool = False) -> None:
        mode = "_shared" if shared else ""
        self._connection.execute(
            f"SELECT pg_advisory_xact_lock{mode}(%s, %s)", compute_lock_key(name)
        )

    def lock_patiently(self, name: str) -> None:
        # One at a time: several concurrent attempts would block other transactions continuously.
        self.lock(f"{name} alone")
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                with self._connection.transaction():
                    self._connection.execute(f"SET LOCAL {LOCK_TIMEOUT}")
                    self.lock(name)
                    self._connection.execute("SET LOCAL lock_timeout TO DEFAULT")
                return
            except errors.LockNotAvailable:
                if time.monotonic() > end:
                    raise
            time.sleep(PAUSE_SECONDS)

    def lock_each(self, names: Mapping[str, bool]) -> None:
        if names:
            self._connection.execute(_LOCK_EACH, _compute_lock_keys(names))

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        rows = self._connection.execute(_TRY_LOCK_EACH, _compute_lock_keys(names)).fetchall()
        return all(taken for (taken,) in rows)

    def outwait(self, names: Mapping[str, bool]) -> None:
        # Rolling back to a savepoint releases the locks taken since.
        with self._connection.transaction(force_rollback=True):
            self.lock_each(names)

    @contextmanager
    def aside(self) -> Iterator[Transaction]:
        with self._spare() as connection, connection.transaction():
            aside = PostgreSQLTransaction(connection, self._spare)
            # Committing it takes no lock that this transaction, on the same thread, may hold.
            aside.touched = self.touched
            yield aside

    def relax(self) -> None:
        self._connection.execute("SET LOCAL synchronous_commit TO off")


def _render_array(values: Iterable[object]) -> str:
    """The placeholder for an array of values, some of which may be missing."""
    known = next((value for value in values if value is not None), 0)
    # Bytes sent as text would be escaped and twice as long.
    return {int: "%s::bigint[]", bytes: "%b::bytea[]"}.get(type(known), "%s::text[]")


def compute_lock_key(name: str) -> tuple[int, int]:
    """The key of the advisory lock with this name, in this product's key space."""
    return _LOCK_SPACE, zlib.crc32(name.encode()) & 0x7FFFFFFF


def _compute_lock_keys(names: Mapping[str, bool]) -> tuple[list[int], list[bool]]:
    """Keys in ascending order, and whether each is shared.

    64-bit keys are separate from keys of two numbers, and practically never collide.
    """
    keys: dict[int, bool] = {}
    for name, shared in names.items():
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        keys[key] = keys.get(key, True) and shared
    found = sorted(keys.items())
    return [key for key, _ in found], [shared for _, shared in found]


# Rows are produced, and functions called, in the order of the arrays.
_LOCK_EACH: Final = """
SELECT CASE WHEN shared THEN pg_advisory_xact_lock_shared(key)::text
    ELSE pg_advisory_xact_lock(key)::text END
FROM unnest(%s::bigint[], %s::boolean[]) AS wanted (key, shared)
"""

_TRY_LOCK_EACH: Final = """
SELECT CASE WHEN shared THEN pg_try_advisory_xact_lock_shared(key)
    ELSE pg_try_advisory_xact_lock(key) END
FROM unnest(%s::bigint[], %s::boolean[]) AS wanted (key, shared)
"""


log = structlog.get_logger("factbook.storage")

T = TypeVar("T")

_LEAST_WAIT: Final = 0.5
# Maximum seconds before each retry of a write that conflicted with another.
_PAUSES: Final = (0.1, 0.3, 1.0)


class PostgreSQLWriter:
    """Writer threads, each using its own connection during a write."""

    def __init__(self, pools: Pools, longest_commit: float, checks: ChecksPort) -> None:
        self._pools = pools
        self._checks = checks
        self._commits = Commits(longest_commit)
        self._threads = ThreadPoolExecutor(WRITERS, thread_name_prefix="postgresql-writer")

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """Run a function in a transaction and return its result; see `Database.write`."""
        loop, commit = asyncio.get_running_loop(), self._commits.new()
        work = loop.run_in_executor(self._threads, self._write, function, time.monotonic(), commit)
        return await self._commits.wait(work, commit)

    def _write(
        self, function: Callable[[Transaction], T], asked_at: float, commit: PendingCommit
    ) -> T:
        """Run the function, and retry it if its transaction conflicts with another."""
        commit.start()
        with self._pools.telling():
            for pause in _PAUSES:
                with suppress(*AGAIN):
                    return self._restarted(function, asked_at, commit)
                log.info("write.again")
                # A random pause keeps the same writes from conflicting again.
                time.sleep(random.uniform(0, pause))  # noqa: S311 - nothing secret
            return self._restarted(function, asked_at, commit)

    def _restarted(
        self, function: Callable[[Transaction], T], asked_at: float, commit: PendingCommit
    ) -> T:
        """Run the function, again after each RestartError."""
        while True:
            with suppress(RestartError):
                return self._transact(function, asked_at, commit)
            log.info("write.restarted")

    def _transact(
        self, function: Callable[[Transaction], T], asked_at: float, commit: PendingCommit
    ) -> T:
        # A write that already waited for a thread waits less for a connection.
        wait = max(_LEAST_WAIT, asked_at + WAIT_SECONDS - time.monotonic())
        with self._pools.writing(wait) as connection:
            try:
                with connection.transaction():
                    transaction = PostgreSQLTransaction(
                        connection, self._pools.spare.connection, self._checks.evaluation
                    )
                    result = function(transaction)
                    transaction.verify_evaluated()
                    commit.begin(connection)
            except errors.ReadOnlySqlTransaction:
                # If the URL names several hosts, new connections find the primary.
                self._pools.writes.drain()
                self._pools.spare.drain()
                raise
            finally:
                commit.end()
            connection.verify_confirmed()
        return result

    async def apart(self, lock: str, statements: Sequence[str], unless: str) -> bool:
        """Run statements outside a common transaction; see `Database.apart`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._apart, lock, statements, unless)

    def _apart(self, lock: str, statements: Sequence[str], unless: str) -> bool:
        with self._pools.telling(), self._pools.writing() as connection:
            key = compute_lock_key(lock)
            if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone() != (True,):
                return False
            try:
                if connection.execute(unless.encode()).fetchone() is not None:
                    return False
                # Creating an index concurrently waits for all older transactions.
                for statement in ("SET lock_timeout = 0", *statements):
                    connection.execute(statement.encode())
            finally:
                connection.close()  # which releases the lock and resets the settings
        return True

    async def close(self) -> None:
        """Return when every write is over."""
        await self._commits.end(self._threads)


# Begins a read on a connection.
Begin = Callable[[ReadConnection], AbstractAsyncContextManager[T]]
_Snapshot = tuple[ReadConnection, list[Row]]

# A server that keeps connections open but doesn't answer is treated as down.
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
        # Even if clients receive long responses slowly, one connection is left for short reads.
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
        return await self._read(translate_to_postgresql(sql), parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        # If the waiting task is cancelled, the driver cancels the statement on the server.
        async with limit_time(self._longest_search):
            with suppress(ReplicaReadError):
                async with self._current_replica() as connection:
                    if connection is not None:
                        return await _fetch_rows(
                            connection, translate_to_postgresql(sql), parameters
                        )
            return await self.all(sql, parameters)

    async def _read(
        self, text: str, parameters: Parameters, wait: float | None = None
    ) -> list[Row]:
        with self._pools.telling():
            try:
                return await self._fetch(text, parameters, wait)
            except psycopg.Error as error:
                if not is_connection_lost(error):
                    raise
            # After a server restart, every connection in the pool is dead.
            await self._pools.look()
            return await self._fetch(text, parameters, SOON_SECONDS)

    async def _fetch(self, text: str, parameters: Parameters, wait: float | None) -> list[Row]:
        # No transaction is open here, and `pool.connection()` would commit after each read.
        connection = await self._reads.getconn(wait)
        try:
            return await _fetch_rows(connection, text, parameters)
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
        if "\0" in key:  # PostgreSQL's text cannot contain NUL
            return None
        finder = self._finders.get(sql)
        if finder is None:
            finder = self._finders[sql] = Finder(self.all, sql)
        return await finder.find(key)

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        begin = partial(
            _open_cursor, text=translate_to_postgresql(sql), parameters=parameters, size=size
        )
        with self._pools.telling():
            async with AsyncExitStack() as stack:
                cursor, rows = await self._long_read(stack, begin)
                while len(rows) == size:
                    yield rows
                    rows = await _await_answer(cursor.fetchmany(size))
        # The connection is already released, so a slow consumer of the last rows blocks nothing.
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
        """Begin a read that lasts as long as the stack, on the replica if it is current.

        If the replica cancels the read while it begins, begin it again on the primary.
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
        await _await_answer(self._read("SELECT 1", (), SOON_SECONDS), 2 * SOON_SECONDS)

    def trouble(self) -> str | None:
        return None

    def replica(self) -> ReplicaUse | None:
        return None if self._replica is None else self._replica.use

    async def close(self) -> None:
        written = asyncio.ensure_future(self._writer.close())
        await asyncio.wait({written}, timeout=shutdown.RELEASE_SECONDS)
        if not written.done():  # some are waiting for a connection while the server is down
            await self._pools.refuse_writes()
        await written
        if self._replica is not None:
            await self._replica.close()
        await self._pools.close()


async def _fetch_rows(connection: ReadConnection, text: str, parameters: Parameters) -> list[Row]:
    cursor = await _await_answer(connection.execute(text, parameters))
    return await cursor.fetchall()


async def _await_answer(answer: Awaitable[T], seconds: float = _SILENT_SECONDS) -> T:
    """Await the response; raises UnavailableError after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            return await answer
    except TimeoutError as error:
        raise UnavailableError(_SILENT) from error


@asynccontextmanager
async def _open_cursor(
    connection: ReadConnection, text: str, parameters: Parameters, size: int
) -> AsyncIterator[tuple[AsyncServerCursor[Row], list[Row]]]:
    """A cursor over the rows of a statement, and the first of them."""
    async with connection.transaction(), connection.cursor("pages") as cursor:
        await _await_answer(cursor.execute(text, parameters))
        yield cursor, await _await_answer(cursor.fetchmany(size))


@asynccontextmanager
async def _open_snapshot(
    connection: ReadConnection, text: str, parameters: Parameters
) -> AsyncIterator[tuple[ReadConnection, list[Row]]]:
    """A connection with a snapshot, and the rows of its first statement."""
    await _await_answer(connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
    try:
        yield connection, await _fetch_rows(connection, text, parameters)
    finally:
        await connection.execute("COMMIT")


class _PostgreSQLSnapshot:
    """A snapshot that is taken with the first statement."""

    def __init__(self, open: Callable[[Begin[_Snapshot]], Awaitable[_Snapshot]]) -> None:
        self._open = open
        self._connection: ReadConnection | None = None

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        text = translate_to_postgresql(sql)
        if self._connection is None:
            begin = partial(_open_snapshot, text=text, parameters=parameters)
            self._connection, rows = await self._open(begin)
        else:
            rows = await _fetch_rows(self._connection, text, parameters)
        return [gathered or [] for row in rows for gathered in row]

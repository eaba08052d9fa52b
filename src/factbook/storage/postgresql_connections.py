"""Connections to PostgreSQL: errors, confirmation of commits, options, and pools.

Error codes are listed in "PostgreSQL Error Codes", appendix A of its documentation.
"""

import asyncio
import time
from collections.abc import Awaitable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final, Self, TypeVar
from weakref import WeakSet

import psycopg
import structlog
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from factbook import shutdown
from factbook.errors import ConfigurationError, InputError, UnavailableError
from factbook.storage.database import Row
from factbook.telemetry.logs import redact_text

# Nothing was written, and a retry may succeed: PostgreSQL ended this transaction because of a
# conflict with another one; or both were about to insert the same row, and the retry will see the
# other's row; or another server has become the primary.
AGAIN: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.UniqueViolation,
    errors.ReadOnlySqlTransaction,
)

# The database, its server or its operator refuses. OperationalError includes lost connections,
# timeouts waiting for one, too many connections, a shutdown, a full disk, lack of memory, and lock
# timeouts.
REFUSED: Final = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,  # the primary has become a replica
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    errors.InsufficientPrivilege,
    errors.DataCorrupted,
    errors.IndexCorrupted,
)

_READ_ONLY = "The database takes no writes at the moment, reads only; nothing was written."
_LOCKED = "Others hold what this waits for in the database; nothing was done. Try again."
_FULL = "The database has no room left; nothing was written."
_CONTENDED = "Too many others write the same at this moment; nothing was written. Try again."


def is_connection_lost(error: psycopg.Error) -> bool:
    """Return true if the connection is lost, for example by a restart; another one may work."""
    if isinstance(error, PoolTimeout):
        return False
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        code = error.sqlstate
        return code is None or code.startswith(("08", "57P"))
    return False


def make_unavailable_error(cause: psycopg.Error) -> UnavailableError:
    """The error for clients; the cause is only logged."""
    match cause:
        case errors.ReadOnlySqlTransaction():
            return UnavailableError(_READ_ONLY)
        case errors.LockNotAvailable():
            return UnavailableError(_LOCKED)
        case errors.DiskFull():
            return UnavailableError(_FULL)
        case errors.DeadlockDetected() | errors.SerializationFailure():
            return UnavailableError(_CONTENDED)
    return UnavailableError()


def make_data_error(error: psycopg.DataError) -> Exception:
    """The error for a client's text that cannot be stored; any other is a bug in our SQL."""
    if error.sqlstate is None and "NUL" in str(error):
        return InputError("Text with the character NUL cannot be stored or found.")
    return error


T = TypeVar("T")

# Seconds. A commit takes milliseconds unless a replica doesn't confirm it.
LONGEST_COMMIT: Final = 30.0
_LOOK_SECONDS: Final = 1.0
_CANCEL_SECONDS: Final = 2.0
# The function in which PostgreSQL waits for replicas; its messages depend on the server's language.
_WAIT: Final = "SyncRepWaitForLSN"

_UNCONFIRMED: Final = (
    "No replica of the database has confirmed this. It is written, and is lost if a replica takes "
    "over without it. Try again."
)
_LATE: Final = (
    "No replica of the database confirms this at the moment. It may be written or not. Try again."
)


class PostgreSQLConnection(psycopg.Connection[Row]):
    """A connection for writes; `unconfirmed` if its last commit is on this server only."""

    unconfirmed = False

    def watch(self) -> None:
        """Listen for commit notices from PostgreSQL."""
        self.add_notice_handler(self._note)

    def verify_confirmed(self) -> None:
        """Raise UnavailableError if the last commit is on this server only."""
        unconfirmed, self.unconfirmed = self.unconfirmed, False
        if unconfirmed:
            raise UnavailableError(_UNCONFIRMED)

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        self.unconfirmed = self.unconfirmed or notice.source_function == _WAIT


class PendingCommit:
    """The commit of a write: in progress from `begin` until the write is over.

    `has_writer` is false while the write waits for a writer thread.
    """

    def __init__(self) -> None:
        self.has_writer = False
        self._began_at: float | None = None
        self._connection: PostgreSQLConnection | None = None

    def start(self) -> None:
        """Mark the write as running on a writer thread."""
        self.has_writer = True

    def begin(self, connection: PostgreSQLConnection) -> None:
        """Mark the start of the commit."""
        self._began_at, self._connection = time.monotonic(), connection

    def end(self) -> None:
        """Mark the commit as over, or the transaction as rolled back."""
        self._began_at = self._connection = None

    def is_late(self, longest: float) -> bool:
        """Return true if the commit has been in progress for `longest` seconds."""
        began_at = self._began_at
        return began_at is not None and time.monotonic() - began_at > longest

    def cut_short(self) -> None:
        """Cancel PostgreSQL's wait for a replica."""
        connection = self._connection
        if connection is not None:
            with suppress(psycopg.Error):
                connection.cancel_safe(timeout=_CANCEL_SECONDS)


class Commits:
    """The writes of a process, with a time limit on each commit."""

    def __init__(self, longest: float) -> None:
        """Limit the wait for a commit to `longest` seconds."""
        self._longest = longest
        self._under_way: WeakSet[PendingCommit] = WeakSet()

    def new(self) -> PendingCommit:
        """Register a write that is about to begin."""
        commit = PendingCommit()
        self._under_way.add(commit)
        return commit

    async def wait(self, work: Awaitable[T], commit: PendingCommit) -> T:
        """Await the result of a write, which continues even if the caller is cancelled.

        Raises UnavailableError if this commit takes too long, or another one does: replicas would
        not confirm this one either.
        """
        future = asyncio.ensure_future(work)
        # Retrieve the exception: the caller may be gone.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        while not future.done():
            await asyncio.wait({future}, timeout=min(_LOOK_SECONDS, self._longest))
            if not future.done() and self._late():
                if not commit.has_writer:
                    future.cancel()
                raise UnavailableError(_LATE)
        return future.result()

    async def end(self, threads: ThreadPoolExecutor) -> None:
        """Return when every write is over; a commit without confirmation is on this server only."""
        ended = asyncio.create_task(asyncio.to_thread(threads.shutdown))
        while not ended.done():
            await asyncio.wait({ended}, timeout=min(_LOOK_SECONDS, self._longest))
            for commit in self._late():
                await asyncio.to_thread(commit.cut_short)

    def _late(self) -> list[PendingCommit]:
        return [one for one in self._under_way if one.is_late(self._longest)]


log = structlog.get_logger("factbook.storage")

WRITERS: Final = 4
# Seconds a request waits for a connection.
WAIT_SECONDS: Final = 10.0
# Seconds within which a reachable server answers.
SOON_SECONDS: Final = 2.0
# Seconds after which a write asks its pool again.
_ASK_SECONDS: Final = 1.0
# Seconds after which a pool stops its own ever slower retries, and reconnects on demand.
_RETRY_SECONDS: Final = 4.0

# Options of every pool.
_OPENED_LATER: Final[dict[str, Any]] = {
    "open": False,
    "timeout": WAIT_SECONDS,
    "reconnect_timeout": _RETRY_SECONDS,
}

# Defaults that the URL may override. A lost server's connections fail within half a minute.
_CONNECTING: Final = {
    "application_name": "factbook",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# In a cluster, connect to the server that accepts writes: others may lag behind.
_OF_SEVERAL: Final = {"target_session_attrs": "read-write"}

# Of several replicas, connect to one that is still a standby.
_OF_REPLICAS: Final = {"target_session_attrs": "standby"}

# The server, too, must soon detect a lost client: the client may hold locks.
_NOTICING: Final = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}
# A limited wait for locks, so a transaction that someone left open in psql doesn't hang requests.
# A parallel search costs up to three times the CPU: each worker reads the texts for itself.
_READING: Final = _NOTICING | {"lock_timeout": "10s", "max_parallel_workers_per_gather": "0"}
# A process that hangs between two statements of a transaction loses its locks.
_WRITING: Final = _NOTICING | {
    "lock_timeout": "120s",
    "idle_in_transaction_session_timeout": "60s",
    # In a Citus cluster, each write to a reference table would lock the whole table. Our own locks
    # already separate dependent writes until every node has committed.
    "citus.all_modifications_commutative": "on",
}
# A write made `aside` matters only if another write follows, whose commit makes both durable.
_ASIDE: Final = _WRITING | {"synchronous_commit": "off"}


class LastFailure:
    """Cause of the last failure to connect; cleared by a successful connection."""

    def __init__(self) -> None:
        self.error: psycopg.Error | None = None


class _Connection(PostgreSQLConnection):
    @classmethod
    def connect(cls, conninfo: str = "", **options: Any) -> Self:
        failure: LastFailure = options.pop("failure")
        try:
            connection = super().connect(conninfo, **options)
        except psycopg.Error as error:
            failure.error = error
            raise
        failure.error = None
        connection.watch()
        # Statements after a lock must see all commits made before the lock was acquired.
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        return connection


class ReadConnection(psycopg.AsyncConnection[Row]):
    """A connection for reads on the event loop."""

    @classmethod
    async def connect(cls, conninfo: str = "", **options: Any) -> Self:
        failure: LastFailure = options.pop("failure")
        try:
            connection = await super().connect(conninfo, **options)
        except psycopg.Error as error:
            failure.error = error
            raise
        failure.error = None
        return connection


def _report_connection(look: "asyncio.Task[None]") -> None:
    """Log an unexpected error of a connection check, which waiters do not receive."""
    error = None if look.cancelled() else look.exception()
    if error is not None:
        log.error("task.failed", exc_info=error)


def make_connection_options(
    given: dict[str, Any],
    limits: dict[str, str] = _WRITING,
    of_several: dict[str, str] = _OF_SEVERAL,
) -> dict[str, Any]:
    """Connection options in addition to those in the URL."""
    wanted = dict(_CONNECTING)
    if "," in str(given.get("host", "")) + str(given.get("hostaddr", "")):
        wanted |= of_several
    found = {name: value for name, value in wanted.items() if name not in given}
    # The URL's own options come last and win.
    own = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return found | {"options": f"{own} {given.get('options', '')}".strip()}


def _parse_setting(setting: str, url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # The quoted part may be a piece of the password.
        reason = redact_text(str(error).partition('"')[0].strip(" :\n"))
        advice = "special characters of its parts are written as %XX"
        raise ConfigurationError(f"{setting} cannot be read: {reason}; {advice}.") from None


def _make_async_pool(
    url: str, least: int, most: int, options: dict[str, Any]
) -> AsyncConnectionPool[ReadConnection]:
    return AsyncConnectionPool(
        url,
        connection_class=ReadConnection,
        min_size=least,
        max_size=most,
        kwargs=options,
        **_OPENED_LATER,
    )


class Pools:
    """A pool for reads on the event loop, one for writes on threads, and one spare connection."""

    def __init__(self, url: str, connections: int, replica_url: str | None = None) -> None:
        """Reserve four of `connections` for writes and the others, at least two, for reads.

        The replica may have as many connections as there are for reads. Raises ConfigurationError
        for a URL that libpq cannot parse.
        """
        self._failure = LastFailure()
        self._looking: asyncio.Task[None] | None = None
        given = _parse_setting("database_url", url)
        most = max(2, connections - WRITERS)
        reading = self._options(given, _READING)
        self.reads = _make_async_pool(url, 2, most, reading)
        # `Replica` opens, monitors and closes this pool.
        self.replica: tuple[AsyncConnectionPool[ReadConnection], LastFailure] | None = None
        if replica_url is not None:
            of_replica = _parse_setting("replica_url", replica_url)
            options = self._options(of_replica, _READING, _OF_REPLICAS)
            options["failure"] = failure = LastFailure()
            self.replica = _make_async_pool(replica_url, 1, most, options), failure
        self.writes = self._synchronous(url, 1, WRITERS, self._options(given, _WRITING))
        # One more for short transactions within a writer's, opened on demand: a writer waiting for
        # another writer's connection could deadlock.
        self.spare = self._synchronous(url, 0, 1, self._options(given, _ASIDE))

    async def open(self) -> None:
        """Connect; raises UnavailableError with the reason if that takes too long."""
        try:
            await self.reads.open(wait=True, timeout=WAIT_SECONDS)
            await asyncio.to_thread(self.writes.open, wait=True, timeout=WAIT_SECONDS)
            await asyncio.to_thread(self.spare.open)
        except psycopg.Error as error:
            await self.close()
            cause = self._cause(error)
            reason = " ".join(str(cause).split())
            raise UnavailableError(
                f"PostgreSQL cannot be used: {reason}. Is it running, and is database_url right?"
            ) from cause

    async def look(self) -> None:
        """Remove dead connections for reads; returns when that is done, or after a time limit.

        Concurrent callers share one check. It runs as a separate task: cancelling it would lose the
        connections being checked.
        """
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.reads.check())
            self._looking.add_done_callback(_report_connection)
        await asyncio.wait({self._looking}, timeout=SOON_SECONDS)

    @contextmanager
    def writing(self, seconds: float = WAIT_SECONDS) -> Iterator["_Connection"]:
        """Lend a connection for one write; raises PoolTimeout if there is none within `seconds`.

        Asks repeatedly: if the pool is closed while it discards a dead connection, a single
        request would wait for the full time.
        """
        connection, end = None, time.monotonic() + seconds
        while connection is None:
            left = end - time.monotonic()
            try:
                connection = self.writes.getconn(min(_ASK_SECONDS, left))
            except PoolTimeout:
                if left <= _ASK_SECONDS:
                    raise
        try:
            yield connection
        finally:
            self.writes.putconn(connection)

    async def refuse_writes(self) -> None:
        """Stop lending connections to writes, and end writes that wait for one."""
        await asyncio.to_thread(self.writes.close)

    async def close(self) -> None:
        """Close every connection."""
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=SOON_SECONDS)
            # After one cancellation the driver still waits for a silent server to respond.
            await shutdown.cancel([self._looking])
        await self.reads.close()
        await asyncio.to_thread(self.writes.close)
        await asyncio.to_thread(self.spare.close)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Translate the driver's errors, except bugs, to errors for clients.

        If no connection became available in time, the cause is the last connection failure.
        """
        try:
            yield
        except REFUSED as error:
            cause = self._cause(error)
            raise make_unavailable_error(cause) from cause
        except psycopg.DataError as error:
            raise make_data_error(error) from error

    def _cause(self, error: psycopg.Error) -> psycopg.Error:
        failure = self._failure.error
        return failure if isinstance(error, PoolTimeout) and failure is not None else error

    @staticmethod
    def _synchronous(
        url: str, least: int, most: int, options: dict[str, Any]
    ) -> ConnectionPool[_Connection]:
        return ConnectionPool(
            url,
            connection_class=_Connection,
            min_size=least,
            max_size=most,
            kwargs=options,
            **_OPENED_LATER,
            check=ConnectionPool.check_connection,
        )

    def _options(
        self,
        given: dict[str, Any],
        limits: dict[str, str],
        of_several: dict[str, str] = _OF_SEVERAL,
    ) -> dict[str, Any]:
        own = {"autocommit": True, "prepare_threshold": 1, "failure": self._failure}
        return make_connection_options(given, limits, of_several) | own

"""Connections to PostgreSQL: options, pools, and the cause of the last connection failure."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import psycopg
import structlog
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from factbook import shutdown
from factbook.errors import ConfigurationError, UnavailableError
from factbook.storage.database import Row
from factbook.storage.postgresql_commits import PostgreSQLConnection
from factbook.storage.postgresql_errors import REFUSED, data_error, unavailable
from factbook.telemetry.logs import redact_text

log = structlog.get_logger("factbook.storage")

WRITERS: Final = 4
# Seconds for which a request waits for a connection.
WAIT_SECONDS: Final = 10.0
# Seconds within which a server that is there answers.
SOON_SECONDS: Final = 2.0
# After that a write asks its pool anew.
_ASK_SECONDS: Final = 1.0
# After that a pool tries again when somebody asks, and not ever more rarely by itself.
_RETRY_SECONDS: Final = 4.0

# Every pool.
_OPENED_LATER: Final[dict[str, Any]] = {
    "open": False,
    "timeout": WAIT_SECONDS,
    "reconnect_timeout": _RETRY_SECONDS,
}

# What an address may say otherwise. Half a minute after a machine is lost its connections are.
_CONNECTING: Final = {
    "application_name": "factbook",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "4",
    "tcp_user_timeout": "30000",
}
# Of a cluster the one that takes writes: another may show what was true a while ago.
_OF_SEVERAL: Final = {"target_session_attrs": "read-write"}

# Of several replicas one that is still a standby.
_OF_REPLICAS: Final = {"target_session_attrs": "standby"}

# The server is to notice soon, too, that the machine at the other end is lost: it may hold locks.
_NOTICING: Final = {
    "tcp_keepalives_idle": "10",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "4",
}
# How long anything waits for locks of others, so that nobody hangs for what a person left open.
# A search by several processes costs up to three times the CPU: each reads the texts for itself.
_READING: Final = _NOTICING | {"lock_timeout": "10s", "max_parallel_workers_per_gather": "0"}
# A process that stands still between two statements of a transaction lets go of its locks.
_WRITING: Final = _NOTICING | {
    "lock_timeout": "120s",
    "idle_in_transaction_session_timeout": "60s",
    # In a cluster each write of a table that every machine has would lock all of it. Our locks keep
    # apart what depends on each other, until every machine has committed.
    "citus.all_modifications_commutative": "on",
}
# What is written aside matters only if a write follows it, whose commit makes both durable.
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
        # After a lock each statement has to see what was committed before it was had.
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


def _tell(look: "asyncio.Task[None]") -> None:
    """Log an unexpected error of a connection check, which its waiters do not see."""
    error = None if look.cancelled() else look.exception()
    if error is not None:
        log.error("task.failed", exc_info=error)


def options(
    given: dict[str, Any],
    limits: dict[str, str] = _WRITING,
    of_several: dict[str, str] = _OF_SEVERAL,
) -> dict[str, Any]:
    """Options of a connection beside those that its address has."""
    wanted = dict(_CONNECTING)
    if "," in str(given.get("host", "")) + str(given.get("hostaddr", "")):
        wanted |= of_several
    found = {name: value for name, value in wanted.items() if name not in given}
    # Those of the address come last, and win.
    own = " ".join(f"-c {name}={value}" for name, value in limits.items())
    return found | {"options": f"{own} {given.get('options', '')}".strip()}


def _parsed(setting: str, url: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        # What is quoted may be a part of the password.
        reason = redact_text(str(error).partition('"')[0].strip(" :\n"))
        advice = "special characters of its parts are written as %XX"
        raise ConfigurationError(f"{setting} cannot be read: {reason}; {advice}.") from None


def _asynchronous(
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

        As many as for reads may be open to a replica. Raises ConfigurationError for a URL that
        libpq cannot parse.
        """
        self._failure = LastFailure()
        self._looking: asyncio.Task[None] | None = None
        given = _parsed("database_url", url)
        most = max(2, connections - WRITERS)
        reading = self._options(given, _READING)
        self.reads = _asynchronous(url, 2, most, reading)
        # It is opened, looked after and closed by those who know if it can be used.
        self.replica: tuple[AsyncConnectionPool[ReadConnection], LastFailure] | None = None
        if replica_url is not None:
            of_replica = _parsed("replica_url", replica_url)
            options = self._options(of_replica, _READING, _OF_REPLICAS)
            options["failure"] = failure = LastFailure()
            self.replica = _asynchronous(replica_url, 1, most, options), failure
        self.writes = self._synchronous(url, 1, WRITERS, self._options(given, _WRITING))
        # One more for short transactions amid those of writers, opened when it is needed: a writer
        # that waited for another one's connection might wait for itself.
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
            self._looking.add_done_callback(_tell)
        await asyncio.wait({self._looking}, timeout=SOON_SECONDS)

    @contextmanager
    def writing(self, seconds: float = WAIT_SECONDS) -> Iterator["_Connection"]:
        """Lend a connection for one write; raises PoolTimeout if there is none within `seconds`.

        Asks again and again: a pool that is closed while it drops one that the server has ended
        would let the write wait to the end.
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
        """Give writes no more connections; those that wait for one while the server is away end."""
        await asyncio.to_thread(self.writes.close)

    async def close(self) -> None:
        """Close every connection."""
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=SOON_SECONDS)
            # Cancelled once, the driver waits for what a silent server says to that.
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
            raise unavailable(cause) from cause
        except psycopg.DataError as error:
            raise data_error(error) from error

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
        return options(given, limits, of_several) | own

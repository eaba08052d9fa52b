"""Read replica: a hot standby that serves long reads while it shows every commit of the primary.

A read on the replica sees what it would see on the primary. The primary is asked for its position
in the write-ahead log, which costs it next to nothing, and the read begins once the replica has
replayed the log up to there; if that takes too long, the read goes to the primary. Positions
compare within one history only, so a mark written to the primary has to appear on the replica
first, and again after a restart or failover of either.

Positions alone don't give the lag in seconds, and on an idle primary the time since the last
replayed commit can be hours. So the lag is 0 while both positions are equal. Otherwise every
missing commit is newer than both the last replayed commit and the last time the replica was
current, so the lag is at most the time since the later of the two.
"""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
import structlog
from psycopg import errors
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from factbook import shutdown
from factbook.errors import UnavailableError
from factbook.storage.database import Parameters, ReplicaUse, Row
from factbook.storage.postgresql_connections import REFUSED, LastFailure, ReadConnection

NO_STANDBY: Final = "it is no standby: it was promoted, or replica_url names a primary"
_NO_COMMIT: Final = "it has replayed no commit since it was started"


class ShownCommits:
    """The last time a replica was known to show every commit."""

    def __init__(self) -> None:
        self._current_at: float | None = None

    def current(self, at: float) -> None:
        """Note that the replica shows all commits made before this time."""
        self._current_at = at

    async def lag(self, connection: ReadConnection, place: str, asked_at: float) -> float:
        """Maximum lag in seconds; `place` is the primary's log position at `asked_at`.

        Raises UnavailableError if the server is not a replica, or if its commits are unknown.
        """
        row = await (await connection.execute(_LAG, (place,))).fetchone()
        standby, reached, replayed = row or (False, False, None)
        if not standby:
            raise UnavailableError(NO_STANDBY)
        if reached:
            self.current(asked_at)
            return 0.0
        shown = None if self._current_at is None else time.monotonic() - self._current_at
        known = [seconds for seconds in (shown, replayed) if seconds is not None]
        if not known:
            raise UnavailableError(_NO_COMMIT)
        return max(0.0, min(known))


_LAG: Final = """
SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn,
    extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::double precision
"""


log = structlog.get_logger("factbook.storage")

T = TypeVar("T")

# Runs a statement on the primary.
Primary = Callable[[str, Parameters], Awaitable[list[Row]]]

# Seconds within which a reachable replica accepts a connection and answers.
_SOON: Final = 1.0
# Seconds between two checks of a replica that has not caught up: the shortest, and the longest.
_FIRST_LOOK, _LONGEST_LOOK = 0.001, 0.02
# Seconds that reads go to the primary after the replica lagged, and after it failed.
_LAGGED, _FAILED = 1.0, 5.0
# Time limit for a measurement of the lag, in seconds.
_MEASURED: Final = 1.5

_LAGS: Final = "it lags behind the primary"
_STRANGE: Final = "it follows another primary than the one in database_url"
_SILENT: Final = "it does not answer"
_BUSY: Final = "all connections to it are in use"


class ReplicaReadError(UnavailableError):
    """Raised when the replica cancels a read; the primary can serve the read instead."""


class _ReplicaUnusableError(Exception):
    """Raised when the replica cannot serve a read now; it is retried after `seconds`."""

    def __init__(self, reason: str, seconds: float = _FAILED) -> None:
        super().__init__(reason)
        self.seconds = seconds


class _Position(NamedTuple):
    """Position in the primary's log, and an id of the primary's run and timeline."""

    place: str
    primary: str


class Replica:
    """Connections to a replica, available while the replica shows every commit.

    A read waits up to `longest` seconds for the replica to catch up.
    """

    def __init__(
        self,
        pool: AsyncConnectionPool[ReadConnection],
        failure: LastFailure,
        primary: Primary,
        longest: float,
    ) -> None:
        self._pool = pool
        self._failure = failure
        self._primary = primary
        self._longest = longest
        self._reason: str | None = None
        self._again_at = 0.0
        self._shown = ShownCommits()
        self._reads = self._refused = 0
        self._verified: set[tuple[str, str]] = set()
        self._verifying = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def use(self) -> ReplicaUse:
        """The number of reads so far, and why the replica currently serves none."""
        return ReplicaUse(self._reads, self._refused, self._reason, self.lag)

    async def open(self) -> None:
        """Begin to connect; an unreachable replica doesn't prevent startup."""
        await self._pool.open()

    async def close(self) -> None:
        """Close every connection."""
        await shutdown.cancel(list(self._tasks))
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[ReadConnection | None]:
        """A connection that shows every commit made so far, or None if there is none.

        Raises ReplicaReadError if the replica fails within the block, UnavailableError if the
        primary does not answer.
        """
        connection = await self._current()
        if connection is None:
            yield None
            return
        try:
            yield connection
        except errors.SerializationFailure as error:  # conflict with replay: the replica is healthy
            raise ReplicaReadError from error
        except REFUSED as error:
            self._leave(_ReplicaUnusableError(_describe_failure(error)))
            raise ReplicaReadError from error
        finally:
            await self._pool.putconn(connection)

    async def _current(self) -> ReadConnection | None:
        if time.monotonic() < self._again_at:
            self._refused += 1
            return None
        task = self._task(self._taken())
        try:
            done, _ = await asyncio.wait({task}, timeout=2 * _SOON + self._longest)
        except asyncio.CancelledError:
            task.add_done_callback(self._given_back)
            raise
        if not done:
            task.cancel()
            task.add_done_callback(self._given_back)
            self._leave(_ReplicaUnusableError(_SILENT))
        connection = task.result() if done else None
        self._reads += connection is not None
        self._refused += connection is None
        return connection

    def _task(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run in a separate task: the driver waits for a silent server even when cancelled."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _given_back(self, task: "asyncio.Task[ReadConnection | None]") -> None:
        """Return an abandoned task's connection to the pool."""
        if task.cancelled() or task.exception() is not None or (found := task.result()) is None:
            return
        back = asyncio.create_task(self._pool.putconn(found))
        self._tasks.add(back)
        back.add_done_callback(self._tasks.discard)

    async def _taken(self) -> ReadConnection | None:
        """A connection that has caught up; None if there is none, with the reason recorded."""
        asked_at = time.monotonic()
        try:
            position = await self._position()
            connection = await self._pool.getconn(_SOON)
        except psycopg.Error as error:
            self._leave_for(error)
            return None
        try:
            await self._caught_up(connection, position)
        except BaseException as error:
            await self._pool.putconn(connection)
            if isinstance(error, _ReplicaUnusableError | psycopg.Error):
                self._leave(error)
                return None
            raise
        self._shown.current(asked_at)
        if self._reason is not None:
            log.info("replica.used")
        self._reason = None
        return connection

    async def _caught_up(self, connection: ReadConnection, position: _Position) -> None:
        replica = await self._reached(connection, position.place)
        pair = position.primary, replica
        if pair in self._verified:
            return
        async with self._verifying:
            if pair not in self._verified:
                await self._verify(connection)
                # Entries for an earlier run of the primary are obsolete.
                self._verified = {one for one in self._verified if one[0] == pair[0]} | {pair}

    async def _verify(self, connection: ReadConnection) -> None:
        """Verify that a mark written to this primary appears on the replica."""
        mark = secrets.randbits(62)
        await self._primary(_MARK, (mark,))
        await self._reached(connection, (await self._position()).place)
        if await (await connection.execute(_MARKED)).fetchone() != (mark,):
            raise _ReplicaUnusableError(_STRANGE)

    async def _reached(self, connection: ReadConnection, place: str) -> str:
        """Return the replica's start time once it has replayed the log up to this position."""
        until, pause = time.monotonic() + self._longest, _FIRST_LOOK
        while True:
            row = await (await connection.execute(_STANDBY, (place,))).fetchone()
            standby, reached, started = row or (False, False, "")
            if not standby:
                # If the URL names several hosts, new connections find the standby.
                await self._pool.drain()
                raise _ReplicaUnusableError(NO_STANDBY)
            if reached:
                return str(started)
            if time.monotonic() >= until:
                raise _ReplicaUnusableError(_LAGS, _LAGGED)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_LOOK)

    async def lag(self) -> float:
        """The replica's maximum lag in seconds; 0 if it shows every commit.

        Raises UnavailableError with the reason if the lag is unknown.
        """
        is_away = self._reason not in {None, _LAGS} and time.monotonic() < self._again_at
        if is_away or self._reason == _STRANGE:
            raise UnavailableError(self._reason)
        asked_at = time.monotonic()
        place = (await self._position()).place

        async def measure() -> float:
            try:
                async with self._pool.connection(_SOON) as connection:
                    return await self._shown.lag(connection, place, asked_at)
            except psycopg.Error as error:
                raise UnavailableError(self._reason if self._leave_for(error) else _BUSY) from error

        task = self._task(measure())
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        done, _ = await asyncio.wait({task}, timeout=_MEASURED)
        if not done:
            task.cancel()
            self._leave(_ReplicaUnusableError(_SILENT))
            raise UnavailableError(_SILENT)
        return task.result()

    async def _position(self) -> _Position:
        [row] = await self._primary(_POSITION, ())
        return _Position(*row)

    def _leave_for(self, error: psycopg.Error) -> bool:
        """Call `_leave` if connecting failed; returns false if all connections are just in use."""
        failure = self._failure.error if isinstance(error, PoolTimeout) else error
        if failure is not None:
            self._leave(failure)
        return failure is not None

    def _leave(self, error: Exception) -> None:
        """Send reads to the primary for a while, and log if that is a change."""
        seconds = error.seconds if isinstance(error, _ReplicaUnusableError) else _FAILED
        self._again_at = time.monotonic() + seconds
        reason = _describe_failure(error)
        if self._reason is None:
            log.warning("replica.left", reason=reason)
        self._reason = reason


def _describe_failure(error: Exception) -> str:
    return " ".join(str(error).split())


# The log up to the flush position holds every acknowledged commit, unless commits are asynchronous.
_POSITION: Final = """
SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN inserted ELSE flushed END::text,
    left(pg_walfile_name(inserted), 8) || ' ' || pg_postmaster_start_time()
FROM (SELECT pg_current_wal_insert_lsn() AS inserted, pg_current_wal_flush_lsn() AS flushed) places
"""

_STANDBY: Final = """
SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn() >= %s::pg_lsn,
    pg_postmaster_start_time()::text
"""

_MARK: Final = """
INSERT INTO counters (name, value) VALUES ('replica_mark', %s)
ON CONFLICT (name) DO UPDATE SET value = excluded.value RETURNING value
"""

_MARKED: Final = "SELECT value FROM counters WHERE name = 'replica_mark'"

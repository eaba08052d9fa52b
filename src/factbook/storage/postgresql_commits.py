"""Commits that wait for a replica: the time limit, and the handling of a wait cut short.

With `synchronous_standby_names` a commit returns once a replica has it, however long that takes. If
an operator cancels the wait, the commit exists on this server only; PostgreSQL reports success with
a warning. The client must be told that its write may be lost, as with any unacknowledged commit.
"""

import asyncio
import time
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar
from weakref import WeakSet

import psycopg

from factbook.errors import UnavailableError
from factbook.storage.database import Row

T = TypeVar("T")

# A commit takes milliseconds, unless a replica does not confirm it.
LONGEST_COMMIT: Final = 30.0
_LOOK_SECONDS: Final = 1.0
_CANCEL_SECONDS: Final = 2.0
# Where PostgreSQL waits for replicas; what it says there depends on its language.
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
        """Listen for PostgreSQL's notices about commits."""
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
        """Mark the write as running on a thread of its own."""
        self.has_writer = True

    def begin(self, connection: PostgreSQLConnection) -> None:
        """Mark the work of the transaction as done, so that its commit begins."""
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
    """The writes of a process, each awaited for a limited time only."""

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

        Raises UnavailableError if a commit takes too long, this one or another: no replica would
        confirm this one either.
        """
        future = asyncio.ensure_future(work)
        # Nobody may be left to hear of it.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        while not future.done():
            await asyncio.wait({future}, timeout=min(_LOOK_SECONDS, self._longest))
            if not future.done() and self._late():
                if not commit.has_writer:
                    future.cancel()
                raise UnavailableError(_LATE)
        return future.result()

    async def end(self, threads: ThreadPoolExecutor) -> None:
        """Return when every write is over; one that no replica confirms is on this server only."""
        ended = asyncio.create_task(asyncio.to_thread(threads.shutdown))
        while not ended.done():
            await asyncio.wait({ended}, timeout=min(_LOOK_SECONDS, self._longest))
            for commit in self._late():
                await asyncio.to_thread(commit.cut_short)

    def _late(self) -> list[PendingCommit]:
        return [one for one in self._under_way if one.is_late(self._longest)]

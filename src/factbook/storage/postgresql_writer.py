"""Writes to PostgreSQL: transactions on threads, repeated where they meet others."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final, TypeVar

import structlog
from psycopg import errors

from factbook.storage.database import ChecksPort, RestartError, Transaction
from factbook.storage.postgresql_commits import Commits, PendingCommit
from factbook.storage.postgresql_connections import WAIT_SECONDS, WRITERS, Pools
from factbook.storage.postgresql_errors import AGAIN
from factbook.storage.postgresql_transaction import PostgreSQLTransaction, lock_key

log = structlog.get_logger("factbook.storage")

T = TypeVar("T")

_LEAST_SECONDS: Final = 0.5
# Seconds, at most, until a write that stood in another's way is run again, and again.
_PAUSES: Final = (0.1, 0.3, 1.0)


class PostgreSQLWriter:
    """Writer threads, each with a connection of its own while it writes."""

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
                # Those that stood in each other's way are not to meet again.
                time.sleep(random.uniform(0, pause))  # noqa: S311 - nothing secret
            return self._restarted(function, asked_at, commit)

    def _restarted(
        self, function: Callable[[Transaction], T], asked_at: float, commit: PendingCommit
    ) -> T:
        """Run the function as often as it asks for that."""
        while True:
            with suppress(RestartError):
                return self._transact(function, asked_at, commit)
            log.info("write.restarted")

    def _transact(
        self, function: Callable[[Transaction], T], asked_at: float, commit: PendingCommit
    ) -> T:
        # Those that have waited for others while no connection was to be had wait little more.
        wait = max(_LEAST_SECONDS, asked_at + WAIT_SECONDS - time.monotonic())
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
                # New connections find the primary, where the address names several hosts.
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
            key = lock_key(lock)
            if connection.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchone() != (True,):
                return False
            try:
                if connection.execute(unless.encode()).fetchone() is not None:
                    return False
                # What makes an index waits for every transaction that is older.
                for statement in ("SET lock_timeout = 0", *statements):
                    connection.execute(statement.encode())
            finally:
                connection.close()  # which lets go of the lock, and of what was set
        return True

    async def close(self) -> None:
        """Return when every write is over."""
        await self._commits.end(self._threads)

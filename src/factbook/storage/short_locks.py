"""Locks that many hold: each try waits for a moment, lets others through, and is repeated.

Whoever comes to a table in use later waits behind a statement that waits to change it. The moment
is shorter than PostgreSQL's deadlock_timeout (1 s), too, so that no write of others is the victim.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import structlog

from factbook.errors import UnavailableError
from factbook.storage.database import Database

log = structlog.get_logger("factbook.storage")

T = TypeVar("T")

# Of a connection or of a transaction (`SET LOCAL`).
TIMEOUT: Final = "lock_timeout = '500ms'"
# Of whoever changes tables; migrations take it, too.
LOCK: Final = "migrations"
PAUSE_SECONDS: Final = 1.0
_MOST_SECONDS: Final = 600.0
# Until another process, or the server for one of this process, has let go of the lock.
_APART_PAUSE_SECONDS: Final = 0.1
_LOCK_NOT_AVAILABLE: Final = "55P03"


async def patiently(
    change: Callable[[], Awaitable[T]], what: str, seconds: float = _MOST_SECONDS
) -> T:
    """Run a change that gives up on locks soon, again and again until it had them.

    Raises UnavailableError when that took `seconds`.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return await change()
        except UnavailableError as error:
            if not is_locked(error):
                raise
            if time.monotonic() > end:
                raise UnavailableError(_IN_USE.format(what, seconds / 60)) from error
        log.info("layout.waiting", table=what)
        await asyncio.sleep(PAUSE_SECONDS)


async def run_apart(database: Database, what: str, statement: str, *, done: str) -> None:
    """Run a statement outside a transaction unless `done` finds a row by then.

    While another process migrates the database or does the same, it waits.
    """

    async def ran() -> bool:
        return await database.apart(LOCK, (f"SET {TIMEOUT}", statement), unless=done)

    while not await patiently(ran, what) and await database.one(done) is None:
        log.info("layout.waiting", table=what, waits_for="another process")
        await asyncio.sleep(_APART_PAUSE_SECONDS)


def is_locked(error: UnavailableError) -> bool:
    """Return true if others held the locks."""
    return getattr(error.__cause__, "sqlstate", None) == _LOCK_NOT_AVAILABLE


_IN_USE: Final = (
    "{} was in use for {:.0f} minutes by transactions that do not end. Nothing was changed in this "
    "step. Find them in pg_stat_activity, end them, and start again."
)

"""Trusted clock for deleting expired data: the gate before every deletion.

It follows the system clock. A clock that is far ahead would delete all retained data at once, so
after a leap longer than any usual downtime the trusted time stands still until an operator confirms
the clock, or a PostgreSQL server on another machine agrees with it.
"""

from typing import Final, NamedTuple

from factbook.clock import DAY, HOUR
from factbook.storage import Database, Transaction

# Between two rounds of the housekeeping, from which on the clock has to be confirmed.
LEAP: Final = 21 * DAY
# A process that runs on knows that no more than its rounds have passed.
_STEP: Final = HOUR
_APART: Final = HOUR


class RetentionClock(NamedTuple):
    """The last trusted time, and the system clock's time while that is distrusted (else None).

    Both are in milliseconds since the epoch.
    """

    trusted_at: int
    refused_at: int | None = None


async def read(database: Database) -> RetentionClock:
    """The clock as left by the last round."""
    row = await database.one(_READ)
    return RetentionClock(*row) if row else RetentionClock(*(await database.one(_BEGUN) or (0,)))


async def advance(database: Database, now: int, last: int | None) -> tuple[int, RetentionClock]:
    """The time up to which a round may delete, and the clock state for the next round.

    `last` is the `trusted_at` of this process's previous round; None in its first one.
    """
    found = await read(database)
    agrees = False
    if not 0 <= now - found.trusted_at <= LEAP:
        agrees = await _agrees(database, now)
    return await database.write(lambda transaction: _advance(transaction, now, last, agrees=agrees))


def _advance(
    transaction: Transaction, now: int, last: int | None, *, agrees: bool
) -> tuple[int, RetentionClock]:
    # An operator may confirm it at this moment.
    row = transaction.one(f"{_READ} FOR UPDATE") or transaction.one(_BEGUN) or (now, None)
    time, clock = decided(now, row[0], last, agrees=agrees)
    _store(transaction, clock)
    return time, clock


def decided(
    now: int, trusted_at: int, last: int | None, *, agrees: bool
) -> tuple[int, RetentionClock]:
    """The result of `advance` for these times; `agrees`: another machine has the time `now`."""
    if agrees:
        return now, RetentionClock(now)
    if now > trusted_at + LEAP:
        return trusted_at, RetentionClock(trusted_at, now)
    if now < trusted_at:
        # By the earlier time less is deleted, whichever of the two is right.
        return now, RetentionClock(trusted_at)
    time = min(now, trusted_at + _STEP) if last == trusted_at else now
    return time, RetentionClock(time)


def confirm(transaction: Transaction, now: int) -> RetentionClock:
    """Trust the clock from now on; returns the previous state."""
    row = transaction.one(f"{_READ} FOR UPDATE") or transaction.one(_BEGUN) or (now, None)
    _store(transaction, RetentionClock(now))
    return RetentionClock(*row)


def _store(transaction: Transaction, clock: RetentionClock) -> None:
    transaction.run(_STORE, clock)


async def _agrees(database: Database, now: int) -> bool:
    """Return true if a server on another machine has this time; a local one shares the clock."""
    if database.dialect != "postgresql":
        return False
    server, elsewhere = await database.one(_SERVER) or (0, False)
    return bool(elsewhere) and abs(server - now) <= _APART


_READ: Final = "SELECT trusted_at, refused_at FROM retention_clock WHERE id = 1"

# Before the first round: when the schema was made.
_BEGUN: Final = "SELECT MAX(applied_at), NULL FROM schema_migrations"

_STORE: Final = """
INSERT INTO retention_clock (id, trusted_at, refused_at) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET trusted_at = excluded.trusted_at, refused_at = excluded.refused_at
"""

# Both addresses are NULL over a Unix socket.
_SERVER: Final = """
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
    inet_server_addr() IS DISTINCT FROM inet_client_addr()
"""

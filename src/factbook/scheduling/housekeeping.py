"""Housekeeping: the status of its tasks, and the clock that deletions trust."""

from collections.abc import Collection
from typing import Final, NamedTuple

from factbook.clock import DAY, HOUR, MINUTE
from factbook.storage import Database, Transaction

# Pause between two rounds.
HOUSEKEEPING_INTERVAL: Final = 10 * MINUTE
_LONGEST_ERROR: Final = 300
# After a longer gap between two housekeeping rounds, the clock must be confirmed.
LARGEST_LEAP: Final = 21 * DAY
# A process that kept running knows that only its own rounds have passed.
_CLOCK_STEP: Final = HOUR
_LARGEST_DIFFERENCE: Final = HOUR
# Tolerated difference between the clocks of machines.
LARGEST_LEAD: Final = MINUTE
# The longest pause of a queue for a rate limit.
_LONGEST_PAUSE: Final = DAY


class PartRecord(NamedTuple):
    """Last success of a task and, if it has failed since, the time and reason of the failure.

    Times are in milliseconds since the epoch.
    """

    part: str
    succeeded_at: int | None
    failed_at: int | None
    error: str | None


async def fetch_task_records(database: Database) -> list[PartRecord]:
    """All tasks that have ever run, by name."""
    return [PartRecord(*row) for row in await database.all(_TASK_RECORDS)]


def record_task_end(transaction: Transaction, part: str, error: str | None, now: int) -> None:
    """Record the end of a task; `error` is the reason of a failure, None on success."""
    if error is None:
        transaction.run(_RECORD_SUCCESS, (part, now))
    else:
        transaction.run(_RECORD_FAILURE, (part, now, error[:_LONGEST_ERROR]))


def delete_other_tasks(transaction: Transaction, parts: Collection[str]) -> None:
    """Delete the records of tasks that this release does not have."""
    transaction.run("DELETE FROM housekeeping WHERE NOT (part IN LIST(?))", (sorted(parts),))


class RetentionClock(NamedTuple):
    """The last trusted time, and the system clock's time while that is distrusted (else None).

    Both are in milliseconds since the epoch.
    """

    trusted_at: int
    refused_at: int | None = None


async def read_retention_clock(database: Database) -> RetentionClock:
    """The clock as left by the last round."""
    row = await database.one(_READ_CLOCK)
    return (
        RetentionClock(*row) if row else RetentionClock(*(await database.one(_FIRST_CLOCK) or (0,)))
    )


async def advance_retention_clock(
    database: Database, now: int, last: int | None
) -> tuple[int, RetentionClock]:
    """The time up to which a round may delete, and the clock state for the next round.

    `last` is the `trusted_at` of this process's previous round; None in its first one.
    """
    found = await read_retention_clock(database)
    agrees = False
    is_doubtful = not 0 <= now - found.trusted_at <= LARGEST_LEAP
    if is_doubtful and database.dialect == "postgresql":
        # Only the time of a server on another machine tells: a local one shares the clock.
        server, elsewhere = await database.one(_SERVER_TIME) or (0, False)
        agrees = bool(elsewhere) and abs(server - now) <= _LARGEST_DIFFERENCE
    return await database.write(
        lambda transaction: _advance_clock(transaction, now, last, agrees=agrees)
    )


def _advance_clock(
    transaction: Transaction, now: int, last: int | None, *, agrees: bool
) -> tuple[int, RetentionClock]:
    # An operator may confirm it at this moment.
    row = (
        transaction.one(f"{_READ_CLOCK} FOR UPDATE") or transaction.one(_FIRST_CLOCK) or (now, None)
    )
    time, clock = decide_retention_clock(now, row[0], last, agrees=agrees)
    _store_clock(transaction, clock)
    return time, clock


def decide_retention_clock(
    now: int, trusted_at: int, last: int | None, *, agrees: bool
) -> tuple[int, RetentionClock]:
    """The times to store, and the clock; `agrees`: another machine has the time `now`."""
    if agrees:
        return now, RetentionClock(now)
    if now > trusted_at + LARGEST_LEAP:
        return trusted_at, RetentionClock(trusted_at, now)
    if now < trusted_at:
        # The earlier time deletes less, whichever is right.
        return now, RetentionClock(trusted_at)
    time = min(now, trusted_at + _CLOCK_STEP) if last == trusted_at else now
    return time, RetentionClock(time)


def confirm_retention_clock(transaction: Transaction, now: int) -> RetentionClock:
    """Trust the clock from now on; returns the previous state."""
    row = (
        transaction.one(f"{_READ_CLOCK} FOR UPDATE") or transaction.one(_FIRST_CLOCK) or (now, None)
    )
    _store_clock(transaction, RetentionClock(now))
    return RetentionClock(*row)


def _store_clock(transaction: Transaction, clock: RetentionClock) -> None:
    transaction.run(_STORE_CLOCK, clock)


async def repair_clock_times(database: Database, now: int) -> bool:
    """Correct the times of active runs and pauses; returns true if any was wrong."""
    bounds = (now + LARGEST_LEAD, now + _LONGEST_PAUSE)
    if await database.one(_TO_COME, bounds) is None:
        return False

    def repair_times(transaction: Transaction) -> None:
        transaction.run(_NOT_WAITING, (now, now, now + LARGEST_LEAD))
        transaction.run(_NOT_PAUSED, (now, now + _LONGEST_PAUSE))
        transaction.run(_REPAIR_STARTS, (now, now, now + LARGEST_LEAD))

    await database.write(repair_times)
    return True


_TASK_RECORDS: Final = "SELECT part, succeeded_at, failed_at, error FROM housekeeping ORDER BY part"

_RECORD_SUCCESS: Final = """
INSERT INTO housekeeping (part, succeeded_at) VALUES (?, ?)
ON CONFLICT (part) DO UPDATE
SET succeeded_at = excluded.succeeded_at, failed_at = NULL, error = NULL
"""

_RECORD_FAILURE: Final = """
INSERT INTO housekeeping (part, failed_at, error) VALUES (?, ?, ?)
ON CONFLICT (part) DO UPDATE SET failed_at = excluded.failed_at, error = excluded.error
"""


_READ_CLOCK: Final = "SELECT trusted_at, refused_at FROM retention_clock WHERE id = 1"

# Before the first round: when the schema was made.
_FIRST_CLOCK: Final = "SELECT MAX(applied_at), NULL FROM schema_migrations"

_STORE_CLOCK: Final = """
INSERT INTO retention_clock (id, trusted_at, refused_at) VALUES (1, ?, ?)
ON CONFLICT (id) DO UPDATE SET trusted_at = excluded.trusted_at, refused_at = excluded.refused_at
"""

# Both addresses are NULL over a Unix socket.
_SERVER_TIME: Final = """
SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT),
    inet_server_addr() IS DISTINCT FROM inet_client_addr()
"""


_TO_COME = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM runs WHERE finished_at IS NULL AND started_at > ?)
    OR EXISTS (SELECT 1 FROM queues WHERE not_before > ?)
"""

_NOT_WAITING = """
UPDATE batches SET next_at = ? WHERE next_at > ? AND run_id IN (
    SELECT id FROM runs WHERE finished_at IS NULL AND started_at > ?
)
"""

_NOT_PAUSED = "UPDATE queues SET not_before = ? WHERE not_before > ?"

_REPAIR_STARTS = """
UPDATE runs SET deadline = deadline - started_at + ?, started_at = ?
WHERE finished_at IS NULL AND started_at > ?
"""

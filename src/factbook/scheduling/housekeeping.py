"""Status of each housekeeping task, shared by all processes."""

from collections.abc import Collection
from typing import Final, NamedTuple

from factbook.clock import MINUTE
from factbook.storage import Database, Transaction

# Between two rounds.
EVERY: Final = 10 * MINUTE
_LONGEST_ERROR: Final = 300


class PartRecord(NamedTuple):
    """Last success of a task and, if it has failed since, the time and reason of the failure.

    Times are in milliseconds since the epoch.
    """

    part: str
    succeeded_at: int | None
    failed_at: int | None
    error: str | None


async def records(database: Database) -> list[PartRecord]:
    """All tasks that have ever run, by name."""
    return [PartRecord(*row) for row in await database.all(_RECORDS)]


def note(transaction: Transaction, part: str, error: str | None, now: int) -> None:
    """Record the end of a task; `error` is the reason of a failure, None on success."""
    if error is None:
        transaction.run(_SUCCEEDED, (part, now))
    else:
        transaction.run(_FAILED, (part, now, error[:_LONGEST_ERROR]))


def forget_others(transaction: Transaction, parts: Collection[str]) -> None:
    """Delete the records of tasks that this release does not have."""
    transaction.run("DELETE FROM housekeeping WHERE NOT (part IN LIST(?))", (sorted(parts),))


_RECORDS: Final = "SELECT part, succeeded_at, failed_at, error FROM housekeeping ORDER BY part"

_SUCCEEDED: Final = """
INSERT INTO housekeeping (part, succeeded_at) VALUES (?, ?)
ON CONFLICT (part) DO UPDATE
SET succeeded_at = excluded.succeeded_at, failed_at = NULL, error = NULL
"""

_FAILED: Final = """
INSERT INTO housekeeping (part, failed_at, error) VALUES (?, ?, ?)
ON CONFLICT (part) DO UPDATE SET failed_at = excluded.failed_at, error = excluded.error
"""

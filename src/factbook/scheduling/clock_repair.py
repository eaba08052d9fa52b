"""Repair of future timestamps on runs and pauses after a clock was set back.

The clocks of machines agree within seconds, so a timestamp further ahead comes from a clock that
has been set back since. Unrepaired, work waiting for that time would wait until the clock reaches
it again, possibly for years.
"""

from typing import Final

from factbook.clock import DAY, MINUTE
from factbook.storage import Database, Transaction

# By how much the clocks of machines may differ.
AHEAD: Final = MINUTE
# No rate limit pauses a queue for longer.
_LONGEST_PAUSE: Final = DAY


async def repair(database: Database, now: int) -> bool:
    """Correct the times of active runs and pauses; returns true if any was wrong."""
    bounds = (now + AHEAD, now + _LONGEST_PAUSE)
    if await database.one(_TO_COME, bounds) is None:
        return False
    await database.write(lambda transaction: _repair(transaction, now))
    return True


def _repair(transaction: Transaction, now: int) -> None:
    transaction.run(_NOT_WAITING, (now, now, now + AHEAD))
    transaction.run(_NOT_PAUSED, (now, now + _LONGEST_PAUSE))
    transaction.run(_STARTED, (now, now, now + AHEAD))


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

_STARTED = """
UPDATE runs SET deadline = deadline - started_at + ?, started_at = ?
WHERE finished_at IS NULL AND started_at > ?
"""

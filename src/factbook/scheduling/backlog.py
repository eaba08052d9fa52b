"""Backlog of the run queue: the work that is there."""

from typing import NamedTuple

from factbook.storage import Database, Transaction


class Backlog(NamedTuple):
    """Batches begun, those given up, and those ready, with the time since the oldest waits."""

    under_way: int
    given_up: int
    waiting: int
    oldest_at: int | None


async def measure(database: Database, now: int) -> Backlog:
    """The work there is; batches of a paused queue are not counted as waiting."""
    row = await database.one(_BACKLOG, (now, now))
    assert row is not None
    return Backlog(*row)


def works(transaction: Transaction, source_id: str) -> list[str]:
    """The work of a source's batches that have not ended."""
    return [work for (work,) in transaction.all(_WORKS, (source_id,))]


_WORKS = """
SELECT b.work FROM batches b JOIN runs r ON r.id = b.run_id WHERE r.source_id = ?
"""

_BACKLOG = """
SELECT (SELECT COUNT(*) FROM batches WHERE holder <> ''),
    (SELECT COUNT(*) FROM given_up_batches), COUNT(*), MIN(b.next_at)
FROM batches b JOIN queues q ON q.name = b.queue AND q.not_before <= ?
WHERE b.next_at <= ? AND b.holder = ''
"""

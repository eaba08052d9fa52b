"""Durable run queue: pending work is rows, deleted in the transaction that stores the result.

A run has batches, each in a queue. A worker claims a batch for a limited time and renews that
claim; if the worker falls silent, another one takes the batch over. `finish` is called in the
transaction that stores the batch's result, and fails if the claim has been lost.

The content of a batch is opaque here. Times are milliseconds since the epoch, from the clocks of
the workers, which must agree within seconds.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from factbook.clock import MINUTE, SECOND
from factbook.scheduling import gaps
from factbook.scheduling.gaps import RunGap
from factbook.scheduling.runs import EndedRun, end
from factbook.storage import Database, Transaction, counters

# A worker that falls silent keeps its batches for so long.
HELD = 40 * SECOND
RENEWED_EVERY = 10 * SECOND
NEVER = 2**63 - 1
# A run that started later than that did so by a clock that was set back since.
_AHEAD = MINUTE


class LostBatchError(Exception):
    """Loss of the batch to another worker: its results must not be stored."""


class Queue(NamedTuple):
    """A queue of batches; at most `at_once` of them are in progress, over all workers."""

    name: str
    at_once: int = 1


class RunOrder(NamedTuple):
    """A request for a run. `whole`: it covers every entity that the source is about."""

    source_id: str
    queue: Queue
    works: Sequence[str]
    reason: str
    whole: bool
    deadline: int
    entities: int
    skipped: int = 0
    failed: int = 0
    error: str | None = None
    gaps: Mapping[RunGap, int] = MappingProxyType({})


class Begun(NamedTuple):
    """A created run, and its end if there was nothing to do."""

    run_id: int
    ended: EndedRun | None
    deadline: int


class Batch(NamedTuple):
    """A batch claimed by `holder`, for the `attempts`-th time.

    Its queue is `paused` if a rate limit stops the run from continuing, even past its deadline.
    """

    run_id: int
    number: int
    source_id: str
    queue: str
    work: str
    attempts: int
    deadline: int
    paused: bool
    holder: str


class BatchFigures(NamedTuple):
    """The figures of a batch, summed up for a run. Skipped targets were not requested."""

    covered: int = 0
    failed: int = 0
    incomplete: int = 0
    skipped: int = 0
    calls: int = 0
    rate_limit_left: int | None = None
    gaps: Mapping[RunGap, int] = MappingProxyType({})


def enqueue(
    transaction: Transaction, order: RunOrder, now: int, *, since: int = NEVER
) -> Begun | None:
    """Create a run with one batch per item of work.

    Creates nothing and returns None if the order is for everything and such a run of its source is
    in progress or was started at or after `since`.
    """
    if order.whole:
        transaction.lock(f"runs {order.source_id}")
        if transaction.one(_IN_THE_WAY, (order.source_id, order.source_id, since, now + _AHEAD)):
            return None
    [run_id] = counters.take(transaction, "run")
    count = len(order.works)
    names = (order.source_id, int(order.whole), order.reason)
    times = (now, order.deadline)
    numbers = (count, order.entities, order.skipped, order.failed)
    transaction.run(_ADD_RUN, (run_id, *names, *times, *numbers, order.error))
    gaps.add(transaction, run_id, order.gaps)
    transaction.run(_ADD_QUEUE, order.queue)
    _add(transaction, run_id, order.queue.name, 0, [(work, 0, now) for work in order.works])
    return Begun(run_id, None if count else end(transaction, run_id, now), order.deadline)


async def anything(database: Database, now: int) -> bool:
    """Return true if a batch waits for a worker; cheaper than a claim without result."""
    return await database.one(_ANYTHING, (now, now)) is not None


class Backlog(NamedTuple):
    """Batches in progress, and those ready for a worker, with the time since the oldest waits."""

    under_way: int
    waiting: int
    oldest_at: int | None


async def backlog(database: Database, now: int) -> Backlog:
    """The work for workers; batches of a paused queue are not counted as waiting."""
    row = await database.one(_BACKLOG, (now, now, now, now))
    assert row is not None
    return Backlog(*row)


def claim(
    transaction: Transaction, holder: str, source_ids: Sequence[str], limit: int, now: int
) -> list[Batch]:
    """Claim up to `limit` batches of these sources for `holder`, for a limited time.

    Queues take turns. From a full or paused queue only batches past their run's deadline are
    claimed, in order to give them up.
    """
    # One that is lost in a crash only frees the batches; nobody else waits for the disk.
    transaction.relax()
    transaction.lock("batches")
    found: list[Batch] = []
    for queue, free, paused in transaction.all(_QUEUES, (now, now, now, now)):
        wanted, overdue = limit - len(found), paused or free <= 0
        if wanted <= 0:
            break
        rows = transaction.all(
            _OVERDUE if overdue else _READY,
            (queue, list(source_ids), now, now, wanted if overdue else min(wanted, free)),
        )
        found += [Batch._make((*row, bool(paused), holder)) for row in rows]
        if rows:
            transaction.run("UPDATE queues SET served_at = ? WHERE name = ?", (now, queue))
    transaction.many(_CLAIM, [(holder, now + HELD, one.run_id, one.number) for one in found])
    return found


def renew(transaction: Transaction, batches: Iterable[Batch], now: int) -> list[Batch]:
    """Extend the claims on the batches; returns those that the holder has lost."""
    keys = [(batch, now + HELD, *_key(batch)) for batch in batches]
    return [batch for batch, *key in keys if transaction.run(_RENEW, key) == 0]


def release(transaction: Transaction, holder: str) -> None:
    """Release the holder's batches at once, as if they had never been claimed."""
    transaction.run(_RELEASE, (holder,))


def finish(
    transaction: Transaction,
    batch: Batch,
    figures: BatchFigures,
    now: int,
    *,
    left: Sequence[str] = (),
    next_at: int = 0,
    attempts: int | None = None,
) -> EndedRun | None:
    """Remove the batch from its queue; work that is `left` is queued again for `next_at`.

    That work keeps the batch's number of attempts unless `attempts` is given. Returns the end of
    the run if this was its last batch. Raises LostBatchError if the holder has lost the batch.
    """
    if transaction.run(_DONE, _key(batch)) != 1:
        raise LostBatchError(batch)
    # Locks the run, so that of two batches that end at once the second sees the first gone.
    row = transaction.one(_COUNT, (figures.skipped, *figures[:-1], len(left), batch.run_id))
    if row is None:
        raise LostBatchError(batch)
    gaps.add(transaction, batch.run_id, figures.gaps)
    rest = [(work, batch.attempts if attempts is None else attempts, next_at) for work in left]
    _add(transaction, batch.run_id, batch.queue, row[0] - len(left), rest)
    return end(transaction, batch.run_id, now)


def pause(transaction: Transaction, queue: str, until: int) -> None:
    """Start no batch of the queue before `until`."""
    transaction.run(_PAUSE, (until, queue, until))


def _key(batch: Batch) -> tuple[int, int, str, int]:
    # The number of attempts tells two claims of one worker apart.
    return batch.run_id, batch.number, batch.holder, batch.attempts


def _add(
    transaction: Transaction,
    run_id: int,
    queue: str,
    first: int,
    works: Sequence[tuple[str, int, int]],
) -> None:
    if works:
        rows = ((run_id, number, queue, *work, "", 0) for number, work in enumerate(works, first))
        transaction.insert("batches", _COLUMNS, rows)


_COLUMNS = "run_id", "number", "queue", "work", "attempts", "next_at", "holder", "held_until"

_IN_THE_WAY = """
SELECT 1 FROM runs WHERE source_id = ? AND whole = 1 AND finished_at IS NULL
UNION ALL
SELECT 1 FROM (
    SELECT started_at FROM runs WHERE source_id = ? AND whole = 1 ORDER BY id DESC LIMIT 1
) newest WHERE started_at >= ? AND started_at <= ?
LIMIT 1
"""

_ADD_RUN = """
INSERT INTO runs (
    id, source_id, whole, reason, started_at, deadline, batches, entities, skipped, failed,
    error, covered, calls
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)
"""

_ADD_QUEUE = """
INSERT INTO queues (name, at_once, not_before, served_at) VALUES (?, ?, 0, 0)
ON CONFLICT (name) DO UPDATE SET at_once = excluded.at_once
WHERE queues.at_once <> excluded.at_once
"""

_ANYTHING = "SELECT 1 FROM batches WHERE next_at <= ? AND held_until <= ? LIMIT 1"

_BACKLOG = """
SELECT (SELECT COUNT(*) FROM batches WHERE held_until > ?), COUNT(*), MIN(b.next_at)
FROM batches b JOIN queues q ON q.name = b.queue AND q.not_before <= ?
WHERE b.next_at <= ? AND b.held_until <= ?
"""

# Where something waits, and how much more may be under way.
_QUEUES = """
SELECT q.name, q.at_once - (
    SELECT COUNT(*) FROM batches h WHERE h.queue = q.name AND h.held_until > ?
), CASE WHEN q.not_before > ? THEN 1 ELSE 0 END FROM queues q WHERE EXISTS (
    SELECT 1 FROM batches b WHERE b.queue = q.name AND b.next_at <= ? AND b.held_until <= ?
) ORDER BY q.served_at, q.name
"""

# In the order of the fields of Batch.
_WAITING = """
SELECT b.run_id, b.number, r.source_id, b.queue, b.work, b.attempts + 1, r.deadline
FROM batches b JOIN runs r ON r.id = b.run_id
WHERE b.queue = ? AND r.source_id IN LIST(?) AND {due} AND b.held_until <= ?
ORDER BY r.whole, b.run_id, b.number LIMIT ?
"""
# What somebody asked for comes before what only a cadence wants.
_READY = _WAITING.format(due="b.next_at <= ?")
_OVERDUE = _WAITING.format(due="r.deadline <= ?")

_CLAIM = """
UPDATE batches SET holder = ?, held_until = ?, attempts = attempts + 1
WHERE run_id = ? AND number = ?
"""

_MINE = "run_id = ? AND number = ? AND holder = ? AND attempts = ?"

_RENEW = f"UPDATE batches SET held_until = ? WHERE {_MINE}"

_RELEASE = """
UPDATE batches SET holder = '', held_until = 0, attempts = attempts - 1 WHERE holder = ?
"""

_DONE = f"DELETE FROM batches WHERE {_MINE}"

_COUNT = """
UPDATE runs SET entities = entities - ?, covered = covered + ?, failed = failed + ?,
    incomplete = incomplete + ?, skipped = skipped + ?, calls = calls + ?,
    rate_limit_left = COALESCE(?, rate_limit_left), batches = batches + ?
WHERE id = ? RETURNING batches
"""

_PAUSE = "UPDATE queues SET not_before = ? WHERE name = ? AND not_before < ?"

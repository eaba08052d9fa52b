"""Durable run queue: pending work is rows, deleted in the transaction that stores the result.

A run has batches, each in a queue. Whoever deletes the row of a batch stores its result: `finish`
is called in that transaction, and fails if somebody else was first. So nothing is stored twice,
whoever works on a batch. Which process does is not decided here (`leadership`).

The content of a batch is opaque here. Times are milliseconds since the epoch.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from factbook.clock import MINUTE
from factbook.scheduling import gaps
from factbook.scheduling.gaps import RunGap
from factbook.scheduling.runs import EndedRun, end
from factbook.storage import Database, Transaction, counters

NEVER = 2**63 - 1
# A run that started later than that did so by a clock that was set back since.
_AHEAD = MINUTE


class LostBatchError(Exception):
    """End of the batch by somebody else: its results must not be stored."""


class Queue(NamedTuple):
    """A queue of batches; at most `at_once` of them are in progress."""

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
    """A batch that was begun for the `attempts`-th time.

    Its queue is `paused` if a rate limit stops the run from continuing, even past its deadline. It
    is a `suspect` if it was begun before by a process that never ended it.
    """

    run_id: int
    number: int
    source_id: str
    queue: str
    work: str
    attempts: int
    deadline: int
    paused: bool
    suspect: bool


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


async def anything(database: Database, beside: int, now: int) -> bool:
    """Return true if more than `beside` batches may be begun; cheaper than to take nothing."""
    row = await database.one(_ANYTHING, (now, beside + 1))
    return row is not None and row[0] > beside


class Backlog(NamedTuple):
    """Batches begun, and those ready to be, with the time since the oldest waits."""

    under_way: int
    waiting: int
    oldest_at: int | None


async def backlog(database: Database, now: int) -> Backlog:
    """The work there is; batches of a paused queue are not counted as waiting."""
    row = await database.one(_BACKLOG, (now, now))
    assert row is not None
    return Backlog(*row)


def take(
    transaction: Transaction,
    holder: str,
    source_ids: Sequence[str],
    held: Collection[Batch],
    limit: int,
    now: int,
) -> list[Batch]:
    """Begin up to `limit` batches of these sources, beside those that the process holds.

    Queues take turns. From a full or paused queue only batches past their run's deadline are taken,
    in order to give them up. Suspects come last and one at a time: of several, only one may be what
    kills the process.
    """
    # One that is lost in a crash only loses the count of an attempt; nobody waits for the disk.
    transaction.relax()
    found: list[Batch] = []
    busy, suspects = Counter(one.queue for one in held), any(one.suspect for one in held)
    keys = {one[:2] for one in held}
    for queue, at_once in transaction.all(_QUEUES, (now,)):
        wanted, free = limit - len(found), at_once - busy[queue]
        if wanted <= 0:
            break
        most = min(wanted, free) if free > 0 else wanted
        bounds = (now if free > 0 else _OVERDUE, now, now)
        rows = transaction.all(_READY, (now, queue, list(source_ids), *bounds, most + busy[queue]))
        waiting = [Batch(*row) for row in rows if row[:2] not in keys]
        fresh = [one for one in waiting if not one.suspect]
        if not suspects and len(fresh) < most:
            fresh += [one for one in waiting if one.suspect][:1]
            suspects = fresh[-1:] != [] and fresh[-1].suspect
        if fresh:
            transaction.run("UPDATE queues SET served_at = ? WHERE name = ?", (now, queue))
        found += fresh[:most]
    transaction.many(_BEGIN, [(holder, one.attempts, one.run_id, one.number) for one in found])
    return found


def release(transaction: Transaction, holder: str) -> None:
    """Release the holder's batches at once, as if they had never been begun."""
    transaction.run(_RELEASE, (holder,))


def postpone(transaction: Transaction, batch: Batch, until: int) -> None:
    """Begin the batch again at that time, after an attempt that failed unexpectedly."""
    transaction.run(_POSTPONE, (until, batch.run_id, batch.number))


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
    the run if this was its last batch. Raises LostBatchError if the batch has ended before.
    """
    if transaction.run(_DONE, (batch.run_id, batch.number)) != 1:
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

_ANYTHING = "SELECT COUNT(*) FROM (SELECT 1 FROM batches WHERE next_at <= ? LIMIT ?) waiting"

_BACKLOG = """
SELECT (SELECT COUNT(*) FROM batches WHERE holder <> ''), COUNT(*), MIN(b.next_at)
FROM batches b JOIN queues q ON q.name = b.queue AND q.not_before <= ?
WHERE b.next_at <= ? AND b.holder = ''
"""

_QUEUES = """
SELECT q.name, q.at_once FROM queues q
WHERE EXISTS (SELECT 1 FROM batches b WHERE b.queue = q.name AND b.next_at <= ?)
ORDER BY q.served_at, q.name
"""

# Earlier than anything is due.
_OVERDUE = -1

# In the order of the fields of Batch. Suspects come last; then what somebody asked for comes before
# what only a cadence wants.
_READY = """
SELECT b.run_id, b.number, r.source_id, b.queue, b.work, b.attempts + 1, r.deadline,
    CASE WHEN q.not_before > ? THEN 1 ELSE 0 END, CASE WHEN b.holder = '' THEN 0 ELSE 1 END
FROM queues q JOIN batches b ON b.queue = q.name JOIN runs r ON r.id = b.run_id
WHERE q.name = ? AND r.source_id IN LIST(?)
    AND (b.next_at <= ? AND q.not_before <= ? OR r.deadline <= ?)
ORDER BY CASE WHEN b.holder = '' THEN 0 ELSE b.attempts END, r.whole, b.run_id, b.number LIMIT ?
"""

_BEGIN = "UPDATE batches SET holder = ?, attempts = ? WHERE run_id = ? AND number = ?"

_RELEASE = "UPDATE batches SET holder = '', attempts = attempts - 1 WHERE holder = ?"

_POSTPONE = "UPDATE batches SET holder = '', next_at = ? WHERE run_id = ? AND number = ?"

_DONE = "DELETE FROM batches WHERE run_id = ? AND number = ?"

_COUNT = """
UPDATE runs SET entities = entities - ?, covered = covered + ?, failed = failed + ?,
    incomplete = incomplete + ?, skipped = skipped + ?, calls = calls + ?,
    rate_limit_left = COALESCE(?, rate_limit_left), batches = batches + ?
WHERE id = ? RETURNING batches
"""

_PAUSE = "UPDATE queues SET not_before = ? WHERE name = ? AND not_before < ?"

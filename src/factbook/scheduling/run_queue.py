"""Durable run queue: pending work is rows, deleted in the transaction that stores the result.

A run has batches, each in a queue. A batch's row is deleted in the transaction that stores its
result: `finish_batch` fails if another process was first, so results are stored only once.
`scheduling.lease` decides which process works on batches.

The content of a batch is opaque here. Times are milliseconds since the epoch.
"""

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from factbook.clock import MINUTE
from factbook.scheduling import runs
from factbook.scheduling.runs import EndedRun, RunGap, end_run
from factbook.storage import Database, Transaction
from factbook.storage.database import take_numbers

NEVER = 2**63 - 1
# A later start comes from a clock that was set back since.
_CLOCK_TOLERANCE = MINUTE


class LostBatchError(Exception):
    """Another process ended the batch: its results must not be stored."""


class Queue(NamedTuple):
    """A queue of batches; `at_once` is the number of lanes."""

    name: str
    at_once: int = 1


class Lane(NamedTuple):
    """A lane of a queue, with every batch whose number modulo `places` is `place`.

    The batches of a lane are worked on one after another.
    """

    queue: str
    places: int
    place: int


class RunOrder(NamedTuple):
    """A request for a run. `whole`: the run covers every entity of the source."""

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
    """A batch in its `attempts`-th attempt.

    `paused`: a rate limit stops the queue and the run, even past its deadline. `suspect`: a
    process began the batch before and never ended it.
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


def enqueue_run(
    transaction: Transaction, order: RunOrder, now: int, *, since: int = NEVER
) -> Begun | None:
    """Create a run with one batch per item of work.

    Creates nothing and returns None if the order is for all entities and such a run of the source
    is in progress or was started at or after `since`.
    """
    if order.whole:
        transaction.lock(f"runs {order.source_id}")
        if transaction.one(
            _IN_THE_WAY, (order.source_id, order.source_id, since, now + _CLOCK_TOLERANCE)
        ):
            return None
    [run_id] = take_numbers(transaction, "run")
    count = len(order.works)
    names = (order.source_id, int(order.whole), order.reason)
    times = (now, order.deadline)
    numbers = (count, order.entities, order.skipped, order.failed)
    transaction.run(_ADD_RUN, (run_id, *names, *times, *numbers, order.error))
    runs.add_gaps(transaction, run_id, order.gaps)
    transaction.run(_ADD_QUEUE, order.queue)
    kind = order.queue.name, int(order.whole)
    _add_batches(transaction, run_id, kind, 0, [(work, 0, now) for work in order.works])
    return Begun(run_id, None if count else end_run(transaction, run_id, now), order.deadline)


async def list_ready_lanes(database: Database, source_ids: Container[str], now: int) -> list[Lane]:
    """The lanes in which a batch of these sources is ready."""
    # Usually none is ready, and passing a thousand sources takes longer than the query.
    rows = await database.all(_READY_LANES, (now, now, now))
    return list(dict.fromkeys(Lane(*lane) for source_id, *lane in rows if source_id in source_ids))


def take_batch(
    transaction: Transaction,
    holder: str,
    source_ids: Sequence[str],
    lane: Lane,
    now: int,
    *,
    suspects: bool = True,
    alone: bool = True,
) -> Batch | None:
    """Begin the next batch of the lane; None if none is ready, or only suspects are.

    Batches past their run's deadline are taken even while a rate limit pauses the queue, to abandon
    them. Suspects come last. Locked batches are skipped without waiting, so other writes may come
    earlier in the transaction (`alone` is then false).
    """
    if alone:
        # A crash only loses the count of an attempt; so don't wait for the disk.
        transaction.relax()
    values = now, *lane, list(source_ids), now, now, now
    row = transaction.one(_NEXT_BATCH, values)
    if row is None and suspects:
        row = transaction.one(_NEXT_SUSPECT, values)
    if row is None:
        return None
    batch = Batch._make((*row[:-2], bool(row[-2]), bool(row[-1])))
    transaction.run(_BEGIN_BATCH, (holder, batch.attempts, batch.run_id, batch.number))
    return batch


def release_batches(transaction: Transaction, holder: str) -> None:
    """Release the holder's batches at once, as if they had never been begun."""
    transaction.run(_RELEASE_BATCHES, (holder,))


def postpone_batch(transaction: Transaction, batch: Batch, until: int) -> None:
    """Begin the batch again at that time, after an attempt that failed unexpectedly."""
    transaction.run(_POSTPONE_BATCH, (until, batch.run_id, batch.number))


def finish_batch(
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
    if transaction.run(_DELETE_BATCH, (batch.run_id, batch.number)) != 1:
        raise LostBatchError(batch)
    # Locks the run: of two batches that end at once, the second sees the first gone.
    row = transaction.one(_COUNT_BATCH, (figures.skipped, *figures[:-1], len(left), batch.run_id))
    if row is None:
        raise LostBatchError(batch)
    made, whole = row
    runs.add_gaps(transaction, batch.run_id, figures.gaps)
    rest = [(work, batch.attempts if attempts is None else attempts, next_at) for work in left]
    _add_batches(transaction, batch.run_id, (batch.queue, whole), made - len(left), rest)
    return end_run(transaction, batch.run_id, now)


def pause_queue(transaction: Transaction, queue: str, until: int) -> None:
    """Start no batch of the queue before `until`."""
    transaction.run(_PAUSE_QUEUE, (until, queue, until))


def _add_batches(
    transaction: Transaction,
    run_id: int,
    kind: tuple[str, int],
    first: int,
    works: Sequence[tuple[str, int, int]],
) -> None:
    """Queue work items, as (work, attempts, time), for a run; `kind` is (queue name, whole)."""
    if works:
        rows = ((run_id, number, *kind, *work, "", 0) for number, work in enumerate(works, first))
        transaction.insert("batches", _BATCH_COLUMNS, rows)


class Backlog(NamedTuple):
    """Batches begun, abandoned and ready, with the time since which the oldest waits."""

    under_way: int
    given_up: int
    waiting: int
    oldest_at: int | None


async def measure_backlog(database: Database, now: int) -> Backlog:
    """The current backlog; batches of a paused queue don't count as waiting."""
    row = await database.one(_BACKLOG, (now, now))
    assert row is not None
    return Backlog(*row)


def list_unfinished_work(transaction: Transaction, source_id: str) -> list[str]:
    """The work of a source's batches that have not ended."""
    return [work for (work,) in transaction.all(_UNFINISHED_WORK, (source_id,))]


_BATCH_COLUMNS = (
    "run_id",
    "number",
    "queue",
    "whole",
    "work",
    "attempts",
    "next_at",
    "holder",
    "held_until",
)

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

# In the order of the fields of Batch.
_READY_BATCHES = """
SELECT b.run_id, b.number, r.source_id, b.queue, b.work, b.attempts + 1, r.deadline,
    CASE WHEN q.not_before > ? THEN 1 ELSE 0 END, CASE WHEN b.holder = '' THEN 0 ELSE 1 END
FROM queues q JOIN batches b ON b.queue = q.name JOIN runs r ON r.id = b.run_id
WHERE q.name = ? AND b.number % ? = ? AND r.source_id IN LIST(?)
    AND (b.next_at <= ? AND q.not_before <= ? OR r.deadline <= ?)
"""

# Requested runs come before scheduled ones. An index has this order.
_NEXT_BATCH = f"""
{_READY_BATCHES} AND b.holder = '' ORDER BY b.whole, b.run_id, b.number LIMIT 1
FOR UPDATE OF b SKIP LOCKED
"""

_NEXT_SUSPECT = f"""
{_READY_BATCHES} AND b.holder <> '' ORDER BY b.attempts, b.whole, b.run_id, b.number LIMIT 1
FOR UPDATE OF b SKIP LOCKED
"""

_READY_LANES = """
SELECT DISTINCT r.source_id, q.name, q.at_once, b.number % q.at_once
FROM queues q JOIN batches b ON b.queue = q.name JOIN runs r ON r.id = b.run_id
WHERE b.next_at <= ? AND q.not_before <= ? OR r.deadline <= ?
ORDER BY q.name
"""

_BEGIN_BATCH = "UPDATE batches SET holder = ?, attempts = ? WHERE run_id = ? AND number = ?"

_RELEASE_BATCHES = "UPDATE batches SET holder = '', attempts = attempts - 1 WHERE holder = ?"

_POSTPONE_BATCH = "UPDATE batches SET holder = '', next_at = ? WHERE run_id = ? AND number = ?"

_DELETE_BATCH = "DELETE FROM batches WHERE run_id = ? AND number = ?"

_COUNT_BATCH = """
UPDATE runs SET entities = entities - ?, covered = covered + ?, failed = failed + ?,
    incomplete = incomplete + ?, skipped = skipped + ?, calls = calls + ?,
    rate_limit_left = COALESCE(?, rate_limit_left), batches = batches + ?
WHERE id = ? RETURNING batches, whole
"""

_PAUSE_QUEUE = "UPDATE queues SET not_before = ? WHERE name = ? AND not_before < ?"


_UNFINISHED_WORK = """
SELECT b.work FROM batches b JOIN runs r ON r.id = b.run_id WHERE r.source_id = ?
"""

_BACKLOG = """
SELECT (SELECT COUNT(*) FROM batches WHERE holder <> ''),
    (SELECT COUNT(*) FROM given_up_batches), COUNT(*), MIN(b.next_at)
FROM batches b JOIN queues q ON q.name = b.queue AND q.not_before <= ?
WHERE b.next_at <= ? AND b.holder = ''
"""

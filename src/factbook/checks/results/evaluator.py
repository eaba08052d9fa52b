"""Evaluation beside writes, in whichever process: of what is published, and of what is due.

States that change as time passes are evaluated when they are due. A sweep evaluates every entity
anew, in portions, and compares counts with what they count.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice
from typing import Final

import msgspec
import structlog

from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller
from factbook.catalog.store import stored_entities
from factbook.checks.definitions import exemption_store, publications
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.definitions.exemption_store import Exemption
from factbook.checks.results import (
    count_store,
    entity_evaluation,
    incremental,
    level_store,
    publication,
    state_store,
)
from factbook.checks.results.check_set import CheckCache, CheckSet
from factbook.checks.results.count_store import CountDeltas
from factbook.checks.results.incremental import Task
from factbook.checks.results.level_store import LevelDeltas
from factbook.checks.results.publication import BatchSize, DueBatchSize
from factbook.clock import DAY, MINUTE, Clock
from factbook.storage import Database, Transaction, counters

log = structlog.get_logger("factbook.checks")
# Held by the process that does this, for one transaction.
_DUE_LOCK: Final = {"checks due": False}
# Owners whose counts are compared at once.
_REPAIRED_AT_ONCE: Final = 50
_BEGUN: Final = "check sweep"
_POSITION: Final = "checks swept up to"
# Held by the process that does a portion, for one transaction.
_SWEEP_LOCK: Final = {"check sweep": False}
# Evaluations and entities of a portion, so that no other write waits long.
_EVALUATIONS: Final = 20_000
_LEAST_SWEPT: Final = 20
_MOST_SWEPT: Final = 500
# By then a process of the release before has ended whose place this one takes.
_AFTER_START: Final = MINUTE
# The last entity, of a sweep that has reached all.
_END_OF_SWEEP: Final = 2**63 - 1
# In place of a position, if no sweep is under way.
_NOTHING_SWEPT: Final = -1
_BY_SWEEP: Final = msgspec.json.encode({"sweep": True}).decode()
# A state may be so late that changes as time passes.
_DUE_EVERY: Final = MINUTE
# The actor of what happens because time passes.
_SELF: Final = "factbook"


async def evaluate_due(database: Database, clock: Clock) -> int:
    """Evaluate what is due, in batches; returns the number of entities."""
    cache, paced = database.remembered.of(CheckCache), database.remembered.of(DueBatchSize)
    count, has_more = 0, True
    while has_more:
        size = paced.entities
        batch = partial(_evaluate_due_batch, cache=cache, paced=paced, size=size, now=clock())
        found, has_more = await database.write(batch)
        count += found
    return count


def _evaluate_due_batch(
    transaction: Transaction, cache: CheckCache, paced: BatchSize, size: int, now: int
) -> tuple[int, bool]:
    """Evaluate the entities due first; returns their number, and true if more are due."""
    if not transaction.try_lock_each(_DUE_LOCK):
        return 0, False
    publications.share_definitions(transaction)
    began = time.monotonic()
    ids = state_store.list_due_states(transaction, now, size)
    leaves_some = False
    if ids:
        known = cache.current(transaction)
        task = incremental.make_time_task(known, ids)
        leaves_some = incremental.update_states(transaction, known, [task], now).leaves_some
    if len(ids) == size:
        paced.note(size, time.monotonic() - began)
    return len(ids), leaves_some or len(ids) == size


Repair = Callable[[Database], Awaitable[bool]]


async def list_repairs(database: Database) -> list[Repair]:
    """The pieces of a comparison of all counts; each returns true if it had to repair some."""
    owners = [owner for (owner,) in await database.search(_COUNTED_OWNERS)]
    found: list[Repair] = [
        partial(repair_counts, owners=owners[start : start + _REPAIRED_AT_ONCE])
        for start in range(0, len(owners), _REPAIRED_AT_ONCE)
    ]
    return found + [
        partial(repair_label_counts, block=block)
        for block in await level_store.list_label_blocks(database)
    ]


async def repair_counts(database: Database, owners: Sequence[str]) -> bool:
    """Repair the counts of these owners; returns false, and writes nothing, if they are right."""
    # A definition may change between statements: what is found here is only suspected.
    slots, level_slots = await database.all(_CHECK_SLOTS), await database.all(_LEVEL_SLOTS)
    states = await database.search(count_store.COUNT_COMPARISON, (list(owners), list(owners)))
    levels = await database.search(level_store.LEVEL_COMPARISON, (list(owners), list(owners)))
    found = (
        count_store.find_missing_counts(states, _split_numbers(slots)),
        level_store.find_missing_level_counts(levels, _split_numbers(level_slots)),
    )
    if not any(found):
        return False
    return await database.write(lambda transaction: _repair_counts_within(transaction, owners))


def _repair_counts_within(transaction: Transaction, owners: Sequence[str]) -> bool:
    publications.share_definitions(transaction)
    states = transaction.all(count_store.COUNT_COMPARISON, (list(owners), list(owners)))
    levels = transaction.all(level_store.LEVEL_COMPARISON, (list(owners), list(owners)))
    deltas: tuple[CountDeltas, LevelDeltas] = (
        count_store.find_missing_counts(states, _split_numbers(transaction.all(_CHECK_SLOTS))),
        level_store.find_missing_level_counts(
            levels, _split_numbers(transaction.all(_LEVEL_SLOTS))
        ),
    )
    for one in deltas:
        one.write(transaction)
    is_repaired = any(deltas)
    if is_repaired:
        log.warning("checks.recounted", first=owners[0], last=owners[-1])
    return is_repaired


async def repair_label_counts(database: Database, block: int) -> bool:
    """Repair the counts by label of a block of entities; see `repair_counts`."""
    slots = _split_numbers(await database.all(_LEVEL_SLOTS))
    rows = await database.search(
        level_store.LABEL_COMPARISON, level_store.make_label_comparison(block)
    )
    if not level_store.find_missing_label_counts(rows, block, slots):
        return False
    return await database.write(partial(_repair_label_counts_within, block=block))


def _repair_label_counts_within(transaction: Transaction, block: int) -> bool:
    publications.share_definitions(transaction)
    rows = transaction.all(level_store.LABEL_COMPARISON, level_store.make_label_comparison(block))
    slots = _split_numbers(transaction.all(_LEVEL_SLOTS))
    deltas = level_store.find_missing_label_counts(rows, block, slots)
    deltas.write(transaction)
    if deltas:
        log.warning("checks.recounted", block=block)
    return bool(deltas)


def _split_numbers(rows: Sequence[tuple[int, ...]]) -> list[int]:
    return [slot for (slot,) in rows]


class StateSweep:
    """The sweeps of a process: it begins one soon after its start, and whoever is first each day.

    A call of `tick` does one portion: how often it is called is the pace.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: int | None = None
        self._has_begun = False
        self._looked_at: int | None = None  # when there was nothing to do
        self._repairs: list[Repair] = []  # of counts that are left to be compared

    async def tick(self) -> bool:
        """Do the next portion; returns false if there is none to do here."""
        if self._repairs:
            await self._repairs.pop()(self._database)
            return True
        now = self._clock()
        if self._started_at is None:
            self._started_at = now
        begins = not self._has_begun and not 0 <= now - self._started_at < _AFTER_START
        if not begins and self._looked_at is not None and 0 <= now - self._looked_at < MINUTE:
            return False
        cache = self._database.remembered.of(CheckCache)
        position = await self._database.write(
            partial(_sweep_portion, cache=cache, now=now, begins=begins)
        )
        if position is None:
            return False
        self._has_begun = self._has_begun or begins
        if position == _END_OF_SWEEP:
            self._repairs = await list_repairs(self._database)
        self._looked_at = now if position == _NOTHING_SWEPT else None
        return position != _NOTHING_SWEPT

    async def finish(self) -> None:
        """Do all portions of the sweep that is under way or due."""
        while await self.tick():
            pass


def _sweep_portion(
    transaction: Transaction, cache: CheckCache, now: int, *, begins: bool
) -> int | None:
    """Evaluate the next entities; returns the last of them, None if another process does that."""
    if not transaction.try_lock_each(_SWEEP_LOCK):
        return None
    publications.share_definitions(transaction)
    after = counters.value_within(transaction, _POSITION)
    if begins or not 0 <= now - counters.value_within(transaction, _BEGUN) < DAY:
        after = 0
        counters.put(transaction, _BEGUN, now)
    if after == _END_OF_SWEEP:
        return _NOTHING_SWEPT
    known = cache.current(transaction)
    size = max(_LEAST_SWEPT, min(_MOST_SWEPT, _EVALUATIONS // max(1, len(known.checks))))
    ids = [] if known.is_empty else _list_ids_after(transaction, after, size)
    changed = _evaluate_portion(transaction, known, ids, now)
    if changed:
        log.info("checks.swept", entities=changed, first=ids[0], last=ids[-1])
    reached = ids[-1] if len(ids) == size else _END_OF_SWEEP
    counters.put(transaction, _POSITION, reached)
    return reached


def _list_ids_after(transaction: Transaction, after: int, size: int) -> list[int]:
    """The next ids of entities, and of those that are gone and have states or levels still."""
    found = merge(
        stored_entities.page_ids(transaction, after, size),
        state_store.list_state_ids_after(transaction, after, size),
        level_store.list_level_ids_after(transaction, after, size),
    )
    return [id_ for id_, _ in islice(groupby(found), size)]


def _evaluate_portion(
    transaction: Transaction, known: CheckSet, ids: Sequence[int], now: int
) -> int:
    reads = entity_evaluation.read_subjects_with_documents
    task = Task(known.everything, ids, _BY_SWEEP, reads=reads, has_dues=True)
    return incremental.update_states(transaction, known, [task], now).changed


_Step = Callable[[Transaction, int], list[Exemption]]


class Evaluation:
    """Evaluation that is left in a database; several processes may share the work."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._settled: int | None = None  # the revision after which nothing was left to publish
        self._due_at: int | None = None
        self._sweep = StateSweep(database, clock)

    async def tick(self) -> None:
        """Do what is left; a check published by any process is begun within a second."""
        revision = await check_store.revision(self._database)
        if revision == 0:
            return
        if revision != self._settled:
            await publication.finish_publications(self._database, self._clock)
            await publication.finish_gradings(self._database, self._clock)
            # Another process may do it, and be killed.
            self._settled = revision if await self._is_settled() else None
        now = self._clock()
        if self._due_at is None or not now < self._due_at <= now + _DUE_EVERY:
            self._due_at = now + _DUE_EVERY
            await evaluate_due(self._database, self._clock)
            await self._exempt()
            await publication.begin_due_gradings(self._database, self._clock)
        await self._sweep.tick()

    async def _is_settled(self) -> bool:
        database = self._database
        return await publication.are_checks_settled(
            database
        ) and await publication.are_scorecards_settled(database)

    async def _exempt(self) -> None:
        """Let exemptions begin and end, each step in a transaction that evaluates the entity."""
        for step in (
            exemption_store.begin_exemptions,
            exemption_store.announce_endings,
            self._expire,
        ):
            while await self._database.write(partial(self._step, step=step)):
                pass

    def _step(self, transaction: Transaction, step: _Step) -> list[Exemption]:
        changed = step(transaction, self._clock())
        transaction.evaluate_checks()
        return changed

    def _expire(self, transaction: Transaction, now: int) -> list[Exemption]:
        expired = exemption_store.expire_exemptions(transaction, now)
        entries = [AuditEntry("exemption.expire", one.id, one.render()) for one in expired]
        caller = Caller(_SELF, now)
        trail.append_all(transaction, [trail.record(caller, entry) for entry in entries])
        return expired


_CHECK_SLOTS = "SELECT slot FROM checks WHERE slot IS NOT NULL"

_LEVEL_SLOTS = "SELECT slot FROM scorecards WHERE slot IS NOT NULL"

_COUNTED_OWNERS = """
SELECT owner FROM check_states UNION SELECT owner FROM check_counts
UNION SELECT owner FROM scorecard_levels UNION SELECT owner FROM scorecard_counts
"""

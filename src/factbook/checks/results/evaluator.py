"""Background evaluation, in any process: pending versions, due states and sweeps.

A pending version is evaluated or graded for every entity, in batches short enough for other writes
to wait. States that change over time are evaluated when they are due. A sweep evaluates every
entity again, in portions, and repairs counts that don't match the states.
"""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.audit.trail import AuditEntry, Caller, append_records, make_record
from factbook.catalog.filters import Matcher
from factbook.catalog.store import stored_entities
from factbook.checks.definitions import definition_versions, exemption_store, publications
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.exemption_store import NOT_EXEMPT, Exemption
from factbook.checks.definitions.publications import LAST_PLACE, IdReads
from factbook.checks.results import entity_evaluation, incremental, level_store, state_store
from factbook.checks.results.entity_evaluation import CheckCache
from factbook.checks.results.incremental import Task, make_grading
from factbook.checks.results.level_store import GradedEntity, LevelDeltas, place_entity
from factbook.checks.results.state_store import (
    NO_PLACE,
    PLACES,
    ChangeRow,
    CountDeltas,
    CountRow,
    EntityStates,
)
from factbook.checks.state import NONE
from factbook.clock import DAY, MINUTE, Clock
from factbook.storage import Database, Transaction
from factbook.storage.database import put_counter, select_counter

log = structlog.get_logger("factbook.checks")
# For one transaction.
BATCH_SECONDS: Final = 0.5
_FIRST_BATCH: Final = 200
_LEAST_BATCH: Final = 5
_MOST_BATCH: Final = 5_000
# Held for one transaction by the process that runs a batch.
_PUBLICATION_LOCK: Final = {"check publication": False}
# Evaluations per batch: other writes don't wait long.
_EVALUATIONS_OF_BATCH: Final = 100_000
_LEAST_EVALUATED: Final = 200
# With more filters, reading documents is faster than a query per filter.
_FEW_FILTERS: Final = 4
# Up to this many slots, picking single slots is faster than reading all states.
_FEW_SLOTS: Final = 8
_CLEARED: Final = 5_000
_PAGE_OF_STATES: Final = 5_000
_ENTITIES: Final = IdReads(stored_entities.page_ids, stored_entities.page_ids_among)
_STATES: Final = IdReads(state_store.list_state_ids_after, state_store.list_state_ids_among)
# Held for one transaction by the process that grades a batch.
_REGRADE_LOCK: Final = {"scorecard grading": False}
# The progress once all entities are graded.
_ALL_ENTITIES: Final = 2**63 - 1


class BatchSize:
    """The size of the next batch in entities, from the time that earlier batches took."""

    first = _FIRST_BATCH

    def __init__(self) -> None:
        self.entities = self.first

    def note(self, entities: int, seconds: float) -> None:
        """Record how long a batch took: the next one shrinks to fit, or at most doubles."""
        fits = int(entities * BATCH_SECONDS / max(seconds, 0.001))
        self.entities = max(_LEAST_BATCH, min(_MOST_BATCH, fits, 2 * max(entities, _LEAST_BATCH)))


class EvaluationBatchSize(BatchSize):
    """Batch size for publications."""


class CostlyBatchSize(BatchSize):
    """Batch size for checks with patterns or paths, whose time depends on the facts."""

    first = _LEAST_BATCH


class GradingBatchSize(BatchSize):
    """Batch size for full gradings."""


class DueBatchSize(BatchSize):
    """Batch size for due states."""


class StatePair(NamedTuple):
    """A check's current slot and its replacement; `before` is None for the first version."""

    check_id: str
    before: int | None
    after: int


class OwnedStates(NamedTuple):
    """The states of one owner's entities in these slots, entity by entity."""

    owner: str
    entity_ids: Sequence[int]
    states: bytes
    slots: Sequence[int]

    def counts(self, pair: StatePair) -> list[CountRow]:
        """The count row of the new slot, unless all counts are zero."""
        column = self._column(pair.after)
        numbers = [0, 0, 0, 0, 0]
        for value in set(column):
            if PLACES[value] != NO_PLACE:
                numbers[PLACES[value]] += column.count(value)
        passing, failing, undecided, exempt, inapplicable = numbers
        row = (pair.after, self.owner, passing, failing, undecided, exempt, inapplicable)
        return [row] if any(numbers) else []

    def changes(self, pair: StatePair, why: str) -> Iterator[ChangeRow]:
        """The changes of entities when the new slot replaces the current one."""
        if pair.before is None:
            return
        before, after = self._column(pair.before), self._column(pair.after)
        if before == after:
            return
        for entity_id, was, now in zip(self.entity_ids, before, after, strict=True):
            if was not in (now, NONE):
                yield pair.check_id, entity_id, was, now, why

    def _column(self, slot: int) -> bytes:
        return self.states[self.slots.index(slot) :: len(self.slots)]


def split_by_owner(
    pages: Iterable[Sequence[EntityStates]], slots: Sequence[int]
) -> Iterator[OwnedStates]:
    """Group pages of states, sorted by owner, into one item per owner."""
    owner, ids, gathered = "", list[int](), list[bytes]()
    for page in pages:
        for one in page:
            if one.owner != owner and ids:
                yield OwnedStates(owner, ids, b"".join(gathered), slots)
                ids, gathered = [], []
            owner = one.owner
            ids.append(one.entity_id)
            gathered.append(one.states)
    if ids:
        yield OwnedStates(owner, ids, b"".join(gathered), slots)


async def evaluate_pending(database: Database, clock: Clock) -> bool:
    """Do one batch of publication work; returns false if this process has none to do."""
    if await database.write(partial(_evaluate_batch, database=database, clock=clock)):
        return True
    if await database.write(partial(_put_checks_into_effect, clock=clock)):
        return True
    return await database.write(partial(_clear_retired, cache=database.remembered.of(CheckCache)))


async def finish_publications(database: Database, clock: Clock) -> None:
    """Do all publication work that no other process does."""
    while await evaluate_pending(database, clock):
        pass


async def are_checks_settled(database: Database) -> bool:
    """Return true if no publication is under way and no slot waits to be cleared."""
    return await database.one(_UNSETTLED_CHECKS) is None


def _evaluate_batch(transaction: Transaction, database: Database, clock: Clock) -> bool:
    """Evaluate pending versions for the next entities; returns false if none are left."""
    if not transaction.try_lock_each(_PUBLICATION_LOCK):
        return False
    publications.share_definitions(transaction)
    began = time.monotonic()
    places = check_store.progress(transaction)
    begun = {id_: place for id_, place in places.items() if place < LAST_PLACE}
    if not begun:
        return False
    known = database.remembered.of(CheckCache).current(transaction)
    after = min(begun.values())
    chosen = frozenset(id_ for id_, place in begun.items() if place == after)
    # Versions that are further along join at their own place.
    end = min((place for place in begun.values() if place > after), default=LAST_PLACE)
    selection = known.pending_of(chosen)
    is_costly = any(one.compiled.is_costly for one in selection.checks)
    paced = database.remembered.of(CostlyBatchSize if is_costly else EvaluationBatchSize)
    size = min(
        paced.entities,
        max(_LEAST_EVALUATED, _EVALUATIONS_OF_BATCH // max(1, len(selection.checks))),
    )
    some = publications.take_portion(transaction, _ENTITIES, after, size, end)
    fills = incremental.fits_slot_fill(selection)
    reads: entity_evaluation.Read = entity_evaluation.read_subjects_by_filters
    if selection.reads_entity or len(selection.filters) > _FEW_FILTERS:
        reads = entity_evaluation.read_subjects_with_documents
    task = Task(selection, some.ids, "", reads=reads, fills=fills)
    incremental.update_states(transaction, known, [task], clock(), may_leave=False)
    check_store.note_progress(transaction, sorted(chosen), some.place)
    if len(some.ids) == size:
        paced.note(size, time.monotonic() - began)
    return True


def _put_checks_into_effect(transaction: Transaction, clock: Clock) -> bool:
    """Put fully evaluated versions into effect; returns false if there are none."""
    if not transaction.try_lock_each(_PUBLICATION_LOCK):
        return False
    if LAST_PLACE not in check_store.progress(transaction).values():
        return False
    publications.lock_definitions(transaction)
    ready = check_store.ready(transaction)
    now = clock()
    _count_effects(transaction, ready, now)
    check_store.put_into_effect(transaction, ready, now)
    versions = [(one.id, one.newest_version) for one in ready]
    definition_versions.append_published(transaction, versions, now)
    log.info("check.published", checks=[one.id for one in ready])
    return bool(ready)


def _count_effects(transaction: Transaction, ready: Sequence[StoredCheck], now: int) -> None:
    """Count the states of versions that come into effect, and record the changes."""
    pairs = [StatePair(one.id, one.slot, one.pending_slot or 0) for one in ready]
    whys = {one.id: msgspec.json.encode({"version": one.pending_version}).decode() for one in ready}
    found = sorted({slot for pair in pairs for slot in (pair.before, pair.after) if slot})
    slots = found if len(found) <= _FEW_SLOTS else range(1, found[-1] + 1)
    if not slots:
        return
    for group in split_by_owner(_read_state_pages(transaction, slots), slots):
        counts, changes = list[CountRow](), list[ChangeRow]()
        for pair in pairs:
            counts += group.counts(pair)
            changes += group.changes(pair, whys[pair.check_id])
        state_store.add_counts(transaction, counts)
        state_store.append_changes(transaction, changes, now)


def _read_state_pages(
    transaction: Transaction, slots: Sequence[int]
) -> Iterator[list[EntityStates]]:
    place = ("", -1)
    while page := state_store.read_states_by_owner(transaction, place, _PAGE_OF_STATES, slots):
        yield page
        place = page[-1].owner, page[-1].entity_id


def _clear_retired(transaction: Transaction, cache: CheckCache) -> bool:
    """Clear the next bytes of retired slots; returns false if there are none."""
    if not transaction.try_lock_each(_PUBLICATION_LOCK):
        return False
    places = publications.list_retired_slots(transaction)
    if not places:
        return False
    publications.share_definitions(transaction)
    after, retired = min(places.values()), list(places)
    some = publications.take_portion(transaction, _STATES, after, _CLEARED, LAST_PLACE)
    if not state_store.lock_stored_states(transaction, some.ids):
        state_store.lock_states(transaction, some.ids)
    known = cache.current(transaction)
    if known.checks or known.counted:
        state_store.clear_slots(transaction, some.ids, retired)
    else:
        state_store.remove_states(transaction, some.ids)
    if some.is_last:
        publications.release_slots(transaction, retired)
        check_store.raise_revision(transaction)
    else:
        publications.note_cleared_slots(transaction, retired, some.place)
    return True


async def grade_pending(database: Database, clock: Clock) -> bool:
    """Grade one batch; returns false if this process has no grading to do."""
    cache, paced = database.remembered.of(CheckCache), database.remembered.of(GradingBatchSize)
    if await database.write(partial(_grade_batch, cache=cache, paced=paced, now=clock())):
        return True
    return await database.write(_put_gradings_into_effect)


async def finish_gradings(database: Database, clock: Clock) -> None:
    """Do all grading that no other process does."""
    while await grade_pending(database, clock):
        pass


async def are_scorecards_settled(database: Database) -> bool:
    """Return true if no full grading is under way."""
    return await database.one(_UNSETTLED_SCORECARDS) is None


async def begin_due_gradings(database: Database, clock: Clock) -> bool:
    """Start gradings for scorecards whose checks begin to count; true if there are any."""
    cache = database.remembered.of(CheckCache)
    if not await database.write(partial(_list_due_gradings, cache=cache, now=clock())):
        return False
    return await database.write(partial(_begin_due_within, cache=cache, now=clock()))


def _grade_batch(transaction: Transaction, cache: CheckCache, paced: BatchSize, now: int) -> bool:
    if not transaction.try_lock_each(_REGRADE_LOCK):
        return False
    publications.share_definitions(transaction)
    known = cache.current(transaction)
    grading = make_grading(transaction, known)
    after = definition_versions.read_grading_progress(transaction)
    if not grading.has_pending or after == _ALL_ENTITIES:
        return False
    transaction.lock(definition_versions.GRADING_LOCK)
    began, size = time.monotonic(), paced.entities
    ids = stored_entities.page_ids(transaction, after, size)
    reached = ids[-1] if len(ids) == size else _ALL_ENTITIES
    if ids:
        state_store.lock_states(transaction, ids)
    deltas = LevelDeltas()
    grading.update(
        transaction, _make_graded_entities(transaction, ids, now), now, deltas, reached=reached
    )
    definition_versions.note_grading_progress(transaction, reached)
    deltas.write(transaction)
    # For entities without states, or deleted before their states were locked.
    state_store.remove_empty_states(transaction, ids)
    if reached != _ALL_ENTITIES:
        paced.note(len(ids), time.monotonic() - began)
    return True


def _make_graded_entities(transaction: Transaction, ids: list[int], now: int) -> list[GradedEntity]:
    """The entities with their current documents and states."""
    if not ids:
        return []
    states = state_store.read_states(transaction, ids)
    exempt = exemption_store.list_holding_exemptions(transaction, ids, now)
    rows = transaction.all(*stored_entities.entities_among_sql(stored_entities.EVERY_ENTITY, ids))
    return [
        GradedEntity(
            id_,
            states.get(id_, EntityStates(id_, "", b"", None)).states,
            place_entity(ref, document, Matcher(document)),
            exempt.get(id_, NOT_EXEMPT).scorecards,
        )
        for id_, ref, document in stored_entities.decode_collectable(rows)
    ]


def _put_gradings_into_effect(transaction: Transaction) -> bool:
    """Put a finished full grading into effect; returns false if there is none."""
    if (
        not transaction.try_lock_each(_REGRADE_LOCK)
        or definition_versions.read_grading_progress(transaction) != _ALL_ENTITIES
    ):
        return False
    publications.lock_definitions(transaction)
    if definition_versions.read_grading_progress(transaction) != _ALL_ENTITIES:
        return False  # restarted meanwhile
    graded = definition_versions.put_grades_into_effect(transaction)
    scorecard_store.raise_revision(transaction)
    log.info("scorecard.graded", scorecards=graded)
    return True


def _list_due_gradings(transaction: Transaction, cache: CheckCache, now: int) -> list[str]:
    publications.share_definitions(transaction)
    return make_grading(transaction, cache.current(transaction)).due(now)


def _begin_due_within(transaction: Transaction, cache: CheckCache, now: int) -> bool:
    publications.lock_definitions(transaction)
    due = _list_due_gradings(transaction, cache, now)  # another process may have started it
    if due:
        scorecard_store.grade_again(transaction, due, now)
    return bool(due)


_UNSETTLED_CHECKS = """
SELECT 1 FROM checks WHERE pending_slot IS NOT NULL UNION ALL SELECT 1 FROM retired_slots LIMIT 1
"""

_UNSETTLED_SCORECARDS: Final = "SELECT 1 FROM scorecards WHERE pending_slot IS NOT NULL LIMIT 1"


# Held for one transaction by the process that evaluates due states.
_DUE_LOCK: Final = {"checks due": False}
# Owners whose counts are compared in one query.
_REPAIRED_AT_ONCE: Final = 50
_BEGUN: Final = "check sweep"
_POSITION: Final = "checks swept up to"
# Held for one transaction by the process that sweeps a portion.
_SWEEP_LOCK: Final = {"check sweep": False}
# Evaluations per portion: other writes don't wait long.
_EVALUATIONS_OF_SWEEP: Final = 20_000
_LEAST_SWEPT: Final = 20
_MOST_SWEPT: Final = 500
# By then the process of the previous release that this one replaces has ended.
_AFTER_START: Final = MINUTE
# The position of a finished sweep.
_END_OF_SWEEP: Final = 2**63 - 1
# Returned instead of a position if no sweep is under way.
_NOTHING_SWEPT: Final = -1
_BY_SWEEP: Final = msgspec.json.encode({"sweep": True}).decode()
# The maximum delay of state changes caused by time.
_DUE_EVERY: Final = MINUTE
# The audit actor for changes caused by time.
_SELF: Final = "factbook"


async def evaluate_due(database: Database, clock: Clock) -> int:
    """Evaluate due states in batches; returns the number of entities."""
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
    """Comparisons that cover all counts; each returns true if it repaired some."""
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
    """Repair the counts of these owners; returns false, without a write, if they are right."""
    # Definitions may change between statements: a difference here is only a suspicion.
    slots, level_slots = await database.all(_CHECK_SLOTS), await database.all(_LEVEL_SLOTS)
    states = await database.search(state_store.COUNT_COMPARISON, (list(owners), list(owners)))
    levels = await database.search(level_store.LEVEL_COMPARISON, (list(owners), list(owners)))
    found = (
        state_store.find_missing_counts(states, _split_numbers(slots)),
        level_store.find_missing_level_counts(levels, _split_numbers(level_slots)),
    )
    if not any(found):
        return False
    return await database.write(lambda transaction: _repair_counts_within(transaction, owners))


def _repair_counts_within(transaction: Transaction, owners: Sequence[str]) -> bool:
    publications.share_definitions(transaction)
    states = transaction.all(state_store.COUNT_COMPARISON, (list(owners), list(owners)))
    levels = transaction.all(level_store.LEVEL_COMPARISON, (list(owners), list(owners)))
    deltas: tuple[CountDeltas, LevelDeltas] = (
        state_store.find_missing_counts(states, _split_numbers(transaction.all(_CHECK_SLOTS))),
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
    """Repair the label counts of a block of entities; see `repair_counts`."""
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
    """The sweeps of a process: one soon after its start, then one a day among all processes.

    Each call of `tick` does one portion; the caller sets the pace.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: int | None = None
        self._has_begun = False
        self._looked_at: int | None = None  # last time without work
        self._repairs: list[Repair] = []  # count comparisons still to run

    async def tick(self) -> bool:
        """Do the next portion; returns false if this process has none to do."""
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
        """Finish the sweep that is under way or due."""
        while await self.tick():
            pass


def _sweep_portion(
    transaction: Transaction, cache: CheckCache, now: int, *, begins: bool
) -> int | None:
    """Evaluate the next entities; returns the last of them, None if another process sweeps."""
    if not transaction.try_lock_each(_SWEEP_LOCK):
        return None
    publications.share_definitions(transaction)
    after = select_counter(transaction, _POSITION)
    if begins or not 0 <= now - select_counter(transaction, _BEGUN) < DAY:
        after = 0
        put_counter(transaction, _BEGUN, now)
    if after == _END_OF_SWEEP:
        return _NOTHING_SWEPT
    known = cache.current(transaction)
    size = max(_LEAST_SWEPT, min(_MOST_SWEPT, _EVALUATIONS_OF_SWEEP // max(1, len(known.checks))))
    ids = [] if known.is_empty else _list_ids_after(transaction, after, size)
    reads = entity_evaluation.read_subjects_with_documents
    task = Task(known.everything, ids, _BY_SWEEP, reads=reads, has_dues=True)
    changed = incremental.update_states(transaction, known, [task], now).changed
    if changed:
        log.info("checks.swept", entities=changed, first=ids[0], last=ids[-1])
    reached = ids[-1] if len(ids) == size else _END_OF_SWEEP
    put_counter(transaction, _POSITION, reached)
    return reached


def _list_ids_after(transaction: Transaction, after: int, size: int) -> list[int]:
    """The next ids of entities, and of deleted entities that still have states or levels."""
    found = merge(
        stored_entities.page_ids(transaction, after, size),
        state_store.list_state_ids_after(transaction, after, size),
        level_store.list_level_ids_after(transaction, after, size),
    )
    return [id_ for id_, _ in islice(groupby(found), size)]


_Step = Callable[[Transaction, int], list[Exemption]]


class Evaluation:
    """The background evaluation of a database; several processes share the work."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._settled: int | None = None  # the last revision that is fully published
        self._due_at: int | None = None
        self._sweep = StateSweep(database, clock)

    async def tick(self) -> None:
        """Do pending work; publications start within a second, whichever process made them."""
        revision = await check_store.revision(self._database)
        if revision == 0:
            return
        if revision != self._settled:
            await finish_publications(self._database, self._clock)
            await finish_gradings(self._database, self._clock)
            # Another process may be doing the work, and may be killed.
            database = self._database
            self._settled = (
                revision
                if await are_checks_settled(database) and await are_scorecards_settled(database)
                else None
            )
        now = self._clock()
        if self._due_at is None or not now < self._due_at <= now + _DUE_EVERY:
            self._due_at = now + _DUE_EVERY
            await evaluate_due(self._database, self._clock)
            await self._exempt()
            await begin_due_gradings(self._database, self._clock)
        await self._sweep.tick()

    async def _exempt(self) -> None:
        """Begin and end exemptions, each step in a transaction that evaluates the entity."""
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
        append_records(transaction, [make_record(caller, entry) for entry in entries])
        return expired


_CHECK_SLOTS = "SELECT slot FROM checks WHERE slot IS NOT NULL"

_LEVEL_SLOTS = "SELECT slot FROM scorecards WHERE slot IS NOT NULL"

_COUNTED_OWNERS = """
SELECT owner FROM check_states UNION SELECT owner FROM check_counts
UNION SELECT owner FROM scorecard_levels UNION SELECT owner FROM scorecard_counts
"""

"""Publications under way: every entity is evaluated or graded for pending versions, in batches.

Batches take about as long as other writes may wait for them.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.catalog.store import stored_entities
from factbook.checks.definitions import definition_versions, exemption_store, publications
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.exemption_store import NOT_EXEMPT
from factbook.checks.definitions.publications import LAST_PLACE, IdReads
from factbook.checks.results import count_store, entity_evaluation, incremental, state_store
from factbook.checks.results.check_set import CheckCache, CheckSelection
from factbook.checks.results.count_store import NO_PLACE, PLACES, CountRow
from factbook.checks.results.incremental import Task, make_grading
from factbook.checks.results.level_store import GradedEntity, LevelDeltas, place_entity
from factbook.checks.results.state_store import ChangeRow, EntityStates
from factbook.checks.state import NONE
from factbook.clock import Clock
from factbook.facts.entity_filter import Matcher
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.checks")
# Of one transaction.
BATCH_SECONDS: Final = 0.5
_FIRST_BATCH: Final = 200
_LEAST_BATCH: Final = 5
_MOST_BATCH: Final = 5_000
# Held by the process that does a piece of the work, for one transaction.
_PUBLICATION_LOCK: Final = {"check publication": False}
# Evaluations in a batch, so that no other write waits long.
_EVALUATIONS: Final = 100_000
_LEAST_EVALUATED: Final = 200
# With more filters than that, reading the documents is quicker than asking for each filter.
_FEW_FILTERS: Final = 4
# That many are picked from the states of an entity sooner than all of them are read.
_FEW_SLOTS: Final = 8
_CLEARED: Final = 5_000
_PAGE_OF_STATES: Final = 5_000
_ENTITIES: Final = IdReads(stored_entities.page_ids, stored_entities.page_ids_among)
_STATES: Final = IdReads(state_store.list_state_ids_after, state_store.list_state_ids_among)
# Held by the process that does a piece of the work, for one transaction.
_REGRADE_LOCK: Final = {"scorecard grading": False}
# The last entity, once all are graded.
_ALL_ENTITIES: Final = 2**63 - 1


class BatchSize:
    """The entities of the next batch, by how long the ones before took."""

    first = _FIRST_BATCH

    def __init__(self) -> None:
        self.entities = self.first

    def note(self, entities: int, seconds: float) -> None:
        """Note how long a batch took: the next one shrinks to fit, or is twice as large at most."""
        fits = int(entities * BATCH_SECONDS / max(seconds, 0.001))
        self.entities = max(_LEAST_BATCH, min(_MOST_BATCH, fits, 2 * max(entities, _LEAST_BATCH)))


class EvaluationBatchSize(BatchSize):
    """Of publications."""


class CostlyBatchSize(BatchSize):
    """Of publications of checks with patterns or paths, whose time depends on the facts."""

    first = _LEAST_BATCH


class GradingBatchSize(BatchSize):
    """Of the grading of all entities."""


class DueBatchSize(BatchSize):
    """Of what is due because time passed."""


class StatePair(NamedTuple):
    """A slot of a check, and the one that takes its place; None for one before the first."""

    check_id: str
    before: int | None
    after: int


class OwnedStates(NamedTuple):
    """The states of the entities of one owner in these slots, one entity after the other."""

    owner: str
    entity_ids: Sequence[int]
    states: bytes
    slots: Sequence[int]

    def counts(self, pair: StatePair) -> list[CountRow]:
        """The row of counts of a slot, if it has anything to count."""
        column = self._column(pair.after)
        numbers = [0, 0, 0, 0, 0]
        for value in set(column):
            if PLACES[value] != NO_PLACE:
                numbers[PLACES[value]] += column.count(value)
        passing, failing, undecided, exempt, inapplicable = numbers
        row = (pair.after, self.owner, passing, failing, undecided, exempt, inapplicable)
        return [row] if any(numbers) else []

    def changes(self, pair: StatePair, why: str) -> Iterator[ChangeRow]:
        """Changes for the entities when the one slot takes the place of the other."""
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
    """The states of entities that come by owner, which are those in these slots."""
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
    """Do a piece of the work that is left; returns false if there is none to do here."""
    if await database.write(partial(_evaluate_batch, database=database, clock=clock)):
        return True
    if await database.write(partial(_put_checks_into_effect, clock=clock)):
        return True
    return await database.write(partial(_clear_retired, cache=database.remembered.of(CheckCache)))


async def finish_publications(database: Database, clock: Clock) -> None:
    """Do all the work that is left and that no other process does."""
    while await evaluate_pending(database, clock):
        pass


async def are_checks_settled(database: Database) -> bool:
    """Return true if no publication is under way, nor anything to clear."""
    return await database.one(_UNSETTLED_CHECKS) is None


def _evaluate_batch(transaction: Transaction, database: Database, clock: Clock) -> bool:
    """Evaluate what is pending for the next entities; returns false if nothing is left."""
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
    # Those that are further on go along from where they are.
    end = min((place for place in begun.values() if place > after), default=LAST_PLACE)
    selection = known.pending_of(chosen)
    is_costly = any(one.compiled.is_costly for one in selection.checks)
    paced = database.remembered.of(CostlyBatchSize if is_costly else EvaluationBatchSize)
    size = min(paced.entities, max(_LEAST_EVALUATED, _EVALUATIONS // max(1, len(selection.checks))))
    some = publications.take_portion(transaction, _ENTITIES, after, size, end)
    fills = incremental.fits_slot_fill(selection)
    task = Task(selection, some.ids, "", reads=_read_batch_subjects(selection), fills=fills)
    incremental.update_states(transaction, known, [task], clock(), may_leave=False)
    check_store.note_progress(transaction, sorted(chosen), some.place)
    if len(some.ids) == size:
        paced.note(size, time.monotonic() - began)
    return True


def _read_batch_subjects(selection: CheckSelection) -> entity_evaluation.Read:
    if selection.reads_entity or len(selection.filters) > _FEW_FILTERS:
        return entity_evaluation.read_subjects_with_documents
    return entity_evaluation.read_subjects_by_filters


def _put_checks_into_effect(transaction: Transaction, clock: Clock) -> bool:
    """Put what is evaluated for every entity into effect; returns false if nothing is."""
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
    """Count the states of versions that come into effect, and tell what they change."""
    pairs = [StatePair(one.id, one.slot, one.pending_slot or 0) for one in ready]
    whys = {one.id: msgspec.json.encode({"version": one.pending_version}).decode() for one in ready}
    slots = _list_pair_slots(pairs)
    if not slots:
        return
    for group in split_by_owner(_read_state_pages(transaction, slots), slots):
        counts, changes = list[CountRow](), list[ChangeRow]()
        for pair in pairs:
            counts += group.counts(pair)
            changes += group.changes(pair, whys[pair.check_id])
        count_store.add_counts(transaction, counts)
        state_store.append_changes(transaction, changes, now)


def _list_pair_slots(pairs: Iterable[StatePair]) -> Sequence[int]:
    """The slots to read: those of the pairs, or with many also all between them."""
    found = sorted({slot for pair in pairs for slot in (pair.before, pair.after) if slot})
    return found if len(found) <= _FEW_SLOTS else range(1, found[-1] + 1)


def _read_state_pages(
    transaction: Transaction, slots: Sequence[int]
) -> Iterator[list[EntityStates]]:
    place = ("", -1)
    while page := state_store.read_states_by_owner(transaction, place, _PAGE_OF_STATES, slots):
        yield page
        place = page[-1].owner, page[-1].entity_id


def _clear_retired(transaction: Transaction, cache: CheckCache) -> bool:
    """Clear the next bytes of slots that are not used any more; returns false if there are none."""
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
    """Do a piece of the work that is left; returns false if there is none to do here."""
    cache, paced = database.remembered.of(CheckCache), database.remembered.of(GradingBatchSize)
    if await database.write(partial(_grade_batch, cache=cache, paced=paced, now=clock())):
        return True
    return await database.write(_put_gradings_into_effect)


async def finish_gradings(database: Database, clock: Clock) -> None:
    """Do all the work that is left and that no other process does."""
    while await grade_pending(database, clock):
        pass


async def are_scorecards_settled(database: Database) -> bool:
    """Return true if no scorecard is being graded anew."""
    return await database.one(_UNSETTLED_SCORECARDS) is None


async def begin_due_gradings(database: Database, clock: Clock) -> bool:
    """Begin to grade for the scorecards of which checks count by now; true if there are any."""
    cache = database.remembered.of(CheckCache)
    if not await database.write(partial(_list_due_gradings, cache=cache, now=clock())):
        return False
    return await database.write(partial(_begin_due_within, cache=cache, now=clock()))


def _grade_batch(transaction: Transaction, cache: CheckCache, paced: BatchSize, now: int) -> bool:
    """Grade the next entities; returns false if nothing is left."""
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
    # Of entities that were removed until their states were locked, or have no states.
    state_store.remove_empty_states(transaction, ids)
    if reached != _ALL_ENTITIES:
        paced.note(len(ids), time.monotonic() - began)
    return True


def _make_graded_entities(transaction: Transaction, ids: list[int], now: int) -> list[GradedEntity]:
    """The entities as they are, with the states of their checks."""
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
    """Put what is graded for every entity into effect; returns false if nothing is."""
    if (
        not transaction.try_lock_each(_REGRADE_LOCK)
        or definition_versions.read_grading_progress(transaction) != _ALL_ENTITIES
    ):
        return False
    publications.lock_definitions(transaction)
    if definition_versions.read_grading_progress(transaction) != _ALL_ENTITIES:
        return False  # begun again meanwhile
    graded = definition_versions.put_grades_into_effect(transaction)
    scorecard_store.raise_revision(transaction)
    log.info("scorecard.graded", scorecards=graded)
    return True


def _list_due_gradings(transaction: Transaction, cache: CheckCache, now: int) -> list[str]:
    publications.share_definitions(transaction)
    return make_grading(transaction, cache.current(transaction)).due(now)


def _begin_due_within(transaction: Transaction, cache: CheckCache, now: int) -> bool:
    publications.lock_definitions(transaction)
    due = _list_due_gradings(transaction, cache, now)  # another process may have begun meanwhile
    if due:
        scorecard_store.grade_again(transaction, due, now)
    return bool(due)


_UNSETTLED_CHECKS = """
SELECT 1 FROM checks WHERE pending_slot IS NOT NULL UNION ALL SELECT 1 FROM retired_slots LIMIT 1
"""

_UNSETTLED_SCORECARDS: Final = "SELECT 1 FROM scorecards WHERE pending_slot IS NOT NULL LIMIT 1"

"""Evaluation inside the writing transaction, before it commits.

Locks are taken in one global order: the definitions, shared; the states of the entities, ascending;
the counts, sorted, at the very end. Facts and documents are read after the states are locked:
concurrent writes to the same entities have committed by then, or wait for these locks and see this
transaction's writes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from factbook.catalog.filters import Matcher
from factbook.catalog.piecewise import slices
from factbook.catalog.store import revisions, stored_sets
from factbook.checks.definitions import exemption_store, publications
from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.definitions.exemption_store import NOT_EXEMPT
from factbook.checks.results import entity_evaluation, state_store
from factbook.checks.results.entity_evaluation import (
    NO_EXEMPTIONS,
    ActiveExemptions,
    CheckCache,
    CheckSelection,
    CheckSet,
    Evaluated,
    EvaluatedCheck,
    Subject,
    evaluate_selection,
)
from factbook.checks.results.level_store import CountedCheck, GradedEntity, Grading, LevelDeltas
from factbook.checks.results.state_store import ChangeRow, CountDeltas, EntityStates
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import EXEMPT, NONE, OUT
from factbook.clock import Clock
from factbook.datasources import stores
from factbook.datasources.stores import source_store
from factbook.errors import InputError
from factbook.facts import history
from factbook.integrations import catalog
from factbook.storage import Database, Transaction
from factbook.storage.database import ChecksPort, Touched

_ADVISORY = "advisory"
# Entities whose facts and documents are read in one query.
AT_ONCE: Final = 500
# Steps of one transaction for patterns and paths, half a second at most. Costly checks of the
# remaining entities become due at once and are evaluated in separate transactions.
TRANSACTION_STEPS: Final = 25_000_000
_NO_STATES: Final = EntityStates(0, "", b"", None)
_BY_ENTITY: Final = msgspec.json.encode({"entity": True}).decode()
_BY_EXEMPTION: Final = msgspec.json.encode({"exemption": True}).decode()
_BY_TIME: Final = msgspec.json.encode({"time": True}).decode()


def fits_slot_fill(selection: CheckSelection) -> bool:
    """Return true for a single pending check that reads only fact values and no times."""
    if len(selection.checks) != 1:
        return False
    [check] = selection.checks
    return check.is_pending and not check.is_timed and check.compiled.reads_values_only


def fill_slot(
    transaction: Transaction, check: EvaluatedCheck, entity_ids: Sequence[int], now: int
) -> None:
    """Evaluate the check for entities with states, which are locked."""
    by_state = dict[int, list[int]]()
    for id_, state in _evaluate_slot(transaction, check, list(entity_ids), now):
        by_state.setdefault(state, []).append(id_)
    for state, ids in by_state.items():
        state_store.put_state(transaction, check.slot, state, ids)


def _evaluate_slot(
    transaction: Transaction, check: EvaluatedCheck, entity_ids: list[int], now: int
) -> Iterator[tuple[int, int]]:
    """(entity id, state) of each entity."""
    compiled = check.compiled
    inside = entity_evaluation.list_meeting_ids(transaction, compiled.check.applies_to, entity_ids)
    values = entity_evaluation.read_values_among(transaction, sorted(compiled.sources), entity_ids)
    exemptions = exemption_store.list_holding_exemptions(transaction, entity_ids, now)
    for id_ in entity_ids:
        if id_ not in inside:
            yield id_, OUT
            continue
        entity = CheckedEntity.of_values(values.get(id_, {}))
        state = entity_evaluation.evaluate_compiled(check.id, compiled, entity, now).state
        if (
            check.id in exemptions.get(id_, NOT_EXEMPT).checks
            and state in entity_evaluation.EXEMPTED_STATES
        ):
            state |= EXEMPT
        yield id_, state


def make_grading(transaction: Transaction, known: CheckSet) -> Grading:
    """The grading at the revision of a check set; the transaction holds the definitions lock."""
    if known.grading is None:
        counted = dict[str, CountedCheck]()
        for one in known.checks:
            if not one.is_pending:
                check = one.compiled.check
                is_advisory = check.severity == _ADVISORY
                counts_from = None if is_advisory else check.effective_from or 0
                counted[one.id] = CountedCheck(one.slot, counts_from)
        known.grading = Grading(scorecard_store.all_within(transaction), counted)
    return known.grading


class Task(NamedTuple):
    """A selection of checks to evaluate for some entities; `why` is the reason of their changes.

    `reads` reads the entities; if None, their documents are unchanged, except for new entities.
    `has_dues`: the selection has every check whose state changes over time. `fills`: only the slot
    of a pending check changes, see `fill_slot`.
    """

    selection: CheckSelection
    entity_ids: Sequence[int]
    why: str
    reads: entity_evaluation.Read | None = None
    has_dues: bool = False
    fills: bool = False


def attach_evaluation(database: Database, clock: Clock) -> None:
    """Make `evaluate_checks` of this process's transactions evaluate the checks."""
    cache, port = database.remembered.of(CheckCache), database.remembered.of(ChecksPort)
    port.evaluation = partial(evaluate_touched, cache=cache, clock=clock)


def evaluate_touched(transaction: Transaction, cache: CheckCache, clock: Clock) -> None:
    """Evaluate the checks that read something the transaction touched."""
    known, tasks = _collect_touched(transaction, cache)
    if tasks:
        update_states(transaction, known, tasks, clock())


class TouchedEntity(NamedTuple):
    """An entity whose checks need evaluation, read in the transaction that touched it.

    `before` are its previous states; None for a new entity.
    """

    id: int
    selection: CheckSelection
    subject: Subject
    before: EntityStates | None
    exempt: frozenset[str]


def read_touched(
    transaction: Transaction, cache: CheckCache, now: int, most: int
) -> tuple[CheckSet, list[TouchedEntity]]:
    """Read the input of `evaluate_touched`, including everything that the checks may read.

    The checks can then be evaluated after the transaction. Raises InputError for more than `most`
    entities.
    """
    known, tasks = _collect_touched(transaction, cache)
    count = sum(len(task.entity_ids) for task in tasks)
    if count > most:
        raise InputError(
            f"The trial would evaluate the checks of {count:,} entities, those that refer to the "
            f"changed ones included, and {most:,} is the most. Send fewer at once."
        )
    found: list[TouchedEntity] = []
    for task in tasks:
        for ids in slices(task.entity_ids, AT_ONCE):
            stored = state_store.read_states(transaction, ids)
            exempt = exemption_store.list_holding_exemptions(transaction, ids, now)
            read = entity_evaluation.read_subjects_with_documents(
                transaction, known.everything, ids
            )
            for id_, whole in read.items():
                matching = task.selection.matching(Matcher(dict(whole.entity.document)))
                subject = whole._replace(matching=matching)
                checks = exempt.get(id_, NOT_EXEMPT).checks
                found.append(TouchedEntity(id_, task.selection, subject, stored.get(id_), checks))
    return known, found


def _collect_touched(transaction: Transaction, cache: CheckCache) -> tuple[CheckSet, list[Task]]:
    """The checks in effect and pending, and the tasks for the touched entities."""
    entity_ids = transaction.touched.get(stored_sets.TOUCHED_ENTITIES, set())
    exemptions = transaction.touched.get(exemption_store.EXEMPTIONS_TOPIC, set())
    sources = list(history.split_topics(transaction.touched))
    if not entity_ids and not exemptions and not sources:
        return cache.known, []
    publications.share_definitions(transaction)
    # Renamed entities are touched, too.
    if entity_ids and (moved := revisions.list_moved_refs(transaction.touched)):
        exemption_store.follow_moves(transaction, moved)
        groups = {ref: id_ for ref, id_ in moved.items() if ref.startswith("group:")}
        _rename_groups(transaction, groups)
    known = cache.current(transaction)
    if known.is_empty:
        return known, []
    if known.reads_owners and entity_ids:
        owned = stored_sets.find_owned(transaction)
        for source_id in catalog.list_owner_sources():
            history.touch_values(transaction, source_id, owned)
    return known, list(_make_tasks(known, entity_ids, transaction.touched))


def _rename_groups(transaction: Transaction, moved: Mapping[str, int]) -> None:
    """Rename groups in everything that grants them rights.

    Another group that takes over a name gets none of the rights. A group that lost its name and may
    return gets a placeholder name, as in exemptions of such entities.
    """
    if not moved:
        return
    now = revisions.read_removed_refs(transaction, moved.values())
    names = {ref: now.get(id_) or revisions.make_aside_ref(ref, id_) for ref, id_ in moved.items()}
    stores.rename_connection_owners(transaction, names)
    for store in (check_store, scorecard_store, source_store):
        store.rename(transaction, names)
    for table in ("digests", "tokens"):
        transaction.lock(table)
        rows = transaction.all(_OWNERS.format(table), (sorted(names),))
        transaction.many(_SET_OWNER.format(table), [(names[owner], id_) for id_, owner in rows])
    stored_sets.mark_renamed_owners(transaction, names)


def _make_tasks(known: CheckSet, entity_ids: set[int], touched: Touched) -> Iterator[Task]:
    """The tasks of the transaction; touched entities need every check."""
    if entity_ids:
        ids = sorted(entity_ids)
        yield Task(
            known.everything,
            ids,
            _BY_ENTITY,
            reads=entity_evaluation.read_subjects_with_documents,
            has_dues=True,
        )
    exempt = sorted(touched.get(exemption_store.EXEMPTIONS_TOPIC, set()) - entity_ids)
    if exempt:
        reads = entity_evaluation.read_subjects_with_documents
        yield Task(known.everything, exempt, _BY_EXEMPTION, reads=reads, has_dues=True)
    entity_ids = entity_ids.union(exempt)
    changed: dict[int, set[str]] = {}
    confirmed: dict[int, set[str]] = {}
    for source_id, is_changed, written in history.split_topics(touched):
        if source_id in (known.sources if is_changed else known.fresh):
            for id_ in written - entity_ids:
                (changed if is_changed else confirmed).setdefault(id_, set()).add(source_id)
    grouped: dict[tuple[frozenset[str], frozenset[str]], list[int]] = {}
    for id_ in sorted(changed.keys() | confirmed.keys()):
        key = frozenset(changed.get(id_, ())), frozenset(confirmed.get(id_, ()))
        grouped.setdefault(key, []).append(id_)
    for (some, others), ids in grouped.items():
        selection = known.reading(some, others)
        why = msgspec.json.encode({"sources": sorted(some | others)}).decode()
        yield Task(selection, ids, why, reads=_read_task_subjects(selection))


def make_time_task(known: CheckSet, entity_ids: Sequence[int]) -> Task:
    """The task that evaluates time-dependent checks for entities with due states."""
    selection = known.due
    return Task(
        selection, entity_ids, _BY_TIME, reads=_read_task_subjects(selection), has_dues=True
    )


def _read_task_subjects(selection: CheckSelection) -> entity_evaluation.Read | None:
    # States of pending versions may be older than the current document.
    return entity_evaluation.read_subjects_with_documents if selection.has_pending else None


class Updated(NamedTuple):
    """Result of an evaluation: changed entities, and whether costly checks were postponed."""

    changed: int
    leaves_some: bool = False


def update_states(
    transaction: Transaction,
    known: CheckSet,
    tasks: Iterable[Task],
    now: int,
    *,
    may_leave: bool = True,
) -> Updated:
    """Evaluate tasks with disjoint entities; `may_leave` allows postponing costly checks.

    The transaction holds the definitions lock, shared or exclusively, and read `known` under the
    lock.
    """
    found = list(tasks)
    ids = {id_ for task in found for id_ in task.entity_ids}
    if not ids:
        return Updated(0)
    make_grading(transaction, known).reserve(transaction)
    work = _Update(transaction, known, now, TRANSACTION_STEPS if may_leave else None)
    match found:
        case [Task(fills=True) as task] if state_store.lock_stored_states(transaction, ids):
            work.fill(task)
            return Updated(0)
    state_store.lock_states(transaction, ids)
    for task in found:
        remaining = iter(task.entity_ids)
        while some := list(islice(remaining, AT_ONCE)):
            work.evaluate(task, some)
    work.write_counts()
    return Updated(work.changed, work.leaves_some)


class _Update:
    """The evaluation of one transaction, over entities whose states are locked."""

    def __init__(
        self, transaction: Transaction, known: CheckSet, now: int, most_steps: int | None
    ) -> None:
        self._most_steps = most_steps
        self._transaction = transaction
        self._known = known
        self._now = now
        self._deltas = CountDeltas()
        self._levels = LevelDeltas()
        self._changes: list[ChangeRow] = []
        self._steps = 0
        self.changed = 0
        self.leaves_some = False

    def fill(self, task: Task) -> None:
        [check] = task.selection.checks
        fill_slot(self._transaction, check, task.entity_ids, self._now)

    def evaluate(self, task: Task, entity_ids: Sequence[int]) -> None:
        """Evaluate some entities of a task, and write the changes."""
        stored = state_store.read_states(self._transaction, entity_ids)
        found = dict(self._subjects(task, entity_ids, stored))
        exemptions = exemption_store.list_holding_exemptions(
            self._transaction, entity_ids, self._now
        )
        rows: list[EntityStates] = []
        graded: list[GradedEntity] = []
        for id_, (selection, subject) in found.items():
            before = stored.get(id_)
            states = (before or _NO_STATES).padded(self._known.width)
            exempt = exemptions.get(id_, NOT_EXEMPT)
            active = ActiveExemptions(exempt.checks, None) if exempt.checks else NO_EXEMPTIONS
            # The first entity is evaluated whatever the cost, to guarantee progress.
            leaves = self._most_steps is not None and self._steps >= self._most_steps
            given = evaluate_selection(
                self._known, selection, subject, states, self._now, active, leaves_costly=leaves
            )
            self._steps += subject.entity.steps
            self.leaves_some = self.leaves_some or (leaves and given.due == self._now)
            row = _make_states_row(task, id_, subject, given, before)
            is_other = row != before
            if is_other:
                rows.append(row)
                is_other = self._compare(selection, before, row, (states, given.states), task.why)
            if is_other or subject.place is not None:
                place, cards = subject.place, exempt.scorecards
                graded.append(GradedEntity(id_, row.states, place, cards))
        state_store.write_states(self._transaction, (row for row in rows if row.states), stored)
        state_store.append_changes(self._transaction, self._changes, self._now)
        state_store.append_change_events(self._transaction, self._changes, self._now)
        self._changes.clear()
        gone = [id_ for id_ in entity_ids if id_ not in found]
        for id_ in gone:
            self._leave(stored.get(id_))
        state_store.remove_states(
            self._transaction, [*gone, *(row.entity_id for row in rows if not row.states)]
        )
        grading = make_grading(self._transaction, self._known)
        grading.update(self._transaction, graded, self._now, self._levels)
        grading.remove(self._transaction, gone, self._levels)
        self.changed += len(rows)

    def _compare(
        self,
        selection: CheckSelection,
        before: EntityStates | None,
        row: EntityStates,
        states: tuple[bytearray, bytearray],
        why: str,
    ) -> bool:
        """Collect the changes of an entity and of the counts; false if nothing changed."""
        old, new = states
        is_owned = before is not None and before.owner == row.owner
        if is_owned and not selection.in_effect:
            return False
        differing = selection.differing(old, new)
        self._changes += (
            (id_, row.entity_id, old[slot], new[slot], why)
            for slot, id_ in differing
            if old[slot] != NONE
        )
        if not is_owned:
            self._leave(before)
            self._deltas.come(row.owner, new, self._known.counted)
        else:
            for slot, _ in differing:
                self._deltas.change(row.owner, slot, old[slot], new[slot])
        return bool(differing)

    def write_counts(self) -> None:
        """Write the collected changes of counts."""
        self._deltas.write(self._transaction)
        self._levels.write(self._transaction)

    def _subjects(
        self, task: Task, entity_ids: Sequence[int], stored: Mapping[int, EntityStates]
    ) -> Iterator[tuple[int, tuple[CheckSelection, Subject]]]:
        """The entities that exist, each with the checks to evaluate."""
        everything, some = self._known.everything, task.selection
        if task.reads is not None:
            new, found = [], task.reads(self._transaction, some, entity_ids, stored)
        else:
            # Entities without a state of some selected check that is in effect.
            new, width = list[int](), self._known.width
            for id_ in entity_ids:
                before = stored.get(id_)
                has_state_of_each = (
                    before is not None
                    and before.states
                    and NONE not in some.states(before.padded(width))[2:]
                )
                if not has_state_of_each:
                    new.append(id_)
            old = sorted(set(entity_ids).difference(new))
            found = entity_evaluation.read_subjects_without_documents(self._transaction, some, old)
        yield from ((id_, (some, subject)) for id_, subject in found.items())
        if new:
            found = entity_evaluation.read_subjects_with_documents(
                self._transaction, everything, new
            )
            yield from ((id_, (everything, subject)) for id_, subject in found.items())

    def _leave(self, before: EntityStates | None) -> None:
        """Subtract an entity from the counts of its previous owner and states."""
        if before is not None:
            states = before.padded(self._known.width)
            self._deltas.leave(before.owner, states, self._known.counted)


def _make_states_row(
    task: Task, id_: int, subject: Subject, given: Evaluated, before: EntityStates | None
) -> EntityStates:
    due, owner = given.due, subject.owner
    if before is not None and before.due_at is not None and not task.has_dues:
        # The other states keep their due time.
        due = before.due_at if due is None else min(due, before.due_at)
    if owner is None:
        owner = before.owner if before else ""
    states = bytes(given.states[1:]).rstrip(b"\0")
    return EntityStates(id_, owner, states, due)


_OWNERS: Final = "SELECT id, owner FROM {} WHERE owner IN LIST(?) ORDER BY id"

_SET_OWNER: Final = "UPDATE {} SET owner = ? WHERE id = ?"

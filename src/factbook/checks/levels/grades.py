"""Grading of entities in the transaction that writes the states of their checks.

One pass over the entities of a transaction writes levels, the counts of levels by owner, system,
kind and label, and the events about levels. The caller holds the rows of the entities' states, so
that nobody else grades them meanwhile.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import structlog

from factbook.catalog.store import collectable
from factbook.checks.definitions.scorecard import Scorecard, parse
from factbook.checks.levels import level_store
from factbook.checks.levels.entity_place import EntityPlace
from factbook.checks.levels.grader import EXEMPTED, OUTSIDE, Grader, graded, in_slot, with_slots
from factbook.checks.levels.level_store import LevelDeltas, LevelRow
from factbook.checks.versions import grade_slots
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.errors import FactbookError
from factbook.events import event
from factbook.events import store as events
from factbook.storage import Transaction

log = structlog.get_logger("factbook.checks")

# Levels that a row of events tells of.
_IN_A_ROW: Final = 1_000
_NO_PLACE: Final = ("", "", "", "")


class CountedCheck(NamedTuple):
    """A version of a check as scorecards count it: from a time on, None if it is advisory."""

    slot: int
    counts_from: int | None


class GradedEntity(NamedTuple):
    """An entity with the states of its checks; `place` is None if its document did not change.

    `exempt` are the scorecards that it is exempt from as a whole.
    """

    id: int
    states: bytes
    place: EntityPlace | None = None
    exempt: frozenset[str] = frozenset()


class LevelChange(NamedTuple):
    """A level that became another one; None is below the first."""

    entity_id: int
    scorecard: Scorecard
    before: str | None
    after: str | None


class SlotGrader(NamedTuple):
    """A grader for a slot; of a pending one the progress bounds the entities."""

    slot: int
    grader: Grader
    is_pending: bool

    def own(self, entity: GradedEntity, before: bytes) -> bytes:
        """The bytes of an entity, with those before: where the grading fails they stay."""
        card = self.grader.scorecard
        if entity.place is None:
            applies = before != OUTSIDE
        else:
            applies = entity.place.matcher.lets_through(card.applies_to)
        if not applies:
            return OUTSIDE
        if card.id in entity.exempt:
            return EXEMPTED
        try:
            return self.grader.encoded(entity.states)
        except Exception:
            if not self.grader.has_failed:
                self.grader.has_failed = True
                log.exception("scorecard.failed", scorecard=card.id, slot=self.slot)
            return before


class Grading:
    """The scorecards for which entities are graded, as all definitions are at one revision."""

    def __init__(
        self,
        stored: Iterable[StoredScorecard],
        checks: Mapping[str, CountedCheck],
    ) -> None:
        """`checks` are those in effect, by id."""
        self.graders: list[SlotGrader] = []
        self._dates: set[tuple[str, int]] = set()
        for one in stored:
            if one.slot is not None and one.graded_at is not None:
                card = self._add(one.slot, one.published, checks, one.graded_at, is_pending=False)
                if card is not None and one.pending_slot is None:
                    self._dates |= _dates(card, checks, one.graded_at)
            if one.pending_slot is not None and one.pending_graded_at is not None:
                at = one.pending_graded_at
                self._add(one.pending_slot, one.pending, checks, at, is_pending=True)
        self.has_pending = any(one.is_pending for one in self.graders)

    def due(self, now: int) -> list[str]:
        """The checks that have begun to count since levels were graded."""
        return sorted(id_ for id_, date in self._dates if date <= now)

    def reserve(self, transaction: Transaction) -> None:
        """Keep the grading of all entities where it is until the end of the transaction.

        To be called before the rows of states are locked, as the grading does.
        """
        if self.has_pending:
            transaction.lock(grade_slots.PROGRESS, shared=True)

    def update(
        self,
        transaction: Transaction,
        entities: Sequence[GradedEntity],
        now: int,
        deltas: LevelDeltas,
        *,
        reached: int = 0,
    ) -> None:
        """Grade entities whose states or documents changed, and tell of levels that changed.

        What it does to the counts is added to the deltas. In a grading of all entities, `reached`
        is the last one of this transaction, and each has its place.
        """
        if not entities or not self.graders:
            return
        before = level_store.rows(transaction, [one.id for one in entities])
        bound = grade_slots.progress(transaction) if self.has_pending else 0
        rows, changes = list[LevelRow](), list[LevelChange]()
        for entity in entities:
            old = before.get(entity.id)
            if old is None and entity.place is None:
                continue  # the grading of all entities has not reached it
            new = self._graded(entity, old, deltas, changes, (bound, max(bound, reached)))
            if new != old:
                rows.append(new)
        level_store.write(transaction, rows, before)
        _tell(transaction, changes, now)

    def remove(
        self, transaction: Transaction, entity_ids: Sequence[int], deltas: LevelDeltas
    ) -> None:
        """Forget entities that are gone."""
        found = level_store.rows(transaction, entity_ids) if entity_ids else {}
        if not found:
            return
        bound = grade_slots.progress(transaction) if self.has_pending else 0
        for row in found.values():
            for one in self.graders:
                if not one.is_pending or row.entity_id <= bound:
                    own = in_slot(row.levels, one.slot)
                    deltas.add(one.slot, row.place, own, -1, row.entity_id)
        level_store.remove(transaction, list(found))

    def _add(
        self,
        slot: int,
        document: object,
        checks: Mapping[str, CountedCheck],
        at: int,
        *,
        is_pending: bool,
    ) -> Scorecard | None:
        """Grade for a scorecard from now on, unless this release cannot read it."""
        try:
            card = parse(document)
        except FactbookError as error:
            log.error("scorecard.unusable", slot=slot, reason=error.message)
            return None
        slots = {
            id_: check.slot
            for id_, check in checks.items()
            if check.counts_from is not None and check.counts_from <= at
        }
        self.graders.append(SlotGrader(slot, Grader(card, slots), is_pending))
        return card

    def _graded(
        self,
        entity: GradedEntity,
        old: LevelRow | None,
        deltas: LevelDeltas,
        changes: list[LevelChange],
        bounds: tuple[int, int],
    ) -> LevelRow:
        """The new row of an entity; `bounds` are the progress before and after the transaction."""
        place = entity.place[:4] if entity.place else old.place if old else _NO_PLACE
        was = old.place if old else place
        levels = old.levels if old else b""
        new: list[tuple[int, bytes]] = []
        for one in self.graders:
            if one.is_pending and entity.id > bounds[1]:
                continue
            # Beyond the progress stands what another scorecard left in the slot.
            is_fresh = old is None or (one.is_pending and entity.id > bounds[0])
            before = OUTSIDE if is_fresh else in_slot(levels, one.slot)
            after = one.own(entity, before)
            new.append((one.slot, after))
            if (before, was) != (after, place):
                deltas.add(one.slot, was, before, -1, entity.id)
                deltas.add(one.slot, place, after, 1, entity.id)
            if not one.is_pending and before[0] != after[0]:
                changes += _change(entity.id, one.grader.scorecard, before, after)
        owner, system, kind, labels = place
        return LevelRow(entity.id, owner, system, kind, with_slots(levels, new), labels)


def _dates(card: Scorecard, checks: Mapping[str, CountedCheck], at: int) -> set[tuple[str, int]]:
    """The checks of a scorecard that count from a time after the grading on, with that time."""
    found = ((id_, checks[id_].counts_from) for id_ in card.checks if id_ in checks)
    return {(id_, date) for id_, date in found if date is not None and date > at}


def _change(entity_id: int, card: Scorecard, before: bytes, after: bytes) -> list[LevelChange]:
    """The change of a level, unless the entity came into the scorecard or left it."""
    old, new = graded(before), graded(after)
    if old is None or new is None:
        return []
    names = [None, *(level.id for level in card.levels)]
    return [LevelChange(entity_id, card, names[old.level], names[new.level])]


def _tell(transaction: Transaction, changes: Sequence[LevelChange], now: int) -> None:
    """Tell of levels of scorecards that are in effect by now."""
    wanted = [one for one in changes if one.scorecard.is_effective(now)]
    if not wanted:
        return
    refs = collectable.refs_of(transaction, {one.entity_id for one in wanted})
    told: dict[str, list[tuple[str, str | None, str | None]]] = {}
    for entity_id, card, before, after in wanted:
        if entity_id in refs:
            told.setdefault(card.id, []).append((refs[entity_id], before, after))
    rows = [
        event.of_levels(id_, found[start : start + _IN_A_ROW])
        for id_, found in sorted(told.items())
        for start in range(0, len(found), _IN_A_ROW)
    ]
    events.append(transaction, rows, now)

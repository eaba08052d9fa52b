"""Store of entity levels and the counts behind rollups.

Entities are graded in the transaction that writes their check states. Counts are by owner, system,
kind and label.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from factbook.catalog.filters import Matcher
from factbook.catalog.store import conditions, stored_entities
from factbook.checks.definitions import definition_versions
from factbook.checks.definitions.definition_versions import StoredScorecard
from factbook.checks.definitions.scorecard import Scorecard, parse_scorecard
from factbook.checks.results.grader import (
    EXEMPTED,
    NO_TALLY,
    OUTSIDE,
    WIDTH,
    GradedLevel,
    Grader,
    LevelCount,
    LevelTally,
    find_slot_level,
    read_graded_levels,
    replace_slot_levels,
    tally_levels,
)
from factbook.errors import FactbookError
from factbook.events.store import append_events, make_levels_row
from factbook.storage import Database, Row, Transaction

log = structlog.get_logger("factbook.checks")
# Labels per entity that are counted, first by name: each costs a row per written level.
MOST_COUNTED_LABELS: Final = 50
# Entities whose counts share rows.
LABEL_BLOCK: Final = 4_096
_LEVEL_COLUMNS: Final = ("entity_id", "owner", "system", "kind", "levels", "labels")
_SYSTEM = "system:"
# Level changes in one event row.
_LEVELS_IN_A_ROW: Final = 1_000
_NO_PLACE: Final = ("", "", "", "")


_Key = tuple[int, str, str, int, int]  # slot, label, value, level, block


def list_counted_labels(document: Mapping[str, Any]) -> str:
    """The counted labels of an entity in stored form: JSON, "" without labels."""
    labels = document.get("metadata", {}).get("labels")
    if not isinstance(labels, dict):
        return ""
    pairs = (
        (conditions.make_search_text(name), conditions.make_search_text(value))
        for name, value in sorted(labels.items())
    )
    found = dict(pair for pair in pairs if conditions.EXISTS_VALUE not in pair)
    return (
        msgspec.json.encode(dict(sorted(found.items())[:MOST_COUNTED_LABELS])).decode()
        if found
        else ""
    )


class LabelDeltas:
    """Changes of label counts, collected during a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str, int, int], list[int]] = {}
        self._missing: dict[_Key, list[int]] = {}

    def add(self, slot: int, block: int, labels: str, found: GradedLevel, number: int) -> None:
        """Add `number` entities of a block with these labels and this level."""
        if labels:
            numbers = self._deltas.setdefault((slot, labels, found.level, block), [0, 0, 0])
            scored, score = (0, 0) if found.score is None else (number, number * found.score)
            _add_numbers(numbers, (number, scored, score))

    def subtract(self, key: _Key, counts: Sequence[int]) -> None:
        """Subtract counts: entities, entities with a score, and the score sum."""
        _add_numbers(self._missing.setdefault(key, [0, 0, 0]), [-number for number in counts])

    def __bool__(self) -> bool:
        return bool(self._rows())

    def of_slot(self, slot: int) -> dict[tuple[str, str, int, int], list[int]]:
        """The changes of a slot: entities, entities with a score, and the score sum."""
        return {row[1:5]: list(row[5:]) for row in self._rows() if row[0] == slot}

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in the same order in every transaction."""
        rows = self._rows()
        if rows:
            transaction.many(_ADD_LABEL_COUNTS, rows)

    def _rows(self) -> list[Row]:
        found = {key: list(numbers) for key, numbers in self._missing.items()}
        for (slot, labels, level, block), numbers in self._deltas.items():
            if any(numbers):
                for label, value in msgspec.json.decode(labels).items():
                    _add_numbers(
                        found.setdefault((slot, label, value, level, block), [0, 0, 0]), numbers
                    )
        return [(*key, *numbers) for key, numbers in sorted(found.items()) if any(numbers)]


def find_label_block(entity_id: int) -> int:
    """The block that counts an entity."""
    return entity_id // LABEL_BLOCK


async def tally_labels(database: Database, slot: int, label: str) -> dict[str, LevelTally]:
    """The tallies of a slot by value of a label, in lower case."""
    return tally_levels(await database.search(_TALLIES, (slot, label.lower())))


async def list_label_blocks(database: Database) -> list[int]:
    """The blocks that have labels to count, or counts."""
    return sorted(block for (block,) in await database.search(_BLOCKS, (LABEL_BLOCK,)))


def make_label_comparison(block: int) -> tuple[int, int, int]:
    """The parameters of `LABEL_COMPARISON` for a block."""
    return block * LABEL_BLOCK, (block + 1) * LABEL_BLOCK, block


def find_missing_label_counts(
    compared: Iterable[Row], block: int, slots: Sequence[int]
) -> LabelDeltas:
    """Corrections for the label counts of these slots, from rows of `LABEL_COMPARISON`."""
    deltas, wanted = LabelDeltas(), frozenset(slots)
    for name, value, slot, levels, *numbers in compared:
        if slot is None:
            for one in slots:
                found = read_graded_levels(find_slot_level(bytes(levels), one))
                if found is not None:
                    deltas.add(one, block, name, found, numbers[0])
        elif slot in wanted:
            deltas.subtract((slot, name, value, numbers[0], block), numbers[1:])
    return deltas


def _add_numbers(numbers: list[int], others: Sequence[int]) -> None:
    for place, number in enumerate(others):
        numbers[place] += number


CountedPlace = tuple[str, str, str, str]


class LevelRow(NamedTuple):
    """The levels of an entity by slot, and the keys that it is counted under."""

    entity_id: int
    owner: str
    system: str
    kind: str
    levels: bytes
    labels: str = ""

    @property
    def place(self) -> CountedPlace:
        """Owner, system, kind and labels that the entity is counted under."""
        return self.owner, self.system, self.kind, self.labels


class AtLevel(NamedTuple):
    """A condition that `entities e` are at a level, by slot and rank.

    `is_frequent`: so many entities have the level that probing entities one by one is faster.
    """

    slot: int
    rank: int
    is_frequent: bool = False

    def sql(self) -> tuple[str, list[object]]:
        parameters = [(self.slot - 1) * WIDTH + 1, bytes((self.rank + 1,))]
        return _AT_LEVEL_NEAR if self.is_frequent else _AT_LEVEL, [*parameters]


class LevelDeltas:
    """Changes of counts, collected during a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str, str, str, int], list[int]] = {}
        self.labels = LabelDeltas()

    def add(
        self, slot: int, place: CountedPlace, own: bytes, sign: int, entity_id: int | None = None
    ) -> None:
        """Add an entity with these bytes in a slot to the counts, or subtract it if `sign` is -1.

        Without `entity_id`, label counts stay unchanged.
        """
        found = read_graded_levels(own)
        if found is None:
            return
        numbers = self._deltas.setdefault((slot, *place[:3], found.level), [0, 0, 0])
        numbers[0] += sign
        if found.score is not None:
            numbers[1] += sign
            numbers[2] += sign * found.score
        if entity_id is not None:
            self.labels.add(slot, find_label_block(entity_id), place[3], found, sign)

    def subtract(self, key: tuple[int, str, str, str, int], counts: Sequence[int]) -> None:
        """Subtract counts: entities, entities with a score, and the score sum."""
        numbers = self._deltas.setdefault(key, [0, 0, 0])
        for place, number in enumerate(counts):
            numbers[place] -= number

    def __bool__(self) -> bool:
        return bool(self.labels) or any(map(any, self._deltas.values()))

    def of_slot(self, slot: int) -> dict[tuple[str, str, str, int], list[int]]:
        """The changes of a slot: entities, entities with a score, and the score sum."""
        return {key[1:]: numbers for key, numbers in self._deltas.items() if key[0] == slot}

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in the same order in every transaction."""
        rows = [(*key, *numbers) for key, numbers in sorted(self._deltas.items()) if any(numbers)]
        if rows:
            transaction.many(_ADD_LEVEL_COUNTS, rows)
        self.labels.write(transaction)


def read_level_rows(transaction: Transaction, entity_ids: Sequence[int]) -> dict[int, LevelRow]:
    """The levels of these entities, by entity id."""
    found = transaction.all(_READ, (list(entity_ids),))
    return {row[0]: LevelRow(*row) for row in found}


def list_level_ids_after(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` ids of entities with levels above `after`, in order."""
    return [entity_id for (entity_id,) in transaction.all(_IDS, (after, limit))]


def find_missing_level_counts(compared: Iterable[Row], slots: Sequence[int]) -> LevelDeltas:
    """Corrections for the counts of these slots, from rows of `LEVEL_COMPARISON`."""
    deltas, wanted = LevelDeltas(), frozenset(slots)
    for owner, system, kind, slot, levels, *numbers in compared:
        place = owner, system, kind, ""
        if slot is None:
            for one in slots:
                deltas.add(one, place, find_slot_level(levels, one), numbers[0])
        elif slot in wanted:
            deltas.subtract((slot, owner, system, kind, numbers[0]), numbers[1:])
    return deltas


def write_levels(
    transaction: Transaction, changed: Iterable[LevelRow], stored: Iterable[int]
) -> None:
    """Write the levels of entities; `stored` are the entities that already have a row."""
    known, new, old = frozenset(stored), list[LevelRow](), list[LevelRow]()
    for row in changed:
        (old if row.entity_id in known else new).append(row)
    if new:
        transaction.insert("scorecard_levels", _LEVEL_COLUMNS, new)
    if old:
        transaction.update("scorecard_levels", _LEVEL_COLUMNS, old)


def remove_levels(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Delete the levels of entities."""
    transaction.run("DELETE FROM scorecard_levels WHERE entity_id IN LIST(?)", (list(entity_ids),))


async def read_entity_levels(database: Database, entity_id: int) -> bytes:
    """The levels of an entity by slot."""
    row = await database.one(
        "SELECT levels FROM scorecard_levels WHERE entity_id = ?", (entity_id,)
    )
    return bytes(row[0]) if row else b""


async def read_levels_of(database: Database, entity_ids: Sequence[int]) -> dict[int, bytes]:
    """The levels of these entities by slot; entities without levels are left out."""
    rows = await database.search(_READ, (list(entity_ids),))
    return {row[0]: bytes(LevelRow(*row).levels) for row in rows}


async def count_levels(database: Database, slot: int) -> list[LevelCount]:
    """The counts of a slot."""
    return list(map(LevelCount._make, await database.search(_LEVEL_COUNTS, (slot,))))


async def count_levels_by_owner(database: Database, slot: int) -> dict[str, LevelTally]:
    """The tallies of a slot by owner; "" holds entities without an owner."""
    return tally_levels(await database.search(_BY_OWNER, (slot,)))


async def count_all_levels(
    database: Database, slot: int, owners: Sequence[str] | None = None
) -> LevelTally:
    """The tally of a slot over all entities, or over those of these owners."""
    sql, more = (_TOTAL, []) if owners is None else (_TOTAL_OF, [list(owners)])
    return tally_levels(await database.search(sql, (slot, *more))).get("", NO_TALLY)


async def count_levels_by_system(database: Database, slot: int) -> dict[str, LevelTally]:
    """The tallies of a slot by system; "" holds entities without a system."""
    return tally_levels(await database.search(_BY_SYSTEM, (slot,)))


async def count_levels_by_kind(database: Database, slot: int) -> dict[str, LevelTally]:
    """The tallies of a slot by kind."""
    return tally_levels(await database.search(_BY_KIND, (slot,)))


def count_levels_by_owner_within(transaction: Transaction, slot: int) -> dict[str, LevelTally]:
    """The tallies of a slot by owner, within a transaction."""
    return tally_levels(transaction.all(_BY_OWNER, (slot,)))


async def read_level_page(
    database: Database, slot: int, after: int, limit: int, owners: Sequence[str] = ()
) -> list[tuple[int, GradedLevel]]:
    """Up to `limit` entities in a scorecard with ids above `after`, with their levels."""
    start, first = (slot - 1) * WIDTH + 1, (slot - 1) * WIDTH + 1
    sql, more = (_PAGE_OF, [list(owners)]) if owners else (_PAGE, [])
    parameters = (start, WIDTH, after, first, b"\0", b"\xff", b"", *more, limit)
    found = [
        (id_, read_graded_levels(bytes(own))) for id_, own in await database.search(sql, parameters)
    ]
    return [(id_, level) for id_, level in found if level is not None]


class EntityPlace(NamedTuple):
    """Owner, system and kind of an entity, '' if missing; its labels and filter matcher."""

    owner: str
    system: str
    kind: str
    labels: str
    matcher: Matcher


def find_owner(document: Mapping[str, Any]) -> str:
    """The first owner of an entity in its catalog document; '' without one."""
    return next(_list_targets(document.get("relations", ()), "ownedBy"), "")


def place_entity(ref: str, document: Mapping[str, Any], matcher: Matcher) -> EntityPlace:
    """The place of an entity from its catalog document: first owner and first system."""
    wholes = _list_targets(document.get("relations", ()), "partOf")
    systems = (one for one in wholes if one.startswith(_SYSTEM))
    kind, labels = ref.partition(":")[0], list_counted_labels(document)
    return EntityPlace(find_owner(document), next(systems, ""), kind, labels, matcher)


def _list_targets(relations: Iterable[Mapping[str, str]], type_: str) -> Iterator[str]:
    return (one["targetRef"] for one in relations if one["type"] == type_)


class CountedCheck(NamedTuple):
    """A check as scorecards count it: `counts_from` is None for advisory checks."""

    slot: int
    counts_from: int | None


class GradedEntity(NamedTuple):
    """An entity with its check states; `place` is None if its document is unchanged.

    `exempt` are the scorecards that the entity is exempt from entirely.
    """

    id: int
    states: bytes
    place: EntityPlace | None = None
    exempt: frozenset[str] = frozenset()


class LevelChange(NamedTuple):
    """A change of level; None is below the first level."""

    entity_id: int
    scorecard: Scorecard
    before: str | None
    after: str | None


class SlotGrader(NamedTuple):
    """A grader for a slot; a pending one covers entities up to the grading progress."""

    slot: int
    grader: Grader
    is_pending: bool

    def own(self, entity: GradedEntity, before: bytes) -> bytes:
        """The new bytes of an entity; the bytes before if the grading fails."""
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
    """The scorecards that entities are graded for, at one revision of the definitions."""

    def __init__(
        self,
        stored: Iterable[StoredScorecard],
        checks: Mapping[str, CountedCheck],
    ) -> None:
        """`checks` are the checks in effect, by id."""
        self.graders: list[SlotGrader] = []
        self._dates: set[tuple[str, int]] = set()
        for one in stored:
            if one.slot is not None and one.graded_at is not None:
                card = self._add(one.slot, one.published, checks, one.graded_at, is_pending=False)
                if card is not None and one.pending_slot is None:
                    found = ((id_, checks[id_].counts_from) for id_ in card.checks if id_ in checks)
                    self._dates |= {
                        (id_, date)
                        for id_, date in found
                        if date is not None and date > one.graded_at
                    }
            if one.pending_slot is not None and one.pending_graded_at is not None:
                at = one.pending_graded_at
                self._add(one.pending_slot, one.pending, checks, at, is_pending=True)
        self.has_pending = any(one.is_pending for one in self.graders)

    def due(self, now: int) -> list[str]:
        """The checks that have begun to count since the last grading."""
        return sorted(id_ for id_, date in self._dates if date <= now)

    def reserve(self, transaction: Transaction) -> None:
        """Keep the progress of the full grading unchanged until the transaction ends.

        Call this before locking rows of states, as the full grading does.
        """
        if self.has_pending:
            transaction.lock(definition_versions.GRADING_LOCK, shared=True)

    def update(
        self,
        transaction: Transaction,
        entities: Sequence[GradedEntity],
        now: int,
        deltas: LevelDeltas,
        *,
        reached: int = 0,
    ) -> None:
        """Grade entities whose states or documents changed, and append events for changed levels.

        Changes of counts go into `deltas`. In a full grading, `reached` is the last entity of this
        transaction, and every entity has its place.
        """
        if not entities or not self.graders:
            return
        before = read_level_rows(transaction, [one.id for one in entities])
        bound = definition_versions.read_grading_progress(transaction) if self.has_pending else 0
        rows, changes = list[LevelRow](), list[LevelChange]()
        for entity in entities:
            old = before.get(entity.id)
            if old is None and entity.place is None:
                continue  # the full grading hasn't reached it
            new = self._graded(entity, old, deltas, changes, (bound, max(bound, reached)))
            if new != old:
                rows.append(new)
        write_levels(transaction, rows, before)
        _append_level_events(transaction, changes, now)

    def remove(
        self, transaction: Transaction, entity_ids: Sequence[int], deltas: LevelDeltas
    ) -> None:
        """Delete the levels of deleted entities."""
        found = read_level_rows(transaction, entity_ids) if entity_ids else {}
        if not found:
            return
        bound = definition_versions.read_grading_progress(transaction) if self.has_pending else 0
        for row in found.values():
            for one in self.graders:
                if not one.is_pending or row.entity_id <= bound:
                    own = find_slot_level(row.levels, one.slot)
                    deltas.add(one.slot, row.place, own, -1, row.entity_id)
        remove_levels(transaction, list(found))

    def _add(
        self,
        slot: int,
        document: object,
        checks: Mapping[str, CountedCheck],
        at: int,
        *,
        is_pending: bool,
    ) -> Scorecard | None:
        """Add a grader for a scorecard, unless this release can't read its document."""
        try:
            card = parse_scorecard(document)
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
            # Beyond the progress, the slot may hold leftovers of another scorecard.
            is_fresh = old is None or (one.is_pending and entity.id > bounds[0])
            before = OUTSIDE if is_fresh else find_slot_level(levels, one.slot)
            after = one.own(entity, before)
            new.append((one.slot, after))
            if (before, was) != (after, place):
                deltas.add(one.slot, was, before, -1, entity.id)
                deltas.add(one.slot, place, after, 1, entity.id)
            if not one.is_pending and before[0] != after[0]:
                changes += _compare_grades(entity.id, one.grader.scorecard, before, after)
        owner, system, kind, labels = place
        return LevelRow(entity.id, owner, system, kind, replace_slot_levels(levels, new), labels)


def _compare_grades(
    entity_id: int, card: Scorecard, before: bytes, after: bytes
) -> list[LevelChange]:
    """The change of level, if the entity was in the scorecard before and still is."""
    old, new = read_graded_levels(before), read_graded_levels(after)
    if old is None or new is None:
        return []
    names = [None, *(level.id for level in card.levels)]
    return [LevelChange(entity_id, card, names[old.level], names[new.level])]


def _append_level_events(
    transaction: Transaction, changes: Sequence[LevelChange], now: int
) -> None:
    """Append events for level changes of scorecards that are effective at `now`."""
    wanted = [one for one in changes if one.scorecard.is_effective(now)]
    if not wanted:
        return
    refs = stored_entities.read_refs_of_ids_within(transaction, {one.entity_id for one in wanted})
    told: dict[str, list[tuple[str, str | None, str | None]]] = {}
    for entity_id, card, before, after in wanted:
        if entity_id in refs:
            told.setdefault(card.id, []).append((refs[entity_id], before, after))
    rows = [
        make_levels_row(id_, found[start : start + _LEVELS_IN_A_ROW])
        for id_, found in sorted(told.items())
        for start in range(0, len(found), _LEVELS_IN_A_ROW)
    ]
    append_events(transaction, rows, now)


_ADD_LABEL_COUNTS: Final = """
INSERT INTO scorecard_label_counts (slot, label, value, level, block, entities, scored, score)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (slot, label, value, level, block) DO UPDATE SET
    entities = scorecard_label_counts.entities + excluded.entities,
    scored = scorecard_label_counts.scored + excluded.scored,
    score = scorecard_label_counts.score + excluded.score
"""

_TALLIES: Final = """
SELECT value, level, CAST(SUM(entities) AS BIGINT), CAST(SUM(scored) AS BIGINT),
    CAST(SUM(score) AS BIGINT)
FROM scorecard_label_counts WHERE slot = ? AND label = ? AND entities > 0 GROUP BY value, level
"""

_BLOCKS: Final = """
SELECT DISTINCT entity_id / ? FROM scorecard_levels WHERE labels <> ''
UNION SELECT block FROM scorecard_label_counts
"""

# Actual entities by label and level beside the stored counts.
LABEL_COMPARISON: Final = """
SELECT labels, CAST(NULL AS TEXT), CAST(NULL AS INTEGER) AS slot, levels, COUNT(*), 0, 0, 0
FROM scorecard_levels WHERE entity_id >= ? AND entity_id < ? AND labels <> ''
GROUP BY labels, levels
UNION ALL
SELECT label, value, slot, NULL, level, entities, scored, score
FROM scorecard_label_counts WHERE block = ?
"""

_AT_LEVEL: Final = """
e.id IN (SELECT entity_id FROM scorecard_levels WHERE substr(levels, ?, 1) = ?)
"""

# OFFSET keeps PostgreSQL from reading every entity of the level.
_AT_LEVEL_NEAR: Final = """
EXISTS (
    SELECT 1 FROM scorecard_levels l WHERE l.entity_id = e.id AND substr(l.levels, ?, 1) = ?
    LIMIT 1 OFFSET 0
)
"""

_READ: Final = """
SELECT entity_id, owner, system, kind, levels, labels FROM scorecard_levels
WHERE entity_id IN LIST(?)
"""

_IDS: Final = """
SELECT entity_id FROM scorecard_levels WHERE entity_id > ? ORDER BY entity_id LIMIT ?
"""

# Actual entities by level beside the stored counts.
LEVEL_COMPARISON: Final = """
SELECT owner, system, kind, CAST(NULL AS INTEGER) AS slot, levels, COUNT(*), 0, 0, 0
FROM scorecard_levels WHERE owner IN LIST(?) GROUP BY owner, system, kind, levels
UNION ALL
SELECT owner, system, kind, slot, NULL, level, entities, scored, score
FROM scorecard_counts WHERE owner IN LIST(?)
"""

_ADD_LEVEL_COUNTS: Final = """
INSERT INTO scorecard_counts (slot, owner, system, kind, level, entities, scored, score)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (slot, owner, system, kind, level) DO UPDATE SET
    entities = scorecard_counts.entities + excluded.entities,
    scored = scorecard_counts.scored + excluded.scored,
    score = scorecard_counts.score + excluded.score
"""

_LEVEL_COUNTS: Final = """
SELECT owner, system, kind, level, entities, scored, score FROM scorecard_counts
WHERE slot = ? AND entities > 0
"""

_BY_OWNER: Final = """
SELECT owner, level, CAST(SUM(entities) AS BIGINT), CAST(SUM(scored) AS BIGINT),
    CAST(SUM(score) AS BIGINT)
FROM scorecard_counts WHERE slot = ? AND entities > 0 GROUP BY owner, level
"""

_TOTAL: Final = _BY_OWNER.replace("SELECT owner", "SELECT ''").replace("BY owner, ", "BY ")

_TOTAL_OF: Final = _TOTAL.replace("GROUP", "AND owner IN LIST(?) GROUP")

_BY_SYSTEM: Final = _BY_OWNER.replace("owner", "system")

_BY_KIND: Final = _BY_OWNER.replace("owner", "kind")

_PAGE: Final = """
SELECT entity_id, substr(levels, ?, ?) FROM scorecard_levels
WHERE entity_id > ? AND substr(levels, ?, 1) NOT IN (?, ?, ?) ORDER BY entity_id LIMIT ?
"""

_PAGE_OF: Final = _PAGE.replace("ORDER", "AND owner IN LIST(?) ORDER")

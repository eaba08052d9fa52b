"""The store of levels: where each entity stands, and the counts that rollups are made of."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from factbook.checks.levels.grader import WIDTH, GradedLevel, graded, in_slot
from factbook.checks.levels.label_store import LabelDeltas, block_of
from factbook.checks.levels.rollup import NOTHING, LevelCount, LevelTally, tallied
from factbook.storage import Database, Row, Transaction

_COLUMNS: Final = ("entity_id", "owner", "system", "kind", "levels", "labels")

CountedPlace = tuple[str, str, str, str]


class LevelRow(NamedTuple):
    """The levels of an entity by slot, and what it is counted by."""

    entity_id: int
    owner: str
    system: str
    kind: str
    levels: bytes
    labels: str = ""

    @property
    def place(self) -> CountedPlace:
        """Owner, system, kind and labels by which it is counted."""
        return self.owner, self.system, self.kind, self.labels


class AtLevel(NamedTuple):
    """The condition on `entities e` that they are at a level, by slot and rank.

    `is_frequent`: so many are that entities are probed one by one.
    """

    slot: int
    rank: int
    is_frequent: bool = False

    def sql(self) -> tuple[str, list[object]]:
        parameters = [(self.slot - 1) * WIDTH + 1, bytes((self.rank + 1,))]
        return _AT_LEVEL_NEAR if self.is_frequent else _AT_LEVEL, [*parameters]


class LevelDeltas:
    """Changes of counts, gathered over a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str, str, str, int], list[int]] = {}
        self.labels = LabelDeltas()

    def add(
        self, slot: int, place: CountedPlace, own: bytes, sign: int, entity_id: int | None = None
    ) -> None:
        """Count an entity with these bytes in a slot once more, or with -1 once less.

        Without its id it is counted by everything but its labels.
        """
        found = graded(own)
        if found is None:
            return
        numbers = self._deltas.setdefault((slot, *place[:3], found.level), [0, 0, 0])
        numbers[0] += sign
        if found.score is not None:
            numbers[1] += sign
            numbers[2] += sign * found.score
        if entity_id is not None:
            self.labels.add(slot, block_of(entity_id), place[3], found, sign)

    def subtract(self, key: tuple[int, str, str, str, int], counts: Sequence[int]) -> None:
        """Count so much less: entities, those with a score, and the sum of scores."""
        numbers = self._deltas.setdefault(key, [0, 0, 0])
        for place, number in enumerate(counts):
            numbers[place] -= number

    def __bool__(self) -> bool:
        return bool(self.labels) or any(map(any, self._deltas.values()))

    def of_slot(self, slot: int) -> dict[tuple[str, str, str, int], list[int]]:
        """The changes of a slot: entities, those with a score, and the sum of scores."""
        return {key[1:]: numbers for key, numbers in self._deltas.items() if key[0] == slot}

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in an order that is the same for every transaction."""
        rows = [(*key, *numbers) for key, numbers in sorted(self._deltas.items()) if any(numbers)]
        if rows:
            transaction.many(_ADD, rows)
        self.labels.write(transaction)


def rows(transaction: Transaction, entity_ids: Sequence[int]) -> dict[int, LevelRow]:
    """The levels of these entities, by their ids."""
    found = transaction.all(_READ, (list(entity_ids),))
    return {row[0]: LevelRow(*row) for row in found}


def ids_after(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` entities with ids above `after`, in order."""
    return [entity_id for (entity_id,) in transaction.all(_IDS, (after, limit))]


def missing(compared: Iterable[Row], slots: Sequence[int]) -> LevelDeltas:
    """Differences of rows of `COMPARISON` from the right counts of these slots in effect."""
    deltas, wanted = LevelDeltas(), frozenset(slots)
    for owner, system, kind, slot, levels, *numbers in compared:
        place = owner, system, kind, ""
        if slot is None:
            for one in slots:
                deltas.add(one, place, in_slot(levels, one), numbers[0])
        elif slot in wanted:
            deltas.subtract((slot, owner, system, kind, numbers[0]), numbers[1:])
    return deltas


def write(transaction: Transaction, changed: Iterable[LevelRow], stored: Iterable[int]) -> None:
    """Write the levels of entities; `stored` are those that have some already."""
    known, new, old = frozenset(stored), list[LevelRow](), list[LevelRow]()
    for row in changed:
        (old if row.entity_id in known else new).append(row)
    if new:
        transaction.insert("scorecard_levels", _COLUMNS, new)
    if old:
        transaction.update("scorecard_levels", _COLUMNS, old)


def remove(transaction: Transaction, entity_ids: Sequence[int]) -> None:
    """Delete the levels of entities."""
    transaction.run("DELETE FROM scorecard_levels WHERE entity_id IN LIST(?)", (list(entity_ids),))


async def of_entity(database: Database, entity_id: int) -> bytes:
    """The levels of an entity by slot."""
    row = await database.one(
        "SELECT levels FROM scorecard_levels WHERE entity_id = ?", (entity_id,)
    )
    return bytes(row[0]) if row else b""


async def of_entities(database: Database, entity_ids: Sequence[int]) -> dict[int, bytes]:
    """The levels of these entities by slot, for those that have any."""
    rows = await database.search(_READ, (list(entity_ids),))
    return {row[0]: bytes(LevelRow(*row).levels) for row in rows}


async def counts(database: Database, slot: int) -> list[LevelCount]:
    """The counts of a slot."""
    return _counts(await database.search(_COUNTS, (slot,)))


async def by_owner(database: Database, slot: int) -> dict[str, LevelTally]:
    """The sums of a slot by owner; "" is without one."""
    return tallied(await database.search(_BY_OWNER, (slot,)))


async def total(database: Database, slot: int, owners: Sequence[str] | None = None) -> LevelTally:
    """The sum of a slot over everybody, or over these owners."""
    sql, more = (_TOTAL, []) if owners is None else (_TOTAL_OF, [list(owners)])
    return tallied(await database.search(sql, (slot, *more))).get("", NOTHING)


async def by_system(database: Database, slot: int) -> dict[str, LevelTally]:
    """The sums of a slot by system; "" is without one."""
    return tallied(await database.search(_BY_SYSTEM, (slot,)))


async def by_kind(database: Database, slot: int) -> dict[str, LevelTally]:
    """The sums of a slot by kind."""
    return tallied(await database.search(_BY_KIND, (slot,)))


def by_owner_within(transaction: Transaction, slot: int) -> dict[str, LevelTally]:
    """The sums of a slot by owner, within a transaction."""
    return tallied(transaction.all(_BY_OWNER, (slot,)))


async def page(
    database: Database, slot: int, after: int, limit: int, owners: Sequence[str] = ()
) -> list[tuple[int, GradedLevel]]:
    """Up to `limit` entities in a scorecard with ids above `after`, with their levels."""
    start, first = (slot - 1) * WIDTH + 1, (slot - 1) * WIDTH + 1
    sql, more = (_PAGE_OF, [list(owners)]) if owners else (_PAGE, [])
    parameters = (start, WIDTH, after, first, b"\0", b"\xff", b"", *more, limit)
    found = [(id_, graded(bytes(own))) for id_, own in await database.search(sql, parameters)]
    return [(id_, level) for id_, level in found if level is not None]


def _counts(found: Iterable[Row]) -> list[LevelCount]:
    return list(map(LevelCount._make, found))


_AT_LEVEL: Final = """
e.id IN (SELECT entity_id FROM scorecard_levels WHERE substr(levels, ?, 1) = ?)
"""

# The offset keeps PostgreSQL from reading all of the level.
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

# How many entities have which levels, and what is counted.
COMPARISON: Final = """
SELECT owner, system, kind, CAST(NULL AS INTEGER) AS slot, levels, COUNT(*), 0, 0, 0
FROM scorecard_levels WHERE owner IN LIST(?) GROUP BY owner, system, kind, levels
UNION ALL
SELECT owner, system, kind, slot, NULL, level, entities, scored, score
FROM scorecard_counts WHERE owner IN LIST(?)
"""

_ADD: Final = """
INSERT INTO scorecard_counts (slot, owner, system, kind, level, entities, scored, score)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (slot, owner, system, kind, level) DO UPDATE SET
    entities = scorecard_counts.entities + excluded.entities,
    scored = scorecard_counts.scored + excluded.scored,
    score = scorecard_counts.score + excluded.score
"""

_COUNTS: Final = """
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

"""The store of counts by label: entities of a scorecard by the value of a label and their level."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.catalog import search
from factbook.checks.levels.grader import GradedLevel, graded, in_slot
from factbook.checks.levels.rollup import LevelTally, tallied
from factbook.storage import Database, Row, Transaction

# Labels by which an entity is counted, the first by name: each is a row to be written with a level.
MOST_LABELS: Final = 50
# Entities whose counts share rows.
BLOCK: Final = 4_096

_Key = tuple[int, str, str, int, int]  # slot, label, value, level, block


def counted(document: Mapping[str, Any]) -> str:
    """The labels by which an entity is counted, as they are stored: JSON, "" without any."""
    labels = document.get("metadata", {}).get("labels")
    if not isinstance(labels, dict):
        return ""
    pairs = ((search.text(name), search.text(value)) for name, value in sorted(labels.items()))
    found = dict(pair for pair in pairs if search.EXISTS not in pair)
    return msgspec.json.encode(dict(sorted(found.items())[:MOST_LABELS])).decode() if found else ""


class LabelDeltas:
    """Changes of counts by label, gathered over a transaction and written at its end."""

    def __init__(self) -> None:
        self._deltas: dict[tuple[int, str, int, int], list[int]] = {}
        self._missing: dict[_Key, list[int]] = {}

    def add(self, slot: int, block: int, labels: str, found: GradedLevel, number: int) -> None:
        """Count so many entities of a block with these labels and this level more."""
        if labels:
            numbers = self._deltas.setdefault((slot, labels, found.level, block), [0, 0, 0])
            _add(numbers, _counts(found, number))

    def subtract(self, key: _Key, counts: Sequence[int]) -> None:
        """Count so much less: entities, those with a score, and the sum of scores."""
        _add(self._missing.setdefault(key, [0, 0, 0]), [-number for number in counts])

    def __bool__(self) -> bool:
        return bool(self._rows())

    def of_slot(self, slot: int) -> dict[tuple[str, str, int, int], list[int]]:
        """The changes of a slot: entities, those with a score, and the sum of scores."""
        return {row[1:5]: list(row[5:]) for row in self._rows() if row[0] == slot}

    def write(self, transaction: Transaction) -> None:
        """Write the changes, in an order that is the same for every transaction."""
        rows = self._rows()
        if rows:
            transaction.many(_ADD, rows)

    def _rows(self) -> list[Row]:
        found = {key: list(numbers) for key, numbers in self._missing.items()}
        for (slot, labels, level, block), numbers in self._deltas.items():
            if any(numbers):
                for label, value in msgspec.json.decode(labels).items():
                    _add(found.setdefault((slot, label, value, level, block), [0, 0, 0]), numbers)
        return [(*key, *numbers) for key, numbers in sorted(found.items()) if any(numbers)]


def block_of(entity_id: int) -> int:
    """The block in which an entity is counted."""
    return entity_id // BLOCK


async def tallies(database: Database, slot: int, label: str) -> dict[str, LevelTally]:
    """The sums of a slot by the value of a label, in lower case, over entities with it."""
    return tallied(await database.search(_TALLIES, (slot, label.lower())))


async def blocks(database: Database) -> list[int]:
    """The blocks with anything to count."""
    return sorted(block for (block,) in await database.search(_BLOCKS, (BLOCK,)))


def comparison(block: int) -> tuple[int, int, int]:
    """The parameters of `COMPARISON` for a block."""
    return block * BLOCK, (block + 1) * BLOCK, block


def missing(compared: Iterable[Row], block: int, slots: Sequence[int]) -> LabelDeltas:
    """Differences of rows of `COMPARISON` from the right counts of these slots in effect."""
    deltas, wanted = LabelDeltas(), frozenset(slots)
    for name, value, slot, levels, *numbers in compared:
        if slot is None:
            for one in slots:
                found = graded(in_slot(bytes(levels), one))
                if found is not None:
                    deltas.add(one, block, name, found, numbers[0])
        elif slot in wanted:
            deltas.subtract((slot, name, value, numbers[0], block), numbers[1:])
    return deltas


def _counts(found: GradedLevel, number: int) -> tuple[int, int, int]:
    scored, score = (0, 0) if found.score is None else (number, number * found.score)
    return number, scored, score


def _add(numbers: list[int], others: Sequence[int]) -> None:
    for place, number in enumerate(others):
        numbers[place] += number


_ADD: Final = """
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

# How many entities have which labels and levels, and what is counted.
COMPARISON: Final = """
SELECT labels, CAST(NULL AS TEXT), CAST(NULL AS INTEGER) AS slot, levels, COUNT(*), 0, 0, 0
FROM scorecard_levels WHERE entity_id >= ? AND entity_id < ? AND labels <> ''
GROUP BY labels, levels
UNION ALL
SELECT label, value, slot, NULL, level, entities, scored, score
FROM scorecard_label_counts WHERE block = ?
"""

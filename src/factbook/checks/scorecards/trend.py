"""Trends of a scorecard: its figures day by day, for a group with all below it.

Figures are kept for the days on which they differ from those before, and a day between is as the
last one of these.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store import hierarchy
from factbook.checks.definitions import definition_lock
from factbook.checks.definitions.scorecard import Scorecard, parse
from factbook.checks.levels import level_store, rollup
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.levels.rollup import NOTHING, LevelTally
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import DAY, iso
from factbook.storage import Database, Row, Transaction

EVERYBODY: Final = "*"
MOST_DAYS: Final = 1_000


class TrendFigures(NamedTuple):
    """Entities by the id of their level, "" below the first; the sum of scores and how many."""

    levels: Mapping[str, int]
    scored: int = 0
    score: int = 0

    @property
    def total(self) -> int:
        """The number of entities."""
        return sum(self.levels.values())

    @property
    def mean(self) -> float | None:
        """The mean score in percent of those that have one."""
        return self.score / self.scored if self.scored else None

    def render(self) -> dict[str, Any]:
        """The figures as shown."""
        return {
            "total": self.total,
            "levels": {name: count for name, count in self.levels.items() if name},
            "noLevel": self.levels.get("", 0),
            "score": None if self.mean is None else round(self.mean, 1),
            "scored": self.scored,
        }


class TrendPoint(NamedTuple):
    """The figures at the end of a day, counted since 1970-01-01."""

    day: int
    figures: TrendFigures

    def render(self) -> dict[str, Any]:
        """The point as shown."""
        return {"date": iso(self.day * DAY)[:10], **self.figures.render()}


NO_FIGURES: Final = TrendFigures({})


def series(points: Sequence[TrendPoint], first: int, last: int, step: int = 1) -> list[TrendPoint]:
    """The points of every `step`-th day back from the last, each as the last one kept by then.

    `points` are in order; days before the first of them are left out.
    """
    found: list[TrendPoint] = []
    remaining = list(points)
    for day in range(last, first - 1, -step):
        while remaining and remaining[-1].day > day:
            remaining.pop()
        if not remaining:
            break
        found.append(TrendPoint(day, remaining[-1].figures))
    return found[::-1]


def figures(card: Scorecard, tally: LevelTally) -> TrendFigures:
    """The figures of a tally, with the ids of the levels."""
    names = ["", *(level.id for level in card.levels)]
    levels = {names[rank]: count for rank, count in sorted(tally.levels.items()) if count}
    return TrendFigures(levels, tally.scored, tally.score)


async def of_group(
    database: Database, scorecard_id: str, owner: str, first: int, last: int
) -> list[TrendPoint]:
    """Rows of an owner from before the first day to the last, in order."""
    rows = await database.search(_OF_GROUP, (scorecard_id, owner) * 2 + (first, last, MOST_DAYS))
    return [_point(row) for row in reversed(rows)]


def record(transaction: Transaction, now: int) -> int:
    """Keep the figures of today for what differs from the last ones; returns how many."""
    # A slot may be another one's by the end of a grading.
    definition_lock.share(transaction)
    tree = GroupHierarchy(hierarchy.group_parents_within(transaction))
    changed = 0
    for stored in scorecard_store.all_within(transaction):
        if stored.slot is not None and stored.published is not None:
            own = level_store.by_owner_within(transaction, stored.slot)
            card = parse(stored.published)
            found = {EVERYBODY: rollup.added(own.values()), **rollup.by_group(own, tree)}
            changed += _record(transaction, card, found, now // DAY)
    return changed


def trim(transaction: Transaction, before: int) -> int:
    """Delete figures of days before a time, but for the last of each; returns their number."""
    return transaction.run(_TRIM, (before // DAY,) * 2)


def _record(
    transaction: Transaction, card: Scorecard, found: Mapping[str, LevelTally], day: int
) -> int:
    before = {
        row[0]: _point(row[1:]).figures for row in transaction.all(_LAST, (card.id, day, card.id))
    }
    rows = []
    for owner in sorted(found.keys() | before.keys()):
        new = figures(card, found.get(owner, NOTHING))
        if new != before.get(owner, NO_FIGURES):
            levels = msgspec.json.encode(new.levels).decode()
            rows.append((card.id, owner, day, levels, new.scored, new.score))
    transaction.many(_KEEP, rows)
    return len(rows)


def _point(row: Row) -> TrendPoint:
    day, levels, scored, score = row
    return TrendPoint(day, TrendFigures(msgspec.json.decode(levels), scored, score))


_OF_GROUP: Final = """
SELECT day, levels, scored, score FROM scorecard_days
WHERE scorecard_id = ? AND owner = ? AND day >= COALESCE((
    SELECT MAX(day) FROM scorecard_days WHERE scorecard_id = ? AND owner = ? AND day <= ?
), 0) AND day <= ? ORDER BY day DESC LIMIT ?
"""

_LAST: Final = """
SELECT d.owner, d.day, d.levels, d.scored, d.score FROM scorecard_days d JOIN (
    SELECT owner, MAX(day) AS day FROM scorecard_days WHERE scorecard_id = ? AND day <= ?
    GROUP BY owner
) last ON last.owner = d.owner AND last.day = d.day WHERE d.scorecard_id = ?
"""

# A later day before the same time tells what held by then.
_TRIM: Final = """
DELETE FROM scorecard_days WHERE day < ? AND EXISTS (
    SELECT 1 FROM scorecard_days later WHERE later.scorecard_id = scorecard_days.scorecard_id
        AND later.owner = scorecard_days.owner AND later.day > scorecard_days.day
        AND later.day <= ?
)
"""

_KEEP: Final = """
INSERT INTO scorecard_days (scorecard_id, owner, day, levels, scored, score)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (scorecard_id, owner, day) DO UPDATE SET levels = excluded.levels,
    scored = excluded.scored, score = excluded.score
"""

"""History of an entity's facts: pages, and excerpts that are bounded in size for drawing charts.

A row holds every fact of its source, so the longer the rows, the fewer are read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.facts.merge import reason_of
from factbook.storage import Database

# Of stored JSON, in one question.
_BYTES: Final = 4_000_000
_LAST = 2**63 - 1

Point = tuple[int, Any]  # when it was written, and the value; None where it was unknown


class HistoryPosition(NamedTuple):
    """Position at the end of a page of an entity's history."""

    written_at: int
    source_id: str


class HistoryEntry(NamedTuple):
    """A row of history, and the version of the source that wrote it.

    `facts` and `reasons` are the stored JSON, passed through without decoding.
    """

    source_id: str
    written_at: int
    version: str
    facts: msgspec.Raw
    reasons: msgspec.Raw


class Excerpt(NamedTuple):
    """Rows of history, oldest first, at least `step` milliseconds apart.

    `start` is the time of the first row of all history, None if there is none; `is_whole` is true
    if no row is left out.
    """

    rows: list[HistoryEntry]
    start: int | None
    step: int
    is_whole: bool


async def history_page(
    database: Database,
    source_ids: Sequence[str] | None,
    entity_id: int,
    start: int | None,
    end: int | None,
    after: HistoryPosition | None,
    limit: int,
) -> list[HistoryEntry]:
    """Up to `limit` rows about an entity from `start` to `end`, both included, newest first.

    `source_ids` None means every source. `after` is the last row of the page before.
    """
    last = HistoryPosition(_LAST if end is None else end + 1, "")
    last = last if after is None else min(last, after)
    among, sources = _among(source_ids)
    rows = await database.all(
        _HISTORY.replace("{}", among), (entity_id, *sources, start or 0, *last, limit)
    )
    return [
        HistoryEntry(source, time, version, msgspec.Raw(facts), msgspec.Raw(reasons))
        for source, time, version, facts, reasons in rows
    ]


async def recent(
    database: Database,
    source_id: str,
    entity_id: int,
    facts: Mapping[str, object],
    most: int,
    size: int = _BYTES,
) -> list[HistoryEntry]:
    """The newest rows, in ascending order of time. The latest `facts` serve to estimate length."""
    limit = bounded(facts, most, size)
    rows = await history_page(database, [source_id], entity_id, None, None, None, limit)
    return rows[::-1]


async def spread(
    database: Database,
    source_id: str,
    entity_id: int,
    start: int | None,
    end: int,
    facts: Mapping[str, object],
    most: int,
) -> Excerpt:
    """Rows spread over the time from `start`, or the first row, to `end`, both included.

    All rows if they are few, else about `most`: the first row of each of that many equal intervals.
    """
    keys = (source_id, entity_id)
    row = await database.one(_FIRST, keys)
    first: int | None = row[0] if row else None
    if first is None:
        return Excerpt([], None, 1, is_whole=True)
    begin = first if start is None else max(first, start)
    step = max(1, (end - begin) // bounded(facts, most))
    found = await database.all(_SPREAD, (*keys, begin, end, *keys, step, end, *keys))
    rows = [
        HistoryEntry(source_id, at, version, msgspec.Raw(given), msgspec.Raw(reasons))
        for at, version, given, reasons in found
    ]
    counted = await database.one(_COUNT, (*keys, begin, end, len(rows) + 1))
    return Excerpt(rows, first, step, is_whole=counted == (len(rows),))


def bounded(facts: Mapping[str, object], most: int, size: int = _BYTES) -> int:
    """The number of rows of the length of these facts that fit `size` bytes, up to `most`."""
    return max(2, min(most, size // max(1, len(msgspec.json.encode(facts)))))


def points(rows: Iterable[HistoryEntry], names: Sequence[str]) -> dict[str, list[Point]]:
    """The values of facts in rows of history; a fact not mentioned in a row is unchanged.

    Other facts in the rows are skipped without decoding.
    """
    found: dict[str, list[Point]] = {name: [] for name in names}
    for row in rows:
        facts = _members(row.facts)
        reasons: dict[str, str] | None = None
        for name in names:
            if name in facts:
                found[name].append((row.written_at, msgspec.json.decode(facts[name])))
                continue
            if reasons is None:
                reasons = msgspec.json.decode(row.reasons)
            if reason_of(name, reasons) is not None:
                found[name].append((row.written_at, None))
    return found


def _among(source_ids: Sequence[str] | None) -> tuple[str, tuple[Any, ...]]:
    if source_ids is None:
        return "", ()
    if len(source_ids) == 1:
        return " AND source_id = ?", (source_ids[0],)
    return " AND source_id IN LIST(?)", (list(source_ids),)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_HISTORY = """
SELECT source_id, written_at, version, facts, reasons FROM facts_history
WHERE entity_id = ?{} AND written_at >= ? AND (written_at, source_id) < (?, ?)
ORDER BY written_at DESC, source_id DESC LIMIT ?
"""

_FIRST = "SELECT MIN(written_at) FROM facts_history WHERE source_id = ? AND entity_id = ?"

# From row to row by the index, which leaves out what lies between.
_SPREAD = """
WITH RECURSIVE steps (at) AS (
    SELECT MIN(written_at) FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at <= ?
    UNION ALL
    SELECT (
        SELECT MIN(h.written_at) FROM facts_history h
        WHERE h.source_id = ? AND h.entity_id = ? AND h.written_at >= s.at + ?
            AND h.written_at <= ?
    ) FROM steps s WHERE s.at IS NOT NULL
)
SELECT h.written_at, h.version, h.facts, h.reasons FROM steps s
JOIN facts_history h ON h.source_id = ? AND h.entity_id = ? AND h.written_at = s.at
WHERE s.at IS NOT NULL ORDER BY s.at
"""

_COUNT = """
SELECT COUNT(*) FROM (
    SELECT 1 FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at <= ? LIMIT ?
) found
"""

"""History of an entity's facts: pages, and excerpts that are bounded in size for drawing charts.

A row holds every fact of its source, so the longer the rows, the fewer are read.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.facts import history
from factbook.facts.freshness import reason_of
from factbook.storage import Database, Row
from factbook.storage.database import Parameters

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

    `facts` and `reasons` are the stored JSON, passed through without decoding. `confirmed_at` is
    the last later time at which a collection found the same; None if none did.
    """

    source_id: str
    written_at: int
    version: str
    facts: msgspec.Raw
    reasons: msgspec.Raw
    confirmed_at: int | None = None
    # Of the row with the long values that are stored there alone.
    held_at: int | None = None


class Excerpt(NamedTuple):
    """Rows of history, oldest first, at least `step` milliseconds apart.

    A row that was confirmed after the beginning of the excerpt begins with it. `start` is the time
    of the first row of all history, None if there is none; `is_whole` is true if no row is left
    out.
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

    Rows written before `start` and confirmed since are included. `source_ids` None means every
    source. `after` is the last row of the page before.
    """
    last = HistoryPosition(_LAST if end is None else end + 1, "")
    last = last if after is None else min(last, after)
    among, sources = _among(source_ids)
    rows = await _long_read(database)(
        _HISTORY.replace("{}", among), (entity_id, *sources, start or 0, *last, limit)
    )
    found = await _whole(database, entity_id, [_entry(row) for row in rows])
    if start is not None and len(found) < limit:
        earlier = await _held(database, among, (entity_id, *sources), entity_id, start, last)
        found += earlier[: limit - len(found)]
    return found


def _long_read(database: Database) -> Callable[[str, Parameters], Awaitable[list[Row]]]:
    """The read of many rows of one entity: on the replica where there is one."""
    return database.all if database.replica() is None else database.search


async def _held(
    database: Database,
    among: str,
    keys: tuple[Any, ...],
    entity_id: int,
    start: int,
    last: HistoryPosition,
) -> list[HistoryEntry]:
    """Rows written before `start` and `last` and confirmed at or after `start`, newest first."""
    times = await database.all(_NEWEST_BEFORE.replace("{}", among), (*keys, start))
    rows = [
        row
        for source_id, written_at in times
        if (written_at, source_id) < last
        and (row := await database.one(_ROW, (source_id, entity_id, written_at)))
    ]
    found = await _whole(database, entity_id, [_entry(row) for row in rows])
    held = [row for row in found if row.confirmed_at is not None and row.confirmed_at >= start]
    return sorted(held, key=lambda row: (row.written_at, row.source_id), reverse=True)


async def _whole(
    database: Database, entity_id: int, rows: list[HistoryEntry]
) -> list[HistoryEntry]:
    """The rows with their last confirmations, and with the long values that others have."""
    rows = await _confirmed(database, entity_id, rows)
    held = {(row.source_id, row.held_at) for row in rows if row.held_at is not None}
    if not held:
        return rows
    source_ids, times = (sorted(set(values)) for values in zip(*held, strict=True))
    found = await database.all(_HOLDING, (entity_id, source_ids, times))
    texts = {(source_id, at): facts for source_id, at, facts in found}
    return [
        row._replace(facts=history.filled(row.facts, texts[row.source_id, row.held_at]))
        if (row.source_id, row.held_at) in texts
        else row
        for row in rows
    ]


async def _confirmed(
    database: Database, entity_id: int, rows: list[HistoryEntry]
) -> list[HistoryEntry]:
    """The rows with the last confirmation of those that are the newest of their source."""
    source_ids = sorted({row.source_id for row in rows if row.confirmed_at is None})
    if not source_ids:
        return rows
    found = await database.all(_NEWEST, (entity_id, source_ids))
    times = {(source_id, newest): at for source_id, newest, at in found if at > (newest or at)}
    return [
        row._replace(confirmed_at=times.get(row[:2])) if row.confirmed_at is None else row
        for row in rows
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
    found = await _long_read(database)(_SPREAD, (*keys, begin, end, *keys, step, end, *keys))
    rows = [_entry((source_id, *row)) for row in found]
    counted = await database.one(_COUNT, (*keys, begin, end, len(rows) + 1))
    rows = await _whole(database, entity_id, rows)
    if begin > first:
        last = HistoryPosition(_LAST, "")
        among, sources = _among([source_id])
        held = await _held(database, among, (entity_id, *sources), entity_id, begin, last)
        rows[:0] = [row._replace(written_at=begin) for row in held]
    return Excerpt(rows, first, step, is_whole=counted == (len(found),))


def bounded(facts: Mapping[str, object], most: int, size: int = _BYTES) -> int:
    """The number of rows of the length of these facts that fit `size` bytes, up to `most`."""
    return max(2, min(most, size // max(1, len(msgspec.json.encode(facts)))))


def points(rows: Iterable[HistoryEntry], names: Sequence[str]) -> dict[str, list[Point]]:
    """The values of facts in rows of history; a fact not mentioned in a row is unchanged.

    A row that was confirmed gives two points. Other facts in the rows are skipped without decoding.
    """
    found: dict[str, list[Point]] = {name: [] for name in names}
    for row in rows:
        times = [at for at in (row.written_at, row.confirmed_at) if at is not None]
        facts = _members(row.facts)
        reasons: dict[str, str] | None = None
        for name in names:
            if name in facts:
                value = msgspec.json.decode(facts[name])
                found[name] += [(at, value) for at in times]
                continue
            if reasons is None:
                reasons = msgspec.json.decode(row.reasons)
            if reason_of(name, reasons) is not None:
                found[name] += [(at, None) for at in times]
    return found


def _entry(row: Sequence[Any]) -> HistoryEntry:
    source_id, written_at, version, facts, reasons, *times = row
    texts = msgspec.Raw(facts), msgspec.Raw(reasons)
    return HistoryEntry(source_id, written_at, version, *texts, *times)


def _among(source_ids: Sequence[str] | None) -> tuple[str, tuple[Any, ...]]:
    if source_ids is None:
        return "", ()
    if len(source_ids) == 1:
        return " AND source_id = ?", (source_ids[0],)
    return " AND source_id IN LIST(?)", (list(source_ids),)


_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

_HISTORY = """
SELECT source_id, written_at, version, facts, reasons, confirmed_at, held_at FROM facts_history
WHERE entity_id = ?{} AND written_at >= ? AND (written_at, source_id) < (?, ?)
ORDER BY written_at DESC, source_id DESC LIMIT ?
"""

_ROW = """
SELECT source_id, written_at, version, facts, reasons, confirmed_at, held_at FROM facts_history
WHERE source_id = ? AND entity_id = ? AND written_at = ?
"""

_HOLDING = """
SELECT source_id, written_at, facts FROM facts_history
WHERE entity_id = ? AND source_id IN LIST(?) AND written_at IN LIST(?)
"""

_NEWEST_BEFORE = """
SELECT source_id, MAX(written_at) FROM facts_history
WHERE entity_id = ?{} AND written_at < ? GROUP BY source_id
"""

# Of each source its newest row, and the last time at which that was found.
_NEWEST = """
SELECT l.source_id, (
    SELECT MAX(h.written_at) FROM facts_history h
    WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id
), l.written_at FROM facts_latest l WHERE l.entity_id = ? AND l.source_id IN LIST(?)
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
SELECT h.written_at, h.version, h.facts, h.reasons, h.confirmed_at, h.held_at FROM steps s
JOIN facts_history h ON h.source_id = ? AND h.entity_id = ? AND h.written_at = s.at
WHERE s.at IS NOT NULL ORDER BY s.at
"""

_COUNT = """
SELECT COUNT(*) FROM (
    SELECT 1 FROM facts_history
    WHERE source_id = ? AND entity_id = ? AND written_at >= ? AND written_at <= ? LIMIT ?
) found
"""

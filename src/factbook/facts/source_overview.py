"""Overview of a source: the amount of its facts, their times, and failures."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from factbook.catalog.store import collectable
from factbook.errors import UnavailableError
from factbook.facts import entity_filter
from factbook.facts.datasource import DataSource
from factbook.storage import Database

# Rows that one page of failures looks at.
SCANNED: Final = 5_000
# To count all of many takes PostgreSQL long.
COUNTED: Final = 10_000
# Sources that one statement asks about.
_AT_ONCE: Final = 100


class EntityFailure(NamedTuple):
    """An entity for which the last run brought nothing.

    `reasons` are keyed by the place of the facts, "" for all of them. Without reasons the values of
    `written_at` are kept; 0 means that there never were any.
    """

    ref: str
    reasons: dict[str, str]
    written_at: int


class Failures(NamedTuple):
    """A page of failures, possibly empty; `more` is the start of the next page, None at the end."""

    failures: list[EntityFailure]
    more: int | None


async def last_written(database: Database, source_ids: Iterable[str]) -> dict[str, int]:
    """The time of the latest values of each of these custom sources that has any."""
    ids, found = list(source_ids), dict[str, int]()
    for start in range(0, len(ids), _AT_ONCE):
        some = ids[start : start + _AT_ONCE]
        rows = await database.all(_last_written(len(some)), some)
        found |= {some[number]: at for number, at in rows if at is not None}
    return found


async def stored(database: Database, source_id: str) -> int:
    """The number of entities with a stored result of a source, counted up to `COUNTED`."""
    row = await database.one(_STORED, (source_id, COUNTED))
    return row[0] if row else 0


async def pushed(database: Database, source_id: str, limit: int) -> list[tuple[str, int, str]]:
    """The newest facts of a source: (entity reference, time, JSON)."""
    rows = await database.all(_PUSHED, (source_id, limit))
    return [(ref, at, facts) for ref, at, facts in rows]


async def failures(
    database: Database, source_id: str, since: int, after: int, limit: int
) -> Failures:
    """Up to `limit` entities about which nothing was written since a time, by id.

    A page scans at most `SCANNED` rows, so it may hold fewer failures.
    """
    rows = await database.search(_FAILURES, (source_id, after, SCANNED, since, limit + 1))
    found = [EntityFailure(ref, _read(reasons), at) for _, ref, reasons, at in rows[:limit]]
    if len(rows) > limit:
        return Failures(found, rows[limit - 1][0])
    last = await database.one(_PLACE, (source_id, after, SCANNED - 1))
    return Failures(found, None if last is None else last[0])


async def matching(database: Database, source: DataSource, limit: int) -> list[str]:
    """The references of up to `limit` entities that the source is about, in no particular order.

    None are found if the search takes too long.
    """
    where = collectable.EVERYTHING
    if source.selection is not None:
        where = entity_filter.where(source.selection)
    try:
        return await collectable.some(database, where, limit)
    except UnavailableError:
        return []


def _read(reasons: str) -> dict[str, str]:
    found: dict[str, str] = msgspec.json.decode(reasons)
    return found


# A part for each source finds its last row by the index; a group of them would read every row.
_LAST_WRITTEN = "SELECT {}, MAX(written_at) FROM facts_history WHERE source_id = ?"


def _last_written(count: int) -> str:
    return " UNION ALL ".join(_LAST_WRITTEN.format(number) for number in range(count))


_STORED = """
SELECT COUNT(*) FROM (SELECT 1 FROM facts_latest WHERE source_id = ? LIMIT ?) counted
"""

_PUSHED = """
SELECT e.ref, h.written_at, h.facts FROM (
    SELECT entity_id, written_at, facts FROM facts_history
    WHERE source_id = ? ORDER BY written_at DESC, entity_id LIMIT ?
) h JOIN entities e ON e.id = h.entity_id ORDER BY h.written_at DESC, e.ref
"""

# What was skipped, because nothing says where to look, is no failure.
_FAILURES = """
SELECT s.entity_id, e.ref, s.reasons, s.written_at FROM (
    SELECT entity_id, reasons, written_at, facts FROM facts_latest
    WHERE source_id = ? AND entity_id > ? ORDER BY entity_id LIMIT ?
) s JOIN entities e ON e.id = s.entity_id
WHERE CASE WHEN s.facts = '{}' THEN s.reasons NOT LIKE '{"":"%-annotation%'
    ELSE s.written_at < ? END
ORDER BY s.entity_id LIMIT ?
"""

_PLACE = """
SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id > ?
ORDER BY entity_id LIMIT 1 OFFSET ?
"""

"""The store of facts: one row with the latest facts of a source and entity, apart from history."""

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog.store.conditions import SQL, EntityRange
from factbook.facts import changes, entity_filter, freshness, history
from factbook.facts.changes import Before
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Freshness, Latest, Observation, merge
from factbook.storage import Database, Transaction

__all__ = [
    "Last",
    "Latest",
    "Observation",
    "StoredFacts",
    "Tracked",
    "count",
    "last",
    "latest",
    "latest_by_ref",
    "latest_for_entity",
    "latest_of_ref",
    "pages",
    "past_for_entity",
    "record",
    "sample",
]

NONE: Final = frozenset[str]()


class StoredFacts(NamedTuple):
    """The latest facts about an entity, as the stored JSON; None if nothing is stored.

    `reasons` explain missing values; `brought_at` is as in `Latest`. `stale` names the facts whose
    values the last collection could not renew.
    """

    facts: str | None
    reasons: dict[str, str]
    brought_at: int | None
    stale: frozenset[str] = NONE


class Last(NamedTuple):
    """The time of an entity's last collection (0: never); `reasons` is None if it has facts."""

    written_at: int
    reasons: dict[str, str] | None


class Tracked(NamedTuple):
    """The latest facts about one tracked entity, as the stored JSON, passed through undecoded.

    `reasons`, `brought_at` and `stale` are as in `StoredFacts`.
    """

    ref: str
    facts: msgspec.Raw
    reasons: msgspec.Raw
    brought_at: int
    stale: frozenset[str]


def record(
    transaction: Transaction, source: DataSource, observations: Iterable[Observation], now: int
) -> None:
    """Check the values against the schema; make them the latest, and append changes to history.

    Given reasons override those of the check. For transient reasons the last values are kept as
    described in `facts.freshness`. History receives only the observation's own values, and only if
    they differ from the last.
    """
    rows = list(observations)
    before = changes.before(transaction, source.id, [row.entity_id for row in rows])
    last = {
        row.entity_id: _latest(*before[row.entity_id])
        for row in rows
        if row.passing and row.entity_id in before
    }
    brought = [(row.entity_id, merge(source, row, last.get(row.entity_id), now)) for row in rows]
    found = [history.finding(id_, one.latest) for id_, one in brought if one.is_news]
    history.append(transaction, source, found, before, now)
    written = [_row(source.id, entity_id, one.latest) for entity_id, one in brought]
    _write_latest(transaction, source.id, written, before, now)
    changes.tell(transaction, source.id, before, {row[1]: row[3] for row in written}, now)


def _write_latest(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[Any, ...]],
    before: Mapping[int, Before],
    now: int,
) -> None:
    """Write the rows; of those that differ in their time alone, only that."""
    different, same = list[tuple[Any, ...]](), list[int]()
    for row in rows:
        _, entity_id, written_at, *said = row
        was = before.get(entity_id)
        if was is None or [*was[:3], was.kept] != said:
            different.append(row)
        elif written_at == now:
            same.append(entity_id)
        elif written_at != was.written_at:
            different.append(row)
    transaction.many(_WRITE_LATEST, different)
    changes.touch_values(transaction, source_id, [row[1] for row in different])
    changes.touch_times(transaction, source_id, same)
    if same:
        transaction.run(_CONFIRM, (now, source_id, same))


def sample(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[int, Mapping[str, object]]],
    now: int,
    version: str,
) -> None:
    """Append (entity id, facts) to history if the facts differ from the entity's last row."""
    texts = ((entity_id, _json(facts)) for entity_id, facts in rows)
    transaction.many(
        _SAMPLE,
        (
            (source_id, entity_id, now, text, version, source_id, entity_id, text)
            for entity_id, text in texts
        ),
    )


async def last(database: Database, source_id: str) -> dict[int, Last]:
    """The last collection of every entity that the source knows, by entity id."""
    rows = await database.all(_LAST, (source_id,))
    read = msgspec.json.decode
    return {id_: Last(at, None if reasons is None else read(reasons)) for id_, at, reasons in rows}


def collected(transaction: Transaction, source_id: str, ids: list[int]) -> set[int]:
    """The given ids of entities that the source knows something of, or why it does not."""
    return {row[0] for row in transaction.all(_COLLECTED, (source_id, ids))}


async def latest(database: Database, source_id: str, entity_id: int) -> Latest | None:
    """The latest facts of one source about one entity; None if it was never collected."""
    row = await database.one(_LATEST, (source_id, entity_id))
    return freshness.of(database).marked(source_id, _latest(*row)) if row else None


async def latest_by_ref(database: Database, source_id: str, ref: str) -> StoredFacts | None:
    """The latest facts of one source about the entity with this reference; None without entity."""
    row = await database.one(_LATEST_BY_REF, (source_id, ref))
    if row is None:
        return None
    facts, reasons, written_at, kept = row
    if facts is None:
        return StoredFacts(None, {}, None)
    brought_at = _brought_at(facts, written_at, kept)
    stale = _stale(freshness.of(database), source_id, facts, written_at, kept)
    return StoredFacts(facts, msgspec.json.decode(reasons), brought_at, stale)


async def latest_for_entity(database: Database, entity_id: int) -> dict[str, Latest]:
    """The latest facts about one entity, by source id."""
    marked = freshness.of(database).marked
    rows = await database.all(_LATEST_FOR_ENTITY, (entity_id,))
    return {source_id: marked(source_id, _latest(*row)) for source_id, *row in rows}


async def past_for_entity(
    database: Database, entity_id: int, source_ids: Collection[str], moment: int
) -> dict[str, dict[str, msgspec.Raw]]:
    """The values that each source had written last by a moment, as JSON by fact.

    Facts that it did not mention then are missing, as are long values that are stored elsewhere.
    """
    if not source_ids:
        return {}
    rows = await database.all(_PAST_FOR_ENTITY, (moment, entity_id, sorted(source_ids)))
    read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    return {source_id: read(facts) for source_id, facts in rows if facts is not None}


async def latest_of_ref(database: Database, ref: str) -> dict[str, Latest]:
    """The latest facts about the entity with this reference, by source id."""
    marked = freshness.of(database).marked
    rows = await database.all(_LATEST_OF_REF, (ref,))
    return {source_id: marked(source_id, _latest(*row)) for source_id, *row in rows}


async def pages(
    database: Database, source: DataSource, wanted: EntityRange
) -> AsyncIterator[list[Tracked]]:
    """Tracked entities, from one snapshot, ordered by reference."""
    tracked, parameters = _tracked_by(source, wanted)
    bound, most = ("", ()) if wanted.limit is None else (" LIMIT ?", (wanted.limit,))
    sql = f"{_TRACKED}{tracked} AND e.ref > ? ORDER BY e.ref{bound}"
    known = freshness.of(database)
    async for rows in database.pages(sql, (*parameters, wanted.after, *most)):
        yield [_tracked(known, source.id, *row) for row in rows]


async def count(database: Database, source: DataSource, wanted: EntityRange, most: int) -> int:
    """The number of tracked entities, counted up to `most`."""
    tracked, parameters = _tracked_by(source, wanted)
    # The number is no parameter: PostgreSQL's plan for any number is one for all entities.
    sql = f"SELECT COUNT(*) FROM (SELECT 1 {_FROM}{tracked} LIMIT {most}) found"
    row = await database.one(sql, parameters)
    return row[0] if row else 0


def _row(source_id: str, entity_id: int, latest: Latest) -> tuple[Any, ...]:
    facts, reasons, version, written_at, kept = latest
    texts = _json(facts), _json(reasons), version, _json(kept)
    return (source_id, entity_id, written_at, *texts)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _latest(facts: str, reasons: str, version: str, written_at: int, kept: str) -> Latest:
    read = msgspec.json.decode
    return Latest(read(facts), read(reasons), version, written_at, read(kept))


def _tracked(
    known: Freshness, source_id: str, ref: str, facts: str, reasons: str, written_at: int, kept: str
) -> Tracked:
    time = _brought_at(facts, written_at, kept) or written_at
    stale = _stale(known, source_id, facts, written_at, kept)
    return Tracked(ref, msgspec.Raw(facts), msgspec.Raw(reasons), time, stale)


def _stale(
    known: Freshness, source_id: str, facts: str, written_at: int, kept: str
) -> frozenset[str]:
    """The names of the stale facts."""
    if kept == "{}" and written_at >= known.stale_before(source_id):
        return NONE
    return frozenset(known.marked(source_id, _latest(facts, "{}", "", written_at, kept)).kept)


def _brought_at(facts: str, written_at: int, kept: str) -> int | None:
    if kept == "{}":
        return None if facts == "{}" else written_at
    return _latest(facts, "{}", "", written_at, kept).brought_at


def _tracked_by(source: DataSource, wanted: EntityRange) -> SQL:
    """The condition for tracked entities, which match the source's filter."""
    sql, values = entity_filter.narrowed(source.selection, wanted)
    return sql, [source.id, *values]


_WRITE_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version, kept)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id) DO UPDATE SET written_at = excluded.written_at,
    facts = excluded.facts, reasons = excluded.reasons, version = excluded.version,
    kept = excluded.kept
"""

# Spares the database all texts of what did not change.
_CONFIRM = "UPDATE facts_latest SET written_at = ? WHERE source_id = ? AND entity_id IN LIST(?)"

_SAMPLE = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
SELECT ?, ?, ?, ?, '{}', ? WHERE COALESCE((
    SELECT facts FROM facts_history WHERE source_id = ? AND entity_id = ?
    ORDER BY written_at DESC LIMIT 1
), '') <> ?
ON CONFLICT DO NOTHING
"""

_COLUMNS = "facts, reasons, version, written_at, kept"

_LAST = """
SELECT entity_id, written_at, CASE WHEN facts = '{}' THEN reasons END FROM facts_latest
WHERE source_id = ?
"""

_COLLECTED = "SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)"

_LATEST = f"""
SELECT {_COLUMNS} FROM facts_latest WHERE source_id = ? AND entity_id = ?
"""

_LATEST_BY_REF = """
SELECT l.facts, l.reasons, l.written_at, l.kept FROM entities e
LEFT JOIN facts_latest l ON l.entity_id = e.id AND l.source_id = ? WHERE e.ref = ?
"""

_LATEST_FOR_ENTITY = f"""
SELECT source_id, {_COLUMNS} FROM facts_latest
WHERE entity_id = ? ORDER BY source_id
"""

_PAST_FOR_ENTITY = """
SELECT l.source_id, (
    SELECT h.facts FROM facts_history h
    WHERE h.source_id = l.source_id AND h.entity_id = l.entity_id AND h.written_at <= ?
    ORDER BY h.written_at DESC LIMIT 1
) FROM facts_latest l WHERE l.entity_id = ? AND l.source_id IN LIST(?)
"""

_LATEST_OF_REF = f"""
SELECT source_id, {_COLUMNS} FROM facts_latest
WHERE entity_id IN (SELECT id FROM entities WHERE ref = ?) ORDER BY source_id
"""

# CROSS JOIN keeps SQLite from sorting all rows of the source again for every page.
_FROM = """
FROM entities e CROSS JOIN facts_latest l
WHERE l.source_id = ? AND l.entity_id = e.id AND l.facts <> '{}'"""

_TRACKED = f"SELECT e.ref, l.facts, l.reasons, l.written_at, l.kept {_FROM}"

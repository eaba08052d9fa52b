"""The store of facts: the latest of a source and entity in one row, and history apart from it."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from factbook.catalog.store.conditions import SQL
from factbook.facts import entity_filter
from factbook.facts.datasource import DataSource
from factbook.storage import Database, Transaction

# Rows that a sweep reads and at most deletes in one go, so that no other write waits long.
_SWEPT_AT_ONCE = 1_000
_NO_REASONS: Mapping[str, str] = {}


class Observation(NamedTuple):
    """What one collection brought for one entity: values, and why others are missing, by fact."""

    entity_id: int
    values: Mapping[str, object]
    reasons: Mapping[str, str] = _NO_REASONS


class Latest(NamedTuple):
    """The latest facts of one source about one entity; `written_at` in ms since the epoch."""

    facts: dict[str, Any]
    reasons: dict[str, str]
    version: str
    written_at: int


class Known(NamedTuple):
    """The latest facts about an entity, as the stored JSON; both None if it was never collected."""

    facts: str | None
    written_at: int | None


class Tracked(NamedTuple):
    """The latest facts about one tracked entity, as the stored JSON, which passes on unread."""

    ref: str
    facts: msgspec.Raw
    written_at: int


def record(
    transaction: Transaction,
    source: DataSource,
    entity_id: int,
    values: Mapping[str, object],
    now: int,
    *,
    reasons: Mapping[str, str] = _NO_REASONS,
) -> None:
    """Check the values against the schema; make them the latest and append them to history."""
    record_many(transaction, source, [Observation(entity_id, values, reasons)], now)


def record_many(
    transaction: Transaction, source: DataSource, observations: Iterable[Observation], now: int
) -> None:
    """`record` for many entities at once; reasons given win over those of the check."""
    rows = [_row(source, observation, now) for observation in observations]
    transaction.many(_WRITE_LATEST, rows)
    transaction.many(_APPEND, rows)


def sample(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[int, Mapping[str, object]]],
    now: int,
    version: str,
) -> None:
    """Append (entity id, facts) to history where the facts differ from the entity's last row."""
    transaction.many(
        _SAMPLE,
        (
            (source_id, entity_id, now, text, version, source_id, entity_id, text)
            for entity_id, text in ((entity_id, _json(facts)) for entity_id, facts in rows)
        ),
    )


def forget(
    transaction: Transaction, entity_ids: Iterable[int], source_id: str | None = None
) -> None:
    """Drop what is stored about these entities: all of it, or what one source brought."""
    only, parameters = ("", ()) if source_id is None else (" AND source_id = ?", (source_id,))
    ids = list(entity_ids)
    for statement in (_FORGET_LATEST, _FORGET_HISTORY):
        transaction.run(statement + only, (ids, *parameters))


async def latest(database: Database, source_id: str, entity_id: int) -> Latest | None:
    """The latest facts of one source about one entity; None when it was never collected."""
    row = await database.one(_LATEST, (source_id, entity_id))
    return _latest(*row) if row else None


async def latest_by_ref(database: Database, source_id: str, ref: str) -> Known | None:
    """The latest facts of one source about the entity with this reference; None without entity."""
    row = await database.one(_LATEST_BY_REF, (source_id, ref))
    return Known(*row) if row else None


async def latest_for_entity(database: Database, entity_id: int) -> dict[str, Latest]:
    """The latest facts about one entity, by the id of their source."""
    rows = await database.all(_LATEST_FOR_ENTITY, (entity_id,))
    return {source_id: _latest(*row) for source_id, *row in rows}


async def page(
    database: Database,
    source: DataSource,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    after: str = "",
    limit: int,
) -> list[Tracked]:
    """Up to `limit` tracked entities with a reference after `after`, ordered by reference."""
    tracked, parameters = _tracked_by(source, kind=kind, namespace=namespace)
    sql = f"{_TRACKED}{tracked} AND e.ref > ? ORDER BY e.ref LIMIT ?"
    rows = await database.all(sql, (*parameters, after, limit))
    return [_tracked(*row) for row in rows]


async def pages(
    database: Database,
    source: DataSource,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    after: str = "",
    limit: int | None = None,
) -> AsyncIterator[list[Tracked]]:
    """Every tracked entity after `after`, all of one moment, ordered by reference."""
    tracked, parameters = _tracked_by(source, kind=kind, namespace=namespace)
    bound, most = ("", ()) if limit is None else (" LIMIT ?", (limit,))
    sql = f"{_TRACKED}{tracked} AND e.ref > ? ORDER BY e.ref{bound}"
    async for rows in database.pages(sql, (*parameters, after, *most)):
        yield [_tracked(*row) for row in rows]


async def count(
    database: Database,
    source: DataSource,
    *,
    kind: str | None = None,
    namespace: str | None = None,
) -> int:
    """The number of tracked entities."""
    tracked, parameters = _tracked_by(source, kind=kind, namespace=namespace)
    row = await database.one(f"{_COUNT}{tracked}", parameters)
    return row[0] if row else 0


async def sweep(database: Database, source: DataSource, now: int) -> int:
    """Trim the history of a source to its lifecycle; the number of rows that went."""
    if source.lifecycle is None:
        return 0
    removed = 0
    places: Counter[int] = Counter()
    async for keys in _history(database, source.id):
        outlived = []
        for entity_id, written_at in keys:
            places[entity_id] += 1
            if not source.lifecycle.keeps(places[entity_id], now - written_at):
                outlived.append((source.id, entity_id, written_at))
        if outlived:
            await database.write(partial(_trim, keys=outlived))
            removed += len(outlived)
    return removed


async def _history(database: Database, source_id: str) -> AsyncIterator[list[tuple[int, int]]]:
    """Entity id and time of every row of a source's history, the newest of an entity first."""
    last = (_BEYOND, _BEYOND)
    while keys := await database.all(_HISTORY, (source_id, *last, _SWEPT_AT_ONCE)):
        yield [(entity_id, written_at) for entity_id, written_at in keys]
        last = keys[-1]


def _trim(transaction: Transaction, keys: list[tuple[str, int, int]]) -> None:
    transaction.many(_TRIM, keys)


def _row(source: DataSource, observation: Observation, now: int) -> tuple[Any, ...]:
    checked = source.check(observation.values)
    facts, reasons = _json(checked.stored), _json(checked.reasons | dict(observation.reasons))
    return (source.id, observation.entity_id, now, facts, reasons, source.version)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _latest(facts: str, reasons: str, version: str, written_at: int) -> Latest:
    return Latest(msgspec.json.decode(facts), msgspec.json.decode(reasons), version, written_at)


def _tracked(ref: str, facts: str, written_at: int) -> Tracked:
    return Tracked(ref, msgspec.Raw(facts), written_at)


def _tracked_by(source: DataSource, **columns: str | None) -> SQL:
    """What makes an entity tracked: the source's filter, and columns that are not None."""
    given = {name: value for name, value in columns.items() if value is not None}
    sql = "".join(f" AND e.{name} = ?" for name in given)
    parameters: list[object] = [source.id, *given.values()]
    if source.entity_filter is not None:
        condition, values = entity_filter.where(source.entity_filter)
        return f"{sql} AND {condition}", [*parameters, *values]
    return sql, parameters


_WRITE_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id) DO UPDATE SET written_at = excluded.written_at,
    facts = excluded.facts, reasons = excluded.reasons, version = excluded.version
"""

# History never changes a row, not even when a run is repeated within the same millisecond.
_APPEND = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""

_SAMPLE = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
SELECT ?, ?, ?, ?, '{}', ? WHERE COALESCE((
    SELECT facts FROM facts_history WHERE source_id = ? AND entity_id = ?
    ORDER BY written_at DESC LIMIT 1
), '') <> ?
ON CONFLICT DO NOTHING
"""

_FORGET_LATEST = "DELETE FROM facts_latest WHERE entity_id IN LIST(?)"

_FORGET_HISTORY = "DELETE FROM facts_history WHERE entity_id IN LIST(?)"

_LATEST = """
SELECT facts, reasons, version, written_at FROM facts_latest WHERE source_id = ? AND entity_id = ?
"""

_LATEST_BY_REF = """
SELECT l.facts, l.written_at FROM entities e
LEFT JOIN facts_latest l ON l.entity_id = e.id AND l.source_id = ? WHERE e.ref = ?
"""

_LATEST_FOR_ENTITY = """
SELECT source_id, facts, reasons, version, written_at FROM facts_latest
WHERE entity_id = ? ORDER BY source_id
"""

# CROSS JOIN keeps SQLite from sorting all rows of the source anew for every page.
_FROM = """
FROM entities e CROSS JOIN facts_latest l
WHERE l.source_id = ? AND l.entity_id = e.id AND l.facts <> '{}'"""

_TRACKED = f"SELECT e.ref, l.facts, l.written_at {_FROM}"

_COUNT = f"SELECT COUNT(*) {_FROM}"

_BEYOND = 2**63 - 1

_HISTORY = """
SELECT entity_id, written_at FROM facts_history
WHERE source_id = ? AND (entity_id, written_at) < (?, ?)
ORDER BY entity_id DESC, written_at DESC LIMIT ?
"""

_TRIM = "DELETE FROM facts_history WHERE source_id = ? AND entity_id = ? AND written_at = ?"

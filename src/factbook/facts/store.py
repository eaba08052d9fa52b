"""The store of the latest facts: one row per source and entity, apart from history."""

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.catalog.store.conditions import SQL, EntityRange
from factbook.errors import UnavailableError
from factbook.facts import freshness, history
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import (
    Freshness,
    Latest,
    Observation,
    find_reason,
    merge_observation,
)
from factbook.facts.history import Before
from factbook.facts.schema import ANY_FACT, NEVER_COLLECTED, reason_word
from factbook.storage import Database, Row, Transaction

NO_STALE_FACTS: Final = frozenset[str]()
# By entity id and source id.
FactValues = dict[int, dict[str, dict[str, Any]]]
_NO_FACTS: Mapping[str, Any] = {}
_decode_facts: Final = msgspec.json.Decoder(dict[str, Any]).decode
Reasons = Mapping[str, str]
_decode_reasons = lru_cache(maxsize=256)(msgspec.json.Decoder(dict[str, str]).decode)
# Rows scanned for one page of failures.
FAILURES_SCANNED: Final = 5_000
# Counting large numbers of rows takes PostgreSQL long.
MOST_COUNTED: Final = 10_000
# Sources in one statement.
_SOURCES_AT_ONCE: Final = 100


class StoredFacts(NamedTuple):
    """The latest facts about an entity, as the stored JSON; None if nothing is stored.

    `reasons` explain missing values; `brought_at` is as in `Latest`. `stale` names the facts whose
    values the last collection could not renew.
    """

    facts: str | None
    reasons: dict[str, str]
    brought_at: int | None
    stale: frozenset[str] = NO_STALE_FACTS


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


def record_facts(
    transaction: Transaction, source: DataSource, observations: Iterable[Observation], now: int
) -> None:
    """Check the values against the schema; make them the latest, and append changes to history.

    Given reasons override those of the check. For transient reasons the last values are kept as
    described in `facts.freshness`. History receives only the observation's own values, and only if
    they differ from the last.
    """
    rows = list(observations)
    before = history.select_stored(transaction, source.id, [row.entity_id for row in rows])
    last = {
        row.entity_id: _latest_of_row(*before[row.entity_id])
        for row in rows
        if row.passing and row.entity_id in before
    }
    merged = [
        (row.entity_id, merge_observation(source, row, last.get(row.entity_id), now))
        for row in rows
    ]
    news = [history.found_facts(id_, latest) for id_, (latest, is_news) in merged if is_news]
    history.append_history(transaction, source, news, before, now)
    written = [
        (
            source.id,
            entity_id,
            latest.written_at,
            _encode_json(latest.facts),
            _encode_json(latest.reasons),
            latest.version,
            _encode_json(latest.kept),
        )
        for entity_id, (latest, _) in merged
    ]
    _write_rows(transaction, source.id, written, before, now)
    history.publish_changes(
        transaction, source.id, before, {row[1]: row[3] for row in written}, now
    )


def _write_rows(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[Any, ...]],
    before: Mapping[int, Before],
    now: int,
) -> None:
    """Write the rows; if only the time differs, write only the time."""
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
    history.touch_values(transaction, source_id, [row[1] for row in different])
    history.touch_times(transaction, source_id, same)
    if same:
        transaction.run(_CONFIRM, (now, source_id, same))


def append_samples(
    transaction: Transaction,
    source_id: str,
    rows: Iterable[tuple[int, Mapping[str, object]]],
    now: int,
    version: str,
) -> None:
    """Append (entity id, facts) to history if the facts differ from the entity's last row."""
    texts = ((entity_id, _encode_json(facts)) for entity_id, facts in rows)
    transaction.many(
        _SAMPLE,
        (
            (source_id, entity_id, now, text, version, source_id, entity_id, text)
            for entity_id, text in texts
        ),
    )


async def find_last_collections(database: Database, source_id: str) -> dict[int, Last]:
    """The last collection of every entity that the source knows, by entity id."""
    rows = await database.all(_LAST_COLLECTIONS, (source_id,))
    read = msgspec.json.decode
    return {id_: Last(at, None if reasons is None else read(reasons)) for id_, at, reasons in rows}


def select_collected(transaction: Transaction, source_id: str, ids: list[int]) -> set[int]:
    """The given entity ids for which the source has facts or reasons."""
    return {row[0] for row in transaction.all(_COLLECTED, (source_id, ids))}


async def find_latest(database: Database, source_id: str, entity_id: int) -> Latest | None:
    """The latest facts of one source about one entity; None if it was never collected."""
    row = await database.one(_LATEST, (source_id, entity_id))
    return freshness.freshness_of(database).marked(source_id, _latest_of_row(*row)) if row else None


async def find_latest_by_ref(database: Database, source_id: str, ref: str) -> StoredFacts | None:
    """The latest facts of one source about the entity with this reference; None without entity."""
    row = await database.one(_LATEST_BY_REF, (source_id, ref))
    if row is None:
        return None
    facts, reasons, written_at, kept = row
    if facts is None:
        return StoredFacts(None, {}, None)
    brought_at = _collected_at(facts, written_at, kept)
    stale = _stale_of_row(freshness.freshness_of(database), source_id, facts, written_at, kept)
    return StoredFacts(facts, msgspec.json.decode(reasons), brought_at, stale)


async def list_latest(database: Database, entity_id: int) -> dict[str, Latest]:
    """The latest facts about one entity, by source id."""
    marked = freshness.freshness_of(database).marked
    rows = await database.all(_LATEST_FOR_ENTITY, (entity_id,))
    return {source_id: marked(source_id, _latest_of_row(*row)) for source_id, *row in rows}


async def list_past(
    database: Database, entity_id: int, source_ids: Collection[str], moment: int
) -> dict[str, dict[str, msgspec.Raw]]:
    """The last values that each source had written by a moment, as JSON by fact.

    Facts missing from that row are left out, as are long values stored in another row.
    """
    if not source_ids:
        return {}
    rows = await database.all(_PAST_FOR_ENTITY, (moment, entity_id, sorted(source_ids)))
    read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
    return {source_id: read(facts) for source_id, facts in rows if facts is not None}


async def list_latest_by_ref(database: Database, ref: str) -> dict[str, Latest]:
    """The latest facts about the entity with this reference, by source id."""
    marked = freshness.freshness_of(database).marked
    rows = await database.all(_LATEST_OF_REF, (ref,))
    return {source_id: marked(source_id, _latest_of_row(*row)) for source_id, *row in rows}


async def page_tracked(
    database: Database, source: DataSource, wanted: EntityRange
) -> AsyncIterator[list[Tracked]]:
    """Tracked entities, from one snapshot, ordered by reference."""
    tracked, parameters = _tracked_condition(source, wanted)
    bound, most = ("", ()) if wanted.limit is None else (" LIMIT ?", (wanted.limit,))
    sql = f"{_TRACKED}{tracked} AND e.ref > ? ORDER BY e.ref{bound}"
    known = freshness.freshness_of(database)
    async for rows in database.pages(sql, (*parameters, wanted.after, *most)):
        yield [
            Tracked(
                ref,
                msgspec.Raw(facts),
                msgspec.Raw(reasons),
                _collected_at(facts, written_at, kept) or written_at,
                _stale_of_row(known, source.id, facts, written_at, kept),
            )
            for ref, facts, reasons, written_at, kept in rows
        ]


async def count_tracked(
    database: Database, source: DataSource, wanted: EntityRange, most: int
) -> int:
    """The number of tracked entities, counted up to `most`."""
    tracked, parameters = _tracked_condition(source, wanted)
    # The limit is not a parameter: PostgreSQL's generic plan would be one for all entities.
    sql = f"SELECT COUNT(*) FROM (SELECT 1 {_FROM_TRACKED}{tracked} LIMIT {most}) found"
    row = await database.one(sql, parameters)
    return row[0] if row else 0


def _encode_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _latest_of_row(facts: str, reasons: str, version: str, written_at: int, kept: str) -> Latest:
    read = msgspec.json.decode
    return Latest(read(facts), read(reasons), version, written_at, read(kept))


def _stale_of_row(
    known: Freshness, source_id: str, facts: str, written_at: int, kept: str
) -> frozenset[str]:
    """The names of the stale facts."""
    if kept == "{}" and written_at >= known.stale_before(source_id):
        return NO_STALE_FACTS
    return frozenset(
        known.marked(source_id, _latest_of_row(facts, "{}", "", written_at, kept)).kept
    )


def _collected_at(facts: str, written_at: int, kept: str) -> int | None:
    if kept == "{}":
        return None if facts == "{}" else written_at
    return _latest_of_row(facts, "{}", "", written_at, kept).brought_at


def _tracked_condition(source: DataSource, wanted: EntityRange) -> SQL:
    """The condition for tracked entities, which match the source's filter."""
    sql, values = filters.narrow_by_filter(source.selection, wanted)
    return sql, [source.id, *values]


def latest_among(source_ids: Sequence[str], entity_ids: Sequence[int]) -> SQL:
    """The statement for the rows about these entities."""
    return _LATEST_AMONG, [list(source_ids), list(entity_ids)]


def latest_between(source_ids: Sequence[str], first: int, last: int) -> SQL:
    """The statement for the rows about the entities from one id to another."""
    return _LATEST_BETWEEN, [list(source_ids), first, last]


def group_latest(rows: Iterable[Row]) -> dict[int, dict[str, Latest]]:
    """The latest facts by entity id and source id, from rows of such a statement."""
    found: dict[int, dict[str, Latest]] = {}
    for entity_id, source_id, facts, reasons, version, written_at, kept in rows:
        latest = Latest(
            _decode_facts(facts),
            {} if reasons == "{}" else _decode_facts(reasons),
            version,
            written_at,
            _NO_FACTS if kept == "{}" else _decode_facts(kept),
        )
        found.setdefault(entity_id, {})[source_id] = latest
    return found


def mark_stale(
    database: Database, found: dict[int, dict[str, Latest]]
) -> dict[int, dict[str, Latest]]:
    """The facts with stale values marked as kept, for readers."""
    mark = freshness.freshness_of(database).marked
    return {
        id_: {source: mark(source, latest) for source, latest in own.items()}
        for id_, own in found.items()
    }


async def find_stale_entities(
    database: Database, reads: Mapping[str, Set[str]], entity_ids: Sequence[int]
) -> set[int]:
    """The entities for which one of these facts, by source, is stale."""
    known = freshness.freshness_of(database)
    moments = {source_id: known.stale_before(source_id) for source_id in reads}
    rows: list[Row] = []
    if reads and entity_ids:
        asked = list(reads), list(entity_ids), max(moments.values())
        rows = await database.all(_STALE_AMONG, asked)
    return {
        entity_id
        for entity_id, source_id, written_at, kept in rows
        if written_at < moments[source_id]
        or any(
            name in reads[source_id] and time < known.kept_before(source_id)
            for name, time in _decode_facts(kept).items()
        )
    }


def values_among(source_ids: Sequence[str], entity_ids: Sequence[int]) -> SQL:
    """The statement for the values about these entities."""
    return _VALUES_AMONG, [list(source_ids), list(entity_ids)]


def values_between(source_ids: Sequence[str], first: int, last: int) -> SQL:
    """The statement for the values about the entities from one id to another."""
    return _VALUES_BETWEEN, [list(source_ids), first, last]


def group_values(rows: Iterable[Row]) -> FactValues:
    """The values by entity id and source id, from rows of such a statement."""
    found: FactValues = {}
    for entity_id, source_id, facts in rows:
        found.setdefault(entity_id, {})[source_id] = _decode_facts(facts)
    return found


class KeyValue(NamedTuple):
    """A value and its source; None if the source knows the entity but has no value."""

    source: str
    value: Any
    stale: bool = False


async def list_key_values(
    database: Database, wanted: Mapping[str, Sequence[str]], entity_ids: Sequence[int]
) -> dict[str, dict[int, KeyValue]]:
    """The values by fact and entity id, from the first source that knows the entity.

    `wanted` has the sources of each fact.
    """
    sources = sorted({source for some in wanted.values() for source in some})
    if not sources or not entity_ids:
        return {name: {} for name in wanted}
    rows = await database.all(*latest_among(sources, entity_ids))
    latest = mark_stale(database, group_latest(rows))
    values: dict[str, dict[int, KeyValue]] = {name: {} for name in wanted}
    for name, candidates in wanted.items():
        for id_, by_source in latest.items():
            present = [source for source in candidates if source in by_source]
            source = next((one for one in present if name in by_source[one].facts), None)
            if source is not None:
                facts, kept = by_source[source].facts, by_source[source].kept
                values[name][id_] = KeyValue(source, facts[name], name in kept)
            elif present:
                values[name][id_] = KeyValue(present[0], None)
    return values


async def list_latest_of_entities(
    database: Database, source_ids: Sequence[str], entity_ids: Sequence[int]
) -> Mapping[int, Mapping[str, Latest]]:
    """The latest facts of sources by entity id and source id, in one statement."""
    if not source_ids or not entity_ids:
        return {}
    rows = await database.all(*latest_among(source_ids, entity_ids))
    return mark_stale(database, group_latest(rows))


class UnknownCount(NamedTuple):
    """The number of entities without facts, by reason word and in total.

    An entity with several reasons counts for each. `is_whole`: the count is complete.
    """

    reasons: Mapping[str, int]
    entities: int
    is_whole: bool


def explain_missing(
    names: Collection[str], known: Collection[str], stored: Reasons, kept: Collection[str] | None
) -> dict[str, str]:
    """Reasons for missing values: by fact, by group, or `*` for all others.

    `names` are the facts of the source, `known` those with a value, `stored` the reasons. If `kept`
    names some facts, only these are included, each with its own reason.
    """
    if kept is not None:
        lacking = [name for name in names if name in kept and name not in known]
        return {name: find_reason(name, stored) or NEVER_COLLECTED for name in lacking}
    if not known and not stored:
        return {ANY_FACT: NEVER_COLLECTED}
    found = {place or ANY_FACT: reason for place, reason in stored.items()}
    if "" in stored:
        return found
    silent = (n for n in names if n not in known and find_reason(n, stored) is None)
    return found | dict.fromkeys(silent, NEVER_COLLECTED)


def reasons_by_place(reasons: str | msgspec.Raw) -> Reasons:
    """Decode stored reasons, caching equal texts."""
    return _decode_reasons(reasons if isinstance(reasons, str) else bytes(reasons).decode())


async def page_unknown(
    database: Database, source: DataSource, wanted: EntityRange
) -> AsyncIterator[list[tuple[str, str]]]:
    """References of entities without facts, in order, with the stored reasons."""
    sql, values = _unknown_condition(source, wanted)
    bound, most = ("", ()) if wanted.limit is None else (" LIMIT ?", (wanted.limit,))
    text = f"SELECT e.ref, {_STORED_REASONS} {sql} AND e.ref > ? ORDER BY e.ref{bound}"
    async for rows in database.pages(text, (*values, wanted.after, *most)):
        yield [(ref, reasons) for ref, reasons in rows]


async def count_unknown(
    database: Database, source: DataSource, wanted: EntityRange, most: int
) -> UnknownCount:
    """The number of entities without facts, up to `most`; none are counted if it takes too long."""
    sql, values = _unknown_condition(source, wanted)
    # The limit is not a parameter: PostgreSQL's generic plan would be one for all entities.
    found = f"SELECT {_STORED_REASONS} AS reasons {sql} LIMIT {most}"
    try:
        rows = await database.search(_COUNT_REASONS.replace("{found}", found), values)
    except UnavailableError:
        return UnknownCount({}, 0, is_whole=False)
    counted = Counter[str]()
    for reasons, number in rows:
        for reason in {reason_word(one) for one in reasons_by_place(reasons).values()} or {
            NEVER_COLLECTED
        }:
            counted[reason] += number
    entities = sum(number for _, number in rows)
    return UnknownCount(dict(counted), entities, is_whole=entities < most)


def _unknown_condition(source: DataSource, wanted: EntityRange) -> SQL:
    narrowed, values = filters.narrow_by_filter(source.selection, wanted)
    return f"{_FROM_UNKNOWN}{narrowed}", [source.id, *values]


class EntityFailure(NamedTuple):
    """An entity for which the last run stored no facts.

    `reasons` are keyed by the place of the facts, "" for all facts. Without reasons, the values
    from `written_at` are kept; 0 means never collected.
    """

    ref: str
    reasons: dict[str, str]
    written_at: int


class Failures(NamedTuple):
    """A page of failures, possibly empty; `more` is the start of the next page, None at the end."""

    failures: list[EntityFailure]
    more: int | None


async def find_last_written(database: Database, source_ids: Iterable[str]) -> dict[str, int]:
    """The time of the latest values of each of these custom sources that has any."""
    ids, found = list(source_ids), dict[str, int]()
    for start in range(0, len(ids), _SOURCES_AT_ONCE):
        some = ids[start : start + _SOURCES_AT_ONCE]
        rows = await database.all(
            " UNION ALL ".join(_LAST_WRITTEN.format(number) for number in range(len(some))), some
        )
        found |= {some[number]: at for number, at in rows if at is not None}
    return found


async def count_stored(database: Database, source_id: str) -> int:
    """The number of entities with a stored result of a source, counted up to `MOST_COUNTED`."""
    row = await database.one(_COUNT_STORED, (source_id, MOST_COUNTED))
    return row[0] if row else 0


async def list_pushed(database: Database, source_id: str, limit: int) -> list[tuple[str, int, str]]:
    """The newest facts of a source: (entity reference, time, JSON)."""
    rows = await database.all(_PUSHED_FACTS, (source_id, limit))
    return [(ref, at, facts) for ref, at, facts in rows]


async def page_failures(
    database: Database, source_id: str, since: int, after: int, limit: int
) -> Failures:
    """Up to `limit` entities without a write since a time, by id.

    A page scans at most `FAILURES_SCANNED` rows, so it may hold fewer failures.
    """
    rows = await database.search(
        _FAILED_ENTITIES, (source_id, after, FAILURES_SCANNED, since, limit + 1)
    )
    failures = [
        EntityFailure(ref, msgspec.json.decode(reasons), at) for _, ref, reasons, at in rows[:limit]
    ]
    if len(rows) > limit:
        return Failures(failures, rows[limit - 1][0])
    last = await database.one(_FAILURE_PLACE, (source_id, after, FAILURES_SCANNED - 1))
    return Failures(failures, None if last is None else last[0])


async def list_matching(database: Database, source: DataSource, limit: int) -> list[str]:
    """The references of up to `limit` entities that match the source's filter, in any order.

    Empty if the search takes too long.
    """
    where = stored_entities.EVERY_ENTITY
    if source.selection is not None:
        where = filters.make_filter_condition(source.selection)
    try:
        return await stored_entities.read_some_ids(database, where, limit)
    except UnavailableError:
        return []


# A subquery per source finds its last row by the index; GROUP BY would read every row.
_LAST_WRITTEN = "SELECT {}, MAX(written_at) FROM facts_history WHERE source_id = ?"


_WRITE_LATEST = """
INSERT INTO facts_latest (source_id, entity_id, written_at, facts, reasons, version, kept)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (source_id, entity_id) DO UPDATE SET written_at = excluded.written_at,
    facts = excluded.facts, reasons = excluded.reasons, version = excluded.version,
    kept = excluded.kept
"""

# Avoids sending unchanged texts to the database.
_CONFIRM = "UPDATE facts_latest SET written_at = ? WHERE source_id = ? AND entity_id IN LIST(?)"

_SAMPLE = """
INSERT INTO facts_history (source_id, entity_id, written_at, facts, reasons, version)
SELECT ?, ?, ?, ?, '{}', ? WHERE COALESCE((
    SELECT facts FROM facts_history WHERE source_id = ? AND entity_id = ?
    ORDER BY written_at DESC LIMIT 1
), '') <> ?
ON CONFLICT DO NOTHING
"""

_LATEST_COLUMNS = "facts, reasons, version, written_at, kept"

_LAST_COLLECTIONS = """
SELECT entity_id, written_at, CASE WHEN facts = '{}' THEN reasons END FROM facts_latest
WHERE source_id = ?
"""

_COLLECTED = "SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id IN LIST(?)"

_LATEST = f"""
SELECT {_LATEST_COLUMNS} FROM facts_latest WHERE source_id = ? AND entity_id = ?
"""

_LATEST_BY_REF = """
SELECT l.facts, l.reasons, l.written_at, l.kept FROM entities e
LEFT JOIN facts_latest l ON l.entity_id = e.id AND l.source_id = ? WHERE e.ref = ?
"""

_LATEST_FOR_ENTITY = f"""
SELECT source_id, {_LATEST_COLUMNS} FROM facts_latest
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
SELECT source_id, {_LATEST_COLUMNS} FROM facts_latest
WHERE entity_id IN (SELECT id FROM entities WHERE ref = ?) ORDER BY source_id
"""

# CROSS JOIN keeps SQLite from sorting all rows of the source for every page.
_FROM_TRACKED = """
FROM entities e CROSS JOIN facts_latest l
WHERE l.source_id = ? AND l.entity_id = e.id AND l.facts <> '{}'"""

_TRACKED = f"SELECT e.ref, l.facts, l.reasons, l.written_at, l.kept {_FROM_TRACKED}"


_LATEST_AMONG = """
SELECT entity_id, source_id, facts, reasons, version, written_at, kept FROM facts_latest
WHERE source_id IN LIST(?) AND entity_id IN LIST(?)
"""

_STALE_AMONG = """
SELECT entity_id, source_id, written_at, kept FROM facts_latest
WHERE source_id IN LIST(?) AND entity_id IN LIST(?) AND facts <> '{}'
    AND (kept <> '{}' OR written_at < ?)
"""

_LATEST_BETWEEN = _LATEST_AMONG.replace("entity_id IN LIST(?)", "entity_id BETWEEN ? AND ?")

_VALUES_AMONG = _LATEST_AMONG.replace(
    "facts, reasons, version, written_at, kept FROM", "facts FROM"
)

_VALUES_BETWEEN = _VALUES_AMONG.replace("entity_id IN LIST(?)", "entity_id BETWEEN ? AND ?")


_STORED_REASONS = "COALESCE(l.reasons, '{}')"

_COUNT_REASONS = """
SELECT reasons, COUNT(*) FROM ({found}) found GROUP BY reasons ORDER BY reasons
"""

_FROM_UNKNOWN = """
FROM entities e LEFT JOIN facts_latest l ON l.source_id = ? AND l.entity_id = e.id
WHERE (l.entity_id IS NULL OR l.facts = '{}')"""


_COUNT_STORED = """
SELECT COUNT(*) FROM (SELECT 1 FROM facts_latest WHERE source_id = ? LIMIT ?) counted
"""

_PUSHED_FACTS = """
SELECT e.ref, h.written_at, h.facts FROM (
    SELECT entity_id, written_at, facts FROM facts_history
    WHERE source_id = ? ORDER BY written_at DESC, entity_id LIMIT ?
) h JOIN entities e ON e.id = h.entity_id ORDER BY h.written_at DESC, e.ref
"""

# Entities skipped for lack of a target are not failures.
_FAILED_ENTITIES = """
SELECT s.entity_id, e.ref, s.reasons, s.written_at FROM (
    SELECT entity_id, reasons, written_at, facts FROM facts_latest
    WHERE source_id = ? AND entity_id > ? ORDER BY entity_id LIMIT ?
) s JOIN entities e ON e.id = s.entity_id
WHERE CASE WHEN s.facts = '{}' THEN s.reasons NOT LIKE '{"":"%-annotation%'
    ELSE s.written_at < ? END
ORDER BY s.entity_id LIMIT ?
"""

_FAILURE_PLACE = """
SELECT entity_id FROM facts_latest WHERE source_id = ? AND entity_id > ?
ORDER BY entity_id LIMIT 1 OFFSET ?
"""

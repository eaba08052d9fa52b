"""Numbers of the catalog: facets, the choices of filters, and the overview."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from factbook.catalog.kinds import REVERSE_RELATIONS, STATED_RELATIONS
from factbook.catalog.piecewise import aside, ordered
from factbook.catalog.store import conditions
from factbook.catalog.store.conditions import (
    EVERYTHING,
    KEY_COLUMNS,
    Condition,
    escape_like,
    narrow_condition,
)
from factbook.clock import SECOND
from factbook.storage import Database, Row
from factbook.storage.database import render_counter

_RELATION_PREFIX = "relations."
_OWN_COLUMNS = ("metadata.namespace", "metadata.uid")

# Sorts behind every text that begins with what stands before it.
_LAST: Final = chr(0x10FFFF)
# Targets of relations that are looked at for owners among them.
_LOOKED_AT: Final = 20_000
_OWNER_KINDS: Final = ("group", "user")

_LABELS: Final = "metadata.labels."

# From one value to the next, because between them stand all the entities that have it.
_KEY: Final = "key_id = (SELECT id FROM search_keys WHERE key = ?)"

_IS_MISSING: Final = "NOT EXISTS (SELECT 1 FROM entities t WHERE t.ref = target.ref)"

T = TypeVar("T")

_KEPT: Final = 30 * SECOND

# Entities come and go with a new revision of their set, or outside any set. The state has a name to
# be found by: on PostgreSQL, all who ask for it at the same moment share one query.
_ENTITIES = "entities"


class Facet(NamedTuple):
    """A value as it was written, and the number of entities that have it."""

    value: str
    entities: int


async def count_facet(database: Database, key: str, condition: Condition) -> list[Facet]:
    """The values of a key among the entities that meet the condition, in case-insensitive order."""
    key = key.lower()
    if key in _OWN_COLUMNS:
        sql, parameters = _facet_of_column(KEY_COLUMNS[key], condition)
    elif key.startswith(_RELATION_PREFIX):
        sql, parameters = _facet_of_relation(key.removeprefix(_RELATION_PREFIX), condition)
    else:
        return await _facet_of_index(database, key, condition)
    rows = await database.search(sql, parameters)
    return await aside(len(rows), _read_facets, rows)


async def _facet_of_index(database: Database, key: str, condition: Condition) -> list[Facet]:
    among, parameters = _among_sql("entity_id", condition)
    # As little as possible for each of the many rows; what remains is done for each value.
    rows = await database.search(
        "SELECT value, original, count(*) FROM search "
        f"WHERE key_id = (SELECT id FROM search_keys WHERE key = ?){among} "
        "GROUP BY value, original",
        [key, *parameters],
    )
    return await aside(len(rows), _merge_spellings, rows)


def _read_facets(rows: list[Row]) -> list[Facet]:
    return [Facet(*row) for row in rows]


def _merge_spellings(rows: list[Row]) -> list[Facet]:
    found = (
        (value, written or value, entities)
        for value, written, entities in rows
        if value != conditions.EXISTS_VALUE
    )
    return [Facet(written, entities) for _, written, entities in ordered(found)]


def _facet_of_column(column: str, condition: Condition) -> tuple[str, list[object]]:
    where, parameters = condition.sql()
    sql = f"SELECT {column}, count(*) FROM entities e WHERE {where} GROUP BY {column} ORDER BY 1"
    return sql, parameters


def _facet_of_relation(type_: str, condition: Condition) -> tuple[str, list[object]]:
    forward = next((name for name in REVERSE_RELATIONS if name.lower() == type_), "")
    reverse = REVERSE_RELATIONS.get(forward, "")
    own = "SELECT source_id AS id, target_ref AS target FROM relations WHERE type = ?"
    others = (
        "SELECT t.id, s.ref AS target FROM relations r JOIN entities s ON s.id = r.source_id "
        "JOIN entities t ON t.ref = r.target_ref WHERE r.type = ?"
    )
    halves = [(own, forward)] if forward in STATED_RELATIONS or not forward else []
    halves += [(others, reverse)] if reverse in STATED_RELATIONS else []
    among, parameters = _among_sql("id", condition)
    sql = (
        f"SELECT target, count(*) FROM ({' UNION '.join(half for half, _ in halves)}) related "
        f"WHERE 1 = 1{among} GROUP BY target ORDER BY target"
    )
    return sql, [*(type_ for _, type_ in halves), *parameters]


def _among_sql(column: str, condition: Condition) -> tuple[str, list[object]]:
    if condition == EVERYTHING:
        return "", []
    where, parameters = condition.sql()
    return f" AND {column} IN (SELECT e.id FROM entities e WHERE {where})", parameters


class FilterChoice(NamedTuple):
    """A value to filter by, and the number of entities that have it."""

    value: str
    entities: int


async def list_namespace_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent namespaces."""
    return [FilterChoice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def list_owner_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The references that are the owner of the most entities, existing or not."""
    return [FilterChoice(*row) for row in await database.search(_OWNERS, (limit,))]


async def list_tag_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent tags."""
    return [FilterChoice(*row) for row in await database.search(_TAGS, (limit,))]


async def list_set_choices(database: Database, limit: int) -> list[FilterChoice]:
    """The largest sets."""
    return [FilterChoice(*row) for row in await database.all(_SETS, (limit,))]


async def list_value_choices(database: Database, key: str, prefix: str, limit: int) -> list[str]:
    """The first values of a key that begin with a text, each once."""
    bounds = (key, prefix, prefix + _LAST)
    rows = await database.search(_VALUES.format(limit=limit), (*bounds, key, prefix + _LAST))
    return [row[0] for row in rows]


async def list_key_choices(database: Database, path: str, limit: int) -> list[str]:
    """The first paths of fields: of one, those below it and itself; all for an empty one."""
    # Paths below one continue with a dot.
    bounds = (path, f"{path}.", f"{path}/") if path else ("", "", _LAST)
    return [key for (key,) in await database.all(_PATHS, (*bounds, limit))]


async def list_label_choices(database: Database, limit: int) -> list[str]:
    """The first names of labels."""
    first, end = _LABELS, f"{_LABELS[:-1]}/"  # what follows a dot
    return [key.removeprefix(_LABELS) for (key,) in await database.all(_KEYS, (first, end, limit))]


async def is_relation_target(database: Database, type_: str, ref: str) -> bool:
    """Return true if an entity states a relation of a type to a reference."""
    return await database.one(_IS_TARGET, (ref, type_)) is not None


async def find_owner_choices(database: Database, text: str, limit: int) -> list[str]:
    """The first references that own something and have a text in them, existing or not."""
    pattern = f"%{escape_like(text)}%"
    return await _owners_of_kinds(database, "ref LIKE ? ESCAPE '\\'", (pattern,), limit)


async def find_missing_owners(database: Database, limit: int) -> list[str]:
    """The first references that own something and are not in the catalog."""
    return await _owners_of_kinds(database, _IS_MISSING, (), limit)


async def find_system_choices(database: Database, text: str, limit: int) -> list[str]:
    """The first systems with a text in their references."""
    rows = await database.search(_SYSTEMS, (f"%{escape_like(text)}%", limit))
    return [row[0] for row in rows]


async def _owners_of_kinds(
    database: Database, condition: str, parameters: Sequence[str], limit: int
) -> list[str]:
    found = list[str]()
    for kind in _OWNER_KINDS:
        first, end = f"{kind}:", f"{kind};"
        sql = _OWNERS_AMONG.format(condition=condition, limit=limit)
        found += [row[0] for row in await database.search(sql, (first, end, end, *parameters))]
    return found[:limit]


class RevisionTotals(NamedTuple):
    """A revision among the largest: the number of entities it added, updated and removed."""

    set: str
    revision: int
    created_by: str
    created_at: int
    added: int
    updated: int
    removed: int


class CatalogSize(NamedTuple):
    """Number of non-empty sets, and of pushed entities inside and outside sets."""

    sets: int
    entities: int


async def read_catalog_size(database: Database) -> CatalogSize:
    """The size of the catalog, from counters maintained by each push."""
    row = await database.one("SELECT COUNT(*), SUM(item_count) FROM sets WHERE item_count > 0")
    outside = await database.one("SELECT COUNT(*) FROM entities WHERE set_id IS NULL")
    assert row is not None
    assert outside is not None
    return CatalogSize(row[0], int(row[1] or 0) + outside[0])


@dataclass
class _Counted:
    state: Row | None = None
    kinds: Mapping[str, int] = field(default_factory=dict)
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


async def count_by_kind(database: Database) -> Mapping[str, int]:
    """The number of entities of each kind that has any."""
    known = database.remembered.of(_Counted)
    if known.state != await database.find(_STATE, _ENTITIES):
        async with known.one_at_a_time:
            # Looked at before the count: what is written meanwhile makes it be counted again.
            state = await database.find(_STATE, _ENTITIES)
            if known.state != state:
                known.kinds = dict(await database.search(_COUNT_KINDS))
                known.state = state
    return known.kinds


class _KeptCount(NamedTuple):
    """A count at a revision of the catalog, and its time."""

    revision: Row | None
    at: int
    found: Any


@dataclass
class _KeptCounts:
    by_question: dict[str, _KeptCount] = field(default_factory=dict)


async def remember_count(
    database: Database, now: int, question: str, count: Callable[[], Awaitable[T]]
) -> T:
    """The answer to one of few questions, counted at most twice a minute while nothing changes."""
    remembered = database.remembered.of(_KeptCounts).by_question
    revision, known = await database.one(_LARGEST_REVISIONS), remembered.get(question)
    if known is None or known.revision != revision or not 0 <= now - known.at < _KEPT:
        known = remembered[question] = _KeptCount(revision, now, await count())
    found: T = known.found
    return found


async def count_kinds(database: Database) -> dict[str, int]:
    """The number of entities of each kind, most frequent first."""
    rows = (await count_by_kind(database)).items()
    return dict(sorted(rows, key=lambda row: (-row[1], row[0])))


async def count_compliance(database: Database, kind: str | None) -> dict[int, int]:
    """The number of entities of a kind by their exact bits of `catalog.compliance`."""
    where, parameters = narrow_condition(kind, None)
    rows = await database.search(
        f"SELECT compliance, count(*) FROM entities WHERE {where} GROUP BY compliance", parameters
    )
    return dict(rows)


async def read_largest_changes(database: Database, since: int, limit: int) -> list[RevisionTotals]:
    """The revisions since a time that changed the most entities, largest first."""
    rows = await database.search(
        "SELECT s.name, r.number, r.created_by, r.created_at, r.added, r.updated, r.removed "
        "FROM revisions r JOIN sets s ON s.id = r.set_id WHERE r.created_at >= ? "
        "ORDER BY r.added + r.updated + r.removed DESC, r.created_at DESC LIMIT ?",
        (since, limit),
    )
    return [RevisionTotals(*row) for row in rows]


_NAMESPACES = """
SELECT namespace, count(*) FROM entities GROUP BY namespace
ORDER BY count(*) DESC, namespace LIMIT ?
"""

_OWNERS = """
SELECT target_ref, count(*) FROM relations WHERE type = 'ownedBy' GROUP BY target_ref
ORDER BY count(*) DESC, target_ref LIMIT ?
"""

_TAGS = """
SELECT value, count(*) FROM search
WHERE key_id = (SELECT id FROM search_keys WHERE key = 'metadata.tags') AND value <> '\x01'
GROUP BY value ORDER BY count(*) DESC, value LIMIT ?
"""

_PATHS: Final = (
    "SELECT key FROM search_keys WHERE key = ? OR (key >= ? AND key < ?) ORDER BY key LIMIT ?"
)

_KEYS: Final = "SELECT key FROM search_keys WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"

_SETS = (
    "SELECT name, item_count FROM sets WHERE item_count > 0 ORDER BY item_count DESC, name LIMIT ?"
)

_VALUES: Final = f"""
WITH RECURSIVE listed (value) AS (
    SELECT (
        SELECT min(value) FROM search
        WHERE {_KEY} AND value >= ? AND value < ? AND value <> '\x01'
    )
    UNION ALL
    SELECT (
        SELECT min(s.value) FROM search s
        WHERE {_KEY} AND s.value > listed.value AND s.value < ?
    ) FROM listed WHERE listed.value IS NOT NULL
)
SELECT value FROM listed WHERE value IS NOT NULL AND value <> '\x01' LIMIT {{limit}}
"""

_OWNERS_AMONG: Final = f"""
WITH RECURSIVE target (ref, number) AS (
    SELECT (
        SELECT min(target_ref) FROM relations WHERE target_ref >= ? AND target_ref < ?
    ), 1
    UNION ALL
    SELECT (
        SELECT min(r.target_ref) FROM relations r
        WHERE r.target_ref > target.ref AND r.target_ref < ?
    ), target.number + 1
    FROM target WHERE target.ref IS NOT NULL AND target.number < {_LOOKED_AT}
)
SELECT ref FROM target WHERE ref IS NOT NULL AND {{condition}} AND EXISTS (
    SELECT 1 FROM relations o WHERE o.target_ref = target.ref AND o.type = 'ownedBy'
) LIMIT {{limit}}
"""

_SYSTEMS: Final = """
SELECT ref FROM entities WHERE ref >= 'system:' AND ref < 'system;' AND ref LIKE ? ESCAPE '\\'
ORDER BY ref LIMIT ?
"""

_IS_TARGET: Final = "SELECT 1 FROM relations WHERE target_ref = ? AND type = ? LIMIT 1"

_STATE = f"""
SELECT s.name, s.number, s.revisions, s.items,
    {render_counter("entity")},
    (SELECT count(*) FROM entities WHERE set_id IS NULL),
    (SELECT max(removed_at) FROM removed_entities)
FROM (
    SELECT '{_ENTITIES}' AS name, count(*) AS number, SUM(revision) AS revisions,
        SUM(item_count) AS items FROM sets
) s
WHERE s.name IN LIST(?)
"""

_COUNT_KINDS = "SELECT kind, count(*) FROM entities GROUP BY kind"

# Changes with the content of sets and with new entities.
_LARGEST_REVISIONS = f"""
SELECT (SELECT COALESCE(SUM(revision), 0) FROM sets), {render_counter("entity")}
"""

"""Values that a filter of the catalog may have, the most frequent or those that a text names."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.catalog.store.conditions import escaped
from factbook.storage import Database

# Sorts behind every text that begins with what stands before it.
_LAST: Final = chr(0x10FFFF)
# Targets of relations that are looked at for owners among them.
_LOOKED_AT: Final = 20_000
_OWNER_KINDS: Final = ("group", "user")


class FilterChoice(NamedTuple):
    """A value to filter by, and the number of entities that have it."""

    value: str
    entities: int


async def namespaces(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent namespaces."""
    return [FilterChoice(*row) for row in await database.search(_NAMESPACES, (limit,))]


async def owners(database: Database, limit: int) -> list[FilterChoice]:
    """The references that are the owner of the most entities, existing or not."""
    return [FilterChoice(*row) for row in await database.search(_OWNERS, (limit,))]


async def tags(database: Database, limit: int) -> list[FilterChoice]:
    """The most frequent tags."""
    return [FilterChoice(*row) for row in await database.search(_TAGS, (limit,))]


async def sets(database: Database, limit: int) -> list[FilterChoice]:
    """The largest sets."""
    return [FilterChoice(*row) for row in await database.all(_SETS, (limit,))]


async def values_from(database: Database, key: str, prefix: str, limit: int) -> list[str]:
    """The first values of a key that begin with a text, each once."""
    bounds = (key, prefix, prefix + _LAST)
    rows = await database.search(_VALUES.format(limit=limit), (*bounds, key, prefix + _LAST))
    return [row[0] for row in rows]


async def keys_from(database: Database, path: str, limit: int) -> list[str]:
    """The first paths of fields: of one, those below it and itself; all for an empty one."""
    # Paths below one continue with a dot.
    bounds = (path, f"{path}.", f"{path}/") if path else ("", "", _LAST)
    return [key for (key,) in await database.all(_PATHS, (*bounds, limit))]


async def label_names(database: Database, limit: int) -> list[str]:
    """The first names of labels."""
    first, end = _LABELS, f"{_LABELS[:-1]}/"  # what follows a dot
    return [key.removeprefix(_LABELS) for (key,) in await database.all(_KEYS, (first, end, limit))]


async def is_target(database: Database, type_: str, ref: str) -> bool:
    """Return true if an entity states a relation of a type to a reference."""
    return await database.one(_IS_TARGET, (ref, type_)) is not None


async def owners_named(database: Database, text: str, limit: int) -> list[str]:
    """The first references that own something and have a text in them, existing or not."""
    pattern = f"%{escaped(text)}%"
    return await _owners_of_kinds(database, "ref LIKE ? ESCAPE '\\'", (pattern,), limit)


async def missing_owners(database: Database, limit: int) -> list[str]:
    """The first references that own something and are not in the catalog."""
    return await _owners_of_kinds(database, _IS_MISSING, (), limit)


async def systems_named(database: Database, text: str, limit: int) -> list[str]:
    """The first systems with a text in their references."""
    rows = await database.search(_SYSTEMS, (f"%{escaped(text)}%", limit))
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

_LABELS: Final = "metadata.labels."
_PATHS: Final = (
    "SELECT key FROM search_keys WHERE key = ? OR (key >= ? AND key < ?) ORDER BY key LIMIT ?"
)
_KEYS: Final = "SELECT key FROM search_keys WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"

_SETS = (
    "SELECT name, item_count FROM sets WHERE item_count > 0 ORDER BY item_count DESC, name LIMIT ?"
)

# From one value to the next, because between them stand all the entities that have it.
_KEY: Final = "key_id = (SELECT id FROM search_keys WHERE key = ?)"
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

_IS_MISSING: Final = "NOT EXISTS (SELECT 1 FROM entities t WHERE t.ref = target.ref)"

_SYSTEMS: Final = """
SELECT ref FROM entities WHERE ref >= 'system:' AND ref < 'system;' AND ref LIKE ? ESCAPE '\\'
ORDER BY ref LIMIT ?
"""

_IS_TARGET: Final = "SELECT 1 FROM relations WHERE target_ref = ? AND type = ? LIMIT 1"

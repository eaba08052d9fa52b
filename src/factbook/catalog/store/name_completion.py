"""Kinds, namespaces and names that begin with a text, and the entities that have such a name.

For what answers as one types: a value takes one step in an index, however many entities have it.
"""

from typing import Final, Literal

from factbook.catalog.search import EXISTS
from factbook.catalog.store.browse import COLUMNS, EntityRow
from factbook.storage import Database

# The index of each column, and those of the others that narrow it.
_WITHIN: Final = {"kind": "", "namespace": "", "name": " AND kind = ?"}
_KEYS: Final = ("metadata.title", "spec.profile.displayname")
# Sorts behind every text that begins with what stands before it.
_LAST: Final = chr(0x10FFFF)

CompletedColumn = Literal["kind", "namespace", "name"]


async def values(
    database: Database, column: CompletedColumn, start: str, kind: str, limit: int
) -> list[str]:
    """Up to `limit` values of a column that begin so, in their order; names are of one kind."""
    narrowed = _WITHIN[column]
    given = [kind] if narrowed else []
    sql = _STEPS.replace("{column}", column).replace("{within}", narrowed)
    rows = await database.search(sql, (start, *given, *given, limit))
    return [value for (value,) in rows if value.startswith(start)]


async def refs_after(database: Database, ref: str, limit: int) -> list[str]:
    """Up to `limit` references after one, in their order."""
    rows = await database.search(
        "SELECT ref FROM entities WHERE ref > ? ORDER BY ref LIMIT ?", (ref, limit)
    )
    return [row[0] for row in rows]


async def beginning(database: Database, text: str, most: int) -> list[EntityRow]:
    """Entities with a name that begins with a text in lower case, in no order.

    Up to `most` by each sort of name, of which those that are shorter come first.
    """
    bounds = (text, text + _LAST)
    parameters: list[object] = [*bounds, most]
    for key in _KEYS:
        parameters += [key, *bounds, EXISTS, most]
    rows = await database.all(_BEGINNING, parameters)
    return [EntityRow(*row) for row in rows]


_STEPS: Final = """
WITH RECURSIVE found(value) AS (
    SELECT * FROM (
        SELECT {column} FROM entities WHERE {column} >= ?{within} ORDER BY {column} LIMIT 1
    ) first
    UNION ALL
    SELECT (
        SELECT {column} FROM entities WHERE {column} > found.value{within}
        ORDER BY {column} LIMIT 1
    ) FROM found WHERE found.value IS NOT NULL
)
SELECT value FROM found WHERE value IS NOT NULL LIMIT ?
"""

_BY_NAME: Final = """
SELECT id FROM (SELECT id FROM entities WHERE name >= ? AND name < ? ORDER BY name LIMIT ?) named
"""

_BY_TEXT: Final = """
SELECT id FROM (
    SELECT entity_id AS id FROM search
    WHERE key_id = (SELECT id FROM search_keys WHERE key = ?)
        AND value >= ? AND value < ? AND value <> ?
    ORDER BY value LIMIT ?
) texts
"""

_BEGINNING: Final = f"""
SELECT {", ".join(COLUMNS)} FROM entities e
WHERE e.id IN ({" UNION ".join([_BY_NAME, *(_BY_TEXT for _ in _KEYS)])})
"""

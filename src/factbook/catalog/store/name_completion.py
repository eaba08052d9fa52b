"""Completion of kinds, namespaces and names: the values there are that begin with a text.

Each value takes one step in an index, however many entities have it.
"""

from typing import Final, Literal

from factbook.storage import Database

# The index of each column, and those of the others that narrow it.
_WITHIN: Final = {"kind": "", "namespace": "", "name": " AND kind = ?"}

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

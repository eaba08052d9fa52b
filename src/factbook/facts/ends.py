"""The entities with the lowest and the highest values of a fact."""

import heapq
from itertools import chain
from typing import Final, NamedTuple

from factbook.facts import across, entity_values, value_conditions
from factbook.facts.entity_values import EntityValue, ValueQuery
from factbook.facts.value_conditions import ValueFilter
from factbook.storage import Database

_KNOWN: Final = ValueFilter(known=True)


class Ends(NamedTuple):
    """The entities with the lowest values, lowest first, and with the highest, highest first."""

    lowest: list[EntityValue]
    highest: list[EntityValue]


async def ends(database: Database, asked: ValueQuery, count: int) -> Ends:
    """Up to `count` entities at each end of what has an order; none of texts, sets and objects."""
    fact = asked.column.fact
    if count == 0 or fact.type in {"string", "set", "object"}:
        return Ends([], [])
    asked = asked._replace(wanted=_KNOWN)
    return await (_of_moments if fact.type == "datetime" else _of_ordered)(database, asked, count)


async def _of_ordered(database: Database, asked: ValueQuery, count: int) -> Ends:
    column = asked.column
    inner, parameters = across.selected(column, asked.part, "e.ref AS ref", collected=True)
    sql = _ENDS.format(found=inner, place=value_conditions.place(column), most=count)
    rows = await database.search(sql, parameters)
    found = [[entity_values.entity_value(column.fact, *row[1:]) for row in rows if row[0] == end]
             for end in (0, 1)]  # fmt: skip
    return Ends(*found)


async def _of_moments(database: Database, asked: ValueQuery, count: int) -> Ends:
    fact = asked.column.fact
    best: list[list[tuple[float, str, EntityValue]]] = [[], []]
    async for rows in entity_values.everything(database, asked):
        for end, sign in enumerate((1, -1)):
            placed = entity_values.placed(fact, rows, sign)
            best[end] = heapq.nsmallest(count, chain(best[end], placed))
    return Ends(*([row for _, _, row in some] for some in best))


# Both ends of what is read once.
_ENDS: Final = """
WITH found AS MATERIALIZED ({found}),
placed AS MATERIALIZED (
    SELECT ref, value, reasons, written_at, kept, {place} AS place FROM found
),
lowest AS (
    SELECT 0 AS highest, ref, value, reasons, written_at, kept FROM placed
    WHERE place IS NOT NULL ORDER BY place, ref LIMIT {most}
),
highest AS (
    SELECT 1 AS highest, ref, value, reasons, written_at, kept FROM placed
    WHERE place IS NOT NULL ORDER BY place DESC, ref LIMIT {most}
)
SELECT highest, ref, value, reasons, written_at, kept FROM lowest
UNION ALL
SELECT highest, ref, value, reasons, written_at, kept FROM highest
"""

"""Entities with their value of one fact: pages in the order of either, and all of them."""

import heapq
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, Literal, NamedTuple

from factbook.catalog.store.affiliation import CatalogPart
from factbook.facts import across, distribution, value_conditions
from factbook.facts.across import FactColumn
from factbook.facts.reasons import word
from factbook.facts.schema import Fact
from factbook.facts.value_conditions import ValueFilter
from factbook.storage import Database, Row

Sort = Literal["entity", "value", "-value"]
Place = tuple[bool, Any, str]  # among the known, the value, the reference

# Rows that are read for one page where SQL cannot tell which of them are wanted.
_PORTION: Final = 2_000
_MOST_READS: Final = 25


class EntityValue(NamedTuple):
    """The value of an entity and its time, `kept` if from before the last run; or the reason."""

    ref: str
    value: Any
    reason: str | None
    at: int | None
    kept: bool

    def fits(self, fact: Fact, wanted: ValueFilter) -> bool:
        """Return true if the filter lets it through."""
        if self.value is None:
            named = wanted.reason in {None, word(self.reason or "")}
            return named and not wanted.of_values
        return not wanted.of_unknown and value_conditions.is_wanted(fact, self.value, wanted)


class EntityValues(NamedTuple):
    """A page, and the place behind it if more may follow."""

    rows: list[EntityValue]
    more: Place | None


class PlacedValue(NamedTuple):
    """An entity with its value, and the place of that in an order of values."""

    place: Any
    row: EntityValue


class ValueWindow(NamedTuple):
    """The first entities in the order of their values; `is_whole` if there are no others."""

    rows: Sequence[PlacedValue]
    is_whole: bool

    def behind(self, after: Place | None, count: int) -> Sequence[PlacedValue] | None:
        """Up to `count` of them behind a place; None where others may follow that are not here."""
        start = 0
        if after is not None:
            keys = ((one.place, one.row.ref) for one in self.rows)
            found = (number for number, key in enumerate(keys, 1) if key == after[1:])
            start = next(found, len(self.rows) + 1)
        rows = self.rows[start : start + count]
        is_enough = len(rows) == count or (self.is_whole and start <= len(self.rows))
        return rows if is_enough else None


NO_WINDOW: Final = ValueWindow((), is_whole=False)


class ValueQuery(NamedTuple):
    """A fact of a part of the catalog, restrictions on its value, and an order."""

    column: FactColumn
    part: CatalogPart
    wanted: ValueFilter = ValueFilter()
    sort: Sort = "entity"


async def page(
    database: Database,
    asked: ValueQuery,
    after: Place | None,
    limit: int,
    window: ValueWindow = NO_WINDOW,
) -> EntityValues:
    """Up to `limit` entities behind a place; those without a value come last by value.

    A page may hold fewer although more follow. By value it is taken from the window if that has it.
    """
    if asked.sort == "entity":
        return await _read(database, asked, None, after, limit)
    found = EntityValues([], None)
    if not asked.wanted.of_unknown and (after is None or after[0]):
        rows = window.behind(after, limit + 1)
        if rows is None:
            rows = await _ordered(database, asked, after, limit + 1)
        found = _page_of(rows, limit)
        after = None
    if found.more is not None or asked.wanted.of_values:
        return found
    if len(found.rows) == limit:
        return found._replace(more=(False, None, ""))
    rest = await _read(database, asked, False, after, limit - len(found.rows))
    return EntityValues([*found.rows, *rest.rows], rest.more)


async def window(database: Database, asked: ValueQuery, size: int) -> ValueWindow:
    """The first entities by value, up to `size` of those with one."""
    rows = await _ordered(database, asked, None, size + 1)
    return ValueWindow(rows[:size], len(rows) <= size)


async def everything(database: Database, asked: ValueQuery) -> AsyncIterator[list[EntityValue]]:
    """All entities, by reference, from one snapshot."""
    inner, values = across.selected(asked.column, asked.part, "e.ref AS ref", by_ref=True)
    fact = asked.column.fact
    async for rows in database.pages(f"{inner} ORDER BY e.ref", values):
        found = [entity_value(fact, *row) for row in rows]
        yield [each for each in found if each.fits(fact, asked.wanted)]


async def _read(
    database: Database, asked: ValueQuery, known: bool | None, after: Place | None, limit: int
) -> EntityValues:
    """A page by reference; of those with a value, without, or both."""
    fact, wanted = asked.column.fact, asked.wanted
    if known is not None:
        wanted = wanted._replace(known=known)
    place = after[2] if after else ""
    found: list[EntityValue] = []
    size = limit + 1 if wanted == ValueFilter() else max(_PORTION, limit + 1)
    for read in range(_MOST_READS):
        if read and wanted.of_values and value_conditions.is_told(fact):
            return await _read_rest(database, asked, place, found, limit)
        rows = await _portion(database, asked, wanted, place, size)
        read_values = (entity_value(fact, *row) for row in rows)
        found += (each for each in read_values if each.fits(fact, wanted))
        if len(found) > limit:
            return EntityValues(found[:limit], (False, None, found[limit - 1].ref))
        if len(rows) < size:
            return EntityValues(found, None)
        place = rows[-1][0]
    return EntityValues(found, (False, None, place))


async def _portion(
    database: Database, asked: ValueQuery, wanted: ValueFilter, place: str, size: int
) -> list[Row]:
    """Entities behind a reference, of which those with a value are left out if none is wanted."""
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref", by_ref=True)
    conditions = value_conditions.lacking(asked.column) if wanted.of_unknown else "1 = 1"
    sql = _BY_REF.format(found=inner, where=conditions, most=size)
    return await database.search(sql, [*parameters, place])


async def _read_rest(
    database: Database, asked: ValueQuery, place: str, found: list[EntityValue], limit: int
) -> EntityValues:
    """The page that begins with what was found, of values that are rare."""
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = value_conditions.conditions(asked.column, asked.wanted)
    sql = _RARE.format(found=inner, where=conditions, most=limit + 1 - len(found))
    rows = await database.search(sql, [*parameters, *values, place])
    fact = asked.column.fact
    every = [*found, *(entity_value(fact, *row) for row in rows)]
    more = (False, None, every[limit - 1].ref) if len(every) > limit else None
    return EntityValues(every[:limit], more)


def _page_of(rows: Sequence[PlacedValue], limit: int) -> EntityValues:
    """The page of rows of which one more than it has were read."""
    found = [row for _, row in rows[:limit]]
    more = (True, rows[limit - 1].place, found[-1].ref) if len(rows) > limit else None
    return EntityValues(found, more)


async def _ordered(
    database: Database, asked: ValueQuery, after: Place | None, most: int
) -> list[PlacedValue]:
    """Up to `most` of those with a value behind a place, in the order of their values."""
    read = _read_moments if asked.column.fact.type == "datetime" else _read_ordered
    return await read(database, asked, after, most)


async def _read_ordered(
    database: Database, asked: ValueQuery, after: Place | None, most: int
) -> list[PlacedValue]:
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = value_conditions.conditions(asked.column, asked.wanted)
    sign, direction = (">", "") if asked.sort == "value" else ("<", " DESC")
    if after is not None:
        conditions += f" AND (place {sign} ? OR (place = ? AND ref > ?))"
        values = [*values, after[1], after[1], after[2]]
    sql = _ORDERED.format(
        found=inner,
        place=value_conditions.place(asked.column),
        where=conditions,
        direction=direction,
        most=most,
    )
    rows = await database.search(sql, [*parameters, *values])
    return [PlacedValue(row[-1], entity_value(asked.column.fact, *row[:-1])) for row in rows]


async def _read_moments(
    database: Database, asked: ValueQuery, after: Place | None, most: int
) -> list[PlacedValue]:
    """The same of moments, whose texts have another order, because of their offsets."""
    fact, sign = asked.column.fact, 1 if asked.sort == "value" else -1
    best: list[tuple[float, str, EntityValue]] = []
    known = asked._replace(wanted=asked.wanted._replace(known=True))
    async for rows in everything(database, known):
        every = placed(fact, rows, sign)
        behind = (one for one in every if after is None or one[:2] > (sign * after[1], after[2]))
        best = heapq.nsmallest(most, chain(best, behind))
    return [PlacedValue(sign * place, row) for place, _, row in best]


def placed(
    fact: Fact, rows: Iterable[EntityValue], sign: int
) -> Iterator[tuple[float, str, EntityValue]]:
    """Those with a place in the order of their type; with a sign of -1 in the other direction."""
    for row in rows:
        place = distribution.position(fact, row.value)
        if place is not None:
            yield sign * place, row.ref, row


def entity_value(
    fact: Fact,
    ref: str,
    text: str | None,
    reasons: str | None,
    at: int | None,
    kept: int | None,
) -> EntityValue:
    """The value in a row of `across.selected`."""
    value = across.known(fact, text)
    if value is None:
        return EntityValue(ref, None, across.reason(fact, text, reasons), None, kept=False)
    return EntityValue(ref, value, None, at if kept is None else kept, kept=kept is not None)


_BY_REF = """
SELECT ref, value, reasons, written_at, kept FROM ({found}) found
WHERE {where} AND ref > ? ORDER BY ref LIMIT {most}
"""

_RARE = """
WITH found AS MATERIALIZED ({found})
SELECT ref, value, reasons, written_at, kept FROM found
WHERE {where} AND ref > ? ORDER BY ref LIMIT {most}
"""

_ORDERED = """
WITH found AS MATERIALIZED ({found}),
placed AS (SELECT ref, value, reasons, written_at, kept, {place} AS place FROM found)
SELECT ref, value, reasons, written_at, kept, place FROM placed WHERE {where}
ORDER BY place{direction}, ref LIMIT {most}
"""

"""Entities with their value of one fact: pages in the order of either, and all of them."""

import heapq
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import chain
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from factbook.catalog.store.belonging import CatalogPart
from factbook.catalog.store.conditions import SQL
from factbook.facts import across, distribution
from factbook.facts.across import NUMBERS, FactColumn
from factbook.facts.reasons import word
from factbook.facts.schema import Fact
from factbook.storage import Database, Row

Sort = Literal["entity", "value", "-value"]
Place = tuple[bool, Any, str]  # among the known, the value, the reference

# Rows that are read for one page where SQL cannot tell which of them are wanted.
_PORTION: Final = 2_000
_MOST_READS: Final = 25


class ValueFilter(NamedTuple):
    """Restrictions on the value; None leaves one out.

    `value` is that of a boolean or a text, or an item of a set. `least` and `below` bound numbers,
    and moments in milliseconds. `reason` is a word, so there is no value.
    """

    known: bool | None = None
    reason: str | None = None
    value: Any = None
    least: float | None = None
    below: float | None = None

    @property
    def of_values(self) -> bool:
        """True if no entity without a value is meant."""
        return self.known is True or (self.value, self.least, self.below) != (None, None, None)

    @property
    def of_unknown(self) -> bool:
        """True if no entity with a value is meant."""
        return self.known is False or self.reason is not None


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
        return not wanted.of_unknown and _is_wanted(fact, self.value, wanted)


class EntityValues(NamedTuple):
    """A page, and the place behind it if more may follow."""

    rows: list[EntityValue]
    more: Place | None


class ValueQuery(NamedTuple):
    """A fact of a part of the catalog, restrictions on its value, and an order."""

    column: FactColumn
    part: CatalogPart
    wanted: ValueFilter = ValueFilter()
    sort: Sort = "entity"


async def page(
    database: Database, asked: ValueQuery, after: Place | None, limit: int
) -> EntityValues:
    """Up to `limit` entities behind a place; those without a value come last by value.

    A page may hold fewer although more follow.
    """
    if asked.sort == "entity":
        return await _read(database, asked, None, after, limit)
    found = EntityValues([], None)
    if not asked.wanted.of_unknown and (after is None or after[0]):
        read = _read_moments if asked.column.fact.type == "datetime" else _read_ordered
        found = await read(database, asked, after, limit)
        after = None
    if found.more is not None or asked.wanted.of_values:
        return found
    if len(found.rows) == limit:
        return found._replace(more=(False, None, ""))
    rest = await _read(database, asked, False, after, limit - len(found.rows))
    return EntityValues([*found.rows, *rest.rows], rest.more)


async def everything(database: Database, asked: ValueQuery) -> AsyncIterator[list[EntityValue]]:
    """All entities, by reference, from one snapshot."""
    inner, values = across.selected(asked.column, asked.part, "e.ref AS ref")
    fact = asked.column.fact
    async for rows in database.pages(f"{inner} ORDER BY e.ref", values):
        found = [_entity_value(fact, *row) for row in rows]
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
        if read and wanted.of_values and _is_told(fact):
            return await _read_rest(database, asked, place, found, limit)
        rows = await _portion(database, asked, wanted, place, size)
        read_values = (_entity_value(fact, *row) for row in rows)
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
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref")
    conditions = _lacking(asked.column) if wanted.of_unknown else "1 = 1"
    sql = _BY_REF.format(found=inner, where=conditions, most=size)
    return await database.search(sql, [*parameters, place])


async def _read_rest(
    database: Database, asked: ValueQuery, place: str, found: list[EntityValue], limit: int
) -> EntityValues:
    """The page that begins with what was found, of values that are rare."""
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = _conditions(asked.column, asked.wanted)
    sql = _RARE.format(found=inner, where=conditions, most=limit + 1 - len(found))
    rows = await database.search(sql, [*parameters, *values, place])
    fact = asked.column.fact
    every = [*found, *(_entity_value(fact, *row) for row in rows)]
    more = (False, None, every[limit - 1].ref) if len(every) > limit else None
    return EntityValues(every[:limit], more)


async def _read_ordered(
    database: Database, asked: ValueQuery, after: Place | None, limit: int
) -> EntityValues:
    """A page of those with a value, in the order of their values."""
    inner, parameters = across.selected(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = _conditions(asked.column, asked.wanted)
    sign, direction = (">", "") if asked.sort == "value" else ("<", " DESC")
    if after is not None:
        conditions += f" AND (place {sign} ? OR (place = ? AND ref > ?))"
        values = [*values, after[1], after[1], after[2]]
    sql = _ORDERED.format(
        found=inner,
        place=_place(asked.column),
        where=conditions,
        direction=direction,
        most=limit + 1,
    )
    rows = await database.search(sql, [*parameters, *values])
    found = [_entity_value(asked.column.fact, *row[:-1]) for row in rows[:limit]]
    more = None if len(rows) <= limit else (True, rows[limit - 1][-1], rows[limit - 1][0])
    return EntityValues(found, more)


async def _read_moments(
    database: Database, asked: ValueQuery, after: Place | None, limit: int
) -> EntityValues:
    """The same of moments, whose texts have another order, because of their offsets."""
    fact, sign = asked.column.fact, 1 if asked.sort == "value" else -1
    best: list[tuple[float, str, EntityValue]] = []
    known = asked._replace(wanted=asked.wanted._replace(known=True))
    async for rows in everything(database, known):
        placed = _placed(fact, rows, sign)
        behind = (one for one in placed if after is None or one[:2] > (sign * after[1], after[2]))
        best = heapq.nsmallest(limit + 1, chain(best, behind))
    found = [row for _, _, row in best[:limit]]
    more = None if len(best) <= limit else (True, sign * best[limit - 1][0], found[-1].ref)
    return EntityValues(found, more)


def _placed(
    fact: Fact, rows: Iterable[EntityValue], sign: int
) -> Iterator[tuple[float, str, EntityValue]]:
    for row in rows:
        place = distribution.position(fact, row.value)
        if place is not None:
            yield sign * place, row.ref, row


def _entity_value(
    fact: Fact,
    ref: str,
    text: str | None,
    reasons: str | None,
    at: int | None,
    kept: int | None,
) -> EntityValue:
    value = across.known(fact, text)
    if value is None:
        return EntityValue(ref, None, across.reason(fact, text, reasons), None, kept=False)
    return EntityValue(ref, value, None, at if kept is None else kept, kept=kept is not None)


def _is_wanted(fact: Fact, value: Any, wanted: ValueFilter) -> bool:
    if wanted.value is not None and not _has(value, wanted.value):
        return False
    if wanted.least is None and wanted.below is None:
        return True
    place = cast("float", distribution.position(fact, value))
    return (wanted.least is None or place >= wanted.least) and (
        wanted.below is None or place < wanted.below
    )


def _has(value: Any, wanted: Any) -> bool:
    """Compare a value; items of sets by their text."""
    if isinstance(value, list):
        return wanted in (one if isinstance(one, str) else str(one) for one in value)
    return bool(value == wanted)


def _is_told(fact: Fact) -> bool:
    """Return true if SQL tells exactly which of the values are wanted."""
    return fact.type not in {"datetime", "set", "object"}


def _lacking(column: FactColumn) -> str:
    """The condition for no value; a value of another type counts as none, which SQL may not see."""
    exact = column.fact.type in {"datetime", "set", "object"}
    return "1 = 1" if exact else f"({_place(column)}) IS NULL"


def _conditions(column: FactColumn, wanted: ValueFilter) -> SQL:
    """What SQL can tell of a filter that wants values."""
    place, fact = _place(column), column.fact
    if wanted.of_unknown:
        return "1 = 0", []
    parts, values = [f"({place}) IS NOT NULL"], list[object]()
    if wanted.value is not None and fact.type in {"string", "boolean"}:
        parts.append("value = ?")
        values.append(msgspec.json.encode(wanted.value).decode())
    if fact.type in NUMBERS:
        for sign, bound in ((">=", wanted.least), ("<", wanted.below), ("=", wanted.value)):
            if bound is not None:
                parts.append(f"({place}) {sign} ?")
                values.append(float(bound))
    return " AND ".join(parts), values


def _place(column: FactColumn) -> str:
    """The expression for the order of `value`; NULL where its type is another one."""
    match column.fact.type:
        case "integer":
            return f"CASE WHEN {_IS_NUMBER} AND NOT {_IS_FRACTION} THEN {_AS_NUMBER} END"
        case "float":
            return f"CASE WHEN {_IS_NUMBER} THEN {_AS_NUMBER} END"
        case "string":
            # Between the quotes, so that a text comes before those that it begins.
            return (
                "CASE WHEN SUBSTR(value, 1, 1) = '\"' THEN SUBSTR(value, 2, LENGTH(value) - 2) END"
            )
        case "boolean":
            return "CASE WHEN value IN ('true', 'false') THEN value END"
    return "value"


_IS_NUMBER: Final = (
    "SUBSTR(value, 1, 1) IN ('-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9') "
    "AND LENGTH(value) <= 300"
)
_IS_FRACTION: Final = "(value LIKE '%.%' OR value LIKE '%e%')"
_AS_NUMBER: Final = "CAST(value AS DOUBLE PRECISION)"

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

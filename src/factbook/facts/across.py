"""One fact across entities: entities paged by value, and cached figures of the whole catalog."""

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

import msgspec

from factbook.catalog.store.conditions import SQL
from factbook.catalog.store.entity_query import count_by_kind
from factbook.catalog.store.related_entities import CatalogPart
from factbook.clock import MINUTE, Clock
from factbook.facts.distribution import (
    NUMBER_TYPES,
    Distribution,
    FactColumn,
    GroupBy,
    count_values,
    distribute_values,
    known_value,
    missing_reason,
    select_values,
    value_position,
)
from factbook.facts.schema import Fact, reason_word
from factbook.storage import Database, Row

ValueSort = Literal["entity", "value", "-value"]
ValuePlace = tuple[bool, Any, str]  # among the known, the value, the reference
# Rows read for one page if SQL cannot apply the filter.
_ENTITIES_AT_ONCE: Final = 2_000
_MOST_PORTIONS: Final = 25
T = TypeVar("T")
# Answers are cached for catalogs of at least this size: counting fewer takes about 60 ms.
_LARGE_CATALOG: Final = 20_000
_MOST_ANSWERS: Final = 64
# Size of the window of lowest or highest values that serves pages.
_WINDOW_SIZE: Final = 1_000
# Types with short values; texts may be long.
_WINDOWED_TYPES: Final = frozenset({"integer", "float", "boolean", "datetime"})


class ValueFilter(NamedTuple):
    """Restrictions on the value; None leaves one out.

    `value` is a boolean, a text, or an item of a set. `least` and `below` bound numbers, and
    moments in milliseconds. `reason` is a reason word and selects missing values.
    """

    known: bool | None = None
    reason: str | None = None
    value: Any = None
    least: float | None = None
    below: float | None = None

    @property
    def of_values(self) -> bool:
        """True if the filter excludes entities without a value."""
        return self.known is True or (self.value, self.least, self.below) != (None, None, None)

    @property
    def of_unknown(self) -> bool:
        """True if the filter excludes entities with a value."""
        return self.known is False or self.reason is not None


def passes_filter(fact: Fact, value: Any, wanted: ValueFilter) -> bool:
    """Return true if the filter lets a value through."""
    if wanted.value is not None:
        # The items of a set are compared by their text.
        is_equal = (
            wanted.value in map(str, value) if isinstance(value, list) else value == wanted.value
        )
        if not is_equal:
            return False
    if wanted.least is None and wanted.below is None:
        return True
    at = cast("float", value_position(fact, value))
    return (wanted.least is None or at >= wanted.least) and (
        wanted.below is None or at < wanted.below
    )


def is_decided_by_sql(fact: Fact) -> bool:
    """Return true if SQL can apply the filter exactly."""
    return fact.type not in {"datetime", "set", "object"}


def lacking_condition(column: FactColumn) -> str:
    """The condition for no value. A value of another type also counts as none, unseen by SQL."""
    exact = column.fact.type in {"datetime", "set", "object"}
    return "1 = 1" if exact else f"({place_expression(column)}) IS NULL"


def wanted_conditions(column: FactColumn, wanted: ValueFilter) -> SQL:
    """The conditions of a filter that SQL can apply."""
    position, fact = place_expression(column), column.fact
    if wanted.of_unknown:
        return "1 = 0", []
    parts, values = [f"({position}) IS NOT NULL"], list[object]()
    if wanted.value is not None and fact.type in {"string", "boolean"}:
        parts.append("value = ?")
        values.append(msgspec.json.encode(wanted.value).decode())
    if fact.type in NUMBER_TYPES:
        for sign, bound in ((">=", wanted.least), ("<", wanted.below), ("=", wanted.value)):
            if bound is not None:
                parts.append(f"({position}) {sign} ?")
                values.append(float(bound))
    return " AND ".join(parts), values


def place_expression(column: FactColumn) -> str:
    """The sort expression for `value`; NULL for a value of another type."""
    match column.fact.type:
        case "integer":
            return f"CASE WHEN {_IS_NUMBER} AND NOT {_IS_FRACTION} THEN {_AS_NUMBER} END"
        case "float":
            return f"CASE WHEN {_IS_NUMBER} THEN {_AS_NUMBER} END"
        case "string":
            # Without the quotes, a text sorts before longer texts with the same beginning.
            return (
                "CASE WHEN SUBSTR(value, 1, 1) = '\"' THEN SUBSTR(value, 2, LENGTH(value) - 2) END"
            )
        case "boolean":
            return "CASE WHEN value IN ('true', 'false') THEN value END"
    return "value"


class EntityValue(NamedTuple):
    """An entity's value and its time, `kept` if from before the last run; or the reason."""

    ref: str
    value: Any
    reason: str | None
    at: int | None
    kept: bool

    def fits(self, fact: Fact, wanted: ValueFilter) -> bool:
        """Return true if the filter lets it through."""
        if self.value is None:
            named = wanted.reason in {None, reason_word(self.reason or "")}
            return named and not wanted.of_values
        return not wanted.of_unknown and passes_filter(fact, self.value, wanted)


class EntityValues(NamedTuple):
    """A page, and the place after it if more may follow."""

    rows: list[EntityValue]
    more: ValuePlace | None


class PlacedValue(NamedTuple):
    """An entity with its value, and the value's place in the sort order."""

    place: Any
    row: EntityValue


class ValueWindow(NamedTuple):
    """The first entities in the order of their values; `is_whole` if there are no others."""

    rows: Sequence[PlacedValue]
    is_whole: bool

    def behind(self, after: ValuePlace | None, count: int) -> Sequence[PlacedValue] | None:
        """Up to `count` entities after a place; None if the window may lack some."""
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
    sort: ValueSort = "entity"


async def page_values(
    database: Database,
    asked: ValueQuery,
    after: ValuePlace | None,
    limit: int,
    window: ValueWindow = NO_WINDOW,
) -> EntityValues:
    """Up to `limit` entities after a place; sorted by value, those without one come last.

    A page may be shorter although more follow. Pages by value come from the window if possible.
    """
    if asked.sort == "entity":
        return await _read_by_ref(database, asked, None, after, limit)
    page = EntityValues([], None)
    if not asked.wanted.of_unknown and (after is None or after[0]):
        rows = window.behind(after, limit + 1)
        if rows is None:
            rows = await _list_ordered(database, asked, after, limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        more = None if last is None else (True, last.place, last.row.ref)
        page = EntityValues([row for _, row in rows[:limit]], more)
        after = None
    if page.more is not None or asked.wanted.of_values:
        return page
    if len(page.rows) == limit:
        return page._replace(more=(False, None, ""))
    rest = await _read_by_ref(database, asked, False, after, limit - len(page.rows))
    return EntityValues([*page.rows, *rest.rows], rest.more)


async def value_window(database: Database, asked: ValueQuery, size: int) -> ValueWindow:
    """The first `size` entities with a value, by value."""
    rows = await _list_ordered(database, asked, None, size + 1)
    return ValueWindow(rows[:size], len(rows) <= size)


async def list_all_values(
    database: Database, asked: ValueQuery
) -> AsyncIterator[list[EntityValue]]:
    """All entities, by reference, from one snapshot."""
    inner, values = select_values(asked.column, asked.part, "e.ref AS ref", by_ref=True)
    fact = asked.column.fact
    async for rows in database.pages(f"{inner} ORDER BY e.ref", values):
        found = [entity_value(fact, *row) for row in rows]
        yield [each for each in found if each.fits(fact, asked.wanted)]


async def _read_by_ref(
    database: Database, asked: ValueQuery, known: bool | None, after: ValuePlace | None, limit: int
) -> EntityValues:
    """A page by reference, of entities with a value, without one, or both."""
    fact, wanted = asked.column.fact, asked.wanted
    if known is not None:
        wanted = wanted._replace(known=known)
    place = after[2] if after else ""
    found: list[EntityValue] = []
    size = limit + 1 if wanted == ValueFilter() else max(_ENTITIES_AT_ONCE, limit + 1)
    for read in range(_MOST_PORTIONS):
        if read and wanted.of_values and is_decided_by_sql(fact):
            return await _read_rest(database, asked, place, found, limit)
        rows = await _read_portion(database, asked, wanted, place, size)
        read_values = (entity_value(fact, *row) for row in rows)
        found += (each for each in read_values if each.fits(fact, wanted))
        if len(found) > limit:
            return EntityValues(found[:limit], (False, None, found[limit - 1].ref))
        if len(rows) < size:
            return EntityValues(found, None)
        place = rows[-1][0]
    return EntityValues(found, (False, None, place))


async def _read_portion(
    database: Database, asked: ValueQuery, wanted: ValueFilter, place: str, size: int
) -> list[Row]:
    """Entities after a reference, without those with a value if the filter excludes them."""
    inner, parameters = select_values(asked.column, asked.part, "e.ref AS ref", by_ref=True)
    conditions = lacking_condition(asked.column) if wanted.of_unknown else "1 = 1"
    sql = _VALUES_BY_REF.format(found=inner, where=conditions, most=size)
    return await database.search(sql, [*parameters, place])


async def _read_rest(
    database: Database, asked: ValueQuery, place: str, found: list[EntityValue], limit: int
) -> EntityValues:
    """The rest of a page that begins with `found`, for rare values."""
    inner, parameters = select_values(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = wanted_conditions(asked.column, asked.wanted)
    sql = _RARE_VALUES.format(found=inner, where=conditions, most=limit + 1 - len(found))
    rows = await database.search(sql, [*parameters, *values, place])
    fact = asked.column.fact
    every = [*found, *(entity_value(fact, *row) for row in rows)]
    more = (False, None, every[limit - 1].ref) if len(every) > limit else None
    return EntityValues(every[:limit], more)


async def _list_ordered(
    database: Database, asked: ValueQuery, after: ValuePlace | None, most: int
) -> list[PlacedValue]:
    """Up to `most` entities with a value after a place, by value."""
    read = _read_moments if asked.column.fact.type == "datetime" else _read_ordered
    return await read(database, asked, after, most)


async def _read_ordered(
    database: Database, asked: ValueQuery, after: ValuePlace | None, most: int
) -> list[PlacedValue]:
    inner, parameters = select_values(asked.column, asked.part, "e.ref AS ref", collected=True)
    conditions, values = wanted_conditions(asked.column, asked.wanted)
    sign, direction = (">", "") if asked.sort == "value" else ("<", " DESC")
    if after is not None:
        conditions += f" AND (place {sign} ? OR (place = ? AND ref > ?))"
        values = [*values, after[1], after[1], after[2]]
    sql = _ORDERED_VALUES.format(
        found=inner,
        place=place_expression(asked.column),
        where=conditions,
        direction=direction,
        most=most,
    )
    rows = await database.search(sql, [*parameters, *values])
    return [PlacedValue(row[-1], entity_value(asked.column.fact, *row[:-1])) for row in rows]


async def _read_moments(
    database: Database, asked: ValueQuery, after: ValuePlace | None, most: int
) -> list[PlacedValue]:
    """Up to `most` moments after a place; offsets make their text order differ."""
    fact, sign = asked.column.fact, 1 if asked.sort == "value" else -1
    best: list[tuple[float, str, EntityValue]] = []
    known = asked._replace(wanted=asked.wanted._replace(known=True))
    async for rows in list_all_values(database, known):
        every = place_values(fact, rows, sign)
        behind = (one for one in every if after is None or one[:2] > (sign * after[1], after[2]))
        best = heapq.nsmallest(most, chain(best, behind))
    return [PlacedValue(sign * place, row) for place, _, row in best]


def place_values(
    fact: Fact, rows: Iterable[EntityValue], sign: int
) -> Iterator[tuple[float, str, EntityValue]]:
    """The values with a place in their type's order; a sign of -1 reverses the order."""
    for row in rows:
        place = value_position(fact, row.value)
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
    """The value in a row of `select_values`."""
    value = known_value(fact, text)
    if value is None:
        return EntityValue(ref, None, missing_reason(fact, text, reasons), None, kept=False)
    return EntityValue(ref, value, None, at if kept is None else kept, kept=kept is not None)


_WITH_VALUE: Final = ValueFilter(known=True)


class Ends(NamedTuple):
    """The entities with the lowest values, lowest first, and with the highest, highest first."""

    lowest: list[EntityValue]
    highest: list[EntityValue]


async def find_ends(database: Database, asked: ValueQuery, count: int) -> Ends:
    """Up to `count` entities at each end of ordered values; none for texts, sets and objects."""
    fact = asked.column.fact
    if count == 0 or fact.type in {"string", "set", "object"}:
        return Ends([], [])
    asked = asked._replace(wanted=_WITH_VALUE)
    return await (_ends_of_moments if fact.type == "datetime" else _ends_of_ordered)(
        database, asked, count
    )


async def _ends_of_ordered(database: Database, asked: ValueQuery, count: int) -> Ends:
    column = asked.column
    inner, parameters = select_values(column, asked.part, "e.ref AS ref", collected=True)
    sql = _BOTH_ENDS.format(found=inner, place=place_expression(column), most=count)
    rows = await database.search(sql, parameters)
    found = [[entity_value(column.fact, *row[1:]) for row in rows if row[0] == end]
             for end in (0, 1)]  # fmt: skip
    return Ends(*found)


async def _ends_of_moments(database: Database, asked: ValueQuery, count: int) -> Ends:
    fact = asked.column.fact
    best: list[list[tuple[float, str, EntityValue]]] = [[], []]
    async for rows in list_all_values(database, asked):
        for end, sign in enumerate((1, -1)):
            placed = place_values(fact, rows, sign)
            best[end] = heapq.nsmallest(count, chain(best[end], placed))
    return Ends(*([row for _, _, row in some] for some in best))


class KeptAnswer(NamedTuple, Generic[T]):
    """An answer and the time of it."""

    value: T
    at: int


class _Question:
    def __init__(self) -> None:
        self.one_at_a_time = asyncio.Lock()
        self.answer: KeptAnswer[Any] | None = None


class KeptAnswers:
    """The cached answers of a process; the least recently used is evicted first."""

    def __init__(self) -> None:
        self.large = _LARGE_CATALOG
        self._questions = OrderedDict[str, _Question]()

    def question(self, text: str) -> _Question:
        """The cached answers to a question, possibly empty."""
        found = self._questions.setdefault(text, _Question())
        self._questions.move_to_end(text)
        if len(self._questions) > _MOST_ANSWERS:
            self._questions.popitem(last=False)
        return found


async def keep_answer(
    database: Database,
    clock: Clock,
    question: str,
    count: Callable[[], Awaitable[T]],
    *,
    anew: bool = False,
) -> KeptAnswer[T]:
    """The answer, counted within the last minute, or with `anew` after this call.

    Concurrent callers with the same question share one count.
    """
    kept = database.remembered.of(KeptAnswers)
    asked, asked_at = kept.question(question), clock()
    least = asked_at if anew else asked_at - MINUTE
    async with asked.one_at_a_time:
        if asked.answer is not None and least <= asked.answer.at <= clock():
            return asked.answer
        at = clock()
        found = KeptAnswer(await count(), at)
        size = sum((await count_by_kind(database)).values())
        asked.answer = found if size >= kept.large else None
        return found


class CatalogFigures(NamedTuple):
    """The distribution of a fact, and the entities at both of its ends."""

    distribution: Distribution
    ends: Ends


class CurrentValues(NamedTuple):
    """A page of entities with their values, and the time of reading."""

    page: EntityValues
    at: int


async def catalog_figures(
    database: Database,
    clock: Clock,
    asked: ValueQuery,
    by: GroupBy | None,
    *,
    top: int,
    ends: int = 0,
    anew: bool = False,
) -> KeptAnswer[CatalogFigures]:
    """The figures of the part of the catalog, ignoring the query's other restrictions.

    Includes up to `top` of the most frequent texts, and `ends` entities at each end.
    """
    question = f"{asked.column!r} {asked.part!r} {by} {top} {ends}"
    count = partial(_count_figures, database, clock, asked, by, top, ends)
    return await keep_answer(database, clock, question, count, anew=anew)


async def catalog_values(
    database: Database,
    clock: Clock,
    asked: ValueQuery,
    after: ValuePlace | None,
    limit: int,
    *,
    anew: bool = False,
) -> CurrentValues:
    """Up to `limit` entities after a place, as in `page_values`."""
    window = None
    is_by_value = asked.sort != "entity" and not asked.wanted.of_unknown
    if is_by_value and asked.column.fact.type in _WINDOWED_TYPES and (after is None or after[0]):
        count = partial(value_window, database, asked, _WINDOW_SIZE)
        window = await keep_answer(database, clock, repr(asked), count, anew=anew)
    at = clock()
    if window is None:
        return CurrentValues(await page_values(database, asked, after, limit), at)
    page = await page_values(database, asked, after, limit, window.value)
    return CurrentValues(page, window.at)


async def _count_figures(
    database: Database, clock: Clock, asked: ValueQuery, by: GroupBy | None, top: int, ends: int
) -> CatalogFigures:
    counted = await count_values(database, asked.column, asked.part, by)
    found = await asyncio.to_thread(
        distribute_values, asked.column.fact, counted, top=top, now=clock()
    )
    return CatalogFigures(found, await find_ends(database, asked, ends))


_IS_NUMBER: Final = (
    "SUBSTR(value, 1, 1) IN ('-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9') "
    "AND LENGTH(value) <= 300"
)
_IS_FRACTION: Final = "(value LIKE '%.%' OR value LIKE '%e%')"
_AS_NUMBER: Final = "CAST(value AS DOUBLE PRECISION)"


_VALUES_BY_REF = """
SELECT ref, value, reasons, written_at, kept FROM ({found}) found
WHERE {where} AND ref > ? ORDER BY ref LIMIT {most}
"""

_RARE_VALUES = """
WITH found AS MATERIALIZED ({found})
SELECT ref, value, reasons, written_at, kept FROM found
WHERE {where} AND ref > ? ORDER BY ref LIMIT {most}
"""

_ORDERED_VALUES = """
WITH found AS MATERIALIZED ({found}),
placed AS (SELECT ref, value, reasons, written_at, kept, {place} AS place FROM found)
SELECT ref, value, reasons, written_at, kept, place FROM placed WHERE {where}
ORDER BY place{direction}, ref LIMIT {most}
"""


# Both ends, from rows read once.
_BOTH_ENDS: Final = """
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

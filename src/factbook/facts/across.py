"""One fact across entities: counts and distributions of values, and entities paged by value.

Figures of the whole catalog are cached for a while.
"""

import asyncio
import heapq
import math
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, pairwise
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar, cast

import msgspec

from factbook.catalog import filters
from factbook.catalog.store import related_entities
from factbook.catalog.store.conditions import SQL
from factbook.catalog.store.entity_query import count_by_kind
from factbook.catalog.store.related_entities import CatalogPart
from factbook.catalog.store.stored_entities import COMPLIANCE
from factbook.clock import DAY, MINUTE, Clock
from factbook.errors import InputError
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import find_reason
from factbook.facts.schema import BAD_DEFINITION, NEVER_COLLECTED, TYPES, Fact, reason_word
from factbook.facts.store import reasons_by_place
from factbook.storage import Database, Row
from factbook.storage.database import LONGEST_SEARCH, limit_time

GroupBy = Literal["owner", "system", "kind"]
# Most distinct rows read for a count; with more, the count is incomplete.
MOST_COUNTED: Final = 500_000
# Texts are counted by this many leading characters.
LONGEST_SHOWN_TEXT: Final = 400
_LONGEST_NUMBER: Final = 300
NUMBER_TYPES: Final = frozenset({"integer", "float"})
# Approximate number of bins in a range.
_MOST_BINS: Final = 12
# Outliers that lie this many times further out than the others share the last bin.
_FAR_SPREADS: Final = 8
_CORE_SHARE: Final = 0.95
_AGE_DAYS: Final = (365, 90, 30, 7, 1)  # days
Weighted = tuple[float, int]  # a value, and the number of entities that have it
# Most groups shown in a breakdown.
MOST_GROUPS: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class FactColumn(NamedTuple):
    """A fact of a source; `bit` is the bit of a fact that the catalog itself stores.

    Values from before `stale_before` are always stale. Values older than others in their row are
    stale if from before `kept_before`.
    """

    source: DataSource
    fact: Fact
    bit: int | None = None
    stale_before: int = 0
    kept_before: int = 2**53

    @property
    def is_ordered(self) -> bool:
        """True if its values have an order."""
        return self.fact.type not in {"set", "object"}


class CountedValue(NamedTuple):
    """A value or a reason, and the entities of a group that share it.

    An unknown `value` is None, with a `reason`. `kept` counts entities whose value is from before
    the last run; `oldest` and `newest` are the times of the values.
    """

    group: str | None
    value: Any
    reason: str | None
    number: int
    kept: int
    oldest: int | None
    newest: int | None


class CountedValues(NamedTuple):
    """Counts, by group if `by` is set; `is_whole` is false if there were too many rows."""

    by: GroupBy | None
    rows: list[CountedValue]
    is_whole: bool


async def count_values(
    database: Database, column: FactColumn, part: CatalogPart, by: GroupBy | None
) -> CountedValues:
    """The values of a fact with the number of entities that have each, for each group."""
    inner, values = select_values(
        column, part, f"{_GROUP_COLUMNS[by]} AS part" if by else "NULL AS part"
    )
    value = f"SUBSTR(value, 1, {LONGEST_SHOWN_TEXT})" if column.fact.type == "string" else "value"
    if column.fact.type == "object":
        value = "SUBSTR(value, 1, 1)"
    sql = _COUNT_VALUES.format(found=inner, value=value, most=MOST_COUNTED + 1)
    rows = await _read_many(database, sql, values)
    read = await asyncio.to_thread(_count_rows, column.fact, rows[:MOST_COUNTED])
    return CountedValues(by, read, len(rows) <= MOST_COUNTED)


async def _read_many(database: Database, sql: str, values: Sequence[Any]) -> list[Row]:
    """Rows of a large result, up to one per entity."""
    if database.dialect == "sqlite":
        return await database.search(sql, values)
    # The driver would decode all rows at once and block the event loop.
    async with limit_time(LONGEST_SEARCH):
        return [row async for rows in database.pages(sql, values) for row in rows]


def select_values(
    column: FactColumn,
    part: CatalogPart,
    *others: str,
    collected: bool = False,
    by_ref: bool = False,
) -> SQL:
    """The statement for the value, reasons and times of every entity in the part.

    With `collected`, entities that were never collected may be left out. With `by_ref`, rows are
    ordered by reference.
    """
    where, values = _part_condition(column, part, by_ref=by_ref)
    columns = ", ".join(others)
    if column.bit is not None:
        bits = COMPLIANCE if column.bit not in _STORED_BITS else "e.compliance"
        return _CATALOG_VALUES.format(
            columns=columns, bits=bits, bit=column.bit, where=where
        ), values
    name = sql_member_name(column.fact)
    # An inner join lets SQLite read the facts in storage order.
    sql = _STORED_VALUES.format(columns=columns, join="" if collected else "LEFT ", where=where)
    return sql, [
        name,
        name,
        column.kept_before,
        name,
        column.stale_before,
        column.source.id,
        *values,
    ]


def sql_member_name(fact: Fact) -> str:
    """The name of a fact for use in SQL; raises InputError for an unsuitable name."""
    if not fact.name.isprintable() or set('"\\') & set(fact.name):
        raise InputError(
            "A fact whose name has quotes, backslashes or invisible characters cannot be shown "
            "across the catalog."
        )
    return fact.name


def known_value(fact: Fact, text: str | None) -> Any:
    """The value in a JSON text; None if missing or no longer of the fact's type."""
    if text is None:
        return None
    if fact.type in NUMBER_TYPES and len(text) > _LONGEST_NUMBER:
        return None
    value = msgspec.json.decode(text)
    return value if TYPES[fact.type].holds(value) else None


def missing_reason(fact: Fact, text: str | None, reasons: str | None) -> str:
    """The reason for a missing value."""
    if text is not None:
        return f"{BAD_DEFINITION}: schema.{fact.name}.type: expected {TYPES[fact.type].words}"
    return find_reason(fact.name, reasons_by_place(reasons or "{}")) or NEVER_COLLECTED


def _count_rows(fact: Fact, rows: Sequence[Row]) -> list[CountedValue]:
    found = []
    for group, text, reasons, number, kept, oldest, newest in rows:
        value = _counted_value(fact, text)
        if value is None:
            why = missing_reason(fact, text, reasons)
            found.append(CountedValue(group, None, why, number, 0, None, None))
        else:
            found.append(CountedValue(group, value, None, number, kept, oldest, newest))
    return found


def _counted_value(fact: Fact, text: str | None) -> Any:
    if fact.type == "object":
        return True if text in {"{", "["} else None
    if fact.type == "string" and text is not None and len(text) == LONGEST_SHOWN_TEXT:
        return _decode_beginning(text)
    return known_value(fact, text)


def _decode_beginning(text: str) -> str | None:
    """The valid part of a truncated JSON string."""
    if not text.startswith('"'):
        return None
    for left in range(7):  # characters of the longest escape, less one, and a quote
        try:
            value = msgspec.json.decode(text[: len(text) - left].removesuffix('"') + '"')
        except msgspec.DecodeError:
            continue
        return value if isinstance(value, str) else None
    return None


def _part_condition(column: FactColumn, part: CatalogPart, *, by_ref: bool) -> SQL:
    """The condition for entities of the source within the part."""
    where, values = part.condition().sql()
    if column.source.selection is None:
        return where, values
    about, more = filters.make_filter_condition(column.source.selection)
    # Wrapped, because SQLite would otherwise read and sort all rows of an index.
    return f"({where}) AND ({about}){' IS TRUE' if by_ref else ''}", [*values, *more]


class Bin(NamedTuple):
    """The number of entities with a value from `start` to below `end`; None means unbounded."""

    start: float | None
    end: float | None
    number: int


def bin_numbers(values: Sequence[Weighted], *, whole: bool) -> list[Bin]:
    """Bins of equal width over ascending values; `whole` keeps their bounds integers.

    The last bin is unbounded if a few values lie far above all others.
    """
    if not values:
        return []
    low, high = values[0][0], values[-1][0]
    sums = [0, *accumulate(count for _, count in values)]
    top = values[bisect_left(sums, _CORE_SHARE * sums[-1], 1) - 1][0]
    is_cut = low < top and high / _FAR_SPREADS - low / _FAR_SPREADS > top - low
    edges = _round_edges(low, top if is_cut else high, whole=whole)
    below = [sums[bisect_left(values, (edge,))] for edge in edges]
    found = [
        Bin(*bounds, after - before)
        for bounds, (before, after) in zip(pairwise(edges), pairwise(below), strict=True)
    ]
    rest = sums[-1] - below[-1]
    return [*found, Bin(edges[-1], None, rest)] if rest else found


def bin_moments(values: Sequence[Weighted], now: int) -> list[Bin]:
    """Bins by age, oldest first; the last has future times. Values and bounds are in ms."""
    edges = [now - days * DAY for days in _AGE_DAYS] + [now + 1]
    counts = [0] * (len(edges) + 1)
    for value, count in values:
        counts[bisect_right(edges, value)] += count
    bounds = [None, *edges, None]
    bins = [Bin(bounds[n], bounds[n + 1], counts[n]) for n in range(len(counts))]
    return bins if bins[-1].number else bins[:-1]


def _round_edges(low: float, high: float, *, whole: bool) -> list[float]:
    """Rounded bounds: the first at most `low`, the last above `high`."""
    step = _round_step(low, high, whole=whole)
    first, last = math.floor(Fraction(low) / step), math.floor(Fraction(high) / step) + 1
    return [_to_float(n * step) for n in range(first, last + 1)]


def _round_step(low: float, high: float, *, whole: bool) -> Fraction:
    """1, 2 or 5 times a power of ten."""
    raw = (Fraction(high) - Fraction(low)) / _MOST_BINS or abs(Fraction(high)) / 10 or Fraction(1)
    exponent = math.floor(math.log10(raw.numerator) - math.log10(raw.denominator))
    found = next(
        times * Fraction(10) ** power
        for power in (exponent - 1, exponent, exponent + 1)
        for times in (1, 2, 5)
        if times * Fraction(10) ** power >= raw
    )
    return max(found, Fraction(1)) if whole else found


def _to_float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max


class Spread(NamedTuple):
    """Figures of ordered values; moments are in milliseconds and have no mean."""

    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    largest: float
    mean: float | None


class GroupFigures(NamedTuple):
    """One group of entities; "" stands for those outside any.

    `true` counts true booleans; `median` applies to numbers and moments.
    """

    name: str
    entities: int
    known: int
    true: int | None
    median: float | None


class Distribution(NamedTuple):
    """The known values of a fact, and the reasons for unknown ones.

    `reasons` counts entities by reason word. `kept` counts known values from before the last run.
    `oldest` and `newest` are the times of the values. `top` are the most frequent of the
    `distinct` texts or set items.
    """

    entities: int
    known: int
    reasons: dict[str, int]
    kept: int
    oldest: int | None
    newest: int | None
    true: int | None
    spread: Spread | None
    histogram: list[Bin]
    top: list[tuple[Any, int]]
    distinct: int
    groups: list[GroupFigures]
    more_groups: int
    is_whole: bool


def distribute_values(fact: Fact, counted: CountedValues, *, top: int, now: int) -> Distribution:
    """The distribution, with up to `top` of the most frequent texts."""
    rows = counted.rows
    known = [row for row in rows if row.value is not None]
    reasons = Counter[str]()
    for row in rows:
        if row.reason is not None:
            reasons[reason_word(row.reason)] += row.number
    ordered = _order_values(fact, known)
    frequent = _frequent_texts(fact, known)
    groups = _list_groups(fact, rows) if counted.by else []
    return Distribution(
        entities=sum(row.number for row in rows),
        known=sum(row.number for row in known),
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        kept=sum(row.kept for row in known),
        oldest=min((row.oldest for row in known if row.oldest is not None), default=None),
        newest=max((row.newest for row in known if row.newest is not None), default=None),
        true=_count_true(fact, known),
        spread=_describe_spread(fact, ordered),
        histogram=_build_histogram(fact, ordered, now),
        top=sorted(frequent.items(), key=lambda item: (-item[1], str(item[0])))[:top],
        distinct=len(frequent),
        groups=groups[:MOST_GROUPS],
        more_groups=max(0, len(groups) - MOST_GROUPS),
        is_whole=counted.is_whole,
    )


def value_position(fact: Fact, value: Any) -> float | None:
    """The place of a value in the order of its type; None without one."""
    if fact.type == "datetime":
        return _moment_position(value)
    return float(value) if fact.type in NUMBER_TYPES else None


def _moment_position(value: str) -> int:
    return (datetime.fromisoformat(value.upper()) - _EPOCH) // timedelta(milliseconds=1)


def _order_values(fact: Fact, rows: Iterable[CountedValue]) -> list[Weighted]:
    """Numbers and moments, ascending."""
    if fact.type != "datetime" and fact.type not in NUMBER_TYPES:
        return []
    found: dict[float, int] = {}
    for _, value, _, number, *_ in rows:
        place = float(value) if fact.type in NUMBER_TYPES else _moment_position(value)
        found[place] = found.get(place, 0) + number
    return sorted(found.items())


def _frequent_texts(fact: Fact, rows: Iterable[CountedValue]) -> Counter[Any]:
    found = Counter[Any]()
    for row in rows:
        if fact.type == "string":
            found[row.value] += row.number
        elif fact.type == "set":
            for item in row.value:
                found[item] += row.number
    return found


def _count_true(fact: Fact, rows: Iterable[CountedValue]) -> int | None:
    if fact.type != "boolean":
        return None
    return sum(row.number for row in rows if row.value is True)


def _build_histogram(fact: Fact, values: Sequence[Weighted], now: int) -> list[Bin]:
    if fact.type == "datetime":
        return bin_moments(values, now) if values else []
    return bin_numbers(values, whole=fact.type == "integer")


def _describe_spread(fact: Fact, values: Sequence[Weighted]) -> Spread | None:
    if not values:
        return None
    least, lower, middle, upper, largest = find_quantiles(values, [n / 4 for n in range(5)])
    mean = None
    if fact.type in NUMBER_TYPES:
        # Divided first: a sum of large values may overflow.
        total = sum(count for _, count in values)
        mean = math.fsum(value * (count / total) for value, count in values)
    return Spread(least, lower, middle, upper, largest, mean)


def find_quantile(values: Sequence[Weighted], part: float) -> float:
    """The quantile for `part` (0 to 1), interpolated between neighboring values."""
    return find_quantiles(values, [part])[0]


def find_quantiles(values: Sequence[Weighted], parts: Iterable[float]) -> list[float]:
    """The quantiles for several parts."""
    ends = list(accumulate(count for _, count in values))
    found = []
    for part in parts:
        place = part * (ends[-1] - 1)
        low, high = math.floor(place), math.ceil(place)
        first, second = (values[bisect_right(ends, at)][0] for at in (low, high))
        is_one = first == second
        found.append(first if is_one else first * (high - place) + second * (place - low))
    return found


def _list_groups(fact: Fact, rows: Iterable[CountedValue]) -> list[GroupFigures]:
    """The groups, largest first."""
    found: dict[str, list[CountedValue]] = {}
    for row in rows:
        found.setdefault(row.group or "", []).append(row)
    groups = [_group_figures(fact, name, members) for name, members in found.items()]
    return sorted(groups, key=lambda group: (-group.entities, group.name))


def _group_figures(fact: Fact, name: str, rows: Sequence[CountedValue]) -> GroupFigures:
    known = [row for row in rows if row.value is not None]
    ordered = _order_values(fact, known)
    return GroupFigures(
        name=name,
        entities=sum(row.number for row in rows),
        known=sum(row.number for row in known),
        true=_count_true(fact, known),
        median=find_quantile(ordered, 0.5) if ordered else None,
    )


# Every bit is stored except that for an owner in the catalog.
_STORED_BITS: Final = frozenset(1 << place for place in range(8))

_GROUP_COLUMNS: Final = {
    "kind": "e.kind",
    "owner": related_entities.OWNER,
    "system": related_entities.SYSTEM,
}

_STORED_VALUES = """
SELECT {columns}, JSON_MEMBER(l.facts, ?) AS value, l.reasons AS reasons,
    l.written_at AS written_at,
    COALESCE(
        CASE
            WHEN l.kept = '{{}}' THEN NULL
            WHEN CAST(JSON_MEMBER(l.kept, ?) AS BIGINT) < CAST(? AS BIGINT)
                THEN CAST(JSON_MEMBER(l.kept, ?) AS BIGINT)
        END,
        CASE WHEN l.written_at < CAST(? AS BIGINT) THEN l.written_at END
    ) AS kept
FROM entities e {join}JOIN facts_latest l ON l.source_id = ? AND l.entity_id = e.id
WHERE {where}"""

_CATALOG_VALUES = """
SELECT {columns}, CASE WHEN (({bits}) & {bit}) <> 0 THEN 'true' ELSE 'false' END AS value,
    '{{}}' AS reasons, e.updated_at AS written_at, CAST(NULL AS BIGINT) AS kept
FROM entities e WHERE {where}"""

# Materialized, to make PostgreSQL read the JSON of a row once. The limit is not a parameter: a
# generic plan would be one for all rows.
_COUNT_VALUES = """
WITH found AS MATERIALIZED ({found})
SELECT part, {value} AS shown, CASE WHEN value IS NULL THEN COALESCE(reasons, '{{}}') END AS why,
    COUNT(*), COUNT(kept), MIN(COALESCE(kept, written_at)), MAX(COALESCE(kept, written_at))
FROM found GROUP BY 1, 2, 3 LIMIT {most}
"""


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
    if wanted.value is not None and not _equals_value(value, wanted.value):
        return False
    if wanted.least is None and wanted.below is None:
        return True
    at = cast("float", value_position(fact, value))
    return (wanted.least is None or at >= wanted.least) and (
        wanted.below is None or at < wanted.below
    )


def _equals_value(value: Any, wanted: Any) -> bool:
    """Compare a value; items of sets by their text."""
    if isinstance(value, list):
        return wanted in (one if isinstance(one, str) else str(one) for one in value)
    return bool(value == wanted)


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
    found = EntityValues([], None)
    if not asked.wanted.of_unknown and (after is None or after[0]):
        rows = window.behind(after, limit + 1)
        if rows is None:
            rows = await _list_ordered(database, asked, after, limit + 1)
        found = _page_of_rows(rows, limit)
        after = None
    if found.more is not None or asked.wanted.of_values:
        return found
    if len(found.rows) == limit:
        return found._replace(more=(False, None, ""))
    rest = await _read_by_ref(database, asked, False, after, limit - len(found.rows))
    return EntityValues([*found.rows, *rest.rows], rest.more)


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


def _page_of_rows(rows: Sequence[PlacedValue], limit: int) -> EntityValues:
    """The page of these rows, which include one more than the limit."""
    found = [row for _, row in rows[:limit]]
    more = (True, rows[limit - 1].place, found[-1].ref) if len(rows) > limit else None
    return EntityValues(found, more)


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

"""The distribution of a fact's values over the catalog: counts, bins, quantiles and groups."""

import asyncio
import math
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factbook.catalog import filters
from factbook.catalog.store import related_entities
from factbook.catalog.store.conditions import SQL
from factbook.catalog.store.related_entities import CatalogPart
from factbook.catalog.store.stored_entities import COMPLIANCE
from factbook.clock import DAY
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
    counted = []
    for group, text, reasons, number, kept, oldest, newest in rows:
        value: Any
        if fact.type == "object":
            value = True if text in {"{", "["} else None
        elif fact.type == "string" and text is not None and len(text) == LONGEST_SHOWN_TEXT:
            value = _decode_beginning(text)
        else:
            value = known_value(fact, text)
        if value is None:
            reason = missing_reason(fact, text, reasons)
            counted.append(CountedValue(group, None, reason, number, 0, None, None))
        else:
            counted.append(CountedValue(group, value, None, number, kept, oldest, newest))
    return counted


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
    high = top if is_cut else high
    # Rounded bounds: the first at most `low`, the last above `high`.
    step = _round_step(low, high, whole=whole)
    first, last = math.floor(Fraction(low) / step), math.floor(Fraction(high) / step) + 1
    largest = Fraction(sys.float_info.max)
    edges = [float(max(-largest, min(largest, n * step))) for n in range(first, last + 1)]
    below = [sums[bisect_left(values, (edge,))] for edge in edges]
    bins = [
        Bin(*bounds, after - before)
        for bounds, (before, after) in zip(pairwise(edges), pairwise(below), strict=True)
    ]
    rest = sums[-1] - below[-1]
    return [*bins, Bin(edges[-1], None, rest)] if rest else bins


def bin_moments(values: Sequence[Weighted], now: int) -> list[Bin]:
    """Bins by age, oldest first; the last has future times. Values and bounds are in ms."""
    edges = [now - days * DAY for days in _AGE_DAYS] + [now + 1]
    counts = [0] * (len(edges) + 1)
    for value, count in values:
        counts[bisect_right(edges, value)] += count
    bounds = [None, *edges, None]
    bins = [Bin(bounds[n], bounds[n + 1], counts[n]) for n in range(len(counts))]
    return bins if bins[-1].number else bins[:-1]


def _round_step(low: float, high: float, *, whole: bool) -> Fraction:
    """1, 2 or 5 times a power of ten."""
    raw = (Fraction(high) - Fraction(low)) / _MOST_BINS or abs(Fraction(high)) / 10 or Fraction(1)
    exponent = math.floor(math.log10(raw.numerator) - math.log10(raw.denominator))
    step = next(
        times * Fraction(10) ** power
        for power in (exponent - 1, exponent, exponent + 1)
        for times in (1, 2, 5)
        if times * Fraction(10) ** power >= raw
    )
    return max(step, Fraction(1)) if whole else step


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
    if fact.type == "datetime":
        histogram = bin_moments(ordered, now) if ordered else []
    else:
        histogram = bin_numbers(ordered, whole=fact.type == "integer")
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
        histogram=histogram,
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

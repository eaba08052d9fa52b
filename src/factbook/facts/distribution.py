"""Distribution of a fact over many entities, from its values with their numbers of entities."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final, NamedTuple

from factbook.facts import bins
from factbook.facts.across import NUMBERS, CountedValue, CountedValues
from factbook.facts.bins import Bin, Weighted
from factbook.facts.reasons import word
from factbook.facts.schema import Fact

# Groups of a breakdown that are shown.
MOST_GROUPS: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Spread(NamedTuple):
    """Figures of ordered values; of moments in milliseconds, and without a mean."""

    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    largest: float
    mean: float | None


class GroupFigures(NamedTuple):
    """One group of entities; "" stands for those outside any.

    `true` counts a boolean, `median` is of numbers and moments.
    """

    name: str
    entities: int
    known: int
    true: int | None
    median: float | None


class Distribution(NamedTuple):
    """The values of a fact, as far as they are known, and why the others are not.

    `reasons` counts entities by the word of the reason. `kept` of the known ones have a value from
    before the last run. `oldest` and `newest` are the times of the values. `top` are the most
    frequent texts, or items of sets, of `distinct` ones.
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


def of(fact: Fact, counted: CountedValues, *, top: int, now: int) -> Distribution:
    """The distribution, with up to `top` of the most frequent texts."""
    rows = counted.rows
    known = [row for row in rows if row.value is not None]
    reasons = Counter[str]()
    for row in rows:
        if row.reason is not None:
            reasons[word(row.reason)] += row.number
    ordered = _ordered(fact, known)
    frequent = _frequent(fact, known)
    groups = _groups(fact, rows) if counted.by else []
    return Distribution(
        entities=sum(row.number for row in rows),
        known=sum(row.number for row in known),
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
        kept=sum(row.kept for row in known),
        oldest=min((row.oldest for row in known if row.oldest is not None), default=None),
        newest=max((row.newest for row in known if row.newest is not None), default=None),
        true=_true(fact, known),
        spread=_spread(fact, ordered),
        histogram=_histogram(fact, ordered, now),
        top=sorted(frequent.items(), key=lambda item: (-item[1], str(item[0])))[:top],
        distinct=len(frequent),
        groups=groups[:MOST_GROUPS],
        more_groups=max(0, len(groups) - MOST_GROUPS),
        is_whole=counted.is_whole,
    )


def position(fact: Fact, value: Any) -> float | None:
    """The place of a value in the order of its type; None without one."""
    if fact.type == "datetime":
        return _moment(value)
    return float(value) if fact.type in NUMBERS else None


def _moment(value: str) -> int:
    return (datetime.fromisoformat(value.upper()) - _EPOCH) // timedelta(milliseconds=1)


def _ordered(fact: Fact, rows: Iterable[CountedValue]) -> list[Weighted]:
    """Numbers and moments, ascending."""
    if fact.type != "datetime" and fact.type not in NUMBERS:
        return []
    found: dict[float, int] = {}
    for _, value, _, number, *_ in rows:
        place = float(value) if fact.type in NUMBERS else _moment(value)
        found[place] = found.get(place, 0) + number
    return sorted(found.items())


def _frequent(fact: Fact, rows: Iterable[CountedValue]) -> Counter[Any]:
    found = Counter[Any]()
    for row in rows:
        if fact.type == "string":
            found[row.value] += row.number
        elif fact.type == "set":
            for item in row.value:
                found[item] += row.number
    return found


def _true(fact: Fact, rows: Iterable[CountedValue]) -> int | None:
    if fact.type != "boolean":
        return None
    return sum(row.number for row in rows if row.value is True)


def _histogram(fact: Fact, values: Sequence[Weighted], now: int) -> list[Bin]:
    if fact.type == "datetime":
        return bins.of_moments(values, now) if values else []
    return bins.of_numbers(values, whole=fact.type == "integer")


def _spread(fact: Fact, values: Sequence[Weighted]) -> Spread | None:
    if not values:
        return None
    least, lower, middle, upper, largest = quantiles(values, [n / 4 for n in range(5)])
    mean = None
    if fact.type in NUMBERS:
        # Divided first: the sum of large ones may be too large.
        total = sum(count for _, count in values)
        mean = math.fsum(value * (count / total) for value, count in values)
    return Spread(least, lower, middle, upper, largest, mean)


def quantile(values: Sequence[Weighted], part: float) -> float:
    """The value below which a part of the others lies, between two where it falls between them."""
    return quantiles(values, [part])[0]


def quantiles(values: Sequence[Weighted], parts: Iterable[float]) -> list[float]:
    """The same of several parts."""
    ends = list(accumulate(count for _, count in values))
    found = []
    for part in parts:
        place = part * (ends[-1] - 1)
        low, high = math.floor(place), math.ceil(place)
        first, second = (values[bisect_right(ends, at)][0] for at in (low, high))
        is_one = first == second
        found.append(first if is_one else first * (high - place) + second * (place - low))
    return found


def _groups(fact: Fact, rows: Iterable[CountedValue]) -> list[GroupFigures]:
    """The groups, largest first."""
    found: dict[str, list[CountedValue]] = {}
    for row in rows:
        found.setdefault(row.group or "", []).append(row)
    groups = [_figures(fact, name, members) for name, members in found.items()]
    return sorted(groups, key=lambda group: (-group.entities, group.name))


def _figures(fact: Fact, name: str, rows: Sequence[CountedValue]) -> GroupFigures:
    known = [row for row in rows if row.value is not None]
    ordered = _ordered(fact, known)
    return GroupFigures(
        name=name,
        entities=sum(row.number for row in rows),
        known=sum(row.number for row in known),
        true=_true(fact, known),
        median=quantile(ordered, 0.5) if ordered else None,
    )

"""Bins of a histogram: of numbers by round steps, of moments by age."""

import math
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from factbook.clock import DAY

# A bin is about this part of the range.
_PARTS: Final = 12
# Few values that lie so many times further out than the others share one last bin.
_FAR: Final = 8
_MOST_OF_ALL: Final = 0.95
_AGES: Final = (365, 90, 30, 7, 1)  # days

Weighted = tuple[float, int]  # a value, and the number of entities that have it


class Bin(NamedTuple):
    """The number of entities with a value from `start` on, below `end`; None: no such bound."""

    start: float | None
    end: float | None
    number: int


def of_numbers(values: Sequence[Weighted], *, whole: bool) -> list[Bin]:
    """Bins of equal width over ascending values; `whole` keeps their bounds integers.

    The last one is without an end if few values lie far above all others.
    """
    if not values:
        return []
    low, high = values[0][0], values[-1][0]
    sums = [0, *accumulate(count for _, count in values)]
    top = values[bisect_left(sums, _MOST_OF_ALL * sums[-1], 1) - 1][0]
    is_cut = low < top and high / _FAR - low / _FAR > top - low
    edges = _edges(low, top if is_cut else high, whole=whole)
    below = [sums[bisect_left(values, (edge,))] for edge in edges]
    found = [
        Bin(*bounds, after - before)
        for bounds, (before, after) in zip(pairwise(edges), pairwise(below), strict=True)
    ]
    rest = sums[-1] - below[-1]
    return [*found, Bin(edges[-1], None, rest)] if rest else found


def of_moments(values: Sequence[Weighted], now: int) -> list[Bin]:
    """Bins by age, oldest first; the last is of what lies ahead. Values and bounds are in ms."""
    edges = [now - days * DAY for days in _AGES] + [now + 1]
    counts = [0] * (len(edges) + 1)
    for value, count in values:
        counts[bisect_right(edges, value)] += count
    bounds = [None, *edges, None]
    bins = [Bin(bounds[n], bounds[n + 1], counts[n]) for n in range(len(counts))]
    return bins if bins[-1].number else bins[:-1]


def _edges(low: float, high: float, *, whole: bool) -> list[float]:
    """Round bounds of which the first is at most `low` and the last above `high`."""
    step = _step(low, high, whole=whole)
    first, last = math.floor(Fraction(low) / step), math.floor(Fraction(high) / step) + 1
    return [_float(n * step) for n in range(first, last + 1)]


def _step(low: float, high: float, *, whole: bool) -> Fraction:
    """1, 2 or 5 times a power of ten."""
    raw = (Fraction(high) - Fraction(low)) / _PARTS or abs(Fraction(high)) / 10 or Fraction(1)
    exponent = math.floor(math.log10(raw.numerator) - math.log10(raw.denominator))
    found = next(
        times * Fraction(10) ** power
        for power in (exponent - 1, exponent, exponent + 1)
        for times in (1, 2, 5)
        if times * Fraction(10) ** power >= raw
    )
    return max(found, Fraction(1)) if whole else found


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return sys.float_info.max if value > 0 else -sys.float_info.max

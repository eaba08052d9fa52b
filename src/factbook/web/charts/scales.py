"""Scales of charts: positions of values and times, ticks, and the format of both.

Times are milliseconds since the epoch, UTC. A value that is not a finite number is None: unknown.
"""

import math
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from factbook.clock import DAY, HOUR, MINUTE
from factbook.web.site import formats

Point = tuple[int, float | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME = 253_402_300_799_999  # the end of the year 9999, the last that can be written
_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
# In minutes, hours and days; then whole months.
_STEPS = [
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
]
_MONTHS = (1, 2, 3, 6, *(12 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)))
_WEEK_START = 4 * DAY  # the first Monday after the epoch


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    label: str


def finite(value: float | None) -> float | None:
    """The value as a float; None if unknown, infinite or too large for one."""
    try:
        found = None if value is None else float(value)
    except OverflowError:
        return None
    return found if found is not None and math.isfinite(found) else None


def cleaned(points: Iterable[Point]) -> list[Point]:
    """Points ordered by time, their values finite or None."""
    return sorted(((at, finite(value)) for at, value in points), key=lambda point: point[0])


def place(value: float, low: float, high: float) -> float:
    """Relative position of a value between two others, from 0 to 1; 0.5 if these are equal."""
    # Divided first: the difference of two large floats may be infinite.
    unit = max(abs(low), abs(high))
    if unit == 0 or low / unit == high / unit:
        return 0.5
    found = (value / unit - low / unit) / (high / unit - low / unit)
    return min(1.0, max(0.0, found))


def value_range(values: Sequence[float]) -> tuple[float, float]:
    """Range of an axis: from zero, unless the values are far away from it."""
    low, high = min(values), max(values)
    if low == high == 0:
        return 0.0, 1.0
    near = high - low if math.isfinite(high - low) else math.inf
    if low > 0 and (low < near or near <= abs(high) * 1e-9):
        return 0.0, high
    if high < 0 and (-high < near or near <= abs(low) * 1e-9):
        return low, 0.0
    return low, high


def value_ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[Tick]:
    """Ticks at 1, 2 or 5 times a power of ten; the first is at most low, the last at least high.

    `whole` keeps the step from being a fraction, for counts.
    """
    span = Fraction(high) - Fraction(low)
    if span <= 0:
        raise ValueError("an axis needs two different values")
    raw = span / about
    exponent = math.floor(math.log10(raw.numerator) - math.log10(raw.denominator))
    step = next(
        (times, power)
        for power in (exponent - 1, exponent, exponent + 1)
        for times in (1, 2, 5)
        if times * Fraction(10) ** power >= raw
    )
    if whole and step[1] < 0:
        step = (1, 0)
    size = step[0] * Fraction(10) ** step[1]
    first, last = math.floor(Fraction(low) / size), math.ceil(Fraction(high) / size)
    most = sys.float_info.max
    marks = (float(f"{n * step[0]}e{step[1]}") for n in range(first, last + 1))
    return [Tick(at, short(at)) for at in (min(most, max(-most, mark)) for mark in marks)]


def time_ticks(start: int, end: int, about: int = 6) -> list[Tick]:
    """Ticks on whole minutes, hours, days, Mondays, months or years within a period."""
    for step in _STEPS:
        origin = _WEEK_START if step % (7 * DAY) == 0 else 0
        first = origin + -((origin - start) // step) * step
        if (end - first) // step + 1 <= about:
            return [Tick(at, _time_label(at, step)) for at in range(first, end + 1, step)]
    for months in _MONTHS:
        ticks = [
            tick for tick in _month_ticks(start, end, months, about) if start <= tick.at <= end
        ]
        if 0 < len(ticks) <= about:
            return ticks
    return []


def _month_ticks(start: int, end: int, months: int, about: int) -> list[Tick]:
    first, last = _date(start), _date(end)
    origin = (first.year * 12 + first.month - 1) // months * months
    numbers = range(origin, last.year * 12 + last.month, months)
    # The first may lie before the start.
    if len(numbers) > about + 1:
        return []
    return [_month_tick(number) for number in numbers if number >= 12]


def _month_tick(number: int) -> Tick:
    date = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
    at = (date - _EPOCH) // timedelta(milliseconds=1)
    return Tick(at, f"{date:%b}" if number % 12 else str(date.year))


def _time_label(at: int, step: int) -> str:
    date = _date(at)
    return f"{date.day} {date:%b}" if at % DAY == 0 or step >= DAY else f"{date:%H:%M}"


def _date(at: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=clamped(at))


def clamped(at: int) -> int:
    """The time, or the nearest one that can be written as a date."""
    return min(_LAST_TIME, max(0, at))


def moment(at: int) -> str:
    """Format a time, e.g. `21 Nov 2026 06:00 UTC`."""
    date = _date(at)
    return f"{date.day} {date:%b} {date.year} {date:%H:%M} UTC"


def period(start: int, end: int) -> str:
    """Format a period; only its days if it is longer than three."""
    first, last = _date(start), _date(end)
    if end - start > 3 * DAY:
        return f"{first.day} {first:%b} {first.year} to {last.day} {last:%b} {last.year}, UTC"
    day = "" if first.date() == last.date() else f"{last.day} {last:%b} {last.year} "
    return f"{first.day} {first:%b} {first.year} {first:%H:%M} to {day}{last:%H:%M} UTC"


def figure(value: float | None) -> str:
    """Format a value like words.number, also very large and small ones; a dash if unknown."""
    value = finite(value)
    if value is None:
        return "—"
    if value == 0 or 1e-3 <= abs(value) < 1e15:
        return formats.number(value)
    return f"{value:.4g}".replace("e+", "e")


def quantity(value: float | None, unit: str) -> str:
    """Format a value with its unit."""
    return figure(value) + (unit if unit == "%" or not unit else f" {unit}")


def short(value: float) -> str:
    """Format a value for an axis, e.g. `12k`, with SI prefixes."""
    size, prefix = next(
        ((size, prefix) for size, prefix in _PREFIXES if size <= abs(value) < 10**15), (1, "")
    )
    return f"{value / size:.12g}{prefix}".replace("e+", "e")


def downsampled(points: Sequence[Point], most: int) -> list[Point]:
    """At most this many points: of each stretch the lowest, the highest, and an unknown one.

    The last point stays, because it is the current one.
    """
    if len(points) <= most:
        return list(points)
    each = 3 if any(value is None for _, value in points) else 2
    stretches = max(1, (most - 1) // each)
    edges = [len(points) * n // stretches for n in range(stretches + 1)]
    kept: set[int] = {len(points) - 1}
    for first, last in pairwise(edges):
        known = {n: value for n in range(first, last) if (value := points[n][1]) is not None}
        if known:
            kept |= {min(known, key=known.__getitem__), max(known, key=known.__getitem__)}
        if len(known) < last - first:
            kept.add(next(n for n in range(first, last) if n not in known))
    return [points[n] for n in sorted(kept)]


def runs(points: Iterable[Point]) -> list[list[tuple[int, float]]]:
    """Stretches of known values."""
    found: list[list[tuple[int, float]]] = [[]]
    for at, value in points:
        if value is None:
            found.append([])
        else:
            found[-1].append((at, value))
    return [run for run in found if run]


def gaps(points: Sequence[Point], end: int) -> list[tuple[int, int]]:
    """Periods of unknown values: from the last known, or first unknown, to the next known."""
    known = [at for at, value in points if value is not None]
    found = []
    for at, value in points:
        if value is None:
            n = bisect_left(known, at)
            found.append((known[n - 1] if n else at, known[n] if n < len(known) else end))
    return [(first, last) for first, last in dict(found).items() if first < last]

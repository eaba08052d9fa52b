"""Cron expressions of five fields: minute, hour, day of month, month, day of week; all in UTC.

Source: the crontab format of Vixie cron, with its rule for days: if both day fields are restricted,
a day that matches either of them is included.
"""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator
from datetime import date
from functools import lru_cache
from itertools import product
from typing import NamedTuple

from msgspec import Struct

from factbook.clock import DAY, MINUTE
from factbook.errors import InputError

_EPOCH = date(1970, 1, 1).toordinal()
_MINUTES_A_DAY = DAY // MINUTE
# 29 February falls on a given day of the week again after 40 years at most.
_MONTHS_AHEAD = 41 * 12
# Characters of a line: every minute of an hour by its number takes 170.
LONGEST = 500
# A leap year, so that 29 February is a date.
_LONGEST = {month: monthrange(2024, month)[1] for month in range(1, 13)}


class _CronField(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: dict[str, int]


def _numbered(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_FIELDS = (
    _CronField("minute", 0, 59, {}),
    _CronField("hour", 0, 23, {}),
    _CronField("day of the month", 1, 31, {}),
    _CronField("month", 1, 12, _numbered("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    # Sunday is 0 and 7.
    _CronField("day of the week", 0, 7, _numbered("sun mon tue wed thu fri sat", 0)),
)


class Cadence(Struct, frozen=True):
    """A parsed cron expression: `times` are minutes of the day, Sunday is weekday 0."""

    times: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either_day: bool

    def runs_on(self, day: date) -> bool:
        """Return true if the cadence includes this day."""
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = in_month or in_week if self.either_day else in_month and in_week
        return fits and day.month in self.months


@lru_cache(maxsize=1024)
def parse(line: str) -> Cadence:
    """Parse a cron expression; raises InputError naming every problem."""
    if len(line) > LONGEST:
        raise InputError(f"a cadence has {LONGEST} characters at most")
    parts = line.lower().split()
    if len(parts) != len(_FIELDS):
        raise InputError(
            "a cadence has five fields (minute, hour, day of the month, month, day of the week), "
            f"such as 30 6 * * mon-fri; this has {len(parts)}"
        )
    problems: list[str] = []
    minutes, hours, days, months, weekdays = (
        _expand(part, field, problems) for part, field in zip(parts, _FIELDS, strict=True)
    )
    either_day = not (parts[2].startswith("*") or parts[4].startswith("*"))
    if not problems and not either_day and min(days) > max(_LONGEST[month] for month in months):
        problems.append(f"no month of the cadence has a day {min(days)}, so it would never run")
    if problems:
        raise InputError("; ".join(problems))
    times = tuple(hour * 60 + minute for hour, minute in product(sorted(hours), sorted(minutes)))
    return Cadence(times, days, months, frozenset(day % 7 for day in weekdays), either_day)


def following(cadence: Cadence, after: int) -> int:
    """The first time of the cadence after `after`; both in milliseconds since the epoch."""
    today, minute = divmod(after // MINUTE + 1, _MINUTES_A_DAY)
    later_today = cadence.times[bisect_left(cadence.times, minute) :]
    if later_today and cadence.runs_on(date.fromordinal(_EPOCH + today)):
        return today * DAY + later_today[0] * MINUTE
    day = next(_days(cadence, date.fromordinal(_EPOCH + today + 1)))
    return (day.toordinal() - _EPOCH) * DAY + cadence.times[0] * MINUTE


def _days(cadence: Cadence, start: date) -> Iterator[date]:
    """The days of the cadence from `start` on."""
    first = start.year * 12 + start.month - 1
    for year, month in (divmod(index, 12) for index in range(first, first + _MONTHS_AHEAD)):
        if month + 1 not in cadence.months:
            continue
        for number in range(1, monthrange(year, month + 1)[1] + 1):
            day = date(year, month + 1, number)
            if day >= start and cadence.runs_on(day):
                yield day


def _expand(part: str, field: _CronField, problems: list[str]) -> frozenset[int]:
    """The numbers matched by one field; errors are appended to `problems`."""
    numbers: set[int] = set()
    for item in part.split(","):
        try:
            numbers.update(_range(item, field))
        except ValueError as error:
            problems.append(f"{field.name}: {error}")
    return frozenset(numbers)


def _range(item: str, field: _CronField) -> range:
    span, slash, step = item.partition("/")
    low, dash, high = span.partition("-")
    if span == "*":
        first, last = field.lowest, field.highest
    else:
        first = _number(low, field)
        # As in other crons, 5/15 goes on to the end of the field.
        last = _number(high, field) if dash else field.highest if slash else first
    if first > last:
        raise ValueError(f"{span} runs backwards; write it as two ranges, separated by a comma")
    return range(first, last + 1, _step(step, field) if slash else 1)


def _number(text: str, field: _CronField) -> int:
    number = field.names.get(text, int(text) if text.isascii() and text.isdigit() else -1)
    if not field.lowest <= number <= field.highest:
        raise ValueError(f'"{text}" is not between {field.lowest} and {field.highest}')
    return number


def _step(text: str, field: _CronField) -> int:
    step = int(text) if text.isascii() and text.isdigit() else 0
    if not 1 <= step <= field.highest:
        raise ValueError(f'the step "{text}" is not between 1 and {field.highest}')
    return step

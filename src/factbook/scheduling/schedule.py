"""Start times of sources: cron expressions in UTC, spread by a hash of the source name."""

from bisect import bisect_left
from calendar import monthrange
from collections.abc import Iterator, Mapping
from datetime import date
from functools import lru_cache
from hashlib import sha256
from itertools import product
from typing import NamedTuple

from msgspec import Struct

from factbook.clock import DAY, MINUTE, SECOND
from factbook.errors import InputError

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MINUTES_A_DAY = DAY // MINUTE
# February 29 falls on a given weekday again after 40 years at most.
_MONTHS_AHEAD = 41 * 12
# Characters of an expression: every minute of an hour by number takes 170.
LONGEST_CADENCE = 500
# Sources with the same cadence start within this time after its moment, or within half of the
# interval if that is shorter.
LONGEST_DELAY = 15 * MINUTE


# A leap year, to make February 29 a valid date.
_MONTH_LENGTHS = {month: monthrange(2024, month)[1] for month in range(1, 13)}


class _CronField(NamedTuple):
    name: str
    lowest: int
    highest: int
    names: dict[str, int]


def _number_names(names: str, first: int) -> dict[str, int]:
    return {name: number for number, name in enumerate(names.split(), first)}


_CRON_FIELDS = (
    _CronField("minute", 0, 59, {}),
    _CronField("hour", 0, 23, {}),
    _CronField("day of the month", 1, 31, {}),
    _CronField("month", 1, 12, _number_names("jan feb mar apr may jun jul aug sep oct nov dec", 1)),
    # Sunday is 0 and 7.
    _CronField("day of the week", 0, 7, _number_names("sun mon tue wed thu fri sat", 0)),
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
def parse_cadence(line: str) -> Cadence:
    """Parse a cron expression; raises InputError naming every problem."""
    if len(line) > LONGEST_CADENCE:
        raise InputError(f"a cadence has {LONGEST_CADENCE} characters at most")
    parts = line.lower().split()
    if len(parts) != len(_CRON_FIELDS):
        raise InputError(
            "a cadence has five fields (minute, hour, day of the month, month, day of the week), "
            f"such as 30 6 * * mon-fri; this has {len(parts)}"
        )
    problems: list[str] = []
    minutes, hours, days, months, weekdays = (
        _expand_field(part, field, problems)
        for part, field in zip(parts, _CRON_FIELDS, strict=True)
    )
    either_day = not (parts[2].startswith("*") or parts[4].startswith("*"))
    if (
        not problems
        and not either_day
        and min(days) > max(_MONTH_LENGTHS[month] for month in months)
    ):
        problems.append(f"no month of the cadence has a day {min(days)}, so it would never run")
    if problems:
        raise InputError("; ".join(problems))
    times = tuple(hour * 60 + minute for hour, minute in product(sorted(hours), sorted(minutes)))
    return Cadence(times, days, months, frozenset(day % 7 for day in weekdays), either_day)


def find_next_time(cadence: Cadence, after: int) -> int:
    """The first time of the cadence after `after`; both in milliseconds since the epoch."""
    today, minute = divmod(after // MINUTE + 1, _MINUTES_A_DAY)
    later_today = cadence.times[bisect_left(cadence.times, minute) :]
    if later_today and cadence.runs_on(date.fromordinal(_EPOCH_DAY + today)):
        return today * DAY + later_today[0] * MINUTE
    day = next(_iterate_days(cadence, date.fromordinal(_EPOCH_DAY + today + 1)))
    return (day.toordinal() - _EPOCH_DAY) * DAY + cadence.times[0] * MINUTE


def _iterate_days(cadence: Cadence, start: date) -> Iterator[date]:
    """The days of the cadence from `start` on."""
    first = start.year * 12 + start.month - 1
    for year, month in (divmod(index, 12) for index in range(first, first + _MONTHS_AHEAD)):
        if month + 1 not in cadence.months:
            continue
        for number in range(1, monthrange(year, month + 1)[1] + 1):
            day = date(year, month + 1, number)
            if day >= start and cadence.runs_on(day):
                yield day


def _expand_field(part: str, field: _CronField, problems: list[str]) -> frozenset[int]:
    """The numbers matched by one field; errors are appended to `problems`."""
    numbers: set[int] = set()
    for item in part.split(","):
        try:
            numbers.update(_parse_range(item, field))
        except ValueError as error:
            problems.append(f"{field.name}: {error}")
    return frozenset(numbers)


def _parse_range(item: str, field: _CronField) -> range:
    span, slash, step_text = item.partition("/")
    low, dash, high = span.partition("-")
    if span == "*":
        first, last = field.lowest, field.highest
    else:
        first = _parse_number(low, field)
        # As in other crons, 5/15 runs to the end of the field.
        last = _parse_number(high, field) if dash else field.highest if slash else first
    if first > last:
        raise ValueError(f"{span} runs backwards; write it as two ranges, separated by a comma")
    step = 1
    if slash:
        step = int(step_text) if step_text.isascii() and step_text.isdigit() else 0
        if not 1 <= step <= field.highest:
            raise ValueError(f'the step "{step_text}" is not between 1 and {field.highest}')
    return range(first, last + 1, step)


def _parse_number(text: str, field: _CronField) -> int:
    number = field.names.get(text, int(text) if text.isascii() and text.isdigit() else -1)
    if not field.lowest <= number <= field.highest:
        raise ValueError(f'"{text}" is not between {field.lowest} and {field.highest}')
    return number


def find_next_starts(cadences: Mapping[str, str], last: Mapping[str, int]) -> dict[str, int]:
    """The next start of each name; 0, meaning at once, if never started.

    `cadences` are cron expressions by name, `last` the last start of each. Missed starts are made
    up by a single one.
    """
    return {
        name: find_next_start(name, line, last[name]) if name in last else 0
        for name, line in cadences.items()
    }


def list_due(nexts: Mapping[str, int], now: int) -> list[str]:
    """The names that are due, in the order of their start times."""
    return sorted((name for name in nexts if nexts[name] <= now), key=lambda n: (nexts[n], n))


@lru_cache(maxsize=4096)
def find_next_start(name: str, line: str, after: int) -> int:
    """The first start of `name` after `after`; all in milliseconds since the epoch."""
    parsed = parse_cadence(line)
    # The starts of earlier moments are past.
    following = find_next_time(parsed, after - LONGEST_DELAY)
    while True:
        moment, following = following, find_next_time(parsed, following)
        # The delay of a name after the cadence's time is always the same, in whole seconds.
        most = min(LONGEST_DELAY, (following - moment) // 2) // SECOND
        start = moment + _hash_name(name) % most * SECOND
        if start > after:
            return start


@lru_cache(maxsize=4096)
def _hash_name(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8])

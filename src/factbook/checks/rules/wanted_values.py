"""The values that conditions want, by their form: parsing, with every mistake reported."""

import math
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Any, Final

from factbook import clock
from factbook.checks.rules import version_order
from factbook.clock import DAY
from factbook.errors import one_of
from factbook.facts import datasource
from factbook.facts.datasource import LIFETIME_UNITS, TIMEOUT_UNITS, Duration
from factbook.facts.members import Report
from factbook.facts.reasons import REASONS

MOST_ITEMS: Final = 500
LONGEST: Final = 1_000
# A hundred years.
_LONGEST_DURATION: Final = 36_525 * DAY
UNITS: Final = TIMEOUT_UNITS | LIFETIME_UNITS
_MOST_COUNTED: Final = 1_000_000_000


class ValueForm(Enum):
    """Kind of value that an operator wants."""

    NOTHING = "no value"
    SCALAR = "a string, a number, true or false"
    ITEM = "a string or a number"
    LIST = "a list of strings or numbers"
    NUMBER = "a number"
    COUNT = "a whole number from 0 on"
    TEXT = "a string that is not empty"
    PATTERN = "a regular expression"
    TIME = 'an ISO 8601 date, or date and time with a UTC offset, or {"days": 30} from now'
    DURATION = 'a duration such as {"days": 30}'
    VERSION = "a version such as 1.4 or 2.0.0-rc.1"
    REASON = "a reason for unknown values"


def read(form: ValueForm, value: object, path: str, report: Report) -> Any:
    """The value as it is given, if it has the form; else the mistake is reported."""
    problem = _READERS[form](value)
    if problem:
        report(path, problem)
    return value


def moment(value: str) -> int:
    """The time of an ISO 8601 date, at its start, or date and time; raises ValueError."""
    found = clock.milliseconds(value if "T" in value.upper() else f"{value}T00:00Z")
    if found is None:
        raise ValueError(value)
    return found


def _unless(fits: bool, form: ValueForm) -> str | None:
    return None if fits else f"has to be {form.value}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST


def _is_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_item(value: object) -> bool:
    return (isinstance(value, str) and len(value) <= LONGEST) or _is_number(value)


def _scalar(value: object) -> str | None:
    return _unless(isinstance(value, bool) or _is_item(value), ValueForm.SCALAR)


def _item(value: object) -> str | None:
    return _unless(_is_item(value), ValueForm.ITEM)


def _list(value: object) -> str | None:
    if not isinstance(value, list) or not value or not all(map(_is_item, value)):
        return f"has to be {ValueForm.LIST.value} that is not empty"
    return f"can have {MOST_ITEMS} items at most" if len(value) > MOST_ITEMS else None


def _number(value: object) -> str | None:
    return _unless(_is_number(value), ValueForm.NUMBER)


def _count(value: object) -> str | None:
    return _unless(type(value) is int and 0 <= value <= _MOST_COUNTED, ValueForm.COUNT)


def _text(value: object) -> str | None:
    return _unless(_is_text(value), ValueForm.TEXT)


def _pattern(value: object) -> str | None:
    # Whether it can be evaluated is asked where a check is written: stored ones may be older.
    return _unless(isinstance(value, str) and bool(value), ValueForm.PATTERN)


def _time(value: object) -> str | None:
    if isinstance(value, date):
        return "has to be in quotes, since YAML takes it for something else than text"
    if isinstance(value, dict):
        return _duration(value)
    try:
        moment(value if isinstance(value, str) else "")
    except ValueError:
        return f"has to be {ValueForm.TIME.value}"
    return None


def _duration(value: object) -> str | None:
    if not isinstance(value, dict) or not value or value.keys() - UNITS.keys():
        return f"has to be {ValueForm.DURATION.value}, of {', '.join(UNITS)}"
    if any(type(count) is not int or not 0 < count <= _MOST_COUNTED for count in value.values()):
        return "has to have whole numbers from 1 on"
    return "is longer than a hundred years" if duration(value) > _LONGEST_DURATION else None


def duration(value: Duration) -> int:
    """The length of a duration in milliseconds; a month has 30 days."""
    return datasource.milliseconds(value)


def _version(value: object) -> str | None:
    fits = isinstance(value, str) and version_order.parse(value) is not None
    return _unless(fits, ValueForm.VERSION)


def _reason(value: object) -> str | None:
    fits = isinstance(value, str) and value in REASONS
    return None if fits else one_of(value, REASONS)


_READERS: Final[dict[ValueForm, Callable[[object], str | None]]] = {
    ValueForm.SCALAR: _scalar,
    ValueForm.ITEM: _item,
    ValueForm.LIST: _list,
    ValueForm.NUMBER: _number,
    ValueForm.COUNT: _count,
    ValueForm.TEXT: _text,
    ValueForm.PATTERN: _pattern,
    ValueForm.TIME: _time,
    ValueForm.DURATION: _duration,
    ValueForm.VERSION: _version,
    ValueForm.REASON: _reason,
}

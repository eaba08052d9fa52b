"""Months of times in milliseconds since the epoch, UTC."""

from datetime import UTC, datetime
from typing import Final

# Later times are no clock's, and Python's dates end a century after.
_LAST: Final = 250_246_627_200_000


def after(time: int, count: int = 1) -> int:
    """The beginning of the month that is `count` after that of a time; of that one for 0."""
    moment = datetime.fromtimestamp(min(time, _LAST) / 1000, UTC)
    years, month = divmod(moment.month - 1 + count, 12)
    return _milliseconds(moment.year + years, month + 1)


def starts(begin: int, end: int) -> list[int]:
    """The beginnings of the months from `begin`, which is one, until before `end`."""
    found = []
    while begin < end:
        found.append(begin)
        begin = after(begin)
    return found


def name(time: int) -> str:
    """Year and month, as in names of tables."""
    return f"{datetime.fromtimestamp(time / 1000, UTC):%Y_%m}"


def _milliseconds(year: int, month: int) -> int:
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp()) * 1000

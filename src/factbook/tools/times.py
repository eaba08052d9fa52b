"""Parsing of times in the arguments of tools, as agents write them."""

import re
from typing import Final

from factbook.clock import DAY, HOUR, MINUTE, iso, milliseconds
from factbook.errors import ToolError

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_AGO = re.compile(r"(\d{1,6})([mhdw])", re.ASCII)
_UNITS = {"m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}

FORM: Final = "a date or an ISO 8601 time, in UTC unless it has an offset"


def start(text: str, name: str) -> int:
    """The given time, or the start of a date; raises ToolError naming the argument."""
    return _moment(text, name, FORM)


def end(text: str, name: str) -> int:
    """The given time, or the end of a date; raises ToolError naming the argument."""
    return _moment(text, name, FORM) + (DAY - 1 if _DATE.fullmatch(text) else 0)


def since(text: str, name: str, now: int) -> int:
    """The given time or date, or the time before now by a duration such as `7d`.

    Raises ToolError naming the argument for any other text, and for a time in the future.
    """
    if match := _AGO.fullmatch(text):
        return max(0, now - int(match[1]) * _UNITS[match[2]])
    found = _moment(text, name, f"{FORM}, or how long ago, such as 90m, 24h, 7d or 2w")
    if found > now:
        raise ToolError(f"{name} is in the future: it is {iso(now)} now. Give an earlier time.")
    return found


def _moment(text: str, name: str, form: str) -> int:
    whole = f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text
    for given in (whole, f"{whole}Z"):
        if (found := milliseconds(given)) is not None:
            return found
    raise ToolError(
        f"{name} is not a time from 1970 on. Give {form}: 2026-11-01 or 2026-11-01T06:00:00Z."
    )

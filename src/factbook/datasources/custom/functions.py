"""Functions of expressions beside those of JMESPath: parts of a text, and times.

A time is an ISO 8601 date, or a date and time with a UTC offset. None of the functions knows the
present, so the value of a document is always the same.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from jmespath.functions import Functions, signature

from factbook.facts.schema import moment_of_text

if TYPE_CHECKING:
    from jmespath.functions import _Signature

_TEXT: Final["_Signature"] = {"types": ["string"]}
_NUMBER: Final["_Signature"] = {"types": ["number"]}
_DAY: Final = 86_400


class FactbookFunctions(Functions):
    """Functions of the standard and of Factbook; they raise ValueError, ArithmeticError."""

    @signature(_TEXT, _TEXT)
    def _func_split(self, text: str, separator: str) -> list[str]:
        """The parts of a text between separators."""
        return text.split(separator)

    @signature(_TEXT)
    def _func_to_epoch(self, time: str) -> int | float:
        """Seconds from 1970 to a time."""
        return _plain(moment_of_text(time).timestamp())

    @signature(_NUMBER)
    def _func_from_epoch(self, seconds: float) -> str:
        """The time so many seconds after 1970."""
        return _shown(datetime.fromtimestamp(seconds, UTC))

    @signature(_TEXT, _TEXT)
    def _func_days_between(self, start: str, end: str) -> int | float:
        """Days from one time to another; negative if the second is earlier."""
        return _plain((moment_of_text(end) - moment_of_text(start)).total_seconds() / _DAY)

    @signature(_TEXT, _NUMBER)
    def _func_add_days(self, time: str, days: float) -> str:
        """A time so many days later; earlier if the number is negative."""
        return _shown(moment_of_text(time) + timedelta(days=days))


def _plain(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _shown(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z"

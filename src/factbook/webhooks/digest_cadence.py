"""Cadences of digests: an hour of each day or of one day of the week, in a time zone."""

from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple, get_args
from zoneinfo import ZoneInfo

from factbook.clock import SECOND
from factbook.errors import InputError
from factbook.schemas.events import CadenceUnit, Weekday

WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)
LONGEST_ZONE: Final = 64
_WEEK: Final = 7


class DigestCadence(NamedTuple):
    """A cadence; `day` is of a weekly one."""

    unit: CadenceUnit = "weekly"
    day: Weekday = "monday"
    hour: int = 8
    time_zone: str = "UTC"

    def following(self, after: int) -> int:
        """The first time after `after`; both in milliseconds since the epoch."""
        return next(at for at in self._around(after) if at > after)

    def latest(self, now: int) -> int:
        """The last time up to `now`."""
        return next(at for at in reversed(self._around(now)) if at <= now)

    def _around(self, moment: int) -> list[int]:
        """The times from a week before a moment to a week after it."""
        zone = _zone(self.time_zone) or UTC  # one that was known when the digest was made
        today = datetime.fromtimestamp(moment / SECOND, zone).date()
        days = (today + timedelta(days) for days in range(-_WEEK - 1, _WEEK + 2))
        # An hour that is left out in spring is the one after it; one that comes twice, the first.
        return [
            int(datetime.combine(day, time(self.hour), zone).timestamp()) * SECOND
            for day in days
            if self.unit == "daily" or WEEKDAYS[day.weekday()] == self.day
        ]


def check_zone(name: str) -> None:
    """Raise InputError unless this is the name of a time zone."""
    if _zone(name) is None:
        raise InputError(
            "timeZone: has to be the name of a time zone, such as UTC or Europe/Paris."
        )


def _zone(name: str) -> tzinfo | None:
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name) if len(name) <= LONGEST_ZONE else None
    except (LookupError, ValueError, OSError):
        return None

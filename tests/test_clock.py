"""Times as text, and work that leaves most of the time to others."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import Throttle, iso, milliseconds

LAST = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
REST = Throttle.REST  # as it is where no fixture makes it nothing


@given(st.integers(0, LAST))
def test_a_time_is_shown_as_the_standard_library_shows_it(moment: int) -> None:
    seconds, rest = divmod(moment, 1000)
    expected = datetime.fromtimestamp(seconds, UTC).replace(microsecond=1000 * rest)
    assert iso(moment) == expected.isoformat(timespec="milliseconds")
    assert milliseconds(iso(moment)) == moment


def test_an_offset_does_not_lead_out_of_the_years_that_can_be_shown() -> None:
    assert milliseconds("9999-12-31T23:59:59.999+00:00") == LAST
    assert milliseconds("9999-12-31T23:59:59.999-00:01") == LAST
    assert milliseconds("1970-01-01T00:00:00+00:01") is None


def test_times_before_1970_are_shown_too() -> None:
    assert iso(-1) == "1969-12-31T23:59:59.999+00:00"


class Paced(Throttle):
    """A throttle that rests as that of the service does."""

    REST = REST


class Day:
    """A clock that work and rests move on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rests: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        self.now += seconds


async def test_work_with_a_pace_rests_for_most_of_the_time() -> None:
    day = Day()
    pace = Paced(day, day.sleep)
    for _ in range(2):
        day.now += 3.0
        await pace.rest()
    assert day.rests == [3.0 * REST] * 2


async def test_a_little_work_goes_on_without_a_rest() -> None:
    day = Day()
    pace = Paced(day, day.sleep)
    for _ in range(4):
        day.now += 0.3 * Throttle.LEAST_SECONDS
        await pace.rest()
    assert day.rests == [pytest.approx(1.2 * Throttle.LEAST_SECONDS * REST)]

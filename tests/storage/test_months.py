"""Months as the bounds of partitions."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.storage.partitions import begin_month_after, list_month_starts, name_month


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("time", "start", "next_"),
    [
        ((2026, 11, 1), (2026, 11, 1), (2026, 12, 1)),
        ((2026, 12, 31, 23, 59, 59), (2026, 12, 1), (2027, 1, 1)),
        ((2028, 2, 29), (2028, 2, 1), (2028, 3, 1)),
        ((1970, 1, 1), (1970, 1, 1), (1970, 2, 1)),
    ],
)
def test_a_month_begins_at_midnight_utc(
    time: tuple[int, ...], start: tuple[int, ...], next_: tuple[int, ...]
) -> None:
    assert begin_month_after(ms(*time), 0) == ms(*start)
    assert begin_month_after(ms(*time)) == ms(*next_)


def test_the_last_millisecond_is_of_the_month_that_ends() -> None:
    assert begin_month_after(ms(2027, 1, 1) - 1, 0) == ms(2026, 12, 1)


def test_months_from_one_to_another_leave_nothing_out() -> None:
    begin, end = ms(2026, 11, 1), ms(2027, 2, 1)
    assert list_month_starts(begin, end) == [begin, ms(2026, 12, 1), ms(2027, 1, 1)]
    assert [name_month(each) for each in list_month_starts(begin, end)] == [
        *("2026_11", "2026_12", "2027_01"),
    ]


@given(st.integers(0, ms(9000, 1, 1)), st.integers(0, 30))
def test_a_later_month_begins_where_it_is_said_to(time: int, count: int) -> None:
    assert begin_month_after(time, 0) <= time < begin_month_after(time)
    assert begin_month_after(begin_month_after(time, count), 0) == begin_month_after(time, count)


@given(st.integers(0, 2**63 - 1), st.integers(0, 30))
def test_any_time_that_a_clock_shows_has_a_month(time: int, count: int) -> None:
    assert begin_month_after(time, 0) <= time
    assert begin_month_after(time, 0) <= begin_month_after(time, count)

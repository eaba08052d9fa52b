"""Scales of charts: their ticks, and which of many points are drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.web import charts
from tests.service import NOON
from tests.web.pictures import FINITE


@given(FINITE, FINITE, st.integers(1, 10), st.booleans())
def test_ticks_cover_the_range_in_round_steps(
    one: float, other: float, about: int, whole: bool
) -> None:
    low, high = charts.choose_value_range([one, other])
    assert low < high
    ticks = charts.make_value_ticks(low, high, about, whole=whole)
    at = [tick.at for tick in ticks]
    assert at[0] <= low
    assert at[-1] >= high
    assert at == sorted(at)
    assert 2 <= len(at) <= about + 2


def test_ticks_of_values_are_round(subtests: pytest.Subtests) -> None:
    for low, high, whole, labels in [
        (0, 1, True, "0 1"),
        (0, 1, False, "0 0.5 1"),
        (0, 3, True, "0 1 2 3"),
        (0, 950, True, "0 500 1k"),
        (0, 1_250_000, True, "0 500k 1M 1.5M"),
        (98.7, 99.95, False, "98.5 99 99.5 100"),
        (-3, 5, False, "-4 -2 0 2 4 6"),
        (0, 1.7e308, False, "0 5e307 1e308 1.5e308 1.79769313486e308"),
    ]:
        with subtests.test(low=low, high=high, whole=whole):
            assert [
                tick.label for tick in charts.make_value_ticks(low, high, whole=whole)
            ] == labels.split()


def test_ticks_of_times_follow_the_length_of_the_period(subtests: pytest.Subtests) -> None:
    today = f"{charts.format_moment(NOON).rsplit(' ', 3)[0]}"
    for span, labels in [
        (5 * MINUTE, "11:55 11:56 11:57 11:58 11:59 12:00"),
        (HOUR, "11:00 11:10 11:20 11:30 11:40 11:50 12:00"),
        (DAY, "12:00 18:00 N+0 06:00 12:00"),
    ]:
        with subtests.test(span=span):
            found = [tick.label for tick in charts.make_time_ticks(NOON - span, NOON, 8)]
            assert found == [today if label == "N+0" else label for label in labels.split()]


def test_ticks_of_a_year_are_first_days_of_months() -> None:
    found = [tick.label for tick in charts.make_time_ticks(1_767_225_600_000, 1_798_761_600_000, 7)]
    assert found == ["2026", "Mar", "May", "Jul", "Sep", "Nov", "2027"]


@given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999), st.integers(1, 9))
def test_ticks_of_times_stay_within_their_period(one: int, other: int, about: int) -> None:
    start, end = sorted((one, other))
    ticks = charts.make_time_ticks(start, end, about)
    assert len(ticks) <= about
    assert all(start <= tick.at <= end for tick in ticks)


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), FINITE), min_size=1, max_size=400), st.integers(4, 60))
def test_of_many_points_the_peaks_the_gaps_and_the_last_remain(
    values: list[float | None], most: int
) -> None:
    given_ = list(enumerate(values))
    kept = charts.downsample_points(given_, most)
    assert len(kept) <= most
    assert set(kept) <= set(given_)
    assert kept[-1] == given_[-1]
    assert [at for at, _ in kept] == sorted(at for at, _ in kept)
    known = [value for value in values if value is not None]
    shown = [value for _, value in kept if value is not None]
    assert (min(known, default=0), max(known, default=0)) == (
        min(shown, default=0),
        max(shown, default=0),
    )
    assert (None in values) == any(value is None for _, value in kept)

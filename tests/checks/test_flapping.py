"""Flapping results: marked by their flips, and until they are quiet."""

from hypothesis import given
from hypothesis import strategies as st

from factbook.checks.results import state_store
from factbook.clock import DAY, HOUR


def test_three_flips_in_seven_days_flap_until_quiet_for_a_day() -> None:
    flips = [0, 3 * DAY, 7 * DAY]
    assert not state_store.is_flapping(flips, 7 * DAY - 1)
    assert state_store.is_flapping(flips, 7 * DAY)
    assert state_store.is_flapping(flips, 8 * DAY - 1)
    assert not state_store.is_flapping(flips, 8 * DAY)


def test_slower_flips_do_not_flap() -> None:
    assert not state_store.is_flapping([0, 3 * DAY, 7 * DAY + 1], 7 * DAY + 1)
    assert not state_store.is_flapping([], 0)


@given(st.lists(st.integers(0, 20 * DAY), max_size=8), st.integers(0, 25 * DAY))
def test_flips_from_before_the_look_back_change_nothing(flips: list[int], now: int) -> None:
    since = state_store.find_flap_start(now)
    recent = [at for at in flips if at >= since]
    assert state_store.is_flapping(recent, now) == state_store.is_flapping(flips, now)


@given(st.lists(st.integers(0, 20 * DAY), min_size=1, max_size=8))
def test_what_flaps_has_three_flips_within_seven_days_and_one_within_a_day(
    flips: list[int],
) -> None:
    now = max(flips) + HOUR
    week = [at for at in flips if at >= max(flips) - 7 * DAY]
    assert state_store.is_flapping(flips, now) == (len(week) >= 3)

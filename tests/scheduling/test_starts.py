"""When sources start: once for each moment of their cadence, spread, never forgotten."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.scheduling.schedule import (
    LONGEST_DELAY,
    find_next_start,
    find_next_starts,
    find_next_time,
    list_due,
    parse_cadence,
)
from tests.scheduling.test_cadence import LINES, MOMENTS, at

NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@pytest.mark.slow
@given(NAMES, LINES, MOMENTS)
def test_a_start_belongs_to_one_moment_and_comes_before_the_next(
    name: str, line: str, after: int
) -> None:
    start, cadence = find_next_start(name, line, after), parse_cadence(line)
    moment = find_next_time(cadence, start - LONGEST_DELAY - 1)
    while (later := find_next_time(cadence, moment)) <= start:
        moment = later
    assert after < start
    assert moment <= start < moment + LONGEST_DELAY
    assert start < find_next_time(cadence, moment)


@pytest.mark.slow
@given(NAMES, LINES, MOMENTS)
def test_each_moment_has_exactly_one_start(name: str, line: str, after: int) -> None:
    cadence = parse_cadence(line)
    first = find_next_start(name, line, after)
    second = find_next_start(name, line, first)
    assert find_next_start(name, line, second - 1) == second
    assert find_next_start(name, line, first - 1) == first
    # Between two starts there is one moment: that of the second.
    assert first < find_next_time(cadence, first) <= second
    assert find_next_time(cadence, find_next_time(cadence, first)) > second


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.dictionaries(NAMES, LINES, min_size=1, max_size=4),
    MOMENTS,
    st.lists(st.integers(1, 3 * DAY), min_size=1, max_size=60),
)
def test_whenever_one_looks_what_should_have_started_is_due_and_nothing_else(
    cadences: dict[str, str], now: int, steps: list[int]
) -> None:
    last: dict[str, int] = {}
    for step in steps:
        found = list_due(find_next_starts(cadences, last), now)
        for name, line in cadences.items():
            missed = name not in last or find_next_start(name, line, last[name]) <= now
            assert (name in found) is missed
        last |= dict.fromkeys(found, now)
        assert list_due(find_next_starts(cadences, last), now) == []
        now += step


def test_what_never_ran_is_due_at_once_and_what_is_latest_comes_first() -> None:
    cadences = {"daily": "0 0 * * *", "hourly": "0 * * * *", "new": "0 0 1 1 *"}
    last = {"daily": at("2026-11-20 00:20"), "hourly": at("2026-11-20 23:50")}
    missed = list_due(find_next_starts(cadences, last), at("2026-11-21 01:00"))
    assert missed[0] == "new"
    assert (
        sorted(missed[1:], key=lambda name: find_next_start(name, cadences[name], last[name]))
        == (missed[1:])
    )
    assert list_due(find_next_starts(cadences, {}), at("2026-11-21 01:00")) == [
        "daily",
        "hourly",
        "new",
    ]


def test_sources_of_one_cadence_are_spread_over_a_quarter_of_an_hour() -> None:
    moment = at("2026-11-21 06:00")
    starts = sorted(find_next_start(f"source-{n}", "0 6 * * *", moment - HOUR) for n in range(200))
    assert moment <= starts[0]
    assert starts[-1] < moment + LONGEST_DELAY
    assert len(set(starts)) > 150
    quarters = [
        sum(start < moment + part * LONGEST_DELAY // 4 for start in starts) for part in (1, 2, 3)
    ]
    assert all(abs(count - 50 * part) < 20 for part, count in enumerate(quarters, 1))


def test_a_start_is_at_the_same_distance_from_every_moment() -> None:
    first = find_next_start("github", "0 * * * *", at("2026-11-21 06:30"))
    for hour in range(48):
        start = find_next_start("github", "0 * * * *", at("2026-11-21 06:30") + hour * HOUR)
        assert start == first + hour * HOUR


def test_a_cadence_of_minutes_leaves_half_of_each_for_the_run() -> None:
    now = at("2026-11-21 06:00")
    start = find_next_start("prometheus", "* * * * *", now)
    assert (start - now) % MINUTE < MINUTE // 2

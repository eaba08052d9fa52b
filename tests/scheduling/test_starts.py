"""When sources start: once for each moment of their cadence, spread, never forgotten."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.scheduling.crontab import following, parse
from factbook.scheduling.schedule import SPREAD, due, next_start, nexts
from tests.scheduling.test_cadence import LINES, MOMENTS, at

NAMES = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=8)


@pytest.mark.slow
@given(NAMES, LINES, MOMENTS)
def test_a_start_belongs_to_one_moment_and_comes_before_the_next(
    name: str, line: str, after: int
) -> None:
    start, cadence = next_start(name, line, after), parse(line)
    moment = following(cadence, start - SPREAD - 1)
    while (later := following(cadence, moment)) <= start:
        moment = later
    assert after < start
    assert moment <= start < moment + SPREAD
    assert start < following(cadence, moment)


@pytest.mark.slow
@given(NAMES, LINES, MOMENTS)
def test_each_moment_has_exactly_one_start(name: str, line: str, after: int) -> None:
    cadence = parse(line)
    first = next_start(name, line, after)
    second = next_start(name, line, first)
    assert next_start(name, line, second - 1) == second
    assert next_start(name, line, first - 1) == first
    # Between two starts there is one moment: that of the second.
    assert first < following(cadence, first) <= second
    assert following(cadence, following(cadence, first)) > second


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
        found = due(nexts(cadences, last), now)
        for name, line in cadences.items():
            missed = name not in last or next_start(name, line, last[name]) <= now
            assert (name in found) is missed
        last |= dict.fromkeys(found, now)
        assert due(nexts(cadences, last), now) == []
        now += step


def test_what_never_ran_is_due_at_once_and_what_is_latest_comes_first() -> None:
    cadences = {"daily": "0 0 * * *", "hourly": "0 * * * *", "new": "0 0 1 1 *"}
    last = {"daily": at("2026-11-20 00:20"), "hourly": at("2026-11-20 23:50")}
    missed = due(nexts(cadences, last), at("2026-11-21 01:00"))
    assert missed[0] == "new"
    assert (
        sorted(missed[1:], key=lambda name: next_start(name, cadences[name], last[name]))
        == (missed[1:])
    )
    assert due(nexts(cadences, {}), at("2026-11-21 01:00")) == ["daily", "hourly", "new"]


def test_sources_of_one_cadence_are_spread_over_a_quarter_of_an_hour() -> None:
    moment = at("2026-11-21 06:00")
    starts = sorted(next_start(f"source-{n}", "0 6 * * *", moment - HOUR) for n in range(200))
    assert moment <= starts[0]
    assert starts[-1] < moment + SPREAD
    assert len(set(starts)) > 150
    quarters = [sum(start < moment + part * SPREAD // 4 for start in starts) for part in (1, 2, 3)]
    assert all(abs(count - 50 * part) < 20 for part, count in enumerate(quarters, 1))


def test_a_start_is_at_the_same_distance_from_every_moment() -> None:
    first = next_start("github", "0 * * * *", at("2026-11-21 06:30"))
    for hour in range(48):
        start = next_start("github", "0 * * * *", at("2026-11-21 06:30") + hour * HOUR)
        assert start == first + hour * HOUR


def test_a_cadence_of_minutes_leaves_half_of_each_for_the_run() -> None:
    now = at("2026-11-21 06:00")
    start = next_start("prometheus", "* * * * *", now)
    assert (start - now) % MINUTE < MINUTE // 2

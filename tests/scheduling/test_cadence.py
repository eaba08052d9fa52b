"""Cron lines: what they mean, what is refused, and when the next moment is."""

from datetime import UTC, datetime, timedelta

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import InputError
from factbook.scheduling.schedule import find_next_time, parse_cadence


def at(text: str) -> int:
    """Milliseconds of a UTC time such as `2026-11-21 06:00`."""
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def test_the_next_moment_is_the_first_that_fits(subtests: pytest.Subtests) -> None:
    cases = [
        ("* * * * *", "2026-11-21 06:00", "2026-11-21 06:01"),
        ("0 * * * *", "2026-11-21 06:00", "2026-11-21 07:00"),
        ("*/20 9-10 * * *", "2026-11-21 10:20", "2026-11-21 10:40"),
        ("*/20 9-10 * * *", "2026-11-21 10:40", "2026-11-22 09:00"),
        ("10-30/10 6 * * *", "2026-11-21 06:10", "2026-11-21 06:20"),
        ("50/5 6 * * *", "2026-11-21 06:50", "2026-11-21 06:55"),
        ("5,1 0 1 jan *", "2026-11-21 06:00", "2027-01-01 00:01"),
        ("0 6 * * MON-FRI", "2026-11-20 06:00", "2026-11-23 06:00"),
        ("0 6 * * 0", "2026-11-21 06:00", "2026-11-22 06:00"),
        ("0 6 * * 5-7", "2026-11-21 06:00", "2026-11-22 06:00"),
        ("0 0 29 2 *", "2096-03-01 00:00", "2104-02-29 00:00"),
        ("0 0 31 * *", "2026-11-21 06:00", "2026-12-31 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59", "2027-12-31 23:59"),
    ]
    for line, after, expected in cases:
        with subtests.test(line=line, after=after):
            assert find_next_time(parse_cadence(line), at(after)) == at(expected)


def test_of_two_restricted_day_fields_either_may_fit() -> None:
    cadence = parse_cadence("0 0 13 * fri")
    assert find_next_time(cadence, at("2026-11-07 00:00")) == at("2026-11-13 00:00")
    assert find_next_time(cadence, at("2026-11-13 00:00")) == at("2026-11-20 00:00")
    assert find_next_time(cadence, at("2026-12-11 00:00")) == at("2026-12-13 00:00")


def test_a_day_field_that_starts_with_a_star_narrows_the_other() -> None:
    cadence = parse_cadence("0 0 */2 * mon")
    assert find_next_time(cadence, at("2026-11-21 00:00")) == at("2026-11-23 00:00")
    assert find_next_time(cadence, at("2026-11-23 00:00")) == at("2026-12-07 00:00")


def test_the_rarest_cadence_finds_its_next_moment_40_years_on() -> None:
    assert find_next_time(parse_cadence("0 0 29 feb */7"), at("2088-02-29 00:00")) == at(
        "2128-02-29 00:00"
    )


@pytest.mark.parametrize("line", ["0 0 31 2 *", "0 0 30,31 feb *", "0 0 31 apr,jun,sep,nov *"])
def test_a_date_that_never_comes_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="never run"):
        parse_cadence(line)


def test_every_problem_of_a_line_is_named() -> None:
    with pytest.raises(InputError) as raised:
        parse_cadence("60 5-3 x */0 1-,mon")
    assert raised.value.message.split("; ") == [
        'minute: "60" is not between 0 and 59',
        "hour: 5-3 runs backwards",
        "write it as two ranges, separated by a comma",
        'day of the month: "x" is not between 1 and 31',
        'month: the step "0" is not between 1 and 12',
        'day of the week: "" is not between 0 and 7',
    ]


def test_a_line_longer_than_anybody_writes_is_refused_unread() -> None:
    with pytest.raises(InputError, match="500 characters"):
        parse_cadence("0," * 100_000 + "0 * * * *")


@pytest.mark.parametrize("line", ["", "@daily", "* * * *", "* * * * * *"])
def test_a_line_without_five_fields_is_refused(line: str) -> None:
    with pytest.raises(InputError, match="five fields"):
        parse_cadence(line)


def test_a_malformed_field_is_refused(subtests: pytest.Subtests) -> None:
    for field in ("", ",", "1,", "-", "*/", "/5", "**", "1--2", "+1", "1.5", "٣"):
        with subtests.test(field=field), pytest.raises(InputError):
            parse_cadence(f"{field} * * * *")


def numbers(lowest: int, highest: int) -> st.SearchStrategy[str]:
    """Cron fields whose numbers are in bounds."""
    number = st.integers(lowest, highest)
    pairs = st.lists(number, min_size=2, max_size=2, unique=True)
    spans = pairs.map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.just("*") | spans, st.integers(1, highest)).map("{0[0]}/{0[1]}".format)
    items = st.just("*") | number.map(str) | spans | steps
    return st.lists(items, min_size=1, max_size=3).map(",".join)


LINES = st.tuples(
    numbers(0, 59), numbers(0, 23), numbers(1, 28), numbers(1, 12), numbers(0, 7)
).map(" ".join)
MOMENTS = st.integers(at("1970-01-01 00:00"), at("2100-01-01 00:00"))


@pytest.mark.slow
@given(LINES, MOMENTS)
def test_the_next_moment_is_a_later_minute_with_none_between(line: str, after: int) -> None:
    cadence = parse_cadence(line)
    moment = find_next_time(cadence, after)
    assert moment > after
    assert moment % MINUTE == 0
    assert find_next_time(cadence, moment - 1) == moment


@pytest.mark.slow
@given(LINES, MOMENTS)
def test_the_next_moment_is_the_one_that_trying_every_minute_finds(line: str, after: int) -> None:
    cadence = parse_cadence(line)
    moment = find_next_time(cadence, after)
    # Trying is slow, so only the last days before the moment are tried.
    start = max(after // MINUTE + 1, (moment - 3 * DAY) // MINUTE)
    tried = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=start)
    while not (cadence.runs_on(tried.date()) and tried.hour * 60 + tried.minute in cadence.times):
        tried += timedelta(minutes=1)
    assert tried.timestamp() * 1000 == moment


@pytest.mark.slow
@given(LINES, MOMENTS)
def test_the_next_moment_is_the_one_that_cronsim_finds(line: str, after: int) -> None:
    start = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=after)
    assert find_next_time(parse_cadence(line), after) == round(
        next(CronSim(line, start)).timestamp() * 1000
    )


def test_a_range_of_one_number_with_a_step_is_that_number() -> None:
    """As in Vixie cron; cronsim reads 10-10/15 as 10/15, which goes on to the end of the field."""
    assert find_next_time(parse_cadence("10-10/15 * * * *"), at("2026-11-21 06:10")) == at(
        "2026-11-21 07:10"
    )


@given(st.integers(0, 23), MOMENTS)
def test_a_daily_cadence_comes_within_a_day(hour: int, after: int) -> None:
    moment = find_next_time(parse_cadence(f"0 {hour} * * *"), after)
    assert 0 < moment - after <= DAY
    assert moment % DAY == hour * HOUR

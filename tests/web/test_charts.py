"""Charts of the pages."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.web import scales
from factbook.web.charts import line_chart, line_rows, sparkline
from factbook.web.shares import Kind, bars, share, stack
from tests.service import NOON
from tests.web.pictures import (
    CSS,
    DRAWN,
    FINITE,
    HOSTILE,
    NAMES,
    Element,
    of_class,
    points,
    read,
    texts,
    title,
    value,
)

TIMES = st.one_of(st.integers(NOON - 400 * DAY, NOON), st.integers(-(10**18), 10**18))
POINTS = st.lists(st.tuples(TIMES, st.one_of(st.none(), FINITE)), max_size=30)
KINDS: list[Kind] = ["good", "warn", "bad", "unknown"]


def chart(*values: float | None, unit: str = "", step: int = HOUR) -> Element:
    """The wide drawing of values one step apart that end at noon."""
    shown = [(NOON - (len(values) - 1 - n) * step, value) for n, value in enumerate(values)]
    start = NOON - max(1, len(values) - 1) * step
    return read(line_chart(shown, title="A title", unit=unit, start=start, end=NOON))[0]


@given(POINTS, NAMES)
def test_a_sparkline_can_be_drawn_of_anything(found: list[scales.Point], name: str) -> None:
    (picture,) = read(sparkline(found, name))
    assert len(title(picture)) == len(name)


@given(POINTS, NAMES, NAMES, TIMES, TIMES)
@settings(max_examples=60)
def test_a_line_chart_can_be_drawn_of_anything(
    found: list[scales.Point], name: str, unit: str, start: int, end: int
) -> None:
    wide, narrow = read(line_chart(found, title=name, unit=unit, start=start, end=end))
    assert len(title(wide)) == len(title(narrow)) == len(name)


@given(st.lists(st.tuples(NAMES, st.one_of(st.none(), FINITE), st.sampled_from([None, "/a?b=c&d"])),
                max_size=8), NAMES)  # fmt: skip
def test_bars_can_be_drawn_of_anything(
    rows: list[tuple[str, float | None, str | None]], name: str
) -> None:
    (picture,) = read(bars(rows, name))
    assert len(of_class(picture, "chart-item")) == len(rows)


@given(st.integers(), st.integers(), NAMES)
def test_a_share_can_be_drawn_of_anything(part: int, whole: int, name: str) -> None:
    (picture,) = read(share(part, whole, name))
    assert len(title(picture)) == len(name)


@given(st.lists(st.tuples(NAMES, st.integers(), st.sampled_from(KINDS)), max_size=40), NAMES)
def test_a_stack_can_be_drawn_of_anything(parts: list[tuple[str, int, Kind]], name: str) -> None:
    (picture,) = read(stack(parts, name))
    assert len(texts(picture, "chart-name")) == len(parts)


@given(FINITE, FINITE, st.integers(1, 10), st.booleans())
def test_ticks_cover_the_range_in_round_steps(
    one: float, other: float, about: int, whole: bool
) -> None:
    low, high = scales.value_range([one, other])
    assert low < high
    ticks = scales.value_ticks(low, high, about, whole=whole)
    at = [tick.at for tick in ticks]
    assert at[0] <= low
    assert at[-1] >= high
    assert at == sorted(at)
    assert 2 <= len(at) <= about + 2


@pytest.mark.parametrize(
    ("low", "high", "whole", "labels"),
    [
        (0, 1, True, "0 1"),
        (0, 1, False, "0 0.5 1"),
        (0, 3, True, "0 1 2 3"),
        (0, 950, True, "0 500 1k"),
        (0, 1_250_000, True, "0 500k 1M 1.5M"),
        (98.7, 99.95, False, "98.5 99 99.5 100"),
        (-3, 5, False, "-4 -2 0 2 4 6"),
        (0, 1.7e308, False, "0 5e307 1e308 1.5e308 1.79769313486e308"),
    ],
)
def test_ticks_of_values_are_round(low: float, high: float, whole: bool, labels: str) -> None:
    assert [tick.label for tick in scales.value_ticks(low, high, whole=whole)] == labels.split()


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (5 * MINUTE, "11:55 11:56 11:57 11:58 11:59 12:00"),
        (HOUR, "11:00 11:10 11:20 11:30 11:40 11:50 12:00"),
        (DAY, "12:00 18:00 N+0 06:00 12:00"),
    ],
)
def test_ticks_of_times_follow_the_length_of_the_period(span: int, labels: str) -> None:
    today = f"{scales.moment(NOON).rsplit(' ', 3)[0]}"
    found = [tick.label for tick in scales.time_ticks(NOON - span, NOON, 8)]
    assert found == [today if label == "N+0" else label for label in labels.split()]


def test_ticks_of_a_year_are_first_days_of_months() -> None:
    found = [tick.label for tick in scales.time_ticks(1_767_225_600_000, 1_798_761_600_000, 7)]
    assert found == ["2026", "Mar", "May", "Jul", "Sep", "Nov", "2027"]


@given(st.integers(0, 253_402_300_799_999), st.integers(0, 253_402_300_799_999), st.integers(1, 9))
def test_ticks_of_times_stay_within_their_period(one: int, other: int, about: int) -> None:
    start, end = sorted((one, other))
    ticks = scales.time_ticks(start, end, about)
    assert len(ticks) <= about
    assert all(start <= tick.at <= end for tick in ticks)


@given(st.lists(st.one_of(st.none(), FINITE), min_size=1, max_size=400), st.integers(4, 60))
def test_of_many_points_the_peaks_the_gaps_and_the_last_remain(
    values: list[float | None], most: int
) -> None:
    given_ = list(enumerate(values))
    kept = scales.downsampled(given_, most)
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


def test_a_chart_of_very_many_points_shows_no_more_than_can_be_told_apart() -> None:
    found = [(NOON - n * MINUTE, float(n % 97)) for n in range(20_000)]
    start = NOON - 20_000 * MINUTE
    wide, narrow = read(line_chart(found, title="", unit="", start=start, end=NOON))
    assert 200 < len(of_class(wide, "chart-point")) <= 240
    assert 60 < len(of_class(narrow, "chart-point")) <= 90


def test_a_point_shows_its_value_with_its_unit_and_time() -> None:
    marks = of_class(chart(1, 1234.5, unit="ms"), "chart-point")
    assert [title(mark) for mark in marks] == [
        f"1 ms · {scales.moment(NOON - HOUR)}",
        f"1,234.5 ms · {scales.moment(NOON)}",
    ]


def test_a_chart_of_counts_has_no_parts_of_one_beside_it() -> None:
    assert texts(chart(0, 1, 1, 0), "chart-tick")[:2] == ["0", "1"]
    assert "0.5" in texts(chart(0, 0.5, 1), "chart-tick")


def test_a_higher_value_stands_higher_and_a_later_one_further_right() -> None:
    marks = of_class(chart(1, 5, 3), "chart-mark")
    assert value(marks[1], "cy") < value(marks[2], "cy") < value(marks[0], "cy")
    assert value(marks[0], "cx") < value(marks[1], "cx") < value(marks[2], "cx")


def test_an_unknown_period_is_a_gap_in_the_line_and_says_so() -> None:
    picture = chart(1, 2, None, None, 4, 5)
    assert len(of_class(picture, "chart-stroke")) == 2
    (gap,) = of_class(picture, "chart-gap")
    assert title(gap).startswith("unknown · ")
    ends = [list(points(line.get("d", "")))[-1][0] for line in of_class(picture, "chart-stroke")]
    assert value(gap, "x") == pytest.approx(ends[0], abs=0.1)


def test_nothing_lies_over_the_name_of_an_unknown_period() -> None:
    picture = chart(1, 2, None, None, 4, 5)
    order = [element.get("class") for element in picture if element.get("class")]
    assert order.index("chart-gap") > max(
        n for n, class_ in enumerate(order) if "chart-point" in str(class_)
    )


def test_few_points_are_dots_and_one_alone_is_seen() -> None:
    assert len(of_class(chart(1, 2, 3), "chart-few")) == 3
    assert len(of_class(chart(7), "chart-few")) == 1
    assert of_class(chart(*range(100)), "chart-few") == []


def test_a_chart_without_values_says_so() -> None:
    for picture in (chart(), chart(None, None)):
        assert texts(picture, "chart-nothing") == ["No values in this period"]
        assert picture.findtext("desc", "").endswith("No values.")


def test_a_chart_describes_its_period_and_values_in_words() -> None:
    assert (
        chart(4, 9, 2, unit="%")
        .findtext("desc", "")
        .endswith("UTC. Latest 2%, lowest 2%, highest 9%.")
    )


def test_points_outside_the_period_and_values_that_are_no_numbers_are_left_out() -> None:
    found = [(NOON - DAY, 1.0), (NOON, float("nan")), (NOON + 1, 10**400), (NOON + 2 * DAY, 3.0)]
    wide, _ = read(line_chart(found, title="", unit="", start=NOON - HOUR, end=NOON + HOUR))
    assert of_class(wide, "chart-point") == []


def test_the_rows_of_a_chart_are_its_points_with_the_latest_first() -> None:
    assert line_rows([(NOON - HOUR, None), (NOON, 3)], "s") == [
        (scales.moment(NOON), "3 s"),
        (scales.moment(NOON - HOUR), "unknown"),
    ]


def test_a_sparkline_ends_in_a_dot_which_is_hollow_when_the_value_is_past() -> None:
    (now,) = read(sparkline([(1, 1), (2, 5)], "a"))
    (past,) = read(sparkline([(1, 1), (2, 5), (3, None)], "a"))
    assert (len(of_class(now, "spark-last")), len(of_class(now, "spark-past"))) == (1, 0)
    assert (len(of_class(past, "spark-last")), len(of_class(past, "spark-past"))) == (0, 1)


@pytest.mark.parametrize("found", [[(5, 3.0)], [(1, 3.0), (2, 3.0)]])
def test_a_sparkline_of_one_value_is_level_in_the_middle(found: list[scales.Point]) -> None:
    (picture,) = read(sparkline(found, "a"))
    (dot,) = of_class(picture, "spark-last")
    assert (value(dot, "cx"), value(dot, "cy")) == (115, 14)


def test_bars_are_as_long_as_their_values_and_linked() -> None:
    (picture,) = read(bars([("a", 10, "/a"), ("b", 5, None), ("c", 0, "/c")], "Kinds"))
    long, half = [value(bar, "width") for bar in of_class(picture, "chart-bar")]
    assert half == pytest.approx(long / 2, abs=0.1)
    assert texts(picture, "chart-figure") == ["10", "5", "0"]
    assert [link.get("href") for link in picture.iter("a")] == ["/a", "/c"]


@pytest.mark.parametrize(
    "address",
    ["//evil.example", "https://evil.example", "javascript:alert(1)", "/\\evil.example", "",
     "/\t/evil.example", "a", "/a\nb"],
)  # fmt: skip
def test_no_link_leaves_the_site(address: str) -> None:
    with pytest.raises(ValueError, match="is not a path on this site"):
        bars([("a", 1, address)], "Kinds")


@pytest.mark.parametrize(
    ("part", "whole", "percent"),
    [(0, 10, "0%"), (1, 3, "33%"), (1, 1000, "<1%"), (999, 1000, "99%"), (7, 7, "100%")],
)
def test_a_share_is_rounded_neither_to_all_nor_to_nothing(
    part: int, whole: int, percent: str
) -> None:
    (picture,) = read(share(part, whole, "Has an owner"))
    assert texts(picture, "chart-figure") == [percent]
    assert texts(picture, "chart-count") == [f"{part:,} of {whole:,}"]


def test_a_share_of_nothing_is_none_yet() -> None:
    (picture,) = read(share(0, 0, "Has an owner"))
    assert texts(picture, "chart-nothing") == ["none yet"]
    assert of_class(picture, "chart-bar") == []


def test_the_parts_of_a_stack_stand_side_by_side_and_the_smallest_is_seen() -> None:
    (picture,) = read(
        stack([("fresh", 10_000, "good"), ("none", 0, "warn"), ("failed", 1, "bad")], "Freshness")
    )
    (good,), (bad,) = of_class(picture, "fill-good"), of_class(picture, "fill-bad")
    assert of_class(picture, "fill-warn") == []
    assert value(good, "x") + value(good, "width") < value(bad, "x")
    assert value(bad, "width") >= 5
    assert texts(picture, "chart-name") == ["fresh", "none", "failed"]
    assert texts(picture, "chart-figure") == ["10,000", "0", "1"]
    assert title(bad) == "failed: 1 (<1%)"


def test_what_comes_from_data_is_text_and_nothing_else() -> None:
    shown = HOSTILE.replace("\x00", "\ufffd").replace("\x1b", "\ufffd").replace("\ud800", "\ufffd")
    picture = bars([(HOSTILE, 1, "/'\"><script>")], HOSTILE)
    assert "<script" not in picture
    (found,) = read(picture)
    assert title(found) == shown
    assert next(found.iter("a")).get("href") == "/'\"><script>"


def test_the_same_data_gives_the_same_picture_and_other_data_other_ids() -> None:
    one, same, other = (sparkline([(1, at)], "a") for at in (1, 1, 2))
    assert one == same
    assert read(one)[0].get("aria-labelledby") != read(other)[0].get("aria-labelledby")


def test_ids_can_be_given_and_have_to_be_ids() -> None:
    (picture,) = read(share(1, 2, "a", ident="owners"))
    assert picture.get("aria-labelledby") == "owners-title"
    with pytest.raises(ValueError, match="is no id"):
        share(1, 2, "a", ident="two words")


def test_the_colours_of_charts_are_those_of_the_base_stylesheet() -> None:
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", DRAWN.read_text()))
    defined = set(re.findall(r"(--[a-z0-9-]+):", (CSS / "00-base.css").read_text()))
    assert used <= defined
    assert not re.search(r"#[0-9a-f]{3,8}\b|rgb|url\(", DRAWN.read_text())

"""Sparklines and line charts of the pages."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factbook.clock import DAY, HOUR, MINUTE
from factbook.web import charts
from factbook.web.charts import draw_line_chart, draw_sparkline
from tests.service import NOON
from tests.web.pictures import (
    CSS,
    DRAWN,
    FINITE,
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


def chart(*values: float | None, unit: str = "", step: int = HOUR) -> Element:
    """The wide drawing of values one step apart that end at noon."""
    shown = [(NOON - (len(values) - 1 - n) * step, value) for n, value in enumerate(values)]
    start = NOON - max(1, len(values) - 1) * step
    return read(draw_line_chart(shown, title="A title", unit=unit, start=start, end=NOON))[0]


@pytest.mark.slow
@given(POINTS, NAMES)
def test_a_sparkline_can_be_drawn_of_anything(found: list[charts.Point], name: str) -> None:
    (picture,) = read(draw_sparkline(found, name))
    assert len(title(picture)) == len(name)


@pytest.mark.slow
@given(POINTS, NAMES, NAMES, TIMES, TIMES)
@settings(max_examples=60)
def test_a_line_chart_can_be_drawn_of_anything(
    found: list[charts.Point], name: str, unit: str, start: int, end: int
) -> None:
    wide, narrow = read(draw_line_chart(found, title=name, unit=unit, start=start, end=end))
    assert len(title(wide)) == len(title(narrow)) == len(name)


def test_a_chart_of_very_many_points_shows_no_more_than_can_be_told_apart() -> None:
    found = [(NOON - n * MINUTE, float(n % 97)) for n in range(20_000)]
    start = NOON - 20_000 * MINUTE
    wide, narrow = read(draw_line_chart(found, title="", unit="", start=start, end=NOON))
    assert 200 < len(of_class(wide, "chart-point")) <= 240
    assert 60 < len(of_class(narrow, "chart-point")) <= 90


def test_a_point_shows_its_value_with_its_unit_and_time() -> None:
    marks = of_class(chart(1, 1234.5, unit="ms"), "chart-point")
    assert [title(mark) for mark in marks] == [
        f"1 ms · {charts.format_moment(NOON - HOUR)}",
        f"1,234.5 ms · {charts.format_moment(NOON)}",
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
    wide, _ = read(draw_line_chart(found, title="", unit="", start=NOON - HOUR, end=NOON + HOUR))
    assert of_class(wide, "chart-point") == []


def test_a_sparkline_ends_in_a_dot_which_is_hollow_when_the_value_is_past() -> None:
    (now,) = read(draw_sparkline([(1, 1), (2, 5)], "a"))
    (past,) = read(draw_sparkline([(1, 1), (2, 5), (3, None)], "a"))
    assert (len(of_class(now, "spark-last")), len(of_class(now, "spark-past"))) == (1, 0)
    assert (len(of_class(past, "spark-last")), len(of_class(past, "spark-past"))) == (0, 1)


@pytest.mark.parametrize("found", [[(5, 3.0)], [(1, 3.0), (2, 3.0)]])
def test_a_sparkline_of_one_value_is_level_in_the_middle(found: list[charts.Point]) -> None:
    (picture,) = read(draw_sparkline(found, "a"))
    (dot,) = of_class(picture, "spark-last")
    assert (value(dot, "cx"), value(dot, "cy")) == (115, 14)


def test_the_same_data_gives_the_same_picture_and_other_data_other_ids() -> None:
    one, same, other = (draw_sparkline([(1, at)], "a") for at in (1, 1, 2))
    assert one == same
    assert read(one)[0].get("aria-labelledby") != read(other)[0].get("aria-labelledby")


def test_the_colours_of_charts_are_those_of_the_base_stylesheet() -> None:
    used = set(re.findall(r"var\((--[a-z0-9-]+)\)", DRAWN.read_text()))
    defined = set(re.findall(r"(--[a-z0-9-]+):", (CSS / "00-base.css").read_text()))
    assert used <= defined
    assert not re.search(r"#[0-9a-f]{3,8}\b|rgb|url\(", DRAWN.read_text())

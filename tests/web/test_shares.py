"""Bars, shares and stacks of the pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.web.charts.shares import Kind, bars, share, stack
from tests.web.pictures import FINITE, HOSTILE, NAMES, of_class, read, texts, title, value

KINDS: list[Kind] = ["good", "warn", "bad", "unknown"]


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


def test_ids_can_be_given_and_have_to_be_ids() -> None:
    (picture,) = read(share(1, 2, "a", ident="owners"))
    assert picture.get("aria-labelledby") == "owners-title"
    with pytest.raises(ValueError, match="is no id"):
        share(1, 2, "a", ident="two words")

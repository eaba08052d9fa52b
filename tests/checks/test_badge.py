"""Badges: what they say, and that they are images whatever the titles hold."""

from typing import Any
from xml.etree.ElementTree import Element, XMLPullParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks import document_readers, scorecard_figures
from factbook.checks.definitions.scorecard import Scorecard, ScorecardEntry, ScorecardLevel
from factbook.checks.results.grader import GradedLevel
from factbook.checks.scorecard_figures import Badge

SVG = "{http://www.w3.org/2000/svg}"
LEVELS = (ScorecardLevel("bronze", "Bronze"), ScorecardLevel("gold", "Gold & more"))


def card(levels: tuple[ScorecardLevel, ...] = LEVELS) -> Scorecard:
    return Scorecard(id="s", title="Readiness", levels=levels, entries=(ScorecardEntry("a"),))


def test_a_badge_says_the_level(subtests: pytest.Subtests) -> None:
    cases: list[tuple[GradedLevel | None, str]] = [
        (None, "not applicable"),
        (GradedLevel(0, 0, None, None), "unknown"),
        (GradedLevel(0, 2, None, 20), "unknown"),
        (GradedLevel(0, 2, 60, 80), "no level"),
        (GradedLevel(0, 0, 60, 80), "no level"),
        (GradedLevel(1, 2, 60, 80), "Bronze"),
        (GradedLevel(2, 2, 100, 100), "Gold & more"),
    ]
    for graded, message in cases:
        with subtests.test(graded=graded):
            found = scorecard_figures.make_level_badge(card(), graded)
            assert found[:2] == ("Readiness", message)


def test_a_badge_without_levels_says_the_score() -> None:
    assert scorecard_figures.make_level_badge(card(()), GradedLevel(0, 0, 67, 80)).message == "67 %"
    assert (
        scorecard_figures.make_level_badge(card(()), GradedLevel(0, 0, None, 10)).message
        == "unknown"
    )


def test_what_is_unknown_is_grey_and_never_red() -> None:
    grey = scorecard_figures.make_level_badge(card(), None).color
    for graded in (GradedLevel(0, 0, None, None), GradedLevel(0, 2, 60, 80)):
        assert scorecard_figures.make_level_badge(card(), graded).color == grey
    assert scorecard_figures.make_level_badge(card(), GradedLevel(0, 0, 60, 80)).color != grey


letters = st.characters(exclude_categories=["Cc", "Cf", "Cs", "Cn", "Co", "Mn"])
titles = st.text(letters, min_size=1, max_size=80) | st.sampled_from(
    ["<script>alert('1')</script>\"&]]>", "Bereitschaft für 発売", "{width}"]
)


@pytest.mark.slow
@given(titles, titles)
def test_any_title_makes_an_image_that_can_be_read_aloud(label: str, message: str) -> None:
    parser: XMLPullParser[Element] = XMLPullParser(["end"])
    parser.feed(scorecard_figures.draw_badge(Badge(label, message, "#6e7781")))
    parser.close()
    elements: list[Any] = [event[-1] for event in parser.read_events()]
    root = elements[-1]
    assert root.tag == f"{SVG}svg"
    short = [text if len(text) <= 60 else f"{text[:59]}…" for text in (label, message)]
    assert [one.text for one in elements if one.tag == f"{SVG}text"] == short
    assert root.attrib["aria-label"] == ": ".join(short)
    assert float(root.attrib["width"]) > 24


@pytest.mark.parametrize("text", ["a\x00b", "a\x1b", "\x85", "\ufffe", "\u202e", " ", "x" * 201])
def test_a_title_that_no_image_can_hold_is_refused_before(text: str) -> None:
    mistakes: list[str] = []
    document_readers.read_title(text, "title", lambda path, message: mistakes.append(message))
    assert mistakes

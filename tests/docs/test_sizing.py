"""The page about sizes has no figure that was not measured."""

import re

from tests.docs.blocks import examples
from tests.docs.parts import DOCS

PAGE = DOCS / "how-to" / "sizing.md"
_FIGURE = re.compile(r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)(?: (?:ms|s|MB|GB)\b|/s)")
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def is_measured(figure: str) -> bool:
    """Tell whether the page of measurements has a figure."""
    measured = (DOCS / "performance.md").read_text()
    return re.search(rf"(?<![\d.,]){re.escape(figure)}(?![\d]|[.,]\d)", measured) is not None


def test_every_figure_is_on_the_page_of_measurements() -> None:
    figures = _FIGURE.findall(_FENCED.sub("", PAGE.read_text()))
    assert len(figures) > 30
    assert [figure for figure in figures if not is_measured(figure)] == []


def test_the_example_reckons_with_times_that_were_measured() -> None:
    [example] = examples(PAGE)
    times = re.findall(r"\(\d+, ([\d.]+)\)", example.code)
    assert len(times) == 3
    assert all(map(is_measured, times))


def test_a_figure_that_nobody_measured_is_found() -> None:
    assert not is_measured("0.079")
    assert not is_measured("1.26")
    assert is_measured("1.27")

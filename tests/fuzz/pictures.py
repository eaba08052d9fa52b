"""Pictures of hostile figures and names: always well-formed, and never more than shapes."""

import math
import re
import xml.etree.ElementTree as ET
from typing import Any, Final

from factbook.web import charts
from tests.fuzz.promises import text
from tests.fuzz.target import Target
from tests.service import NOON

_SAFE: Final = frozenset(
    {
        *("div", "svg", "g", "title", "desc", "a", "defs", "use", "clipPath"),
        *("path", "rect", "circle", "line", "text", "tspan", "polyline", "polygon"),
        *("pattern", "linearGradient", "stop"),
    }
)
_LONGEST: Final = 300
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|nan|inf")


def pictures(data: bytes) -> None:
    """Any figures and names make pictures that a browser reads, with nothing in them that runs."""
    given = text(data)
    name = given[:_LONGEST]
    numbers = [float(found) for found in _NUMBER.findall(given)][:200]
    points: list[tuple[int, float | None]] = [
        (NOON + _whole(at) * 1000, value) for at, value in enumerate(numbers)
    ]
    points += [(_whole(value), None if index % 3 else value) for index, value in enumerate(numbers)]
    counts = [_whole(value) for value in numbers] or [0]
    for markup in (
        charts.draw_sparkline(points, name),
        charts.draw_line_chart(
            points, title=name, unit=name[:5], start=_whole(counts[0]), end=_whole(counts[-1])
        ),
    ):
        _check(markup)


def _whole(value: float) -> int:
    return int(max(-1e18, min(1e18, value))) if math.isfinite(value) else 0


def _check(markup: Any) -> None:
    root = ET.fromstring(str(markup))  # noqa: S314 - our own
    for element in root.iter():
        assert element.tag.rpartition("}")[2] in _SAFE, element.tag
        for attribute, value in element.attrib.items():
            assert not attribute.startswith("on"), attribute
            assert not attribute.endswith("href") or value.startswith(("/", "#")), value
            assert not {"nan", "inf"} & set(value.split()), value


TARGETS = (Target("pictures", pictures, (), share=6, examples=20),)

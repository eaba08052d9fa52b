"""What every picture of the pages has to be."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

from hypothesis import strategies as st
from markupsafe import Markup

from factbook import web

Element = ElementTree.Element

CSS = Path(web.__file__).parent / "static" / "css"
DRAWN = CSS / "50-charts.css"

HOSTILE = "<script>alert('1')</script>\"&]]>\x00\x1b\ud800\u202e"
FINITE = st.floats(allow_nan=False, allow_infinity=False)
NAMES = st.one_of(st.just(HOSTILE), st.text(max_size=60))

_ALLOWED = frozenset(
    ("div", "svg", "title", "desc", "g", "a", "rect", "line", "path", "circle", "text")
)
_ACROSS = ("x", "x1", "x2", "cx", "width")
_DOWN = ("y", "y1", "y2", "cy", "height")
_PATH = re.compile(r"[MLHVCQAaZ]|-?\d+(?:\.\d+)?")


def read(picture: Markup) -> list[Element]:
    """The <svg> elements of a picture that holds what all have to."""
    assert isinstance(picture, Markup)
    root = ElementTree.fromstring(picture)  # noqa: S314  it was made here
    found = [root] if root.tag == "svg" else list(root)
    ids = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    for element in root.iter():
        assert element.tag in _ALLOWED
        assert not {key for key in element.keys() if key == "style" or key.startswith("on")}  # noqa: SIM118
    for one in found:
        _is_named(one)
        _is_inside(one, *_size(one))
    _is_styled(root)
    return found


def texts(element: Element, class_: str) -> list[str]:
    """The text of every element of a class, in order."""
    return ["".join(found.itertext()) for found in of_class(element, class_)]


def of_class(element: Element, class_: str) -> list[Element]:
    """Every element of a class, in order."""
    return [found for found in element.iter() if class_ in found.get("class", "").split()]


def value(element: Element, name: str) -> float:
    """An attribute that is a number."""
    return float(element.get(name, "nan"))


def title(element: Element) -> str:
    """The title of an element."""
    return element.findtext("title", "")


def _size(element: Element) -> tuple[float, float]:
    _, _, width, height = map(float, element.get("viewBox", "").split())
    return width, height


def _is_named(picture: Element) -> None:
    assert picture.get("role") == "img"
    name, description = picture[0], picture[1]
    assert (name.tag, name.get("id")) == ("title", picture.get("aria-labelledby"))
    assert (description.tag, description.get("id")) == ("desc", picture.get("aria-describedby"))
    assert description.text


def _is_inside(picture: Element, width: float, height: float) -> None:
    for element in picture.iter():
        if element is picture or element.tag == "text":
            continue  # text within an inner <svg> is placed by that one
        across = [value(element, name) for name in _ACROSS if element.get(name)]
        down = [value(element, name) for name in _DOWN if element.get(name)]
        for x, y in () if element.get("transform") else points(element.get("d", "")):
            across.append(x)
            down.append(y)
        assert all(math.isfinite(at) and -0.06 <= at <= width + 0.06 for at in across)
        assert all(math.isfinite(at) and -0.06 <= at <= height + 0.06 for at in down)
        if element.tag in {"rect", "svg"}:
            assert value(element, "x") + value(element, "width") <= width + 0.16
            assert value(element, "y") + value(element, "height") <= height + 0.16
    for element in picture.iter("text"):
        assert -0.06 <= value(element, "x") <= width + 0.06
        assert 0 <= value(element, "y") <= height


def points(d: str) -> Iterator[tuple[float, float]]:
    """Points along a path of absolute commands, near enough to one another to see what it meets."""
    tokens = _PATH.findall(d)
    at, n = (0.0, 0.0), 0
    while n < len(tokens):
        command, n = tokens[n], n + 1
        count = {"M": 2, "L": 2, "H": 1, "V": 1, "C": 6, "Q": 4, "Z": 0}[command]
        given, n = [float(token) for token in tokens[n : n + count]], n + count
        if command == "H":
            given.append(at[1])
        if command == "V":
            given.insert(0, at[0])
        stops = [at, *zip(given[::2], given[1::2], strict=True)]
        if command == "M":
            at = stops[-1]
            yield at
        elif command != "Z":
            yield from (_bezier(stops, step / 20) for step in range(1, 21))
            at = stops[-1]


def _bezier(stops: list[tuple[float, float]], part: float) -> tuple[float, float]:
    while len(stops) > 1:
        stops = [
            (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part) for a, b in pairwise(stops)
        ]
    return stops[0]


def _is_styled(root: Element) -> None:
    """Every class that a picture uses has a rule: without one, shapes are black."""
    used = {name for element in root.iter() for name in element.get("class", "").split()}
    assert used - _ruled() <= {"chart-point"}


def _ruled() -> set[str]:
    return set(re.findall(r"\.([a-z][a-z0-9-]*)", DRAWN.read_text()))

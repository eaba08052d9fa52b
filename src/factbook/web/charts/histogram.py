"""Histograms as SVG: columns of equal width, each a link to what it counts."""

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from factbook.web.charts import scales
from factbook.web.charts.svg import element, text_width
from factbook.web.charts.svg import number as coordinate

_SIZE = 12.0  # the font size of axes
_GAP = 2.0
_WIDEST = 90.0


class Column(NamedTuple):
    """A column: its size, the words for it and for its left edge, and where it leads."""

    number: int
    words: str
    edge: str
    path: str


def histogram(columns: Sequence[Column], *, title: str, ident: str) -> Markup:
    """Columns above their edges, drawn for wide and for narrow places.

    The stylesheet shows the one that fits.
    """
    wide = _histogram(columns, 800, 220, title, f"{ident}-w")
    narrow = _histogram(columns, 400, 200, title, f"{ident}-n")
    return element("div", wide, narrow, class_="chart-fit")


def _histogram(
    columns: Sequence[Column], width: float, height: float, title: str, ident: str
) -> Markup:
    ticks = scales.value_ticks(0, max(1, *(each.number for each in columns)), whole=True)
    left = 10 + max(text_width(tick.label, _SIZE) for tick in ticks)
    top, bottom, right = 10.0, height - 26, width - 8
    scale = (bottom - top) / ticks[-1].at
    room = min(_WIDEST, (right - left) / len(columns))
    shapes = [_grid(left, right, bottom - tick.at * scale, tick.label) for tick in ticks]
    shapes += [
        _column(each, left + place * room, room, top, bottom, scale)
        for place, each in enumerate(columns)
    ]
    return element(
        "svg",
        element("title", title, id=f"{ident}-title"),
        *shapes,
        *_edges(columns, left, room, bottom),
        class_=f"chart chart-line {'chart-wide' if width > 500 else 'chart-narrow'}",
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        role="group",
        aria_labelledby=f"{ident}-title",
    )


def _grid(left: float, right: float, y: float, words: str) -> Markup:
    return element(
        "g",
        element("line", x1=left, x2=right, y1=y, y2=y, class_="chart-grid"),
        element("text", words, x=left - 8, y=y + 4, text_anchor="end", class_="chart-tick"),
        aria_hidden="true",
    )


def _column(one: Column, x: float, room: float, top: float, bottom: float, scale: float) -> Markup:
    """The column, and a strip over the whole height that takes the pointer."""
    # One entity among many thousands is still seen.
    size = max(1.5, one.number * scale) if one.number else 0.0
    width = max(1.0, room - _GAP)
    shapes = [
        element("title", one.words),
        element("rect", x=x, y=top, width=room, height=bottom - top, class_="chart-hit"),
        element("rect", x=x, y=bottom - size, width=width, height=size, class_="chart-column"),
    ]
    if not one.number:
        return element("g", *shapes, aria_hidden="true")
    return element("a", *shapes, href=one.path, aria_label=one.words)


def _edges(columns: Sequence[Column], left: float, room: float, bottom: float) -> list[Markup]:
    """The words for left edges, as many as have room."""
    widest = max(text_width(each.edge, _SIZE) for each in columns) + 10
    step = max(1, -int(-widest // room))
    return [
        element(
            "text",
            each.edge,
            x=left + place * room,
            y=bottom + 20,
            class_="chart-tick",
            text_anchor="start",
            aria_hidden="true",
        )
        for place, each in enumerate(columns)
        if place % step == 0
    ]

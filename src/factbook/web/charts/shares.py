"""Bars: figures side by side, a part of a whole, and the parts of a whole, as SVG."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from markupsafe import Markup

from factbook.web.charts import scales
from factbook.web.charts.svg import (
    element,
    fitted,
    ident_of,
    label,
    link,
    number,
    picture,
    text_width,
)
from factbook.web.site import formatting as words

_SIZE = 13.0
_WIDTH = 400.0

Bar = tuple[str, float | None, str | None]  # label, value, path on this site
Kind = Literal["good", "warn", "bad", "unknown"]
Part = tuple[str, int, Kind]  # name, count, what it means


def bars(rows: Sequence[Bar], title: str, *, ident: str | None = None) -> Markup:
    """A horizontal bar for each row with its label and figure, in the given order.

    Bars begin at zero: a value below it, or an unknown one, has none. Raises ValueError for an
    address that is not a path on this site.
    """
    values = [scales.finite(value) or 0.0 for _, value, _ in rows]
    figures = [scales.figure(value) for _, value, _ in rows]
    names = min(150.0, max((text_width(name, _SIZE) for name, _, _ in rows), default=0.0)) + 16
    room = _WIDTH - names - max((text_width(text, _SIZE) for text in figures), default=0.0) - 16
    highest = max([0.0, *values])
    shapes: list[Markup] = []
    for n, (name, _, href) in enumerate(rows):
        part = scales.place(values[n], 0.0, highest) if highest > 0 else 0.0
        shapes.append(_bar(30.0 * n, name, href, figures[n], names, max(20.0, room), part))
    if not rows:
        shapes.append(element("text", "None yet", x=0, y=19, class_="chart-nothing"))
    return picture(
        *shapes,
        width=_WIDTH,
        height=30.0 * max(1, len(rows)),
        class_="chart chart-bars",
        title=title,
        desc=", ".join(f"{name} {text}" for (name, *_), text in zip(rows, figures, strict=True))
        or "None yet.",
        ident=ident or ident_of("bars", title, rows),
        links=any(href is not None for *_, href in rows),
    )


def _bar(
    top: float, name: str, href: str | None, figure: str, names: float, room: float, part: float
) -> Markup:
    length = max(3.0, room * part) if part > 0 else 0.0
    shapes = [
        element("title", f"{name}: {figure}"),
        element("rect", x=0, y=top, width=_WIDTH, height=30, rx=4, class_="chart-row"),
        label(name, x=6, y=top + 15, width=names - 12, size=_SIZE, class_="chart-name"),
        element("rect", x=names, y=top + 10, width=room, height=10, rx=3, class_="chart-track"),
    ]
    if length:
        shapes.append(
            element("rect", x=names, y=top + 10, width=length, height=10, rx=3, class_="chart-bar")
        )
    shapes.append(
        element(
            "text", figure, x=_WIDTH - 6, y=top + 19.5, text_anchor="end", class_="chart-figure"
        )
    )
    return link(href, *shapes, class_="chart-item")


def share(part: int, whole: int, name: str, *, ident: str | None = None) -> Markup:
    """A part of a whole as a bar with its percentage; `none yet` for a part of nothing."""
    whole = max(0, whole)
    part = min(whole, max(0, part))
    percent = words.percent(part, whole) if whole else "none yet"
    count = f"{part:,} of {whole:,}" if whole else ""
    width = 280.0
    end = width - text_width(percent, _SIZE) - 6
    room = end - text_width(count, _SIZE) - 8
    shapes = [
        label(name, x=0, y=10.5, width=max(40.0, room), size=_SIZE, class_="chart-name"),
        element("text", count, x=end, y=15, text_anchor="end", class_="chart-count"),
        element(
            "text", percent, x=width, y=15, text_anchor="end",
            class_="chart-figure" if whole else "chart-nothing",
        ),
        element("rect", x=0, y=24, width=width, height=6, rx=3, class_="chart-track"),
    ]  # fmt: skip
    if part:
        length = max(6.0, width * part / whole)
        shapes.append(element("rect", x=0, y=24, width=length, height=6, rx=3, class_="chart-bar"))
    return picture(
        *shapes,
        width=width,
        height=33,
        class_="chart chart-share",
        title=name,
        desc=f"{percent}: {count}." if whole else "None yet.",
        ident=ident or ident_of("share", part, whole, name),
    )


class _Segment(NamedTuple):
    name: str
    size: int
    kind: Kind
    percent: str


def stack(parts: Sequence[Part], title: str, *, ident: str | None = None) -> Markup:
    """The parts of a whole as one bar, with a legend that names and counts each of them."""
    counted = [(name, max(0, count), kind) for name, count, kind in parts]
    whole = sum(count for _, count, _ in counted)
    segments = [
        _Segment(name, count, kind, words.percent(count, whole) if whole else "0%")
        for name, count, kind in counted
    ]
    shown = [segment for segment in segments if segment.size]
    # Each part can be seen, however small; the others share what is left in proportion.
    least, gap = min(6.0, _WIDTH / (2 * len(shown) or 1)), min(2.0, 60 / (len(shown) or 1))
    room = _WIDTH - least * len(shown) - gap * max(0, len(shown) - 1)
    x, shapes = 0.0, []
    for segment in shown:
        width = least + room * (segment.size / whole)
        shapes.append(_segment(segment, x, width))
        x += width + gap
    if not shown:
        shapes.append(
            element("rect", x=0, y=0, width=_WIDTH, height=12, rx=3, class_="chart-track")
        )
    legend, height = _legend(segments)
    return picture(
        *shapes,
        *legend,
        width=_WIDTH,
        height=height,
        class_="chart chart-stack",
        title=title,
        desc=", ".join(f"{s.name} {s.size:,} ({s.percent})" for s in segments) or "None yet.",
        ident=ident or ident_of("stack", title, parts),
    )


def _segment(segment: _Segment, x: float, width: float) -> Markup:
    return element(
        "rect",
        element("title", f"{segment.name}: {segment.size:,} ({segment.percent})"),
        x=x,
        y=0,
        width=width,
        height=12,
        rx=min(3.0, width / 2),
        class_=f"fill-{segment.kind}",
    )


# Told apart by shape as well as by colour; each is 10 by 10 around 0 0.
_SHAPES: dict[Kind, str] = {
    "good": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0Z",
    "warn": "M0-4.5L5 4.2H-5Z",
    "bad": "M-4 -4H4V4H-4Z",
    "unknown": "M-3.8 0a3.8 3.8 0 1 0 7.6 0a3.8 3.8 0 1 0-7.6 0Z",
}


def _legend(segments: Sequence[_Segment]) -> tuple[list[Markup], float]:
    """The entries from left to right, in as many lines as they need, and where they end."""
    x, y, entries = 0.0, 34.0, []
    for segment in segments:
        count = f"{segment.size:,}"
        name = fitted(segment.name, _WIDTH - 40 - text_width(count, _SIZE), _SIZE)
        text = text_width(name, _SIZE)
        width = 18 + text + 7 + text_width(count, _SIZE)
        if x > 0 and x + width > _WIDTH:
            x, y = 0.0, y + 24
        place = f"translate({number(x + 6)} {number(y - 4.5)})"
        entries += [
            element("path", d=_SHAPES[segment.kind], transform=place, class_=f"key-{segment.kind}"),
            element("text", name, x=x + 18, y=y, class_="chart-name"),
            element("text", count, x=x + 18 + text + 7, y=y, class_="chart-figure"),
        ]
        x += width + 22
    if not segments:
        entries.append(element("text", "None yet", x=0, y=y, class_="chart-nothing"))
    return entries, y + 8

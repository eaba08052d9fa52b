"""Charts of values over time, as SVG.

Pure functions from data to `Markup`. `points` are (milliseconds since the epoch, value) with None
where the value is unknown. `notes` are words behind the value of a time. An `ident` names the
elements that need an id; a page that shows the same picture twice gives two.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup

from factbook.clock import HOUR
from factbook.web.charts import scales
from factbook.web.charts.scales import Point
from factbook.web.charts.svg import element, ident_of, label, number, picture, text_width

NO_NOTES: Final[Mapping[int, str]] = {}
_SIZE = 12.0  # the font size of axes
_FEW = 40  # so many points can be told apart as dots


class _Frame(NamedTuple):
    """Plot area of a chart, and the values at its edges."""

    left: float
    top: float
    right: float
    bottom: float
    start: int
    end: int
    low: float
    high: float

    def x(self, at: int) -> float:
        part = min(1.0, max(0.0, (at - self.start) / max(1, self.end - self.start)))
        return self.left + part * (self.right - self.left)

    def y(self, value: float) -> float:
        return self.bottom - scales.place(value, self.low, self.high) * (self.bottom - self.top)

    def path(self, run: Iterable[tuple[int, float]]) -> str:
        """Line through a stretch of known values."""
        return "L".join(f"{number(self.x(at))} {number(self.y(v))}" for at, v in run)

    def area(self, run: Sequence[tuple[int, float]]) -> str:
        """Area below it."""
        floor, first, last = number(self.bottom), run[0][0], run[-1][0]
        return f"M{number(self.x(first))} {floor}L{self.path(run)}L{number(self.x(last))} {floor}Z"


def sparkline(
    points: Sequence[Point],
    title: str,
    *,
    notes: Mapping[int, str] = NO_NOTES,
    ident: str | None = None,
) -> Markup:
    """A line of 120 by 28 without axes; the last known value is a dot, hollow if it is past.

    The description gives the latest, the lowest and the highest value.
    """
    points = scales.downsampled(scales.cleaned(points), 120)
    known = [value for _, value in points if value is not None]
    times = [at for at, _ in points] or [0]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    # One time stands at the right, where the latest value is.
    start = times[0] if times[0] < times[-1] else times[-1] - 1
    frame = _Frame(4, 5, 115, 23, start, times[-1], low, high)
    shapes = [_rest(frame)] if len(known) < 2 else _lines(frame, scales.runs(points))
    if known:
        at, value = next((at, v) for at, v in reversed(points) if v is not None)
        past = points[-1][1] is None
        shapes.append(_dot(frame, at, value, "spark-past" if past else "spark-last", 2.5))
    return picture(
        *shapes,
        width=120,
        height=28,
        class_="chart spark",
        title=title,
        desc=_summary(points, "", notes),
        ident=ident or ident_of("sparkline", title, points),
    )


def _rest(frame: _Frame) -> Markup:
    """Placeholder line where values will be."""
    y = (frame.top + frame.bottom) / 2
    return element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="spark-rest")


def _lines(frame: _Frame, runs: Sequence[Sequence[tuple[int, float]]]) -> list[Markup]:
    areas = [element("path", d=frame.area(run), class_="chart-area") for run in runs if run[1:]]
    lines = [
        element("path", d=f"M{frame.path(run)}", class_="chart-stroke")
        if run[1:]
        else _dot(frame, *run[0], "chart-mark", 1.5)
        for run in runs
    ]
    return areas + lines


def _dot(frame: _Frame, at: int, value: float, class_: str, radius: float) -> Markup:
    return element("circle", cx=frame.x(at), cy=frame.y(value), r=radius, class_=class_)


def _summary(points: Sequence[Point], unit: str, notes: Mapping[int, str]) -> str:
    known = [(value, _noted(at, notes)) for at, value in points if value is not None]
    if not known:
        return "No values."
    latest, lowest, highest = (
        f"{scales.quantity(value, unit)}{note}"
        for value, note in (known[-1], min(known), max(known))
    )
    return f"Latest {latest}, lowest {lowest}, highest {highest}."


def _noted(at: int, notes: Mapping[int, str]) -> str:
    return f" {notes[at]}" if at in notes else ""


def line_chart(
    points: Sequence[Point],
    *,
    title: str,
    unit: str,
    start: int,
    end: int,
    notes: Mapping[int, str] = NO_NOTES,
    ident: str | None = None,
) -> Markup:
    """Chart of the points from start to end, with axes; hovering a point shows its value.

    It is drawn for wide and for narrow places, and the stylesheet shows the one that fits. Many
    points are reduced to those that preserve lows, peaks and gaps.
    """
    start, end = scales.clamped(start), scales.clamped(end)
    if end <= start:
        start, end = max(0, start - HOUR), max(0, start - HOUR) + HOUR
    shown = [(at, value) for at, value in scales.cleaned(points) if start <= at <= end]
    ident = ident or ident_of("line", title, unit, start, end, shown)
    wide = _line_chart(shown, 800, 260, 240, title, unit, start, end, notes, f"{ident}-w")
    narrow = _line_chart(shown, 400, 220, 90, title, unit, start, end, notes, f"{ident}-n")
    return element("div", wide, narrow, class_="chart-fit")


def _line_chart(
    shown: Sequence[Point],
    width: float,
    height: float,
    most: int,
    title: str,
    unit: str,
    start: int,
    end: int,
    notes: Mapping[int, str],
    ident: str,
) -> Markup:
    values = [value for _, value in shown if value is not None]
    whole = all(value == int(value) for value in values)
    low, high = scales.value_range(values or [0.0])
    ticks = scales.value_ticks(low, high, whole=whole)
    left = 10 + max(text_width(tick.label, _SIZE) for tick in ticks)
    frame = _Frame(
        left, 34, width - 8, height - 28, start, end, ticks[0].at, ticks[-1].at
    )  # fmt: skip
    points = scales.downsampled(shown, most)
    wide = width > 500
    return picture(
        *_axes(frame, ticks, unit, 7 if wide else 4),
        *(_lines(frame, scales.runs(points)) if values else [_nothing(frame)]),
        *_marks(frame, points, unit, notes),
        # Above the marks, whose strips reach into them.
        *_gaps(frame, points),
        width=width,
        height=height,
        class_=f"chart chart-line {'chart-wide' if wide else 'chart-narrow'}",
        title=title,
        desc=f"{scales.period(start, end)}. {_summary(shown, unit, notes)}",
        ident=ident,
    )


def _axes(frame: _Frame, ticks: Sequence[scales.Tick], unit: str, about: int) -> list[Markup]:
    shown = scales.period(frame.start, frame.end)
    room = frame.right - text_width(shown, _SIZE) - 16
    shapes = [
        label(unit, x=0, y=10, width=room, size=_SIZE, class_="chart-unit"),
        element("text", shown, x=frame.right, y=14, text_anchor="end", class_="chart-period"),
    ]
    for n, tick in enumerate(ticks):
        y = frame.y(tick.at)
        class_ = "chart-base" if n == 0 else "chart-grid"
        shapes += (
            element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_=class_),
            element(
                "text",
                tick.label,
                x=frame.left - 8,
                y=y + 4,
                text_anchor="end",
                class_="chart-tick",
            ),
        )
    for tick in scales.time_ticks(frame.start, frame.end, about):
        x, half = frame.x(int(tick.at)), text_width(tick.label, _SIZE) / 2
        y = frame.bottom
        shapes.append(element("line", x1=x, x2=x, y1=y, y2=y + 4, class_="chart-base"))
        if half < x < frame.right + 8 - half:
            shapes.append(
                element(
                    "text", tick.label, x=x, y=y + 20, text_anchor="middle", class_="chart-tick"
                )
            )
    return shapes


def _gaps(frame: _Frame, points: Sequence[Point]) -> list[Markup]:
    return [
        element(
            "rect",
            element("title", f"unknown · {scales.period(first, last)}"),
            x=frame.x(first),
            y=frame.top,
            width=frame.x(last) - frame.x(first),
            height=frame.bottom - frame.top,
            class_="chart-gap",
        )
        for first, last in scales.gaps(points, frame.end)
    ]


def _nothing(frame: _Frame) -> Markup:
    x, y = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
    return element(
        "text", "No values in this period", x=x, y=y, text_anchor="middle", class_="chart-nothing"
    )


def _marks(
    frame: _Frame, points: Sequence[Point], unit: str, notes: Mapping[int, str]
) -> list[Markup]:
    """A hover target for each known value, which then shows a dot."""
    known = [(at, value) for at, value in points if value is not None]
    if not known:
        return []
    xs = [frame.x(at) for at, _ in known]
    edges = [frame.left, *((a + b) / 2 for a, b in pairwise(xs)), frame.right]
    few = len(known) <= _FEW
    marks = []
    for n, (at, value) in enumerate(known):
        last = n == len(known) - 1
        shapes = [
            element(
                "title",
                f"{scales.quantity(value, unit)}{_noted(at, notes)} · {scales.moment(at)}",
            ),
            _strip(frame, edges[n], edges[n + 1]),
            _dot(frame, at, value, "chart-mark", 4.0 if last else 3.0),
        ]
        if few:  # strips of many points are narrow enough to be guides themselves
            shapes.insert(2, _guide(frame, xs[n]))
        class_ = f"chart-point{' chart-few' if few else ''}{' chart-last' if last else ''}"
        marks.append(element("g", *shapes, class_=class_))
    return marks


def _strip(frame: _Frame, left: float, right: float) -> Markup:
    return element(
        "rect", x=left, y=frame.top, width=max(0.0, right - left),
        height=frame.bottom - frame.top, class_="chart-hit",
    )  # fmt: skip


def _guide(frame: _Frame, x: float) -> Markup:
    return element("line", x1=x, x2=x, y1=frame.top, y2=frame.bottom, class_="chart-guide")

"""SVG charts, drawn by pure functions from data to `Markup`.

Times are milliseconds since the epoch, UTC. `points` are (time, value); a value that is None or not
finite is unknown. `notes` are words to append to the value at a time. `ident` is the prefix of
element ids; a page that shows a picture twice passes two. `make_element` escapes all data. Nothing
here writes `style` or scripts, which the Content-Security-Policy forbids; colors are classes.
"""

import math
import re
import string
import sys
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from hashlib import blake2s
from itertools import pairwise
from typing import Final, NamedTuple

from markupsafe import Markup, escape

from factbook import invisible
from factbook.clock import DAY, HOUR, MINUTE
from factbook.web import formats

# Not allowed in XML 1.0 (section 2.2); shown as the replacement character.
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_IDENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

# Widths relative to the font size, slightly more than Inter and common system fonts need.
_PARTS = {
    character: part
    for characters, part in (
        (string.ascii_lowercase, 0.57),
        (string.digits, 0.62),
        (string.ascii_uppercase, 0.69),
        ("mwMW@%—…", 0.92),
        ('ftr()[]{}/\\-"', 0.4),
        ("ijlI.,:;'|!` ", 0.32),
    )
    for character in characters
}
# SVG paths in a 16 by 16 box.
_GLYPHS = {
    "component": "M8 1.5L14 4.8V11.2L8 14.5L2 11.2V4.8ZM2.2 4.9L8 8.1L13.8 4.9M8 8.1V14.3",
    "api": "M5.5 2.5C3.5 2.5 4.6 7 2.5 8C4.6 9 3.5 13.5 5.5 13.5"
    "M10.5 2.5C12.5 2.5 11.4 7 13.5 8C11.4 9 12.5 13.5 10.5 13.5",
    "resource": "M2.5 4a5.5 2.2 0 1 0 11 0a5.5 2.2 0 1 0-11 0V12a5.5 2.2 0 0 0 11 0V4"
    "M2.5 8a5.5 2.2 0 0 0 11 0",
    "system": "M2 2H7V7H2ZM9 2H14V7H9ZM2 9H7V14H2ZM9 9H14V14H9Z",
    "domain": "M1.8 8a6.2 6.2 0 1 0 12.4 0a6.2 6.2 0 1 0-12.4 0M1.8 8H14.2"
    "M8 1.8C4.4 5.4 4.4 10.6 8 14.2C11.6 10.6 11.6 5.4 8 1.8",
    "group": "M3.7 5a2.3 2.3 0 1 0 4.6 0a2.3 2.3 0 1 0-4.6 0M1.5 13.5C1.5 8.4 10.5 8.4 10.5 13.5"
    "M10.3 2.9a2.2 2.2 0 0 1 0 4.2M12 9.6C13.8 10.2 14.6 11.6 14.6 13.5",
    "user": "M5.4 4.8a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0M2.8 14C2.8 8.2 13.2 8.2 13.2 14",
    "location": "M8 14.5C4.5 10.8 3.2 8.6 3.2 6.3a4.8 4.8 0 0 1 9.6 0C12.8 8.6 11.5 10.8 8 14.5Z"
    "M6.4 6.3a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0-3.2 0",
    "template": "M3.5 1.5H9.5L12.5 4.5V14.5H3.5ZM9.2 1.6V4.8H12.4M6 8.2H10M6 11H10",
    "airesource": "M8 1.5L9.7 6.3L14.5 8L9.7 9.7L8 14.5L6.3 9.7L1.5 8L6.3 6.3Z",
}
_OTHER_GLYPH = "M8 2.2L13.8 8L8 13.8L2.2 8Z"


def make_element(name: str, *children: object, **attributes: object) -> Markup:
    """An element; text and attributes are escaped, attributes that are None are left out.

    Names follow Python: `class_` is class, `aria_label` is aria-label.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escape_value(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    content = "".join(map(_escape_value, children))
    end = f">{content}</{name}>" if content else "/>"
    return Markup(f"<{name}{written}{end}")  # noqa: S704  all of it is escaped above


def _escape_value(value: object) -> str:
    """Escape text for an element or an attribute; Markup comes from `make_element`."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return format_coordinate(value)
    text = invisible.marked(str(value), "\ufffd")
    if not text.isprintable():  # printable characters are legal
        text = _ILLEGAL.sub("\ufffd", text)
    return str(escape(text))


def format_coordinate(value: float) -> str:
    """Format a coordinate, to a tenth."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def make_picture(
    *children: object,
    width: float,
    height: float,
    class_: str,
    title: str,
    desc: str,
    ident: str,
) -> Markup:
    """An <svg> with its name and description."""
    if not _IDENT.fullmatch(ident):
        raise ValueError(f"{ident!r} is no id of an element")
    return make_element(
        "svg",
        make_element("title", title, id=f"{ident}-title"),
        make_element("desc", desc, id=f"{ident}-desc"),
        *children,
        class_=class_,
        viewBox=f"0 0 {format_coordinate(width)} {format_coordinate(height)}",
        role="img",
        aria_labelledby=f"{ident}-title",
        aria_describedby=f"{ident}-desc",
    )


def make_ident(*content: object) -> str:
    """An id derived from the content; pass other ids for content that is shown twice."""
    digest = blake2s(repr(content).encode("utf-8", "backslashreplace"), digest_size=6)
    return f"p{digest.hexdigest()}"


def draw_label(text: str, *, x: float, y: float, width: float, size: float, class_: str) -> Markup:
    """One line of text starting at x, centered on y; text that does not fit ends in an ellipsis.

    The inner <svg> clips letters wider or higher than estimated.
    """
    height, shown = 1.6 * size, fit_text(text, 0.96 * width, size)
    return make_element(
        "svg",
        make_element("text", shown, x=0, y=1.15 * size, class_=class_),
        x=x, y=y - height / 2, width=width, height=height,
    )  # fmt: skip


def fit_text(text: str, width: float, size: float) -> str:
    """Cut a text with an ellipsis to fit the width."""
    if estimate_text_width(text, size) <= width:
        return text
    left, kept = width - size * _get_width_part("…"), 0
    for character in text:
        left -= size * _get_width_part(character)
        if left < 0:
            break
        kept += 1
    return text[:kept].rstrip() + "…"


def estimate_text_width(text: str, size: float) -> float:
    """Estimate the width of one line of text at a font size."""
    return size * sum(map(_get_width_part, text))


def _get_width_part(character: str) -> float:
    part = _PARTS.get(character)
    if part is not None:
        return part
    if unicodedata.east_asian_width(character) in {"W", "F"}:
        return 1.05
    return 0.0 if unicodedata.category(character) in {"Mn", "Me", "Cf"} else 0.75


def draw_kind_shape(kind: str) -> Markup:
    """Shapes of a kind's icon, 16 by 16, for use in an <svg>; unknown kinds share one."""
    name = kind.lower()
    known = name in _GLYPHS
    class_ = f"glyph glyph-{name if known else 'other'}"
    return make_element("path", d=_GLYPHS.get(name, _OTHER_GLYPH), class_=class_)


def draw_kind_glyph(kind: str) -> Markup:
    """Icon of a kind, without a description because it appears next to the kind's name."""
    return make_element(
        "svg", draw_kind_shape(kind), class_="kind-glyph", viewBox="0 0 16 16", aria_hidden="true"
    )


Point = tuple[int, float | None]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_TIME = 253_402_300_799_999  # the end of the year 9999, the last that datetime supports
_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
# In minutes, hours and days; then whole months.
_STEPS = [
    *(n * MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * HOUR for n in (1, 2, 3, 6, 12)),
    *(n * DAY for n in (1, 2, 7, 14)),
]
_MONTHS = (1, 2, 3, 6, *(12 * n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000)))
_WEEK_START = 4 * DAY  # the first Monday after the epoch


class Tick(NamedTuple):
    """A mark on an axis."""

    at: float
    label: str


def clean_points(points: Iterable[Point]) -> list[Point]:
    """Points ordered by time, their values finite or None."""
    return sorted(
        ((at, formats.make_finite(value)) for at, value in points), key=lambda point: point[0]
    )


def scale_value(value: float, low: float, high: float) -> float:
    """Position of a value between `low` and `high`, from 0 to 1; 0.5 if they are equal."""
    # Divide first: the difference of two large floats may be infinite.
    unit = max(abs(low), abs(high))
    if unit == 0 or low / unit == high / unit:
        return 0.5
    found = (value / unit - low / unit) / (high / unit - low / unit)
    return min(1.0, max(0.0, found))


def choose_value_range(values: Sequence[float]) -> tuple[float, float]:
    """Range of an axis; it includes zero unless the values are far from zero."""
    low, high = min(values), max(values)
    if low == high == 0:
        return 0.0, 1.0
    near = high - low if math.isfinite(high - low) else math.inf
    if low > 0 and (low < near or near <= abs(high) * 1e-9):
        return 0.0, high
    if high < 0 and (-high < near or near <= abs(low) * 1e-9):
        return low, 0.0
    return low, high


def make_value_ticks(low: float, high: float, about: int = 4, *, whole: bool = False) -> list[Tick]:
    """Ticks at 1, 2 or 5 times a power of ten; the first is at most low, the last at least high.

    `whole` rules out fractional steps, for counts.
    """
    span = Fraction(high) - Fraction(low)
    if span <= 0:
        raise ValueError("an axis needs two different values")
    raw = span / about
    exponent = math.floor(math.log10(raw.numerator) - math.log10(raw.denominator))
    step = next(
        (times, power)
        for power in (exponent - 1, exponent, exponent + 1)
        for times in (1, 2, 5)
        if times * Fraction(10) ** power >= raw
    )
    if whole and step[1] < 0:
        step = (1, 0)
    size = step[0] * Fraction(10) ** step[1]
    first, last = math.floor(Fraction(low) / size), math.ceil(Fraction(high) / size)
    most = sys.float_info.max
    marks = (float(f"{n * step[0]}e{step[1]}") for n in range(first, last + 1))
    return [Tick(at, format_short(at)) for at in (min(most, max(-most, mark)) for mark in marks)]


def make_time_ticks(start: int, end: int, about: int = 6) -> list[Tick]:
    """Ticks on whole minutes, hours, days, Mondays, months or years within a period."""
    for step in _STEPS:
        origin = _WEEK_START if step % (7 * DAY) == 0 else 0
        first = origin + -((origin - start) // step) * step
        if (end - first) // step + 1 <= about:
            ticks = list[Tick]()
            for at in range(first, end + 1, step):
                date = _make_date(at)
                is_day = at % DAY == 0 or step >= DAY
                ticks.append(Tick(at, f"{date.day} {date:%b}" if is_day else f"{date:%H:%M}"))
            return ticks
    for months in _MONTHS:
        ticks = [
            tick for tick in _make_month_ticks(start, end, months, about) if start <= tick.at <= end
        ]
        if 0 < len(ticks) <= about:
            return ticks
    return []


def _make_month_ticks(start: int, end: int, months: int, about: int) -> list[Tick]:
    first, last = _make_date(start), _make_date(end)
    origin = (first.year * 12 + first.month - 1) // months * months
    numbers = range(origin, last.year * 12 + last.month, months)
    # The first tick may be before the start.
    if len(numbers) > about + 1:
        return []
    ticks = list[Tick]()
    for number in numbers:
        if number >= 12:
            date = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
            at = (date - _EPOCH) // timedelta(milliseconds=1)
            ticks.append(Tick(at, f"{date:%b}" if number % 12 else str(date.year)))
    return ticks


def _make_date(at: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=clamp_time(at))


def clamp_time(at: int) -> int:
    """Limit a time to the range of dates."""
    return min(_LAST_TIME, max(0, at))


def format_moment(at: int) -> str:
    """Format a time, e.g. `21 Nov 2026 06:00 UTC`."""
    date = _make_date(at)
    return f"{date.day} {date:%b} {date.year} {date:%H:%M} UTC"


def format_period(start: int, end: int) -> str:
    """Format a period; above three days, without times of day."""
    first, last = _make_date(start), _make_date(end)
    if end - start > 3 * DAY:
        return f"{first.day} {first:%b} {first.year} to {last.day} {last:%b} {last.year}, UTC"
    day = "" if first.date() == last.date() else f"{last.day} {last:%b} {last.year} "
    return f"{first.day} {first:%b} {first.year} {first:%H:%M} to {day}{last:%H:%M} UTC"


def format_short(value: float) -> str:
    """Format a value for an axis, e.g. `12k`, with SI prefixes."""
    size, prefix = next(
        ((size, prefix) for size, prefix in _PREFIXES if size <= abs(value) < 10**15), (1, "")
    )
    return f"{value / size:.12g}{prefix}".replace("e+", "e")


def downsample_points(points: Sequence[Point], most: int) -> list[Point]:
    """Reduce to `most` points: the lowest, the highest and an unknown one of each stretch.

    The last point, which is the current one, always stays.
    """
    if len(points) <= most:
        return list(points)
    each = 3 if any(value is None for _, value in points) else 2
    stretches = max(1, (most - 1) // each)
    edges = [len(points) * n // stretches for n in range(stretches + 1)]
    kept: set[int] = {len(points) - 1}
    for first, last in pairwise(edges):
        known = {n: value for n in range(first, last) if (value := points[n][1]) is not None}
        if known:
            kept |= {min(known, key=known.__getitem__), max(known, key=known.__getitem__)}
        if len(known) < last - first:
            kept.add(next(n for n in range(first, last) if n not in known))
    return [points[n] for n in sorted(kept)]


def split_known_runs(points: Iterable[Point]) -> list[list[tuple[int, float]]]:
    """Split points into runs of known values."""
    found: list[list[tuple[int, float]]] = [[]]
    for at, value in points:
        if value is None:
            found.append([])
        else:
            found[-1].append((at, value))
    return [run for run in found if run]


def find_gaps(points: Sequence[Point], end: int) -> list[tuple[int, int]]:
    """Periods of unknown values, from the last known (or first unknown) to the next known value."""
    known = [at for at, value in points if value is not None]
    found = []
    for at, value in points:
        if value is None:
            n = bisect_left(known, at)
            found.append((known[n - 1] if n else at, known[n] if n < len(known) else end))
    return [(first, last) for first, last in dict(found).items() if first < last]


_HEIGHT: Final = 34.0
_SIDES: Final = 1.0
_CLASSES: Final = {"yes": "band-yes", "no": "band-no"}


class ValueStretch(NamedTuple):
    """A period with the same value, in words; None for unknown."""

    value: str | None
    since: int
    until: int


def draw_band(
    stretches: Sequence[ValueStretch], *, title: str, start: int, end: int, ident: str
) -> Markup:
    """Draw the stretches from start to end; hovering over one shows its value and times.

    Drawn in a wide and a narrow version; the stylesheet shows the one that fits.
    """
    start, end = clamp_time(start), max(clamp_time(end), clamp_time(start) + 1)
    shown = [one for one in stretches if one.until >= start and one.since <= end]
    wide = _draw_band_at_width(shown, 800, title, start, end, f"{ident}-w")
    narrow = _draw_band_at_width(shown, 400, title, start, end, f"{ident}-n")
    return make_element("div", wide, narrow, class_="chart-fit")


def _draw_band_at_width(
    shown: Sequence[ValueStretch], width: float, title: str, start: int, end: int, ident: str
) -> Markup:
    def x(at: int) -> float:
        return _SIDES + scale_value(min(max(at, start), end), start, end) * (width - 2 * _SIDES)

    rows = [
        make_element(
            "rect",
            make_element("title", _describe_stretch(one)),
            class_=_CLASSES.get(one.value or "", "band-unknown"),
            x=x(one.since),
            y=4.0,
            width=max(1.0, x(one.until) - x(one.since)),
            height=_HEIGHT - 8,
        )
        for one in shown
    ]
    return make_picture(
        *rows,
        width=width,
        height=_HEIGHT,
        class_=f"chart chart-band {'chart-wide' if width > 500 else 'chart-narrow'}",
        title=title,
        desc="; ".join(map(_describe_stretch, shown[-20:])) or "No values.",
        ident=ident,
    )


def _describe_stretch(one: ValueStretch) -> str:
    value = one.value or "unknown"
    return f"{value} from {format_moment(one.since)} to {format_moment(one.until)}"


_SIZE = 12.0  # the font size of axes
_GAP = 2.0
_WIDEST = 90.0


class Column(NamedTuple):
    """A column: its size, its label, the label of its left edge, and its link."""

    number: int
    words: str
    edge: str
    path: str


def draw_histogram(columns: Sequence[Column], *, title: str, ident: str) -> Markup:
    """Draw columns with labeled edges, in a wide and a narrow version.

    The stylesheet shows the version that fits.
    """
    wide = _draw_histogram_at_width(columns, 800, 220, title, f"{ident}-w")
    narrow = _draw_histogram_at_width(columns, 400, 200, title, f"{ident}-n")
    return make_element("div", wide, narrow, class_="chart-fit")


def _draw_histogram_at_width(
    columns: Sequence[Column], width: float, height: float, title: str, ident: str
) -> Markup:
    ticks = make_value_ticks(0, max(1, *(each.number for each in columns)), whole=True)
    left = 10 + max(estimate_text_width(tick.label, _SIZE) for tick in ticks)
    top, bottom, right = 10.0, height - 26, width - 8
    scale = (bottom - top) / ticks[-1].at
    room = min(_WIDEST, (right - left) / len(columns))
    shapes = [_draw_grid_line(left, right, bottom - tick.at * scale, tick.label) for tick in ticks]
    shapes += [
        _draw_column(each, left + place * room, room, top, bottom, scale)
        for place, each in enumerate(columns)
    ]
    return make_element(
        "svg",
        make_element("title", title, id=f"{ident}-title"),
        *shapes,
        *_draw_edge_labels(columns, left, room, bottom),
        class_=f"chart chart-line {'chart-wide' if width > 500 else 'chart-narrow'}",
        viewBox=f"0 0 {format_coordinate(width)} {format_coordinate(height)}",
        role="group",
        aria_labelledby=f"{ident}-title",
    )


def _draw_grid_line(left: float, right: float, y: float, words: str) -> Markup:
    return make_element(
        "g",
        make_element("line", x1=left, x2=right, y1=y, y2=y, class_="chart-grid"),
        make_element("text", words, x=left - 8, y=y + 4, text_anchor="end", class_="chart-tick"),
        aria_hidden="true",
    )


def _draw_column(
    one: Column, x: float, room: float, top: float, bottom: float, scale: float
) -> Markup:
    """The column, with a full-height strip as its hover target."""
    # Keep one entity among many thousands visible.
    size = max(1.5, one.number * scale) if one.number else 0.0
    width = max(1.0, room - _GAP)
    shapes = [
        make_element("title", one.words),
        make_element("rect", x=x, y=top, width=room, height=bottom - top, class_="chart-hit"),
        make_element("rect", x=x, y=bottom - size, width=width, height=size, class_="chart-column"),
    ]
    if not one.number:
        return make_element("g", *shapes, aria_hidden="true")
    return make_element("a", *shapes, href=one.path, aria_label=one.words)


def _draw_edge_labels(
    columns: Sequence[Column], left: float, room: float, bottom: float
) -> list[Markup]:
    """Labels of left edges, as many as fit."""
    widest = max(estimate_text_width(each.edge, _SIZE) for each in columns) + 10
    step = max(1, -int(-widest // room))
    return [
        make_element(
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


NO_NOTES: Final[Mapping[int, str]] = {}
_FEW = 40  # more points than this merge into a line


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
        return self.bottom - scale_value(value, self.low, self.high) * (self.bottom - self.top)

    def path(self, run: Iterable[tuple[int, float]]) -> str:
        """Line through a run of known values."""
        return "L".join(
            f"{format_coordinate(self.x(at))} {format_coordinate(self.y(v))}" for at, v in run
        )

    def area(self, run: Sequence[tuple[int, float]]) -> str:
        """Area below the line."""
        floor = format_coordinate(self.bottom)
        first, last = (format_coordinate(self.x(run[place][0])) for place in (0, -1))
        return f"M{first} {floor}L{self.path(run)}L{last} {floor}Z"


def draw_sparkline(
    points: Sequence[Point],
    title: str,
    *,
    notes: Mapping[int, str] = NO_NOTES,
    ident: str | None = None,
) -> Markup:
    """A 120 by 28 line without axes; a dot marks the last known value, hollow if outdated.

    The description gives the latest, the lowest and the highest value.
    """
    points = downsample_points(clean_points(points), 120)
    known = [value for _, value in points if value is not None]
    times = [at for at, _ in points] or [0]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    # A single point goes to the right, the place of the latest value.
    start = times[0] if times[0] < times[-1] else times[-1] - 1
    frame = _Frame(4, 5, 115, 23, start, times[-1], low, high)
    if len(known) < 2:
        # A placeholder where the line will be.
        y = (frame.top + frame.bottom) / 2
        shapes = [
            make_element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_="spark-rest")
        ]
    else:
        shapes = _draw_lines(frame, split_known_runs(points))
    if known:
        at, value = next((at, v) for at, v in reversed(points) if v is not None)
        past = points[-1][1] is None
        shapes.append(_draw_dot(frame, at, value, "spark-past" if past else "spark-last", 2.5))
    return make_picture(
        *shapes,
        width=120,
        height=28,
        class_="chart spark",
        title=title,
        desc=_summarize_points(points, "", notes),
        ident=ident or make_ident("sparkline", title, points),
    )


def _draw_lines(frame: _Frame, runs: Sequence[Sequence[tuple[int, float]]]) -> list[Markup]:
    areas = [
        make_element("path", d=frame.area(run), class_="chart-area") for run in runs if run[1:]
    ]
    lines = [
        make_element("path", d=f"M{frame.path(run)}", class_="chart-stroke")
        if run[1:]
        else _draw_dot(frame, *run[0], "chart-mark", 1.5)
        for run in runs
    ]
    return areas + lines


def _draw_dot(frame: _Frame, at: int, value: float, class_: str, radius: float) -> Markup:
    return make_element("circle", cx=frame.x(at), cy=frame.y(value), r=radius, class_=class_)


def _summarize_points(points: Sequence[Point], unit: str, notes: Mapping[int, str]) -> str:
    known = [(value, _format_note(at, notes)) for at, value in points if value is not None]
    if not known:
        return "No values."
    latest, lowest, highest = (
        f"{formats.format_quantity(value, unit)}{note}"
        for value, note in (known[-1], min(known), max(known))
    )
    return f"Latest {latest}, lowest {lowest}, highest {highest}."


def _format_note(at: int, notes: Mapping[int, str]) -> str:
    return f" {notes[at]}" if at in notes else ""


def draw_line_chart(
    points: Sequence[Point],
    *,
    title: str,
    unit: str,
    start: int,
    end: int,
    notes: Mapping[int, str] = NO_NOTES,
    ident: str | None = None,
) -> Markup:
    """Draw the points from start to end, with axes; hovering over a point shows its value.

    Drawn in a wide and a narrow version; the stylesheet shows the one that fits. Downsampling
    preserves lows, peaks and gaps.
    """
    start, end = clamp_time(start), clamp_time(end)
    if end <= start:
        start, end = max(0, start - HOUR), max(0, start - HOUR) + HOUR
    shown = [(at, value) for at, value in clean_points(points) if start <= at <= end]
    ident = ident or make_ident("line", title, unit, start, end, shown)
    wide = _draw_line_chart_at_width(
        shown, 800, 260, 240, title, unit, start, end, notes, f"{ident}-w"
    )
    narrow = _draw_line_chart_at_width(
        shown, 400, 220, 90, title, unit, start, end, notes, f"{ident}-n"
    )
    return make_element("div", wide, narrow, class_="chart-fit")


def _draw_line_chart_at_width(
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
    low, high = choose_value_range(values or [0.0])
    ticks = make_value_ticks(low, high, whole=whole)
    left = 10 + max(estimate_text_width(tick.label, _SIZE) for tick in ticks)
    frame = _Frame(
        left, 34, width - 8, height - 28, start, end, ticks[0].at, ticks[-1].at
    )  # fmt: skip
    points = downsample_points(shown, most)
    wide = width > 500
    if values:
        content = _draw_lines(frame, split_known_runs(points))
    else:
        x, y = (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2
        message, class_ = "No values in this period", "chart-nothing"
        content = [make_element("text", message, x=x, y=y, text_anchor="middle", class_=class_)]
    return make_picture(
        *_draw_axes(frame, ticks, unit, 7 if wide else 4),
        *content,
        *_draw_marks(frame, points, unit, notes),
        # On top of the marks, whose hover strips overlap the gaps.
        *_draw_gaps(frame, points),
        width=width,
        height=height,
        class_=f"chart chart-line {'chart-wide' if wide else 'chart-narrow'}",
        title=title,
        desc=f"{format_period(start, end)}. {_summarize_points(shown, unit, notes)}",
        ident=ident,
    )


def _draw_axes(frame: _Frame, ticks: Sequence[Tick], unit: str, about: int) -> list[Markup]:
    shown = format_period(frame.start, frame.end)
    room = frame.right - estimate_text_width(shown, _SIZE) - 16
    shapes = [
        draw_label(unit, x=0, y=10, width=room, size=_SIZE, class_="chart-unit"),
        make_element("text", shown, x=frame.right, y=14, text_anchor="end", class_="chart-period"),
    ]
    for n, tick in enumerate(ticks):
        y = frame.y(tick.at)
        class_ = "chart-base" if n == 0 else "chart-grid"
        shapes += (
            make_element("line", x1=frame.left, x2=frame.right, y1=y, y2=y, class_=class_),
            make_element(
                "text",
                tick.label,
                x=frame.left - 8,
                y=y + 4,
                text_anchor="end",
                class_="chart-tick",
            ),
        )
    for tick in make_time_ticks(frame.start, frame.end, about):
        x, half = frame.x(int(tick.at)), estimate_text_width(tick.label, _SIZE) / 2
        y = frame.bottom
        shapes.append(make_element("line", x1=x, x2=x, y1=y, y2=y + 4, class_="chart-base"))
        if half < x < frame.right + 8 - half:
            shapes.append(
                make_element(
                    "text", tick.label, x=x, y=y + 20, text_anchor="middle", class_="chart-tick"
                )
            )
    return shapes


def _draw_gaps(frame: _Frame, points: Sequence[Point]) -> list[Markup]:
    return [
        make_element(
            "rect",
            make_element("title", f"unknown · {format_period(first, last)}"),
            x=frame.x(first),
            y=frame.top,
            width=frame.x(last) - frame.x(first),
            height=frame.bottom - frame.top,
            class_="chart-gap",
        )
        for first, last in find_gaps(points, frame.end)
    ]


def _draw_marks(
    frame: _Frame, points: Sequence[Point], unit: str, notes: Mapping[int, str]
) -> list[Markup]:
    """A hover target for each known value, with a dot shown on hover."""
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
            make_element(
                "title",
                f"{formats.format_quantity(value, unit)}{_format_note(at, notes)}"
                f" · {format_moment(at)}",
            ),
            make_element(
                "rect", x=edges[n], y=frame.top, width=max(0.0, edges[n + 1] - edges[n]),
                height=frame.bottom - frame.top, class_="chart-hit",
            ),
            _draw_dot(frame, at, value, "chart-mark", 4.0 if last else 3.0),
        ]  # fmt: skip
        if few:  # with many points, the narrow strips themselves are the guides
            x, top, bottom = xs[n], frame.top, frame.bottom
            guide = make_element("line", x1=x, x2=x, y1=top, y2=bottom, class_="chart-guide")
            shapes.insert(2, guide)
        class_ = f"chart-point{' chart-few' if few else ''}{' chart-last' if last else ''}"
        marks.append(make_element("g", *shapes, class_=class_))
    return marks

"""Figures as pictures for the documentation: lines in a frame, as SVG that stands by itself."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 40, 44
_TICKS = 5

# It is shown on light and on dark pages: greys that both can be read with, and colours of one
# lightness, told apart by the names at the ends of the lines too.
_COLOURS = ("#2f7ed8", "#d9730d", "#0f9d76", "#b455c4", "#c9364f", "#7d8a1f", "#5a6acf", "#a3653a")
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #7a8190 }
.title { font-size: 14px; font-weight: 600 }
.grid { stroke: #7a8190; stroke-opacity: .25 }
.line { fill: none; stroke-width: 2; stroke-linejoin: round }
"""

Points = Sequence[tuple[float, float]]


class Axis(NamedTuple):
    """What an axis shows; `logarithmic`: equal distances are equal ratios. Else it begins at 0."""

    title: str
    logarithmic: bool = False


class _Scale:
    """From values to places between two ends."""

    def __init__(self, values: Sequence[float], axis: Axis, start: float, end: float) -> None:
        self._logarithmic = axis.logarithmic
        self.low, self.high = (min(values), max(values)) if axis.logarithmic else (0.0, max(values))
        if self.low == self.high:
            self.high = self.low + 1
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        low, high = self._of(self.low), self._of(self.high)
        part = (self._of(value) - low) / (high - low)
        return round(self._start + part * (self._end - self._start), 1)

    def ticks(self) -> list[float]:
        """Round values from end to end."""
        if self._logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            powers = [10.0**power for power in range(first, last + 1)]
            return [power for power in powers if self.low <= power <= self.high]
        step = 10 ** math.floor(math.log10(self.high / _TICKS))
        step = next(step * more for more in (1, 2, 5, 10) if self.high / (step * more) <= _TICKS)
        return [step * number for number in range(int(self.high / step) + 1)]

    def _of(self, value: float) -> float:
        return math.log10(value) if self._logarithmic else value


def lines(title: str, series: Mapping[str, Points], across: Axis, up: Axis) -> str:
    """An SVG document with one line for each series, its name at its end."""
    points = [point for each in series.values() for point in each]
    x = _Scale([point[0] for point in points], across, _LEFT, _WIDTH - _RIGHT)
    y = _Scale([point[1] for point in points], up, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<text class="title" x="{_LEFT}" y="18">{escape(title)}</text>',
        *_frame(x, y, across, up),
        *_drawn(series, x, y),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _frame(x: _Scale, y: _Scale, across: Axis, up: Axis) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for tick in y.ticks():
        parts.append(f'<path class="grid" d="M{_LEFT} {y(tick)}H{right}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4}" text-anchor="end">{_n(tick)}</text>')
    for tick in x.ticks():
        parts.append(f'<path class="grid" d="M{x(tick)} {bottom}v4"/>')
        parts.append(
            f'<text x="{x(tick)}" y="{bottom + 17}" text-anchor="middle">{_n(tick)}</text>'
        )
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(across.title)}</text>'
    )
    parts.append(f'<text x="{_LEFT}" y="34">{escape(up.title)}</text>')
    return parts


def _drawn(series: Mapping[str, Points], x: _Scale, y: _Scale) -> list[str]:
    parts, names = [], []
    for number, (name, points) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = "L".join(f"{x(a)} {y(b)}" for a, b in points)
        parts.append(f'<path class="line" stroke="{colour}" d="M{path}"/>')
        names.append((y(points[-1][1]), name, colour))
    at = 0.0
    for height, name, colour in sorted(names):
        # Names that would lie on each other move down.
        at = max(height + 4, at + 14)
        parts.append(
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{at}" style="fill:{colour}">{escape(name)}</text>'
        )
    return parts


def _n(value: float) -> str:
    for least, suffix in ((1e6, "M"), (1e3, "k")):
        if value >= least:
            return f"{value / least:g}{suffix}"
    return f"{value:g}"

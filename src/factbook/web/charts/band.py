"""Band of what was true, false and unknown over time, as SVG."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from factbook.web.charts import scales
from factbook.web.charts.svg import element, picture

_HEIGHT: Final = 34.0
_SIDES: Final = 1.0
_CLASSES: Final = {"yes": "band-yes", "no": "band-no"}


class Stretch(NamedTuple):
    """A time with the same value in words, None for unknown."""

    value: str | None
    since: int
    until: int


def band(stretches: Sequence[Stretch], *, title: str, start: int, end: int, ident: str) -> Markup:
    """The stretches from start to end; whoever points at one reads its value and its times.

    It is drawn for wide and for narrow places, and the stylesheet shows the one that fits.
    """
    start, end = scales.clamped(start), max(scales.clamped(end), scales.clamped(start) + 1)
    shown = [one for one in stretches if one.until >= start and one.since <= end]
    wide = _band(shown, 800, title, start, end, f"{ident}-w")
    narrow = _band(shown, 400, title, start, end, f"{ident}-n")
    return element("div", wide, narrow, class_="chart-fit")


def _band(
    shown: Sequence[Stretch], width: float, title: str, start: int, end: int, ident: str
) -> Markup:
    def x(at: int) -> float:
        return _SIDES + scales.place(min(max(at, start), end), start, end) * (width - 2 * _SIDES)

    rows = [
        element(
            "rect",
            element("title", _words(one)),
            class_=_CLASSES.get(one.value or "", "band-unknown"),
            x=x(one.since),
            y=4.0,
            width=max(1.0, x(one.until) - x(one.since)),
            height=_HEIGHT - 8,
        )
        for one in shown
    ]
    return picture(
        *rows,
        width=width,
        height=_HEIGHT,
        class_=f"chart chart-band {'chart-wide' if width > 500 else 'chart-narrow'}",
        title=title,
        desc="; ".join(map(_words, shown[-20:])) or "No values.",
        ident=ident,
    )


def _words(one: Stretch) -> str:
    value = one.value or "unknown"
    return f"{value} from {scales.moment(one.since)} to {scales.moment(one.until)}"

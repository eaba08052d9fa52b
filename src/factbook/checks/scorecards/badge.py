"""Badges of an entity's level, and their SVG.

Widths of characters are those of a common font, so that a badge needs no font to be drawn.
"""

from html import escape
from typing import Final, NamedTuple

from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, Scorecard
from factbook.checks.results.grader import GradedLevel

_LONGEST: Final = 60
_HEIGHT: Final = 20
_PADDING: Final = 6
# Tenths of a pixel at a size of 11 pixels.
_NARROW: Final = dict.fromkeys("fijlrtI.,:;|!'()[] ", 40)
_WIDE: Final = dict.fromkeys("mwMW@%", 100)
_USUAL: Final = 67
_FULL: Final = 110
# Letters from here on, such as those of East Asia, take a full square.
_FIRST_FULL: Final = "\u1100"
_GREY: Final = "#6e7781"
_RED: Final = "#b42318"
# From the lowest level to the highest.
_COLOURS: Final = ("#b35900", "#9a6700", "#4d7a17", "#1a7f37")


class Badge(NamedTuple):
    """A label, a message and the colour behind the message."""

    label: str
    message: str
    color: str


def make_level_badge(scorecard: Scorecard, graded: GradedLevel | None) -> Badge:
    """The badge of an entity in a scorecard; None is an entity that it does not apply to."""
    if graded is None:
        return Badge(scorecard.title, "not applicable", _GREY)
    if graded.coverage is None or (graded.score is None and not graded.level):
        return Badge(scorecard.title, "unknown", _GREY)
    if not scorecard.levels:
        return Badge(scorecard.title, f"{graded.score} %", _pick_color(graded.score or 0, 100))
    if not graded.level:
        return Badge(scorecard.title, NO_LEVEL_TITLE, _RED if not graded.level_if_known else _GREY)
    level = scorecard.levels[graded.level - 1]
    return Badge(scorecard.title, level.title, _pick_color(graded.level, len(scorecard.levels)))


def draw_badge(badge: Badge) -> str:
    """The badge as an image that is read aloud as its text."""
    label, message = _shorten_label(badge.label), _shorten_label(badge.message)
    left, right = _measure_width(label), _measure_width(message)
    words = escape(f"{label}: {message}")
    return _SVG.format(
        width=left + right,
        height=_HEIGHT,
        left=left,
        right=right,
        label_at=left / 2,
        message_at=left + right / 2,
        words=words,
        label=escape(label),
        message=escape(message),
        color=escape(badge.color),
    )


def _pick_color(part: int, whole: int) -> str:
    """A colour for a part of a whole; the last one for all of it."""
    return _COLOURS[part * (len(_COLOURS) - 1) // whole]


def _shorten_label(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _measure_width(text: str) -> int:
    """The pixels that a text takes, with the space around it."""
    tenths = sum(
        _FULL if char >= _FIRST_FULL else _NARROW.get(char) or _WIDE.get(char) or _USUAL
        for char in text
    )
    return tenths // 10 + 1 + 2 * _PADDING


_SVG: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" role="img"'
    ' aria-label="{words}"><title>{words}</title>'
    '<clipPath id="r"><rect width="{width}" height="{height}" rx="3"/></clipPath>'
    '<g clip-path="url(#r)"><rect width="{left}" height="{height}" fill="#444c56"/>'
    '<rect x="{left}" width="{right}" height="{height}" fill="{color}"/></g>'
    '<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif"'
    ' font-size="11"><text x="{label_at}" y="14">{label}</text>'
    '<text x="{message_at}" y="14">{message}</text></g></svg>'
)

"""The regular expressions that checks take, read as automata of their characters.

The library's syntax without what makes the time of a search depend on more than that: references to
groups, recursion, fuzzy matching, conditions and repeats of what may be empty.
"""

import re
from functools import lru_cache
from typing import Final

from factbook.checks.patterns.pattern_automaton import (
    LINE_START,
    NOTHING,
    Automaton,
    Fragment,
    choice,
    look,
    optional,
)
from factbook.errors import InputError

# One of each kind that \d, \w, \s and ignoring case tell apart, beside all of ASCII.
_OTHERS: Final = "é²\u0661\u2003\u2028\u4e2d\u0301\U0001f600\u212a\u017f\u0130\u0131"
_CHARACTERS: Final = (*map(chr, range(128)), *_OTHERS)
EVERY: Final = (1 << len(_CHARACTERS)) - 1
LINE_END: Final = 1 << ord("\n")

_SET: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_WIDE: Final = re.compile(r"\\(?:[pP]\{[^{}]*\}|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})")
# Such a set may hold anything.
_WIDE_SET: Final = re.compile(rf"{_WIDE.pattern}|[^\x00-\x7f]|(?!^)\[|--|&&|~~|\|\|")
_CLASS: Final = re.compile(r"\\[dDsSwWnrtfva]|\\[^A-Za-z0-9]", re.DOTALL)
_EDGE: Final = re.compile(r"\\[bBAZ]|\$")
_REPEAT: Final = re.compile(r"(?:[*+?]|\{(?P<least>\d*)(?P<to>,(?P<most>\d*))?\})[?+]?")
_OPENING: Final = re.compile(r"\((?:\?(?:P?<[A-Za-z_]\w*>|[:>]|(?P<look><?[=!])|[ims]+:))?")
_FLAGS: Final = re.compile(r"\(\?[ims]+\)")
_SETS_FLAGS: Final = re.compile(r"\(\?[ims]+[:)]")


def automaton(text: str) -> tuple[Automaton, Fragment]:
    """The automaton of a pattern that the library takes, and the pattern as a part of it.

    Raises InputError for what checks do not take.
    """
    reader = _PatternReader(text)
    found = reader.choice()
    if reader.at < len(text):
        raise InputError(f"has {text[reader.at :][:10]}, which checks do not take")
    return reader.automaton, found


class _PatternReader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.automaton = Automaton()
        self._has_flags = bool(_SETS_FLAGS.search(text))

    def choice(self) -> Fragment:
        parts = [self._sequence()]
        while self._next("|"):
            parts.append(self._sequence())
        return choice(parts)

    def _sequence(self) -> Fragment:
        found: Fragment | None = None
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._repeats(self._atom())
            found = part if found is None else self.automaton.sequence(found, part)
        return found or NOTHING

    def _repeats(self, part: Fragment) -> Fragment:
        repeat = self._match(_REPEAT)
        if repeat is None:
            return part
        least, most = _bounds(repeat)
        if most is not None and most <= 1:
            return part if least else optional(part)
        if part.empty:
            raise InputError("repeats a part that may be empty, which could take forever")
        return self.automaton.repeated(part, may_be_none=not least)

    def _atom(self) -> Fragment:
        if self._next("^"):
            return LINE_START
        if self._match(_EDGE) or self._match(_FLAGS):
            return NOTHING
        if self.text[self.at] == "(":
            return self._group()
        if found := self._match(_SET):
            return self._characters(found[0], is_wide=bool(_WIDE_SET.search(found[0])))
        if found := self._match(_WIDE) or self._match(_CLASS):
            is_wide = bool(_WIDE.match(found[0])) or not found[0].isascii()
            return self._characters(found[0], is_wide=is_wide)
        one = self.text[self.at]
        if one in "\\{[*+?":
            raise InputError(f"has {self.text[self.at :][:10]}, which checks do not take")
        self.at += 1
        return self._characters(one, is_wide=not one.isascii())

    def _group(self) -> Fragment:
        opening = self._match(_OPENING)
        start = self.at
        found = NOTHING if self._peek("?") else self.choice()
        if opening is None or not self._next(")"):
            raise InputError(f"has ({self.text[start:][:10]}, which checks do not take")
        return look(found) if opening["look"] else found

    def _characters(self, text: str, *, is_wide: bool) -> Fragment:
        mask = EVERY if is_wide else _mask(text, has_flags=self._has_flags)
        return self.automaton.character(mask)

    def _match(self, wanted: re.Pattern[str]) -> re.Match[str] | None:
        found = wanted.match(self.text, self.at)
        self.at = self.at if found is None else found.end()
        return found

    def _peek(self, one: str) -> bool:
        return self.text.startswith(one, self.at)

    def _next(self, one: str) -> bool:
        is_next = self._peek(one)
        self.at += is_next
        return is_next


def _bounds(repeat: re.Match[str]) -> tuple[int, int | None]:
    """Bounds of the repetition of a part; None without an end."""
    sign = repeat[0][0]
    if sign != "{":
        return int(sign == "+"), 1 if sign == "?" else None
    least = int(repeat["least"] or 0)
    if not repeat["to"]:
        return least, least
    return least, int(repeat["most"]) if repeat["most"] else None


@lru_cache(maxsize=1024)
def _mask(text: str, *, has_flags: bool) -> int:
    """The characters that a part of a pattern stands for, under any flags that it may have."""
    flags = (re.NOFLAG, re.IGNORECASE, re.DOTALL) if has_flags else (re.NOFLAG,)
    every = [re.compile(text, flag) for flag in flags]
    return sum(
        1 << place
        for place, one in enumerate(_CHARACTERS)
        if any(compiled.fullmatch(one) for compiled in every)
    )

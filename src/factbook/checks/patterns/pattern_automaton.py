"""The ways in which a regular expression can be tried, as an automaton of its characters.

Each position is a character of the pattern with those that it stands for as a mask. An edge tells
in how many ways one may follow another. Repeats of any number are loops.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Final, NamedTuple

from factbook.errors import InputError

# An analysis takes about a second for as many.
_MOST_EDGES: Final = 5_000


class Fragment(NamedTuple):
    """A part of a pattern: where it begins and ends, and the ways in which it takes no character.

    `is_anchored` is true if it begins at the start of a line.
    """

    first: Counter[int]
    last: Counter[int]
    empty: int
    is_anchored: bool = False


NOTHING: Final = Fragment(Counter(), Counter(), 1)
LINE_START: Final = NOTHING._replace(is_anchored=True)


class Automaton:
    """Positions by number; grows with each part of the pattern."""

    def __init__(self) -> None:
        self.masks: list[int] = []
        self.edges: list[Counter[int]] = []
        self._connected = 0

    def character(self, mask: int) -> Fragment:
        """One character of those in the mask."""
        position = len(self.masks)
        self.masks.append(mask)
        self.edges.append(Counter())
        return Fragment(Counter({position: 1}), Counter({position: 1}), 0)

    def sequence(self, before: Fragment, after: Fragment) -> Fragment:
        """One part and then another."""
        self._connect(before.last, after.first)
        return Fragment(
            before.first + _times(after.first, before.empty),
            after.last + _times(before.last, after.empty),
            before.empty * after.empty,
            before.is_anchored,
        )

    def repeated(self, part: Fragment, *, may_be_none: bool) -> Fragment:
        """The part once or more often, or also never."""
        self._connect(part.last, part.first)
        return optional(part) if may_be_none else part

    def _connect(self, before: Counter[int], after: Counter[int]) -> None:
        self._connected += len(before) * len(after)
        if self._connected > _MOST_EDGES:
            raise InputError("has too many parts of which each may follow each")
        for position, ways in before.items():
            self.edges[position].update(_times(after, ways))


def choice(parts: Iterable[Fragment]) -> Fragment:
    """One of some parts."""
    every = list(parts)
    return Fragment(
        sum((one.first for one in every), Counter[int]()),
        sum((one.last for one in every), Counter[int]()),
        sum(one.empty for one in every),
        all(one.is_anchored for one in every),
    )


def optional(part: Fragment) -> Fragment:
    """The part or nothing."""
    return Fragment(part.first, part.last, part.empty + 1)


def look(part: Fragment) -> Fragment:
    """The part tried at a place from which the pattern then goes on."""
    return Fragment(part.first, Counter(), 1)


def _times(counts: Counter[int], ways: int) -> Counter[int]:
    return Counter({one: count * ways for one, count in counts.items()}) if ways else Counter()

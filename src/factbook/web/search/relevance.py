"""Relevance of names to a text: the same name, one that begins with it, a word of it, or within."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

SAME: Final = 0
BEGINS: Final = 1
WORD: Final = 2
WITHIN: Final = 3

_BOUNDS = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])")


def relevance(text: str, names: Iterable[str]) -> int | None:
    """Rank of the name that fits a text in lower case best, 0 first; None if none has it."""
    found = [one for name in names if (one := _of_one(text, name)) is not None]
    return min(found, default=None)


def _of_one(text: str, name: str) -> int | None:
    lowered = name.lower()
    if lowered == text:
        return SAME
    if lowered.startswith(text):
        return BEGINS
    if text not in lowered:
        return None
    return WORD if any(word.lower().startswith(text) for word in _words(name)) else WITHIN


def _words(name: str) -> list[str]:
    """Ends of a name that begin with a word of it, as `branch protection` and `protection`."""
    return [name[bound.end() :] for bound in _BOUNDS.finditer(name)]


def best(
    text: str, items: Iterable[T], names: Callable[[T], Sequence[str]], most: int
) -> tuple[list[T], int]:
    """Up to `most` of the items with the text in a name, most relevant first, and their number."""
    found = [
        (fit, len(known[0]), known[0], item)
        for item in items
        if (fit := relevance(text, known := names(item))) is not None
    ]
    found.sort(key=lambda one: one[:3])
    return [one[3] for one in found[:most]], len(found)

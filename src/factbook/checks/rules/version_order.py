"""Versions as numbers with dots, a pre-release and a build: Semantic Versioning and PEP 440's usual
forms. Anything else has no order, and is no version here.
"""

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 100
_MOST_DIGITS: Final = 18
_VERSION: Final = re.compile(
    r"""v?
    (?P<release>\d+(?:\.\d+)*)
    (?:-(?P<semantic>[0-9a-z-]+(?:\.[0-9a-z-]+)*)|(?P<phase>a|b|rc)(?P<number>\d+)|\.post(?P<post>\d+))?
    (?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
_DIGITS: Final = re.compile(r"\d+", re.ASCII)

# Numbers of a pre-release come before words, and a pre-release before what it leads to.
_Part = tuple[int, int, str]
Version = tuple[tuple[int, ...], int, tuple[_Part, ...]]
_PRE, _FINAL, _POST = 0, 1, 2


@lru_cache(maxsize=4096)
def parse(text: str) -> Version | None:
    """A key that orders versions; None for a text that is no version.

    A leading `v` and zeros at the end do not matter: v1.4 is 1.4.0.
    """
    found = _VERSION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if found is None or any(len(one) > _MOST_DIGITS for one in _DIGITS.findall(text)):
        return None
    release = [int(number) for number in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if found["semantic"]:
        parts = tuple(map(_part, found["semantic"].lower().split(".")))
        return tuple(release), _PRE, parts
    if found["phase"]:
        word = {"a": "alpha", "b": "beta", "rc": "rc"}[found["phase"].lower()]
        return tuple(release), _PRE, (_part(word), _part(found["number"]))
    if found["post"]:
        return tuple(release), _POST, (_part(found["post"]),)
    return tuple(release), _FINAL, ()


def _part(text: str) -> _Part:
    return (0, int(text), "") if _DIGITS.fullmatch(text) else (1, 0, text)

"""Narrowing of tokens to some sets, namespaces, data sources and tools.

A pattern is a whole name, or the beginning of names before a `*`. Names are compared as they are
stored, character by character.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from factbook import invisible
from factbook.errors import InputError, NotAllowedError
from factbook.schemas import patterns

SETS: Final = "sets"
NAMESPACES: Final = "namespaces"
SOURCES: Final = "sources"
TOOLS: Final = "tools"
DIMENSIONS: Final = (SETS, NAMESPACES, SOURCES, TOOLS)

MOST_PATTERNS: Final = 50
_LONGEST: Final = 128
# What each can be at all; of sets, whatever is seen.
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    NAMESPACES: re.compile(patterns.REACHED_NAMESPACE),
    SOURCES: re.compile(patterns.REACHED_SOURCE),
    TOOLS: re.compile(patterns.REACHED_TOOL),
}
_decoder = msgspec.json.Decoder(dict[str, list[str]])


class Narrowing(NamedTuple):
    """The patterns to which a token is narrowed; None: to none of that dimension."""

    sets: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None

    @property
    def given(self) -> dict[str, tuple[str, ...]]:
        """The patterns of each dimension that is narrowed."""
        return {name: found for name, found in self._asdict().items() if found is not None}

    def allows(self, dimension: str, name: str) -> bool:
        """True if a name of the dimension is within the narrowing."""
        patterns = self.given.get(dimension)
        return patterns is None or _matches(patterns, name)

    def check(self, dimension: str, names: Iterable[str]) -> None:
        """Raise NotAllowedError unless all of these names are within the narrowing."""
        if not all(self.allows(dimension, name) for name in names):
            raise self.refusal(dimension)

    def check_refs(self, refs: Iterable[str]) -> None:
        """Raise NotAllowedError for a canonical reference outside of the namespaces."""
        if self.namespaces is not None:
            self.check(NAMESPACES, {ref.partition(":")[2].partition("/")[0] for ref in refs})

    def refusal(self, *dimensions: str) -> NotAllowedError:
        """The error that says what the token is narrowed to, and nothing of anybody else."""
        given = self.given
        told = [
            f"the {name} {', '.join(given[name])}"
            for name in dimensions or DIMENSIONS
            if name in given
        ]
        return NotAllowedError(f"This token is narrowed to {' and '.join(told)}.")


def check_refs(narrowing: Narrowing | None, refs: Iterable[str]) -> None:
    """Raise NotAllowedError for an entity outside of the namespaces, if there are any."""
    if narrowing is not None:
        narrowing.check_refs(refs)


def check_owners(narrowing: Narrowing | None, sets: Iterable[str | None]) -> None:
    """Raise NotAllowedError for another set, and for none, where the sets are named."""
    if narrowing is None or narrowing.sets is None:
        return
    for name in sets:
        if name is None:
            raise narrowing.refusal(SETS)
        narrowing.check(SETS, [name])


class Reach(NamedTuple):
    """The dimensions that a route keeps a token within, and those of which it touches nothing.

    A route that states neither refuses narrowed tokens.
    """

    bounds: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()

    def check(self, narrowing: Narrowing, *, writes: bool) -> None:
        """Raise NotAllowedError unless a token with this narrowing may use the route.

        Sets, sources and tools are what a token is for: the route has to be about one of those
        that are given, and not about another. Namespaces are a limit of writes alone.
        """
        given = narrowing.given
        aims = given.keys() - {NAMESPACES}
        if aims and not (aims <= self.bounds | self.apart and aims & self.bounds):
            raise narrowing.refusal(*(name for name in DIMENSIONS if name in aims))
        if NAMESPACES in given and writes and NAMESPACES not in self.bounds:
            raise narrowing.refusal(NAMESPACES)


NOWHERE: Final = Reach()
OF_SET: Final = Reach(frozenset({SETS, NAMESPACES}), frozenset({SOURCES, TOOLS}))
OF_SOURCE: Final = Reach(frozenset({SOURCES}), frozenset({SETS, TOOLS}))
OF_PUSHED_FACTS: Final = Reach(frozenset({SOURCES, NAMESPACES}), frozenset({SETS, TOOLS}))
# Tools answer with facts of every source.
OF_TOOLS: Final = Reach(frozenset({TOOLS}), frozenset({SETS}))
OF_GRANTING: Final = Reach(frozenset(DIMENSIONS))


def checked(given: Mapping[str, Iterable[str]]) -> Narrowing | None:
    """The narrowing with these patterns, None for none at all; raises InputError."""
    found = {name: _checked(name, patterns) for name, patterns in given.items()}
    return Narrowing(**found) if found else None


def within(wish: Narrowing | None, held: Narrowing | None) -> Narrowing | None:
    """The narrowing of a token that a holder of another makes: it inherits what it does not say.

    Raises NotAllowedError where it would reach further.
    """
    if held is None:
        return wish
    asked = {} if wish is None else wish.given
    for name, reached in held.given.items():
        if not all(_covered(pattern, reached) for pattern in asked.get(name, ())):
            raise held.refusal(name)
    return Narrowing(**(held.given | asked))


def encoded(narrowing: Narrowing | None) -> str | None:
    """Text to store; None for none."""
    return None if narrowing is None else msgspec.json.encode(narrowing.given).decode()


@lru_cache(maxsize=256)
def decoded(text: str) -> Narrowing:
    """The narrowing of a stored text."""
    return Narrowing(**{name: tuple(found) for name, found in _decoder.decode(text).items()})


def _checked(dimension: str, patterns: Iterable[str]) -> tuple[str, ...]:
    found = tuple(sorted(set(patterns)))
    if dimension not in DIMENSIONS:
        raise InputError(f"A token is narrowed to {', '.join(DIMENSIONS)}, and to nothing else.")
    if not 1 <= len(found) <= MOST_PATTERNS:
        raise InputError(f"Name 1 to {MOST_PATTERNS} {dimension}, or leave {dimension} out.")
    for pattern in found:
        _check_form(dimension, pattern)
    return found


def _check_form(dimension: str, pattern: str) -> None:
    form = _FORMS.get(dimension)
    if form is not None:
        sound = bool(form.fullmatch(pattern))
    else:
        sound = 1 <= len(pattern) <= _LONGEST and pattern.isprintable()
    if not sound or invisible.has(pattern):
        raise InputError(
            f"A name among the {dimension} is not one that they can have: write it as it is "
            "stored, or its beginning and *."
        )


def _matches(patterns: Iterable[str], name: str) -> bool:
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in patterns)


def _covered(pattern: str, patterns: Iterable[str]) -> bool:
    """True if all names of a pattern are among those of the patterns."""
    if not pattern.endswith("*"):
        return _matches(patterns, pattern)
    return any(one.endswith("*") and pattern[:-1].startswith(one[:-1]) for one in patterns)

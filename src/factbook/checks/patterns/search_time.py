"""Bounds on the time of a search for a regular expression, from the pattern alone.

A search tries the ways in which a text can be read as the pattern. Their number is estimated before
any text is seen: it grows by a power of the length of the text for each repeat that competes with
one before it, and without end where a repeat competes with itself. So a pattern has a longest text
that it is tried with, and what comes of it never depends on how busy the machine is.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from factbook.checks.patterns import pattern_syntax
from factbook.checks.patterns.pattern_automaton import Automaton, optional
from factbook.errors import InputError

LONGEST_TEXT: Final = 5_000
# Steps of a search in the worst case: about a tenth of a second.
MOST_STEPS: Final = 50_000_000
# The names of entities have up to 63 characters.
_SHORTEST: Final = 63
_MOST_LOOPED: Final = 32
_MOST_LOOPS: Final = 40
_TOO_SLOW: Final = "has repeats over the same characters that could take forever"


class Growth(NamedTuple):
    """The most steps of a search: `ways` times the text's length to the power of `degree` + 1."""

    degree: int
    ways: int


class _Loop(NamedTuple):
    positions: frozenset[int]
    # All characters that it reads.
    mask: int


@lru_cache(maxsize=1024)
def longest_text(pattern: str) -> int:
    """The length of the longest text that a pattern is tried with; raises InputError."""
    found = growth(pattern)
    longest = int((MOST_STEPS / found.ways) ** (1 / (found.degree + 1)))
    if longest < _SHORTEST:
        raise InputError(_TOO_SLOW)
    return min(longest, LONGEST_TEXT)


def growth(pattern: str) -> Growth:
    """The growth of a search for a pattern with the text; raises InputError if it has no bound."""
    automaton = _searching(pattern)
    reached = _reached(automaton)
    loops = _loops(automaton, reached)
    if len(loops) > _MOST_LOOPS:
        raise InputError(f"has more than {_MOST_LOOPS} repeats")
    for loop in loops:
        _check_unambiguous(automaton, loop)
    return Growth(_degree(automaton, loops, reached), _ways(automaton, loops, reached))


def _searching(pattern: str) -> Automaton:
    """The automaton of a pattern that begins anywhere in a text, or where a line does."""
    found, whole = pattern_syntax.automaton(pattern)
    skipped = found.repeated(found.character(pattern_syntax.EVERY), may_be_none=True)
    if whole.is_anchored:
        skipped = optional(found.sequence(skipped, found.character(pattern_syntax.LINE_END)))
    searched = found.sequence(skipped, whole)
    start = found.character(0)
    found.sequence(start, searched)
    return found


def _reached(automaton: Automaton) -> list[set[int]]:
    """The positions that come after each one, at any distance."""
    return [_after(automaton, position) for position in range(len(automaton.edges))]


def _after(automaton: Automaton, start: int, mask: int = -1) -> set[int]:
    """The positions after one on ways that read characters of the mask only."""
    found = set[int]()
    waiting = [start]
    while waiting:
        for position in automaton.edges[waiting.pop()]:
            if position not in found and (mask == -1 or automaton.masks[position] & mask):
                found.add(position)
                waiting.append(position)
    return found


def _loops(automaton: Automaton, reached: list[set[int]]) -> list[_Loop]:
    """The groups of positions that come after one another without end."""
    groups = {
        frozenset(one for one in after if position in reached[one])
        for position, after in enumerate(reached)
        if position in after
    }
    return [_Loop(one, _united(automaton, one)) for one in groups]


def _united(automaton: Automaton, positions: frozenset[int]) -> int:
    mask = 0
    for position in positions:
        mask |= automaton.masks[position]
    return mask


def _check_unambiguous(automaton: Automaton, loop: _Loop) -> None:
    """Raise InputError if a text may go round a loop in two ways, which doubles with each round."""
    if len(loop.positions) > _MOST_LOOPED:
        raise InputError(f"repeats a part of more than {_MOST_LOOPED} characters")
    inside = {one: automaton.edges[one].keys() & loop.positions for one in loop.positions}
    if any(automaton.edges[one][other] > 1 for one, others in inside.items() for other in others):
        raise InputError(_TOO_SLOW)
    # Pairs of ways with the same text, from the place where they part.
    seen = {(one, one) for one in loop.positions}
    waiting = list(seen)
    while waiting:
        left, right = waiting.pop()
        for one in inside[left]:
            for other in inside[right]:
                if not automaton.masks[one] & automaton.masks[other]:
                    continue
                if one == other and left != right:
                    raise InputError(_TOO_SLOW)
                if (one, other) not in seen:
                    seen.add((one, other))
                    waiting.append((one, other))


def _degree(automaton: Automaton, loops: list[_Loop], reached: list[set[int]]) -> int:
    """The most loops after one another of which each competes with the next for a text."""
    entries = [next(iter(loop.positions)) for loop in loops]
    found = dict[int, int]()
    # A loop comes after all that it leads to.
    for i in sorted(range(len(loops)), key=lambda i: len(reached[entries[i]])):
        later = [j for j in found if entries[j] in reached[entries[i]]]
        found[i] = max(
            (found[j] + _compete(automaton, loops[i], loops[j]) for j in later), default=0
        )
    return max(found.values(), default=0)


def _compete(automaton: Automaton, before: _Loop, after: _Loop) -> bool:
    """Return true if a text that the first could read too may lead to the second."""
    mask = before.mask & after.mask
    return any(_after(automaton, one, mask) & after.positions for one in before.positions)


def _ways(automaton: Automaton, loops: list[_Loop], reached: list[set[int]]) -> int:
    """The most ways to read the same text, beside those of the loops."""
    group = {one: loop.positions for loop in loops for one in loop.positions}
    known = dict[int, int]()
    for positions in _from_the_end(group, reached):
        # A way leaves a loop once.
        leaving = [automaton.edges[one].keys() - positions for one in positions]
        most = max(
            sum(
                automaton.edges[one][other] * known[other]
                for other in others
                if automaton.masks[other] & automaton.masks[wanted]
            )
            for one, others in zip(positions, leaving, strict=True)
            for wanted in others or {one}
        )
        known.update(dict.fromkeys(positions, max(1, most)))
    return max(known.values())


def _from_the_end(
    group: dict[int, frozenset[int]], reached: list[set[int]]
) -> list[frozenset[int]]:
    """All positions, those of a loop together, each after those that it leads to."""
    # What leads into a loop reaches as much as the loop itself.
    order = sorted(range(len(reached)), key=lambda one: (len(reached[one]), one not in group))
    return list(dict.fromkeys(group.get(one, frozenset([one])) for one in order))

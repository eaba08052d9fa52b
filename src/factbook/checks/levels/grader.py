"""Level, score and coverage of an entity, from the states of its checks.

A check that passed or failed counts for the score; one that is unknown lowers the coverage, and
blocks its level until it is known. What is exempt or does not apply is left out. A level is reached
if no check of it or of a lower one blocks it, and by something that passes: never by exemptions
alone.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions.scorecard import Scorecard, ScorecardEntry

# Bytes of a scorecard in what is stored of an entity: see `encoded`.
WIDTH: Final = 4
NO_SHARE: Final = 255
# Of an entity that a scorecard does not apply to, and of one that is exempt from it as a whole.
OUTSIDE: Final = bytes((0, 0, NO_SHARE, NO_SHARE))
EXEMPTED: Final = bytes((255, 255, NO_SHARE, NO_SHARE))
_REMEMBERED: Final = 20_000
_HIGHEST: Final = 1 << 30

# What an entry adds: passed, failed, open (unknown, or not evaluated yet).
_PASSED, _FAILED, _OPEN, _LEFT_OUT = range(4)
_SORTS: Final = {
    state.NONE: _OPEN,
    state.PASS: _PASSED,
    state.FAIL: _FAILED,
    state.UNKNOWN: _OPEN,
    state.OUT: _LEFT_OUT,
    state.INAPPLICABLE: _LEFT_OUT,
}
# By the byte of a vector; one with the flag of an exemption is left out.
_SORT: Final = tuple(_SORTS.get(byte, _LEFT_OUT) for byte in range(256))


class Standing(NamedTuple):
    """The place of an entity in a scorecard.

    `level` is a rank, 0 below the first; `level_if_known` is the best that it can be once every
    check is known. Shares are from 0 to 1. `score` is None below the least coverage, and `coverage`
    if nothing counts.
    """

    level: int
    level_if_known: int
    score: float | None
    coverage: float | None


class Step(NamedTuple):
    """A check that keeps an entity from a level; `gain` is what the score wins if it passes.

    `rank` is that of the level, 0 of a check that counts for the score alone.
    """

    check: str
    rank: int
    state: int
    effort: float
    gain: float


class GradedLevel(NamedTuple):
    """Stored form of a standing: shares in percent, rounded down so that 100 is all of it."""

    level: int
    level_if_known: int
    score: int | None
    coverage: int | None


class _Tally(NamedTuple):
    entry: ScorecardEntry
    slot: int
    rank: int


class Grader:
    """A scorecard prepared for many entities.

    `slots` has the place, from 1, of each check that counts now: one that is published and in
    effect.
    """

    def __init__(self, scorecard: Scorecard, slots: Mapping[str, int]) -> None:
        self.scorecard = scorecard
        self._counted = [
            _Tally(entry, slots[entry.check], scorecard.rank(entry.level))
            for entry in scorecard.entries
            if entry.check in slots and not entry.advisory
        ]
        self._least_length = max((one.slot for one in self._counted), default=0)
        places = [one.slot - 1 for one in self._counted]
        # Of one place it would not be a tuple; of none it could not be made.
        self._read = itemgetter(*places, *places[:1]) if places else None
        self._known: dict[tuple[int, ...], bytes] = {}
        # An exception was raised by it, and has been logged.
        self.has_failed = False

    def standing(self, states: bytes) -> Standing:
        """The standing of an entity with these states of its checks."""
        passed = failed = opened = 0.0
        # The lowest ranks that something blocks, for certain and until it is known.
        blocked = open_ = _HIGHEST
        for (entry, _, rank), byte in zip(self._counted, self._bytes(states), strict=False):
            sort = _SORT[byte]
            if sort == _PASSED:
                passed += entry.weight
            elif sort == _FAILED:
                failed += entry.weight
                blocked = min(blocked, rank or _HIGHEST)
            elif sort == _OPEN:
                opened += entry.weight
                open_ = min(open_, rank or _HIGHEST)
        highest = len(self.scorecard.levels)
        best = min(highest, blocked - 1) if passed or opened else 0
        level = min(best, open_ - 1) if passed else 0
        return Standing(level, best, *self._shares(passed, failed, opened))

    def encoded(self, states: bytes) -> bytes:
        """The standing in four bytes: level + 1, level if known + 1, score and coverage in percent.

        The first is 0 of an entity outside the scorecard (`OUTSIDE`).
        """
        key = self._bytes(states)
        found = self._known.get(key)
        if found is None:
            level, best, score, coverage = self.standing(states)
            found = bytes((level + 1, best + 1, _percent(score), _percent(coverage)))
            if len(self._known) < _REMEMBERED:
                self._known[key] = found
        return found

    def steps(self, states: bytes) -> list[Step]:
        """The checks that fail or are unknown, those of the lowest level first, then the cheapest.

        Those of the next level are at the beginning.
        """
        pairs = list(zip(self._counted, self._bytes(states), strict=False))
        total = sum(one.entry.weight for one, byte in pairs if _SORT[byte] != _LEFT_OUT)
        steps = [
            Step(entry.check, rank, byte, entry.effort, entry.weight / total)
            for (entry, _, rank), byte in pairs
            if _SORT[byte] in {_FAILED, _OPEN}
        ]
        return sorted(
            steps, key=lambda one: (one.rank or _HIGHEST, one.effort, -one.gain, one.check)
        )

    def _bytes(self, states: bytes) -> tuple[int, ...]:
        """The states of the entries that count; the first of them stands at the end, too."""
        if self._read is None:
            return ()
        if len(states) < self._least_length:
            states = states.ljust(self._least_length, b"\0")
        found: tuple[int, ...] = self._read(states)
        return found

    def _shares(
        self, passed: float, failed: float, opened: float
    ) -> tuple[float | None, float | None]:
        known = passed + failed
        applicable = known + opened
        if not applicable:
            return None, None
        coverage = known / applicable
        if not known or coverage < self.scorecard.minimum_coverage:
            return None, coverage
        return passed / known, coverage


def decoded(levels: bytes, slot: int) -> GradedLevel | None:
    """Stored form of a scorecard; None if the entity is outside it or exempt from it."""
    return graded(in_slot(levels, slot))


def in_slot(levels: bytes, slot: int) -> bytes:
    """The four bytes of a slot."""
    start = (slot - 1) * WIDTH
    return levels[start : start + WIDTH] or OUTSIDE


def graded(own: bytes) -> GradedLevel | None:
    """Standing in four bytes; None of an entity that is outside the scorecard or exempt from it."""
    if own in {OUTSIDE, EXEMPTED}:
        return None
    level, best, score, coverage = own
    return GradedLevel(level - 1, best - 1, _share(score), _share(coverage))


def with_slots(levels: bytes, changed: Iterable[tuple[int, bytes]]) -> bytes:
    """The stored levels of an entity with other bytes in some slots, from 1."""
    found = bytearray(levels)
    for slot, own in changed:
        start = (slot - 1) * WIDTH
        while len(found) < start:
            found += OUTSIDE
        found[start : start + WIDTH] = own
    return bytes(found)


def _percent(share: float | None) -> int:
    # What a sum of fractions lacks to a whole percent is not shown as a lost percent.
    return NO_SHARE if share is None else int(share * 100 + 1e-9)


def _share(byte: int) -> int | None:
    return None if byte == NO_SHARE else byte

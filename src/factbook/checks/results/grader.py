"""Level, score and coverage of an entity from the states of its checks, and their rollups.

A rollup counts entities by level for each owner, system, domain or kind. Groups form a tree by
`childOf`, which may in truth hold cycles and diamonds.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

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
# The rank of an entity that nothing counts for yet, or that is below the first level.
NO_LEVEL: Final = 0


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
            found = bytes((level + 1, best + 1, _format_percent(score), _format_percent(coverage)))
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


def decode_level(levels: bytes, slot: int) -> GradedLevel | None:
    """Stored form of a scorecard; None if the entity is outside it or exempt from it."""
    return read_graded_levels(find_slot_level(levels, slot))


def find_slot_level(levels: bytes, slot: int) -> bytes:
    """The four bytes of a slot."""
    start = (slot - 1) * WIDTH
    return levels[start : start + WIDTH] or OUTSIDE


def read_graded_levels(own: bytes) -> GradedLevel | None:
    """Standing in four bytes; None of an entity that is outside the scorecard or exempt from it."""
    if own in {OUTSIDE, EXEMPTED}:
        return None
    level, best, score, coverage = own
    return GradedLevel(level - 1, best - 1, _decode_share(score), _decode_share(coverage))


def replace_slot_levels(levels: bytes, changed: Iterable[tuple[int, bytes]]) -> bytes:
    """The stored levels of an entity with other bytes in some slots, from 1."""
    found = bytearray(levels)
    for slot, own in changed:
        start = (slot - 1) * WIDTH
        while len(found) < start:
            found += OUTSIDE
        found[start : start + WIDTH] = own
    return bytes(found)


def _format_percent(share: float | None) -> int:
    # What a sum of fractions lacks to a whole percent is not shown as a lost percent.
    return NO_SHARE if share is None else int(share * 100 + 1e-9)


def _decode_share(byte: int) -> int | None:
    return None if byte == NO_SHARE else byte


class GroupHierarchy:
    """Groups with their parents; a group that is nobody's child is a root."""

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        self.parents = {group: frozenset(found) - {group} for group, found in parents.items()}
        self.children: dict[str, set[str]] = {}
        for group, found in self.parents.items():
            for parent in found:
                self.children.setdefault(parent, set()).add(group)

    def within(self, group: str) -> set[str]:
        """The group and all groups below it, each once."""
        return _find_reached(group, self.children)

    def above(self, group: str) -> set[str]:
        """The group and all groups above it, each once."""
        return _find_reached(group, self.parents)

    def tops(self, groups: Iterable[str]) -> list[str]:
        """The groups from which all of the given ones can be reached: those without parents.

        Of a cycle without an entrance it is the first by name.
        """
        remaining = {one for group in groups for one in self.above(group)}
        found = sorted(group for group in remaining if not self.parents.get(group))
        for group in found:
            remaining -= self.within(group)
        while remaining:
            found.append(min(remaining))
            remaining -= self.within(found[-1])
        return sorted(found)

    def path(self, group: str) -> list[str]:
        """A chain of parents down to the group, from a root or from where a cycle closes."""
        found = [group]
        while further := sorted(self.parents.get(found[0], frozenset()) - set(found)):
            found.insert(0, further[0])
        return found


def _find_reached(start: str, edges: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        for other in edges.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


class LevelCount(NamedTuple):
    """Entities of an owner, system and kind at a level, 0 below the first.

    `score` is the sum of the scores in percent of those that have one, `scored` their number.
    """

    owner: str
    system: str
    kind: str
    level: int
    entities: int
    scored: int
    score: int


class LevelTally(NamedTuple):
    """Sums of counts: entities by level, and of scores."""

    levels: Mapping[int, int]
    scored: int = 0
    score: int = 0

    @property
    def total(self) -> int:
        """The number of entities."""
        return sum(self.levels.values())

    @property
    def mean(self) -> float | None:
        """The mean score in percent of those that have one."""
        return self.score / self.scored if self.scored else None

    def render(self, names: Mapping[int, str]) -> dict[str, Any]:
        """The tally as shown, with the name of each rank; entities below the first level apart."""
        return {
            "total": self.total,
            "levels": {name: self.levels.get(rank, 0) for rank, name in names.items()},
            "noLevel": self.levels.get(NO_LEVEL, 0),
            "score": None if self.mean is None else round(self.mean, 1),
            "scored": self.scored,
        }


NO_TALLY: Final = LevelTally({})


def add_tallies(tallies: Iterable[LevelTally]) -> LevelTally:
    """The sum of tallies."""
    levels: dict[int, int] = {}
    scored = score = 0
    for one in tallies:
        for level, count in one.levels.items():
            levels[level] = levels.get(level, 0) + count
        scored += one.scored
        score += one.score
    return LevelTally(levels, scored, score)


def tally_levels(counts: Iterable[tuple[str, int, int, int, int]]) -> dict[str, LevelTally]:
    """The sums by name of a name, a level, and entities, those with a score and their scores.

    "" holds entities without one. Each name has a level once.
    """
    found: dict[str, LevelTally] = {}
    for name, level, entities, scored, score in counts:
        known = found.get(name)
        if known is None:
            found[name] = LevelTally({level: entities}, scored, score)
        else:
            levels = {**known.levels, level: entities}
            found[name] = LevelTally(levels, known.scored + scored, known.score + score)
    return found


def roll_up_domains(
    own: Mapping[str, LevelTally], domains: Mapping[str, str]
) -> dict[str, LevelTally]:
    """The sums of systems by the domain that each is part of; "" holds the others."""
    found: dict[str, list[LevelTally]] = {}
    for system, tally in own.items():
        found.setdefault(domains.get(system, ""), []).append(tally)
    return {name: add_tallies(tallies) for name, tallies in found.items()}


def roll_up_group(own: Mapping[str, LevelTally], tree: GroupHierarchy, group: str) -> LevelTally:
    """The sum of a group and of all groups below it, each counted once."""
    return add_tallies(own[one] for one in sorted(tree.within(group)) if one in own)


def roll_up_groups(own: Mapping[str, LevelTally], tree: GroupHierarchy) -> dict[str, LevelTally]:
    """The sums of each group that has something, itself or below it.

    Owners that are in no tree, such as users, are there by themselves.
    """
    above: dict[str, list[LevelTally]] = {}
    for owner, tally in own.items():
        for group in tree.above(owner):
            above.setdefault(group, []).append(tally)
    return {
        group: some[0] if len(some) == 1 else add_tallies(some) for group, some in above.items()
    }

"""Level, score and coverage of an entity from the states of its checks, and rollups.

A rollup counts entities by level for each owner, system, domain or kind. Groups form a hierarchy by
`childOf`, which can contain cycles and diamonds.
"""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions.scorecard import Scorecard, ScorecardEntry

# Bytes per scorecard in an entity's stored levels: see `encoded`.
WIDTH: Final = 4
NO_SHARE: Final = 255
# For entities that the scorecard doesn't apply to, or that are exempt from all of it.
OUTSIDE: Final = bytes((0, 0, NO_SHARE, NO_SHARE))
EXEMPTED: Final = bytes((255, 255, NO_SHARE, NO_SHARE))
_REMEMBERED: Final = 20_000
_HIGHEST: Final = 1 << 30
# The rank of entities below the first level, or without checks that count.
NO_LEVEL: Final = 0


# How an entry counts: passed, failed, open (unknown or not evaluated yet), or not at all.
_PASSED, _FAILED, _OPEN, _LEFT_OUT = range(4)


_SORTS: Final = {
    state.NONE: _OPEN,
    state.PASS: _PASSED,
    state.FAIL: _FAILED,
    state.UNKNOWN: _OPEN,
    state.OUT: _LEFT_OUT,
    state.INAPPLICABLE: _LEFT_OUT,
}


# By state byte; states with the exemption flag don't count.
_SORT: Final = tuple(_SORTS.get(byte, _LEFT_OUT) for byte in range(256))


class Standing(NamedTuple):
    """An entity's result in a scorecard.

    `level` is a rank, 0 below the first; `level_if_known` is the best possible rank once every
    check is known. Shares are from 0 to 1. `score` is None below the minimum coverage, `coverage`
    if nothing counts.
    """

    level: int
    level_if_known: int
    score: float | None
    coverage: float | None


class Step(NamedTuple):
    """A check that keeps an entity from a level; `gain` is the score gained if it passes.

    `rank` is the rank of the level, 0 for a check that only counts toward the score.
    """

    check: str
    rank: int
    state: int
    effort: float
    gain: float


class GradedLevel(NamedTuple):
    """Stored form of a standing: percentages rounded down, so 100 means complete."""

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

    `slots` maps each check that counts now (published and in effect) to its position, from 1.
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
        # The first place twice, so the result is always a tuple; itemgetter needs at least one.
        self._read = itemgetter(*places, *places[:1]) if places else None
        self._known: dict[tuple[int, ...], bytes] = {}
        # Raised an exception before, which is logged.
        self.has_failed = False

    def standing(self, states: bytes) -> Standing:
        """The standing of an entity with these check states."""
        passed = failed = opened = 0.0
        # The lowest ranks blocked by failures, and by unknown checks.
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

        The first byte is 0 for entities outside the scorecard (`OUTSIDE`).
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
        """The failing and unknown checks, by level from the next one up, then by effort."""
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
        """The states of the counted entries; the first one is repeated at the end."""
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
    """The graded level in a slot; None if the entity is outside the scorecard or exempt from it."""
    return read_graded_levels(find_slot_level(levels, slot))


def find_slot_level(levels: bytes, slot: int) -> bytes:
    """The four bytes of a slot."""
    start = (slot - 1) * WIDTH
    return levels[start : start + WIDTH] or OUTSIDE


def read_graded_levels(own: bytes) -> GradedLevel | None:
    """Decode four bytes; None for entities outside the scorecard or exempt from it."""
    if own in {OUTSIDE, EXEMPTED}:
        return None
    level, best, score, coverage = own
    return GradedLevel(level - 1, best - 1, _decode_share(score), _decode_share(coverage))


def replace_slot_levels(levels: bytes, changed: Iterable[tuple[int, bytes]]) -> bytes:
    """The stored levels of an entity with new bytes in some slots, from 1."""
    found = bytearray(levels)
    for slot, own in changed:
        start = (slot - 1) * WIDTH
        while len(found) < start:
            found += OUTSIDE
        found[start : start + WIDTH] = own
    return bytes(found)


def _format_percent(share: float | None) -> int:
    # The epsilon absorbs floating-point error, which would show as a lost percent.
    return NO_SHARE if share is None else int(share * 100 + 1e-9)


def _decode_share(byte: int) -> int | None:
    return None if byte == NO_SHARE else byte


class GroupHierarchy:
    """Groups with their parents; a group without parents is a root."""

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
        """The fewest groups that all given groups can be reached from: the roots.

        A cycle that no root leads to is represented by its first group by name.
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
        """A chain of parents down to the group, from a root or the closing point of a cycle."""
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

    `scored` entities have a score; `score` is the sum of their scores in percent.
    """

    owner: str
    system: str
    kind: str
    level: int
    entities: int
    scored: int
    score: int


class LevelTally(NamedTuple):
    """Sums of counts: entities by level, and scores."""

    levels: Mapping[int, int]
    scored: int = 0
    score: int = 0

    @property
    def total(self) -> int:
        """The number of entities."""
        return sum(self.levels.values())

    @property
    def mean(self) -> float | None:
        """The mean score in percent of entities with a score."""
        return self.score / self.scored if self.scored else None

    def render(self, names: Mapping[int, str]) -> dict[str, Any]:
        """The tally as shown, with level names; entities below the first level are separate."""
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
    """Tallies by name, from rows of name, level, entities, scored entities and score sum.

    "" holds entities without a name. Each (name, level) occurs once.
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
    """The tallies of systems by domain; "" holds systems without a domain."""
    found: dict[str, list[LevelTally]] = {}
    for system, tally in own.items():
        found.setdefault(domains.get(system, ""), []).append(tally)
    return {name: add_tallies(tallies) for name, tallies in found.items()}


def roll_up_group(own: Mapping[str, LevelTally], tree: GroupHierarchy, group: str) -> LevelTally:
    """The tally of a group and all groups below it, each counted once."""
    return add_tallies(own[one] for one in sorted(tree.within(group)) if one in own)


def roll_up_groups(own: Mapping[str, LevelTally], tree: GroupHierarchy) -> dict[str, LevelTally]:
    """The tallies of groups with entities of their own or below them.

    Owners outside the hierarchy, such as users, have their own tallies.
    """
    above: dict[str, list[LevelTally]] = {}
    for owner, tally in own.items():
        for group in tree.above(owner):
            above.setdefault(group, []).append(tally)
    return {
        group: some[0] if len(some) == 1 else add_tallies(some) for group, some in above.items()
    }

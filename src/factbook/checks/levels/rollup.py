"""Rollups of a scorecard: entities by level for each owner, system, domain or kind.

A group's figures include those of all groups below it. They are sums of counts that are kept as
levels change, so nothing looks at entities.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from factbook.checks.levels.group_hierarchy import GroupHierarchy

# The rank of an entity that nothing counts for yet, or that is below the first level.
NO_LEVEL: Final = 0


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


NOTHING: Final = LevelTally({})


def added(tallies: Iterable[LevelTally]) -> LevelTally:
    """The sum of tallies."""
    levels: dict[int, int] = {}
    scored = score = 0
    for one in tallies:
        for level, count in one.levels.items():
            levels[level] = levels.get(level, 0) + count
        scored += one.scored
        score += one.score
    return LevelTally(levels, scored, score)


def tallied(counts: Iterable[tuple[str, int, int, int, int]]) -> dict[str, LevelTally]:
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


def by_domain(own: Mapping[str, LevelTally], domains: Mapping[str, str]) -> dict[str, LevelTally]:
    """The sums of systems by the domain that each is part of; "" holds the others."""
    found: dict[str, list[LevelTally]] = {}
    for system, tally in own.items():
        found.setdefault(domains.get(system, ""), []).append(tally)
    return {name: added(tallies) for name, tallies in found.items()}


def of_group(own: Mapping[str, LevelTally], tree: GroupHierarchy, group: str) -> LevelTally:
    """The sum of a group and of all groups below it, each counted once."""
    return added(own[one] for one in sorted(tree.within(group)) if one in own)


def by_group(own: Mapping[str, LevelTally], tree: GroupHierarchy) -> dict[str, LevelTally]:
    """The sums of each group that has something, itself or below it.

    Owners that are in no tree, such as users, are there by themselves.
    """
    above: dict[str, list[LevelTally]] = {}
    for owner, tally in own.items():
        for group in tree.above(owner):
            above.setdefault(group, []).append(tally)
    return {group: some[0] if len(some) == 1 else added(some) for group, some in above.items()}

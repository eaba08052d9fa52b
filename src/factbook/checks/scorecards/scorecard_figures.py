"""Figures of a scorecard for its readers: rollups and trends, with the names of its levels."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from factbook.catalog.store import hierarchy
from factbook.checks.definitions.scorecard import NO_LEVEL_WORD, Scorecard, parse
from factbook.checks.levels import label_store, level_store, rollup
from factbook.checks.levels.grader import GradedLevel
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.levels.rollup import NOTHING, LevelTally
from factbook.checks.scorecards import trend
from factbook.checks.scorecards.trend import EVERYBODY, TrendPoint
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import DAY
from factbook.errors import InputError, NotFoundError, one_of
from factbook.storage import Database

BY: Final = ("owner", "system", "domain", "kind")
MOST_DEPTH: Final = 5
_LABEL: Final = "label:"


class RollupGroup(NamedTuple):
    """An owner, system, domain, kind or value of a label, with its figures; "" is without one.

    `own` leaves out what is below it, and differs from `tally` for groups alone.
    """

    name: str
    tally: LevelTally
    own: LevelTally
    children: tuple["RollupGroup", ...] = ()

    def render(self, names: Mapping[int, str]) -> dict[str, Any]:
        """The group as shown, with the names of the ranks."""
        shown = {"name": self.name or None, **self.tally.render(names)}
        if self.own != self.tally:
            shown["own"] = self.own.render(names)
        if self.children:
            shown["children"] = [child.render(names) for child in self.children]
        return shown


class ScorecardInEffect(NamedTuple):
    """A scorecard in effect and its slot."""

    card: Scorecard
    slot: int

    @property
    def names(self) -> dict[int, str]:
        """The ids of the levels by rank."""
        return {rank: level.id for rank, level in enumerate(self.card.levels, 1)}

    def named(self, graded: GradedLevel) -> tuple[str | None, str | None]:
        """The ids of the level and of the level if known; None below the first."""
        names = self.names
        return names.get(graded.level), names.get(graded.level_if_known)

    def words(self, graded: GradedLevel) -> tuple[str | None, str | None]:
        """The same, with `none` below the first; None where the scorecard has no levels."""
        below = NO_LEVEL_WORD if self.card.levels else None
        level, if_known = self.named(graded)
        return level or below, if_known or below


async def in_effect(database: Database, scorecard_id: str) -> ScorecardInEffect:
    """The scorecard in effect; raises NotFoundError, also before its first grading is done."""
    stored = await scorecard_store.existing(database, scorecard_id)
    if stored.slot is None or stored.published is None:
        raise NotFoundError(f"The scorecard {scorecard_id} has no results yet.")
    return ScorecardInEffect(parse(stored.published), stored.slot)


async def rolled_up(
    database: Database, given: ScorecardInEffect, by: str, group: str | None = None, depth: int = 1
) -> list[RollupGroup]:
    """The figures by owner, system, domain, kind or `label:NAME`, by name.

    By owner they begin with `group`, or with those at the top, and have `depth` levels below.
    Raises InputError for anything else.
    """
    if by.startswith(_LABEL) and len(by) > len(_LABEL):
        label = by.removeprefix(_LABEL)
        return _flat(await label_store.tallies(database, given.slot, label))
    if by == "owner":
        own = await level_store.by_owner(database, given.slot)
        tree = GroupHierarchy(await hierarchy.group_parents(database))
        return _groups(own, tree, group, depth)
    if by not in BY:
        raise InputError(f"by: {one_of(by, BY)}, or label: and the name of one.")
    if by == "kind":
        return _flat(await level_store.by_kind(database, given.slot))
    systems = await level_store.by_system(database, given.slot)
    if by == "system":
        return _flat(systems)
    return _flat(rollup.by_domain(systems, await hierarchy.system_domains(database)))


async def over_time(
    database: Database,
    given: ScorecardInEffect,
    group: str | None,
    first: int,
    now: int,
    step: int = 1,
    tally: LevelTally | None = None,
) -> list[TrendPoint]:
    """The figures of a group, or of everybody, from a day on, today's as they are now.

    The `tally` is that of today, where it is known.
    """
    today = now // DAY
    if tally is None:
        tally = await _total(database, given, group)
    owner = EVERYBODY if group is None else group
    kept = await trend.of_group(database, given.card.id, owner, first, today - 1)
    points = [*kept, TrendPoint(today, trend.figures(given.card, tally))]
    return trend.series(points, first, today, step)


async def _total(database: Database, given: ScorecardInEffect, group: str | None) -> LevelTally:
    owners = None
    if group is not None:
        tree = GroupHierarchy(await hierarchy.group_parents(database))
        owners = sorted(tree.within(group))
    return await level_store.total(database, given.slot, owners)


def _flat(tallies: Mapping[str, LevelTally]) -> list[RollupGroup]:
    return [RollupGroup(name, tally, tally) for name, tally in sorted(tallies.items())]


def _groups(
    own: Mapping[str, LevelTally], tree: GroupHierarchy, group: str | None, depth: int
) -> list[RollupGroup]:
    tallies = rollup.by_group(own, tree)

    def at(path: tuple[str, ...]) -> RollupGroup:
        name = path[-1]
        below: set[str] = set()
        if len(path) <= min(depth, MOST_DEPTH):
            # A group that holds itself by way of others is not shown below itself.
            below = (tree.children.get(name, set()) & tallies.keys()) - set(path)
        children = tuple(at((*path, child)) for child in sorted(below))
        return RollupGroup(name, tallies.get(name, NOTHING), own.get(name, NOTHING), children)

    return [at((name,)) for name in ([group] if group is not None else tree.tops(tallies))]

"""Scorecards of the overview: pass rate, levels, trend and change, and the teams of each."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from factbook.checks.levels import level_store, rollup
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.levels.rollup import NOTHING, LevelTally
from factbook.checks.scorecards import scorecard_figures, trend
from factbook.checks.scorecards.scorecard_figures import ScorecardInEffect
from factbook.checks.scorecards.trend import TrendPoint
from factbook.checks.states.count_store import StateCounts
from factbook.clock import DAY
from factbook.storage import Database
from factbook.web.charts.charts import sparkline
from factbook.web.charts.svg import ident_of
from factbook.web.checks import scorecard_list, shares
from factbook.web.checks.shares import ResultFigures
from factbook.web.data_sources.fact_across import Share
from factbook.web.entity import team_scorecards
from factbook.web.site import formats

_DAYS: Final = 30
_WEEK: Final = 7  # days
_TEAMS: Final = 8


class OwnedLevels(NamedTuple):
    """A scorecard in effect, with the sums of each owner."""

    given: ScorecardInEffect
    own: Mapping[str, LevelTally]

    def of_group(self, tree: GroupHierarchy, group: str) -> LevelTally:
        """The sum of a group with all below it."""
        return rollup.of_group(self.own, tree, group)


class LevelShift(NamedTuple):
    """Entities at a level a week ago and now; `path` leads to those of now."""

    title: str
    before: int
    after: int
    path: str


class ScorecardStanding(NamedTuple):
    """A scorecard over everything; `moves` are of levels in a week."""

    title: str
    path: str
    entities: int
    scored: int
    figures: ResultFigures
    levels: Sequence[Share]
    line: Markup | None
    change: str
    moves: Sequence[LevelShift]


class TeamScores(NamedTuple):
    """A team with its mean score in each scorecard, as a bar of 100; None where it has none."""

    title: str
    path: str | None
    scores: Sequence[Share | None]


async def of_scorecards(
    database: Database, given: Iterable[ScorecardInEffect]
) -> list[OwnedLevels]:
    """The sums of some scorecards."""
    return [OwnedLevels(one, await level_store.by_owner(database, one.slot)) for one in given]


async def standing(
    database: Database, levels: OwnedLevels, counts: Mapping[str, StateCounts], now: int
) -> ScorecardStanding:
    """The standing of a scorecard over everybody's entities."""
    card, tally = levels.given.card, rollup.added(levels.own.values())
    first = now // DAY - _DAYS
    points = await scorecard_figures.over_time(
        database, levels.given, None, first, now, tally=tally
    )
    scores = [(at, score) for at, score in scorecard_list.points(points) if score is not None]
    bars = shares.of_levels(card, tally)
    line = None
    if len(scores) > 1:
        title = f"Mean score of {card.title}, {_DAYS} days"
        line = sparkline(
            scores,
            title,
            notes=scorecard_list.populations(points),
            ident=ident_of("overview", card.id),
        )
    return ScorecardStanding(
        card.title,
        shares.scorecard_path(card.id),
        tally.total,
        tally.scored,
        scorecard_list.figures(card, counts),
        bars,
        line,
        team_scorecards.change(scores, _DAYS),
        _moves([*(level.id for level in card.levels)][::-1], bars, points),
    )


def by_team(levels: Sequence[OwnedLevels], tree: GroupHierarchy) -> tuple[list[TeamScores], int]:
    """The teams at the top with all below them, the lowest score first, and how many are left.

    Where one team is above all others, they are those right below it.
    """
    sums = [rollup.by_group(one.own, tree) for one in levels]
    named = set[str]().union(*sums)
    teams = tree.tops(named)
    if len(teams) == 1 and (below := tree.children.get(teams[0], set()) & named - {teams[0]}):
        teams = sorted(below)
    first = sums[0] if sums else {}
    teams.sort(key=lambda team: (_mean(first.get(team, NOTHING)), team))
    rows = [
        TeamScores(
            formats.short_owner(team) or "without an owner",
            formats.entity_path(team) if team else None,
            [
                score(one.given, found.get(team, NOTHING), team)
                for one, found in zip(levels, sums, strict=True)
            ],
        )
        for team in teams[:_TEAMS]
    ]
    return rows, len(teams[_TEAMS:])


def score(given: ScorecardInEffect, tally: LevelTally, owner: str) -> Share | None:
    """The mean score of an owner, which leads to what it is the mean of; None without one."""
    if tally.mean is None:
        return None
    card, mean = given.card, round(tally.mean)
    path = (
        shares.scorecard_path(card.id, team=owner)
        if owner.startswith("group:")
        else shares.scorecard_path(card.id, "entities", owner=owner or "-")
    )
    return Share(card.title, mean, 100, path, population=tally.scored)


def _mean(tally: LevelTally) -> float:
    """The mean score to sort by; what has none is last."""
    return 101 if tally.mean is None else tally.mean


def _moves(
    ids: Sequence[str], bars: Sequence[Share], points: Sequence[TrendPoint]
) -> list[LevelShift]:
    """Differences from a week ago; none without levels, or without figures of then."""
    if not bars or len(points) <= _WEEK:
        return []
    before: trend.TrendFigures = points[-1 - _WEEK].figures
    return [
        LevelShift(bar.label, was, bar.value, bar.path or "")
        for id_, bar in zip([*ids, ""], bars, strict=True)
        if (was := before.levels.get(id_, 0)) != bar.value
    ]

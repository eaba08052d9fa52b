"""Scorecards over what a team owns or a system or domain contains: levels, score and trend."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from factbook.catalog.store import related_entities
from factbook.checks import scorecard_figures
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.checks.definitions.scorecard import NO_LEVEL_WORD, Scorecard
from factbook.checks.results import grader, level_store, result_queries
from factbook.checks.results.grader import NO_TALLY, GroupHierarchy, LevelTally
from factbook.checks.results.level_store import AtLevel
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.scorecard_figures import ScorecardInEffect, TrendPoint
from factbook.clock import DAY
from factbook.errors import FactbookError, InputError
from factbook.storage import Database
from factbook.web import shares
from factbook.web.charts import ident_of, sparkline
from factbook.web.shares import Share, describe_populations
from factbook.web.site import formats

_SHOWN: Final = 5
_DAYS: Final = 30
_BELOW: Final = 20
# Of a level of more than one in so many, entities are probed until there are enough.
_FREQUENT: Final = 8
NO_QUERY: Final[Mapping[str, str]] = {}


class TeamScorecard(NamedTuple):
    """A scorecard over some entities: their levels as bars, mean score, and its change in words.

    The score is the mean of the `scored` among the entities.
    """

    title: str
    path: str
    entities: int
    scored: int
    score: str
    change: str
    line: Markup | None
    levels: list[Share]


class GroupBelow(NamedTuple):
    """A group below another, with all below it.

    By scorecard its entities, those with a score, and the mean of these.
    """

    ref: str
    scores: list[tuple[int, int, str]]


class TeamStanding(NamedTuple):
    """The scorecards of a team, and the groups below it; `more` of these are not shown."""

    scorecards: list[TeamScorecard]
    below: list[GroupBelow]
    more: int
    age: ResultAge


async def in_effect(database: Database) -> list[ScorecardInEffect]:
    """The scorecards that have results and that this release can read, by title."""
    found = []
    for stored in await scorecard_store.everything(database):
        if stored.slot is None or stored.published is None:
            continue
        try:
            found.append(
                ScorecardInEffect(scorecard.parse_scorecard(stored.published), stored.slot)
            )
        except FactbookError:
            continue  # one of another release, which the log tells of
    return sorted(found, key=lambda one: (formats.naturally(one.card.title), one.card.id))


async def build_level_condition(
    database: Database, cards: Sequence[ScorecardInEffect], text: str
) -> AtLevel:
    """The condition in `scorecard/level`; raises InputError for a level that is none."""
    scorecard_id, _, level = text.partition("/")
    for card, slot in cards:
        if card.id == scorecard_id and (level == NO_LEVEL_WORD or level in card.ranks):
            rank = 0 if level == NO_LEVEL_WORD else card.rank(level)
            tally = await level_store.count_all_levels(database, slot)
            is_frequent = tally.levels.get(rank, 0) * _FREQUENT >= tally.total > 0
            return AtLevel(slot, rank, is_frequent)
    raise InputError("No scorecard with results has this level.")


async def age(database: Database, given: Iterable[ScorecardInEffect], now: int) -> ResultAge:
    """The age of the figures of these scorecards."""
    checks = {id_ for one in given for id_ in one.card.checks}
    return await result_queries.read_age_of_checks(database, checks, now)


async def of_entity(database: Database, ref: str, now: int) -> TeamStanding | None:
    """The standing of a group, system or domain; None without scorecards."""
    given = (await in_effect(database))[:_SHOWN]
    if not given:
        return None
    if ref.startswith("group:"):
        return await _of_group(database, given, ref, now)
    cards = [_scorecard(one.card, await _tally(database, one, ref)) for one in given]
    path = f"{formats.entity_path(ref)}/contents"
    cards = [
        one._replace(path=path, levels=_leading(card.card, one, path))
        for card, one in zip(given, cards, strict=True)
    ]
    return TeamStanding(cards, [], 0, await age(database, given, now))


async def _of_group(
    database: Database, given: Sequence[ScorecardInEffect], group: str, now: int
) -> TeamStanding:
    tree = GroupHierarchy(await related_entities.read_group_parents(database))
    below = sorted(tree.children.get(group, set()))
    rows: dict[str, list[tuple[int, int, str]]] = {child: [] for child in below[:_BELOW]}
    cards = []
    for one in given:
        own = await level_store.count_levels_by_owner(database, one.slot)
        tally = grader.roll_up_group(own, tree, group)
        points = await _points(database, one.card, tally, group, now // DAY)
        cards.append(_scorecard(one.card, tally, {"team": group}, points))
        for child, found in rows.items():
            part = grader.roll_up_group(own, tree, child)
            found.append((part.total, part.scored, _score(part)))
    groups = [GroupBelow(child, found) for child, found in rows.items()]
    return TeamStanding(cards, groups, len(below[_BELOW:]), await age(database, given, now))


async def _points(
    database: Database, card: Scorecard, tally: LevelTally, group: str, today: int
) -> list[TrendPoint]:
    """The days of the last weeks on which something had a score, today as it is now."""
    first = today - _DAYS
    kept = await scorecard_figures.read_group_trend(database, card.id, group, first, today - 1)
    points = [*kept, TrendPoint(today, scorecard_figures.compute_figures(card, tally))]
    return [
        point
        for point in scorecard_figures.make_series(points, first, today)
        if point.figures.scored
    ]


async def _tally(database: Database, one: ScorecardInEffect, ref: str) -> LevelTally:
    """The sum over a system or a domain."""
    own = await level_store.count_levels_by_system(database, one.slot)
    if ref.startswith("domain:"):
        own = grader.roll_up_domains(own, await related_entities.read_system_domains(database))
    return own.get(ref, NO_TALLY)


def _scorecard(
    card: Scorecard,
    tally: LevelTally,
    query: Mapping[str, str] = NO_QUERY,
    points: Sequence[TrendPoint] = (),
) -> TeamScorecard:
    scores = [(one.day * DAY, one.figures.mean or 0.0) for one in points]
    return TeamScorecard(
        card.title,
        shares.make_scorecard_path(card.id, **query),
        tally.total,
        tally.scored,
        _score(tally),
        change(scores, _DAYS),
        sparkline(
            [*scores],
            f"Score of {card.title} over {_DAYS} days",
            notes=describe_populations(points),
            ident=ident_of("team", card.id),
        )
        if len(scores) > 1
        else None,
        shares.make_level_shares(card, tally, **query),
    )


def _leading(card: Scorecard, shown: TeamScorecard, path: str) -> list[Share]:
    """The levels of a scorecard, each with the path of the entities that are at it."""
    ids = [*(one.id for one in reversed(card.levels)), NO_LEVEL_WORD]
    return [
        share._replace(path=f"{path}?level={quote(f'{card.id}/{id_}', safe='')}")
        for share, id_ in zip(shown.levels, ids, strict=True)
    ]


def _score(tally: LevelTally) -> str:
    return "" if tally.mean is None else f"{tally.mean:.0f}%"


def change(scores: Sequence[tuple[int, float]], days: int) -> str:
    """The change of a mean score since the first day of its trend, in words."""
    if len(scores) < 2:
        return ""
    difference = round(scores[-1][1] - scores[0][1])
    if not difference:
        return f"as {days} days ago"
    sign = "+" if difference > 0 else "\N{MINUS SIGN}"
    return f"{sign}{formats.counted(abs(difference), 'point')} in {days} days"

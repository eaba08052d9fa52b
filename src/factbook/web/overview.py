"""Overview: the viewer's entities, scorecards, checks that need attention, sources in trouble."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.catalog import people_trust
from factbook.catalog.store import browse, entity_query, related_entities, stored_sets
from factbook.catalog.store.entity_query import count_kinds
from factbook.catalog.store.related_entities import Belonging, BelongingEntity
from factbook.checks import digests, scorecard_figures
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.results import grader, level_store, result_queries, state_store
from factbook.checks.results.grader import NO_TALLY, GroupHierarchy, LevelTally
from factbook.checks.results.result_queries import FailingCounts
from factbook.checks.results.state_store import StateCounts
from factbook.checks.scorecard_figures import ScorecardInEffect, TrendPoint
from factbook.clock import DAY, HOUR
from factbook.facts import freshness
from factbook.http.requests import Reply
from factbook.importers import registry
from factbook.importers.registry import ImporterStatus
from factbook.storage import Database
from factbook.web import (
    data_sources,
    entity_checks,
    entity_view,
    fact_across,
    formats,
    scorecards,
    shares,
)
from factbook.web.charts import draw_sparkline, make_ident
from factbook.web.data_sources import SourceRow
from factbook.web.entity_checks import ContentsTable
from factbook.web.formats import count_noun, quote_segment
from factbook.web.pages import PageContext, PageRoute
from factbook.web.shares import ResultFigures, Share, describe_populations, make_trend_points

_DAYS: Final = 30
_DAYS_OF_CHANGE: Final = 7
_TEAMS: Final = 8


class OwnedLevels(NamedTuple):
    """A scorecard in effect, with the level tally of each owner."""

    given: ScorecardInEffect
    own: Mapping[str, LevelTally]

    def of_group(self, tree: GroupHierarchy, group: str) -> LevelTally:
        """The tally of a group including all groups below it."""
        return grader.roll_up_group(self.own, tree, group)


class LevelShift(NamedTuple):
    """Entities at a level a week ago and now; `path` leads to the current ones."""

    title: str
    before: int
    after: int
    path: str


class ScorecardStanding(NamedTuple):
    """A scorecard over the whole catalog; `moves` are the level changes in a week."""

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
    """A team with its mean score in each scorecard, as a bar of 100; None without a score."""

    title: str
    path: str | None
    scores: Sequence[Share | None]


async def count_owned_levels(
    database: Database, given: Iterable[ScorecardInEffect]
) -> list[OwnedLevels]:
    """Tally the levels of these scorecards by owner."""
    return [
        OwnedLevels(one, await level_store.count_levels_by_owner(database, one.slot))
        for one in given
    ]


async def make_scorecard_standing(
    database: Database, levels: OwnedLevels, counts: Mapping[str, StateCounts], now: int
) -> ScorecardStanding:
    """The standing of a scorecard over the whole catalog."""
    card, tally = levels.given.card, grader.add_tallies(levels.own.values())
    first = now // DAY - _DAYS
    points = await scorecard_figures.read_trend(
        database, levels.given, None, first, now, tally=tally
    )
    scores = [(at, score) for at, score in make_trend_points(points) if score is not None]
    bars = shares.make_level_shares(card, tally)
    line = None
    if len(scores) > 1:
        title = f"Mean score of {card.title}, {_DAYS} days"
        line = draw_sparkline(
            scores,
            title,
            notes=describe_populations(points),
            ident=make_ident("overview", card.id),
        )
    return ScorecardStanding(
        card.title,
        shares.make_scorecard_path(card.id),
        tally.total,
        tally.scored,
        scorecards.sum_result_figures(card, counts),
        bars,
        line,
        entity_checks.change(scores, _DAYS),
        _list_level_shifts([*(level.id for level in card.levels)][::-1], bars, points),
    )


def rank_teams(levels: Sequence[OwnedLevels], tree: GroupHierarchy) -> tuple[list[TeamScores], int]:
    """The top teams including subteams, lowest score first, and the number of teams left out.

    If a single team is above all others, the teams directly below it.
    """
    sums = [grader.roll_up_groups(one.own, tree) for one in levels]
    named = set[str]().union(*sums)
    teams = tree.tops(named)
    if len(teams) == 1 and (below := tree.children.get(teams[0], set()) & named - {teams[0]}):
        teams = sorted(below)
    first = sums[0] if sums else {}
    means = {team: first.get(team, NO_TALLY).mean for team in teams}
    # Teams without a score come last.
    teams.sort(key=lambda team: (means[team] is None, means[team] or 0.0, team))
    rows = [
        TeamScores(
            formats.shorten_owner(team) or "without an owner",
            formats.make_entity_path(team) if team else None,
            [
                make_team_score(one.given, found.get(team, NO_TALLY), team)
                for one, found in zip(levels, sums, strict=True)
            ],
        )
        for team in teams[:_TEAMS]
    ]
    return rows, len(teams[_TEAMS:])


def make_team_score(given: ScorecardInEffect, tally: LevelTally, owner: str) -> Share | None:
    """The mean score of an owner, linked to the entities behind it; None without a score."""
    if tally.mean is None:
        return None
    card, mean = given.card, round(tally.mean)
    path = (
        shares.make_scorecard_path(card.id, team=owner)
        if owner.startswith("group:")
        else shares.make_scorecard_path(card.id, "entities", owner=owner or "-")
    )
    return Share(card.title, mean, 100, path, population=tally.scored)


def _list_level_shifts(
    ids: Sequence[str], bars: Sequence[Share], points: Sequence[TrendPoint]
) -> list[LevelShift]:
    """Differences from a week ago; none without levels or earlier figures."""
    if not bars or len(points) <= _DAYS_OF_CHANGE:
        return []
    before: scorecard_figures.TrendFigures = points[-1 - _DAYS_OF_CHANGE].figures
    return [
        LevelShift(bar.label, was, bar.value, bar.path or "")
        for id_, bar in zip([*ids, ""], bars, strict=True)
        if (was := before.levels.get(id_, 0)) != bar.value
    ]


_WEEK: Final = 7 * DAY
_CHECKS_SHOWN: Final = 5


class ChecksInTrouble(NamedTuple):
    """Checks by number of entities, highest first; `pass_again` counts recoveries in a week.

    `is_cut`: only the last `most` changes of the week were counted.
    """

    worst: list[Share]
    newly_failing: list[Share]
    gone_unknown: list[Share]
    pass_again: int
    is_cut: bool
    most: int = digests.MOST_RECENT_CHECKS


async def find_checks_in_trouble(
    database: Database, counts: Mapping[str, StateCounts], titles: Mapping[str, str], now: int
) -> ChecksInTrouble:
    """Checks in effect that need attention; `counts` are theirs."""
    found = await digests.count_recent_changes(database, now - _WEEK, now)
    return ChecksInTrouble(
        _make_trouble_bars(
            {id_: one.failing for id_, one in counts.items()}, "fail", counts, titles
        ),
        _make_trouble_bars(found.to("fail"), "fail", counts, titles),
        _make_trouble_bars(found.to("unknown"), "unknown", counts, titles),
        sum(number for id_, number in found.to("pass").items() if id_ in counts),
        found.is_cut,
    )


def _make_trouble_bars(
    numbers: Mapping[str, int],
    word: str,
    counts: Mapping[str, StateCounts],
    titles: Mapping[str, str],
) -> list[Share]:
    """The checks with the highest numbers, linked to their entities in a state."""
    found = [(id_, number) for id_, number in numbers.items() if number and id_ in counts]
    found.sort(key=lambda one: (-one[1], one[0]))
    return [
        Share(
            titles.get(id_, id_),
            number,
            max(number, sum(counts[id_][:3])),
            shares.make_check_path(id_, state=word),
            shares.STATE_KINDS[word],
        )
        for id_, number in found[:_CHECKS_SHOWN]
    ]


_GROUPS: Final = 3
_LOOKED_AT: Final = 100  # entities of a group
_OWN_SHOWN: Final = 6
_NONE: Final = FailingCounts(0, 0, 0)


class OwnGroup(NamedTuple):
    """A group of the viewer: its mean scores, and the first of its entities.

    `is_part`: the group has more entities than were examined to find the first ones.
    """

    ref: str
    scores: list[Share]
    entities: int
    contents: ContentsTable
    is_part: bool


class OwnGroups(NamedTuple):
    """The groups of the viewer; for `others`, only names are shown."""

    shown: list[OwnGroup]
    others: list[str]


async def list_own_groups(
    visit: PageContext, tree: GroupHierarchy, levels: Sequence[OwnedLevels]
) -> OwnGroups:
    """The groups that the person signed in is a direct member of."""
    found = sorted(await people_trust.read_stated_groups(visit.state.database, visit.person.ref))
    shown = [await _make_own_group(visit, one, tree, levels) for one in found[:_GROUPS]]
    return OwnGroups(shown, found[_GROUPS:])


async def _make_own_group(
    visit: PageContext, group: str, tree: GroupHierarchy, levels: Sequence[OwnedLevels]
) -> OwnGroup:
    database = visit.state.database
    owned = Belonging("ownedBy", sorted(tree.within(group)))
    found = await related_entities.page_belonging(database, owned, None, _LOOKED_AT)
    counts = await result_queries.count_failing(database, [one.id for one in found.entities])

    def place(one: BelongingEntity) -> tuple[bool, int, int, str]:
        own = counts.get(one.id, _NONE)
        return not one.ref.startswith("component:"), -own.failing, -own.unknown, one.ref

    first = sorted(found.entities, key=place)[:_OWN_SHOWN]
    scores = [make_team_score(one.given, one.of_group(tree, group), group) for one in levels]
    return OwnGroup(
        group,
        [one for one in scores if one is not None],
        found.total,
        await entity_checks.make_contents_rows(visit, first, [one.given for one in levels]),
        found.has_more,
    )


_SOURCES_SHOWN: Final = 10
_TOPICS: Final = {"sources": SOURCE_READ, "importers": CATALOG_READ}
_TONES: Final = {"failed": "bad", "partial": "warn", "held": "warn"}


class SourceTrouble(NamedTuple):
    """A source in trouble: its type, its state in words, the kind of state, and the reason."""

    title: str
    path: str
    type: str
    words: str
    kind: str
    succeeded_at: int | None
    reason: str


class SourceStandings(NamedTuple):
    """The first sources in trouble, the number of others, and how many sources supply facts.

    `topics` are the live topics that can change the trouble visible to the person.
    """

    troubled: list[SourceTrouble]
    more: int
    collected: int
    importers: int
    topics: list[str]


async def list_source_standings(visit: PageContext) -> SourceStandings:
    """The standing of all sources visible to the person."""
    rows = await data_sources.list_source_rows(visit) if visit.may(SOURCE_READ) else []
    found = [_describe_source(row, visit.now) for row in rows if row.doing.is_problem]
    importers: list[ImporterStatus] = []
    if visit.may(CATALOG_READ):
        known = await visit.state.importers.current()
        importers = await registry.list_importer_statuses(
            visit.state.database, known.values(), visit.now
        )
        found += [
            SourceTrouble(
                importer,
                f"/imports/{quote_segment(importer)}",
                "importer",
                "cannot be used",
                "bad",
                None,
                problem,
            )
            for importer, problem in sorted(visit.state.importers.problems.items())
        ]
        found += [
            trouble
            for one in importers
            if (trouble := _describe_importer_trouble(one, visit.now)) is not None
        ]
    found.sort(key=lambda one: (one.kind != "bad", one.title.casefold()))
    bring = sum(map(_supplies_facts, rows))
    topics = [topic for topic, need in _TOPICS.items() if visit.may(need)]
    return SourceStandings(
        found[:_SOURCES_SHOWN], len(found[_SOURCES_SHOWN:]), bring, len(importers), topics
    )


def _supplies_facts(row: SourceRow) -> bool:
    """Return true for a source that has a schedule or has received a push."""
    if row.way == "read" or row.source.draft:
        return False
    return row.pushed_at is not None if row.way == "pushed" else row.source.cadence is not None


def _describe_source(row: SourceRow, now: int) -> SourceTrouble:
    reason = row.problem
    if reason is None:
        state, reason = freshness.source_condition(
            row.source, row.health, now, pushed_at=row.pushed_at
        )
        # The page shows the start of the outage separately.
        reason = (state == "down" and row.last and row.last.error) or reason
    return SourceTrouble(
        row.source.title,
        f"/data-sources/{quote_segment(row.source.id)}",
        "pushed" if row.way == "pushed" else "integration" if row.is_builtin else "custom",
        row.doing.words,
        row.doing.kind,
        row.health.succeeded_at if row.health else row.pushed_at,
        reason,
    )


def _describe_importer_trouble(one: ImporterStatus, now: int) -> SourceTrouble | None:
    """Trouble of an importer's last run, even while the next run is in progress."""
    word = one._replace(under_way=None).state
    kind, reason = _TONES.get(word), one.last.error if one.last else ""
    if word == "held" and not reason:
        reason = f"{count_noun(one.held, 'removal waits', 'removals wait')} for a decision"
    is_idle = one.under_way is None and one.next_at is not None
    if kind is None and is_idle and (one.next_at or 0) < now - HOUR and one.last is not None:
        word, kind, reason = "late", "warn", "A run was due and did not start"
    if kind is None:
        return None
    path = f"/imports/{quote_segment(one.importer.id)}"
    return SourceTrouble(one.importer.title, path, "importer", word, kind, one.complete_at, reason)


_CHANGES: Final = 6
_KINDS: Final = 8
_SCORECARDS: Final = 3


async def show_overview(visit: PageContext) -> Reply:
    """Page with the state of the catalog at a glance."""
    database = visit.state.database
    kinds = await count_kinds(database)
    total = sum(kinds.values())
    if not total:
        return visit.page("overview-empty.html")
    asked = visit.query("kind", "component")
    kind = asked if asked in kinds else None
    checked = await _make_check_panel(visit) if visit.may(CHECK_READ) else _UNCHECKED
    tree = GroupHierarchy(await related_entities.read_group_parents(database))
    counted = partial(browse.count_compliance, database, kind)
    points = await browse.remember_count(database, visit.now, f"completeness of {kind!r}", counted)
    levels: list[OwnedLevels] = checked["levels"]
    teams, more_teams = rank_teams(levels, tree)
    return visit.page(
        "overview.html",
        total=total,
        sets=len(await stored_sets.list_sets(database)),
        kinds=list(kinds.items())[:_KINDS],
        other_kinds=len(kinds) > _KINDS,
        kind=kind,
        kind_options=[("", "All kinds"), *((each, formats.get_kind_title(each)) for each in kinds)],
        points=_count_compliance_points(points, kind),
        age=await result_queries.read_age_of_checks(database, None, visit.now),
        mine=await list_own_groups(visit, tree, levels),
        most=entity_query.COUNT_BOUND,
        teams=teams,
        more_teams=more_teams,
        sources=await list_source_standings(visit),
        changes=await browse.read_largest_changes(database, visit.now - _WEEK, _CHANGES),
        **checked,
    )


_UNCHECKED: Final[Mapping[str, Any]] = {
    "may_read_checks": False,
    "levels": [],
    "cards": [],
    "more_cards": 0,
    "checks": None,
}


async def _make_check_panel(visit: PageContext) -> Mapping[str, Any]:
    """Scorecards and checks for the page; `checks` is None if there are none."""
    database, now = visit.state.database, visit.now
    given = await entity_checks.list_scorecards_in_effect(database)
    levels = await count_owned_levels(database, given[:_SCORECARDS])
    counts = await state_store.count_totals(database)
    checks = None
    if counts:
        titles = {one.id: one.title for one in await check_store.everything(database)}
        checks = await find_checks_in_trouble(database, counts, titles, now)
    return {
        "may_read_checks": True,
        "levels": levels,
        "cards": [await make_scorecard_standing(database, one, counts, now) for one in levels],
        "more_cards": len(given[_SCORECARDS:]),
        "checks": checks,
    }


def _count_compliance_points(counts: Mapping[int, int], kind: str | None) -> list[Share]:
    """Number of entities that meet each point of compliance."""
    whole, query = sum(counts.values()), f"?kind={formats.quote_segment(kind)}" if kind else ""
    return [
        Share(
            point.title,
            sum(count for has, count in counts.items() if point.is_met(has)),
            whole,
            fact_across.make_fact_path(point.source, point.fact) + query,
        )
        for point in entity_view.list_compliance_points(kind)
    ]


OVERVIEW: Sequence[PageRoute] = (PageRoute("GET", "/", show_overview, (CATALOG_READ, SOURCE_READ)),)

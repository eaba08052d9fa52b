"""Page of the overview: the viewer's own, scorecards, what needs attention and what changed."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.catalog.store import hierarchy, overview, stored_sets, totals
from factbook.checks.levels.group_hierarchy import GroupHierarchy
from factbook.checks.states import count_store
from factbook.checks.versions.check_store import check_store
from factbook.clock import DAY
from factbook.http.requests import Reply
from factbook.web.data_sources import fact_across
from factbook.web.data_sources.fact_across import Share
from factbook.web.entity import about, team_scorecards
from factbook.web.overview import attention, own, standings, trouble
from factbook.web.overview.standings import OwnedLevels
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_WEEK: Final = 7 * DAY
_CHANGES: Final = 6
_KINDS: Final = 8
_SCORECARDS: Final = 3


async def show(visit: PageContext) -> Reply:
    """Page of the state of everything at a glance."""
    database = visit.state.database
    kinds = await overview.kinds(database)
    total = sum(kinds.values())
    if not total:
        return visit.page("overview-empty.html")
    asked = visit.query("kind", "component")
    kind = asked if asked in kinds else None
    checked = await _checked(visit) if visit.may(CHECK_READ) else _UNCHECKED
    tree = GroupHierarchy(await hierarchy.group_parents(database))
    counted = partial(overview.compliance, database, kind)
    points = await overview.kept(database, visit.now, f"completeness of {kind!r}", counted)
    levels: list[OwnedLevels] = checked["levels"]
    teams, more_teams = standings.by_team(levels, tree)
    return visit.page(
        "overview.html",
        total=total,
        sets=len(await stored_sets.summaries(database)),
        kinds=list(kinds.items())[:_KINDS],
        other_kinds=len(kinds) > _KINDS,
        kind=kind,
        kind_options=[("", "All kinds"), *((each, formats.kind_title(each)) for each in kinds)],
        points=_points(points, kind),
        mine=await own.groups(visit, tree, levels),
        most=totals.BOUND,
        teams=teams,
        more_teams=more_teams,
        sources=await trouble.sources(visit),
        changes=await overview.largest_changes(database, visit.now - _WEEK, _CHANGES),
        **checked,
    )


_UNCHECKED: Final[Mapping[str, Any]] = {
    "may_read_checks": False,
    "levels": [],
    "cards": [],
    "more_cards": 0,
    "checks": None,
}


async def _checked(visit: PageContext) -> Mapping[str, Any]:
    """Scorecards and checks for the page; `checks` is None where there are none."""
    database, now = visit.state.database, visit.now
    given = await team_scorecards.in_effect(database)
    levels = await standings.of_scorecards(database, given[:_SCORECARDS])
    counts = await count_store.totals(database)
    checks = None
    if counts:
        titles = {one.id: one.title for one in await check_store.everything(database)}
        checks = await attention.checks_in_trouble(database, counts, titles, now)
    return {
        "may_read_checks": True,
        "levels": levels,
        "cards": [await standings.standing(database, one, counts, now) for one in levels],
        "more_cards": len(given[_SCORECARDS:]),
        "checks": checks,
    }


def _points(counts: Mapping[int, int], kind: str | None) -> list[Share]:
    """Number of entities that meet each point of compliance."""
    whole, query = sum(counts.values()), f"?kind={formats.segment(kind)}" if kind else ""
    return [
        Share(
            point.title,
            sum(count for has, count in counts.items() if point.is_met(has)),
            whole,
            fact_across.path_of(point.source, point.fact) + query,
        )
        for point in about.points_of(kind)
    ]


OVERVIEW: Sequence[PageRoute] = (PageRoute("GET", "/", show, (CATALOG_READ, SOURCE_READ)),)

"""Overview: the catalog and its sources at a glance, and the first steps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import overview, stored_sets
from factbook.clock import DAY
from factbook.datasources.registry import SourceSnapshot
from factbook.facts import health, source_overview
from factbook.facts.datasource import DataSource
from factbook.http.requests import Reply
from factbook.scheduling import runs
from factbook.scheduling.runs import SourceHealth
from factbook.web.data_sources import fact_across, table_rows
from factbook.web.entity import about
from factbook.web.site import formatting
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_WEEK = 7 * DAY
_CHANGES = 6
_KINDS = 10

# The states of sources, each with its kind of the pages.
_STATES = (("up", "good"), ("partly failing or late", "warn"), ("down", "bad"), ("new", ""))


class Bar(NamedTuple):
    """A figure as a bar, drawn as a part of `most`; `path` is a page on this site."""

    label: str
    value: int
    most: int
    path: str | None = None
    kind: str = ""


class Freshness(NamedTuple):
    """Age of a source's facts; `kind` is a state of the pages."""

    source: DataSource
    words: str
    kind: str
    succeeded_at: int | None
    covered: int
    entities: int
    error: str | None


async def show(visit: PageContext) -> Reply:
    """Page of the state of everything at a glance."""
    state = visit.state
    database, now = state.database, visit.now
    kinds = await overview.kinds(database)
    total = sum(kinds.values())
    if not total:
        return visit.page("overview-empty.html")
    asked = visit.query("kind", "component")
    kind = asked if asked in kinds else None
    counts = await overview.compliance(database, kind)
    known = await state.registry.current()
    pushed = [id_ for id_, one in known.definitions.items() if one.type == "push"]
    times = await source_overview.last_written(database, pushed)
    fresh = freshness(known, await runs.health(database), times, now)
    return visit.page(
        "overview.html",
        total=total,
        sets=len(await stored_sets.summaries(database)),
        kinds=_bars(kinds),
        kind=kind,
        kind_options=[("", "All kinds"), *((each, formatting.kind_title(each)) for each in kinds)],
        points=_points(counts, kind),
        sources=fresh,
        collected=len(fresh),
        failing=[each for each in fresh if each.kind == "bad"],
        states=_states(fresh),
        changes=await overview.largest_changes(database, now - _WEEK, _CHANGES),
    )


def freshness(
    known: SourceSnapshot, healths: Mapping[str, SourceHealth], pushed: Mapping[str, int], now: int
) -> list[Freshness]:
    """Sources that are collected on a schedule or pushed to, those with problems first.

    `pushed` has the time of the last push, by source.
    """
    found = [
        _freshness(one.source, healths.get(id_), None, now)
        for id_, one in known.integrations.items()
        if one.source.cadence and not one.source.draft
    ]
    found += [
        _freshness(known.sources[id_], None, at, now)
        for id_, at in pushed.items()
        if id_ in known.sources and not known.sources[id_].draft
    ]
    order = ("bad", "warn", "", "good")
    return sorted(found, key=lambda one: (order.index(one.kind), one.source.id))


def _freshness(
    source: DataSource, found: SourceHealth | None, pushed_at: int | None, now: int
) -> Freshness:
    last = found.last if found else None
    covered, entities = (last.covered, last.entities) if last else (0, 0)
    succeeded = found.succeeded_at if found else pushed_at
    state = health.condition(source, found, now, pushed_at=pushed_at).state
    doing = table_rows.DOING[state]
    error = last.error if last else None
    return Freshness(source, doing.words, doing.kind, succeeded, covered, entities, error)


def _states(found: Sequence[Freshness]) -> list[Bar]:
    """Number of sources in each state."""
    kinds = [each.kind for each in found]
    return [Bar(name, kinds.count(kind), len(kinds), kind=kind) for name, kind in _STATES]


def _bars(kinds: Mapping[str, int]) -> list[Bar]:
    """Number of entities of each kind; the rare kinds are counted together."""
    rows = list(kinds.items())
    rest = sum(count for _, count in rows[_KINDS:])
    most = max([rest, *kinds.values()])
    shown = [
        Bar(formatting.kind_title(kind), count, most, f"/catalog?kind={formatting.segment(kind)}")
        for kind, count in rows[:_KINDS]
    ]
    return [*shown, Bar("Other kinds", rest, most)] if rest else shown


def _points(counts: Mapping[int, int], kind: str | None) -> list[Bar]:
    """Number of entities that meet each point of compliance."""
    whole, query = sum(counts.values()), f"?kind={formatting.segment(kind)}" if kind else ""
    return [
        Bar(
            point.title,
            sum(count for has, count in counts.items() if point.is_met(has)),
            whole,
            fact_across.path_of(point.source, point.fact) + query,
        )
        for point in about.POINTS
    ]


OVERVIEW: Sequence[PageRoute] = (PageRoute("GET", "/", show, (CATALOG_READ, SOURCE_READ)),)

"""Overview: the catalog and its sources at a glance, and the first steps."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import overview
from factbook.catalog.store import stored_sets as pushing
from factbook.clock import DAY
from factbook.collection import Known
from factbook.facts import health
from factbook.facts.datasource import DataSource
from factbook.http.requests import Reply
from factbook.scheduling import runs
from factbook.scheduling.runs import SourceHealth
from factbook.web.charts import shares
from factbook.web.charts.shares import Part
from factbook.web.entity import compliance
from factbook.web.site import formatting as words
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_WEEK = 7 * DAY
_CHANGES = 6
_KINDS = 10

# The states of sources, each with its look and what it means in a picture.
_STATES: tuple[tuple[str, str, shares.Kind], ...] = (
    ("fresh", "good", "good"),
    ("late", "warn", "warn"),
    ("failing", "bad", "bad"),
    ("not collected yet", "", "unknown"),
)


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
    fresh = freshness(known, await runs.health(database), now)
    return visit.page(
        "overview.html",
        total=total,
        sets=len(await pushing.summaries(database)),
        kinds=_bars(kinds),
        kind=kind,
        kind_options=[("", "All kinds"), *((each, words.kind_title(each)) for each in kinds)],
        points=_points(counts),
        sources=fresh,
        collected=len(fresh),
        failing=[each for each in fresh if each.kind == "bad"],
        fresh_picture=shares.stack(_parts(fresh), "Freshness of facts, by data source"),
        changes=await overview.largest_changes(database, now - _WEEK, _CHANGES),
    )


def freshness(known: Known, healths: Mapping[str, SourceHealth], now: int) -> list[Freshness]:
    """The sources that are collected on a cadence, those with problems first."""
    found = [
        _freshness(one.source, healths.get(id_), now)
        for id_, one in known.integrations.items()
        if one.source.cadence and not one.source.draft
    ]
    order = ("bad", "warn", "", "good")
    return sorted(found, key=lambda one: (order.index(one.kind), one.source.id))


def _freshness(source: DataSource, found: SourceHealth | None, now: int) -> Freshness:
    last = found.last if found else None
    covered, entities = (last.covered, last.entities) if last else (0, 0)
    succeeded = found.succeeded_at if found else None
    said, kind = _said(source, found, now)
    error = last.error if last else None
    return Freshness(source, said, kind, succeeded, covered, entities, error)


def _said(source: DataSource, found: SourceHealth | None, now: int) -> tuple[str, str]:
    if found is None or (found.succeeded_at is None and found.down_since is None):
        return "not collected yet", ""
    if found.down_since is not None:
        return "failing", "bad"
    due = health.next_run(source, found, now)
    # A run that should have begun long ago: no process collects.
    if found.running is None and due is not None and due < now - DAY:
        return "late", "warn"
    return "fresh", "good"


def _parts(found: Sequence[Freshness]) -> list[Part]:
    return [(name, sum(each.kind == kind for each in found), as_) for name, kind, as_ in _STATES]


def _bars(kinds: Mapping[str, int]) -> str:
    rows = list(kinds.items())
    shown: list[shares.Bar] = [
        (words.kind_title(kind), count, f"/catalog?kind={words.segment(kind)}")
        for kind, count in rows[:_KINDS]
    ]
    if rest := sum(count for _, count in rows[_KINDS:]):
        shown.append(("Other kinds", rest, None))
    return shares.bars(shown, "Entities by kind")


def _points(counts: Mapping[int, int]) -> list[str]:
    whole = sum(counts.values())
    return [
        shares.share(
            sum(count for has, count in counts.items() if point.is_met(has)), whole, point.title
        )
        for point in compliance.POINTS
    ]


OVERVIEW: Sequence[PageRoute] = (PageRoute("GET", "/", show, (CATALOG_READ, SOURCE_READ)),)

"""Page of one fact about one entity over time: a chart or changes, figures, and its rows."""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import related_entities
from factbook.catalog.store.entity_query import count_by_kind
from factbook.catalog.store.related_entities import CatalogPart
from factbook.clock import DAY
from factbook.errors import InputError, NotFoundError
from factbook.facts import across, history, store
from factbook.facts.across import NUMBER_TYPES, FactColumn
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.history import Excerpt, Point
from factbook.facts.schema import NEVER_COLLECTED, Fact
from factbook.http.requests import Reply
from factbook.integrations import catalog
from factbook.storage import Database
from factbook.web import fact_across
from factbook.web.charts import Stretch, band, line_chart
from factbook.web.entity import fact_rows, page
from factbook.web.entity.facts import placed, reason_of_none
from factbook.web.entity.page import EntityView
from factbook.web.site import fact_display, formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

_POINTS: Final = 500
_CHANGES: Final = 50
_LONGEST_TIME: Final = 15  # digits
_SPANS: Final[dict[str, tuple[str, int | None]]] = {
    "day": ("Day", DAY),
    "week": ("Week", 7 * DAY),
    "month": ("Month", 30 * DAY),
    "quarter": ("Quarter", 90 * DAY),
    "year": ("Year", 365 * DAY),
    "all": ("All", None),
}
_SPAN: Final = "month"
# Entities of a catalog in which the values of all are counted for a page about one of them.
_FEW: Final = 5_000


class ValuePeriod(NamedTuple):
    """A formatted value, None for unknown, with its start and its end."""

    value: str | None
    since: int
    until: int | None


class ValueSummary(NamedTuple):
    """Minimum, maximum and average of the values in the period."""

    least: str
    largest: str
    average: str


class _FactContext(NamedTuple):
    """A fact of an entity."""

    subject: EntityView
    source: DataSource
    fact: Fact
    latest: Latest | None

    @property
    def facts(self) -> dict[str, Any]:
        return self.latest.facts if self.latest else {}


class Median(NamedTuple):
    """A median in words over the entities with a value, and the page of these."""

    title: str
    value: str
    entities: int
    path: str


async def show(visit: PageContext, found: EntityView) -> Reply:
    """Page of a fact."""
    asked = await _asked(visit, found)
    span = visit.query("span", _SPAN)
    if span not in _SPANS:
        raise InputError(f"The span is one of {', '.join(_SPANS)}.")
    length = _SPANS[span][1]
    start = None if length is None else visit.now - length
    keys = (asked.source.id, found.shown.id)
    excerpt = await history.spread_history(
        visit.state.database, *keys, start, visit.now, asked.facts, _POINTS
    )
    points = history.fact_points(excerpt.rows, [asked.fact.name])[asked.fact.name]
    before = _time(visit.query("before"))
    rows, more = await fact_rows.before(
        visit.state.database, asked.source, asked.fact, found.shown.id, asked.facts, before
    )
    path = f"{found.path}/facts/{segment(asked.source.id)}"
    here = f"{path}/{segment(asked.fact.name)}?span={span}"
    group, _, label = placed(asked.fact)
    frame = page.frame(found, "")
    owner = frame["owner_ref"]
    return visit.page(
        "fact.html",
        **frame,
        source=asked.source,
        source_path=found.path if catalog.is_catalog_source(asked.source.id) else path,
        fact=asked.fact,
        group=group,
        label=label,
        **_now(asked),
        medians=await _medians(visit.state.database, asked.source, asked.fact, owner),
        owner_path=owner and _owner_path(asked.source.id, asked.fact.name, owner),
        **_drawn(asked, excerpt, points, start, visit.now),
        step=None if excerpt.is_whole else excerpt.step,
        spans=[(title, f"?span={name}", name == span) for name, (title, _) in _SPANS.items()],
        rows=rows,
        newest=here if before else None,
        older=more and f"{here}&before={more}",
    )


async def _asked(visit: PageContext, found: EntityView) -> _FactContext:
    """Fact in the address; raises NotFoundError."""
    known = await visit.state.registry.current()
    source_id, name = visit.request.parameter("source"), visit.request.parameter("fact")
    source = known.sources.get(source_id)
    if source is None:
        raise NotFoundError("There is no data source of this name any more.")
    fact = next((one for one in source.schema if one.name == name), None)
    if fact is None:
        raise NotFoundError(f'The data source "{source.title}" has no fact of this name.')
    if catalog.is_catalog_source(source.id):
        facts = msgspec.json.decode(catalog.encode_catalog_facts(source.id, found.shown.compliance))
        latest: Latest | None = Latest(facts, {}, source.version, found.shown.updated_at)
    else:
        latest = await store.find_latest(visit.state.database, source.id, found.shown.id)
    return _FactContext(found, source, fact, latest)


def _now(asked: _FactContext) -> dict[str, Any]:
    """Current value and its start, or the reason for its absence."""
    name, latest = asked.fact.name, asked.latest
    if latest is not None and name in latest.facts:
        value = fact_display.shown(asked.fact, latest.facts[name])
        kept = latest.kept.get(name)
        return {"value": value, "reason": None, "at": kept or latest.written_at, "kept": kept}
    if latest is None:
        reason = reason_of_none(asked.source, asked.subject.entity)
        return {"value": None, "reason": reason, "at": None, "kept": None}
    reason = fact_display.plain(find_reason(name, latest.reasons) or NEVER_COLLECTED)
    return {"value": None, "reason": reason, "at": latest.written_at or None, "kept": None}


def _drawn(
    asked: _FactContext, excerpt: Excerpt, points: Sequence[Point], start: int | None, now: int
) -> dict[str, Any]:
    """Chart and figures of numbers, changes of everything else."""
    fact = asked.fact
    chart: Markup | None = None
    figures: ValueSummary | None = None
    changes: list[ValuePeriod] = []
    if fact.type in {"integer", "float"}:
        unit = fact_display.unit_of(fact)
        if points:
            first = excerpt.start if start is None else start
            chart = line_chart(
                points,
                title=f"{fact_display.title(fact)} over time",
                unit=unit,
                start=first or points[0][0],
                end=now,
                ident="over-time",
            )
        figures = _figures(_weighed(asked, excerpt), unit)
    else:
        changes = _changes(fact, points)
        if fact.type == "boolean" and changes:
            chart = _band(asked, changes, start, now)
    return {"chart": chart, "figures": figures, "changes": changes, "points": len(points)}


def _band(
    asked: _FactContext, changes: Sequence[ValuePeriod], start: int | None, now: int
) -> Markup:
    """The periods of a boolean as a band."""
    first = changes[-1].since if start is None else start
    stretches = [Stretch(one.value, one.since, one.until or now) for one in reversed(changes)]
    title = f"{fact_display.title(asked.fact)} over time"
    return band(stretches, title=title, start=first, end=now, ident="over-time")


def _weighed(asked: _FactContext, excerpt: Excerpt) -> list[tuple[float | None, int]]:
    """The values, each with the number of collections that found it."""
    name, source, found = asked.fact.name, asked.source, list[tuple[float | None, int]]()
    for row in excerpt.rows:
        for _, value in history.fact_points([row], [name])[name][:1]:
            found.append((value, 1 + fact_rows.times(source, row.written_at, row.confirmed_at)))
    return found


def _figures(values: Sequence[tuple[float | None, int]], unit: str) -> ValueSummary | None:
    known = [(found, n) for value, n in values if (found := formats.finite(value)) is not None]
    if not known:
        return None
    # Divided first: the sum of large ones may be too large.
    total = sum(n for _, n in known)
    average = math.fsum(value * (n / total) for value, n in known)
    least, largest = min(value for value, _ in known), max(value for value, _ in known)
    shown = [formats.quantity(value, unit) for value in (least, largest, average)]
    return ValueSummary(*shown)


def _changes(fact: Fact, points: Sequence[Point]) -> list[ValuePeriod]:
    """Periods of a constant value, latest first."""
    found: list[ValuePeriod] = []
    before: object = points
    for at, value in points:
        if value != before or not found:
            if found:
                found[-1] = found[-1]._replace(until=at)
            words = None if value is None else fact_display.in_words(fact, value)
            found.append(ValuePeriod(words, at, None))
        before = value
    return found[::-1][:_CHANGES]


def _time(text: str) -> int | None:
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _LONGEST_TIME:
        raise InputError("The address of this page is incomplete.")
    return int(text)


async def _medians(
    database: Database, source: DataSource, fact: Fact, owner: str | None
) -> list[Median]:
    """The medians over all and the owner's with the groups below; none if the catalog is large."""
    if fact.type not in NUMBER_TYPES or catalog.is_catalog_source(source.id):
        return []
    if sum((await count_by_kind(database)).values()) > _FEW or not _is_name(fact.name):
        return []
    parts = [("Catalog", CatalogPart(), fact_across.make_fact_path(source.id, fact.name))]
    if owner:
        path = _owner_path(source.id, fact.name, owner)
        team = await related_entities.list_groups_below(database, owner)
        parts.insert(0, ("Team", CatalogPart(owners=team), path))
    rows: list[Median] = []
    for title, part, path in parts:
        counted = await across.count_values(database, FactColumn(source, fact), part, None)
        found = across.distribute_values(fact, counted, top=0, now=0)
        if found.spread is not None:
            median = formats.quantity(found.spread.median, fact_display.unit_of(fact))
            rows.append(Median(title, median, found.known, path))
    return rows


def _owner_path(source_id: str, name: str, owner: str) -> str:
    """The page of a fact over what an owner has."""
    return f"{fact_across.make_fact_path(source_id, name)}?owner={quote(owner, safe='')}"


def _is_name(name: str) -> bool:
    """True for a name that SQL takes."""
    return name.isprintable() and not set('"\\') & set(name)


_NEEDS = (CATALOG_READ, SOURCE_READ)
_PATH = f"{page.PATH}/facts/{{source}}/{{fact:path}}"

FACTS: Sequence[PageRoute] = (PageRoute("GET", _PATH, page.of_entity(show), _NEEDS),)

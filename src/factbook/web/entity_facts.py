"""Facts of one entity: a card for each source, and the page of one fact over time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, SOURCE_RUN
from factbook.catalog.filters import EntityFilter, Matcher
from factbook.catalog.store import related_entities
from factbook.catalog.store.entity_query import count_by_kind
from factbook.catalog.store.related_entities import CatalogPart
from factbook.clock import DAY
from factbook.datasources.registry import SourceSnapshot as Sources
from factbook.errors import InputError, NotFoundError
from factbook.facts import distribution, history, schema, store
from factbook.facts.datasource import DataSource
from factbook.facts.distribution import NUMBER_TYPES, FactColumn
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.history import Excerpt, HistoryEntry, HistoryPosition, Point
from factbook.facts.schema import NEVER_COLLECTED, NOT_APPLICABLE, Fact
from factbook.facts.schema import LeafGroup as ShapeGroup
from factbook.http.requests import Reply, run_offloaded
from factbook.integrations import catalog
from factbook.scheduling import runs
from factbook.scheduling.schedule import find_next_start
from factbook.storage import Database
from factbook.web import charts, entity_view, fact_across, formats
from factbook.web.charts import ValueStretch, draw_band, draw_line_chart, draw_sparkline, make_ident
from factbook.web.entity_view import EntityView
from factbook.web.formats import Reason, Value, make_entity_path, quote_segment
from factbook.web.pages import PageContext, PageRoute

_CARDS: Final = 30
_OTHERS: Final = 100
_SPARK_POINTS: Final = 60
_DRAWN: Final = 32  # points per sparkline
_SPARK_BYTES: Final = 8_000_000  # of history that one page reads
_ANNOTATIONS: Final = "metadata.annotations."


class KnownFact(NamedTuple):
    """A fact with a value; `kept_at` is set if the value is older than the others."""

    name: str
    label: str
    description: str
    path: str
    value: Value
    kept_at: int | None
    line: Markup | None


class Unknown(NamedTuple):
    """Facts that are unknown for the same reason, as (label, path)."""

    reason: Reason
    facts: list[tuple[str, str]]


class FactGroup(NamedTuple):
    """A group of facts; the title may be empty."""

    title: str
    description: str
    known: list[KnownFact]
    unknown: list[Unknown]


class Card(NamedTuple):
    """A source with its facts about the entity.

    `written_at` is None before the first write; `reason` is set if all facts are unknown.
    """

    source: DataSource
    path: str
    written_at: int | None
    down_since: int | None
    groups: list[FactGroup]
    reason: Reason | None
    can_collect: bool


class Lacking(NamedTuple):
    """A source for entities of this kind, and the fields that the entity lacks for it."""

    source: DataSource
    needs: list[str]


class Facts(NamedTuple):
    """Cards of a page; further sources without a card; sources that need fields the entity lacks.

    `waiting` are cards of sources that have not been collected yet, summed up in one line.
    `sources` are all sources for the entity, with their `latest` facts.
    """

    cards: list[Card]
    waiting: list[Card]
    others: list[DataSource]
    lacking: list[Lacking]
    sources: list[DataSource]
    latest: Mapping[str, Latest]


async def make_fact_cards(visit: PageContext, id_: int, ref: str, entity: dict[str, Any]) -> Facts:
    """Facts of every source except the catalog's own, which the page shows as compliance."""
    known = await visit.state.registry.current()
    matcher = await run_offloaded(Matcher, entity)  # the document may be large
    collected = sorted(
        (one for one in known.sources.values() if not catalog.is_catalog_source(one.id)),
        key=lambda one: (one.title.casefold(), one.id),
    )
    tracking = [one for one in collected if matcher.lets_through(one.selection)]
    latest = await store.list_latest(visit.state.database, id_)
    # Sources with known facts come first.
    tracking.sort(key=lambda one: not (one.id in latest and latest[one.id].facts))
    shown, others = tracking[:_CARDS], tracking[_CARDS:]
    down = await runs.fetch_outages(visit.state.database, [one.id for one in shown])
    cards = [
        await make_source_card(
            visit, id_, ref, one, latest.get(one.id), down.get(one.id), entity,
            can_collect=may_collect_source(visit, known, one), bytes_=_SPARK_BYTES // len(shown),
        )
        for one in shown
    ]  # fmt: skip
    waiting = [one for one in cards if one.written_at is None and one.source.id not in latest]
    cards = [one for one in cards if one not in waiting]
    missing = [one for one in collected if not matcher.lets_through(one.entity_filter)]
    # Skip sources of other owners.
    missing = [one for one in missing if matcher.lets_through(one.ownership)]
    lacking = [found for one in missing if (found := _find_lacking_fields(one, matcher))]
    return Facts(cards, waiting, others[:_OTHERS], lacking[:_OTHERS], tracking, latest)


def may_collect_source(visit: PageContext, known: Sources, source: DataSource) -> bool:
    """True if the source is collected and the person may start a run."""
    return visit.may(SOURCE_RUN) and source.id in known.integrations


async def make_source_card(
    visit: PageContext,
    id_: int,
    ref: str,
    source: DataSource,
    latest: Latest | None,
    down_since: int | None,
    entity: dict[str, Any],
    *,
    can_collect: bool,
    bytes_: int = _SPARK_BYTES,
) -> Card:
    """Card of a source with its facts about the entity; numbers with a history get sparklines."""
    path = f"{make_entity_path(ref)}/facts/{quote_segment(source.id)}"
    if latest is None:
        reason = explain_no_facts(source, entity)
        return Card(source, path, None, down_since, [], reason, can_collect)
    lines = await _draw_fact_lines(visit, id_, source, latest, bytes_)
    groups = _group_facts_of_card(source, latest, path, lines)
    why: Reason | None = None
    if not latest.facts and len({unknown.reason for one in groups for unknown in one.unknown}) == 1:
        why, groups = groups[0].unknown[0].reason, []
    written_at = latest.written_at or None
    return Card(source, path, written_at, down_since, groups, why, can_collect)


def explain_no_facts(source: DataSource, entity: dict[str, Any]) -> Reason:
    """Explain missing facts: the source isn't about the entity, or hasn't run yet."""
    matcher = Matcher(entity)
    if matcher.lets_through(source.selection):
        return formats.describe_reason(NEVER_COLLECTED)
    found = (
        _find_lacking_fields(source, matcher) if matcher.lets_through(source.ownership) else None
    )
    needs = f" It is about entities with {' and '.join(found.needs)}." if found else ""
    sentence = f"The data source isn't about this entity.{needs}"
    return formats.describe_reason(NOT_APPLICABLE)._replace(sentence=sentence)


async def _draw_fact_lines(
    visit: PageContext, id_: int, source: DataSource, latest: Latest, bytes_: int
) -> dict[str, Markup]:
    """Sparkline for each number that has changed in the past."""
    numeric = [
        fact
        for fact in source.schema
        if fact.type in {"integer", "float"} and fact.name in latest.facts
    ]
    if not numeric:
        return {}
    database = visit.state.database
    rows = await history.recent_history(
        database, source.id, id_, latest.facts, _SPARK_POINTS, bytes_
    )
    points = history.fact_points(rows, [fact.name for fact in numeric])
    return {
        fact.name: draw_sparkline(
            charts.downsample_points(points[fact.name], _DRAWN),
            f"{formats.get_fact_title(fact)} over time",
            ident=make_ident(source.id, fact.name),
        )
        for fact in numeric
        if len({value for _, value in points[fact.name]}) > 1
    }


def _group_facts_of_card(
    source: DataSource, latest: Latest, path: str, lines: Mapping[str, Markup]
) -> list[FactGroup]:
    groups: dict[str, FactGroup] = {}
    missing: dict[tuple[str, Reason], Unknown] = {}
    for fact in source.schema:
        title, description, label = place_fact(fact)
        group = groups.setdefault(title, FactGroup(title, description, [], []))
        where = f"{path}/{quote_segment(fact.name)}"
        if fact.name in latest.facts:
            value = formats.display_fact(fact, latest.facts[fact.name])
            kept_at = latest.kept.get(fact.name)
            group.known.append(
                KnownFact(
                    fact.name, label, fact.description, where, value, kept_at, lines.get(fact.name)
                )
            )
            continue
        reason = formats.describe_reason(find_reason(fact.name, latest.reasons) or NEVER_COLLECTED)
        if (title, reason) not in missing:
            missing[title, reason] = Unknown(reason, [])
            group.unknown.append(missing[title, reason])
        missing[title, reason].facts.append((label, where))
    for group in groups.values():
        group.known.sort(key=lambda fact: fact.value.is_wide)
    return _merge_unknown_groups(list(groups.values()))


def _merge_unknown_groups(groups: Sequence[FactGroup]) -> list[FactGroup]:
    """Merge groups whose facts are all unknown for the same reason."""
    found = [one for one in groups if one.known or len(one.unknown) != 1]
    alike: dict[Reason, list[FactGroup]] = {}
    for one in groups:
        if one not in found:
            alike.setdefault(one.unknown[0].reason, []).append(one)
    for reason, some in alike.items():
        if len(some) == 1:
            found += some
            continue
        facts = [
            (f"{one.title}: {label}" if one.title else label, path)
            for one in some
            for label, path in one.unknown[0].facts
        ]
        found.append(FactGroup("", "", [], [Unknown(reason, facts)]))
    return found


def place_fact(fact: Fact) -> tuple[str, str, str]:
    """Title and description of a fact's group, and the fact's label within it."""
    first, _, rest = fact.name.partition(".")
    shape = next((one for one in schema.SHAPES if one.name == first), None)
    if not rest:
        return "", "", formats.get_fact_title(fact)
    chosen = fact.title.strip()
    if shape is None:
        return first, "", chosen or formats.format_name(rest, fact.unit)
    member, _, leaf = rest.rpartition(".")
    group = next(
        (one for one in shape.members if isinstance(one, ShapeGroup) and one.name == member), None
    )
    if group is None:
        return shape.title, "", chosen or formats.format_name(leaf, fact.unit)
    label = chosen or formats.format_name(leaf, fact.unit)
    return formats.format_name(group.name), group.description, label


def _find_lacking_fields(source: DataSource, matcher: Matcher) -> Lacking | None:
    """Fields that the entity lacks for the source; None if the source is for other kinds."""
    found: list[list[str]] = []
    for conditions in source.entity_filter or ():
        lacking = matcher.lacking(conditions)
        if "kind" not in {path.lower() for path in lacking}:
            found.append(lacking)
    if not found:
        return None
    fewest = min(found, key=len)
    return Lacking(source, [_describe_need(path, source.entity_filter or ()) for path in fewest])


def _describe_need(path: str, entity_filter: EntityFilter) -> str:
    if path.lower().startswith(_ANNOTATIONS):
        return f"the annotation {path[len(_ANNOTATIONS) :]}"
    wanted = next(one[path] for one in entity_filter if path in one)
    if isinstance(wanted, dict):
        return path if wanted["exists"] else f"no {path}"
    values: Sequence[Any] = wanted if isinstance(wanted, list) else [wanted]
    return f"{path} to be {' or '.join(str(value) for value in values[:5])}"


_ROWS: Final = 50
_READ: Final = 500
_ROW_BYTES: Final = 4_000_000


class HistoryRow(NamedTuple):
    """Successive collections with the same value or reason; neither if the last value was kept.

    The first was `at`, the last `until` (None if there was only one). `times` counts them, as an
    estimate where the history has no row for each.
    """

    at: int
    until: int | None
    times: int
    value: Value | None
    reason: Reason | None
    version: str

    @property
    def result(self) -> tuple[object, ...]:
        """The fields that are equal in folded rows."""
        return self[3:]


async def list_rows_before(
    database: Database,
    source: DataSource,
    fact: Fact,
    entity_id: int,
    facts: Mapping[str, object],
    moment: int | None,
) -> tuple[list[HistoryRow], int | None]:
    """The last rows written before a time, newest first, and the time to continue from.

    The size of the latest `facts` serves to estimate how many rows to read.
    """
    limit = history.count_fitting_rows(facts, _READ, _ROW_BYTES)
    after = None if moment is None else HistoryPosition(moment, "")
    found = await history.page_history(
        database, [source.id], entity_id, None, None, after, limit + 1
    )
    rows, last = _fold_rows(
        (_make_history_row(source, fact, entry), entry) for entry in found[:limit]
    )
    is_more = len(found) > limit or (last is not None and last != found[-1].written_at)
    return rows, last if is_more else None


def _fold_rows(
    entries: Iterable[tuple[HistoryRow, HistoryEntry]],
) -> tuple[list[HistoryRow], int | None]:
    """Up to fifty folded rows, and the time of the last one among them."""
    rows: list[HistoryRow] = []
    last: int | None = None
    for row, entry in entries:
        if rows and rows[-1].result == row.result:
            newer = rows[-1]
            until = newer.until or newer.at
            rows[-1] = row._replace(until=until, times=row.times + newer.times)
        elif len(rows) == _ROWS:
            break
        else:
            rows.append(row)
        last = entry.written_at
    return rows, last


def _make_history_row(source: DataSource, fact: Fact, entry: HistoryEntry) -> HistoryRow:
    points = history.fact_points([entry], [fact.name])[fact.name]
    value = points[0][1] if points else None
    reason = None
    if points and value is None:
        reason = find_reason(fact.name, msgspec.json.decode(entry.reasons))
    return HistoryRow(
        entry.written_at,
        entry.confirmed_at,
        1 + estimate_collections(source, entry.written_at, entry.confirmed_at),
        None if value is None else formats.display_fact(fact, value),
        None if reason is None else formats.describe_reason(reason),
        entry.version,
    )


def estimate_collections(source: DataSource, start: int, end: int | None) -> int:
    """Estimate the collections after `start` until `end`: at least one, or 0 without an end."""
    if end is None:
        return 0
    if source.cadence is None:
        return 1
    first = find_next_start(source.id, source.cadence, start)
    return max(1, (end - start) // (find_next_start(source.id, source.cadence, first) - first))


_HISTORY_POINTS: Final = 500
_CHANGES: Final = 50
_SPANS: Final[dict[str, tuple[str, int | None]]] = {
    "day": ("Day", DAY),
    "week": ("Week", 7 * DAY),
    "month": ("Month", 30 * DAY),
    "quarter": ("Quarter", 90 * DAY),
    "year": ("Year", 365 * DAY),
    "all": ("All", None),
}
_SPAN: Final = "month"
# Largest catalog, in entities, for which the page of a fact computes medians.
_FEW: Final = 5_000


class ValuePeriod(NamedTuple):
    """A formatted value (None for unknown) with its start and end."""

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
    """A formatted median over the entities with a value, and the page that lists them."""

    title: str
    value: str
    entities: int
    path: str


async def show_fact(visit: PageContext, found: EntityView) -> Reply:
    """Page of a fact."""
    asked = await _get_shown_fact(visit, found)
    span = visit.query("span", _SPAN)
    if span not in _SPANS:
        raise InputError(f"The span is one of {', '.join(_SPANS)}.")
    length = _SPANS[span][1]
    start = None if length is None else visit.now - length
    keys = (asked.source.id, found.shown.id)
    excerpt = await history.spread_history(
        visit.state.database, *keys, start, visit.now, asked.facts, _HISTORY_POINTS
    )
    points = history.fact_points(excerpt.rows, [asked.fact.name])[asked.fact.name]
    before = visit.query_number("before", 0) or None
    rows, more = await list_rows_before(
        visit.state.database, asked.source, asked.fact, found.shown.id, asked.facts, before
    )
    path = f"{found.path}/facts/{quote_segment(asked.source.id)}"
    here = f"{path}/{quote_segment(asked.fact.name)}?span={span}"
    group, _, label = place_fact(asked.fact)
    frame = entity_view.make_entity_frame(found, "")
    owner = frame["owner_ref"]
    return visit.page(
        "fact.html",
        **frame,
        source=asked.source,
        source_path=found.path if catalog.is_catalog_source(asked.source.id) else path,
        fact=asked.fact,
        group=group,
        label=label,
        **_describe_current_value(asked),
        medians=await _list_medians(visit.state.database, asked.source, asked.fact, owner),
        owner_path=owner and _make_owner_path(asked.source.id, asked.fact.name, owner),
        **_draw_history(asked, excerpt, points, start, visit.now),
        step=None if excerpt.is_whole else excerpt.step,
        spans=[(title, f"?span={name}", name == span) for name, (title, _) in _SPANS.items()],
        rows=rows,
        newest=here if before else None,
        older=more and f"{here}&before={more}",
    )


async def _get_shown_fact(visit: PageContext, found: EntityView) -> _FactContext:
    """Fact in the address; raises NotFoundError."""
    known = await visit.state.registry.current()
    source_id, name = visit.request.parameter("source"), visit.request.parameter("fact")
    source = known.sources.get(source_id)
    if source is None:
        raise NotFoundError("There is no longer a data source with this name.")
    fact = next((one for one in source.schema if one.name == name), None)
    if fact is None:
        raise NotFoundError(f'The data source "{source.title}" has no fact with this name.')
    if catalog.is_catalog_source(source.id):
        facts = msgspec.json.decode(catalog.encode_catalog_facts(source.id, found.shown.compliance))
        latest: Latest | None = Latest(facts, {}, source.version, found.shown.updated_at)
    else:
        latest = await store.find_latest(visit.state.database, source.id, found.shown.id)
    return _FactContext(found, source, fact, latest)


def _describe_current_value(asked: _FactContext) -> dict[str, Any]:
    """Current value and its start, or the reason for its absence."""
    name, latest = asked.fact.name, asked.latest
    if latest is not None and name in latest.facts:
        value = formats.display_fact(asked.fact, latest.facts[name])
        kept = latest.kept.get(name)
        return {"value": value, "reason": None, "at": kept or latest.written_at, "kept": kept}
    if latest is None:
        reason = explain_no_facts(asked.source, asked.subject.entity)
        return {"value": None, "reason": reason, "at": None, "kept": None}
    reason = formats.describe_reason(find_reason(name, latest.reasons) or NEVER_COLLECTED)
    return {"value": None, "reason": reason, "at": latest.written_at or None, "kept": None}


def _draw_history(
    asked: _FactContext, excerpt: Excerpt, points: Sequence[Point], start: int | None, now: int
) -> dict[str, Any]:
    """Chart and figures for numbers, changes for all other types."""
    fact = asked.fact
    chart: Markup | None = None
    figures: ValueSummary | None = None
    changes: list[ValuePeriod] = []
    if fact.type in {"integer", "float"}:
        unit = formats.get_fact_unit(fact)
        if points:
            first = excerpt.start if start is None else start
            chart = draw_line_chart(
                points,
                title=f"{formats.get_fact_title(fact)} over time",
                unit=unit,
                start=first or points[0][0],
                end=now,
                ident="over-time",
            )
        figures = _summarize_values(_weigh_values(asked, excerpt), unit)
    else:
        changes = _list_value_periods(fact, points)
        if fact.type == "boolean" and changes:
            chart = _draw_boolean_band(asked, changes, start, now)
    return {"chart": chart, "figures": figures, "changes": changes, "points": len(points)}


def _draw_boolean_band(
    asked: _FactContext, changes: Sequence[ValuePeriod], start: int | None, now: int
) -> Markup:
    first = changes[-1].since if start is None else start
    stretches = [ValueStretch(one.value, one.since, one.until or now) for one in reversed(changes)]
    title = f"{formats.get_fact_title(asked.fact)} over time"
    return draw_band(stretches, title=title, start=first, end=now, ident="over-time")


def _weigh_values(asked: _FactContext, excerpt: Excerpt) -> list[tuple[float | None, int]]:
    """The values, each with its number of collections."""
    name, source, found = asked.fact.name, asked.source, list[tuple[float | None, int]]()
    for row in excerpt.rows:
        for _, value in history.fact_points([row], [name])[name][:1]:
            found.append(
                (value, 1 + estimate_collections(source, row.written_at, row.confirmed_at))
            )
    return found


def _summarize_values(values: Sequence[tuple[float | None, int]], unit: str) -> ValueSummary | None:
    known = [(found, n) for value, n in values if (found := formats.make_finite(value)) is not None]
    if not known:
        return None
    # Divide first: the sum of large values may overflow.
    total = sum(n for _, n in known)
    average = math.fsum(value * (n / total) for value, n in known)
    least, largest = min(value for value, _ in known), max(value for value, _ in known)
    shown = [formats.format_quantity(value, unit) for value in (least, largest, average)]
    return ValueSummary(*shown)


def _list_value_periods(fact: Fact, points: Sequence[Point]) -> list[ValuePeriod]:
    """Periods of a constant value, latest first."""
    found: list[ValuePeriod] = []
    before: object = points
    for at, value in points:
        if value != before or not found:
            if found:
                found[-1] = found[-1]._replace(until=at)
            words = None if value is None else formats.format_fact(fact, value)
            found.append(ValuePeriod(words, at, None))
        before = value
    return found[::-1][:_CHANGES]


async def _list_medians(
    database: Database, source: DataSource, fact: Fact, owner: str | None
) -> list[Median]:
    """Medians of the catalog and of the owner with its subgroups; none if the catalog is large."""
    if fact.type not in NUMBER_TYPES or catalog.is_catalog_source(source.id):
        return []
    is_safe_in_sql = fact.name.isprintable() and not set('"\\') & set(fact.name)
    if sum((await count_by_kind(database)).values()) > _FEW or not is_safe_in_sql:
        return []
    parts = [("Catalog", CatalogPart(), fact_across.make_fact_path(source.id, fact.name))]
    if owner:
        path = _make_owner_path(source.id, fact.name, owner)
        team = await related_entities.list_groups_below(database, owner)
        parts.insert(0, ("Team", CatalogPart(owners=team), path))
    rows: list[Median] = []
    for title, part, path in parts:
        counted = await distribution.count_values(database, FactColumn(source, fact), part, None)
        found = distribution.distribute_values(fact, counted, top=0, now=0)
        if found.spread is not None:
            median = formats.format_quantity(found.spread.median, formats.get_fact_unit(fact))
            rows.append(Median(title, median, found.known, path))
    return rows


def _make_owner_path(source_id: str, name: str, owner: str) -> str:
    return f"{fact_across.make_fact_path(source_id, name)}?owner={quote(owner, safe='')}"


_NEEDS = (CATALOG_READ, SOURCE_READ)
_FACT_PATH = f"{entity_view.ENTITY_PATH}/facts/{{source}}/{{fact:path}}"

FACTS: Sequence[PageRoute] = (
    PageRoute("GET", _FACT_PATH, entity_view.handle_entity_page(show_fact), _NEEDS),
)

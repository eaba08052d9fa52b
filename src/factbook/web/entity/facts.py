"""Facts of one entity: a card for each source, its facts in groups."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from factbook.auth.permissions import SOURCE_RUN
from factbook.catalog.filters import EntityFilter, Matcher
from factbook.datasources.registry import SourceSnapshot as Sources
from factbook.facts import history, schema, store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.schema import NEVER_COLLECTED, NOT_APPLICABLE, Fact
from factbook.facts.schema import LeafGroup as ShapeGroup
from factbook.http.requests import run_offloaded
from factbook.integrations import catalog
from factbook.scheduling import runs
from factbook.web import charts
from factbook.web.charts import ident_of, sparkline
from factbook.web.site import fact_display
from factbook.web.site.fact_display import Reason, Value
from factbook.web.site.formats import entity_path, segment
from factbook.web.site.page_context import PageContext

_CARDS: Final = 30
_OTHERS: Final = 100
_POINTS: Final = 60
_DRAWN: Final = 32  # of those
_BYTES: Final = 8_000_000  # of history that one page reads
_ANNOTATIONS: Final = "metadata.annotations."


class KnownFact(NamedTuple):
    """A fact with a value; `kept_at` is the time of one that is older than the others."""

    name: str
    label: str
    description: str
    path: str
    value: Value
    kept_at: int | None
    line: Markup | None


class Unknown(NamedTuple):
    """Facts that are unknown for the same reason: (label, path) of each."""

    reason: Reason
    facts: list[tuple[str, str]]


class FactGroup(NamedTuple):
    """A group of facts, with a title or without."""

    title: str
    description: str
    known: list[KnownFact]
    unknown: list[Unknown]


class Card(NamedTuple):
    """A source with its facts about the entity.

    `written_at` is None before the first time; `reason` says why all of them are unknown.
    """

    source: DataSource
    path: str
    written_at: int | None
    down_since: int | None
    groups: list[FactGroup]
    reason: Reason | None
    can_collect: bool


class Lacking(NamedTuple):
    """A source for entities of this kind, and the fields that this one lacks for it."""

    source: DataSource
    needs: list[str]


class Facts(NamedTuple):
    """Cards of a page; further sources without a card; sources that the entity lacks fields for.

    `waiting` are cards of sources that have not been collected yet, summed up in one line.
    `sources` are all that know the entity, with their `latest` facts.
    """

    cards: list[Card]
    waiting: list[Card]
    others: list[DataSource]
    lacking: list[Lacking]
    sources: list[DataSource]
    latest: Mapping[str, Latest]


async def of_entity(visit: PageContext, id_: int, ref: str, entity: dict[str, Any]) -> Facts:
    """Facts of the entity from every source but the catalog's own, which are its compliance."""
    known = await visit.state.registry.current()
    matcher = await run_offloaded(Matcher, entity)  # the document may be large
    collected = sorted(
        (one for one in known.sources.values() if not catalog.is_catalog_source(one.id)),
        key=lambda one: (one.title.casefold(), one.id),
    )
    tracking = [one for one in collected if matcher.lets_through(one.selection)]
    latest = await store.list_latest(visit.state.database, id_)
    # What is known comes before what is not.
    tracking.sort(key=lambda one: not (one.id in latest and latest[one.id].facts))
    shown, others = tracking[:_CARDS], tracking[_CARDS:]
    down = await runs.fetch_outages(visit.state.database, [one.id for one in shown])
    cards = [
        await card(
            visit, id_, ref, one, latest.get(one.id), down.get(one.id), entity,
            can_collect=can_collect(visit, known, one), bytes_=_BYTES // len(shown),
        )
        for one in shown
    ]  # fmt: skip
    waiting = [one for one in cards if one.written_at is None and one.source.id not in latest]
    cards = [one for one in cards if one not in waiting]
    missing = [one for one in collected if not matcher.lets_through(one.entity_filter)]
    # What is of other owners lacks nothing.
    missing = [one for one in missing if matcher.lets_through(one.ownership)]
    lacking = [found for one in missing if (found := _lacking(one, matcher))]
    return Facts(cards, waiting, others[:_OTHERS], lacking[:_OTHERS], tracking, latest)


def can_collect(visit: PageContext, known: Sources, source: DataSource) -> bool:
    """True if the person may start a run of the source, and it is one that is collected."""
    return visit.may(SOURCE_RUN) and source.id in known.integrations


async def card(
    visit: PageContext,
    id_: int,
    ref: str,
    source: DataSource,
    latest: Latest | None,
    down_since: int | None,
    entity: dict[str, Any],
    *,
    can_collect: bool,
    bytes_: int = _BYTES,
) -> Card:
    """Card of a source with its facts about the entity; facts with a history as sparklines."""
    path = f"{entity_path(ref)}/facts/{segment(source.id)}"
    if latest is None:
        reason = reason_of_none(source, entity)
        return Card(source, path, None, down_since, [], reason, can_collect)
    lines = await _lines(visit, id_, source, latest, bytes_)
    groups = _groups(source, latest, path, lines)
    why: Reason | None = None
    if not latest.facts and len({unknown.reason for one in groups for unknown in one.unknown}) == 1:
        why, groups = groups[0].unknown[0].reason, []
    written_at = latest.written_at or None
    return Card(source, path, written_at, down_since, groups, why, can_collect)


def reason_of_none(source: DataSource, entity: dict[str, Any]) -> Reason:
    """The reason for having no facts: the source isn't about the entity, or hasn't been there."""
    matcher = Matcher(entity)
    if matcher.lets_through(source.selection):
        return fact_display.plain(NEVER_COLLECTED)
    found = _lacking(source, matcher) if matcher.lets_through(source.ownership) else None
    needs = f" It is about entities with {' and '.join(found.needs)}." if found else ""
    sentence = f"The data source isn't about this entity.{needs}"
    return fact_display.plain(NOT_APPLICABLE)._replace(sentence=sentence)


async def _lines(
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
    rows = await history.recent_history(database, source.id, id_, latest.facts, _POINTS, bytes_)
    points = history.fact_points(rows, [fact.name for fact in numeric])
    return {
        fact.name: sparkline(
            charts.downsampled(points[fact.name], _DRAWN),
            f"{fact_display.title(fact)} over time",
            ident=ident_of(source.id, fact.name),
        )
        for fact in numeric
        if len({value for _, value in points[fact.name]}) > 1
    }


def _groups(
    source: DataSource, latest: Latest, path: str, lines: Mapping[str, Markup]
) -> list[FactGroup]:
    groups: dict[str, FactGroup] = {}
    missing: dict[tuple[str, Reason], Unknown] = {}
    for fact in source.schema:
        title, description, label = placed(fact)
        group = groups.setdefault(title, FactGroup(title, description, [], []))
        where = f"{path}/{segment(fact.name)}"
        if fact.name in latest.facts:
            value = fact_display.shown(fact, latest.facts[fact.name])
            kept_at = latest.kept.get(fact.name)
            group.known.append(
                KnownFact(
                    fact.name, label, fact.description, where, value, kept_at, lines.get(fact.name)
                )
            )
            continue
        reason = fact_display.plain(find_reason(fact.name, latest.reasons) or NEVER_COLLECTED)
        if (title, reason) not in missing:
            missing[title, reason] = Unknown(reason, [])
            group.unknown.append(missing[title, reason])
        missing[title, reason].facts.append((label, where))
    for group in groups.values():
        group.known.sort(key=lambda fact: fact.value.is_wide)
    return _merged(list(groups.values()))


def _merged(groups: Sequence[FactGroup]) -> list[FactGroup]:
    """The groups with those that are wholly unknown for the same reason as one."""
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


def placed(fact: Fact) -> tuple[str, str, str]:
    """Title and description of a fact's group, and the fact's label within it."""
    first, _, rest = fact.name.partition(".")
    shape = next((one for one in schema.SHAPES if one.name == first), None)
    if not rest:
        return "", "", fact_display.title(fact)
    chosen = fact.title.strip()
    if shape is None:
        return first, "", chosen or fact_display.label(rest, fact.unit)
    member, _, leaf = rest.rpartition(".")
    group = next(
        (one for one in shape.members if isinstance(one, ShapeGroup) and one.name == member), None
    )
    if group is None:
        return shape.title, "", chosen or fact_display.label(leaf, fact.unit)
    label = chosen or fact_display.label(leaf, fact.unit)
    return fact_display.label(group.name), group.description, label


def _lacking(source: DataSource, matcher: Matcher) -> Lacking | None:
    """Fields that the entity lacks for the source, if that is for entities of this kind."""
    found: list[list[str]] = []
    for conditions in source.entity_filter or ():
        lacking = matcher.lacking(conditions)
        if "kind" not in {path.lower() for path in lacking}:
            found.append(lacking)
    if not found:
        return None
    fewest = min(found, key=len)
    return Lacking(source, [_need(path, source.entity_filter or ()) for path in fewest])


def _need(path: str, entity_filter: EntityFilter) -> str:
    if path.lower().startswith(_ANNOTATIONS):
        return f"the annotation {path[len(_ANNOTATIONS) :]}"
    wanted = next(one[path] for one in entity_filter if path in one)
    if isinstance(wanted, dict):
        return path if wanted["exists"] else f"no {path}"
    values: Sequence[Any] = wanted if isinstance(wanted, list) else [wanted]
    return f"{path} to be {' or '.join(str(value) for value in values[:5])}"

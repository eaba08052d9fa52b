"""Pages of one entity: overview with key figures, relations, raw document, and one source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import DAY
from factbook.datasources.custom import yaml_text
from factbook.errors import UnsupportedError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.schema import TYPES, Fact
from factbook.http.requests import Reply, run_offloaded
from factbook.integrations import catalog
from factbook.scheduling import runs
from factbook.web import data_sources, entity_checks, entity_facts, entity_view, formats, sets
from factbook.web.entity_facts import Facts
from factbook.web.entity_view import EntityView, RelationGroup, describe_entity
from factbook.web.formats import Value, quote_segment
from factbook.web.pages import PageContext, PageRoute

_RELATIONS_ON_PAGE = 100
_LARGEST_YAML = 1_000_000  # characters of JSON
_RAW = 200_000  # characters of a document shown; the download is complete

_CHANGES: Final = 5
_WAITING: Final = 5
_CONTENTS: Final = 10
_MOST: Final = 8
_WEEK: Final = 7 * DAY
# Figures per source that fills no shape, to leave room for other sources.
_OF_A_SOURCE: Final = 3
_LONGEST_BEFORE: Final = 300  # characters of a value in JSON
_FIGURES: Final = frozenset({"integer", "float", "boolean"})

# Facts that people look for first, in display order.
_DEFAULTS: Final = (
    "incident.incidentMetrics.monthlyIncidents",
    "security.scannerIssues.critical",
    "security.scannerIssues.high",
    "security.dependencyAlerts.open",
    "codehost.pullRequests.open",
    "codehost.mergeTime.avgLastMonthHours",
    "incident.incidentMetrics.upTimePercentage",
    "incident.incidentMetrics.meanTimeToResolve",
    "codehost.branchProtection.enabled",
    "codehost.issues.open",
    "observability.sloCount",
    "observability.monitorCount",
    "repository.totalFiles",
)
_SHAPED: Final = tuple({f"{name.partition('.')[0]}." for name in _DEFAULTS})


class KeyFigure(NamedTuple):
    """A figure with its title, page, and change in words ("" if unknown)."""

    title: str
    source: str
    path: str
    value: Value
    change: str


class _Chosen(NamedTuple):
    source: DataSource
    fact: Fact
    value: Any


async def show_entity(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity."""
    database = visit.state.database
    known_facts = await entity_facts.make_fact_cards(visit, found.shown.id, found.ref, found.entity)
    changes = await sets.list_changes_of_entity(database, found, _CHANGES)
    people = [found.shown.updated_by, *(each.revision.created_by for each in changes)]
    head = entity_view.make_entity_frame(found, "Overview")
    has_parts = head["kind"] in entity_view.CONTENT_TITLES
    belonging = await entity_checks.find_contained(database, found) if has_parts else None
    return visit.page(
        "entity.html",
        **head,
        has_parts=has_parts,
        about=describe_entity(found.shown, found.entity, {link.href for link in found.links}),
        figures=await _choose_key_figures(visit, found, known_facts),
        checks=await entity_checks.read_entity_checks(database, found.ref, visit.now),
        facts=known_facts,
        cadence=data_sources.describe_cadence,
        relations=await _group_shown_relations(visit, found, head["owner_ref"]),
        contents=belonging and await entity_checks.make_contents_table(visit, belonging, _CONTENTS),
        standing=await entity_checks.read_team_standing(database, found.ref, visit.now)
        if has_parts
        else None,
        changes=changes,
        live=_list_topics(found, known_facts),
        known=await visit.known(people),
    )


def _list_topics(found: EntityView, known: Facts) -> list[str]:
    """Live topics of the page: the entity, and sources that have not collected it yet.

    An entity's first facts are not a change, and hence create no event.
    """
    waiting = known.waiting[:_WAITING]
    topics = [("entity", found.ref), *(("source", each.source.id) for each in waiting)]
    # Blanks separate topics, and a reference may contain blanks.
    return [f"{word}/{formats.quote_segment(id_)}" for word, id_ in topics]


async def _group_shown_relations(
    visit: PageContext, found: EntityView, owner: str | None
) -> list[RelationGroup]:
    """The relations, except the owner in the page header."""
    told = ("ownedBy", owner)
    others = [one for one in found.relations if (one.type, one.target_ref) != told]
    return await entity_view.make_relation_groups(
        visit.state.database, others, f"{found.path}/relations"
    )


async def _choose_key_figures(
    visit: PageContext, found: EntityView, everything: Facts
) -> list[KeyFigure]:
    """Up to eight known figures: those named in the settings, or else the defaults."""
    known = list[_Chosen]()
    for source in everything.sources:
        values = everything.latest[source.id].facts if source.id in everything.latest else {}
        known += [
            _Chosen(source, fact, values[fact.name])
            for fact in source.schema
            if fact.name in values
        ]
    names = visit.state.settings.key_figures
    chosen = list(_pick_named(known, names) if names else _pick_fitting(known))[:_MOST]
    ids = {one.source.id for one in chosen}
    moment = visit.now - _WEEK
    before = await store.list_past(visit.state.database, found.shown.id, ids, moment)
    return [_make_key_figure(one, found.path, before.get(one.source.id, {})) for one in chosen]


def _pick_named(known: Sequence[_Chosen], wanted: Iterable[str]) -> Iterator[_Chosen]:
    """The facts with these names; a name without `SOURCE:` uses the first source with the fact."""
    for name in wanted:
        for one in known:
            if name in (one.fact.name, f"{one.source.id}:{one.fact.name}"):
                yield one
                break


def _pick_fitting(known: Sequence[_Chosen]) -> Iterator[_Chosen]:
    """Figures of shapes, leaving room for some from sources that fill no shape."""
    shaped = _pick_named(known, _DEFAULTS)
    counts: dict[str, int] = {}
    others = list[_Chosen]()
    for one in known:
        is_own = not one.fact.name.startswith(_SHAPED) and one.fact.type in _FIGURES
        if is_own and counts.setdefault(one.source.id, 0) < _OF_A_SOURCE:
            counts[one.source.id] += 1
            others.append(one)
    first = list(shaped)
    room = max(_MOST - len(others), _MOST // 2)
    yield from first[:room]
    yield from others
    yield from first[room:]


def _make_key_figure(one: _Chosen, path: str, before: Mapping[str, msgspec.Raw]) -> KeyFigure:
    source, fact, value = one
    return KeyFigure(
        formats.get_fact_title(fact),
        source.title,
        f"{path}/facts/{quote_segment(source.id)}/{quote_segment(fact.name)}",
        formats.display_fact(fact, value),
        _describe_week_change(fact, value, before.get(fact.name)),
    )


def _describe_week_change(fact: Fact, value: Any, raw: msgspec.Raw | None) -> str:
    """The change of a value in the last week."""
    if raw is None or len(bytes(raw)) > _LONGEST_BEFORE:
        return ""
    before = msgspec.json.decode(raw)
    if not TYPES[fact.type].holds(before):
        return ""
    if before == value:
        return "same as a week ago"
    if fact.type not in {"integer", "float"}:
        return f"a week ago: {formats.format_fact(fact, before)}"
    new, old = formats.make_finite(value), formats.make_finite(before)
    if new is None or old is None:
        return ""
    sign = "+" if new > old else "\N{MINUS SIGN}"
    amount = formats.format_quantity(abs(new - old), formats.get_fact_unit(fact))
    return f"{sign}{amount} in a week"


async def show_relations(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity's relations of one type or all, paginated."""
    everything = found.relations
    type_ = visit.query("type")
    asked = [each for each in everything if type_ in ("", each.type)]
    number = visit.page_number()
    first = (number - 1) * _RELATIONS_ON_PAGE
    shown = asked[first : first + _RELATIONS_ON_PAGE]
    path = f"{found.path}/relations?type={formats.quote_segment(type_)}&page="
    return visit.page(
        "entity-relations.html",
        **entity_view.make_entity_frame(found, "Relations"),
        types=entity_view.count_relation_types(everything),
        type=type_,
        rows=await entity_view.list_related(visit.state.database, shown),
        total=len(asked),
        first=first,
        before=f"{path}{number - 1}" if number > 1 else None,
        after=f"{path}{number + 1}" if first + _RELATIONS_ON_PAGE < len(asked) else None,
    )


async def show_raw_entity(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity as JSON and as YAML, to copy."""
    text: str = await run_offloaded(formats.format_json, found.entity)
    forms = [("JSON", "json", text), ("YAML", "yaml", "")]
    if len(forms[0][2]) <= _RAW:
        forms[1] = ("YAML", "yaml", await run_offloaded(yaml_text.write_yaml, found.entity))
    return visit.page(
        "entity-raw.html",
        **entity_view.make_entity_frame(found, "Raw"),
        forms=forms,
        too_long=len(forms[0][2]) > _RAW,
    )


async def download_json(visit: PageContext, found: EntityView) -> Reply:
    """Entity as a JSON file."""
    text: str = await run_offloaded(formats.format_json, found.entity)
    return _make_download(found, "json", text + "\n", b"application/json")


async def download_yaml(visit: PageContext, found: EntityView) -> Reply:
    """Entity as a YAML file; raises UnsupportedError for large ones, which take seconds."""
    if len(found.shown.stored.render()) > _LARGEST_YAML:
        raise UnsupportedError("This entity is too large for YAML; take its JSON.")
    text = await run_offloaded(yaml_text.write_yaml, found.entity)
    return _make_download(found, "yaml", text, b"application/yaml; charset=utf-8")


async def show_source_of_entity(visit: PageContext, found: EntityView) -> Reply:
    """Page of all facts of an entity from one data source."""
    known = await visit.state.registry.current()
    asked = known.sources.get(visit.request.parameter("source"))
    if asked is None or catalog.is_catalog_source(asked.id):
        return visit.redirect(found.path)
    database = visit.state.database
    down = await runs.fetch_outages(database, [asked.id])
    card = await entity_facts.make_source_card(
        visit,
        found.shown.id,
        found.ref,
        asked,
        await store.find_latest(database, asked.id, found.shown.id),
        down.get(asked.id),
        found.entity,
        can_collect=entity_facts.may_collect_source(visit, known, asked),
    )
    return visit.page(
        "entity-source.html",
        **entity_view.make_entity_frame(found, ""),
        card=card,
        cadence=data_sources.describe_cadence,
    )


def _make_download(found: EntityView, ending: str, text: str, content_type: bytes) -> Reply:
    name = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "-"
                   for char in formats.get_ref_name(found.ref))  # fmt: skip
    headers = {"content-disposition": f'attachment; filename="{name[:100]}.{ending}"'}
    return Reply(text.encode(), headers=headers, content_type=content_type)


_NEEDS = (CATALOG_READ, SOURCE_READ)
ENTITY_SUMMARY: Sequence[PageRoute] = (
    PageRoute(
        "GET",
        entity_view.ENTITY_PATH,
        entity_view.handle_entity_page(show_entity),
        (CATALOG_READ, SOURCE_READ),
    ),
)

ENTITY: Sequence[PageRoute] = (
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/relations",
        entity_view.handle_entity_page(show_relations),
        _NEEDS,
    ),
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/raw",
        entity_view.handle_entity_page(show_raw_entity),
        _NEEDS,
    ),
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/raw.json",
        entity_view.handle_entity_page(download_json),
        _NEEDS,
    ),
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/raw.yaml",
        entity_view.handle_entity_page(download_yaml),
        _NEEDS,
    ),
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/facts/{{source}}",
        entity_view.handle_entity_page(show_source_of_entity),
        _NEEDS,
    ),
)

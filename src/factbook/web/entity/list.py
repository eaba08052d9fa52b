"""The catalog: search for entities by text, values and owner, with chosen columns, and its CSV."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.filters import Matcher
from factbook.catalog.store import browse, entity_query, stored_entities
from factbook.catalog.store.browse import EntityRow, Filter, FilterChoice, Order
from factbook.catalog.store.entity_query import Place
from factbook.catalog.store.related_entities import BrokenEntity
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE
from factbook.checks.results import level_store
from factbook.checks.results.grader import decode_level
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.errors import InputError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.schema import NEVER_COLLECTED, Fact, reason_word
from factbook.http.csv_lines import (
    CONTENT_TYPE,
    make_attachment_headers,
    render_csv_line,
    render_plain_cell,
)
from factbook.http.requests import Reply, run_offloaded
from factbook.integrations import catalog
from factbook.storage import Database
from factbook.web.entity import catalog_query, entity_rows
from factbook.web.entity.catalog_query import (
    DANGLING,
    EXACT,
    MOST_COLUMNS,
    OWNERSHIPS,
    PATH,
    CatalogQuery,
)
from factbook.web.site import fact_display, formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

# Begins the name of a column with levels; no source has a colon in its id.
_LEVELS: Final = "scorecard:"
_CHOICES: Final = 200


class FactOfSource(NamedTuple):
    """A fact of a source; `bit` is the one that holds it where the catalog itself knows it."""

    source: DataSource
    fact: Fact
    bit: int | None


class CatalogColumn(NamedTuple):
    """A column: `name` as in the address, and what it shows."""

    name: str
    title: str
    shows: FactOfSource | ScorecardInEffect


class ColumnValue(NamedTuple):
    """The value about an entity, or the stored reason for none; neither if nothing tells of it."""

    value: Any = None
    reason: str | None = None
    stale: bool = False


class ColumnCell(NamedTuple):
    """A value in words or the reason in short, with the path of the page about it."""

    text: str
    reason: str
    path: str
    stale: bool = False


class ChosenColumns(NamedTuple):
    """The columns, and what is to be said of those that are none."""

    columns: list[CatalogColumn]
    hints: list[str]


_Found = Mapping[int, Mapping[str, Latest]]


async def chosen_columns(
    visit: PageContext, names: Sequence[str], cards: Sequence[ScorecardInEffect]
) -> ChosenColumns:
    """The columns with these names that the person may see."""
    columns, hints = list[CatalogColumn](), list[str]()
    sources = await _sources(visit) if names else {}
    for name in names:
        column = _levels(name, cards) if name.startswith(_LEVELS) else _fact(name, sources)
        if column is None:
            hints.append(f"There is no column {name}.")
        else:
            columns.append(column)
    return ChosenColumns(columns, hints)


async def column_choices(
    visit: PageContext, cards: Sequence[ScorecardInEffect]
) -> list[tuple[str, str]]:
    """Names and titles of columns: the levels, and the facts of the first sources."""
    found = [(f"{_LEVELS}{card.id}", f"Level of {card.title}") for card, _ in cards]
    for source in (await _sources(visit)).values():
        found += [
            (f"{source.id}/{fact.name}", f"{fact_display.title(fact)} · {source.title}")
            for fact in source.schema
        ]
        if len(found) >= _CHOICES:
            break
    return found[:_CHOICES]


async def column_values(
    database: Database, columns: Sequence[CatalogColumn], rows: Sequence[EntityRow]
) -> list[list[ColumnValue]]:
    """The values of the entities, row by row."""
    if not columns:
        return [[] for _ in rows]
    ids = [row.id for row in rows]
    facts = [one.shows for one in columns if isinstance(one.shows, FactOfSource)]
    sources = sorted({one.source.id for one in facts if one.bit is None})
    latest = await store.list_latest_of_entities(database, sources, ids)
    has_bits, has_levels = any(one.bit for one in facts), len(facts) < len(columns)
    bits = await stored_entities.read_compliance(database, ids) if has_bits else {}
    levels = await level_store.read_levels_of(database, ids) if has_levels else {}
    found: list[list[ColumnValue]] = await run_offloaded(
        _values, columns, rows, latest, bits, levels
    )
    return found


def column_cells(
    columns: Sequence[CatalogColumn], row: EntityRow, found: Sequence[ColumnValue]
) -> list[ColumnCell]:
    """The cells of an entity."""
    path = formats.entity_path(row.ref)
    return [_cell(path, column, one) for column, one in zip(columns, found, strict=True)]


async def _sources(visit: PageContext) -> Mapping[str, DataSource]:
    if not visit.may(SOURCE_READ):
        return {}
    return (await visit.state.registry.current()).sources


def _fact(name: str, sources: Mapping[str, DataSource]) -> CatalogColumn | None:
    source_id, _, fact_name = name.partition("/")
    source = sources.get(source_id)
    fact = next((one for one in source.schema if one.name == fact_name), None) if source else None
    if source is None or fact is None:
        return None
    shows = FactOfSource(source, fact, catalog.find_compliance_bit(source_id, fact_name))
    return CatalogColumn(name, fact_display.title(fact), shows)


def _levels(name: str, cards: Sequence[ScorecardInEffect]) -> CatalogColumn | None:
    wanted = name.removeprefix(_LEVELS)
    found = (CatalogColumn(name, one.card.title, one) for one in cards if one.card.id == wanted)
    return next(found, None)


def _values(
    columns: Sequence[CatalogColumn],
    rows: Sequence[EntityRow],
    latest: _Found,
    bits: Mapping[int, int],
    levels: Mapping[int, bytes],
) -> list[list[ColumnValue]]:
    return [
        [
            _of_fact(one.shows, row, latest.get(row.id, {}), bits.get(row.id, 0))
            if isinstance(one.shows, FactOfSource)
            else _of_level(one.shows, levels.get(row.id, b""))
            for one in columns
        ]
        for row in rows
    ]


def _of_fact(
    shows: FactOfSource, row: EntityRow, latest: Mapping[str, Latest], bits: int
) -> ColumnValue:
    source, fact, bit = shows
    if bit is not None:
        return ColumnValue(bool(bits & bit))
    known = latest.get(source.id)
    if known is None:
        matcher = Matcher(msgspec.json.decode(row.document))
        is_asked = matcher.lets_through(source.selection)
        return ColumnValue(reason=NEVER_COLLECTED if is_asked else None)
    value = known.facts.get(fact.name)
    if value is None:
        return ColumnValue(reason=find_reason(fact.name, known.reasons) or NEVER_COLLECTED)
    return ColumnValue(value, stale=fact.name in known.kept)


def _of_level(given: ScorecardInEffect, levels: bytes) -> ColumnValue:
    graded = decode_level(levels, given.slot)
    if graded is None or graded.coverage is None:
        return ColumnValue()
    titles = [NO_LEVEL_TITLE, *(level.title for level in given.card.levels)]
    return ColumnValue(titles[graded.level])


def _cell(path: str, column: CatalogColumn, found: ColumnValue) -> ColumnCell:
    if not isinstance(column.shows, FactOfSource):
        return ColumnCell(found.value or "", "", f"{path}#checks")
    source, fact, _ = column.shows
    text = "" if found.value is None else fact_display.in_words(fact, found.value) or "empty"
    reason = "" if found.reason is None else fact_display.plain(found.reason).short
    fact_path = f"{path}/facts/{segment(source.id)}/{segment(fact.name)}"
    return ColumnCell(text, reason, fact_path, found.stale)


EXPORT = f"{PATH}/export"
_BROKEN: Final = ("dangling", "set", "pushedBy")


async def export(visit: PageContext) -> Reply:
    """The matching entities as CSV, by reference."""
    asked = await CatalogQuery.of(visit)
    cards = await catalog_query.scorecards(visit)
    wanted, _ = await catalog_query.of(visit, asked, cards)
    columns, _ = await chosen_columns(visit, asked.column, cards)
    return Reply(
        _lines(visit.state.database, asked, wanted, columns),
        headers=make_attachment_headers("catalog"),
        content_type=CONTENT_TYPE,
    )


async def _lines(
    database: Database, asked: CatalogQuery, wanted: Filter, columns: Sequence[CatalogColumn]
) -> AsyncIterator[bytes]:
    yield render_csv_line(
        [*entity_rows.EXPORTED, *(_BROKEN if asked.broken else ()), *_titles(columns)]
    ).encode()
    async for rows in browse.stream_browsed(database, wanted):
        values = await column_values(database, columns, rows)
        broken = await catalog_query.broken(database, asked, rows)
        yield await run_offloaded(_portion, rows, columns, values, broken)


def _portion(
    rows: Sequence[EntityRow],
    columns: Sequence[CatalogColumn],
    values: Sequence[Sequence[ColumnValue]],
    broken: Mapping[str, BrokenEntity] | None,
) -> bytes:
    lines = (
        render_csv_line(
            [*entity_rows.exported(row), *_of_broken(row, broken), *_cells(columns, found)]
        )
        for row, found in zip(rows, values, strict=True)
    )
    return "".join(lines).encode()


def _of_broken(row: EntityRow, broken: Mapping[str, BrokenEntity] | None) -> Iterator[object]:
    if broken is not None:
        found = broken.get(row.ref)
        yield found and " ".join(f"{field}={target}" for field, target in found.references)
        yield found and found.set
        yield found and found.pushed_by


def _titles(columns: Sequence[CatalogColumn]) -> Iterator[str]:
    """The name of each column, and for a fact those beside it: why it is unknown, and stale."""
    for column in columns:
        yield column.name
        if isinstance(column.shows, FactOfSource):
            yield f"{column.name} unknownReason"
            yield f"{column.name} stale"


def _cells(columns: Sequence[CatalogColumn], found: Sequence[ColumnValue]) -> Iterator[object]:
    for column, one in zip(columns, found, strict=True):
        yield render_plain_cell(one.value)
        if isinstance(column.shows, FactOfSource):
            yield one.reason and reason_word(one.reason)
            yield None if one.value is None else ("true" if one.stale else "false")


CATALOG_EXPORT: Sequence[PageRoute] = (PageRoute("GET", EXPORT, export, (CATALOG_READ,)),)


_ITEMS: Final = 40
_LONGEST_PLACE: Final = 4_000  # characters of a position in an address

_ORDERS: Final = (("name", "By name"), ("kind", "By kind"), ("updated", "Last changed first"))
_MOST_CHOICES: Final = 100


class ListChoices(NamedTuple):
    """The values by parameter, the most frequent or the first ones; none if they are not asked."""

    namespaces: Sequence[FilterChoice] = ()
    owners: Sequence[FilterChoice] = ()
    tags: Sequence[FilterChoice] = ()
    sets: Sequence[FilterChoice] = ()
    types: Sequence[str] = ()
    lifecycles: Sequence[str] = ()
    systems: Sequence[str] = ()
    is_asked: bool = True


async def show(visit: PageContext) -> Reply:
    """Page of matching entities."""
    asked, database = await CatalogQuery.of(visit), visit.state.database
    order = next(order for order in browse.ORDERS if order == (asked.order or "name"))
    place, backward = _place(visit, order)
    cards = await catalog_query.scorecards(visit)
    wanted, hints = await catalog_query.of(visit, asked, cards)
    columns, unknown = await chosen_columns(visit, asked.column, cards)
    exact = asked.count == EXACT
    listed = browse.browse_entities(
        database, wanted, order, _ITEMS, place, backward=backward, exact=exact
    )
    found, choices = await asyncio.gather(listed, _choices(visit))
    values = await column_values(database, columns, found.page.items)
    before, after = _beside(found.page.places, order, found.page.before, found.page.after)
    return visit.page(
        "catalog.html",
        asked=asked,
        rows=(rows := [entity_rows.row(each) for each in found.page.items]),
        columns=columns,
        cells=[
            column_cells(columns, row, own)
            for row, own in zip(found.page.items, values, strict=True)
        ],
        column_choices=await column_choices(visit, cards) if choices.is_asked else [],
        most_columns=MOST_COLUMNS,
        row_kinds=sorted({row.kind for row in rows}),
        found=found,
        bound=entity_query.COUNT_BOUND,
        exactly=asked.address(count=EXACT),
        hints=[*hints, *unknown],
        export=asked.address(EXPORT),
        choices=choices,
        namespaces=_counted(choices.namespaces, asked.namespace, "Any namespace"),
        sets=_counted(choices.sets, asked.set, "Any set"),
        types=_plain(choices.types, asked.type.lower(), "Any type"),
        lifecycles=_plain(choices.lifecycles, asked.lifecycle.lower(), "Any"),
        levels=catalog_query.level_choices(cards),
        ownerships=OWNERSHIPS,
        danglings=DANGLING,
        broken=await catalog_query.broken(database, asked, found.page.items),
        orders=_ORDERS,
        order=order,
        order_of={name: asked.address(order=name) for name, _ in _ORDERS},
        before=before and asked.address(**before),
        after=after and asked.address(**after),
        server=visit.server,
        push_word=visit.state.settings.push_word,
    )


def _place(visit: PageContext, order: Order) -> tuple[Place | None, bool]:
    """Place in the address, and whether the page ends before it.

    Raises InputError for an invalid place in this order.
    """
    after, before = visit.query("after"), visit.query("before")
    if not after and not before:
        return None, False
    return _decoded(after or before, order), not after


def _beside(
    places: Sequence[Place], order: Order, before: bool, after: bool
) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """Parameters of the pages before and after one with these places; None for no page."""
    back = {"before": _encoded(places[0], order)} if places and before else None
    next_ = {"after": _encoded(places[-1], order)} if places and after else None
    return back, next_


def _encoded(place: Place, order: Order) -> str:
    text = msgspec.json.encode([order, *place])
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _decoded(text: str, order: Order) -> Place:
    try:
        content = base64.b64decode(text[:_LONGEST_PLACE] + "=" * (-len(text) % 4), altchars=b"-_")
        found: list[str | int] = msgspec.json.decode(content, type=list[str | int])
    except (ValueError, msgspec.MsgspecError):
        raise _wrong() from None
    if found[:1] != [order] or not browse.is_browse_place(found[1:], order):
        raise _wrong()
    return tuple(found[1:])


def _wrong() -> InputError:
    return InputError(
        "This address is of no page of the list. Open the catalog and go on from there."
    )


async def _choices(visit: PageContext) -> ListChoices:
    """The choices; none for the script, which takes only the results from the page."""
    if visit.request.header(b"sec-fetch-dest") == "empty":
        return ListChoices(is_asked=False)
    database = visit.state.database
    return await browse.remember_count(
        database, visit.now, "choices", partial(_read_choices, database)
    )


async def _read_choices(database: Database) -> ListChoices:
    counted = asyncio.gather(
        browse.list_namespace_choices(database, _MOST_CHOICES),
        browse.list_owner_choices(database, _MOST_CHOICES),
        browse.list_tag_choices(database, _MOST_CHOICES),
        browse.list_set_choices(database, _MOST_CHOICES),
    )
    plain = asyncio.gather(
        browse.list_value_choices(database, "spec.type", "", _MOST_CHOICES),
        browse.list_value_choices(database, "spec.lifecycle", "", _MOST_CHOICES),
        browse.find_system_choices(database, "", _MOST_CHOICES),
    )
    return ListChoices(*await counted, *await plain)


def _counted(choices: Sequence[FilterChoice], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """Options of a select with their numbers, ordered by name, including the chosen one."""
    return _options(
        {each.value: f"{each.value} ({each.entities:,})" for each in choices}, chosen, nothing
    )


def _plain(values: Sequence[str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    """The same of values without numbers."""
    return _options({value: value for value in values}, chosen, nothing)


def _options(options: dict[str, str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    if chosen:
        options.setdefault(chosen, chosen)
    return [("", nothing), *sorted(options.items(), key=lambda option: option[0].casefold())]


CATALOG: Sequence[PageRoute] = (PageRoute("GET", PATH, show, (CATALOG_READ,)),)

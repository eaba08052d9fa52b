"""The catalog: its search parameters and filter, the list with chosen columns, and its CSV."""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Final, NamedTuple, Self, cast, get_args
from urllib.parse import quote, urlencode

import msgspec

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.catalog import people_trust
from factbook.catalog.filters import Matcher
from factbook.catalog.store import browse, entity_query, related_entities, stored_entities
from factbook.catalog.store.browse import EntityRow, Filter, FilterChoice, Order
from factbook.catalog.store.conditions import Condition
from factbook.catalog.store.entity_query import Place, count_kinds
from factbook.catalog.store.related_entities import (
    ANY_FIELD,
    BrokenEntity,
    Dangling,
    ReferenceField,
)
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, NO_LEVEL_WORD
from factbook.checks.results import level_store
from factbook.checks.results.grader import decode_level
from factbook.checks.scorecard_figures import ScorecardInEffect
from factbook.clock import iso
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
from factbook.web import entity_checks, formats
from factbook.web.formats import quote_segment
from factbook.web.pages import PageContext, PageRoute

PATH: Final = "/catalog"
MOST_COLUMNS: Final = 4
EXACT: Final = "exact"
MINE: Final = "mine"
NONE: Final = "none"
MISSING: Final = "missing"
OWNERSHIPS: Final = (
    ("", "Any"),
    (MINE, "Mine, including subteams"),
    (NONE, "No owner"),
    (MISSING, "Owner doesn't exist"),
)
DANGLING: Final = (
    ("", "With or without"),
    (ANY_FIELD, "In any field"),
    *((name, f"In {name}") for name in get_args(ReferenceField) if name != ANY_FIELD),
)
_FIRST: Final = "component"
_LONGEST: Final = 300  # characters of a parameter; no indexed value is longer
_WITHOUT_EFFECT: Final = frozenset({"order", "count", "column"})


@dataclass(frozen=True)
class CatalogQuery:
    """Search parameters as typed; `begins` marks the default list of a bare address."""

    q: str = ""
    kind: str = ""
    namespace: str = ""
    owner: str = ""
    ownership: str = ""
    dangling: str = ""
    tag: str = ""
    type: str = ""
    lifecycle: str = ""
    system: str = ""
    level: str = ""
    set: str = ""
    order: str = ""
    count: str = ""
    column: tuple[str, ...] = ()
    begins: bool = False

    @classmethod
    async def of(cls, visit: PageContext) -> Self:
        """Parse the query of a request; raises InputError for unknown words.

        An address without parameters lists the components, if there are any.
        """
        texts: dict[str, Any] = {
            one.name: _clean_parameter(visit.query(one.name))
            for one in fields(cls)
            if one.type is str
        }
        columns = filter(None, dict.fromkeys(map(_clean_parameter, visit.request.all("column"))))
        asked = cls(**texts, column=tuple(columns)[:MOST_COLUMNS])
        for name, words in _WORDS.items():
            if getattr(asked, name) not in ("", *words):
                raise InputError(f"The {name} has to be one of {', '.join(words)}, or left out.")
        if visit.request.query or _FIRST not in await count_kinds(visit.state.database):
            return asked
        return replace(asked, kind=_FIRST, begins=True)

    @property
    def narrowed(self) -> bool:
        """True if a filter is set."""
        given = self._given()
        return bool(given.keys() - _WITHOUT_EFFECT)

    @property
    def broken(self) -> ReferenceField | None:
        """The field whose references must be broken; None without such a filter."""
        if self.dangling:
            return cast("ReferenceField", self.dangling)
        return "owner" if self.ownership == MISSING else None

    @property
    def further(self) -> bool:
        """True if a less common filter is set."""
        return any((self.namespace, self.system, self.level, self.set, self.dangling))

    def address(self, path: str = PATH, **others: str) -> str:
        """Address with some parameters replaced; empty ones are left out.

        The list of all entities has an empty `kind`, as a bare address lists the components.
        """
        given = {name: value for name, value in {**self._given(), **others}.items() if value}
        query = urlencode(given or {"kind": ""}, doseq=True, quote_via=quote)
        return f"{path}?{query}"

    def _given(self) -> dict[str, str | tuple[str, ...]]:
        given = asdict(self)
        del given["begins"]
        return {name: value for name, value in given.items() if value}


def _clean_parameter(text: str) -> str:
    # No entity contains NUL, and PostgreSQL rejects text that does.
    return text.strip().replace("\0", "")[:_LONGEST]


_WORDS: Final = {
    "order": browse.ORDERS,
    "count": (EXACT,),
    "ownership": [word for word, _ in OWNERSHIPS if word],
    "dangling": get_args(ReferenceField),
}


# Names that a typed part may match, and owners missing from the catalog.
_MATCHES: Final = 50
_MISSING: Final = 1_000
_GROUPS: Final = 50  # of a person


class CatalogFilter(NamedTuple):
    """The filter, with hints about it."""

    filter: Filter
    hints: list[str]


class _Matches(NamedTuple):
    values: Sequence[str] | None
    hint: str = ""


_ANY: Final = _Matches(None)


async def build_catalog_filter(
    visit: PageContext, asked: CatalogQuery, cards: Sequence[ScorecardInEffect]
) -> CatalogFilter:
    """Build the filter; raises InputError for an unknown level."""
    database = visit.state.database
    owners = await _match_owners(database, asked.owner)
    systems = await _match_systems(database, asked.system)
    tags = _ANY
    if tag := asked.tag.lower():
        choices = await browse.list_value_choices(database, "metadata.tags", tag, _MATCHES + 1)
        tags = _Matches([tag]) if choices[:1] == [tag] else _limit_matches(choices, "tags")
    others, ownership_hint = await _build_ownership_conditions(visit, asked.ownership)
    for type_, targets in (("ownedBy", owners), ("partOf", systems)):
        if targets.values is not None:
            others.append(
                await entity_query.build_related_condition(database, type_, targets.values)
            )
    if asked.dangling:
        others.append(Dangling(cast("ReferenceField", asked.dangling)))
    if asked.level:
        others.append(await entity_checks.build_level_condition(database, cards, asked.level))
    hints = [owners.hint, systems.hint, tags.hint, ownership_hint]
    entity_filter = Filter(
        kind=asked.kind.lower(),
        namespace=asked.namespace.lower(),
        tags=tags.values,
        set=asked.set,
        text=asked.q.lower(),
        type=asked.type.lower(),
        lifecycle=asked.lifecycle.lower(),
        others=tuple(others),
    )
    return CatalogFilter(entity_filter, [hint for hint in hints if hint])


async def find_broken_of_rows(
    database: Database, asked: CatalogQuery, rows: Sequence[EntityRow]
) -> Mapping[str, BrokenEntity] | None:
    """The broken references of these entities; None unless the query filters by them."""
    if asked.broken is None:
        return None
    return await related_entities.find_broken_references(
        database, [row.ref for row in rows], asked.broken
    )


async def list_visible_scorecards(visit: PageContext) -> list[ScorecardInEffect]:
    """The scorecards whose levels the person may see."""
    return (
        await entity_checks.list_scorecards_in_effect(visit.state.database)
        if visit.may(CHECK_READ)
        else []
    )


def list_level_choices(cards: Sequence[ScorecardInEffect]) -> list[tuple[str, str]]:
    """Options for the levels of each scorecard, highest first."""
    found = [("", "Any")]
    for card, _ in cards:
        levels = [(one.id, one.title) for one in reversed(card.levels)]
        for id_, title in (*levels, (NO_LEVEL_WORD, NO_LEVEL_TITLE)):
            found.append((f"{card.id}/{id_}", f"{card.title}: {title}"))
    return found


async def _match_owners(database: Database, text: str) -> _Matches:
    """The owner with this name, or else owners whose reference contains the text."""
    if not text:
        return _ANY
    exact = formats.normalize_ref(text, "group", "default")
    if exact and await browse.is_relation_target(database, "ownedBy", exact):
        return _Matches([exact])
    found = await browse.find_owner_choices(database, text.lower(), _MATCHES + 1)
    return _limit_matches(found, "owners")


async def _match_systems(database: Database, text: str) -> _Matches:
    if not text:
        return _ANY
    exact = formats.normalize_ref(text, "system", "default")
    if exact and await browse.is_relation_target(database, "partOf", exact):
        return _Matches([exact])
    found = await browse.find_system_choices(database, text.lower(), _MATCHES + 1)
    return _limit_matches(found, "systems")


def _limit_matches(found: Sequence[str], noun: str) -> _Matches:
    if not found:
        return _Matches([], f"There are no matching {noun}.")
    if len(found) > _MATCHES:
        return _Matches(
            found[:_MATCHES], f"Only the first {_MATCHES} matching {noun} are used. Type more."
        )
    return _Matches(found)


async def _build_ownership_conditions(
    visit: PageContext, ownership: str
) -> tuple[list[Condition], str]:
    database = visit.state.database
    if ownership == NONE:
        return [browse.LacksOwner()], ""
    if ownership == MISSING:
        missing = await browse.find_missing_owners(database, _MISSING + 1)
        hint = (
            f"Only entities of the first {_MISSING:,} missing owners are listed."
            if len(missing) > _MISSING
            else ""
        )
        return [
            await entity_query.build_related_condition(database, "ownedBy", missing[:_MISSING])
        ], hint
    if ownership == MINE:
        person = visit.person.ref
        groups = sorted(await people_trust.read_stated_groups(database, person))[:_GROUPS]
        below = await asyncio.gather(
            *(related_entities.list_groups_below(database, one) for one in groups)
        )
        refs = dict.fromkeys([person, *(ref for some in below for ref in some)])
        hint = (
            "" if groups else f"{formats.shorten_ref(person)} is not in any group in the catalog."
        )
        return [await entity_query.build_related_condition(database, "ownedBy", list(refs))], hint
    return [], ""


EXPORTED_COLUMNS: Final = (
    *("entityRef", "kind", "title", "type", "lifecycle", "owner", "system", "tags", "updatedAt"),
)
_MOST_TAGS: Final = 4  # of an entity in the list
_LONGEST_DESCRIPTION: Final = 200  # characters in the list


class EntityListRow(NamedTuple):
    """An entity in the list."""

    ref: str
    kind: str
    title: str
    name: str | None  # if the title is different
    type: str
    owner: str
    owner_ref: str | None
    tags: list[str]
    more_tags: int
    description: str
    updated_at: int


class _RowMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""
    description: str = ""
    tags: list[str] = []


class _RowSpec(msgspec.Struct):
    type: Any = None
    lifecycle: Any = None
    system: Any = None
    owner: Any = None
    profile: Any = None

    @property
    def display_name(self) -> str:
        """The display name of a person or group."""
        found = self.profile.get("displayName") if isinstance(self.profile, dict) else None
        return found if isinstance(found, str) else ""


class _RowDocument(msgspec.Struct):
    metadata: _RowMetadata
    spec: _RowSpec = msgspec.field(default_factory=_RowSpec)

    @property
    def title(self) -> str:
        """The title, the display name, or else the name."""
        return self.metadata.title or self.spec.display_name or self.metadata.name


_decode_row = msgspec.json.Decoder(_RowDocument).decode


def make_list_row(listed: EntityRow) -> EntityListRow:
    """Row of an entity."""
    metadata, spec = (document := _decode_row(listed.document)).metadata, document.spec
    kind, _, rest = listed.ref.partition(":")
    owner = spec.owner if isinstance(spec.owner, str) else ""
    owner_ref = formats.normalize_ref(owner, "group", rest.partition("/")[0])
    description = " ".join(metadata.description[: 4 * _LONGEST_DESCRIPTION].split())
    if len(description) > _LONGEST_DESCRIPTION:
        description = f"{description[:_LONGEST_DESCRIPTION].rstrip()}…"
    return EntityListRow(
        listed.ref,
        kind,
        document.title,
        metadata.name if document.title != metadata.name else None,
        spec.type if isinstance(spec.type, str) else "",
        formats.shorten_owner(owner_ref) if owner_ref else owner,
        owner_ref,
        metadata.tags[:_MOST_TAGS],
        max(0, len(metadata.tags) - _MOST_TAGS),
        description,
        listed.updated_at,
    )


def make_export_row(listed: EntityRow) -> tuple[object, ...]:
    """The CSV cells of an entity, in the order of `EXPORTED`."""
    metadata, spec = (document := _decode_row(listed.document)).metadata, document.spec
    plain = (spec.type, spec.lifecycle, spec.owner, spec.system)
    texts = (text if isinstance(text, str) else "" for text in plain)
    changed = iso(listed.updated_at)
    kind = listed.ref.partition(":")[0]
    return (
        listed.ref,
        kind,
        document.title,
        *texts,
        " ".join(metadata.tags),
        changed,
    )


# Prefix of level column names; source ids have no colon.
_LEVEL_PREFIX: Final = "scorecard:"
_MOST_COLUMN_CHOICES: Final = 200


class FactOfSource(NamedTuple):
    """A fact of a source; `bit` is its compliance bit, None for collected facts."""

    source: DataSource
    fact: Fact
    bit: int | None


class CatalogColumn(NamedTuple):
    """A column: its `name` in the address, and the fact or scorecard it shows."""

    name: str
    title: str
    shows: FactOfSource | ScorecardInEffect


class ColumnValue(NamedTuple):
    """An entity's value, or the stored reason for having none; neither if no source reports it."""

    value: Any = None
    reason: str | None = None
    stale: bool = False


class ColumnCell(NamedTuple):
    """A formatted value or a short reason, with the path of its page."""

    text: str
    reason: str
    path: str
    stale: bool = False


class ChosenColumns(NamedTuple):
    """The columns, with hints about unknown names."""

    columns: list[CatalogColumn]
    hints: list[str]


_Found = Mapping[int, Mapping[str, Latest]]


async def choose_columns(
    visit: PageContext, names: Sequence[str], cards: Sequence[ScorecardInEffect]
) -> ChosenColumns:
    """The columns with these names, limited to those the person may see."""
    columns, hints = list[CatalogColumn](), list[str]()
    sources = await _get_visible_sources(visit) if names else {}
    for name in names:
        if name.startswith(_LEVEL_PREFIX):
            card_id = name.removeprefix(_LEVEL_PREFIX)
            scorecard = next((each for each in cards if each.card.id == card_id), None)
            column = CatalogColumn(name, scorecard.card.title, scorecard) if scorecard else None
        else:
            column = _make_fact_column(name, sources)
        if column is None:
            hints.append(f"There is no column {name}.")
        else:
            columns.append(column)
    return ChosenColumns(columns, hints)


async def list_column_choices(
    visit: PageContext, cards: Sequence[ScorecardInEffect]
) -> list[tuple[str, str]]:
    """Names and titles of columns: the levels, and the facts of the first sources."""
    found = [(f"{_LEVEL_PREFIX}{card.id}", f"Level of {card.title}") for card, _ in cards]
    for source in (await _get_visible_sources(visit)).values():
        found += [
            (f"{source.id}/{fact.name}", f"{formats.get_fact_title(fact)} · {source.title}")
            for fact in source.schema
        ]
        if len(found) >= _MOST_COLUMN_CHOICES:
            break
    return found[:_MOST_COLUMN_CHOICES]


async def read_column_values(
    database: Database, columns: Sequence[CatalogColumn], rows: Sequence[EntityRow]
) -> list[list[ColumnValue]]:
    """The column values of the entities, row by row."""
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
        _make_column_values, columns, rows, latest, bits, levels
    )
    return found


def make_column_cells(
    columns: Sequence[CatalogColumn], row: EntityRow, found: Sequence[ColumnValue]
) -> list[ColumnCell]:
    """The cells of an entity."""
    path = formats.make_entity_path(row.ref)
    return [
        _make_column_cell(path, column, one) for column, one in zip(columns, found, strict=True)
    ]


async def _get_visible_sources(visit: PageContext) -> Mapping[str, DataSource]:
    if not visit.may(SOURCE_READ):
        return {}
    return (await visit.state.registry.current()).sources


def _make_fact_column(name: str, sources: Mapping[str, DataSource]) -> CatalogColumn | None:
    source_id, _, fact_name = name.partition("/")
    source = sources.get(source_id)
    fact = next((one for one in source.schema if one.name == fact_name), None) if source else None
    if source is None or fact is None:
        return None
    shows = FactOfSource(source, fact, catalog.find_compliance_bit(source_id, fact_name))
    return CatalogColumn(name, formats.get_fact_title(fact), shows)


def _make_column_values(
    columns: Sequence[CatalogColumn],
    rows: Sequence[EntityRow],
    latest: _Found,
    bits: Mapping[int, int],
    levels: Mapping[int, bytes],
) -> list[list[ColumnValue]]:
    return [
        [
            _make_fact_value(one.shows, row, latest.get(row.id, {}), bits.get(row.id, 0))
            if isinstance(one.shows, FactOfSource)
            else _make_level_value(one.shows, levels.get(row.id, b""))
            for one in columns
        ]
        for row in rows
    ]


def _make_fact_value(
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


def _make_level_value(given: ScorecardInEffect, levels: bytes) -> ColumnValue:
    graded = decode_level(levels, given.slot)
    if graded is None or graded.coverage is None:
        return ColumnValue()
    titles = [NO_LEVEL_TITLE, *(level.title for level in given.card.levels)]
    return ColumnValue(titles[graded.level])


def _make_column_cell(path: str, column: CatalogColumn, found: ColumnValue) -> ColumnCell:
    if not isinstance(column.shows, FactOfSource):
        return ColumnCell(found.value or "", "", f"{path}#checks")
    source, fact, _ = column.shows
    text = "" if found.value is None else formats.format_fact(fact, found.value) or "empty"
    reason = "" if found.reason is None else formats.describe_reason(found.reason).short
    fact_path = f"{path}/facts/{quote_segment(source.id)}/{quote_segment(fact.name)}"
    return ColumnCell(text, reason, fact_path, found.stale)


EXPORT = f"{PATH}/export"
_BROKEN: Final = ("dangling", "set", "pushedBy")


async def export_catalog(visit: PageContext) -> Reply:
    """Export the matching entities as CSV, ordered by reference."""
    asked = await CatalogQuery.of(visit)
    cards = await list_visible_scorecards(visit)
    wanted, _ = await build_catalog_filter(visit, asked, cards)
    columns, _ = await choose_columns(visit, asked.column, cards)
    return Reply(
        _stream_csv(visit.state.database, asked, wanted, columns),
        headers=make_attachment_headers("catalog"),
        content_type=CONTENT_TYPE,
    )


async def _stream_csv(
    database: Database, asked: CatalogQuery, wanted: Filter, columns: Sequence[CatalogColumn]
) -> AsyncIterator[bytes]:
    yield render_csv_line(
        [*EXPORTED_COLUMNS, *(_BROKEN if asked.broken else ()), *_list_exported_titles(columns)]
    ).encode()
    async for rows in browse.stream_browsed(database, wanted):
        values = await read_column_values(database, columns, rows)
        broken = await find_broken_of_rows(database, asked, rows)
        yield await run_offloaded(_write_csv_rows, rows, columns, values, broken)


def _write_csv_rows(
    rows: Sequence[EntityRow],
    columns: Sequence[CatalogColumn],
    values: Sequence[Sequence[ColumnValue]],
    broken: Mapping[str, BrokenEntity] | None,
) -> bytes:
    lines = (
        render_csv_line(
            [
                *make_export_row(row),
                *_list_broken_cells(row, broken),
                *_list_exported_cells(columns, found),
            ]
        )
        for row, found in zip(rows, values, strict=True)
    )
    return "".join(lines).encode()


def _list_broken_cells(
    row: EntityRow, broken: Mapping[str, BrokenEntity] | None
) -> Iterator[object]:
    if broken is not None:
        found = broken.get(row.ref)
        yield found and " ".join(f"{field}={target}" for field, target in found.references)
        yield found and found.set
        yield found and found.pushed_by


def _list_exported_titles(columns: Sequence[CatalogColumn]) -> Iterator[str]:
    """The title of each column; a fact also gets an unknownReason and a stale column."""
    for column in columns:
        yield column.name
        if isinstance(column.shows, FactOfSource):
            yield f"{column.name} unknownReason"
            yield f"{column.name} stale"


def _list_exported_cells(
    columns: Sequence[CatalogColumn], found: Sequence[ColumnValue]
) -> Iterator[object]:
    for column, one in zip(columns, found, strict=True):
        yield render_plain_cell(one.value)
        if isinstance(column.shows, FactOfSource):
            yield one.reason and reason_word(one.reason)
            yield None if one.value is None else ("true" if one.stale else "false")


CATALOG_EXPORT: Sequence[PageRoute] = (PageRoute("GET", EXPORT, export_catalog, (CATALOG_READ,)),)


_ITEMS: Final = 40
_LONGEST_PLACE: Final = 4_000  # characters of a position in an address

_ORDERS: Final = (("name", "By name"), ("kind", "By kind"), ("updated", "Last changed first"))
_MOST_CHOICES: Final = 100


class ListChoices(NamedTuple):
    """Filter choices by parameter, most frequent or first; empty unless `is_asked`."""

    namespaces: Sequence[FilterChoice] = ()
    owners: Sequence[FilterChoice] = ()
    tags: Sequence[FilterChoice] = ()
    sets: Sequence[FilterChoice] = ()
    types: Sequence[str] = ()
    lifecycles: Sequence[str] = ()
    systems: Sequence[str] = ()
    is_asked: bool = True


async def show_catalog(visit: PageContext) -> Reply:
    """Page of matching entities."""
    asked, database = await CatalogQuery.of(visit), visit.state.database
    order = next(order for order in browse.ORDERS if order == (asked.order or "name"))
    place, backward = _get_list_place(visit, order)
    cards = await list_visible_scorecards(visit)
    wanted, hints = await build_catalog_filter(visit, asked, cards)
    columns, unknown = await choose_columns(visit, asked.column, cards)
    exact = asked.count == EXACT
    listed = browse.browse_entities(
        database, wanted, order, _ITEMS, place, backward=backward, exact=exact
    )
    found, choices = await asyncio.gather(listed, _get_list_choices(visit))
    values = await read_column_values(database, columns, found.page.items)
    before, after = _link_neighbors(found.page.places, order, found.page.before, found.page.after)
    return visit.page(
        "catalog.html",
        asked=asked,
        rows=(rows := [make_list_row(each) for each in found.page.items]),
        columns=columns,
        cells=[
            make_column_cells(columns, row, own)
            for row, own in zip(found.page.items, values, strict=True)
        ],
        column_choices=await list_column_choices(visit, cards) if choices.is_asked else [],
        most_columns=MOST_COLUMNS,
        row_kinds=sorted({row.kind for row in rows}),
        found=found,
        bound=entity_query.COUNT_BOUND,
        exactly=asked.address(count=EXACT),
        hints=[*hints, *unknown],
        export=asked.address(EXPORT),
        choices=choices,
        namespaces=_make_counted_options(choices.namespaces, asked.namespace, "Any namespace"),
        sets=_make_counted_options(choices.sets, asked.set, "Any set"),
        types=_make_plain_options(choices.types, asked.type.lower(), "Any type"),
        lifecycles=_make_plain_options(choices.lifecycles, asked.lifecycle.lower(), "Any"),
        levels=list_level_choices(cards),
        ownerships=OWNERSHIPS,
        danglings=DANGLING,
        broken=await find_broken_of_rows(database, asked, found.page.items),
        orders=_ORDERS,
        order=order,
        order_of={name: asked.address(order=name) for name, _ in _ORDERS},
        before=before and asked.address(**before),
        after=after and asked.address(**after),
        server=visit.server,
        push_word=visit.state.settings.push_word,
    )


def _get_list_place(visit: PageContext, order: Order) -> tuple[Place | None, bool]:
    """Place in the address, and whether the page ends before it.

    Raises InputError for an invalid place in this order.
    """
    after, before = visit.query("after"), visit.query("before")
    if not after and not before:
        return None, False
    return _decode_place(after or before, order), not after


def _link_neighbors(
    places: Sequence[Place], order: Order, before: bool, after: bool
) -> tuple[dict[str, str] | None, dict[str, str] | None]:
    """Parameters of the previous and next page; None if there is no such page."""
    back = {"before": _encode_place(places[0], order)} if places and before else None
    next_ = {"after": _encode_place(places[-1], order)} if places and after else None
    return back, next_


def _encode_place(place: Place, order: Order) -> str:
    text = msgspec.json.encode([order, *place])
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _decode_place(text: str, order: Order) -> Place:
    try:
        content = base64.b64decode(text[:_LONGEST_PLACE] + "=" * (-len(text) % 4), altchars=b"-_")
        found: list[str | int] = msgspec.json.decode(content, type=list[str | int])
    except (ValueError, msgspec.MsgspecError):
        raise _make_place_error() from None
    if found[:1] != [order] or not browse.is_browse_place(found[1:], order):
        raise _make_place_error()
    return tuple(found[1:])


def _make_place_error() -> InputError:
    return InputError(
        "This address does not lead to a page of the list. Open the catalog and start from there."
    )


async def _get_list_choices(visit: PageContext) -> ListChoices:
    """The choices; none for the script, which uses only the results of the page."""
    if visit.request.header(b"sec-fetch-dest") == "empty":
        return ListChoices(is_asked=False)
    database = visit.state.database
    return await browse.remember_count(
        database, visit.now, "choices", partial(_read_list_choices, database)
    )


async def _read_list_choices(database: Database) -> ListChoices:
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


def _make_counted_options(
    choices: Sequence[FilterChoice], chosen: str, nothing: str
) -> list[tuple[str, str]]:
    """Options of a select with entity counts, ordered by name, including the chosen one."""
    return _make_options(
        {each.value: f"{each.value} ({each.entities:,})" for each in choices}, chosen, nothing
    )


def _make_plain_options(values: Sequence[str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    return _make_options({value: value for value in values}, chosen, nothing)


def _make_options(options: dict[str, str], chosen: str, nothing: str) -> list[tuple[str, str]]:
    if chosen:
        options.setdefault(chosen, chosen)
    return [("", nothing), *sorted(options.items(), key=lambda option: option[0].casefold())]


CATALOG: Sequence[PageRoute] = (PageRoute("GET", PATH, show_catalog, (CATALOG_READ,)),)

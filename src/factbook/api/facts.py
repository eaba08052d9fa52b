"""Facts over HTTP: push, latest values, history, and one fact across many entities."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, cast

import msgspec
import structlog

from factbook.api import data_sources
from factbook.api.endpoint import Route
from factbook.api.parameters import (
    ENTITY,
    ENTITY_WANTED,
    FACTS_CURSOR,
    FACTS_LIMIT,
    HISTORY_CURSOR,
    HISTORY_END,
    HISTORY_SOURCES,
    HISTORY_START,
    SOURCE_ID,
    Choice,
    Integer,
    Parameter,
    Text,
)
from factbook.auth import tokens
from factbook.auth.permissions import (
    CATALOG_READ,
    FACT_WRITE,
    SOURCE_READ,
)
from factbook.auth.tokens import PUSHED_FACTS_REACH, SOURCE_REACH, SOURCES
from factbook.catalog import ref as refs
from factbook.catalog.store import stored_entities as catalog_reading
from factbook.catalog.store.conditions import EntityRange
from factbook.catalog.validation import deeper_than
from factbook.clock import iso, iso_or_none, milliseconds
from factbook.collection import run_start
from factbook.datasources import define, fact_columns
from factbook.datasources.stores import source_store
from factbook.definitions.store import UNPUBLISHED
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.facts import across, freshness, pushed_facts, store
from factbook.facts import history as fact_history
from factbook.facts.across import (
    CatalogFigures,
    EntityValue,
    KeptAnswer,
    ValueFilter,
    ValueQuery,
)
from factbook.facts.datasource import DataSource
from factbook.facts.distribution import Distribution, FactColumn, GroupBy, Spread
from factbook.facts.history import HistoryEntry, HistoryPosition
from factbook.facts.pushed_facts import FactItem, FactItemResult
from factbook.facts.schema import REASONS, Fact
from factbook.facts.store import Tracked
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.csv_lines import CONTENT_TYPE, CSV, make_attachment_headers, stream_value_lines
from factbook.http.requests import JsonReply, Request, reply, splice_document
from factbook.integrations import catalog
from factbook.schemas import facts
from factbook.schemas.facts import (
    EntityFacts,
    History,
    ItemProblem,
    LatestFacts,
    NewFacts,
    NewItems,
    PastFacts,
    PushedFacts,
    PushedItem,
)
from factbook.storage import Transaction

log = structlog.get_logger("factbook.facts")
_LARGEST = 8 * 1024 * 1024
_PAGE = 100
_MOST_SOURCES = 100
FACT: Final = Text(
    name="fact", description="The name of the fact.", required=True, longest=400, example="lines"
)
_PART: Final = (
    ("kind", "Only entities of this kind.", "component"),
    ("namespace", "Only entities of this namespace.", "default"),
    (
        "owner",
        "Only what this group owns, or groups below it; `-` for entities without an owner.",
        "group:default/payments",
    ),
    ("system", "Only parts of this system; `-` for entities without one.", "billing"),
    ("type", "Only entities with this `spec.type`.", "service"),
    ("lifecycle", "Only entities with this `spec.lifecycle`.", "production"),
)
BY: Final = Choice(
    name="by",
    description="Adds figures for each of these; those of a group are without the groups below it.",
    words=("owner", "system", "kind"),
)
TOP: Final = Integer(
    name="top", description="Most frequent texts that are listed, 20 by default.", most=100
)
ENDS: Final = Integer(
    name="ends", description="Entities at each end that are listed, 5 by default.", most=50
)
VALUE_SORT: Final = Choice(
    name="sort",
    description="The order: by reference unless it is given; `-value` has the highest first.",
    words=("entity", "value", "-value"),
)
_WORDS: Final = tuple(REASONS)
VALUE_FILTER: Final[tuple[Choice | Text, ...]] = (
    Choice(
        name="known", description="Only with a value, or only without.", words=("true", "false")
    ),
    Choice(name="reason", description="Only without a value for this reason.", words=_WORDS),
    Text(
        name="value",
        description="Only with this value: of a boolean, a number or a text, or an item of a set.",
        longest=2_000,
        may_be_empty=True,
    ),
    Text(
        name="min",
        description="Only from this value on: a number, or of a datetime an ISO 8601 time.",
        longest=100,
    ),
    Text(name="below", description="Only below this value, in the same form.", longest=100),
)
VALUE_CURSOR: Final = Text(
    name="cursor", description="The `nextCursor` of the page before.", longest=8_000
)
_TOP = 20
_ENDS = 5


async def post_facts(request: Request, state: SourceContext) -> JsonReply[PushedFacts]:
    """Push facts about entities to a data source of the type `push`.

    An item replaces what the source says about its entity, unless it has `"merge": true`. The
    answer has the problems of each item; the rest of the item is stored. An item that is sent again
    changes nothing. An item older than the entity's latest facts only goes into the history.
    """
    source_id = SOURCE_ID.of(request)
    source = await define.find_source(state.registry, source_id)
    _require_push_source(source)
    async with state.admission.room_for_body(request, _LARGEST):
        given: NewItems = await request.json(NewItems, _LARGEST)
        return await _store_pushed_facts(given, source_id, request, state)


async def _store_pushed_facts(
    given: NewItems, source_id: str, request: Request, state: SourceContext
) -> JsonReply[PushedFacts]:
    """Store pushed items and build the answer."""
    depth, now = state.settings.max_json_depth, state.clock()
    read = [_read_item(each, depth, now) for each in given.items]
    tokens.check_narrowed_refs(
        request.narrowing, [each.ref for each in read if isinstance(each, FactItem)]
    )
    work = partial(_store_items, source_id=source_id, read=read, now=now)
    about = audit.make_facts_entry(source_id)
    write = data_sources.prepare_recorded_write(request, state, source_id, about, needed=FACT_WRITE)
    version, outcomes = await write(work)
    accepted = sum(outcome.accepted for outcome in outcomes)
    log.info("facts.pushed", source=source_id, items=accepted, actor=request.actor)
    items = [
        _render_item_outcome(position, item, outcome)
        for position, (item, outcome) in enumerate(zip(read, outcomes, strict=True))
    ]
    return reply(PushedFacts(source_id, version, accepted, items))


async def get_latest_facts(request: Request, state: SourceContext) -> JsonReply[LatestFacts]:
    """The latest facts of a data source, for every tracked entity or for one."""
    source = await define.find_source(state.registry, SOURCE_ID.of(request))
    wanted, cursor = ENTITY.of(request), FACTS_CURSOR.of(request)
    limit = FACTS_LIMIT.of(request) or _PAGE
    if wanted is not None:
        one = await _find_latest_facts(state, source, str(refs.parse_ref(wanted)))
        return reply(LatestFacts(source.id, [one], draft=source.draft))
    found = await _list_latest_facts(state, source, cursor or "", limit + 1)
    next_cursor = found[limit - 1].entity_ref if len(found) > limit else None
    return reply(LatestFacts(source.id, found[:limit], source.draft, next_cursor))


async def get_fact_history(request: Request, state: SourceContext) -> JsonReply[History]:
    """The history of an entity's facts, newest first, from every data source or from some."""
    wanted = ENTITY_WANTED.of(request)
    ref = str(refs.parse_ref(wanted or ""))
    start, end = HISTORY_START.of(request), HISTORY_END.of(request)
    limit, cursor = FACTS_LIMIT.of(request) or _PAGE, HISTORY_CURSOR.of(request)
    after: HistoryPosition | None = None
    if cursor is not None:
        time, _, source_id = cursor.partition("/")
        after = HistoryPosition(int(time), source_id)
    source_ids = await _parse_source_ids(request, state)
    entity_id = await run_start.find_entity_id(state.database, ref)
    entries = await fact_history.page_history(
        state.database, source_ids, entity_id, start, end, after, limit + 1
    )
    history = History(ref, [_render_history_entry(entry) for entry in entries[:limit]])
    if len(entries) > limit:
        last = entries[limit - 1]
        history.next_cursor = f"{last.written_at}/{last.source_id}"
    return reply(history)


def _require_push_source(source: DataSource) -> None:
    kind = source.handler.type if source.handler else "builtin"
    if kind == "push":
        return
    if kind == "builtin":
        raise ConflictError(f"{source.id} is built in: facts cannot be pushed to it.")
    only = "Only a data source of type push takes facts."
    raise ConflictError(
        f"{source.id} is of type {kind}: its facts are collected. {only}"
    ).unless_read(ConflictError(f"The facts of {source.id} are collected. {only}"))


# A parsed item, or its problems by member.
_Read = FactItem | dict[str, str]


def _read_item(given: NewFacts, depth: int, now: int) -> _Read:
    problems: dict[str, str] = {}
    ref, written_at = "", now
    try:
        ref = str(refs.parse_ref(given.entity))
    except InputError as error:
        problems["entity"] = error.message
    if given.timestamp is not None:
        moment = milliseconds(given.timestamp)
        if moment is None:
            problems["timestamp"] = (
                "has to be an ISO 8601 date and time with a UTC offset, from 1970 on"
            )
        elif moment > now + pushed_facts.LARGEST_LEAD:
            problems["timestamp"] = "is in the future"
        else:
            written_at = moment
    if deeper_than(given.facts, depth):
        problems["facts"] = f"is nested more than {depth} deep"
    return problems or FactItem(ref, given.facts, written_at, given.reasons, given.merge)


def _store_items(
    transaction: Transaction, *, source_id: str, read: list[_Read], now: int
) -> tuple[str, list[FactItemResult]]:
    """Store the items; returns the source version and the result of each item."""
    stored = source_store.read(transaction, source_id)
    if stored is None:  # just deleted
        raise source_store.missing(transaction, source_id)
    source = stored.shown()
    _require_push_source(source)
    items = [each for each in read if isinstance(each, FactItem)]
    found = iter(pushed_facts.push_facts(transaction, source, items, now))
    outcomes = [
        next(found) if isinstance(each, FactItem) else FactItemResult(problems=each)
        for each in read
    ]
    transaction.evaluate_checks()
    return source.version, outcomes


def _render_item_outcome(position: int, read: _Read, outcome: FactItemResult) -> PushedItem:
    item = read if isinstance(read, FactItem) else None
    return PushedItem(
        entity=item.ref if item else "",
        timestamp=iso(item.written_at) if item else None,
        accepted=outcome.accepted,
        stored=list(outcome.stored),
        latest=outcome.latest,
        problems=[
            ItemProblem(f"items[{position}].{path}", message)
            for path, message in outcome.problems.items()
        ],
    )


async def _find_latest_facts(state: SourceContext, source: DataSource, ref: str) -> EntityFacts:
    """Find the latest facts of an entity; raises NotFoundError for an unknown entity."""
    entity_id = await run_start.find_entity_id(state.database, ref)
    if catalog.is_catalog_source(source.id):
        owners = catalog.needs_owner_bit(source.id)
        own = await catalog_reading.list_complying(state.database, ref, owners=owners)
        if own is not None:
            return _render_catalog_facts(source, *own)
    found = await store.find_latest(state.database, source.id, entity_id)
    if found is None:
        return EntityFacts(ref, {}, reasons={})
    facts, stale = found.facts, found.kept.keys()
    at, some = iso_or_none(found.brought_at), freshness.find_stale(facts, stale)
    return EntityFacts(ref, facts, at, found.reasons, bool(stale), some or None)


async def _list_latest_facts(
    state: SourceContext, source: DataSource, after: str, limit: int
) -> list[EntityFacts]:
    wanted = EntityRange(after=after, limit=limit)
    if catalog.is_catalog_source(source.id):
        pages = catalog_reading.stream_complying(state.database, wanted)
        return [_render_catalog_facts(source, *row) async for rows in pages for row in rows]
    tracked = store.page_tracked(state.database, source, wanted)
    return [_render_tracked_facts(one) async for rows in tracked for one in rows]


def _render_tracked_facts(one: Tracked) -> EntityFacts:
    facts, at = splice_document(one.facts), iso(one.brought_at)
    if not one.stale:
        return EntityFacts(one.ref, facts, at)
    some = freshness.find_stale(
        msgspec.json.decode(one.facts, type=dict[str, msgspec.Raw]), one.stale
    )
    return EntityFacts(one.ref, facts, at, stale=True, stale_facts=some or None)


def _render_catalog_facts(source: DataSource, ref: str, bits: int, updated_at: int) -> EntityFacts:
    """Render the catalog's own facts of an entity, computed now."""
    return EntityFacts(
        ref, splice_document(catalog.encode_catalog_facts(source.id, bits)), iso(updated_at)
    )


async def _parse_source_ids(request: Request, state: SourceContext) -> list[str] | None:
    """Parse the sources in the query; raises NotFoundError for an unknown source."""
    texts = HISTORY_SOURCES.of(request)
    if not texts:
        _require_reachable_sources(request, None)
        return None
    parts = (part.strip() for text in texts for part in text.split(","))
    named = list(dict.fromkeys(filter(None, parts)))
    if len(named) > _MOST_SOURCES:
        raise InputError(f"dataSourceIds can name {_MOST_SOURCES} data sources at most.")
    _require_reachable_sources(request, named)
    for id_ in named:
        await define.find_source(state.registry, id_)
    return named


def _require_reachable_sources(request: Request, named: list[str] | None) -> None:
    """Raise NotAllowedError if a token limited to sources asks for others."""
    narrowing = request.narrowing
    if narrowing is not None and narrowing.sources is not None:
        if named is None:
            raise narrowing.refusal(SOURCES)
        narrowing.check(SOURCES, named)


def _render_history_entry(entry: HistoryEntry) -> PastFacts:
    return PastFacts(
        data_source_id=entry.source_id,
        timestamp=iso(entry.written_at),
        version=entry.version,
        facts=splice_document(entry.facts),
        reasons=splice_document(entry.reasons),
        draft=entry.version == UNPUBLISHED,
        confirmed_at=iso_or_none(entry.confirmed_at),
    )


CATALOG_PART: Final = tuple(
    Text(
        name=name,
        description=description,
        pattern=r"[^\x00]*",
        wrong="has the character NUL",
        longest=640,
        example=example,
    )
    for name, description, example in _PART
)


async def get_fact_distribution(
    request: Request, state: SourceContext
) -> JsonReply[facts.FactDistribution]:
    """The distribution of a fact over the entities that its source is about.

    Unknown facts are counted by reason, and not as a value. `lowest` and `highest` are the entities
    at both ends, if values have an order. In a catalog of 20,000 entities or more, figures are kept
    for a minute: `asOf` says when they were counted, and `Cache-Control: no-cache` in the request
    has them counted again.
    """
    asked = await _parse_value_query(request, state)
    by = cast("GroupBy | None", BY.of(request))
    top = TOP.of(request)
    count = ENDS.of(request)
    found = await across.catalog_figures(
        state.database,
        state.clock,
        asked,
        by,
        top=_TOP if top is None else top,
        ends=_ENDS if count is None else count,
        anew=request.wants_fresh,
    )
    return reply(_render_distribution(asked.column, found, by))


async def get_fact_values(request: Request, state: SourceContext) -> JsonReply[facts.ValuePage]:
    """The entities that a source is about, with their value of a fact or why they have none.

    In the order of values, entities without one come last, and `asOf` says when the values were
    read, as in a distribution.
    """
    asked = await _parse_value_query(request, state)
    column = asked.column
    asked = asked._replace(
        wanted=_parse_value_filter(request, column.fact),
        sort=fact_columns.check_sort(column, VALUE_SORT.of(request)),
    )
    after = fact_columns.place_of_cursor(column.fact, VALUE_CURSOR.of(request))
    limit = FACTS_LIMIT.of(request) or _PAGE
    found, at = await across.catalog_values(
        state.database, state.clock, asked, after, limit, anew=request.wants_fresh
    )
    return reply(
        facts.ValuePage(
            data_source_id=column.source.id,
            fact=_render_fact(column.fact),
            entities=[_render_entity_value(row) for row in found.rows],
            draft=column.source.draft,
            as_of=iso(at),
            next_cursor=fact_columns.write_value_cursor(found.more),
        )
    )


async def export_fact_values(request: Request, state: SourceContext) -> JsonReply[str]:
    """All entities with their values as CSV, by reference, from one snapshot.

    Text that a spreadsheet could take for a formula begins with an apostrophe.
    """
    asked = await _parse_value_query(request, state)
    asked = asked._replace(wanted=_parse_value_filter(request, asked.column.fact))
    return JsonReply(
        stream_value_lines(state.database, asked),
        headers=make_attachment_headers(f"{asked.column.source.id}-{asked.column.fact.name}"),
        content_type=CONTENT_TYPE,
    )


async def _parse_value_query(request: Request, state: SourceContext) -> ValueQuery:
    """Parse the fact and the filters of the request."""
    name = FACT.of(request) or ""
    column = await fact_columns.find_fact_column(
        state.database, state.registry, SOURCE_ID.of(request), name
    )
    part = await fact_columns.find_part(
        state.database,
        **{each.name: each.of(request) for each in CATALOG_PART},
    )
    return ValueQuery(column, part)


def _parse_value_filter(request: Request, fact: Fact) -> ValueFilter:
    return fact_columns.read_value_filter(
        fact, {each.name: each.text(request) for each in VALUE_FILTER}
    )


def _render_distribution(
    column: FactColumn, kept: KeptAnswer[CatalogFigures], by: GroupBy | None
) -> facts.FactDistribution:
    fact, found = column.fact, kept.value.distribution
    lowest, highest = ([_render_entity_value(row) for row in rows] for rows in kept.value.ends)
    shown = facts.FactDistribution(
        data_source_id=column.source.id,
        fact=_render_fact(fact),
        entities=found.entities,
        known=found.known,
        unknown=found.entities - found.known,
        unknown_reasons=found.reasons,
        kept=found.kept,
        draft=column.source.draft,
        truncated=not found.is_whole,
        as_of=iso(kept.at),
        oldest=iso_or_none(found.oldest),
        newest=iso_or_none(found.newest),
        lowest=lowest or None,
        highest=highest or None,
        by=by,
        more_groups=found.more_groups,
    )
    if by is not None:
        shown.groups = [
            facts.GroupShare(
                group.entities,
                group.known,
                group.name,
                group.true,
                _render_figure(fact, group.median),
            )
            for group in found.groups
        ]
    _add_distribution_values(shown, fact, found)
    return shown


def _add_distribution_values(
    shown: facts.FactDistribution, fact: Fact, found: Distribution
) -> None:
    if found.true is not None:
        shown.booleans = {"true": found.true, "false": found.known - found.true}
    if found.spread is not None:
        shown.spread = _render_spread(fact, found.spread)
        shown.histogram = [
            facts.HistogramBin(
                one.number, _render_figure(fact, one.start), _render_figure(fact, one.end)
            )
            for one in found.histogram
        ]
    if fact.type in {"string", "set"}:
        shown.top = [facts.FrequentValue(value, count) for value, count in found.top]
        shown.distinct = found.distinct


def _render_spread(fact: Fact, spread: Spread) -> facts.ValueSpread:
    return facts.ValueSpread(
        min=_render_figure(fact, spread.least),
        lower_quartile=_render_figure(fact, spread.lower_quartile),
        median=_render_figure(fact, spread.median),
        upper_quartile=_render_figure(fact, spread.upper_quartile),
        max=_render_figure(fact, spread.largest),
        mean=spread.mean,
    )


def _render_fact(fact: Fact) -> facts.FactShown:
    return facts.FactShown(fact.name, fact.type, fact.description, fact.unit)


def _render_entity_value(row: EntityValue) -> facts.ValueOfEntity:
    return facts.ValueOfEntity(
        row.ref, row.value, row.reason, iso_or_none(row.at), row.kept, row.kept
    )


def _render_figure(fact: Fact, value: float | None) -> Any:
    """Render a figure: whole numbers as integers, datetime facts as ISO text."""
    if value is None:
        return None
    if fact.type == "datetime":
        return iso(int(value))
    return int(value) if value == int(value) and abs(value) < 2**53 else value


# Facts describe entities, so reading them takes both permissions, as in the tools.
_READ_FACTS = (CATALOG_READ, SOURCE_READ)
_FACTS = "/facts/{id}"
_ACROSS: tuple[Parameter[Any], ...] = (SOURCE_ID, FACT, *CATALOG_PART)
_CONFLICT = (ConflictError,)
# Below /api/tech-insights/v1.
FACT_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        "/facts",
        get_fact_history,
        _READ_FACTS,
        (ENTITY_WANTED, HISTORY_SOURCES, HISTORY_START, HISTORY_END, FACTS_LIMIT, HISTORY_CURSOR),
        refusals=(NotFoundError,),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        _FACTS,
        get_latest_facts,
        _READ_FACTS,
        (SOURCE_ID, ENTITY, FACTS_LIMIT, FACTS_CURSOR),
        reach=SOURCE_REACH,
    ),
    Route(
        "POST",
        _FACTS,
        post_facts,
        (FACT_WRITE,),
        (SOURCE_ID,),
        body=facts.NewItems,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_FACTS,
        reach=PUSHED_FACTS_REACH,
    ),
    Route(
        "GET",
        f"{_FACTS}/distribution",
        get_fact_distribution,
        _READ_FACTS,
        (*_ACROSS, BY, TOP, ENDS),
    ),
    Route(
        "GET",
        f"{_FACTS}/values",
        get_fact_values,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER, VALUE_SORT, FACTS_LIMIT, VALUE_CURSOR),
    ),
    Route(
        "GET",
        f"{_FACTS}/values.csv",
        export_fact_values,
        _READ_FACTS,
        (*_ACROSS, *VALUE_FILTER),
        media=CSV,
    ),
)

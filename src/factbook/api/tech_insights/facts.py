"""Facts over HTTP: pushing them to a source, reading the latest, and reading the history."""

from functools import partial

import msgspec
import structlog

from factbook.api.openapi.parameters import (
    ENTITY,
    ENTITY_WANTED,
    FACTS_CURSOR,
    FACTS_LIMIT,
    HISTORY_CURSOR,
    HISTORY_END,
    HISTORY_SOURCES,
    HISTORY_START,
    SOURCE_ID,
)
from factbook.api.tech_insights import owned_writes
from factbook.auth import token_reach
from factbook.auth.permissions import FACT_WRITE
from factbook.auth.token_reach import SOURCES
from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref as catalog_reading
from factbook.catalog.store.conditions import EntityRange
from factbook.catalog.validation import deeper_than
from factbook.clock import iso, iso_or_none, milliseconds
from factbook.collection import run_now
from factbook.datasources import define
from factbook.datasources.source_store import source_store
from factbook.definitions.store import UNPUBLISHED
from factbook.errors import ConflictError, InputError
from factbook.facts import freshness, pushed_facts, store, time_series
from factbook.facts.datasource import DataSource
from factbook.facts.pushed_facts import FactItem, FactItemResult
from factbook.facts.store import Tracked
from factbook.facts.time_series import HistoryEntry, HistoryPosition
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, reply, stored
from factbook.integrations import catalog
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


async def push(request: Request, state: SourceContext) -> JsonReply[PushedFacts]:
    """Push facts about entities to a data source of the type `push`.

    An item replaces what the source says about its entity, unless it has `"merge": true`.
    What is wrong with an item is in the answer, and the rest of it is stored. An item that is sent
    again changes nothing. One that is older than the entity's latest facts goes into history alone.
    """
    source_id = SOURCE_ID.of(request)
    source = await define.known(state.registry, source_id)
    _check_pushed(source)
    async with state.admission.room_for_body(request, _LARGEST):
        given: NewItems = await request.json(NewItems, _LARGEST)
        return await _pushed(given, source_id, request, state)


async def _pushed(
    given: NewItems, source_id: str, request: Request, state: SourceContext
) -> JsonReply[PushedFacts]:
    """The answer to a push of these items, which are stored."""
    depth, now = state.settings.max_json_depth, state.clock()
    read = [_item(each, depth, now) for each in given.items]
    token_reach.check_refs(
        request.narrowing, [each.ref for each in read if isinstance(each, FactItem)]
    )
    work = partial(_store, source_id=source_id, read=read, now=now)
    about = audit.of_facts(source_id)
    write = owned_writes.writing(request, state, source_id, about, needed=FACT_WRITE)
    version, outcomes = await write(work)
    accepted = sum(outcome.accepted for outcome in outcomes)
    log.info("facts.pushed", source=source_id, items=accepted, actor=request.actor)
    items = [
        _outcome(position, item, outcome)
        for position, (item, outcome) in enumerate(zip(read, outcomes, strict=True))
    ]
    return reply(PushedFacts(source_id, version, accepted, items))


async def latest(request: Request, state: SourceContext) -> JsonReply[LatestFacts]:
    """The latest facts of a data source, of every tracked entity or of one."""
    source = await define.known(state.registry, SOURCE_ID.of(request))
    wanted, cursor = ENTITY.of(request), FACTS_CURSOR.of(request)
    limit = FACTS_LIMIT.of(request) or _PAGE
    if wanted is not None:
        one = await _latest_of(state, source, str(refs.parse(wanted)))
        return reply(LatestFacts(source.id, [one], draft=source.draft))
    found = await _latest_page(state, source, cursor or "", limit + 1)
    next_cursor = found[limit - 1].entity_ref if len(found) > limit else None
    return reply(LatestFacts(source.id, found[:limit], source.draft, next_cursor))


async def past(request: Request, state: SourceContext) -> JsonReply[History]:
    """The history of an entity's facts, newest first, of every data source or of some."""
    wanted = ENTITY_WANTED.of(request)
    ref = str(refs.parse(wanted or ""))
    start, end = HISTORY_START.of(request), HISTORY_END.of(request)
    limit, place = FACTS_LIMIT.of(request) or _PAGE, _place(HISTORY_CURSOR.of(request))
    source_ids = await _source_ids(request, state)
    entity_id = await run_now.entity_id(state.database, ref)
    found = await time_series.history_page(
        state.database, source_ids, entity_id, start, end, place, limit + 1
    )
    history = History(ref, [_past(entry) for entry in found[:limit]])
    if len(found) > limit:
        last = found[limit - 1]
        history.next_cursor = f"{last.written_at}/{last.source_id}"
    return reply(history)


def _check_pushed(source: DataSource) -> None:
    kind = source.handler.type if source.handler else "builtin"
    if kind == "push":
        return
    if kind == "builtin":
        raise ConflictError(f"{source.id} is built in: facts cannot be pushed to it.")
    only = "Only a data source of type push takes facts."
    raise ConflictError(
        f"{source.id} is of type {kind}: its facts are collected. {only}"
    ).unless_read(ConflictError(f"The facts of {source.id} are collected. {only}"))


# What was read of an item: the item, or the problems because of which there is none.
_Read = FactItem | dict[str, str]


def _item(given: NewFacts, depth: int, now: int) -> _Read:
    problems: dict[str, str] = {}
    ref, written_at = "", now
    try:
        ref = str(refs.parse(given.entity))
    except InputError as error:
        problems["entity"] = error.message
    if given.timestamp is not None:
        moment = milliseconds(given.timestamp)
        if moment is None:
            problems["timestamp"] = (
                "has to be an ISO 8601 date and time with a UTC offset, from 1970 on"
            )
        elif moment > now + pushed_facts.AHEAD:
            problems["timestamp"] = "is in the future"
        else:
            written_at = moment
    if deeper_than(given.facts, depth):
        problems["facts"] = f"is nested more than {depth} deep"
    return problems or FactItem(ref, given.facts, written_at, given.reasons, given.merge)


def _store(
    transaction: Transaction, *, source_id: str, read: list[_Read], now: int
) -> tuple[str, list[FactItemResult]]:
    """Store the items; return the version of the source and the outcome of each item."""
    stored = source_store.read(transaction, source_id)
    if stored is None:  # deleted a moment ago
        raise source_store.missing(transaction, source_id)
    source = stored.shown()
    _check_pushed(source)
    items = [each for each in read if isinstance(each, FactItem)]
    found = iter(pushed_facts.push(transaction, source, items, now))
    outcomes = [
        next(found) if isinstance(each, FactItem) else FactItemResult(problems=each)
        for each in read
    ]
    return source.version, outcomes


def _outcome(position: int, read: _Read, outcome: FactItemResult) -> PushedItem:
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


async def _latest_of(state: SourceContext, source: DataSource, ref: str) -> EntityFacts:
    """The latest facts about one entity; raises NotFoundError when there is no such entity."""
    entity_id = await run_now.entity_id(state.database, ref)
    if catalog.answers(source.id):
        owners = catalog.looks_for_owners(source.id)
        own = await catalog_reading.complying(state.database, ref, owners=owners)
        if own is not None:
            return _own(source, *own)
    found = await store.latest(state.database, source.id, entity_id)
    if found is None:
        return EntityFacts(ref, {}, reasons={})
    facts, stale = found.facts, found.kept.keys()
    at, some = iso_or_none(found.brought_at), freshness.some(facts, stale)
    return EntityFacts(ref, facts, at, found.reasons, bool(stale), some or None)


async def _latest_page(
    state: SourceContext, source: DataSource, after: str, limit: int
) -> list[EntityFacts]:
    wanted = EntityRange(after=after, limit=limit)
    if catalog.answers(source.id):
        pages = catalog_reading.complying_pages(state.database, wanted)
        return [_own(source, *row) async for rows in pages for row in rows]
    tracked = store.pages(state.database, source, wanted)
    return [_tracked(one) async for rows in tracked for one in rows]


def _tracked(one: Tracked) -> EntityFacts:
    facts, at = stored(one.facts), iso(one.brought_at)
    if not one.stale:
        return EntityFacts(one.ref, facts, at)
    some = freshness.some(msgspec.json.decode(one.facts, type=dict[str, msgspec.Raw]), one.stale)
    return EntityFacts(one.ref, facts, at, stale=True, stale_facts=some or None)


def _own(source: DataSource, ref: str, bits: int, updated_at: int) -> EntityFacts:
    """A fact of the catalog's own, as it is at this moment."""
    return EntityFacts(ref, stored(catalog.facts(source.id, bits)), iso(updated_at))


async def _source_ids(request: Request, state: SourceContext) -> list[str] | None:
    """The sources that the query names; raises NotFoundError for one that there is not."""
    texts = HISTORY_SOURCES.of(request)
    if not texts:
        _check_sources(request, None)
        return None
    parts = (part.strip() for text in texts for part in text.split(","))
    named = list(dict.fromkeys(filter(None, parts)))
    if len(named) > _MOST_SOURCES:
        raise InputError(f"dataSourceIds can name {_MOST_SOURCES} data sources at most.")
    _check_sources(request, named)
    for id_ in named:
        await define.known(state.registry, id_)
    return named


def _check_sources(request: Request, named: list[str] | None) -> None:
    """Raise NotAllowedError where a token that is narrowed to sources asks for others."""
    narrowing = request.narrowing
    if narrowing is not None and narrowing.sources is not None:
        if named is None:
            raise narrowing.refusal(SOURCES)
        narrowing.check(SOURCES, named)


def _place(cursor: str | None) -> HistoryPosition | None:
    if cursor is None:
        return None
    time, _, source_id = cursor.partition("/")
    return HistoryPosition(int(time), source_id)


def _past(entry: HistoryEntry) -> PastFacts:
    return PastFacts(
        data_source_id=entry.source_id,
        timestamp=iso(entry.written_at),
        version=entry.version,
        facts=stored(entry.facts),
        reasons=stored(entry.reasons),
        draft=entry.version == UNPUBLISHED,
        confirmed_at=iso_or_none(entry.confirmed_at),
    )

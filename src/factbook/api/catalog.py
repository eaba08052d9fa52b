"""The Backstage catalog API over HTTP: entities, queries, facets, locations.

Cursors are base64 of a JSON object, as in the catalog API reference. Clients inspect them: they
continue by POST if the cursor has the key `query`, else by GET.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import (
    AFTER,
    CURSOR_TEXT,
    FACET,
    FIELDS,
    FILTER,
    LIMIT,
    LINK,
    OFFSET,
    ORDER,
    ORDER_FIELD,
    QUERY_LIMIT,
    TEXT_FIELDS,
    TEXT_TERM,
    TOTAL_ITEMS,
)
from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_RUN
from factbook.auth.tokens import SET_REACH
from factbook.catalog import ref as refs
from factbook.catalog.filters import parse_filters, parse_predicate
from factbook.catalog.piecewise import aside
from factbook.catalog.ref import EntityRef
from factbook.catalog.store import browse, entity_query, stored_entities, stored_sets
from factbook.catalog.store.browse import Facet
from factbook.catalog.store.conditions import EVERYTHING, AllOf, Condition, Contains
from factbook.catalog.store.entity_query import Query, ResultPage, Selectivity, SortField
from factbook.catalog.store.stored_entities import StoredEntity
from factbook.catalog.store.stored_sets import Actor
from factbook.errors import InputError, NotFoundError, UnsupportedError
from factbook.facts.refresh_requests import request_refresh
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.schemas import common
from factbook.schemas.catalog import (
    Ancestry,
    EntitiesByRefs,
    Entity,
    EntityPage,
    EntityParts,
    FacetValue,
    FacetValues,
    PageInfo,
)
from factbook.schemas.common import AnyRef, FieldPath, Predicate, Wire
from factbook.storage import Database

T = TypeVar("T")
_CursorPlace = list[str | None]
MOST_ORDERS = 10
MOST_TEXT_FIELDS = 20
_MISSING = object()
_MOST_PATHS = 200
# Bytes of a list of references, enough for a few hundred thousand.
_LARGEST_LIST = 16 * 1024 * 1024
_QUERY_LIMIT = 200
_LARGEST_QUERY = 1024 * 1024
_TEXT_FIELDS = ["metadata.name", "metadata.title"]
_PUSH = (
    "This catalog does not read entities from locations: push them with "
    "PUT /api/catalog/{word}-entities/sets/{{set_id}}."
)


# Escaping these, which only occur in JSON strings, keeps + and / out of base64 of ASCII text.
_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in ">?~\x7f"})


class OrderBy(msgspec.Struct, forbid_unknown_fields=True):
    """A dotted path to order by; entities that lack it come last in both directions."""

    field: str
    order: Literal["asc", "desc"] = "asc"


class FullTextFilter(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A text, and the dotted paths of which one has to contain it, in any case."""

    term: Annotated[str, Meta(max_length=200)] = ""
    fields: Annotated[list[str], Meta(max_length=MOST_TEXT_FIELDS)] = []


class AfterCursor(msgspec.Struct, forbid_unknown_fields=True):
    """Content of `after`: the page size and the last row's sort values and reference."""

    limit: Annotated[int, Meta(ge=LIMIT.least, le=LIMIT.most)]
    after: _CursorPlace


class QueryCursor(msgspec.Struct, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Content of the cursor of a query: the question and a row's sort values and reference."""

    order_fields: Annotated[list[OrderBy], Meta(max_length=MOST_ORDERS)]
    order_field_values: _CursorPlace
    filter: list[str] | UnsetType = UNSET
    query: dict[str, Any] | UnsetType = UNSET
    full_text_filter: FullTextFilter | UnsetType = UNSET
    is_previous: bool = False
    total_items: Annotated[int, Meta(ge=0, le=2**63 - 1)] = 0


def encode_cursor(cursor: msgspec.Struct) -> str:
    """Encode a cursor as letters and digits."""
    text = msgspec.json.encode(cursor).decode()
    if not text.isascii():
        text = json.dumps(msgspec.to_builtins(cursor), separators=(",", ":"))
    text = text.translate(_ESCAPES)
    # A multiple of three bytes needs no trailing =, and JSON may end with blanks.
    text += " " * (-len(text) % 3)
    return base64.b64encode(text.encode()).decode()


def decode_cursor(text: str, type_: type[T], name: str) -> T:
    """Decode a cursor; raises InputError naming the parameter if the text is invalid."""
    try:
        return msgspec.json.decode(base64.b64decode(text, altchars=b"-_"), type=type_)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise InputError(f"{name} is not a cursor from this interface.") from None


def check_cursor_place(place: _CursorPlace, order: Sequence[object], name: str) -> None:
    """Raise InputError unless the cursor belongs to a query with this order."""
    if len(place) != len(order) + 1 or place[-1] is None:
        raise InputError(f"{name} belongs to a query with another order.")


class Projection:
    """Selects dotted paths of an entity; without paths, keeps the whole entity."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    @classmethod
    def of(cls, values: Iterable[str]) -> Self:
        """Parse `fields` parameters, each a comma-separated list; raises InputError for `[`."""
        paths = [path.strip() for value in values for path in value.split(",") if path.strip()]
        if len(paths) > _MOST_PATHS:
            raise InputError(f"fields can name {_MOST_PATHS} paths at most.")
        for path in paths:
            if "[" in path:
                raise InputError(f'fields are dotted paths without indexes, not "{path}".')
        return cls(paths)

    @property
    def keeps_all(self) -> bool:
        """True if no paths are selected."""
        return not self._paths

    def apply(self, entity: str) -> bytes:
        """Reduce an entity's JSON to the selected paths; missing paths are skipped."""
        if self.keeps_all:
            return entity.encode()
        whole = msgspec.json.decode(entity)
        kept: dict[str, Any] = {}
        for path in self._paths:
            _copy_path(whole, kept, path.split("."))
        return msgspec.json.encode(kept)


def render_entity_array(entities: Sequence[str], projection: Projection) -> bytes:
    """Render entities as a JSON array."""
    if projection.keeps_all:
        return f"[{','.join(entities)}]".encode()
    return b"[" + b",".join([projection.apply(entity) for entity in entities]) + b"]"


def _copy_path(source: dict[str, Any], target: dict[str, Any], path: list[str]) -> None:
    keys, value = _resolve_path(source, path)
    if value is _MISSING:
        return
    for key in keys[:-1]:
        source = source[key]
        child = target.setdefault(key, {})
        if child is source:  # already copied whole
            return
        target = child
    target[keys[-1]] = value


def _resolve_path(value: Any, path: list[str]) -> tuple[list[str], Any]:
    """Find the keys along a path. Joins a missing part with the next, as keys may contain dots."""
    keys: list[str] = []
    key: str | None = None
    for part in path:
        key = part if key is None else f"{key}.{part}"
        if isinstance(value, dict) and key in value:
            value = value[key]
            keys.append(key)
            key = None
    return keys, value if key is None else _MISSING


class Refs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of by-refs."""

    entity_refs: Annotated[list[AnyRef], msgspec.Meta(max_length=10_000)] = msgspec.field(
        name="entityRefs"
    )
    fields: list[FieldPath] = []
    query: Predicate | UnsetType = UNSET


async def get_entities(request: Request, state: HandlerContext) -> JsonReply[list[EntityParts]]:
    """Entities as a bare array: all of them, or a page with a Link to the next."""
    projection = Projection.of(FIELDS.of(request))
    condition = parse_filters(FILTER.of(request))
    # Each is like `asc:metadata.name`.
    orders = [text.partition(":") for text in ORDER.of(request)]
    query = Query(
        condition, [SortField(field, direction == "desc") for direction, _, field in orders]
    )
    limit, offset, after = LIMIT.of(request), OFFSET.of(request), AFTER.of(request)
    if limit is None and offset is None and after is None:
        return JsonReply(_stream_all_entities(state, query, projection))
    cursor: AfterCursor | None = None
    if after is not None:
        cursor = decode_cursor(after, AfterCursor, "after")
        check_cursor_place(cursor.after, query.order, "after")
    page_size = limit or (cursor.limit if cursor else LIMIT.most)
    page = await entity_query.query_page(
        state.database,
        replace(
            query,
            limit=page_size,
            offset=0 if cursor else offset or 0,
            after=cursor.after if cursor else None,
        ),
    )
    headers = {}
    if page.after:
        next_cursor = encode_cursor(AfterCursor(page_size, page.places[-1]))
        others = [(name, value) for name, value in request.query if name not in ("after", "offset")]
        parameters = urlencode([*others, ("after", next_cursor)], quote_via=quote)
        address = (state.settings.public_url or "").rstrip("/") + quote(request.path)
        headers["link"] = f'<{address}?{parameters}>; rel="next"'
    return JsonReply(render_entity_array(page.items, projection), headers=headers)


async def get_entity_by_name(request: Request, state: HandlerContext) -> JsonReply[Entity]:
    """One entity by kind, namespace and name."""
    found = await _find_named_entity(request, state)
    return JsonReply(found.render().encode())


async def get_entity_ancestry(request: Request, state: HandlerContext) -> JsonReply[Ancestry]:
    """The origin of an entity: always the entity itself, because it was pushed."""
    found = await _find_named_entity(request, state)
    item = f'{{"entity":{found.render()},"parentEntityRefs":[]}}'
    ref = msgspec.json.encode(found.ref).decode()
    return JsonReply(f'{{"rootEntityRef":{ref},"items":[{item}]}}'.encode())


async def _find_named_entity(request: Request, state: HandlerContext) -> StoredEntity:
    kind, namespace, name = (request.parameter(part) for part in ("kind", "namespace", "name"))
    ref = str(EntityRef.of(kind, namespace, name))
    found = await stored_entities.read_entity(state.database, ref)
    if found is None:
        text = f"No entity named '{name}' found, with kind '{kind}' in namespace '{namespace}'"
        raise NotFoundError(text)
    return found


async def get_entity_by_uid(request: Request, state: HandlerContext) -> JsonReply[Entity]:
    """One entity by its uid."""
    uid = request.parameter("uid")
    found = await stored_entities.read_entity_by_uid(state.database, uid)
    if found is None:
        raise NotFoundError(f"No entity with uid {uid}")
    return JsonReply(found.render().encode())


async def delete_entity_by_uid(request: Request, state: HandlerContext) -> Reply:
    """Remove one entity from wherever it is; succeeds if there is none."""
    actor = Actor(request.actor, state.clock())
    await stored_sets.remove_entity(
        state.database,
        request.parameter("uid"),
        actor,
        kept=state.settings.revisions_kept,
        narrowing=request.narrowing,
        write=audit.audit_request_writes(
            request, state, audit.make_entity_entry("entity.delete"), 204
        ),
    )
    return Reply(status=204)


async def get_entities_by_refs(
    request: Request, state: HandlerContext
) -> JsonReply[EntitiesByRefs]:
    """Entities in the order of the references, with null for each that isn't found."""
    limit = min(_LARGEST_LIST, state.settings.max_body_bytes)
    async with state.admission.room_for_body(request, limit):
        return await _render_entities_by_refs(await request.json(Refs, limit), request, state)


async def _render_entities_by_refs(
    asked: Refs, request: Request, state: HandlerContext
) -> JsonReply[EntitiesByRefs]:
    projection = Projection.of(asked.fields)
    wanted = [str(refs.parse_ref(text)) for text in asked.entity_refs]
    condition = parse_filters(FILTER.of(request))
    if asked.query is not UNSET:
        condition = AllOf([condition, parse_predicate(asked.query)])
    found = await stored_entities.read_entities_by_refs(state.database, wanted, condition)
    rendered = [
        projection.apply(stored.render()) if (stored := found.get(ref)) else b"null"
        for ref in wanted
    ]
    return JsonReply(b'{"items":[' + b",".join(rendered) + b"]}")


def _stream_all_entities(
    state: HandlerContext, query: Query, projection: Projection
) -> AsyncIterator[bytes]:
    if projection.keeps_all:
        return _stream_array(entity_query.stream_documents(state.database, query))
    return _stream_array(
        b"".join([b"," + projection.apply(entity.render()) for entity in portion])
        async for portion in entity_query.stream_entities(state.database, query)
    )


async def _stream_array(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Wrap pieces in a JSON array; every item starts with a comma."""
    first = await anext(pieces, b"")
    yield b"[" + first[1:]
    async for piece in pieces:
        yield piece
    yield b"]"


class ByQuery(Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of by-query; with `cursor`, only `limit` and `fields` count beside it."""

    query: Predicate | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=QUERY_LIMIT.least, le=QUERY_LIMIT.most)] = _QUERY_LIMIT
    offset: Annotated[int, Meta(ge=OFFSET.least, le=OFFSET.most)] = 0
    order_by: Annotated[list[OrderBy], Meta(max_length=MOST_ORDERS)] = []
    full_text_filter: FullTextFilter = FullTextFilter()
    fields: list[FieldPath] = []
    total_items: Literal["include", "exclude", "bounded"] = "include"
    cursor: Annotated[str, common.describe_text(None, "query-cursor")] | UnsetType = UNSET


class _QueryRequest(Struct):
    """The query of a request, from its own parameters or from a cursor."""

    question: QueryCursor
    limit: int
    offset: int = 0
    totals: str = "include"
    continued: bool = False


async def get_entities_by_query(request: Request, state: HandlerContext) -> JsonReply[EntityPage]:
    """Entities that match a filter and a text, page by page.

    Entities without an order field come last in both directions, and are counted.
    """
    projection = Projection.of(FIELDS.of(request))
    limit = QUERY_LIMIT.of(request)
    orders: list[OrderBy] = []
    for text in ORDER_FIELD.of(request):
        has_direction = text.endswith((",asc", ",desc"))
        field, _, direction = text.rpartition(",") if has_direction else (text, "", "asc")
        orders.append(OrderBy(field, "desc" if direction == "desc" else "asc"))
    term = TEXT_TERM.of(request) or ""
    text_fields = [path for text in TEXT_FIELDS.of(request) for path in text.split(",")]
    if len(text_fields) > MOST_TEXT_FIELDS:
        raise InputError(f"{TEXT_FIELDS.name} can name {MOST_TEXT_FIELDS} paths at most.")
    question = QueryCursor(
        order_fields=orders,
        order_field_values=[],
        filter=FILTER.of(request),
        full_text_filter=FullTextFilter(term, text_fields),
    )
    asked = _QueryRequest(
        question,
        _QUERY_LIMIT if limit is None else limit,
        OFFSET.of(request) or 0,
        TOTAL_ITEMS.of(request) or "include",
    )
    return await _answer_query(state, _continue_query(asked, CURSOR_TEXT.of(request)), projection)


async def post_entity_query(request: Request, state: HandlerContext) -> JsonReply[EntityPage]:
    """Entities that match a predicate and a text, page by page.

    Entities without an order field come last in both directions, and are counted.
    """
    # The body is optional.
    body: ByQuery = decode(await request.json_body(_LARGEST_QUERY, "a query") or b"{}", ByQuery)
    projection = Projection.of(body.fields)
    question = QueryCursor(
        order_fields=body.order_by,
        order_field_values=[],
        query={} if body.query is UNSET else body.query,
        full_text_filter=body.full_text_filter,
    )
    asked = _QueryRequest(question, body.limit, body.offset, body.total_items)
    cursor = None if body.cursor is UNSET else body.cursor
    return await _answer_query(state, _continue_query(asked, cursor), projection)


def _continue_query(asked: _QueryRequest, cursor: str | None) -> _QueryRequest:
    """Return the cursor's query, if any; the query it overrides has to be valid too."""
    if cursor is None:
        return asked
    _build_catalog_condition(asked.question)
    question = decode_cursor(cursor, QueryCursor, "cursor")
    check_cursor_place(question.order_field_values, question.order_fields, "cursor")
    return _QueryRequest(question, asked.limit, continued=True)


async def _answer_query(
    state: HandlerContext, asked: _QueryRequest, projection: Projection
) -> JsonReply[EntityPage]:
    question = asked.question
    condition = await browse.look_up_text(state.database, _build_catalog_condition(question))
    query = Query(
        condition,
        [SortField(item.field, item.order == "desc") for item in question.order_fields],
        asked.limit,
        asked.offset,
        question.order_field_values if asked.continued else None,
        question.is_previous,
    )
    selectivity = Selectivity(state.database, condition)
    found = await entity_query.query_page(state.database, query, selectivity)
    if not asked.continued:
        question.total_items = await _count_total(state.database, asked, selectivity, found)
    head = msgspec.json.encode(question.total_items)
    pages = msgspec.json.encode(_build_page_info(asked, found))
    items = render_entity_array(found.items, projection)
    return JsonReply(
        b'{"items":' + items + b',"totalItems":' + head + b',"pageInfo":' + pages + b"}"
    )


def _build_catalog_condition(question: QueryCursor) -> Condition:
    condition = (
        parse_filters([] if question.filter is UNSET else question.filter)
        if question.query is UNSET
        else parse_predicate(question.query)
    )
    text = question.full_text_filter
    term = "" if text is UNSET else text.term.strip().lower()
    if text is UNSET or not term:
        return condition
    fields = [path for field in text.fields if (path := field.strip().lower())]
    ordered = [item.field.lower() for item in question.order_fields[:1]]
    return AllOf([condition, Contains(fields or ordered or _TEXT_FIELDS, term)])


async def _count_total(
    database: Database, asked: _QueryRequest, selectivity: Selectivity, found: ResultPage[str]
) -> int:
    if asked.totals == "exclude":
        return 0
    # The last page determines the total, unless its offset is beyond the end.
    if not found.after and (found.items or not asked.offset):
        return asked.offset + len(found.items)
    count = entity_query.count_bounded if asked.totals == "bounded" else entity_query.count_exactly
    return await count(database, selectivity.condition, selectivity)


def _build_page_info(asked: _QueryRequest, found: ResultPage[str]) -> PageInfo:
    if not found.items:
        return PageInfo()
    return PageInfo(
        next_cursor=_encode_query_cursor(asked, found.places[-1], back=False)
        if found.after
        else None,
        prev_cursor=_encode_query_cursor(asked, found.places[0], back=True)
        if found.before
        else None,
    )


def _encode_query_cursor(asked: _QueryRequest, place: list[str | None], *, back: bool) -> str:
    cursor = msgspec.structs.replace(asked.question, order_field_values=place, is_previous=back)
    return encode_cursor(cursor)


class Facets(Struct, forbid_unknown_fields=True):
    """The body of entity-facets."""

    facets: Annotated[list[str], Meta(min_length=1, max_length=FACET.most)]
    query: Predicate | UnsetType = UNSET


async def get_facets(request: Request, state: HandlerContext) -> JsonReply[FacetValues]:
    """The values of some paths, with the number of entities that have each, by filter."""
    return await _answer_facets(state, FACET.of(request), parse_filters(FILTER.of(request)))


async def post_facets(request: Request, state: HandlerContext) -> JsonReply[FacetValues]:
    """The values of some paths, with the number of entities that have each, by predicate."""
    body: Facets = await request.json(Facets)
    condition = EVERYTHING if body.query is UNSET else parse_predicate(body.query)
    return await _answer_facets(state, body.facets, condition)


async def _answer_facets(
    state: HandlerContext, paths: list[str], condition: Condition
) -> JsonReply[FacetValues]:
    facets: dict[str, list[Facet]] = {}
    for path in paths:
        facets[path] = await browse.count_facet(state.database, path, condition)
    return await aside(
        sum(map(len, facets.values())),
        lambda: reply(
            FacetValues(
                {
                    path: [FacetValue(facet.value, facet.entities) for facet in values]
                    for path, values in facets.items()
                }
            )
        ),
    )


class Location(Wire):
    """A place that a catalog reads entities from."""

    id: str
    type: str
    target: str


class ListedLocation(Wire):
    """A location in the list of all."""

    data: Location


class LocationQuery(Struct, forbid_unknown_fields=True):
    """The body of a query for locations."""

    query: dict[str, Any] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 1000
    cursor: str | UnsetType = UNSET


class LocationPage(Wire):
    """A page of locations."""

    items: list[Location]
    total_items: int
    page_info: PageInfo


async def get_locations(request: Request, state: HandlerContext) -> JsonReply[list[ListedLocation]]:
    """All locations: none, because entities are pushed."""
    return reply([])


async def post_location_query(request: Request, state: HandlerContext) -> JsonReply[LocationPage]:
    """The locations that match a query: none, because entities are pushed."""
    await request.json(LocationQuery)
    return reply(LocationPage([], 0, PageInfo()))


async def get_location(request: Request, state: HandlerContext) -> Reply:
    """One location by its id: there are none."""
    raise NotFoundError(f"Found no location with ID {request.parameter('id')}")


async def get_location_of_entity(request: Request, state: HandlerContext) -> Reply:
    """The location that an entity was read from: there is none."""
    raise NotFoundError("No entity of this catalog was read from a location: they are pushed.")


async def refuse_location(request: Request, state: HandlerContext) -> Reply:
    """Writing and analyzing locations isn't supported."""
    raise UnsupportedError(_PUSH.format(word=state.settings.push_word))


class Refresh(Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of refresh; `authorizationToken` is what some clients send, and means nothing."""

    entity_ref: AnyRef
    authorization_token: str | UnsetType = UNSET


async def refresh_entity(request: Request, state: HandlerContext) -> Reply:
    """Queue a collection of one entity's facts, which begins within seconds."""
    asked: Refresh = await request.json(Refresh)
    ref = str(refs.parse_ref(asked.entity_ref))
    actor, now = request.actor, state.clock()
    write = audit.audit_request_writes(request, state, audit.make_refresh_entry(ref))
    if not await request_refresh(state.database, ref, actor, now, write):
        raise await stored_entities.make_unknown_error(state.database, ref)
    return Reply()


_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_BY_NAME = "/entities/by-name/{kind}/{namespace}/{name}"
_BY_UID = "/entities/by-uid/{uid}"
_BY_REFS = Route("POST", "/entities/by-refs", get_entities_by_refs, _READ, (FILTER,), body=Refs)
_REFUSED = Route(
    "POST",
    "/locations",
    refuse_location,
    _WRITE,
    None,
    described=False,
    reading=NOTHING_STORED,
)
# Below /api/catalog.
CATALOG_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        "/entities",
        get_entities,
        _READ,
        (FILTER, FIELDS, ORDER, LIMIT, OFFSET, AFTER),
        headers=(LINK,),
    ),
    Route(
        "GET",
        "/entities/by-query",
        get_entities_by_query,
        _READ,
        (
            FILTER,
            FIELDS,
            ORDER_FIELD,
            QUERY_LIMIT,
            OFFSET,
            CURSOR_TEXT,
            TOTAL_ITEMS,
            TEXT_TERM,
            TEXT_FIELDS,
        ),
    ),
    Route(
        "POST",
        "/entities/by-query",
        post_entity_query,
        _READ,
        body=ByQuery,
        needs_body=False,
    ),
    Route("GET", _BY_NAME, get_entity_by_name, _READ),
    Route("GET", f"{_BY_NAME}/ancestry", get_entity_ancestry, _READ),
    _BY_REFS,
    # One client uses this form and doesn't follow redirects.
    _BY_REFS._replace(path=f"{_BY_REFS.path}/", described=False),
    Route("GET", _BY_UID, get_entity_by_uid, _READ),
    Route(
        "DELETE",
        _BY_UID,
        delete_entity_by_uid,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=SET_REACH,
    ),
    Route("GET", "/entity-facets", get_facets, _READ, (FACET, FILTER)),
    Route("POST", "/entity-facets", post_facets, _READ, body=Facets),
    Route(
        "POST",
        "/refresh",
        refresh_entity,
        (SOURCE_RUN,),
        body=Refresh,
        refusals=(NotFoundError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", "/locations", get_locations, _READ),
    Route(
        "POST",
        "/locations/by-query",
        post_location_query,
        _READ,
        body=LocationQuery,
    ),
    Route("GET", "/locations/{id}", get_location, _READ, described=False),
    Route(
        "GET",
        "/locations/by-entity/{kind}/{namespace}/{name}",
        get_location_of_entity,
        _READ,
        described=False,
    ),
    # Other catalogs offer these routes, so clients get a clear refusal.
    _REFUSED,
    _REFUSED._replace(method="PUT", path="/locations/{id}"),
    _REFUSED._replace(method="DELETE", path="/locations/{id}"),
    Route("POST", "/analyze-location", refuse_location, _READ, None, described=False),
)

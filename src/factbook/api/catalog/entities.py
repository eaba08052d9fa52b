"""The catalog read interface, as existing clients of that API speak it."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from factbook.api.catalog import cursors
from factbook.api.catalog.cursors import AfterCursor
from factbook.api.catalog.projection import Projection, array
from factbook.api.openapi.parameters import AFTER, FIELDS, FILTER, LIMIT, OFFSET, ORDER
from factbook.catalog import filters, predicates
from factbook.catalog import ref as refs
from factbook.catalog.ref import EntityRef
from factbook.catalog.store import by_ref, entity_query, stored_sets
from factbook.catalog.store.apply import Actor
from factbook.catalog.store.conditions import AllOf
from factbook.catalog.store.documents import StoredEntity
from factbook.catalog.store.entity_query import Query
from factbook.catalog.store.sort_order import SortField
from factbook.errors import NotFoundError
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Reply, Request
from factbook.schemas.catalog import Ancestry, EntitiesByRefs, Entity, EntityParts
from factbook.schemas.common import AnyRef, FieldPath, Predicate

# Bytes of a list of references: those of some hundred thousand.
_LARGEST_LIST = 16 * 1024 * 1024


class Refs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of by-refs."""

    entity_refs: Annotated[list[AnyRef], msgspec.Meta(max_length=10_000)] = msgspec.field(
        name="entityRefs"
    )
    fields: list[FieldPath] = []
    query: Predicate | UnsetType = UNSET


async def list_entities(request: Request, state: HandlerContext) -> JsonReply[list[EntityParts]]:
    """Entities as a bare array; whole, or a page with a Link to the next."""
    projection = Projection.of(FIELDS.of(request))
    query = Query(filters.parse(FILTER.of(request)), _orders(ORDER.of(request)))
    limit, offset, after = LIMIT.of(request), OFFSET.of(request), AFTER.of(request)
    if limit is None and offset is None and after is None:
        return JsonReply(_all(state, query, projection))
    cursor = _continued(after, query.order) if after is not None else None
    page_size = limit or (cursor.limit if cursor else LIMIT.most)
    found = await entity_query.page(
        state.database,
        replace(
            query,
            limit=page_size,
            offset=0 if cursor else offset or 0,
            after=cursor.after if cursor else None,
        ),
    )
    headers = {}
    if found.after:
        public_url = state.settings.public_url or ""
        headers["link"] = _next_link(request, public_url, AfterCursor(page_size, found.places[-1]))
    return JsonReply(array(found.items, projection), headers=headers)


async def get_by_name(request: Request, state: HandlerContext) -> JsonReply[Entity]:
    """One entity by kind, namespace and name."""
    found = await _named(request, state)
    return JsonReply(found.render().encode())


async def get_ancestry(request: Request, state: HandlerContext) -> JsonReply[Ancestry]:
    """The origin of an entity: itself alone, as it was pushed and not found through another."""
    found = await _named(request, state)
    item = f'{{"entity":{found.render()},"parentEntityRefs":[]}}'
    ref = msgspec.json.encode(found.ref).decode()
    return JsonReply(f'{{"rootEntityRef":{ref},"items":[{item}]}}'.encode())


async def _named(request: Request, state: HandlerContext) -> StoredEntity:
    kind, namespace, name = (request.parameter(part) for part in ("kind", "namespace", "name"))
    ref = str(EntityRef.of(kind, namespace, name))
    found = await by_ref.entity(state.database, ref)
    if found is None:
        text = f"No entity named '{name}' found, with kind '{kind}' in namespace '{namespace}'"
        raise NotFoundError(text)
    return found


async def get_by_uid(request: Request, state: HandlerContext) -> JsonReply[Entity]:
    """One entity by its uid."""
    uid = request.parameter("uid")
    found = await by_ref.entity_by_uid(state.database, uid)
    if found is None:
        raise NotFoundError(f"No entity with uid {uid}")
    return JsonReply(found.render().encode())


async def delete_by_uid(request: Request, state: HandlerContext) -> Reply:
    """Remove one entity from wherever it is; nothing to remove is as good."""
    actor = Actor(request.actor, state.clock())
    await stored_sets.remove_one(
        state.database,
        request.parameter("uid"),
        actor,
        kept=state.settings.revisions_kept,
        narrowing=request.narrowing,
        write=audit.writing(request, state, audit.of_entity("entity.delete"), 204),
    )
    return Reply(status=204)


async def get_by_refs(request: Request, state: HandlerContext) -> JsonReply[EntitiesByRefs]:
    """Entities in the order of the references, null for each that there is not."""
    limit = min(_LARGEST_LIST, state.settings.max_body_bytes)
    async with state.admission.room_for_body(request, limit):
        return await _by_refs(await request.json(Refs, limit), request, state)


async def _by_refs(
    asked: Refs, request: Request, state: HandlerContext
) -> JsonReply[EntitiesByRefs]:
    projection = Projection.of(asked.fields)
    wanted = [str(refs.parse(text)) for text in asked.entity_refs]
    condition = filters.parse(FILTER.of(request))
    if asked.query is not UNSET:
        condition = AllOf([condition, predicates.parse(asked.query)])
    found = await by_ref.entities_by_refs(state.database, wanted, condition)
    rendered = [
        projection.apply(stored.render()) if (stored := found.get(ref)) else b"null"
        for ref in wanted
    ]
    return JsonReply(b'{"items":[' + b",".join(rendered) + b"]}")


def _orders(texts: list[str]) -> list[SortField]:
    """The orders that texts such as `asc:metadata.name` mean."""
    parts = (text.partition(":") for text in texts)
    return [SortField(field, direction == "desc") for direction, _, field in parts]


def _continued(text: str, order: Sequence[SortField]) -> AfterCursor:
    cursor = cursors.decode(text, AfterCursor, "after")
    cursors.check_place(cursor.after, order, "after")
    return cursor


def _next_link(request: Request, public_url: str, cursor: AfterCursor) -> str:
    after = cursors.encode(cursor)
    kept = [(name, value) for name, value in request.query if name not in ("after", "offset")]
    query = urlencode([*kept, ("after", after)], quote_via=quote)
    return f'<{public_url.rstrip("/")}{quote(request.path)}?{query}>; rel="next"'


def _all(state: HandlerContext, query: Query, projection: Projection) -> AsyncIterator[bytes]:
    """Every entity of a query as a JSON array, in pieces."""
    if projection.keeps_all:
        return _array(entity_query.stream_text(state.database, query))
    return _array(_projected(state, query, projection))


async def _projected(
    state: HandlerContext, query: Query, projection: Projection
) -> AsyncIterator[bytes]:
    async for portion in entity_query.stream(state.database, query):
        yield b"".join([b"," + projection.apply(item.render()) for item in portion])


async def _array(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A JSON array of members that each follow a comma."""
    first = await anext(pieces, b"")
    yield b"[" + first[1:]
    async for piece in pieces:
        yield piece
    yield b"]"

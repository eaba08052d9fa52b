"""The catalog read interface, as existing clients of that API speak it."""

import base64
import re
from collections.abc import AsyncIterator, Sequence
from typing import Annotated
from urllib.parse import quote, urlencode

import msgspec

from factbook.api.projection import Projection
from factbook.api.requests import Reply, Request
from factbook.api.state import State
from factbook.catalog import filters
from factbook.catalog import ref as refs
from factbook.catalog.ref import EntityRef
from factbook.catalog.store import reading
from factbook.catalog.store.reading import Order, Query, Stored
from factbook.errors import InputError, NotFoundError

_ORDER = re.compile(r"(asc|desc):(.+)")
_MOST = 10_000
_MOST_ORDERS = 10


class Refs(msgspec.Struct, forbid_unknown_fields=True):
    """The body of by-refs."""

    entity_refs: Annotated[list[str], msgspec.Meta(max_length=10_000)] = msgspec.field(
        name="entityRefs"
    )
    fields: list[str] = []


class Cursor(msgspec.Struct, forbid_unknown_fields=True):
    """What `after` carries: the page size and the last row's sort values and reference."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=_MOST)]
    after: list[str | None]


async def list_entities(request: Request, state: State) -> Reply:
    """Entities as a bare array; whole, or a page with a Link to the next."""
    request.allow_only("filter", "fields", "order", "limit", "offset", "after")
    projection = Projection.of(request.all("fields"))
    query = Query(filters=filters.parse(request.all("filter")), order=_orders(request.all("order")))
    limit, after = request.integer("limit", least=1, most=_MOST), request.get("after")
    offset = request.integer("offset")
    if limit is None and offset is None and after is None:
        return Reply(_all(reading.stream(state.database, query), projection))
    cursor = _read_cursor(after, query.order) if after is not None else None
    page_size = limit or (cursor.limit if cursor else _MOST)
    found = await reading.page(
        state.database,
        Query(
            query.filters,
            query.order,
            page_size,
            0 if cursor else offset or 0,
            cursor.after if cursor else None,
        ),
    )
    headers = {}
    if found.last is not None:
        public_url = state.settings.public_url or ""
        headers["link"] = _next_link(request, public_url, Cursor(page_size, found.last))
    return Reply(_array(found.items, projection), headers=headers)


async def get_by_name(request: Request, state: State) -> Reply:
    """One entity by kind, namespace and name."""
    kind, namespace, name = (request.parameter(part) for part in ("kind", "namespace", "name"))
    found = await reading.entity(state.database, str(EntityRef.of(kind, namespace, name)))
    if found is None:
        raise NotFoundError(
            f"No entity named '{name}' found, with kind '{kind}' in namespace '{namespace}'"
        )
    return Reply(found.render().encode())


async def get_by_uid(request: Request, state: State) -> Reply:
    """One entity by its uid."""
    uid = request.parameter("uid")
    found = await reading.entity_by_uid(state.database, uid)
    if found is None:
        raise NotFoundError(f"No entity with uid {uid}")
    return Reply(found.render().encode())


async def get_by_refs(request: Request, state: State) -> Reply:
    """Entities in the order of the references, null for each that there is not."""
    request.allow_only("filter")
    asked: Refs = await request.json(Refs, state.settings.max_body_bytes)
    projection = Projection.of(asked.fields)
    wanted = [str(refs.parse(text)) for text in asked.entity_refs]
    conditions = filters.parse(request.all("filter"))
    found = await reading.entities_by_refs(state.database, wanted, conditions)
    rendered = [
        projection.apply(stored.render()) if (stored := found.get(ref)) else b"null"
        for ref in wanted
    ]
    return Reply(b'{"items":[' + b",".join(rendered) + b"]}")


def _orders(texts: list[str]) -> list[Order]:
    orders = []
    if len(texts) > _MOST_ORDERS:
        raise InputError(f"order can be given {_MOST_ORDERS} times at most.")
    for text in texts:
        match = _ORDER.fullmatch(text)
        if match is None:
            raise InputError(f'order has to be asc:<field> or desc:<field>, not "{text}".')
        orders.append(Order(match[2], match[1] == "desc"))
    return orders


def _read_cursor(text: str, order: Sequence[Order]) -> Cursor:
    try:
        cursor = msgspec.json.decode(base64.urlsafe_b64decode(text.encode()), type=Cursor)
    except (ValueError, msgspec.MsgspecError):
        raise InputError("after is not a cursor that this interface gave.") from None
    if len(cursor.after) != len(order) + 1 or cursor.after[-1] is None:
        raise InputError("after belongs to a query with another order.")
    return cursor


def _next_link(request: Request, public_url: str, cursor: Cursor) -> str:
    after = base64.urlsafe_b64encode(msgspec.json.encode(cursor)).decode()
    kept = [(name, value) for name, value in request.query if name not in ("after", "offset")]
    query = urlencode([*kept, ("after", after)], quote_via=quote)
    return f'<{public_url.rstrip("/")}{quote(request.path)}?{query}>; rel="next"'


def _array(items: list[Stored], projection: Projection) -> bytes:
    if projection.keeps_all:
        return f"[{','.join([item.render() for item in items])}]".encode()
    return b"[" + b",".join([projection.apply(item.render()) for item in items]) + b"]"


async def _all(
    portions: AsyncIterator[list[Stored]], projection: Projection
) -> AsyncIterator[bytes]:
    opening = b"["
    async for portion in portions:
        yield opening + _array(portion, projection)[1:-1]
        opening = b","
    yield b"[]" if opening == b"[" else b"]"

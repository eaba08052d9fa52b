"""Queries: entities page by page, by filter, predicate or text, with cursors both ways."""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.api.catalog import cursors
from factbook.api.catalog.cursors import (
    MOST_ORDERS,
    MOST_TEXT_FIELDS,
    FullTextFilter,
    OrderBy,
    QueryCursor,
)
from factbook.api.catalog.projection import Projection, array
from factbook.api.openapi.parameters import (
    CURSOR_TEXT,
    FIELDS,
    FILTER,
    OFFSET,
    ORDER_FIELD,
    QUERY_LIMIT,
    TEXT_FIELDS,
    TEXT_TERM,
    TOTAL_ITEMS,
)
from factbook.catalog import filters, predicates
from factbook.catalog.store import entity_query, totals, trigrams
from factbook.catalog.store.conditions import AllOf, Condition, Contains
from factbook.catalog.store.entity_query import Query, ResultPage
from factbook.catalog.store.selectivity import Selectivity
from factbook.catalog.store.sort_order import SortField
from factbook.errors import InputError
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, decode
from factbook.schemas import patterns
from factbook.schemas.catalog import EntityPage, PageInfo
from factbook.schemas.common import FieldPath, Predicate
from factbook.storage import Database

_LIMIT = 200
_MAX_BODY = 1024 * 1024
_TEXT_FIELDS = ["metadata.name", "metadata.title"]


class ByQuery(Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of by-query; with `cursor`, only `limit` and `fields` count beside it."""

    query: Predicate | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=QUERY_LIMIT.least, le=QUERY_LIMIT.most)] = _LIMIT
    offset: Annotated[int, Meta(ge=OFFSET.least, le=OFFSET.most)] = 0
    order_by: Annotated[list[OrderBy], Meta(max_length=MOST_ORDERS)] = []
    full_text_filter: FullTextFilter = FullTextFilter()
    fields: list[FieldPath] = []
    total_items: Literal["include", "exclude", "bounded"] = "include"
    cursor: Annotated[str, patterns.describe_text(None, "query-cursor")] | UnsetType = UNSET


class _QueryRequest(Struct):
    """The query of a request, from its own parameters or from a cursor."""

    question: QueryCursor
    limit: int
    offset: int = 0
    totals: str = "include"
    continued: bool = False


async def get_by_query(request: Request, state: HandlerContext) -> JsonReply[EntityPage]:
    """Entities page by page, by filter and text.

    Entities that lack an order field come last, in both directions, and are counted.
    """
    projection = Projection.of(FIELDS.of(request))
    limit = QUERY_LIMIT.of(request)
    question = QueryCursor(
        order_fields=[_order_field(text) for text in ORDER_FIELD.of(request)],
        order_field_values=[],
        filter=FILTER.of(request),
        full_text_filter=FullTextFilter(TEXT_TERM.of(request) or "", _text_fields(request)),
    )
    asked = _QueryRequest(
        question,
        _LIMIT if limit is None else limit,
        OFFSET.of(request) or 0,
        TOTAL_ITEMS.of(request) or "include",
    )
    return await _answer(state, _continued(asked, CURSOR_TEXT.of(request)), projection)


async def post_by_query(request: Request, state: HandlerContext) -> JsonReply[EntityPage]:
    """Entities page by page, by predicate and text.

    Entities that lack an order field come last, in both directions, and are counted.
    """
    # The body may be left out.
    body: ByQuery = decode(await request.json_body(_MAX_BODY, "a query") or b"{}", ByQuery)
    projection = Projection.of(body.fields)
    question = QueryCursor(
        order_fields=body.order_by,
        order_field_values=[],
        query={} if body.query is UNSET else body.query,
        full_text_filter=body.full_text_filter,
    )
    asked = _QueryRequest(question, body.limit, body.offset, body.total_items)
    cursor = None if body.cursor is UNSET else body.cursor
    return await _answer(state, _continued(asked, cursor), projection)


def _continued(asked: _QueryRequest, cursor: str | None) -> _QueryRequest:
    """The query of the cursor, if there is one; one that it overrides has to be valid too."""
    if cursor is None:
        return asked
    _condition(asked.question)
    question = cursors.decode(cursor, QueryCursor, "cursor")
    cursors.check_place(question.order_field_values, question.order_fields, "cursor")
    return _QueryRequest(question, asked.limit, continued=True)


async def _answer(
    state: HandlerContext, asked: _QueryRequest, projection: Projection
) -> JsonReply[EntityPage]:
    question = asked.question
    condition = await trigrams.looked_up(state.database, _condition(question))
    query = Query(
        condition,
        [SortField(item.field, item.order == "desc") for item in question.order_fields],
        asked.limit,
        asked.offset,
        question.order_field_values if asked.continued else None,
        question.is_previous,
    )
    selectivity = Selectivity(state.database, condition)
    found = await entity_query.page(state.database, query, selectivity)
    if not asked.continued:
        question.total_items = await _total(state.database, asked, selectivity, found)
    head = msgspec.json.encode(question.total_items)
    pages = msgspec.json.encode(_page_info(asked, found))
    items = array(found.items, projection)
    return JsonReply(
        b'{"items":' + items + b',"totalItems":' + head + b',"pageInfo":' + pages + b"}"
    )


def _condition(question: QueryCursor) -> Condition:
    condition = (
        filters.parse([] if question.filter is UNSET else question.filter)
        if question.query is UNSET
        else predicates.parse(question.query)
    )
    text = question.full_text_filter
    term = "" if text is UNSET else text.term.strip().lower()
    if text is UNSET or not term:
        return condition
    fields = [path for field in text.fields if (path := field.strip().lower())]
    ordered = [item.field.lower() for item in question.order_fields[:1]]
    return AllOf([condition, Contains(fields or ordered or _TEXT_FIELDS, term)])


async def _total(
    database: Database, asked: _QueryRequest, selectivity: Selectivity, found: ResultPage[str]
) -> int:
    if asked.totals == "exclude":
        return 0
    # The last page tells how many there are, unless it begins behind them all.
    if not found.after and (found.items or not asked.offset):
        return asked.offset + len(found.items)
    count = totals.bounded if asked.totals == "bounded" else totals.exact
    return await count(database, selectivity.condition, selectivity)


def _page_info(asked: _QueryRequest, found: ResultPage[str]) -> PageInfo:
    if not found.items:
        return PageInfo()
    return PageInfo(
        next_cursor=_cursor(asked, found.places[-1], back=False) if found.after else None,
        prev_cursor=_cursor(asked, found.places[0], back=True) if found.before else None,
    )


def _cursor(asked: _QueryRequest, place: list[str | None], *, back: bool) -> str:
    cursor = msgspec.structs.replace(asked.question, order_field_values=place, is_previous=back)
    return cursors.encode(cursor)


def _text_fields(request: Request) -> list[str]:
    paths = [path for text in TEXT_FIELDS.of(request) for path in text.split(",")]
    if len(paths) > MOST_TEXT_FIELDS:
        raise InputError(f"{TEXT_FIELDS.name} can name {MOST_TEXT_FIELDS} paths at most.")
    return paths


def _order_field(text: str) -> OrderBy:
    field, _, order = text.rpartition(",") if text.endswith((",asc", ",desc")) else (text, "", "")
    return OrderBy(field, "desc" if order == "desc" else "asc")

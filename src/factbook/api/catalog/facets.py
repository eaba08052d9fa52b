"""Facets: which values a path has, and in how many entities."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.api.openapi.parameters import FACET, FILTER
from factbook.catalog import filters, predicates
from factbook.catalog.piecewise import aside
from factbook.catalog.store import facets
from factbook.catalog.store.conditions import EVERYTHING, Condition
from factbook.catalog.store.facets import Facet
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas.catalog import FacetValue, FacetValues
from factbook.schemas.common import Predicate


class Facets(Struct, forbid_unknown_fields=True):
    """The body of entity-facets."""

    facets: Annotated[list[str], Meta(min_length=1, max_length=FACET.most)]
    query: Predicate | UnsetType = UNSET


async def get_facets(request: Request, state: HandlerContext) -> JsonReply[FacetValues]:
    """The values of some paths, with the number of entities that have each, by filter."""
    return await _answer(state, FACET.of(request), filters.parse(FILTER.of(request)))


async def post_facets(request: Request, state: HandlerContext) -> JsonReply[FacetValues]:
    """The values of some paths, with the number of entities that have each, by predicate."""
    body: Facets = await request.json(Facets)
    condition = EVERYTHING if body.query is UNSET else predicates.parse(body.query)
    return await _answer(state, body.facets, condition)


async def _answer(
    state: HandlerContext, keys: list[str], condition: Condition
) -> JsonReply[FacetValues]:
    found = {}
    for key in keys:
        found[key] = await facets.facet(state.database, key, condition)
    return await aside(sum(map(len, found.values())), _rendered, found)


def _rendered(found: dict[str, list[Facet]]) -> JsonReply[FacetValues]:
    shown = {
        key: [FacetValue(item.value, item.entities) for item in values]
        for key, values in found.items()
    }
    return reply(FacetValues(shown))

"""Facets: which values a path has, and in how many entities."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.api.openapi.parameters import FACET, FILTER
from factbook.catalog import filters, predicates
from factbook.catalog.store import facets
from factbook.catalog.store.conditions import EVERYTHING, Condition
from factbook.http.context import State
from factbook.http.requests import Reply, Request, reply
from factbook.schemas.common import Predicate, Wire


class Facets(Struct, forbid_unknown_fields=True):
    """The body of entity-facets."""

    facets: Annotated[list[str], Meta(min_length=1, max_length=FACET.most)]
    query: Predicate | UnsetType = UNSET


class FacetValue(Wire):
    """A value as it was written, and in how many entities."""

    value: str
    count: Annotated[int, Meta(ge=1)]


class FacetValues(Wire):
    """For each path that was asked for, its values in their order."""

    facets: dict[str, list[FacetValue]]


async def get_facets(request: Request, state: State) -> Reply:
    """The values of some paths, with the number of entities that have each, by filter."""
    return await _answer(state, FACET.of(request), filters.parse(FILTER.of(request)))


async def post_facets(request: Request, state: State) -> Reply:
    """The values of some paths, with the number of entities that have each, by predicate."""
    body: Facets = await request.json(Facets)
    condition = EVERYTHING if body.query is UNSET else predicates.parse(body.query)
    return await _answer(state, body.facets, condition)


async def _answer(state: State, keys: list[str], condition: Condition) -> Reply:
    found = {}
    for key in keys:
        values = await facets.facet(state.database, key, condition)
        found[key] = [FacetValue(item.value, item.entities) for item in values]
    return reply({"facets": found})

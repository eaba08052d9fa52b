"""Routes of the catalog read interface, with those that clients of other catalogs expect."""

from collections.abc import Sequence

from factbook.api.catalog import entities, entity_validation, facets, locations, queries, refreshing
from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.openapi.parameters import (
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
from factbook.auth.token_reach import OF_SET
from factbook.errors import NotFoundError

_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_BY_NAME = "/entities/by-name/{kind}/{namespace}/{name}"
_BY_UID = "/entities/by-uid/{uid}"
_BY_REFS = Route(
    "POST", "/entities/by-refs", entities.get_by_refs, _READ, (FILTER,), body=entities.Refs
)
_REFUSED = Route(
    "POST", "/locations", locations.refuse, _WRITE, None, described=False, reading=NOTHING_STORED
)

# Below /api/catalog.
CATALOG_ROUTES: Sequence[Route] = (
    Route(
        "GET",
        "/entities",
        entities.list_entities,
        _READ,
        (FILTER, FIELDS, ORDER, LIMIT, OFFSET, AFTER),
        headers=(LINK,),
    ),
    Route(
        "GET",
        "/entities/by-query",
        queries.get_by_query,
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
        queries.post_by_query,
        _READ,
        body=queries.ByQuery,
        needs_body=False,
    ),
    Route("GET", _BY_NAME, entities.get_by_name, _READ),
    Route("GET", f"{_BY_NAME}/ancestry", entities.get_ancestry, _READ),
    _BY_REFS,
    # As one client writes it, which follows no redirect.
    _BY_REFS._replace(path=f"{_BY_REFS.path}/", described=False),
    Route("GET", _BY_UID, entities.get_by_uid, _READ),
    Route(
        "DELETE",
        _BY_UID,
        entities.delete_by_uid,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=OF_SET,
    ),
    Route("GET", "/entity-facets", facets.get_facets, _READ, (FACET, FILTER)),
    Route("POST", "/entity-facets", facets.post_facets, _READ, body=facets.Facets),
    Route(
        "POST",
        "/validate-entity",
        entity_validation.validate_entity,
        _READ,
        body=entity_validation.EntityToValidate,
        other_answers={400: entity_validation.EntityProblems},
        headers=(entity_validation.WARNINGS,),
    ),
    Route(
        "POST",
        "/refresh",
        refreshing.refresh,
        (SOURCE_RUN,),
        body=refreshing.Refresh,
        refusals=(NotFoundError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", "/locations", locations.list_locations, _READ),
    Route(
        "POST",
        "/locations/by-query",
        locations.query_locations,
        _READ,
        body=locations.LocationQuery,
    ),
    Route("GET", "/locations/{id}", locations.get_location, _READ, described=False),
    Route(
        "GET",
        "/locations/by-entity/{kind}/{namespace}/{name}",
        locations.get_location_of_entity,
        _READ,
        described=False,
    ),
    # Not offered, and said to be so to clients that other catalogs offer them to.
    _REFUSED,
    _REFUSED._replace(method="PUT", path="/locations/{id}"),
    _REFUSED._replace(method="DELETE", path="/locations/{id}"),
    Route("POST", "/analyze-location", locations.refuse, _READ, None, described=False),
)

"""Catalog routes, as clients of other catalogs expect them."""

from collections.abc import Sequence

from factbook.api import catalog, entity_validation
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
from factbook.errors import NotFoundError

_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_BY_NAME = "/entities/by-name/{kind}/{namespace}/{name}"
_BY_UID = "/entities/by-uid/{uid}"
_BY_REFS = Route(
    "POST", "/entities/by-refs", catalog.get_entities_by_refs, _READ, (FILTER,), body=catalog.Refs
)
_REFUSED = Route(
    "POST",
    "/locations",
    catalog.refuse_location,
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
        catalog.get_entities,
        _READ,
        (FILTER, FIELDS, ORDER, LIMIT, OFFSET, AFTER),
        headers=(LINK,),
    ),
    Route(
        "GET",
        "/entities/by-query",
        catalog.get_entities_by_query,
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
        catalog.post_entity_query,
        _READ,
        body=catalog.ByQuery,
        needs_body=False,
    ),
    Route("GET", _BY_NAME, catalog.get_entity_by_name, _READ),
    Route("GET", f"{_BY_NAME}/ancestry", catalog.get_entity_ancestry, _READ),
    _BY_REFS,
    # One client uses this form and doesn't follow redirects.
    _BY_REFS._replace(path=f"{_BY_REFS.path}/", described=False),
    Route("GET", _BY_UID, catalog.get_entity_by_uid, _READ),
    Route(
        "DELETE",
        _BY_UID,
        catalog.delete_entity_by_uid,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=SET_REACH,
    ),
    Route("GET", "/entity-facets", catalog.get_facets, _READ, (FACET, FILTER)),
    Route("POST", "/entity-facets", catalog.post_facets, _READ, body=catalog.Facets),
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
        catalog.refresh_entity,
        (SOURCE_RUN,),
        body=catalog.Refresh,
        refusals=(NotFoundError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", "/locations", catalog.get_locations, _READ),
    Route(
        "POST",
        "/locations/by-query",
        catalog.post_location_query,
        _READ,
        body=catalog.LocationQuery,
    ),
    Route("GET", "/locations/{id}", catalog.get_location, _READ, described=False),
    Route(
        "GET",
        "/locations/by-entity/{kind}/{namespace}/{name}",
        catalog.get_location_of_entity,
        _READ,
        described=False,
    ),
    # Other catalogs offer these routes, so clients get a clear refusal.
    _REFUSED,
    _REFUSED._replace(method="PUT", path="/locations/{id}"),
    _REFUSED._replace(method="DELETE", path="/locations/{id}"),
    Route("POST", "/analyze-location", catalog.refuse_location, _READ, None, described=False),
)

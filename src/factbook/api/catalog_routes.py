"""Routes of the catalog, those that clients of other catalogs expect, and routes of pushes."""

from collections.abc import Sequence

from factbook.api import catalog, entity_validation, push
from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import (
    AFTER,
    CHECKS,
    CURSOR,
    CURSOR_TEXT,
    DRY_RUN,
    ETAG,
    FACET,
    FIELDS,
    FILTER,
    IF_MATCH,
    LIMIT,
    LINK,
    MAX_REMOVALS,
    OFFSET,
    ON_CONFLICT,
    ORDER,
    ORDER_FIELD,
    QUERY_LIMIT,
    SET,
    TEXT_FIELDS,
    TEXT_TERM,
    TOTAL_ITEMS,
)
from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_RUN
from factbook.auth.tokens import SET_REACH
from factbook.errors import ConflictError, NotFoundError, PreconditionFailedError
from factbook.schemas import catalog as catalog_schemas

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
    # As one client writes it, which follows no redirect.
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
    # Not offered, and said to be so to clients that other catalogs offer them to.
    _REFUSED,
    _REFUSED._replace(method="PUT", path="/locations/{id}"),
    _REFUSED._replace(method="DELETE", path="/locations/{id}"),
    Route("POST", "/analyze-location", catalog.refuse_location, _READ, None, described=False),
)
_SET = "/sets/{set_id}"
_REVISIONS = f"{_SET}/revisions"
# Of whatever writes a set.
_PUSH_REFUSALS = (ConflictError, PreconditionFailedError)


# Below /api/catalog/<word>-entities, for the configured word and its aliases.
PUSH_ROUTES: Sequence[Route] = (
    Route("GET", "/sets", push.get_sets, _READ, reach=SET_REACH),
    Route(
        "PUT",
        _SET,
        push.put_set,
        _WRITE,
        (DRY_RUN, CHECKS, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        body=catalog_schemas.NewSet,
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route("GET", _SET, push.get_set, _READ, (LIMIT, CURSOR), headers=(ETAG,), reach=SET_REACH),
    Route(
        "POST",
        _SET,
        push.post_set_entity,
        _WRITE,
        (ON_CONFLICT, IF_MATCH),
        body=catalog_schemas.NewEntity,
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route(
        "DELETE",
        _SET,
        push.delete_set,
        _WRITE,
        (DRY_RUN, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route("GET", _REVISIONS, push.get_set_revisions, _READ, reach=SET_REACH),
    Route(
        "POST",
        f"{_REVISIONS}/{{number}}/restore",
        push.restore_set_revision,
        _WRITE,
        (ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    # Set ids that hold a slash, which no set can have.
    *(
        Route(
            method,
            "/sets/{set_id:path}",
            push.refuse_set_id,
            needed,
            described=False,
            reading=NOTHING_STORED,
            owned=True,
        )
        for method, needed in (
            ("GET", _READ),
            ("PUT", _WRITE),
            ("POST", _WRITE),
            ("DELETE", _WRITE),
        )
    ),
    Route("GET", "/entities", push.get_pushed_entities, _READ, (SET,), reach=SET_REACH),
    Route(
        "POST",
        "/entities",
        push.post_pushed_entity,
        _WRITE,
        (ON_CONFLICT,),
        body=catalog_schemas.NewEntity,
        refusals=(ConflictError,),
        reading=_READ,
        reach=SET_REACH,
    ),
    Route("GET", "/entities/by-ref/{ref:path}", push.get_pushed_entity_by_ref, _READ),
    Route("GET", "/entities/{uid}", push.get_pushed_entity, _READ),
    Route(
        "DELETE",
        "/entities/{uid}",
        push.delete_pushed_entity,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=SET_REACH,
    ),
)

"""Routes of the push interface."""

from collections.abc import Sequence

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.openapi.parameters import (
    CHECKS,
    CURSOR,
    DRY_RUN,
    ETAG,
    IF_MATCH,
    LIMIT,
    MAX_REMOVALS,
    ON_CONFLICT,
    SET,
)
from factbook.api.push import sets
from factbook.auth.permissions import CATALOG_READ, SET_WRITE
from factbook.auth.token_reach import OF_SET
from factbook.errors import ConflictError, PreconditionFailedError
from factbook.schemas import catalog

_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_SET = "/sets/{set_id}"
_REVISIONS = f"{_SET}/revisions"
# Of whatever writes a set.
_REFUSALS = (ConflictError, PreconditionFailedError)

# Below /api/catalog/<word>-entities, for the configured word and its aliases.
PUSH_ROUTES: Sequence[Route] = (
    Route("GET", "/sets", sets.list_sets, _READ, reach=OF_SET),
    Route(
        "PUT",
        _SET,
        sets.put_set,
        _WRITE,
        (DRY_RUN, CHECKS, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        body=catalog.NewSet,
        headers=(ETAG,),
        refusals=_REFUSALS,
        reading=_READ,
        reach=OF_SET,
        owned=True,
    ),
    Route("GET", _SET, sets.get_set, _READ, (LIMIT, CURSOR), headers=(ETAG,), reach=OF_SET),
    Route(
        "POST",
        _SET,
        sets.post_to_set,
        _WRITE,
        (ON_CONFLICT, IF_MATCH),
        body=catalog.NewEntity,
        refusals=_REFUSALS,
        reading=_READ,
        reach=OF_SET,
        owned=True,
    ),
    Route(
        "DELETE",
        _SET,
        sets.delete_set,
        _WRITE,
        (DRY_RUN, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_REFUSALS,
        reading=_READ,
        reach=OF_SET,
        owned=True,
    ),
    Route("GET", _REVISIONS, sets.list_revisions, _READ, reach=OF_SET),
    Route(
        "POST",
        f"{_REVISIONS}/{{number}}/restore",
        sets.restore_revision,
        _WRITE,
        (ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_REFUSALS,
        reading=_READ,
        reach=OF_SET,
        owned=True,
    ),
    # Set ids that hold a slash, which no set can have.
    *(
        Route(
            method,
            "/sets/{set_id:path}",
            sets.refuse_set_id,
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
    Route("GET", "/entities", sets.list_entities, _READ, (SET,), reach=OF_SET),
    Route(
        "POST",
        "/entities",
        sets.post_entity,
        _WRITE,
        (ON_CONFLICT,),
        body=catalog.NewEntity,
        refusals=(ConflictError,),
        reading=_READ,
        reach=OF_SET,
    ),
    Route("GET", "/entities/by-ref/{ref:path}", sets.get_entity_by_ref, _READ),
    Route("GET", "/entities/{uid}", sets.get_entity, _READ),
    Route(
        "DELETE",
        "/entities/{uid}",
        sets.delete_entity,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=OF_SET,
    ),
)

"""The interface of checks, scorecards, results and exemptions as a table."""

from collections.abc import Sequence

from factbook.api.checks import checks, scorecards
from factbook.api.checks.parameters import (
    CHECK_ID,
    ETAG,
    ID_CURSOR,
    IF_MATCH,
    PAGE_LIMIT,
    PUBLISH,
    SCORECARD_ID,
)
from factbook.api.endpoint import Route
from factbook.auth.permissions import CHECK_READ, CHECK_WRITE, SCORECARD_WRITE
from factbook.errors import ConflictError, PreconditionFailedError
from factbook.schemas import checks as check_schemas
from factbook.schemas import scorecards as scorecard_schemas

_READ = (CHECK_READ,)
_WRITE_CHECK = (CHECK_WRITE,)
_WRITE_SCORECARD = (SCORECARD_WRITE,)
_CHECKS = "/checks"
_CHECK = f"{_CHECKS}/{{id}}"
_SCORECARDS = "/scorecards"
_SCORECARD = f"{_SCORECARDS}/{{id}}"
_CHANGED = (ConflictError, PreconditionFailedError)

# Below /api/tech-insights/v1.
CHECK_ROUTES: Sequence[Route] = (
    Route("GET", _CHECKS, checks.list_all, _READ, (PAGE_LIMIT, ID_CURSOR)),
    Route(
        "POST",
        _CHECKS,
        checks.create,
        _WRITE_CHECK,
        body=check_schemas.NewCheck,
        status=201,
        headers=(ETAG,),
        refusals=(ConflictError,),
        reading=_READ,
    ),
    Route("GET", _CHECK, checks.get, _READ, (CHECK_ID,), headers=(ETAG,)),
    Route(
        "PUT",
        _CHECK,
        checks.replace,
        _WRITE_CHECK,
        (CHECK_ID, PUBLISH, IF_MATCH),
        body=check_schemas.NewCheck,
        headers=(ETAG,),
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route(
        "DELETE",
        _CHECK,
        checks.delete,
        _WRITE_CHECK,
        (CHECK_ID, IF_MATCH),
        status=204,
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_CHECK}/publish",
        checks.publish,
        _WRITE_CHECK,
        (CHECK_ID, IF_MATCH),
        headers=(ETAG,),
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route("GET", f"{_CHECK}/versions", checks.list_versions, _READ, (CHECK_ID,)),
    Route("GET", _SCORECARDS, scorecards.list_all, _READ, (PAGE_LIMIT, ID_CURSOR)),
    Route(
        "POST",
        _SCORECARDS,
        scorecards.create,
        _WRITE_SCORECARD,
        body=scorecard_schemas.NewScorecard,
        status=201,
        headers=(ETAG,),
        refusals=(ConflictError,),
        reading=_READ,
    ),
    Route("GET", _SCORECARD, scorecards.get, _READ, (SCORECARD_ID,), headers=(ETAG,)),
    Route(
        "PUT",
        _SCORECARD,
        scorecards.replace,
        _WRITE_SCORECARD,
        (SCORECARD_ID, PUBLISH, IF_MATCH),
        body=scorecard_schemas.NewScorecard,
        headers=(ETAG,),
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route(
        "DELETE",
        _SCORECARD,
        scorecards.delete,
        _WRITE_SCORECARD,
        (SCORECARD_ID, IF_MATCH),
        status=204,
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_SCORECARD}/publish",
        scorecards.publish,
        _WRITE_SCORECARD,
        (SCORECARD_ID, IF_MATCH),
        headers=(ETAG,),
        refusals=_CHANGED,
        reading=_READ,
    ),
    Route("GET", f"{_SCORECARD}/versions", scorecards.list_versions, _READ, (SCORECARD_ID,)),
)

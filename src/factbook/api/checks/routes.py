"""The interface of checks, scorecards, results and exemptions as a table."""

from collections.abc import Sequence

from factbook.api.checks import checks, exemptions, previews, scorecards
from factbook.api.checks.parameters import (
    CHECK_ID,
    ETAG,
    EXEMPTION_CHECK,
    EXEMPTION_CURSOR,
    EXEMPTION_ENTITY,
    EXEMPTION_ID,
    EXEMPTION_SCORECARD,
    EXEMPTION_STATE,
    ID_CURSOR,
    IF_MATCH,
    PAGE_LIMIT,
    PUBLISH,
    SCORECARD_ID,
)
from factbook.api.endpoint import Route
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.errors import ConflictError, NotFoundError, PreconditionFailedError
from factbook.schemas import checks as check_schemas
from factbook.schemas import exemptions as exemption_schemas
from factbook.schemas import previews as preview_schemas
from factbook.schemas import scorecards as scorecard_schemas

_READ = (CHECK_READ,)
_WRITE_CHECK = (CHECK_WRITE,)
_WRITE_SCORECARD = (SCORECARD_WRITE,)
_CHECKS = "/checks"
_CHECK = f"{_CHECKS}/{{id}}"
_SCORECARDS = "/scorecards"
_SCORECARD = f"{_SCORECARDS}/{{id}}"
_EXEMPTIONS = "/exemptions"
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
    Route(
        "POST",
        f"{_CHECKS}/preview",
        previews.create,
        # Rules can ask for every fact of every entity.
        (CATALOG_READ, SOURCE_READ),
        body=preview_schemas.NewPreview,
        refusals=(NotFoundError,),
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
    Route(
        "GET",
        _EXEMPTIONS,
        exemptions.list_all,
        _READ,
        (
            EXEMPTION_STATE,
            EXEMPTION_ENTITY,
            EXEMPTION_CHECK,
            EXEMPTION_SCORECARD,
            PAGE_LIMIT,
            EXEMPTION_CURSOR,
        ),
    ),
    Route(
        "POST",
        _EXEMPTIONS,
        exemptions.create,
        _READ,
        body=exemption_schemas.NewExemption,
        status=201,
        refusals=(ConflictError, NotFoundError),
        reading=_READ,
        judged=True,
    ),
    Route("GET", f"{_EXEMPTIONS}/{{id}}", exemptions.get, _READ, (EXEMPTION_ID,)),
    *(
        Route(
            "POST",
            f"{_EXEMPTIONS}/{{id}}/{decision}",
            handler,
            _READ,
            (EXEMPTION_ID,),
            body=exemption_schemas.NewDecision,
            needs_body=False,
            refusals=(ConflictError,),
            reading=_READ,
            # Groups that scorecards name decide without the permission.
            judged=True,
        )
        for decision, handler in (
            ("approve", exemptions.approve),
            ("deny", exemptions.deny),
            ("revoke", exemptions.revoke),
        )
    ),
)

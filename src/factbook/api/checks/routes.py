"""The interface of checks, scorecards, results and exemptions as a table."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from factbook.api.checks import checks, exemptions, previews, scorecards, starter_scorecard
from factbook.api.checks.parameters import (
    CHECK_ID,
    ETAG,
    EXEMPTION_CHECK,
    EXEMPTION_CURSOR,
    EXEMPTION_ENTITY,
    EXEMPTION_ID,
    EXEMPTION_SCORECARD,
    EXEMPTION_STATE,
    EXPAND,
    ID_CURSOR,
    IF_MATCH,
    PAGE_LIMIT,
    PUBLISH,
    SCORECARD_ID,
    DefinitionId,
)
from factbook.api.endpoint import Handler, Route
from factbook.api.openapi.parameter_types import Parameter
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.errors import ConflictError, NotFoundError, PreconditionFailedError
from factbook.schemas import checks as check_schemas
from factbook.schemas import results as result_schemas
from factbook.schemas.common import Wire

_READ = (CHECK_READ,)
_CHECKS = "/checks"
_SCORECARDS = "/scorecards"
_EXEMPTIONS = "/exemptions"
_STARTER = "/starter-scorecard"
_CHANGED = (ConflictError, PreconditionFailedError)


def _definitions(
    path: str, handlers: ModuleType, id_: DefinitionId, permission: str, body: type[Wire]
) -> Sequence[Route]:
    """The interface of the definitions of a kind, whose handlers have the same names."""
    one, write = f"{path}/{{id}}", (permission,)

    def writing(method: str, path: str, handler: Handler, *parameters: Parameter[Any]) -> Route:
        route = Route(method, path, handler, write, parameters, headers=(ETAG,))
        return route._replace(refusals=_CHANGED, reading=_READ, owned=True)

    return (
        Route("GET", path, handlers.list_all, _READ, (PAGE_LIMIT, ID_CURSOR, EXPAND)),
        writing("POST", path, handlers.create)._replace(
            body=body, status=201, refusals=(ConflictError,)
        ),
        Route("GET", one, handlers.get, _READ, (id_, EXPAND), headers=(ETAG,)),
        writing("PUT", one, handlers.replace, id_, PUBLISH, IF_MATCH)._replace(body=body),
        writing("DELETE", one, handlers.delete, id_, IF_MATCH)._replace(status=204, headers=()),
        writing("POST", f"{one}/publish", handlers.publish, id_, IF_MATCH),
        Route("GET", f"{one}/versions", handlers.list_versions, _READ, (id_,)),
    )


# Below /api/tech-insights/v1.
CHECK_ROUTES: Sequence[Route] = (
    Route(
        "POST",
        f"{_CHECKS}/preview",
        previews.create,
        # Rules can ask for every fact of every entity.
        (CATALOG_READ, SOURCE_READ),
        body=result_schemas.NewPreview,
        refusals=(NotFoundError,),
        reading=_READ,
    ),
    *_definitions(_CHECKS, checks, CHECK_ID, CHECK_WRITE, check_schemas.NewCheck),
    *_definitions(
        _SCORECARDS, scorecards, SCORECARD_ID, SCORECARD_WRITE, check_schemas.NewScorecard
    ),
    Route("GET", _STARTER, starter_scorecard.get, (SOURCE_READ,)),
    Route(
        "POST",
        _STARTER,
        starter_scorecard.adopt,
        # It is made for the data sources that there are.
        (CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
        refusals=(ConflictError,),
        reading=(SOURCE_READ,),
    ),
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
        body=check_schemas.NewExemption,
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
            body=check_schemas.NewDecision,
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

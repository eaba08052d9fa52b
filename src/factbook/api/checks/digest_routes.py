"""The interface of digests as a table."""

from collections.abc import Sequence

from factbook.api.checks import digests
from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE
from factbook.errors import ConflictError
from factbook.schemas import events

# A digest takes results out of the service, and outlives the token of whoever made it.
_NEEDS = (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE)
_ALL = "/digests"
_ONE = f"{_ALL}/{{id}}"
_ID = (digests.ID,)

# Below /api/tech-insights/v1.
DIGEST_ROUTES: Sequence[Route] = (
    Route("GET", _ALL, digests.list_all, _NEEDS),
    Route(
        "POST",
        _ALL,
        digests.create,
        _NEEDS,
        body=events.NewDigest,
        status=201,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", _ONE, digests.get, _NEEDS, _ID),
    Route(
        "PUT",
        _ONE,
        digests.replace,
        _NEEDS,
        _ID,
        body=events.ChangedDigest,
        reading=NOTHING_STORED,
    ),
    Route("DELETE", _ONE, digests.delete, _NEEDS, _ID, status=204, reading=NOTHING_STORED),
    Route(
        "POST",
        f"{_ONE}/test",
        digests.test,
        _NEEDS,
        _ID,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
)

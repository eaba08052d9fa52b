"""The routes of importers, below /api/importers/v1."""

from collections.abc import Sequence

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.importers import events, importers, parts
from factbook.auth.permissions import CATALOG_READ, SET_WRITE
from factbook.errors import PreconditionFailedError

_READ = (CATALOG_READ,)
# The answer to a decision shows what is stored.
_DECIDE = (SET_WRITE, CATALOG_READ)
_ONE = "/parts/{importer}/{part}"
_WHICH = (parts.IMPORTER, parts.PART)
_SEEN = (*_WHICH, parts.IF_MATCH)

IMPORTER_ROUTES: Sequence[Route] = (
    Route("GET", "/importers", importers.list_all, _READ),
    Route("GET", "/importers/{importer}", importers.get_one, _READ, (parts.IMPORTER,)),
    Route(
        "POST",
        "/importers/{importer}/run",
        importers.run,
        _DECIDE,
        (parts.IMPORTER,),
        status=202,
        reading=_READ,
    ),
    Route(
        "POST",
        "/importers/{importer}/events",
        events.receive,
        None,
        (parts.IMPORTER,),
        status=202,
        described=False,
        reading=NOTHING_STORED,
        signed=True,
    ),
    Route("GET", "/parts", parts.list_parts, _READ),
    Route("GET", _ONE, parts.get_part, _READ, _WHICH, headers=(parts.ETAG,)),
    Route(
        "POST",
        f"{_ONE}/apply",
        parts.apply_held,
        _DECIDE,
        _SEEN,
        headers=(parts.ETAG,),
        refusals=(PreconditionFailedError,),
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_ONE}/discard",
        parts.discard_held,
        _DECIDE,
        _SEEN,
        headers=(parts.ETAG,),
        refusals=(PreconditionFailedError,),
        reading=_READ,
    ),
)

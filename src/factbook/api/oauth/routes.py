"""The table of routes of OAuth that clients call; the page for consent is among the pages."""

from collections.abc import Sequence

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.oauth import metadata, registration, token_endpoint
from factbook.auth.oauth import addresses

OAUTH_ROUTES: Sequence[Route] = (
    Route("GET", addresses.RESOURCE_METADATA, metadata.of_resource, None, None, described=False),
    Route("GET", addresses.SERVER_METADATA, metadata.of_server, None, None, described=False),
    *(
        Route(
            "POST",
            path,
            handler,
            None,
            None,
            described=False,
            errors=token_endpoint.errors,
            reading=NOTHING_STORED,
            signed=True,
        )
        for path, handler in (
            (addresses.TOKEN, token_endpoint.issue),
            (addresses.REVOKE, token_endpoint.revoke),
            (addresses.REGISTER, registration.register),
        )
    ),
)

"""Routing of requests to applications by their paths."""

from collections.abc import Mapping

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send


def router(endpoints: Mapping[str, ASGIApp], nowhere: ASGIApp) -> ASGIApp:
    """The application of all these paths, of which some have parameters; `nowhere`: of others."""
    matching = Router(
        [Route(path, endpoint) for path, endpoint in endpoints.items()],
        default=nowhere,
        redirect_slashes=False,
    )
    exact = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        # A path without parameters is found by one look-up.
        await exact.get(scope["path"], matching)(scope, receive, send)

    return dispatch

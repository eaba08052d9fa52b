"""The table of routes: every method of every path, its handler and the permissions it needs."""

from collections.abc import Sequence

from starlette.routing import Route as StarletteRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from factbook.api import entities, errors, mcp, operations, sets, tokens
from factbook.api.endpoint import Endpoint, Route
from factbook.api.state import State
from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ, TOKEN_MANAGE
from factbook.settings import Settings

TOOL_CALLS = "/api/mcp/v1/tech-insights-facts"

_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_TOOLS = (CATALOG_READ, SOURCE_READ)
_TOKENS = (TOKEN_MANAGE,)

ROUTES: Sequence[Route] = (
    Route("POST", TOOL_CALLS, mcp.post, _TOOLS, errors.protocol),
    Route("GET", "/api/catalog/entities", entities.list_entities, _READ),
    Route(
        "GET",
        "/api/catalog/entities/by-name/{kind}/{namespace}/{name}",
        entities.get_by_name,
        _READ,
    ),
    Route("GET", "/api/catalog/entities/by-uid/{uid}", entities.get_by_uid, _READ),
    Route("POST", "/api/catalog/entities/by-refs", entities.get_by_refs, _READ),
    Route("POST", "/api/catalog/entities/by-refs/", entities.get_by_refs, _READ),
    Route("GET", "/api/access/v1/tokens", tokens.list_all, _TOKENS),
    Route("POST", "/api/access/v1/tokens", tokens.create, _TOKENS),
    Route("DELETE", "/api/access/v1/tokens/{id}", tokens.revoke, _TOKENS),
    Route("GET", "/healthz", operations.healthz, None),
    Route("GET", "/readyz", operations.readyz, None),
    Route("GET", "/metrics", operations.metrics, None),
)

# Below /api/catalog/<word>-entities, for the configured word and its aliases.
PUSH_ROUTES: Sequence[Route] = (
    Route("GET", "/sets", sets.list_sets, _READ),
    Route("PUT", "/sets/{set_id}", sets.put_set, _WRITE),
    Route("GET", "/sets/{set_id}", sets.get_set, _READ),
    Route("POST", "/sets/{set_id}", sets.post_to_set, _WRITE),
    Route("DELETE", "/sets/{set_id}", sets.delete_set, _WRITE),
    Route("GET", "/sets/{set_id}/revisions", sets.list_revisions, _READ),
    Route("POST", "/sets/{set_id}/revisions/{number}/restore", sets.restore_revision, _WRITE),
    Route("GET", "/sets/{set_id:path}", sets.refuse_set_id, _READ),
    Route("PUT", "/sets/{set_id:path}", sets.refuse_set_id, _WRITE),
    Route("POST", "/sets/{set_id:path}", sets.refuse_set_id, _WRITE),
    Route("DELETE", "/sets/{set_id:path}", sets.refuse_set_id, _WRITE),
    Route("GET", "/entities", sets.list_entities, _READ),
    Route("POST", "/entities", sets.post_entity, _WRITE),
    Route("GET", "/entities/by-ref/{ref:path}", sets.get_entity_by_ref, _READ),
    Route("GET", "/entities/{uid}", sets.get_entity, _READ),
    Route("DELETE", "/entities/{uid}", sets.delete_entity, _WRITE),
)


def all_routes(settings: Settings) -> list[Route]:
    """Every route that these settings give."""
    words = [settings.push_word, *settings.push_aliases]
    return [
        *ROUTES,
        *(
            route._replace(path=f"/api/catalog/{word}-entities{route.path}")
            for word in words
            for route in PUSH_ROUTES
        ),
    ]


def router(state: State) -> ASGIApp:
    """The ASGI application of the table."""
    paths: dict[str, dict[str, Route]] = {}
    for route in all_routes(state.settings):
        paths.setdefault(route.path, {})[route.method] = route
    nowhere = {
        method: Route(method, "(none)", operations.nowhere, None)
        for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
    }
    endpoints = {path: Endpoint(methods, state) for path, methods in paths.items()}
    matching = Router(
        [StarletteRoute(path, endpoint) for path, endpoint in endpoints.items()],
        default=Endpoint(nowhere, state),
        redirect_slashes=False,
    )

    exact = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        # A path without parameters is found by one look-up.
        await exact.get(scope["path"], matching)(scope, receive, send)

    return dispatch

"""The table of routes: every method of every path, its handler and the permissions it needs."""

from collections.abc import Sequence
from functools import partial

from starlette.types import ASGIApp

from factbook.api.access import audit, tokens
from factbook.api.catalog.routes import CATALOG_ROUTES
from factbook.api.checks.community_routes import COMMUNITY_ROUTES
from factbook.api.checks.digest_routes import DIGEST_ROUTES
from factbook.api.checks.result_routes import RESULT_ROUTES
from factbook.api.checks.routes import CHECK_ROUTES
from factbook.api.endpoint import NOTHING_STORED, Endpoint, Route
from factbook.api.events.routes import EVENT_ROUTES
from factbook.api.importers.routes import IMPORTER_ROUTES
from factbook.api.mcp import endpoint
from factbook.api.oauth import mcp_authentication
from factbook.api.oauth.routes import OAUTH_ROUTES
from factbook.api.openapi import openapi, operations
from factbook.api.push.routes import PUSH_ROUTES
from factbook.api.scim.routes import SCIM_ROUTES
from factbook.api.tech_insights.routes import TECH_INSIGHTS_ROUTES
from factbook.auth.permissions import AUDIT_READ, CATALOG_READ, SOURCE_READ, TOKEN_MANAGE
from factbook.auth.token_reach import OF_GRANTING, OF_TOOLS
from factbook.http import error_responses
from factbook.http.context import State
from factbook.settings import Settings

TOOL_CALLS = "/api/mcp/v1/tech-insights-facts"
CHECK_TOOLS = "/api/mcp/v1/tech-insights-checks"
WRITING_TOOLS = f"{CHECK_TOOLS}-manage"
ALL_TOOLS = "/mcp"
ACCESS = "/api/access/v1"
TOKENS = f"{ACCESS}/tokens"
TECH_INSIGHTS = "/api/tech-insights/v1"
COMMUNITY = "/api/tech-insights"
EVENTS = "/api/events"
IMPORTERS = "/api/importers/v1"

# Where each OpenAPI document is, below its interface's path.
DOCUMENTS = (
    (
        "/api/catalog",
        "Factbook catalog",
        "Reading the catalog, and pushing sets of entities into it.",
    ),
    (
        ACCESS,
        "Factbook access",
        "Managing the tokens that clients call with, and reading the audit.",
    ),
    (
        TECH_INSIGHTS,
        "Factbook tech insights",
        "Defining data sources, pushing facts to them, and reading facts and their history.",
    ),
    (EVENTS, "Factbook events", "Reading what changed, and having it sent."),
    (
        IMPORTERS,
        "Factbook importers",
        "Reading what was imported, and deciding on removals that wait.",
    ),
)

_TOOLS = (CATALOG_READ, SOURCE_READ)
_TOKENS = (TOKEN_MANAGE,)

_OF_TOOLS = Route(
    "POST",
    "",
    endpoint.post_any,
    (),
    None,
    described=False,
    errors=error_responses.protocol,
    reach=OF_TOOLS,
)

ROUTES: Sequence[Route] = (
    Route(
        "POST",
        TOOL_CALLS,
        endpoint.post,
        _TOOLS,
        None,
        described=False,
        errors=error_responses.protocol,
        reach=OF_TOOLS,
    ),
    # Each tool names its permissions.
    _OF_TOOLS._replace(path=CHECK_TOOLS, handler=endpoint.post_checks),
    _OF_TOOLS._replace(
        path=ALL_TOOLS,
        handler=endpoint.post_any,
        errors=mcp_authentication.errors,
        authenticate=mcp_authentication.authenticate,
    ),
    *(route._replace(path=f"/api/catalog{route.path}") for route in CATALOG_ROUTES),
    *(
        route._replace(path=f"{TECH_INSIGHTS}{route.path}")
        for route in (*TECH_INSIGHTS_ROUTES, *CHECK_ROUTES, *RESULT_ROUTES, *DIGEST_ROUTES)
    ),
    *(route._replace(path=f"{COMMUNITY}{route.path}") for route in COMMUNITY_ROUTES),
    Route("GET", TOKENS, tokens.list_all, _TOKENS),
    Route(
        "POST",
        TOKENS,
        tokens.create,
        _TOKENS,
        body=tokens.NewToken,
        status=201,
        reading=NOTHING_STORED,
        reach=OF_GRANTING,
    ),
    Route("DELETE", f"{TOKENS}/{{id}}", tokens.revoke, _TOKENS, status=204, reading=NOTHING_STORED),
    Route("GET", f"{ACCESS}/audit", audit.list_records, (AUDIT_READ,), audit.PARAMETERS),
    Route(
        "GET",
        f"{ACCESS}/audit/export",
        audit.export,
        (AUDIT_READ,),
        audit.EXPORT_PARAMETERS,
        media=audit.NDJSON,
    ),
    *(route._replace(path=f"{EVENTS}{route.path}") for route in EVENT_ROUTES),
    *(route._replace(path=f"{IMPORTERS}{route.path}") for route in IMPORTER_ROUTES),
    *SCIM_ROUTES,
    *OAUTH_ROUTES,
    Route("GET", "/healthz", operations.healthz, None, None, described=False, probe=True),
    Route("GET", "/readyz", operations.readyz, None, None, described=False, probe=True),
    Route("GET", "/metrics", operations.metrics, None, None, described=False, probe=True),
)

# Where a setting asks for it: writes by tools.
WRITING: Sequence[Route] = (
    _OF_TOOLS._replace(path=WRITING_TOOLS, handler=endpoint.post_managing, judged=True),
)


def all_routes(settings: Settings) -> list[Route]:
    """Every route that these settings give."""
    words = [settings.push_word, *settings.push_aliases]
    writing = WRITING if settings.agent_writes else ()
    routes = [
        *ROUTES,
        *writing,
        *(
            # An alias is another way to write a route that is described.
            route._replace(
                path=f"/api/catalog/{word}-entities{route.path}",
                described=route.described and word == settings.push_word,
            )
            for word in words
            for route in PUSH_ROUTES
        ),
    ]
    return [*routes, *_descriptions(routes, settings)]


def _descriptions(routes: Sequence[Route], settings: Settings) -> list[Route]:
    """The routes of the OpenAPI documents.

    They are open to everyone: they hold nothing but what the product's documentation says, and
    tools that read them seldom send a token.
    """
    return [
        Route(
            "GET",
            f"{prefix}/openapi.json",
            openapi.serving(
                partial(
                    openapi.document,
                    [route for route in routes if f"{route.path}/".startswith(f"{prefix}/")],
                    title=title,
                    description=description,
                    public_url=settings.public_url,
                )
            ),
            None,
            described=False,
        )
        for prefix, title, description in DOCUMENTS
    ]


def endpoints(state: State) -> dict[str, ASGIApp]:
    """The ASGI application of each path of the table."""
    paths: dict[str, dict[str, Route]] = {}
    for route in all_routes(state.settings):
        paths.setdefault(route.path, {})[route.method] = route
    return {path: Endpoint(methods, state) for path, methods in paths.items()}


def nowhere(state: State) -> ASGIApp:
    """The ASGI application of every other path."""
    methods = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
    routes = {
        method: Route(method, "(none)", operations.nowhere, None, None, described=False)
        for method in methods
    }
    return Endpoint(routes, state)

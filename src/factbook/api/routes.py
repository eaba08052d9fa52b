"""The route table: every method of every path, its handler and its permissions."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from factbook.api import access, mcp, oauth, openapi
from factbook.api.catalog import CATALOG_ROUTES
from factbook.api.community import COMMUNITY_ROUTES
from factbook.api.data_sources import SOURCE_ROUTES
from factbook.api.definitions import CHECK_ROUTES
from factbook.api.endpoint import NOTHING_STORED, Endpoint, Route
from factbook.api.entity_validation import VALIDATION_ROUTES
from factbook.api.facts import FACT_ROUTES
from factbook.api.importers import IMPORTER_ROUTES
from factbook.api.oauth import OAUTH_ROUTES
from factbook.api.push import PUSH_ROUTES
from factbook.api.results import RESULT_ROUTES
from factbook.api.scim import SCIM_ROUTES
from factbook.api.webhooks import DIGEST_ROUTES, EVENT_ROUTES
from factbook.asgi import ASGIApp
from factbook.auth.permissions import AUDIT_READ, CATALOG_READ, SOURCE_READ, TOKEN_MANAGE
from factbook.auth.tokens import GRANTING_REACH, TOOLS_REACH
from factbook.errors import NotFoundError
from factbook.http import client_configs
from factbook.http.context import SourceContext, State
from factbook.http.pipeline import render_protocol_error
from factbook.http.requests import Reply, Request, reply
from factbook.settings import Settings
from factbook.storage.migrations import check_migrations

# Paths where MCP clients look for the server.
_MCP: Final = re.compile(r"/(api/)?(mcp|sse)(/|\Z)")
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
# Path of each OpenAPI document, below its interface.
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
    mcp.post_any_message,
    (),
    None,
    described=False,
    errors=render_protocol_error,
    reach=TOOLS_REACH,
)
# Tools that write, if a setting enables them.
WRITING: Sequence[Route] = (
    _OF_TOOLS._replace(path=WRITING_TOOLS, handler=mcp.post_managing_message, judged=True),
)


async def report_liveness(request: Request, state: SourceContext) -> Reply:
    """The process is running."""
    return reply({"status": "ok"})


async def report_readiness(request: Request, state: SourceContext) -> Reply:
    """The process can serve, as its database answers. A stopping one takes no new connections.

    A process that can only read is ready, and says why it can't write.
    """
    await state.database.check()
    await check_migrations(state.database)
    trouble = state.database.trouble()
    return reply({"status": "ready"} | ({"writes": trouble} if trouble else {}))


async def report_metrics(request: Request, state: State) -> Reply:
    """Counts and durations for Prometheus; those of stored data only if the database answers."""
    # Imported late: the client library imports a web server, and not every service is scraped.
    from factbook.observability import scrape  # noqa: PLC0415

    rendered = await scrape.render_scrape(
        state.metrics,
        state.database,
        state.registry,
        state.importers,
        state.clock(),
        state.settings.database_url,
    )
    return Reply(rendered, content_type=b"text/plain; version=0.0.4; charset=utf-8")


async def answer_unknown_path(request: Request, state: SourceContext) -> Reply:
    """Any other address."""
    hint = ""
    word = state.settings.push_word
    if "-entities/" in request.path and request.path.startswith("/api/catalog/"):
        hint = f" The push interface is at /api/catalog/{word}-entities."
    elif _MCP.match(request.path):
        hint = f" Tools are called by POST to {client_configs.PATH}."
    elif request.path.startswith("/api/") and request.path.endswith("/"):
        hint = f" Addresses end without a slash: try {request.path.rstrip('/')}."
    raise NotFoundError(f"There is nothing at {request.path}.{hint}")


ROUTES: Sequence[Route] = (
    Route(
        "POST",
        TOOL_CALLS,
        mcp.post_facts_message,
        _TOOLS,
        None,
        described=False,
        errors=render_protocol_error,
        reach=TOOLS_REACH,
    ),
    # Each tool has its own permissions.
    _OF_TOOLS._replace(path=CHECK_TOOLS, handler=mcp.post_checks_message),
    _OF_TOOLS._replace(
        path=ALL_TOOLS,
        handler=mcp.post_any_message,
        errors=oauth.render_mcp_error,
        authenticate=oauth.authenticate_at_mcp,
    ),
    *(
        route._replace(path=f"/api/catalog{route.path}")
        for route in (*CATALOG_ROUTES, *VALIDATION_ROUTES)
    ),
    *(
        route._replace(path=f"{TECH_INSIGHTS}{route.path}")
        for route in (
            *SOURCE_ROUTES,
            *FACT_ROUTES,
            *CHECK_ROUTES,
            *RESULT_ROUTES,
            *DIGEST_ROUTES,
        )
    ),
    *(route._replace(path=f"{COMMUNITY}{route.path}") for route in COMMUNITY_ROUTES),
    Route("GET", TOKENS, access.get_tokens, _TOKENS),
    Route(
        "POST",
        TOKENS,
        access.post_token,
        _TOKENS,
        body=access.NewToken,
        status=201,
        reading=NOTHING_STORED,
        reach=GRANTING_REACH,
    ),
    Route(
        "DELETE",
        f"{TOKENS}/{{id}}",
        access.delete_token,
        _TOKENS,
        status=204,
        reading=NOTHING_STORED,
    ),
    Route(
        "GET", f"{ACCESS}/audit", access.get_audit_records, (AUDIT_READ,), access.AUDIT_PARAMETERS
    ),
    Route(
        "GET",
        f"{ACCESS}/audit/export",
        access.export_audit_records,
        (AUDIT_READ,),
        access.AUDIT_EXPORT_PARAMETERS,
        media=access.NDJSON,
    ),
    *(route._replace(path=f"{EVENTS}{route.path}") for route in EVENT_ROUTES),
    *(route._replace(path=f"{IMPORTERS}{route.path}") for route in IMPORTER_ROUTES),
    *SCIM_ROUTES,
    *OAUTH_ROUTES,
    Route("GET", "/healthz", report_liveness, None, None, described=False, probe=True),
    Route("GET", "/readyz", report_readiness, None, None, described=False, probe=True),
    Route("GET", "/metrics", report_metrics, None, None, described=False, probe=True),
)


def list_routes(settings: Settings) -> list[Route]:
    """List all routes for these settings."""
    words = [settings.push_word, *settings.push_aliases]
    writing = WRITING if settings.agent_writes else ()
    routes = [
        *ROUTES,
        *writing,
        *(
            # Aliases of described routes aren't described again.
            route._replace(
                path=f"/api/catalog/{word}-entities{route.path}",
                described=route.described and word == settings.push_word,
            )
            for word in words
            for route in PUSH_ROUTES
        ),
    ]
    return [*routes, *_list_document_routes(routes, settings)]


def _list_document_routes(routes: Sequence[Route], settings: Settings) -> list[Route]:
    """List the routes of the OpenAPI documents.

    They are public: they contain nothing beyond the product documentation, and tools that read
    them seldom send a token.
    """
    return [
        Route(
            "GET",
            f"{prefix}/openapi.json",
            openapi.serve_document(
                partial(
                    openapi.build_document,
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


def build_endpoints(state: State) -> dict[str, ASGIApp]:
    """Build the ASGI application for each path in the table."""
    paths: dict[str, dict[str, Route]] = {}
    for route in list_routes(state.settings):
        paths.setdefault(route.path, {})[route.method] = route
    return {path: Endpoint(methods, state) for path, methods in paths.items()}


def build_fallback(state: State) -> ASGIApp:
    """Build the ASGI application for all other paths."""
    methods = ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")
    routes = {
        method: Route(method, "(none)", answer_unknown_path, None, None, described=False)
        for method in methods
    }
    return Endpoint(routes, state)

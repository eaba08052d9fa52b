"""Endpoints for operators and their machines: liveness, readiness and metrics."""

import re
from typing import Final

from factbook.errors import NotFoundError
from factbook.http import client_configs
from factbook.http.context import SourceContext, State
from factbook.http.requests import Reply, Request, reply
from factbook.storage import migrations

# Where clients of the Model Context Protocol look for it.
_MCP: Final = re.compile(r"/(api/)?(mcp|sse)(/|\Z)")


async def healthz(request: Request, state: SourceContext) -> Reply:
    """The process runs."""
    return reply({"status": "ok"})


async def readyz(request: Request, state: SourceContext) -> Reply:
    """The process can serve: its database answers. One that stops takes no new connections.

    One that can only read is ready, and says why nothing can be written.
    """
    await state.database.check()
    await migrations.check(state.database)
    trouble = state.database.trouble()
    return reply({"status": "ready"} | ({"writes": trouble} if trouble else {}))


async def metrics(request: Request, state: State) -> Reply:
    """Counts and durations for Prometheus; what is stored only while the database answers."""
    # The client library imports a web server of its own, and not everybody scrapes.
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


async def nowhere(request: Request, state: SourceContext) -> Reply:
    """Any address that nothing else answers."""
    hint = ""
    word = state.settings.push_word
    if "-entities/" in request.path and request.path.startswith("/api/catalog/"):
        hint = f" The push interface is at /api/catalog/{word}-entities."
    elif _MCP.match(request.path):
        hint = f" Tools are called by POST to {client_configs.PATH}."
    elif request.path.startswith("/api/") and request.path.endswith("/"):
        hint = f" Addresses end without a slash: try {request.path.rstrip('/')}."
    raise NotFoundError(f"There is nothing at {request.path}.{hint}")

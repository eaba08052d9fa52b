"""Endpoints for operators and their machines: liveness, readiness and metrics."""

import re
from contextlib import suppress
from typing import Final

from prometheus_client.core import Metric

from factbook.errors import NotFoundError, UnavailableError
from factbook.facts import source_overview
from factbook.http import client_configs
from factbook.http.context import SourceContext
from factbook.http.requests import Reply, Request, reply
from factbook.observability import prometheus, stored_metrics
from factbook.scheduling import runs
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


async def metrics(request: Request, state: SourceContext) -> Reply:
    """Counts and durations for Prometheus; what is stored only while the database answers."""
    known: dict[str, runs.SourceHealth] = {}
    sources = state.registry.fixed.sources
    kept: list[Metric] = []
    pushed: dict[str, int] = {}
    with suppress(UnavailableError):
        known = await runs.health(state.database)
        registered = await state.registry.current()
        sources = registered.sources
        pushed = await source_overview.last_written(state.database, registered.pushed)
        kept = await stored_metrics.metrics(state.database, state.clock())
    further = [
        *prometheus.of_load(state.metrics.load, state.database),
        *stored_metrics.of_sources(sources, known, pushed, state.clock()),
        *kept,
        *stored_metrics.of_disk(state.settings.database_url),
    ]
    rendered = prometheus.render(state.metrics, further)
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

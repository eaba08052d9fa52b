"""Endpoints for operators and their machines: liveness, readiness and metrics."""

from contextlib import suppress

from prometheus_client.core import Metric

from factbook.errors import NotFoundError, UnavailableError
from factbook.http.context import State
from factbook.http.requests import Reply, Request, reply
from factbook.observability import stored_metrics
from factbook.observability.metrics import of_sources
from factbook.scheduling import runs
from factbook.storage import migrations


async def healthz(request: Request, state: State) -> Reply:
    """The process runs."""
    return reply({"status": "ok"})


async def readyz(request: Request, state: State) -> Reply:
    """The process can serve: its database answers. One that stops takes no new connections.

    One that can only read is ready, and says why nothing can be written.
    """
    await state.database.check()
    await migrations.check(state.database)
    trouble = state.database.trouble()
    return reply({"status": "ready"} | ({"writes": trouble} if trouble else {}))


async def metrics(request: Request, state: State) -> Reply:
    """Counts and durations for Prometheus; what is stored only while the database answers."""
    known: dict[str, runs.SourceHealth] = {}
    sources = state.registry.fixed.sources
    kept: list[Metric] = []
    with suppress(UnavailableError):
        known = await runs.health(state.database)
        sources = (await state.registry.current()).sources
        kept = await stored_metrics.metrics(state.database, state.clock())
    further = [
        *state.metrics.load.metrics(state.database),
        *of_sources(sources, known, state.clock()),
        *kept,
        *stored_metrics.of_disk(state.settings.database_url),
    ]
    rendered = state.metrics.render(further)
    return Reply(rendered, content_type=b"text/plain; version=0.0.4; charset=utf-8")


async def nowhere(request: Request, state: State) -> Reply:
    """Any address that nothing else answers."""
    hint = ""
    word = state.settings.push_word
    if "-entities/" in request.path and request.path.startswith("/api/catalog/"):
        hint = f" The push interface is at /api/catalog/{word}-entities."
    raise NotFoundError(f"There is nothing at {request.path}.{hint}")

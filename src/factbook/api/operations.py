"""What operators and their machines ask: is it up, is it ready, how much did it do."""

from contextlib import suppress

from factbook.edge.metrics import of_sources
from factbook.edge.requests import Reply, Request, reply
from factbook.edge.state import State
from factbook.errors import NotFoundError, UnavailableError
from factbook.scheduling import runs


async def healthz(request: Request, state: State) -> Reply:
    """The process runs."""
    return reply({"status": "ok"})


async def readyz(request: Request, state: State) -> Reply:
    """The process can serve: its database answers. One that stops takes no new connections."""
    await state.database.check()
    return reply({"status": "ready"})


async def metrics(request: Request, state: State) -> Reply:
    """Counts and durations for Prometheus; those of sources only while the database answers."""
    known: dict[str, runs.Health] = {}
    sources = state.registry.fixed.sources
    with suppress(UnavailableError):
        known = await runs.health(state.database)
        sources = (await state.registry.current()).sources
    rendered = state.metrics.render(of_sources(sources, known, state.clock()))
    return Reply(rendered, content_type=b"text/plain; version=0.0.4; charset=utf-8")


async def nowhere(request: Request, state: State) -> Reply:
    """Any address that nothing else answers."""
    hint = ""
    word = state.settings.push_word
    if "-entities/" in request.path and request.path.startswith("/api/catalog/"):
        hint = f" The push interface is at /api/catalog/{word}-entities."
    raise NotFoundError(f"There is nothing at {request.path}.{hint}")

"""The one place where things are put together."""

import asyncio
import gc
import os
import secrets
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from factbook import clock, logs, web
from factbook.api import mcp_answers
from factbook.api import routes as api
from factbook.auth import tokens
from factbook.auth.limits import RateLimit
from factbook.catalog.annotations import Annotator
from factbook.catalog.sets import Rules
from factbook.catalog.store import derived
from factbook.clock import Clock
from factbook.collecting import (
    Clients,
    Collector,
    Connect,
    Connections,
    Further,
    HostFiles,
    Registry,
)
from factbook.edge.metrics import Metrics
from factbook.edge.origins import Hosts, Proxies
from factbook.edge.refusals import Refusals
from factbook.edge.routing import router
from factbook.edge.state import State
from factbook.facts.datasource import DataSource
from factbook.settings import Settings, load
from factbook.sources import SOURCES, configured, custom
from factbook.sources.http import Client
from factbook.sources.integration import Integration
from factbook.storage import Database, open_database
from factbook.storage.migrations import migrate as migrate_database
from factbook.storage.opening import sqlite_path
from factbook.tools import TOOLS, Tool
from factbook.webhooks import Courier, GuardedPost
from factbook.worker import Worker

if TYPE_CHECKING:
    from factbook.web.openid.client import OpenID

log = structlog.get_logger("factbook")

T = TypeVar("T")

# What migrations need done beside their SQL.
_STEPS = {"0002_catalog_queries.sql": derived.rebuild_search}

# A thread that works on a push lets requests in after this long.
_SWITCH_SECONDS = 0.0005


class Application:
    """The ASGI application, and everything that it holds open while it runs."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = clock.now,
        sources: tuple[DataSource, ...] = SOURCES,
        tools: tuple[Tool, ...] = TOOLS,
        integrations: tuple[Integration, ...] = (),
        connect: Connect | None = None,
        openid: "OpenID | None" = None,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._integrations = integrations
        self._connections = custom.configured(settings.connections)
        self._connect = connect
        self._openid = openid
        self._clients = Clients(self._connect_to)
        self._post = GuardedPost(settings)
        self._sources = sources
        self._tools = tools
        self._tasks: set[asyncio.Task[object]] = set()
        self._router: ASGIApp | None = None

    @property
    def integrations(self) -> Sequence[Integration]:
        """What is configured to be collected from."""
        return self._integrations

    @asynccontextmanager
    async def running(self) -> AsyncIterator[State]:
        """Open everything, serve, and let go of it again in the opposite order."""
        async with self.opened() as database:
            state = self._state(database)
            openid = self._provider()
            self._router = _routed(state, openid)
            try:
                yield state
            finally:
                await self._finish()
                if openid is not None:
                    await openid.aclose()
                await state.refusals.write()
                await self._clients.aclose()
                await self._post.aclose()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """The database alone, migrated."""
        connections = self.settings.postgres_connections
        database = await open_database(self.settings.database_url, connections=connections)
        try:
            await migrate(database, self._clock())
            yield database
        finally:
            await database.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            assert self._router is not None
            await self._router(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self.running() as state:
                self._spawn(self.worker(state.database, state.registry, alone=True).run())
                settle_memory()
                await send({"type": "lifespan.startup.complete"})
                log.info("service.started", database=state.database.dialect)
                await receive()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def _state(self, database: Database) -> State:
        settings, clock, metrics = self.settings, self._clock, Metrics()
        return State(
            settings=settings,
            database=database,
            clock=clock,
            token_key=token_key(settings),
            rules=rules(settings),
            calls=RateLimit(settings.token_rate, settings.token_burst, clock),
            failures=RateLimit(settings.failed_logins / 60, settings.failed_logins, clock),
            hosts=Hosts(settings),
            proxies=Proxies(settings),
            metrics=metrics,
            refusals=Refusals(database, clock, metrics, self._spawn),
            registry=self.registry(database),
            connect=self._clients.of,
            post=self._post,
            tools={tool.name: tool for tool in self._tools},
            lists=mcp_answers.lists(self._tools),
            spawn=self._spawn,
        )

    def registry(self, database: Database) -> Registry:
        """What knows every source, those that users defined too."""
        files = HostFiles(database, self._integrations, self._clients.of, self._clock)
        key = partial(token_key, self.settings)
        return Registry(
            database, self._sources, self._integrations, self._connections, files, self._clock, key
        )

    def worker(self, database: Database, registry: Registry, *, alone: bool) -> Worker:
        """What works beside requests; `alone`: it collects only while no other such one does."""
        collector, courier = None, None
        if self.settings.collect or not alone:
            collector = self.collector(database, self._integrations, registry.custom)
            courier = self.courier(database)
        return Worker(
            database,
            self.settings,
            registry,
            self._clock,
            _holder(),
            collector,
            courier,
            alone=alone,
        )

    def courier(self, database: Database) -> Courier:
        """What sends events to webhooks."""
        key = partial(token_key, self.settings)
        return Courier(database, GuardedPost(self.settings), key, self._clock, _holder())

    def collector(
        self,
        database: Database,
        integrations: Sequence[Integration],
        further: Further | None = None,
    ) -> Collector:
        """What does the runs of these integrations, and of those that come and go."""
        return Collector(
            database, integrations, self._clients.of, self._clock, _holder(), further=further
        )

    def _provider(self) -> "OpenID | None":
        """What signs people in elsewhere; none unless a provider is configured."""
        if self._openid is not None or not self.settings.openid:
            return self._openid
        # Heavy to import, and few configure a provider.
        from factbook.web.openid.client import connected  # noqa: PLC0415

        return connected(self.settings, self._clock)

    def _connect_to(self, integration: Integration) -> Client:
        if self._connect is None:
            self._connect = Connections(self.settings, self._clock).client
        return self._connect(integration)

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: "asyncio.Task[object]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task.failed", exc_info=error)

    async def _finish(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _routed(state: State, openid: "OpenID | None") -> ASGIApp:
    """Everything that is served: the interfaces and the pages."""
    site = web.Site(state, openid)
    nowhere = web.nowhere(site, api.nowhere(state))
    site.application = router({**api.endpoints(state), **web.endpoints(site)}, nowhere)
    return site.application


def settle_memory() -> None:
    """Look for cycles rarely: what a request or a batch allocates is gone with it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _holder() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def rules(settings: Settings) -> Rules:
    """How the settings say that pushed entities are checked and annotated."""
    return Rules(
        Annotator(settings.push_word, settings.annotation_domain),
        strict_names=settings.entity_names == "strict",
        max_items=settings.max_set_items,
        max_depth=settings.max_json_depth,
    )


def token_key(settings: Settings) -> bytes:
    """The key of token hashes; on SQLite a file beside the database when it is not set."""
    url = settings.database_url
    file: Path | None = None
    if url.startswith("sqlite:"):
        database = sqlite_path(url)
        file = database.with_name(f"{database.name}.key")
    return tokens.key(settings.token_key, file)


def create() -> Application:
    """The application for a server process, with settings from the file and the environment."""
    settings = load()
    logs.configure(settings)
    sys.setswitchinterval(_SWITCH_SECONDS)
    return application(settings)


def application(settings: Settings) -> Application:
    """The application with everything that the settings configure."""
    return Application(settings, integrations=configured(settings.integrations))


async def migrate(database: Database, now: int) -> list[str]:
    """Bring the schema up to date; the names of the migrations that were applied."""
    return await migrate_database(database, now, _STEPS)

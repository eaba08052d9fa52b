"""Composition root: assembles the application from its parts."""

import gc
import os
import secrets
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from factbook import clock, observability, web
from factbook.api import routes as api
from factbook.api.mcp import descriptions
from factbook.auth.keys import token_key
from factbook.auth.limits import RateLimit
from factbook.catalog.sets import PushRules
from factbook.catalog.store import derived
from factbook.clock import Clock
from factbook.collection import (
    ClientFactory,
    Clients,
    Collector,
    Connect,
    Further,
    HostFiles,
    Registry,
)
from factbook.datasources import custom
from factbook.facts.datasource import DataSource
from factbook.http.admission import Admission
from factbook.http.background_tasks import Tasks
from factbook.http.context import State
from factbook.http.refusal_log import Refusals
from factbook.http.router import router
from factbook.http.trusted_hosts import Hosts, Proxies
from factbook.integrations import SOURCES, configured
from factbook.integrations.integration import Integration
from factbook.observability import Tracing
from factbook.observability.load import CountedDatabase
from factbook.observability.metrics import Metrics
from factbook.outbound import HttpClient
from factbook.settings import Settings, load
from factbook.storage import Database, open_database
from factbook.storage.migrations import migrate as migrate_database
from factbook.telemetry import logs
from factbook.tools import TOOLS, Tool
from factbook.webhooks import GuardedPost, WebhookSender
from factbook.worker import Worker

if TYPE_CHECKING:
    from factbook.auth.oidc.client import OpenID

log = structlog.get_logger("factbook")

T = TypeVar("T")

# What migrations need done beside their SQL.
_STEPS = {"0002_catalog_queries.sql": derived.rebuild_search}

# A thread that works on a push lets requests in after this long.
_SWITCH_SECONDS = 0.0005


class Application:
    """The ASGI application and the resources that it holds open while it runs."""

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
        tracing: Tracing = observability.OFF,
    ) -> None:
        self.settings = settings
        self._clock = clock
        self._integrations = integrations
        self._connections = custom.configured(settings.connections)
        self._connect = connect
        self._openid = openid
        self._clients = Clients(self._connect_to)
        self._tracing, self._tracer = tracing, tracing.tracer
        self._post = GuardedPost(settings, self._tracer)
        self._sources = sources
        self._tools = tools
        self._tasks = Tasks()
        self._metrics = Metrics()
        self._router: ASGIApp | None = None

    @property
    def integrations(self) -> Sequence[Integration]:
        """What is configured to be collected from."""
        return self._integrations

    @asynccontextmanager
    async def running(self) -> AsyncIterator[State]:
        """Open all resources, serve, and close them in reverse order."""
        async with self.opened() as opened:
            state = self._state(CountedDatabase(opened, self._metrics.load))
            openid = self._provider()
            self._router = _routed(state, openid, self._tracing)
            try:
                yield state
            finally:
                await self._tasks.finish()
                if openid is not None:
                    await openid.aclose()
                await state.refusals.write()
                await self._clients.aclose()
                await self._post.aclose()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """The database alone, migrated."""
        database = await open_database(
            self.settings.database_url,
            connections=self.settings.postgres_connections,
            busy_seconds=self.settings.sqlite_busy_timeout,
        )
        try:
            await migrate(database, self._clock())
            yield self._tracing.database(database)
        finally:
            await database.close()
            await self._tracing.close()

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
                self._tasks.spawn(self.worker(state.database, state.registry, alone=True).run())
                self._tasks.spawn(self._metrics.load.watch())
                settle_memory()
                await send({"type": "lifespan.startup.complete"})
                log.info("service.started", database=state.database.dialect)
                await receive()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def _state(self, database: Database) -> State:
        settings, clock, metrics = self.settings, self._clock, self._metrics
        return State(
            settings=settings,
            database=database,
            clock=clock,
            token_key=token_key(settings),
            rules=PushRules.of(settings),
            calls=RateLimit(settings.token_rate, settings.token_burst, clock),
            failures=RateLimit(settings.failed_logins / 60, settings.failed_logins, clock),
            hosts=Hosts(settings),
            proxies=Proxies(settings),
            metrics=metrics,
            # Two of the largest bodies at once.
            admission=Admission(settings.max_requests, 2 * settings.max_body_bytes, metrics),
            refusals=Refusals(database, clock, metrics, self._tasks.spawn),
            registry=self.registry(database),
            connect=self._clients.of,
            post=self._post,
            tools=self._tracing.tools({tool.name: tool for tool in self._tools}),
            lists=descriptions.lists(self._tools),
            spawn=self._tasks.spawn,
            tracer=self._tracer,
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

    def courier(self, database: Database) -> WebhookSender:
        """What sends events to webhooks."""
        key = partial(token_key, self.settings)
        post = GuardedPost(self.settings, self._tracer)
        counted = self._metrics.posted
        return WebhookSender(database, post, key, self._clock, _holder(), self._tracer, counted)

    def collector(
        self,
        database: Database,
        integrations: Sequence[Integration],
        further: Further | None = None,
    ) -> Collector:
        """What does the runs of these integrations, and of those that come and go."""
        return Collector(
            database,
            integrations,
            self._clients.of,
            self._clock,
            _holder(),
            further=further,
            tracer=self._tracer,
        )

    def _provider(self) -> "OpenID | None":
        """OpenID Connect client for sign-in; None unless a provider is configured."""
        if self._openid is not None or not self.settings.openid:
            return self._openid
        # Heavy to import, and few configure a provider.
        from factbook.auth.oidc.client import connected  # noqa: PLC0415

        return connected(self.settings, self._clock)

    def _connect_to(self, integration: Integration) -> HttpClient:
        if self._connect is None:
            self._connect = ClientFactory(self.settings, self._clock, self._tracer).client
        return self._connect(integration)


def _routed(state: State, openid: "OpenID | None", tracing: Tracing) -> ASGIApp:
    """Router over all endpoints: the interfaces and the pages."""
    site = web.Site(state, openid)
    endpoints = tracing.endpoints({**api.endpoints(state), **web.endpoints(site)})
    nowhere = tracing.nowhere(web.nowhere(site, api.nowhere(state)))
    site.application = router(endpoints, nowhere)
    return site.application


def settle_memory() -> None:
    """Look for cycles rarely: what a request or a batch allocates is gone with it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _holder() -> str:
    return f"{os.getpid()}-{secrets.token_hex(4)}"


def create() -> Application:
    """The application for a server process, with settings from the file and the environment."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    return traced(load())


def traced(settings: Settings) -> Application:
    """The application with everything that the settings configure, logs and traces too."""
    tracing = observability.start(settings)
    logs.configure(settings, tracing.ids)
    return application(settings, tracing)


@contextmanager
def traced_meanwhile(settings: Settings) -> Iterator[Application]:
    """The same for a command that ends before its process may; logs are as before after it."""
    tracing = observability.start(settings)
    with logs.configured(settings, tracing.ids):
        yield application(settings, tracing)


def application(settings: Settings, tracing: Tracing = observability.OFF) -> Application:
    """The application with everything that the settings configure, without logs and traces."""
    return Application(settings, integrations=configured(settings.integrations), tracing=tracing)


async def migrate(database: Database, now: int) -> list[str]:
    """Bring the schema up to date; the names of the migrations that were applied."""
    return await migrate_database(database, now, _STEPS)

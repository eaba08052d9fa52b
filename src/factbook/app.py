"""Composition root: assembles the application from its parts."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING

import structlog

from factbook import clock, process, shutdown
from factbook.api import routes
from factbook.api.mcp import build_server_finder
from factbook.asgi import ASGIApp, Receive, Scope, Send
from factbook.auth import group_roles
from factbook.auth.encryption import find_token_key
from factbook.auth.oauth import clients as oauth_options
from factbook.backend import Backend
from factbook.catalog import people_trust
from factbook.catalog.sets import PushRules
from factbook.checks.trials import WriteTrial
from factbook.clock import Clock
from factbook.datasources.clients import Connect
from factbook.errors import FactbookError
from factbook.facts.datasource import DataSource
from factbook.http.admission import Admission, Hosts, RateLimit
from factbook.http.context import State, Tasks, UsageMeter
from factbook.http.pipeline import IncompleteAnswers, Refusals, make_late, make_router
from factbook.http.requests import Proxies
from factbook.importers.importer import Importer
from factbook.integrations import SOURCES
from factbook.integrations.integration import Integration
from factbook.observability import traces
from factbook.observability.metrics import Metrics
from factbook.observability.traces import Tracing
from factbook.scim.identity import settle_all_roles
from factbook.settings import Settings
from factbook.settings.table import load_settings
from factbook.storage import Database
from factbook.storage.database import observe_database
from factbook.tools import TOOLS, Tool
from factbook.tools.toolsets import list_toolsets as toolset_list
from factbook.webhooks.sender import GuardedPost
from factbook.webhooks.store import adopt_webhooks

if TYPE_CHECKING:
    from factbook.auth.oauth.clients import FetchDocument
    from factbook.auth.oauth.company_tokens import CompanyTokens
    from factbook.auth.oidc.client import OpenID

log = structlog.get_logger("factbook")

# How long a thread that handles a push may run before requests get a turn.
_SWITCH_SECONDS = 0.0005


class Application(Backend):
    """The ASGI application and the resources it keeps open while running."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = clock.now,
        sources: tuple[DataSource, ...] = SOURCES,
        tools: tuple[Tool, ...] = TOOLS,
        integrations: tuple[Integration, ...] = (),
        importers: tuple[Importer, ...] = (),
        connect: Connect | None = None,
        openid: "OpenID | None" = None,
        fetch_document: "FetchDocument | None" = None,
        company: "CompanyTokens | None" = None,
        tracing: Tracing = traces.TRACING_OFF,
    ) -> None:
        super().__init__(
            settings,
            clock=clock,
            sources=sources,
            integrations=integrations,
            importers=importers,
            connect=connect,
            tracing=tracing,
        )
        # Called when the surrounding server has nothing left to serve.
        self.stopping: Callable[[], object] = lambda: None
        self._openid = openid
        self._fetch_document = fetch_document
        self._oauth = oauth_options.make_oauth_options(settings.oauth)
        self._company = company
        self._post = GuardedPost(settings, self._tracer)
        self._tools = tools
        self._tasks = Tasks()
        self._metrics = Metrics()
        self._sent = self._metrics.posted
        self._router: ASGIApp | None = None
        self._open: State | None = None
        self._resources = AsyncExitStack()

    async def open(self) -> State:
        """Open all resources, once; without this call, the ASGI lifespan opens them at startup."""
        if self._open is None:
            self._open = await self._resources.enter_async_context(self.running())
        return self._open

    async def close(self) -> None:
        """Close all resources; the ASGI lifespan also does this at shutdown."""
        await self._resources.aclose()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[State]:
        """Open all resources, serve, and close them in reverse order."""
        async with self.opened() as opened:
            state = self._state(observe_database(opened, self._metrics.load))
            await adopt_webhooks(state.database, state.token_key)
            rules = group_roles.make_group_rules(self.settings)
            await settle_all_roles(state.database, rules, self._clock())
            await _log_lost_rights(state)
            openid = self._provider()
            self._router = _routed(state, openid, self._fetch_document, self._tracing)
            try:
                yield state
            finally:
                await self._tasks.finish()
                for remote in (openid, state.company):
                    if remote is not None:
                        await remote.aclose()
                await state.refusals.write()
                await state.usage.write()
                await self._clients.aclose()
                await self._post.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(scope, receive, send)
        elif scope["type"] == "http":
            assert self._router is not None
            await self._router(scope, receive, send)

    async def _lifespan(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            state = await self.open()
            async with self._resources:
                self._tasks.spawn(self.worker(state.database, state.registry, "server").run())
                self._tasks.spawn(self._metrics.load.watch())
                process.settle_memory()
                # Connections belong to the server and can't reach the application: they look here.
                scope.get("state", {}).update(incomplete=state.incomplete, stopping=state.stopping)
                await send({"type": "lifespan.startup.complete"})
                log.info("service.started", database=state.database.dialect)
                try:
                    await receive()
                finally:
                    self.stopping()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    def _state(self, database: Database) -> State:
        settings, clock, metrics = self.settings, self._clock, self._metrics
        toolsets = toolset_list(self._tools, with_writing=settings.agent_writes)
        return State(
            settings=settings,
            database=database,
            clock=clock,
            token_key=find_token_key(settings),
            rules=PushRules.of(settings),
            calls=RateLimit(settings.token_rate, settings.token_burst, clock),
            failures=RateLimit(settings.failed_logins / 60, settings.failed_logins, clock),
            # Per address: a burst of 10, then 20 an hour. In the audit: 100, then 60 an hour.
            registrations=RateLimit(20 / 3600, 10, clock),
            registration_records=RateLimit(1 / 60, 100, clock),
            hosts=Hosts(settings),
            proxies=Proxies(settings),
            metrics=metrics,
            # Room for two of the largest bodies at once.
            admission=Admission(settings.max_requests, 2 * settings.max_body_bytes, metrics),
            incomplete=IncompleteAnswers(metrics),
            refusals=Refusals(database, clock, metrics, self._tasks.spawn),
            usage=UsageMeter(database, clock, self._tasks.spawn),
            registry=self.registry(database),
            importers=self.importer_registry(database),
            oauth=self._oauth,
            company=self._company_tokens(),
            connect=self._clients.of,
            post=self._post,
            toolsets=tuple(one.name for one in toolsets),
            server=build_server_finder(toolsets, self._tracing.tools),
            spawn=self._tasks.spawn,
            tracer=self._tracer,
            write_trial=partial(WriteTrial, database, clock),
        )

    def _company_tokens(self) -> "CompanyTokens | None":
        """Verifier for tokens of the company's authorization server; None without such a server."""
        if self._company is not None or not self._oauth.enabled or not self._oauth.issuer:
            return self._company
        # Slow to import, and rarely configured.
        from factbook.auth.oauth.company_tokens import connect_company_tokens  # noqa: PLC0415

        return connect_company_tokens(self.settings, self._oauth, self._clock)

    def _provider(self) -> "OpenID | None":
        if self._openid is not None or not self.settings.openid:
            return self._openid
        # Slow to import, and rarely configured.
        from factbook.auth.oidc.client import connect_openid  # noqa: PLC0415

        return connect_openid(self.settings, self._clock)


async def _log_lost_rights(state: State) -> None:
    """Log each person who lacks group rights because no trusted set lists the memberships."""
    domain = state.settings.annotation_domain
    is_decided = state.settings.people_sets is not None
    tell = log.info if is_decided else log.warning
    try:
        lost = await people_trust.find_lost_rights(state.database, state.trust, domain)
    except FactbookError as error:
        log.warning("rights.unread", reason=error.message)
        return
    for one in lost:
        about = {"person": one.person, "groups": one.groups, "set": one.stated_in}
        tell("rights.untrusted", **about, setting=one.remedy)


def _routed(
    state: State,
    openid: "OpenID | None",
    fetch_document: "FetchDocument | None",
    tracing: Tracing,
) -> ASGIApp:
    """Build the router over all endpoints: the APIs and the pages."""
    unknown = tracing.nowhere(routes.build_fallback(state))

    def made() -> ASGIApp:
        # Importing the pages takes as long as importing everything that machine clients need.
        from factbook.web import routes as web  # noqa: PLC0415

        return web.make_page_router(state, openid, fetch_document, tracing, application, unknown)

    pages = make_late(made)

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        is_page = not scope["path"].startswith("/api/")
        await (pages if is_page else unknown)(scope, receive, send)

    application = make_router(tracing.endpoints(routes.build_endpoints(state)), elsewhere)
    return application


def create() -> Application:
    """Build the application of a server process, with settings from file and environment."""
    return made(load_settings())


def made(settings: Settings) -> Application:
    """Build the application of a server process from given settings."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    application = Application.traced(settings)
    application.stopping = shutdown.exit_within
    return application

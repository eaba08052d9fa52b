"""Parts that servers, workers and commands share: the database, sources, collector and courier."""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Self

from factbook import clock, process, shutdown
from factbook.auth.encryption import find_token_key
from factbook.catalog.store import index_rows
from factbook.checks.results import incremental
from factbook.clock import Clock
from factbook.collection.collector import Collector, Further
from factbook.datasources.clients import ClientFactory, Clients, Connect
from factbook.datasources.custom.sources import configured_connections
from factbook.datasources.registry import HostFiles, Registry
from factbook.facts.datasource import DataSource
from factbook.importers import registry
from factbook.importers.importer import Importer
from factbook.importers.registry import ImporterRegistry
from factbook.importers.runner import ImportRunner
from factbook.integrations import SOURCES, configure_integrations
from factbook.integrations.integration import Integration
from factbook.observability import traces
from factbook.observability.traces import Tracing
from factbook.outbound.client import HttpClient
from factbook.scheduling.lease import Leadership, Role
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate as migrate_database
from factbook.storage.migrations import verify_schema
from factbook.telemetry import logs
from factbook.webhooks.digests import DigestSender
from factbook.webhooks.sender import GuardedPost, WebhookSender
from factbook.worker import Worker

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector

# Steps in Python that migrations need besides their SQL.
_STEPS = {"0002_catalog_queries.sql": index_rows.rebuild_search}


class Backend:
    """Everything below the API and the pages, built from the settings."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = clock.now,
        sources: tuple[DataSource, ...] = SOURCES,
        integrations: tuple[Integration, ...] = (),
        importers: tuple[Importer, ...] = (),
        connect: Connect | None = None,
        tracing: Tracing = traces.TRACING_OFF,
    ) -> None:
        self.settings = settings
        self.integrations: Sequence[Integration] = integrations
        self.importers: Sequence[Importer] = importers
        self._clock = clock
        self._sources = sources
        self._connections = configured_connections(settings.connections)
        self._connect = connect
        self._clients = Clients(self._connect_to)
        self._tracing, self._tracer = tracing, tracing.tracer
        # Called with the outcome of each webhook message.
        self._sent: Callable[[str], None] = lambda outcome: None

    @classmethod
    def of(cls, settings: Settings, tracing: Tracing = traces.TRACING_OFF) -> Self:
        """Build a backend with the configured integrations and importers; logs stay as they are."""
        integrations = configure_integrations(settings.integrations)
        importers = registry.configure_importers(settings.importers, settings.integrations)
        return cls(settings, integrations=integrations, importers=importers, tracing=tracing)

    @classmethod
    def traced(cls, settings: Settings) -> Self:
        """Build a backend with everything the settings configure, including logs and traces."""
        tracing = traces.start_tracing(settings)
        logs.configure_logs(settings, tracing.ids)
        return cls.of(settings, tracing)

    @classmethod
    @contextmanager
    def traced_meanwhile(cls, settings: Settings) -> Iterator[Self]:
        """Like `traced`, for a command whose process may outlive it: restores the logs after it."""
        tracing = traces.start_tracing(settings)
        with logs.configure_logs_within(settings, tracing.ids):
            yield cls.of(settings, tracing)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Database]:
        """Open only the database, and migrate it."""
        database = await open_database(
            self.settings.database_url,
            connections=self.settings.postgres_connections,
            busy_seconds=self.settings.sqlite_busy_timeout,
            replica_url=self.settings.replica_url,
            longest_lag=self.settings.replica_lag,
        )
        try:
            await migrate(database, self._clock())
            incremental.attach_evaluation(database, self._clock)
            yield self._tracing.database(database)
        finally:
            await shutdown.uninterrupted(database.close())
            await shutdown.uninterrupted(self._tracing.close())

    def registry(self, database: Database) -> Registry:
        """Registry of all data sources, including those defined by users."""
        files = HostFiles(database, self.integrations, self._clients.of, self._clock)
        key = partial(find_token_key, self.settings)
        return Registry(
            database, self._sources, self.integrations, self._connections, files, self._clock, key
        )

    def importer_registry(self, database: Database) -> ImporterRegistry:
        """Registry of all importers."""
        accounts, key = self.settings.integrations, partial(find_token_key, self.settings)
        return ImporterRegistry(database, self.importers, accounts, self._clock, key)

    def worker(
        self,
        database: Database,
        registry: Registry,
        role: Role,
        sharing: "type[LaneCollector] | None" = None,
    ) -> Worker:
        """Worker in a server or in its own process; with `sharing`, workers share collection."""
        collector: Collector | None = None
        courier, runner, digests, holder = None, None, None, process.holder()
        leadership = Leadership(database, holder, role, self._clock)
        if sharing is not None:
            collector = sharing(
                database,
                self.integrations,
                self._clients.of,
                leadership.clock,
                holder,
                further=registry.custom,
                tracer=self._tracer,
                leadership=leadership,
                url=self.settings.database_url,
            )
        elif self.settings.collect or role == "worker":
            collector = self.collector(
                database, self.integrations, registry.custom, leadership.clock
            )
        if collector is not None:
            courier = self.courier(database)
            digests = self.digests(database)
            runner = self.runner(database, leadership.clock, holder)
        return Worker(
            database,
            self.settings,
            registry,
            self._clock,
            holder,
            collector,
            courier,
            runner,
            digests,
            leadership=leadership if collector else None,
        )

    def courier(self, database: Database) -> WebhookSender:
        """Sender of events to webhooks."""
        key = partial(find_token_key, self.settings)
        post = GuardedPost(self.settings, self._tracer)
        holder = process.holder()
        return WebhookSender(database, post, key, self._clock, holder, self._tracer, self._sent)

    def digests(self, database: Database) -> DigestSender:
        """Sender of digests to teams."""
        key = partial(find_token_key, self.settings)
        post = GuardedPost(self.settings, self._tracer)
        return DigestSender(database, post, key, self._clock, self.settings.public_url)

    def collector(
        self,
        database: Database,
        integrations: Sequence[Integration],
        further: Further | None = None,
        clock: Clock | None = None,
    ) -> Collector:
        """Collector for these integrations, and for `further` ones that may change meanwhile."""
        return Collector(
            database,
            integrations,
            self._clients.of,
            clock or self._clock,
            process.holder(),
            further=further,
            tracer=self._tracer,
        )

    def runner(
        self, database: Database, clock: Clock | None = None, holder: str = ""
    ) -> ImportRunner:
        """Runner of the importers; shares the rate limits of their accounts with collection.

        Raises ConfigurationError for an invalid address.
        """
        for one in self.importers:
            self._clients.of(one.integration)
        return ImportRunner(
            database,
            self.settings,
            self.importer_registry(database),
            self._clients.of,
            clock or self._clock,
            holder or process.holder(),
            self._tracer,
        )

    def client(self, integration: Integration) -> HttpClient:
        """HTTP client of an integration; `disconnect` closes it."""
        return self._clients.of(integration)

    async def disconnect(self) -> None:
        """Close the connections of all clients."""
        await self._clients.aclose()

    def _connect_to(self, integration: Integration) -> HttpClient:
        if self._connect is None:
            self._connect = ClientFactory(self.settings, self._clock, self._tracer).client
        return self._connect(integration)


async def migrate(database: Database, now: int) -> list[str]:
    """Bring the schema up to date and return the names of the applied migrations.

    Raises UnavailableError when the schema is still unusable.
    """
    applied = await migrate_database(database, now, _STEPS)
    await verify_schema(database)
    return applied

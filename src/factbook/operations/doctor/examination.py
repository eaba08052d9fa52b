"""All checks in order; those of the database only where it can be opened."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2

from factbook.backend import Backend
from factbook.clock import Clock
from factbook.clock import now as system_clock
from factbook.datasources.clients import ClientFactory, Clients, Connect
from factbook.datasources.registry import Registry
from factbook.errors import ConfigurationError, FactbookError, SignInError
from factbook.operations.doctor import configuration, content, runtime
from factbook.operations.doctor import database as databases
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database, sqlite_path

# Told what is being looked at.
Show = Callable[[str], None]
_SLOW_SECONDS: Final = 0.05
_SPINNER: Final = "|/-\\"


async def examine(
    flags: Mapping[str, Any],
    show: Show,
    *,
    quick: bool = False,
    clock: Clock = system_clock,
    connect: Connect | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> AsyncIterator[Finding]:
    """All findings; nothing is changed, no table and no file is made.

    `connect` and `transport` replace the network for calls of hosts.
    """
    settings, found = configuration.read_settings(flags)
    for finding in found:
        yield finding
    if settings is None:
        return
    try:
        service = Backend.of(settings)
    except ConfigurationError as error:
        advice = "Fix it: `factbook serve` does not start with it."
        yield problem(configuration.CONFIGURATION, error.message, advice)
        return
    secret, finding = configuration.read_key(settings)
    yield finding
    for finding in configuration.check_machine(settings):
        yield finding
    examination = _Examination(service, secret, show, clock, connect)
    async for finding in examination.database(quick=quick):
        yield finding
    show("Asking the service")
    yield await runtime.check_address(settings, transport)
    async for finding in _provider(settings, clock):
        yield finding


class _Examination:
    """The checks that need the database."""

    def __init__(
        self,
        service: Backend,
        secret: bytes | None,
        show: Show,
        clock: Clock,
        connect: Connect | None,
    ) -> None:
        self._service = service
        self._settings = service.settings
        self._secret = secret
        self._show = show
        self._clock = clock
        self._connect = connect

    async def database(self, *, quick: bool) -> AsyncIterator[Finding]:
        """State of the database, and findings from its content."""
        self._show("Opening the database")
        url = self._settings.database_url
        if url.startswith("sqlite:"):
            path = sqlite_path(url).resolve()
            if not path.exists():
                what = f"There is no database {path} yet."
                yield warning("database", what, "`factbook serve` makes it.")
                return
            usable, found = await self._file(path, quick=quick)
            for finding in found:
                yield finding
            if not usable:
                return
        elif unreachable := await databases.check_reachable(url):
            yield unreachable
            return
        try:
            database = await open_database(
                url, connections=3, replica_url=self._settings.replica_url
            )
        except FactbookError as error:
            yield problem("database", error.message, _advice(error))
            return
        try:
            async for finding in self._opened(database):
                yield finding
        except FactbookError as error:
            yield problem("database", error.message, _advice(error))
        finally:
            await database.close()

    async def _file(self, path: Path, *, quick: bool) -> tuple[bool, list[Finding]]:
        """Findings about the file, and true if it can be opened without loss."""
        found = [databases.check_sqlite_version(), *databases.check_disk(path)]
        if damaged := databases.find_damaged_log(path):
            return False, [*found, damaged]
        if quick:
            return True, found
        steps = itertools.count()

        def tick() -> None:
            self._show(f"Reading {path} {_SPINNER[next(steps) % len(_SPINNER)]}")

        return True, found + await asyncio.to_thread(
            lambda: list(databases.check_soundness(path, tick))
        )

    async def _opened(self, database: Database) -> AsyncIterator[Finding]:
        yield await _round_trip(database)
        if database.dialect == "postgresql":
            async for finding in databases.check_postgresql(database, self._settings):
                yield finding
        usable, found = await databases.check_migrations(database)
        for finding in found:
            yield finding
        if not usable:
            if await databases.is_schema_older(database):
                async for finding in content.examine_rights_after_upgrade(database, self._settings):
                    yield finding
                async for finding in content.examine_old_patterns(database):
                    yield finding
            return
        now = self._clock()
        yield await databases.check_search_rows(database)
        if self._secret is not None:
            yield await configuration.check_key(database, self._secret)
        registry = self._service.registry(database)
        known = await registry.current()
        collected = [one.source for one in known.integrations.values()]
        for looked in (
            runtime.check_sources(database, collected, now),
            runtime.check_batches(database),
            content.examine_importers(database, self._service.importer_registry(database), now),
            content.examine_checks(database),
            content.examine_rights(database, self._settings),
            content.examine_people(database, self._settings),
            runtime.check_webhooks(database),
            runtime.check_housekeeping(database, now),
        ):
            async for finding in looked:
                yield finding
        yield await runtime.check_worker(database, now)
        yield await runtime.check_retention(database, now)
        async for finding in self._hosts(database, registry):
            yield finding

    async def _hosts(self, database: Database, registry: Registry) -> AsyncIterator[Finding]:
        """Permissions of the integrations, and the offsets of other clocks."""
        self._show("Asking the hosts of the integrations")
        known = await registry.current()
        ahead = {}
        if database.dialect == "postgresql":
            ahead["PostgreSQL"] = await databases.check_server_clock(database, self._clock())
        connect = self._connect or ClientFactory(self._settings, self._clock).client
        clients = Clients(connect)
        try:
            found, hosts = await runtime.check_integrations(
                database, list(known.integrations.values()), clients.of, self._clock()
            )
        finally:
            await clients.aclose()
        for finding in found:
            yield finding
        for id_, why in known.problems.items():
            advice = "Correct its definition or its connection."
            yield problem(f"integration {id_}", f"It cannot be collected: {why}", advice)
        for finding in runtime.check_clocks(ahead | hosts):
            yield finding


async def _round_trip(database: Database) -> Finding:
    """Time of a trivial query; the best of a few."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        await database.check()
        times.append(time.perf_counter() - began)
    what = f"It answers in {1000 * min(times):.2f} ms."
    if min(times) > _SLOW_SECONDS:
        return warning("database", what, "Each request asks several times: bring both closer.")
    return ok("database", what)


async def _provider(settings: Settings, clock: Clock) -> AsyncIterator[Finding]:
    """Check of the OpenID Connect provider's discovery document and keys."""
    if not settings.openid:
        return
    # Heavy to import, and few configure a provider.
    from factbook.auth.oidc.identity import make_openid_options  # noqa: PLC0415
    from factbook.auth.oidc.provider import GuardedFetch, Provider  # noqa: PLC0415

    try:
        options = make_openid_options(settings.openid)
    except ConfigurationError as error:
        yield problem("openid", error.message, "Mend the table [openid].")
        return
    assert options is not None
    fetch = GuardedFetch(settings)
    try:
        provider = Provider(options.issuer, fetch, clock)
        await provider.document()
        keys = await provider.keys()
    except SignInError as error:
        yield problem("openid", error.message, "Nobody can sign in there until it answers.")
    else:
        yield ok("openid", f"{options.issuer} answers, with {len(keys)} keys.")
    finally:
        await fetch.aclose()


def _advice(error: FactbookError) -> str:
    notes = " ".join(getattr(error, "__notes__", ()))
    return notes or "Look into the log of the service and of the database."

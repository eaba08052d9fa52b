"""Findings about settings, key and machine, the database, and the running service."""

import asyncio
import itertools
import os
import resource
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from factbook import text_files
from factbook.auth import encryption, tokens
from factbook.auth.encryption import NotOpenedError
from factbook.backend import Backend
from factbook.clock import DAY, MINUTE, SECOND, Clock, iso
from factbook.clock import now as system_clock
from factbook.datasources import stores, trial
from factbook.datasources.clients import ClientFactory, Clients, Connect
from factbook.datasources.custom.sources import Unusable
from factbook.datasources.registry import Registry
from factbook.datasources.trial import CredentialCheck, ProbeResult
from factbook.errors import ConfigurationError, FactbookError, SignInError
from factbook.facts import freshness
from factbook.facts.datasource import DataSource
from factbook.importers import importer_store
from factbook.integrations.integration import Integration
from factbook.operations.doctor import database as databases
from factbook.operations.doctor.database import (
    Finding,
    examine_checks,
    examine_importers,
    examine_old_patterns,
    examine_people,
    examine_rights,
    examine_rights_after_upgrade,
    ok,
    problem,
    warning,
)
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Outcome
from factbook.scheduling import housekeeping, lease, runs
from factbook.scheduling.housekeeping import LARGEST_LEAP
from factbook.settings import Settings
from factbook.settings.table import find_unknown_variables, load_settings
from factbook.storage import Database
from factbook.storage.database_url import open_database, sqlite_path
from factbook.telemetry.logs import redact_text
from factbook.webhooks import digests, store
from factbook.webhooks.store import StoredWebhook

CONFIGURATION: Final = "configuration"
# Secret settings; database and proxy addresses only count if they have a password.
_SECRETS: Final = ("token_key", "database_url", "replica_url", "outgoing_proxy")
_SECRET_TABLES: Final = ("integrations", "importers", "connections", "openid")
_READABLE_BY_OTHERS: Final = 0o077

KEY: Final = "key"
_RESTORE: Final = "Put the key back that the database was written with, from the backup."

MACHINE: Final = "machine"
_LEAST_FILES: Final = 4_096
# Memory of a process at its start.
_PROCESS: Final = 150 * 2**20


def read_settings(
    flags: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> tuple[Settings | None, list[Finding]]:
    """Load the settings in force, or None if they can't be read, with findings about them."""
    found = list(_unknown_variables(environ))
    try:
        settings = load_settings(flags, environ)
    except ConfigurationError as error:
        advice = "Fix it: `factbook serve` does not start with it."
        return None, [problem(CONFIGURATION, error.message, advice), *found]
    found += [
        *_exposed_address(settings),
        *_proxy_findings(settings),
        *_secrets_in_file(environ, settings),
    ]
    if not found:
        found = [ok(CONFIGURATION, "The settings can be read and go together.")]
    return settings, found


def _unknown_variables(environ: Mapping[str, str]) -> Iterator[Finding]:
    for variable, meant in find_unknown_variables(environ).items():
        what = f"The variable {variable} is not a setting and is ignored."
        if meant:
            yield problem(
                CONFIGURATION, what, f"`factbook serve` does not start with it. Is {meant} meant?"
            )
        else:
            yield warning(CONFIGURATION, what, "Remove it, or correct its name.")


def _exposed_address(settings: Settings) -> Iterator[Finding]:
    if not is_loopback_host(settings.host) and not (settings.public_url or settings.allowed_hosts):
        yield warning(
            CONFIGURATION,
            f"The service listens on {settings.host} and answers for no host name, only for "
            "addresses.",
            "Set public_url, or allowed_hosts, to the names that clients use.",
        )
    public = settings.public_url or ""
    if public.startswith("http://") and not is_loopback_host(urlsplit(public).hostname or ""):
        yield warning(
            CONFIGURATION,
            "public_url is http://, so tokens and passwords can be read on the way.",
            "Put a proxy with TLS before the service, and set public_url to its https:// address.",
        )
    if settings.openid and not public:
        yield warning(
            CONFIGURATION,
            "There is a provider to sign in at, and no public_url.",
            "Set public_url: the provider sends people back to an address below it.",
        )


def _proxy_findings(settings: Settings) -> Iterator[Finding]:
    if (settings.public_url or "").startswith("https://") and not settings.trusted_proxies:
        yield warning(
            CONFIGURATION,
            "No proxy is trusted, so the audit and the limit of failed logins see the proxy's own "
            "address.",
            "Set trusted_proxies to the addresses of the proxy that does TLS.",
        )
    for text in settings.trusted_proxies:
        try:
            everything = ip_network(text, strict=False).prefixlen == 0
        except ValueError:
            continue  # the service refuses this itself
        if everything:
            yield problem(
                CONFIGURATION,
                f"trusted_proxies has {text}: anyone can claim any address.",
                "Name only the addresses of the proxies.",
            )


def _secrets_in_file(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    """Check that other users can't read a settings file with secrets."""
    file = Path(environ.get("FACTBOOK_CONFIG", "factbook.toml"))
    if not file.exists() or not file.stat().st_mode & _READABLE_BY_OTHERS:
        return
    text = text_files.utf_8(file.read_bytes()).decode()
    secrets = [name for name in _SECRETS if name in text]
    secrets += [name for name in _SECRET_TABLES if f"[{name}" in text]
    for name in ("database_url", "replica_url", "outgoing_proxy"):
        if name in secrets and not urlsplit(getattr(settings, name) or "").password:
            secrets.remove(name)
    if secrets:
        yield warning(
            CONFIGURATION,
            f"{file} has {', '.join(secrets)} and can be read by others.",
            f"chmod 600 {file}, or keep the secrets in variables.",
        )


def is_loopback_host(host: str) -> bool:
    """True if only this machine can reach the host."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read_key(settings: Settings) -> tuple[bytes | None, Finding]:
    """Read the key in use; None if there is no key, as this never creates one."""
    file: Path | None = None
    if settings.token_key is None and settings.database_url.startswith("sqlite:"):
        database = sqlite_path(settings.database_url)
        file = database.with_name(f"{database.name}.key")
        if not file.exists():
            if database.exists():
                what = f"There is no key file {file}, so no token that was made before works."
                return None, problem(KEY, what, _RESTORE)
            return None, ok(KEY, "There is no key yet: `factbook serve` makes one.")
    try:
        key = encryption.make_token_key(settings.token_key, file)
    except ConfigurationError as error:
        return None, problem(KEY, error.message, "The service does not start without it.")
    where = "token_key of the settings" if file is None else f"{file}, which is private"
    return key, ok(KEY, f"The key is {where}.")


async def check_key(database: Database, key: bytes) -> Finding:
    """Check that the key opens the sealed secrets of the database."""
    kept = await stores.open_connections(database, lambda: key)
    shut = [f"connection {name}" for name, one in kept.items() if isinstance(one, Unusable)]
    hooks = await store.list_sealed_targets(database)
    for id_, sealed in hooks.items():
        try:
            await asyncio.to_thread(store.open_target, key, id_, sealed)
        except NotOpenedError:
            shut.append(f"webhook {id_}")
    sent = await digests.list_sealed_addresses(database)
    for id_, address in sent.items():
        try:
            await asyncio.to_thread(digests.open_digest_address, key, id_, address)
        except NotOpenedError:
            shut.append(f"digest {id_}")
    rows = [row for row in await importer_store.list_importer_rows(database) if row[4] is not None]
    shut += [f"importer {row[0]}" for row in rows if not importer_store.opens_secrets(row, key)]
    if shut:
        what = f"Sealed under another key: {', '.join(shut)}. Tokens made then do not work either."
        return problem(KEY, what, _RESTORE)
    count = len(kept) + len(hooks) + len(sent) + len(rows)
    if count:
        return ok(KEY, f"It opens the {count} sealed secrets of the database.")
    made, used = await tokens.count_used_tokens(database)
    if made and not used:
        what = f"Nothing is sealed to try it on, and none of {made} tokens was ever used."
        return ok(KEY, what)
    return ok(KEY, "Nothing is sealed in the database that it could be tried on.")


def check_machine(settings: Settings) -> Iterator[Finding]:
    """Findings on this user's limits; the service may run with other limits."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _LEAST_FILES:
        what = f"A process may have {hard:,} files open, and each connection is one."
        yield warning(MACHINE, what, "Raise it: LimitNOFILE= in systemd, ulimit -n in a shell.")
    else:
        yield ok(MACHINE, "A process may have enough files open.")
    available = _available_memory()
    needed = settings.workers * _PROCESS
    if available is not None and available < needed:
        yield warning(
            MACHINE,
            f"{available / 2**20:,.0f} MiB of memory are free; {settings.workers} processes take "
            f"{needed / 2**20:,.0f} MiB and more with large pushes.",
            "Give the machine more memory, or run fewer processes.",
        )


def _available_memory(file: Path = Path("/proc/meminfo")) -> int | None:
    if not file.exists():
        return None
    for line in file.read_text("ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    return None


SOURCES: Final = "sources"
WEBHOOKS: Final = "webhooks"
WORKER: Final = "worker"
HOUSEKEEPING: Final = "housekeeping"
ADDRESS: Final = "address"
_SOON: Final = 14 * DAY
_MOST_ROUNDS: Final = 3
_MOST_APART: Final = 5 * SECOND

# Longer than the limit of any single call, but short enough for a person to wait.
_SECONDS: Final = 45.0
_MOST_PLACES: Final = 8


async def check_sources(
    database: Database, collected: Sequence[DataSource], now: int
) -> AsyncIterator[Finding]:
    """Findings on sources that are down or late, or whose credential expires soon."""
    known, fine = await runs.fetch_health(database), 0
    for source in collected:
        one = known.get(source.id)
        state, reason = freshness.source_condition(source, one, now)
        if state == "down":
            what = f"{source.id} is down. {reason}."
            yield problem(SOURCES, what, "See its integration below, then collect it again.")
            continue
        ends = one.credential_expires_at if one else None
        if ends is not None and ends < now + _SOON:
            what = f"The credential of {source.id} ends {iso(ends)}."
            yield warning(SOURCES, what, "Give the integration another one before.")
        elif state == "late":
            what = f"{source.id} is late. {reason}."
            yield warning(SOURCES, what, "Look whether `serve` or a worker runs and collects.")
        elif state == "partial":
            what = f"{source.id} is partial. {reason}."
            advice = f"`factbook sources show {source.id}` lists what failed, and why."
            yield warning(SOURCES, what, advice)
        else:
            fine += 1
    if not collected:
        yield ok(SOURCES, "No source is collected.")
    elif fine:
        yield ok(SOURCES, f"{fine} of {len(collected)} collected sources are well.")


async def check_batches(database: Database) -> AsyncIterator[Finding]:
    """Findings on batches that were abandoned because they crashed their processes."""
    found = Counter(one.source_id for one in await runs.list_given_up_batches(database))
    for source_id, count in found.items():
        what = f"{count} batches of {source_id} were given up: each ended the processes it was in."
        advice = "The page of the source's runs lists them, and can try them again."
        yield problem(SOURCES, what, advice)


async def check_webhooks(database: Database) -> AsyncIterator[Finding]:
    """Findings on webhooks that are disabled, or whose last delivery failed."""
    found = await store.list_webhooks(database)
    for one in found:
        if one.disabled_at is not None:
            what = f"The {_webhook(one)} is disabled since {iso(one.disabled_at)}: {one.error}."
            yield problem(WEBHOOKS, what, "Mend the receiver, then enable the webhook.")
        elif one.waiting:
            what = (
                f"{one.waiting} messages for the {_webhook(one)} wait for another try: {one.error}."
            )
            yield warning(WEBHOOKS, what, "Mend the receiver before they are given up.")
    if all(one.disabled_at is None and not one.waiting for one in found):
        yield ok(WEBHOOKS, f"{len(found)} webhooks, none of them behind.")


def _webhook(webhook: StoredWebhook) -> str:
    return f"webhook {webhook.id} ({webhook.url})"


async def check_worker(database: Database, now: int) -> Finding:
    """Check that a process does the housekeeping; running processes take turns."""
    held_until = await lease.fetch_lease_end(database, "housekeeping")
    if held_until is None:
        return warning(WORKER, "No process ever kept house here.", "Start `factbook serve`.")
    if held_until < now - MINUTE:
        what = f"No process keeps house since {iso(held_until)} at the latest."
        return warning(WORKER, what, "Start `factbook serve`, or look into its log.")
    return ok(WORKER, "A process keeps house.")


async def check_housekeeping(database: Database, now: int) -> AsyncIterator[Finding]:
    """Findings on housekeeping parts that fail, or haven't run for some rounds."""
    found = await housekeeping.fetch_task_records(database)
    late = now - _MOST_ROUNDS * housekeeping.HOUSEKEEPING_INTERVAL
    for one in found:
        since = f"since {iso(one.succeeded_at)}" if one.succeeded_at else "from the first time on"
        if one.failed_at is not None:
            what = f"The part {one.part} fails {since}: {one.error}."
            yield problem(HOUSEKEEPING, what, "Its trace is in the log: worker.part_failed.")
        elif (one.succeeded_at or 0) < late:
            what = f"The part {one.part} was not done {since}."
            yield warning(HOUSEKEEPING, what, "Look whether `serve` or a worker runs.")
    if not any(one.failed_at or (one.succeeded_at or 0) < late for one in found):
        yield ok(HOUSEKEEPING, f"All {len(found)} parts succeeded in their last round.")


async def check_retention(database: Database, now: int) -> Finding:
    """Check that the clock is trusted; otherwise old data isn't deleted."""
    clock = await housekeeping.read_retention_clock(database)
    if (
        clock.refused_at is None
        and clock.trusted_at - DAY <= now <= clock.trusted_at + LARGEST_LEAP
    ):
        return ok(HOUSEKEEPING, f"What is old is deleted by the time {iso(clock.trusted_at)}.")
    what = (
        f"The clock shows {iso(now)}, and the last housekeeping was at {iso(clock.trusted_at)}, so "
        "the clock isn't trusted: nothing is deleted by a later time."
    )
    if now < clock.trusted_at:
        what = f"The last housekeeping was at {iso(clock.trusted_at)}, which is still to come."
    return warning(HOUSEKEEPING, what, "If the clock is right, run `factbook confirm-clock`.")


async def check_address(settings: Settings, transport: httpx2.AsyncBaseTransport | None) -> Finding:
    """Check that a service answers at public_url, or at the host and port of the settings."""
    url = (
        settings.public_url or f"http://{_reachable_name(settings.host)}:{settings.port}"
    ).rstrip("/")
    began = time.perf_counter()
    try:
        async with httpx2.AsyncClient(transport=transport, timeout=5) as client:
            answer = await client.get(f"{url}/healthz")
    except (httpx2.HTTPError, OSError) as error:
        what = f"Nothing answers at {url}: {type(error).__name__}."
        return warning(
            ADDRESS, what, "Start the service, or look at the proxy and its certificate."
        )
    if answer.status_code == 200:
        seconds = time.perf_counter() - began
        return ok(ADDRESS, f"{url} answers, in {1000 * seconds:.0f} ms.")
    if answer.status_code in {401, 403, 404}:
        return ok(ADDRESS, f"{url} answers; its proxy does not pass /healthz on.")
    what = f"{url}/healthz answers {answer.status_code}."
    return warning(ADDRESS, what, "Look into the log of the service and of the proxy.")


def _reachable_name(bound: str) -> str:
    """Host name that reaches the bound address from this machine."""
    try:
        address = ip_address(bound)
    except ValueError:
        return bound
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return bound if address.version == 4 else f"[{bound}]"


def check_clocks(ahead: dict[str, int]) -> list[Finding]:
    """Check other clocks against this one; `ahead` has offsets in milliseconds, by host."""
    found = []
    for whose, milliseconds in ahead.items():
        if abs(milliseconds) > _MOST_APART:
            word = "ahead of" if milliseconds > 0 else "behind"
            what = f"The clock of {whose} is {abs(milliseconds) / SECOND:.0f} s {word} this one."
            advice = "Let both follow a time server: tokens, runs and leases go by the clock."
            found.append(warning("clock", what, advice))
    if not found:
        agree = ", ".join(ahead) or "no other clock was asked"
        near = f"Within {_MOST_APART // SECOND} s of: {agree}."
        found.append(ok("clock", near if ahead else f"{agree.capitalize()}."))
    return found


async def check_integrations(
    database: Database,
    integrations: Sequence[Integration],
    client: Callable[[Integration], HttpClient],
    now: int,
) -> tuple[list[Finding], dict[str, int]]:
    """Examine all integrations concurrently; returns findings, and clock offsets by host."""
    found = await asyncio.gather(
        *(_check_integration(database, one, client, now) for one in integrations)
    )
    ahead = {
        f"{one.source.id}'s host": shown.ahead
        for one, (_, checked) in zip(integrations, found, strict=True)
        for shown in (checked.shown if checked else [])
        if shown.ahead is not None
    }
    return [finding for findings, _ in found for finding in findings], ahead


async def _check_integration(
    database: Database,
    integration: Integration,
    client: Callable[[Integration], HttpClient],
    now: int,
) -> tuple[list[Finding], CredentialCheck | None]:
    topic = f"integration {integration.source.id}"
    try:
        async with asyncio.timeout(_SECONDS):
            checked = await trial.check_credential(database, integration, client(integration), now)
    except TimeoutError:
        advice = "Look whether the host can be reached from this machine."
        return [problem(topic, f"No answer within {_SECONDS:.0f} s.", advice)], None
    except FactbookError as error:
        return [problem(topic, error.message, "Mend its table in the settings.")], None
    except Exception as error:
        # An unexpected error in one integration must not hide the findings on the others.
        what = f"It could not be looked at: {redact_text(repr(error))}."
        return [problem(topic, what, "Report it: that is a bug.")], None
    findings = [_probed_permissions(topic, shown) for shown in checked.shown if shown.missing]
    findings += _lacking_on_example(topic, checked)
    return findings or [_fine_integration(topic, checked)], checked


def _fine_integration(topic: str, checked: CredentialCheck) -> Finding:
    rights = ", ".join(shown.right for shown in checked.shown)
    if checked.example is not None:
        return ok(topic, f"Everything about {checked.example} can be read.")
    if not rights:
        what = "No entity in the catalog points to it, so nothing was asked."
        return warning(topic, what, "Push an entity with its annotation.")
    return ok(topic, f"It may read: {rights}.")


def _probed_permissions(topic: str, shown: ProbeResult) -> Finding:
    assert shown.missing is not None
    places = ", ".join(place or "everything" for place in shown.facts)
    what = f"{shown.right}: {shown.missing.reason}. Unknown without it: {places}."
    if shown.missing.outcome is Outcome.REFUSED:
        return problem(topic, what, "Facts that are known stay for three more runs of its cadence.")
    if shown.missing.outcome is Outcome.DENIED:
        return problem(
            topic, what, "Give the credential this right; see Rights of the integration."
        )
    if shown.missing.outcome in {Outcome.FEATURE_OFF, Outcome.RATE_LIMITED}:
        return warning(topic, what, "Facts that are known stay for a while.")
    return problem(topic, what, "Look at the address in its table, and whether it can be reached.")


def _lacking_on_example(topic: str, checked: CredentialCheck) -> list[Finding]:
    found = []
    denied = trial.places_of_reason(checked.missing, ("forbidden",))
    for reason, places in denied.items():
        what = f"{reason}. Unknown of {checked.example}: {_some_places(places)}."
        advice = "Give the credential the right; see Rights of the integration."
        found.append(problem(topic, what, advice))
    failed = trial.places_of_reason(checked.missing, ("upstream-error", "rate-limited"))
    for reason, places in failed.items():
        what = f"{reason}. Not answered of {checked.example}: {_some_places(places)}."
        found.append(warning(topic, what, "Try again; if it stays, look at the host."))
    gone = trial.places_of_reason(checked.missing, ("not-found",))
    for reason, places in gone.items():
        what = f"{reason}. {checked.example} points to nothing there: {_some_places(places)}."
        found.append(warning(topic, what, "Correct its annotation, or let the credential see it."))
    return found


def _some_places(places: list[str]) -> str:
    more = len(places) - _MOST_PLACES
    return ", ".join(places[:_MOST_PLACES]) + (f" and {more} more" if more > 0 else "")


# Called with the description of the current check.
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
    """Examine everything, without changing anything or creating a table or file.

    `connect` and `transport` replace the network for calls to hosts.
    """
    settings, found = read_settings(flags)
    for finding in found:
        yield finding
    if settings is None:
        return
    try:
        service = Backend.of(settings)
    except ConfigurationError as error:
        advice = "Fix it: `factbook serve` does not start with it."
        yield problem(CONFIGURATION, error.message, advice)
        return
    secret, finding = read_key(settings)
    yield finding
    for finding in check_machine(settings):
        yield finding
    examination = _Examination(service, secret, show, clock, connect)
    async for finding in examination.database(quick=quick):
        yield finding
    show("Asking the service")
    yield await check_address(settings, transport)
    async for finding in _provider(settings, clock):
        yield finding


class _Examination:
    """Checks that need the database."""

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
        """Findings on the database and its content."""
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
        """Findings on the file, preceded by whether opening it is safe."""
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
                async for finding in examine_rights_after_upgrade(database, self._settings):
                    yield finding
                async for finding in examine_old_patterns(database):
                    yield finding
            return
        now = self._clock()
        yield await databases.check_search_rows(database)
        if self._secret is not None:
            yield await check_key(database, self._secret)
        registry = self._service.registry(database)
        known = await registry.current()
        collected = [one.source for one in known.integrations.values()]
        for looked in (
            check_sources(database, collected, now),
            check_batches(database),
            examine_importers(database, self._service.importer_registry(database), now),
            examine_checks(database),
            examine_rights(database, self._settings),
            examine_people(database, self._settings),
            check_webhooks(database),
            check_housekeeping(database, now),
        ):
            async for finding in looked:
                yield finding
        yield await check_worker(database, now)
        yield await check_retention(database, now)
        async for finding in self._hosts(database, registry):
            yield finding

    async def _hosts(self, database: Database, registry: Registry) -> AsyncIterator[Finding]:
        """Findings on the integrations' permissions, and on other clocks."""
        self._show("Asking the hosts of the integrations")
        known = await registry.current()
        ahead = {}
        if database.dialect == "postgresql":
            ahead["PostgreSQL"] = await databases.check_server_clock(database, self._clock())
        connect = self._connect or ClientFactory(self._settings, self._clock).client
        clients = Clients(connect)
        try:
            found, hosts = await check_integrations(
                database, list(known.integrations.values()), clients.of, self._clock()
            )
        finally:
            await clients.aclose()
        for finding in found:
            yield finding
        for id_, why in known.problems.items():
            advice = "Correct its definition or its connection."
            yield problem(f"integration {id_}", f"It cannot be collected: {why}", advice)
        for finding in check_clocks(ahead | hosts):
            yield finding


async def _round_trip(database: Database) -> Finding:
    """Measure the fastest of a few trivial queries."""
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
    """Check the OpenID Connect provider's discovery document and keys."""
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

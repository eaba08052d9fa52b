"""State of the running service: failing sources, webhooks, workers, and its address."""

import time
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import httpx2

from factbook.clock import DAY, HOUR, MINUTE, SECOND, iso
from factbook.facts import health
from factbook.facts.datasource import DataSource
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.scheduling import runs
from factbook.settings import Settings
from factbook.storage import Database
from factbook.webhooks import store as webhooks
from factbook.webhooks.store import StoredWebhook

SOURCES: Final = "sources"
WEBHOOKS: Final = "webhooks"
WORKER: Final = "worker"
ADDRESS: Final = "address"
_LATE: Final = HOUR
_SOON: Final = 14 * DAY
_MOST_APART: Final = 5 * SECOND


async def sources(
    database: Database, collected: Sequence[DataSource], now: int
) -> AsyncIterator[Finding]:
    """Sources that are down, late, or whose credential ends soon."""
    known, fine = await runs.health(database), 0
    for source in collected:
        one = known.get(source.id)
        if one is not None and one.down_since is not None:
            error = one.last.error if one.last else None
            what = f"{source.id} brings nothing since {iso(one.down_since)}: {error}."
            yield problem(SOURCES, what, "See its integration below, then collect it again.")
            continue
        due = health.next_run(source, one, now)
        ends = one.credential_expires_at if one else None
        if ends is not None and ends < now + _SOON:
            what = f"The credential of {source.id} ends {iso(ends)}."
            yield warning(SOURCES, what, "Give the integration another one before.")
        elif one is not None and due is not None and due < now - _LATE and not one.running:
            what = f"{source.id} was to be collected at {iso(due)} and was not."
            yield warning(SOURCES, what, "Look whether `serve` or a worker runs and collects.")
        else:
            fine += 1
    if not collected:
        yield ok(SOURCES, "No source is collected.")
    elif fine:
        yield ok(SOURCES, f"{fine} of {len(collected)} collected sources are well.")


async def hooks(database: Database) -> AsyncIterator[Finding]:
    """Findings on webhooks that are disabled, or whose last message failed."""
    found = await webhooks.listed(database)
    for one in found:
        if one.disabled_at is not None:
            what = f"The {_named(one)} is disabled since {iso(one.disabled_at)}: {one.error}."
            yield problem(WEBHOOKS, what, "Mend the receiver, then enable the webhook.")
        elif one.waiting:
            what = (
                f"{one.waiting} messages for the {_named(one)} wait for another try: {one.error}."
            )
            yield warning(WEBHOOKS, what, "Mend the receiver before they are given up.")
    if all(one.disabled_at is None and not one.waiting for one in found):
        yield ok(WEBHOOKS, f"{len(found)} webhooks, none of them behind.")


def _named(webhook: StoredWebhook) -> str:
    """Its id and its host: whoever knows the rest of an address can often send to it."""
    url = urlsplit(webhook.url)
    host = url.netloc.rpartition("@")[2]
    return f"webhook {webhook.id} ({url.scheme}://{host})"


async def worker(database: Database, now: int) -> Finding:
    """Whether a process keeps house, which all that run take turns at."""
    row = await database.one("SELECT held_until FROM leases WHERE name = 'housekeeping'")
    if row is None:
        return warning(WORKER, "No process ever kept house here.", "Start `factbook serve`.")
    if row[0] < now - MINUTE:
        what = f"No process keeps house since {iso(row[0])} at the latest."
        return warning(WORKER, what, "Start `factbook serve`, or look into its log.")
    return ok(WORKER, "A process keeps house.")


async def address(settings: Settings, transport: httpx2.AsyncBaseTransport | None) -> Finding:
    """Check that a service answers at public_url, or at the host and port of the settings."""
    url = (settings.public_url or f"http://{_host(settings.host)}:{settings.port}").rstrip("/")
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


def _host(bound: str) -> str:
    """Host name under which the bound address can be reached from this machine."""
    try:
        address = ip_address(bound)
    except ValueError:
        return bound
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return bound if address.version == 4 else f"[{bound}]"


def clocks(ahead: dict[str, int]) -> list[Finding]:
    """Check other clocks against this one; `ahead` is in milliseconds, by their owners."""
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

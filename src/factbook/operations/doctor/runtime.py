"""The running service: sources, integrations, webhooks, workers, clocks, and its address."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import ip_address
from typing import Final

import httpx2

from factbook.clock import DAY, MINUTE, SECOND, iso
from factbook.datasources import trial
from factbook.datasources.trial import CredentialCheck, ProbeResult
from factbook.errors import FactbookError
from factbook.facts import freshness
from factbook.facts.datasource import DataSource
from factbook.integrations.integration import Integration
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Outcome
from factbook.scheduling import housekeeping, lease, runs
from factbook.scheduling.housekeeping import LARGEST_LEAP
from factbook.settings import Settings
from factbook.storage import Database
from factbook.telemetry.logs import redact_text
from factbook.webhooks import store
from factbook.webhooks.store import StoredWebhook

SOURCES: Final = "sources"
WEBHOOKS: Final = "webhooks"
WORKER: Final = "worker"
HOUSEKEEPING: Final = "housekeeping"
ADDRESS: Final = "address"
_SOON: Final = 14 * DAY
_MOST_ROUNDS: Final = 3
_MOST_APART: Final = 5 * SECOND

# Longer than any one call may take, and short enough for somebody who waits.
_SECONDS: Final = 45.0
_MOST_PLACES: Final = 8


async def check_sources(
    database: Database, collected: Sequence[DataSource], now: int
) -> AsyncIterator[Finding]:
    """Findings on sources that are down, late, or whose credential expires soon."""
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
    """Findings on what was given up because it ended its processes."""
    found = Counter(one.source_id for one in await runs.list_given_up_batches(database))
    for source_id, count in found.items():
        what = f"{count} batches of {source_id} were given up: each ended the processes it was in."
        advice = "The page of the source's runs lists them, and can try them again."
        yield problem(SOURCES, what, advice)


async def check_webhooks(database: Database) -> AsyncIterator[Finding]:
    """Findings on webhooks that are disabled, or whose last message failed."""
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
    """Check that a process does the housekeeping, at which all running ones take turns."""
    held_until = await lease.fetch_lease_end(database, "housekeeping")
    if held_until is None:
        return warning(WORKER, "No process ever kept house here.", "Start `factbook serve`.")
    if held_until < now - MINUTE:
        what = f"No process keeps house since {iso(held_until)} at the latest."
        return warning(WORKER, what, "Start `factbook serve`, or look into its log.")
    return ok(WORKER, "A process keeps house.")


async def check_housekeeping(database: Database, now: int) -> AsyncIterator[Finding]:
    """Findings on parts of the housekeeping that fail, or were missed for some rounds."""
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
    """Check that the clock is trusted, so that old data is deleted."""
    clock = await housekeeping.read_retention_clock(database)
    if (
        clock.refused_at is None
        and clock.trusted_at - DAY <= now <= clock.trusted_at + LARGEST_LEAP
    ):
        return ok(HOUSEKEEPING, f"What is old is deleted by the time {iso(clock.trusted_at)}.")
    what = (
        f"The clock shows {iso(now)}, and the last housekeeping was at {iso(clock.trusted_at)}, so "
        "the clock is not believed: nothing is deleted by a later time."
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
    """Host name under which the bound address can be reached from this machine."""
    try:
        address = ip_address(bound)
    except ValueError:
        return bound
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return bound if address.version == 4 else f"[{bound}]"


def check_clocks(ahead: dict[str, int]) -> list[Finding]:
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


async def check_integrations(
    database: Database,
    integrations: Sequence[Integration],
    client: Callable[[Integration], HttpClient],
    now: int,
) -> tuple[list[Finding], dict[str, int]]:
    """Findings of all integrations, asked concurrently; and the offsets of hosts' clocks."""
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
        # One that is wrong keeps nobody from hearing of the others.
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

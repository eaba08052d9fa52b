"""Permissions of each integration, and the facts that lack of them leaves unknown."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from factbook.datasources import probe
from factbook.datasources.probe import CredentialCheck, ProbeResult
from factbook.errors import FactbookError
from factbook.integrations.integration import Integration
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Outcome
from factbook.storage import Database
from factbook.telemetry.logs import redact_text

# Longer than any one call may take, and short enough for somebody who waits.
_SECONDS: Final = 45.0
_MOST_SHOWN: Final = 8


async def check(
    database: Database,
    integrations: Sequence[Integration],
    client: Callable[[Integration], HttpClient],
    now: int,
) -> tuple[list[Finding], dict[str, int]]:
    """Findings of all integrations, asked concurrently; and the offsets of hosts' clocks."""
    found = await asyncio.gather(*(_one(database, one, client, now) for one in integrations))
    ahead = {
        f"{one.source.id}'s host": shown.ahead
        for one, (_, checked) in zip(integrations, found, strict=True)
        for shown in (checked.shown if checked else [])
        if shown.ahead is not None
    }
    return [finding for findings, _ in found for finding in findings], ahead


async def _one(
    database: Database,
    integration: Integration,
    client: Callable[[Integration], HttpClient],
    now: int,
) -> tuple[list[Finding], CredentialCheck | None]:
    topic = f"integration {integration.source.id}"
    try:
        async with asyncio.timeout(_SECONDS):
            checked = await probe.check(database, integration, client(integration), now)
    except TimeoutError:
        advice = "Look whether the host can be reached from this machine."
        return [problem(topic, f"No answer within {_SECONDS:.0f} s.", advice)], None
    except FactbookError as error:
        return [problem(topic, error.message, "Mend its table in the settings.")], None
    except Exception as error:
        # One that is wrong keeps nobody from hearing of the others.
        what = f"It could not be looked at: {redact_text(repr(error))}."
        return [problem(topic, what, "Report it: that is a bug.")], None
    findings = [_probed(topic, shown) for shown in checked.shown if shown.missing]
    findings += _of_example(topic, checked)
    return findings or [_fine(topic, checked)], checked


def _fine(topic: str, checked: CredentialCheck) -> Finding:
    rights = ", ".join(shown.right for shown in checked.shown)
    if checked.example is not None:
        return ok(topic, f"Everything about {checked.example} can be read.")
    if not rights:
        what = "No entity in the catalog points to it, so nothing was asked."
        return warning(topic, what, "Push an entity with its annotation.")
    return ok(topic, f"It may read: {rights}.")


def _probed(topic: str, shown: ProbeResult) -> Finding:
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


def _of_example(topic: str, checked: CredentialCheck) -> list[Finding]:
    found = []
    denied = probe.of_reason(checked.missing, ("forbidden",))
    for reason, places in denied.items():
        what = f"{reason}. Unknown of {checked.example}: {_some(places)}."
        advice = "Give the credential the right; see Rights of the integration."
        found.append(problem(topic, what, advice))
    failed = probe.of_reason(checked.missing, ("upstream-error", "rate-limited"))
    for reason, places in failed.items():
        what = f"{reason}. Not answered of {checked.example}: {_some(places)}."
        found.append(warning(topic, what, "Try again; if it stays, look at the host."))
    gone = probe.of_reason(checked.missing, ("not-found",))
    for reason, places in gone.items():
        what = f"{reason}. {checked.example} points to nothing there: {_some(places)}."
        found.append(warning(topic, what, "Correct its annotation, or let the credential see it."))
    return found


def _some(places: list[str]) -> str:
    more = len(places) - _MOST_SHOWN
    return ", ".join(places[:_MOST_SHOWN]) + (f" and {more} more" if more > 0 else "")

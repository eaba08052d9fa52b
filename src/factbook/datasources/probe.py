"""Permissions of a source's credential: probe requests, and one entity as an example."""

import asyncio
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from factbook.catalog.store import collectable
from factbook.clock import SECOND
from factbook.datasources.memory import DatabaseMemory
from factbook.facts import entity_filter
from factbook.integrations.integration import Collected, Integration, Probe
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Answer, Missing
from factbook.storage import Database

# Entities that are looked at for an example, one of which points to something.
_LOOKED_AT: Final = 200


class ProbeResult(NamedTuple):
    """Result of one probe: the right, and the reason for a failure (None: it succeeded).

    `facts` are the places that are unknown without the right. `ahead` is the host's clock minus
    this one in milliseconds, if the host sends its time.
    """

    right: str
    missing: Missing | None
    facts: tuple[str, ...]
    ahead: int | None = None


class CredentialCheck(NamedTuple):
    """Results of all probes; `example` is the entity that was collected, if any.

    `missing` has the reasons for missing facts of the example by place, as stored.
    """

    shown: list[ProbeResult]
    example: str | None
    missing: dict[str, Missing]


async def check(
    database: Database, integration: Integration, client: HttpClient, now: int
) -> CredentialCheck:
    """Run the probes; nothing is stored. Collects an example where probes are not conclusive."""
    probes = integration.probes
    shown = list(await asyncio.gather(*(_shown(client, probe, now) for probe in probes)))
    refused = any(one.missing is not None and "" in one.facts for one in shown)
    if refused or not _depends(integration):
        return CredentialCheck(shown, None, {})
    found = await _example(database, integration)
    if found is None:
        return CredentialCheck(shown, None, {})
    ref, target = found
    memory = DatabaseMemory(database, integration.source.id, now)
    collected = await integration.collect([target], client, memory, now)
    return CredentialCheck(shown, ref, collected.get(target, Collected()).missing)


def _depends(integration: Integration) -> bool:
    """Return true if rights differ from target to target."""
    return integration.read is not None or not integration.probes


async def _shown(client: HttpClient, probe: Probe, now: int) -> ProbeResult:
    asked = client.further[probe.further] if probe.further else client
    method = "GET" if probe.json is None else "POST"
    answer = await asked.request(
        method,
        probe.target,
        probe.json,
        query=probe.query,
        headers=probe.headers,
        budget=probe.budget,
        attempts=1,
    )
    fine = answer.ok or answer.status in probe.also
    return ProbeResult(
        probe.right, None if fine else answer.missing, probe.facts, _ahead(answer, now)
    )


async def _example(database: Database, integration: Integration) -> tuple[str, str] | None:
    """The first entity that points to something at this host: its reference and target."""
    filters = integration.source.selection
    where = collectable.EVERYTHING if filters is None else entity_filter.filter_condition(filters)
    rows = await database.all(*collectable.page(where, 0, _LOOKED_AT))
    for _, ref, entity in collectable.read(rows):
        target = integration.target(entity)
        if isinstance(target, str):
            return ref, target
    return None


def _ahead(answer: Answer, now: int) -> int | None:
    try:
        moment = parsedate_to_datetime(answer.headers["date"])
        return round(moment.timestamp() * SECOND) - now
    except (KeyError, ValueError, OverflowError):
        return None


def of_reason(missing: dict[str, Missing], reasons: Sequence[str]) -> dict[str, list[str]]:
    """The places that are missing for one of these reasons, by the full text of the reason."""
    found: dict[str, list[str]] = {}
    for place, one in sorted(missing.items()):
        if one.reason.partition(":")[0] in reasons:
            found.setdefault(one.reason, []).append(place or "everything")
    return found

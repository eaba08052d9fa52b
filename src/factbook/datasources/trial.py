"""Trials of a definition on one entity, and of the permissions of a source's credential."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.filters import make_filter_condition, matches_filter
from factbook.catalog.store import stored_entities
from factbook.clock import SECOND
from factbook.datasources import define
from factbook.datasources.clients import Connect, DatabaseMemory
from factbook.datasources.custom import definition, sources
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.custom.sources import SourceReply
from factbook.datasources.registry import Registry
from factbook.datasources.stores import source_store
from factbook.errors import InputError
from factbook.integrations.integration import Collected, Integration, Probe
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing
from factbook.storage import Database

# Largest part of an answer that is shown, in bytes.
LARGEST_SHOWN = 64 * 1024
# Entities searched for an example with a target.
_ENTITIES_EXAMINED: Final = 200


class TrialResponse(NamedTuple):
    """Response to a source: the HTTP `status` where there is one, and the body as text."""

    status: int | None
    content_type: str | None
    body: str
    truncated: bool


class TrialResult(NamedTuple):
    """Result of a trial; `reasons` explain missing values by fact, or by "" for all of them.

    `request` omits the parts added by the connection.
    """

    request: Mapping[str, Any] | None
    answer: TrialResponse | None
    facts: Mapping[str, Any]
    reasons: Mapping[str, str]


async def try_definition(
    database: Database,
    registry: Registry,
    connect: Connect,
    made: CustomSourceDefinition,
    entity: str,
) -> tuple[str, TrialResult]:
    """The entity's full reference, and the result of a trial collection; nothing is stored.

    Raises NotFoundError, and InputError if the connection does not permit the request, or if the
    entity and the source have different owners.
    """
    ref = str(refs.parse_ref(entity, kind="component"))
    found = await stored_entities.read_collectable(database, ref)
    if found is None:
        raise await stored_entities.make_unknown_error(database, ref)
    if not matches_filter(made.source.ownership, found):
        about = f"The data source {made.source.id} is only about entities of {made.source.owner}"
        raise InputError(f"{about}, and leaves {ref} out.")
    await registry.latest()
    return ref, await _trial_result(made, found, registry, connect)


async def find_definition_to_try(
    database: Database,
    registry: Registry,
    source_id: str,
    document: dict[str, Any] | None,
    max_depth: int,
) -> CustomSourceDefinition:
    """The definition in a document, or the stored one of the source, preferring its draft.

    Raises the errors of `read_source`, and NotFoundError.
    """
    if document is not None:
        return await define.read_source(document, registry, max_depth, source_id)
    stored = await source_store.existing(database, source_id)
    return await asyncio.to_thread(definition.parse_source_definition, stored.written)


async def _trial_result(
    definition: CustomSourceDefinition,
    entity: Mapping[str, Any],
    registry: Registry,
    connect: Connect,
) -> TrialResult:
    integration = sources.build_integration(definition, registry.connections, registry.files)
    if integration is None:
        return TrialResult(
            None, None, {}, {"": "not-applicable: the facts of this source are pushed"}
        )
    target = integration.target(entity)
    if isinstance(target, Missing):
        return TrialResult(None, None, {}, {"": target.reason})
    if definition.type == "entity":
        # A run reads only the members that the extractors name; a trial shows all of them.
        reply = SourceReply(document=entity)
    else:
        read = sources.build_reader(definition, registry.connections, registry.files)
        reply = await read(target, partial(connect, integration))
    found = await sources.extract_facts(definition, reply)
    checked = definition.source.check(found.values)
    reasons = {**checked.reasons, **found.reasons}
    return TrialResult(reply.request, _trial_response(reply), checked.stored, reasons)


def _trial_response(reply: SourceReply) -> TrialResponse | None:
    body, type_ = reply.body, reply.content_type
    if reply.document is not None:
        body, type_ = msgspec.json.encode(reply.document), "application/json"
    if body is None:
        return None
    text = body[:LARGEST_SHOWN].decode("utf-8", errors="replace")
    return TrialResponse(reply.status, type_, text, len(body) > LARGEST_SHOWN)


class ProbeResult(NamedTuple):
    """Result of one probe: the right, and the reason for a failure (None: it succeeded).

    `facts` are the places that are unknown without the right. `ahead` is the host's clock minus
    the local clock in milliseconds, if the host sends its time.
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


async def check_credential(
    database: Database, integration: Integration, client: HttpClient, now: int
) -> CredentialCheck:
    """Run the probes; nothing is stored. Collects an example where probes are not conclusive."""
    probes = integration.probes
    shown = list(await asyncio.gather(*(_run_probe(client, probe, now) for probe in probes)))
    refused = any(one.missing is not None and "" in one.facts for one in shown)
    depends_on_target = integration.read is not None or not integration.probes
    if refused or not depends_on_target:
        return CredentialCheck(shown, None, {})
    example = await _find_example(database, integration)
    if example is None:
        return CredentialCheck(shown, None, {})
    ref, target = example
    memory = DatabaseMemory(database, integration.source.id, now)
    collected = await integration.collect([target], client, memory, now)
    return CredentialCheck(shown, ref, collected.get(target, Collected()).missing)


async def _run_probe(client: HttpClient, probe: Probe, now: int) -> ProbeResult:
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
    ahead = None
    with suppress(KeyError, ValueError, OverflowError):
        moment = parsedate_to_datetime(answer.headers["date"])
        ahead = round(moment.timestamp() * SECOND) - now
    return ProbeResult(probe.right, None if fine else answer.missing, probe.facts, ahead)


async def _find_example(database: Database, integration: Integration) -> tuple[str, str] | None:
    """The first entity with a target at this host: its reference and target."""
    filters = integration.source.selection
    where = stored_entities.EVERY_ENTITY if filters is None else make_filter_condition(filters)
    rows = await database.all(*stored_entities.entity_page_sql(where, 0, _ENTITIES_EXAMINED))
    for _, ref, entity in stored_entities.decode_collectable(rows):
        target = integration.target(entity)
        if isinstance(target, str):
            return ref, target
    return None


def places_of_reason(missing: dict[str, Missing], reasons: Sequence[str]) -> dict[str, list[str]]:
    """The places that are missing for one of these reasons, by the full text of the reason."""
    found: dict[str, list[str]] = {}
    for place, one in sorted(missing.items()):
        if one.reason.partition(":")[0] in reasons:
            found.setdefault(one.reason, []).append(place or "everything")
    return found

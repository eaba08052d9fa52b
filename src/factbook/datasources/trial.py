"""Trial of a definition on one entity: request, response and extracted facts."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref, collectable
from factbook.datasources import custom, define
from factbook.datasources.clients import Connect
from factbook.datasources.custom import CustomSourceDefinition, fact_extraction
from factbook.datasources.custom.fact_extraction import SourceReply
from factbook.datasources.registry import Registry
from factbook.datasources.source_store import source_store
from factbook.errors import InputError
from factbook.facts import entity_filter
from factbook.outbound.outcomes import Missing
from factbook.storage import Database

# Bytes of an answer that are shown.
SHOWN = 64 * 1024


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


async def tried(
    database: Database,
    registry: Registry,
    connect: Connect,
    made: CustomSourceDefinition,
    entity: str,
) -> tuple[str, TrialResult]:
    """The entity's full reference, and the result of a trial collection; nothing is stored.

    Raises InputError for a connection that does not permit it, and for an entity of another owner
    than the source has, and NotFoundError.
    """
    ref = str(refs.parse(entity, kind="component"))
    found = await collectable.entity(database, ref)
    if found is None:
        raise await by_ref.unknown(database, ref)
    if not entity_filter.matches_filter(made.source.ownership, found):
        about = f"The data source {made.source.id} is only about entities of {made.source.owner}"
        raise InputError(f"{about}, and leaves {ref} out.")
    await registry.latest()
    return ref, await _result(made, found, registry, connect)


async def to_try(
    database: Database,
    registry: Registry,
    source_id: str,
    document: dict[str, Any] | None,
    max_depth: int,
) -> CustomSourceDefinition:
    """The definition in a document, or the stored one of the source, preferring its draft.

    Raises the errors of `define.read`, and NotFoundError.
    """
    if document is not None:
        return await define.read(document, registry, max_depth, source_id)
    stored = await source_store.existing(database, source_id)
    return await asyncio.to_thread(custom.parse, stored.written)


async def _result(
    definition: CustomSourceDefinition,
    entity: Mapping[str, Any],
    registry: Registry,
    connect: Connect,
) -> TrialResult:
    integration = custom.integration(definition, registry.connections, registry.files)
    if integration is None:
        return TrialResult(
            None, None, {}, {"": "not-applicable: the facts of this source are pushed"}
        )
    target = integration.target(entity)
    if isinstance(target, Missing):
        return TrialResult(None, None, {}, {"": target.reason})
    if definition.type == "entity":
        # A run reads the members alone that the extractors name; a trial shows all of them.
        reply = SourceReply(document=entity)
    else:
        read = custom.reader(definition, registry.connections, registry.files)
        reply = await read(target, partial(connect, integration))
    found = await fact_extraction.facts_in(definition, reply)
    checked = definition.source.check(found.values)
    reasons = {**checked.reasons, **found.reasons}
    return TrialResult(reply.request, _shown(reply), checked.stored, reasons)


def _shown(reply: SourceReply) -> TrialResponse | None:
    body, type_ = reply.body, reply.content_type
    if reply.document is not None:
        body, type_ = msgspec.json.encode(reply.document), "application/json"
    if body is None:
        return None
    text = body[:SHOWN].decode("utf-8", errors="replace")
    return TrialResponse(reply.status, type_, text, len(body) > SHOWN)

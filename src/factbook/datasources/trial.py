"""Trial of a definition on one entity: request, response and extracted facts."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from factbook.datasources import custom
from factbook.datasources.custom import (
    CustomSourceDefinition,
    Files,
    SourceConnection,
    Unusable,
    fact_extraction,
)
from factbook.datasources.custom.fact_extraction import SourceReply
from factbook.integrations.integration import Integration
from factbook.outbound import HttpClient
from factbook.outbound.outcomes import Missing

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
    definition: CustomSourceDefinition,
    entity: Mapping[str, Any],
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
    connect: Callable[[Integration], HttpClient],
) -> TrialResult:
    """Collect for one entity, and store nothing.

    Raises InputError if the definition's connection is not configured, or does not permit it.
    """
    integration = custom.integration(definition, connections, files)
    if integration is None:
        return TrialResult(
            None, None, {}, {"": "not-applicable: the facts of this source are pushed"}
        )
    target = integration.target(entity)
    if isinstance(target, Missing):
        return TrialResult(None, None, {}, {"": target.reason})
    read = custom.reader(definition, connections, files)
    reply = await read(target, connect(integration))
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

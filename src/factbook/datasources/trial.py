"""Trial of a definition on one entity: request, response and extracted facts."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from factbook.datasources import custom
from factbook.datasources.custom import (
    CustomSourceDefinition,
    File,
    Files,
    SourceConnection,
    Unusable,
    fact_extraction,
    local_sources,
)
from factbook.datasources.custom import http_source as requests
from factbook.facts.schema import CheckedValues
from factbook.integrations.integration import Collected, Integration
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
    if definition.type == "http":
        assert definition.request is not None, "an http source has a request"
        connection = requests.connection_of(definition.request, connections)
        return await _asked(definition, target, connect(integration), connection)
    if definition.type == "entity":
        return await _of_document(definition, entity, None)
    if definition.type == "repository-file":
        return await _read(definition, target, files)
    return await _listed(definition, target, files)


async def _asked(
    definition: CustomSourceDefinition,
    target: str,
    client: HttpClient,
    connection: SourceConnection,
) -> TrialResult:
    request = msgspec.json.decode(target)
    answer = await requests.ask(target, client, connection)
    shown = _shown(answer.body, answer.status, answer.headers.get("content-type"))
    found = (
        await fact_extraction.in_thread(fact_extraction.from_body, definition, answer.body)
        if answer.ok
        else fact_extraction.nothing(answer.missing)
    )
    return _tried(definition, found, request, shown if answer.status else None)


async def _read(definition: CustomSourceDefinition, target: str, files: Files) -> TrialResult:
    place = File(*msgspec.json.decode(target, type=tuple[str, str, str]))
    request = {"path": place.path}
    body = await files.read(place)
    if isinstance(body, Missing):
        return _tried(definition, fact_extraction.nothing(body), request, None)
    found = await fact_extraction.in_thread(fact_extraction.from_body, definition, body)
    return _tried(definition, found, request, _shown(body))


async def _listed(definition: CustomSourceDefinition, target: str, files: Files) -> TrialResult:
    ref, directory = msgspec.json.decode(target, type=tuple[str, str])
    request = {"path": directory}
    paths = await files.paths(ref)
    if isinstance(paths, Missing):
        return _tried(definition, fact_extraction.nothing(paths), request, None)
    return await _of_document(definition, local_sources.document_of(paths, directory), request)


async def _of_document(
    definition: CustomSourceDefinition, document: Any, request: Mapping[str, Any] | None
) -> TrialResult:
    found = await fact_extraction.in_thread(fact_extraction.from_document, definition, document)
    body = msgspec.json.encode(document)
    return _tried(definition, found, request, _shown(body, content_type="application/json"))


def _tried(
    definition: CustomSourceDefinition,
    found: Collected,
    request: Mapping[str, Any] | None,
    answer: TrialResponse | None,
) -> TrialResult:
    checked: CheckedValues = definition.source.check(found.values)
    return TrialResult(request, answer, checked.stored, {**checked.reasons, **found.reasons})


def _shown(
    body: bytes, status: int | None = None, content_type: str | None = None
) -> TrialResponse:
    text = body[:SHOWN].decode("utf-8", errors="replace")
    return TrialResponse(status, content_type, text, len(body) > SHOWN)

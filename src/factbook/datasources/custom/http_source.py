"""Sources over HTTP: one request to a connection for all entities whose requests are equal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from factbook.datasources.custom import fact_extraction, templates
from factbook.datasources.custom.connections import SourceConnection, Unusable, usable_by
from factbook.datasources.custom.definition import CustomSourceDefinition, RequestTemplate
from factbook.datasources.custom.fact_extraction import ClientMaker, SourceReply
from factbook.datasources.custom.templates import NoValueError, Template
from factbook.errors import InputError, suggestion
from factbook.integrations.integration import Collected, Integration, split_targets
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Answer, Missing, Outcome

# One after another, so that one body is in memory, and a host that lets every call run into its
# timeout is given up within a batch's time.
_BATCH: Final = 4
_ATTEMPTS: Final = 2
_REFUSED_AT_ONCE: Final = 10_000


class Rendered(msgspec.Struct, frozen=True):
    """Request with the values of an entity filled in; its JSON is a target of the source."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None

    @property
    def target(self) -> str:
        return msgspec.json.encode(self).decode()


def integration(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> Integration:
    """The integration of an http source; raises InputError if its connection does not allow it.

    Of one whose owner may not use the connection, each run ends with this reason, without a call.
    """
    request = definition.request
    assert request is not None, "an http source has a request"
    if refusal := refusal_of(definition, connections):
        return _refused(definition, refusal)
    connection = connection_of(definition, connections)
    name = f"connection-{request.connection}"
    return Integration(
        source=definition.source,
        fills=(),
        credential=name,
        edition=connection.edition,
        authorize=lambda _: connection.credential(name),
        base_url=connection.base_url,
        at_once=connection.at_once,
        calls_at_once=connection.at_once,
        target=partial(_target, request),
        batches=partial(split_targets, size=_BATCH),
        collect=partial(fact_extraction.collect, definition, partial(reply, connection)),
    )


def refusal_of(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> str | None:
    """The reason why the owner may not use the connection; None if it may, or if there is no owner.

    It is the same for a connection that is not there, so that it tells of none.
    """
    owner, request = definition.source.owner, definition.request
    if owner is None or request is None:
        return None
    if request.connection in usable_by(owner, connections):
        return None
    return f"the connection {request.connection!r} is not shared with {owner}"


def connection_of(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> SourceConnection:
    """The connection of a source; raises InputError if there is none that allows its request."""
    request = definition.request
    assert request is not None, "an http source has a request"
    if refusal := refusal_of(definition, connections):
        raise InputError(refusal)
    connection = connections.get(request.connection)
    if connection is None:
        known = suggestion(request.connection, sorted(connections)) or " There are none."
        raise InputError(f"There is no connection {request.connection!r}.{known}")
    if isinstance(connection, Unusable):
        raise InputError(connection.problem)
    if request.method not in connection.methods:
        raise InputError(f"The connection {request.connection!r} does not allow {request.method}.")
    own = sorted(map(str.lower, connection.headers))
    if both := [name for name in own if name in map(str.lower, request.headers)]:
        raise InputError(f"The connection {request.connection!r} sends {', '.join(both)} itself.")
    return connection


def rendered(request: RequestTemplate, entity: Mapping[str, Any]) -> Rendered | Missing:
    """The request for an entity, or the value that the entity lacks."""
    try:
        path = request.path.render(entity, templates.in_path)
        query = {
            name: one.render(entity, templates.as_it_is) for name, one in request.query.items()
        }
        headers = {
            name.lower(): one.render(entity, templates.in_header)
            for name, one in request.headers.items()
        }
        body = _body(request.body, entity)
    except NoValueError as error:
        return error.missing
    mark = "&" if "?" in path else "?"
    whole = f"{path}{mark}{urlencode(query)}" if query else path
    return Rendered(request.method, whole, headers, body)


async def reply(connection: SourceConnection, target: str, connect: ClientMaker) -> SourceReply:
    """The connection's reply to a target."""
    answer = await _asked(target, connect(), connection)
    return SourceReply(
        msgspec.json.decode(target),
        answer.body if answer.status else None,
        missing=None if answer.ok else answer.missing,
        status=answer.status,
        content_type=answer.headers.get("content-type"),
    )


async def _asked(target: str, client: HttpClient, connection: SourceConnection) -> Answer:
    """The connection's answer to a target, unless it repeats the connection's secrets."""
    asked = msgspec.json.decode(target, type=Rendered)
    answer = await client.request(
        asked.method,
        asked.path,
        asked.body,
        headers=asked.headers,
        decode=False,
        attempts=_ATTEMPTS,
    )
    # All that is ever shown of an answer. An answer may be long, so others are not kept waiting.
    shown = b"\n".join([answer.headers.get("content-type", "").encode(), answer.body])
    if not await fact_extraction.in_thread(connection.is_repeated, shown):
        return answer
    bare = Answer(answer.outcome, answer.status, detail=answer.detail, retry_at=answer.retry_at)
    detail = f"{client.host}: the answer repeats what the connection keeps"
    return replace(bare, outcome=Outcome.TRANSIENT, detail=detail) if answer.ok else bare


def _refused(definition: CustomSourceDefinition, refusal: str) -> Integration:
    """An integration that calls nobody and has no credential."""
    missing = Missing(Outcome.DENIED, refusal)

    async def collect(targets: Sequence[str], *_: object) -> dict[str, Collected]:
        return {target: Collected(missing={"": missing}) for target in targets}

    assert definition.request is not None, "an http source has a request"
    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        target=partial(_target, definition.request),
        batches=partial(split_targets, size=_REFUSED_AT_ONCE),
        collect=collect,
    )


def _target(request: RequestTemplate, entity: Mapping[str, Any]) -> str | Missing:
    found = rendered(request, entity)
    return found if isinstance(found, Missing) else found.target


def _body(body: Any, entity: Mapping[str, Any]) -> Any:
    match body:
        case Template():
            return body.render(entity, templates.as_it_is)
        case dict():
            return {key: _body(one, entity) for key, one in body.items()}
        case list():
            return [_body(one, entity) for one in body]
    return body

"""Custom sources as integrations: over HTTP, or of entities and files of repositories."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.datasources.custom import documents, extraction
from factbook.datasources.custom.connections import SourceConnection, Unusable, list_usable
from factbook.datasources.custom.definition import (
    CustomSourceDefinition,
    RequestTemplate,
)
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.datasources.custom.extraction import Expression, NoValueError, Template, keep_value
from factbook.errors import InputError, suggestion
from factbook.integrations.integration import Collected, Integration, split_targets
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Answer, Missing, Outcome

T = TypeVar("T")
# As many as batches that one process works on, so that none waits for another's long extraction.
# They are nobody else's: those of the event loop look up the names of hosts.
_EXTRACTION_THREADS: Final = ThreadPoolExecutor(8, thread_name_prefix="extraction")
# Larger ones are read one after another, so that their documents are not in memory together.
_LARGE_BODY: Final = 512 * 1024
_HAS_ERRORS: Final = Missing(Outcome.INCOMPLETE, "the answer has errors instead of the value")
_large_lock = threading.Lock()
# One after another, so that one body is in memory, and a host that lets every call run into its
# timeout is given up within a batch's time.
_REQUESTS_IN_BATCH: Final = 4
_MOST_ATTEMPTS: Final = 2
_REFUSED_IN_BATCH: Final = 10_000
# One after another, so that one body is in memory, and a batch ends in its time.
_FILES_IN_BATCH: Final = 3
_BATCHES_AT_ONCE: Final = 4
# So few that a batch ends in its time, however long each takes.
_DOCUMENTS_IN_BATCH: Final = 50
# With these an expression sees more than the members that it names.
_WIDE_EXPRESSION: Final = re.compile(r"[@*\\]")


class SourceReply(NamedTuple):
    """Reply to a source for one target: a body as it came, or a document that was made here.

    `request` is the request as a trial shows it, and `missing` the reason that there is nothing to
    read. `status` and `content_type` are those of HTTP.
    """

    request: dict[str, Any] | None = None
    body: bytes | None = None
    document: Any = None
    missing: Missing | None = None
    status: int | None = None
    content_type: str | None = None


# Makes the client of a source on its first use: files and entities need none.
ClientMaker = Callable[[], HttpClient]
Reader = Callable[[str, ClientMaker], Awaitable[SourceReply]]


async def collect_targets(
    definition: CustomSourceDefinition,
    read: Reader,
    targets: Sequence[str],
    client: HttpClient,
    _memory: Memory,
    _now: int,
) -> dict[str, Collected]:
    """The facts of each target, one after another."""
    return {
        target: await extract_facts(definition, await read(target, lambda: client))
        for target in targets
    }


async def extract_facts(definition: CustomSourceDefinition, reply: SourceReply) -> Collected:
    """The facts in a reply, extracted in a thread."""
    if reply.missing is not None:
        return Collected(missing={"": reply.missing})
    if reply.body is not None:
        return await run_in_thread(facts_of_body, definition, reply.body)
    return await run_in_thread(facts_of_document, definition, reply.document)


async def run_in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """The result of a function, run in a thread so that others need not wait."""
    return await asyncio.get_running_loop().run_in_executor(
        _EXTRACTION_THREADS, partial(work, *arguments)
    )


def facts_of_body(definition: CustomSourceDefinition, body: bytes) -> Collected:
    """The facts in an answer's body."""
    with _large_lock if len(body) > _LARGE_BODY else nullcontext():
        try:
            return facts_of_document(definition, documents.read_body(body, definition.format))
        except UnreadableDocumentError as error:
            missing = Missing(Outcome.TRANSIENT, f"the answer {error}")
            return Collected(missing={"": missing})


def facts_of_document(definition: CustomSourceDefinition, document: Any) -> Collected:
    """The facts in a document."""
    collected = Collected()
    # Of GraphQL, and of others that answer every request with 200.
    is_error = (
        definition.type == "http"
        and isinstance(document, dict)
        and bool(document.get("errors") or document.get("error"))
    )
    if is_error and "data" in document and document["data"] is None:
        return Collected(missing={"": _HAS_ERRORS})
    for name, value in extraction.extract_values(definition.extractors, document).items():
        if is_error and value is extraction.NO_SUCH_VALUE:
            collected.missing[name] = _HAS_ERRORS
        elif isinstance(value, Missing):
            is_own = value.outcome is Outcome.BAD_DEFINITION
            where = f"schema.{name}.extract: " if is_own else ""
            collected.missing[name] = value._replace(detail=f"{where}{value.detail}")
        else:
            collected.values[name] = value
    return collected


class Rendered(msgspec.Struct, frozen=True):
    """Request with the values of an entity filled in; its JSON is a target of the source."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any = None

    @property
    def target(self) -> str:
        return msgspec.json.encode(self).decode()


def http_integration(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> Integration:
    """The integration of an http source; raises InputError if its connection does not allow it.

    Of one whose owner may not use the connection, each run ends with this reason, without a call.
    """
    request = definition.request
    assert request is not None, "an http source has a request"
    if refusal := connection_refusal(definition, connections):
        return _refused_integration(definition, refusal)
    connection = find_source_connection(definition, connections)
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
        target=partial(_request_target, request),
        batches=partial(split_targets, size=_REQUESTS_IN_BATCH),
        collect=partial(collect_targets, definition, partial(request_reply, connection)),
    )


def connection_refusal(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> str | None:
    """The reason why the owner may not use the connection; None if it may, or if there is no owner.

    It is the same for a connection that is not there, so that it tells of none.
    """
    owner, request = definition.source.owner, definition.request
    if owner is None or request is None:
        return None
    if request.connection in list_usable(owner, connections):
        return None
    return f"the connection {request.connection!r} is not shared with {owner}"


def find_source_connection(
    definition: CustomSourceDefinition, connections: Mapping[str, SourceConnection | Unusable]
) -> SourceConnection:
    """The connection of a source; raises InputError if there is none that allows its request."""
    request = definition.request
    assert request is not None, "an http source has a request"
    if refusal := connection_refusal(definition, connections):
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


def render_request(request: RequestTemplate, entity: Mapping[str, Any]) -> Rendered | Missing:
    """The request for an entity, or the value that the entity lacks."""
    try:
        path = request.path.render(entity, extraction.escape_path)
        query = {
            name: one.render(entity, extraction.keep_value) for name, one in request.query.items()
        }
        headers = {
            name.lower(): one.render(entity, extraction.escape_header)
            for name, one in request.headers.items()
        }
        body = _render_body(request.body, entity)
    except NoValueError as error:
        return error.missing
    mark = "&" if "?" in path else "?"
    whole = f"{path}{mark}{urlencode(query)}" if query else path
    return Rendered(request.method, whole, headers, body)


async def request_reply(
    connection: SourceConnection, target: str, connect: ClientMaker
) -> SourceReply:
    """The connection's reply to a target."""
    answer = await _request_answer(target, connect(), connection)
    return SourceReply(
        msgspec.json.decode(target),
        answer.body if answer.status else None,
        missing=None if answer.ok else answer.missing,
        status=answer.status,
        content_type=answer.headers.get("content-type"),
    )


async def _request_answer(target: str, client: HttpClient, connection: SourceConnection) -> Answer:
    """The connection's answer to a target, unless it repeats the connection's secrets."""
    asked = msgspec.json.decode(target, type=Rendered)
    answer = await client.request(
        asked.method,
        asked.path,
        asked.body,
        headers=asked.headers,
        decode=False,
        attempts=_MOST_ATTEMPTS,
    )
    # All that is ever shown of an answer. An answer may be long, so others are not kept waiting.
    shown = b"\n".join([answer.headers.get("content-type", "").encode(), answer.body])
    if not await run_in_thread(connection.is_repeated, shown):
        return answer
    bare = Answer(answer.outcome, answer.status, detail=answer.detail, retry_at=answer.retry_at)
    detail = f"{client.host}: the answer repeats what the connection keeps"
    return replace(bare, outcome=Outcome.TRANSIENT, detail=detail) if answer.ok else bare


def _refused_integration(definition: CustomSourceDefinition, refusal: str) -> Integration:
    """An integration that calls nobody and has no credential."""
    missing = Missing(Outcome.DENIED, refusal)

    async def collect(targets: Sequence[str], *_: object) -> dict[str, Collected]:
        return {target: Collected(missing={"": missing}) for target in targets}

    assert definition.request is not None, "an http source has a request"
    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        target=partial(_request_target, definition.request),
        batches=partial(split_targets, size=_REFUSED_IN_BATCH),
        collect=collect,
    )


def _request_target(request: RequestTemplate, entity: Mapping[str, Any]) -> str | Missing:
    found = render_request(request, entity)
    return found if isinstance(found, Missing) else found.target


def _render_body(body: Any, entity: Mapping[str, Any]) -> Any:
    match body:
        case Template():
            return body.render(entity, extraction.keep_value)
        case dict():
            return {key: _render_body(one, entity) for key, one in body.items()}
        case list():
            return [_render_body(one, entity) for one in body]
    return body


class File(NamedTuple):
    """File of one repository at one code host; `target` is in that host's form."""

    host: str
    target: str
    path: str


class Files(Protocol):
    """Reader for files of repositories at whichever code host an entity points to."""

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The code host's source and the target there, or the reason that there is none."""

    async def read(self, file: File) -> bytes | Missing:
        """The contents of a file on the default branch."""

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths of all files in the repository of the entity with this reference."""


def local_integration(definition: CustomSourceDefinition, files: Files) -> Integration:
    """The integration of a source of files, of directories or of entities."""
    is_file = definition.type == "repository-file"
    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        at_once=_BATCHES_AT_ONCE if is_file else 1,
        target=_target_finder(definition, files),
        batches=partial(split_targets, size=_FILES_IN_BATCH if is_file else _DOCUMENTS_IN_BATCH),
        collect=partial(collect_targets, definition, local_reader(definition, files)),
    )


def local_reader(definition: CustomSourceDefinition, files: Files) -> Reader:
    """The reader of the targets of such a source."""
    match definition.type:
        case "repository-file":
            return partial(_read_file, files)
        case "repository-directory":
            return partial(_read_directory, files)
    return _read_entity


async def _read_file(files: Files, target: str, _connect: ClientMaker) -> SourceReply:
    place = File(*msgspec.json.decode(target, type=tuple[str, str, str]))
    request, body = {"path": place.path}, await files.read(place)
    if isinstance(body, Missing):
        return SourceReply(request, missing=body)
    return SourceReply(request, body)


async def _read_directory(files: Files, target: str, _connect: ClientMaker) -> SourceReply:
    ref, directory = msgspec.json.decode(target, type=tuple[str, str])
    request, paths = {"path": directory}, await files.paths(ref)
    if isinstance(paths, Missing):
        return SourceReply(request, missing=paths)
    prefix = f"{directory}/" if directory else ""
    below = [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
    return SourceReply(request, document={"paths": below, "count": len(below)})


async def _read_entity(target: str, _connect: ClientMaker) -> SourceReply:
    return SourceReply(document=msgspec.json.decode(target))


def repository_path(definition: CustomSourceDefinition, entity: Mapping[str, Any]) -> str | Missing:
    """The path that the source reads in an entity's repository."""
    assert definition.path is not None, "a source of files has a path"
    try:
        path = definition.path.render(entity, keep_value).strip("/")
    except NoValueError as error:
        return error.missing
    if (path or definition.type == "repository-file") and {"", ".", ".."} & set(path.split("/")):
        return Missing(Outcome.NO_ANNOTATION, "what the path names is not inside the repository")
    return Missing(Outcome.NO_ANNOTATION, "a path that cannot be") if "\0" in path else path


def _target_finder(
    definition: CustomSourceDefinition, files: Files
) -> Callable[[Mapping[str, Any]], str | Missing]:
    if definition.type == "entity":
        return partial(_seen_members, _seen_predicate(definition))
    return partial(_repository_place, definition, files)


def _seen_members(is_seen: Callable[[str], bool], entity: Mapping[str, Any]) -> str:
    """The part of an entity that the source reads, so that a run needs nothing else of it.

    Facts are not extracted from it at once, as that would delay the planning of a run.
    """
    seen = {name: part for name, part in entity.items() if is_seen(name)}
    return msgspec.json.encode(seen).decode()


def _repository_place(
    definition: CustomSourceDefinition, files: Files, entity: Mapping[str, Any]
) -> str | Missing:
    """The file or directory that the source reads in an entity's repository."""
    place = files.locate(entity)
    if isinstance(place, Missing):
        return place
    path = repository_path(definition, entity)
    if isinstance(path, Missing):
        return path
    parts = (
        (*place, path)
        if definition.type == "repository-file"
        else (_entity_reference(entity), path)
    )
    return msgspec.json.encode(parts).decode()


def _entity_reference(entity: Mapping[str, Any]) -> str:
    metadata = entity["metadata"]
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    return str(EntityRef.of(entity["kind"], namespace, metadata["name"]))


def _seen_predicate(definition: CustomSourceDefinition) -> Callable[[str], bool]:
    """Predicate for the members of an entity that the extractors may read."""
    extractors = definition.extractors.values()
    texts = [one.text for one in extractors if isinstance(one, Expression)]
    if len(texts) < len(extractors) or any(map(_WIDE_EXPRESSION.search, texts)):
        return lambda _: True
    return lambda name: any(name in text for text in texts)


def build_integration(
    definition: CustomSourceDefinition,
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
) -> Integration | None:
    """The integration of a definition; None for a pushed source.

    One whose connection its owner may not use calls nobody. Raises InputError if its connection is
    missing, unusable, or does not allow its method.
    """
    match definition.type:
        case "http":
            return http_integration(definition, connections)
        case "push":
            return None
    return local_integration(definition, files)


def build_reader(
    definition: CustomSourceDefinition,
    connections: Mapping[str, SourceConnection | Unusable],
    files: Files,
) -> Reader:
    """The reader of the targets of a source that is collected; raises InputError as above."""
    if definition.request is not None:
        connection = find_source_connection(definition, connections)
        return partial(request_reply, connection)
    return local_reader(definition, files)

"""Custom sources as integrations that read HTTP, entities or repository files.

Connections are the hosts they may call. Answers that repeat a secret are refused.
"""

import asyncio
import base64
import binascii
import hashlib
import re
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from html.entities import html5
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec
from msgspec import Meta

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.datasources.custom import documents, extraction
from factbook.datasources.custom.definition import (
    CustomSourceDefinition,
    RequestTemplate,
)
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.datasources.custom.extraction import Expression, NoValueError, Template, keep_value
from factbook.errors import ConfigurationError, InputError, suggestion
from factbook.integrations.integration import Collected, Integration, split_targets
from factbook.outbound.cache import Memory
from factbook.outbound.client import Credential, HttpClient, extract_host
from factbook.outbound.outcomes import Answer, Missing, Outcome
from factbook.settings import option_tables

# Many answers contain shorter words.
SHORTEST_SECRET: Final = 8
# No host escapes a text more often than this by accident.
_MOST_NESTED: Final = 3
# Hosts may repeat parts of a cookie or credential separately.
_SEPARATORS: Final = re.compile(r'[\s;,="]+')
# UTF-16 has NUL between ASCII letters.
_BLANKS: Final = b" \t\r\n\f\v\0"
_ONE_ALPHABET: Final = bytes.maketrans(b"-_", b"+/")
# Compiled when used: that takes two milliseconds of a start.
_ESCAPE: Final = (
    rb"(%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[^ux])"
    rb"|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,12});?)"
)
_MARKS: Final = (b"%", b"\\", b"&")
MOST_OWNERS: Final = 500
_CONNECTION_METHODS: Final = frozenset({"GET", "POST"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[\x20-\x7e]*")


class Needles(NamedTuple):
    """Patterns to search for: `exact`, and `folded` to lower case where case does not matter."""

    exact: frozenset[bytes]
    folded: frozenset[bytes]


def build_needles(values: Iterable[str]) -> Needles:
    """The needles for every part of header values that is long enough to be a secret."""
    exact: set[bytes] = set()
    folded: set[bytes] = set()
    for secret in _drop_containing({part for value in values for part in _secret_parts(value)}):
        raw = secret.encode()
        # The base64 characters that encode the secret alone, after none, one or two other bytes.
        for before in range(3):
            bits = 8 * before
            first, end = -(-bits // 6), (bits + 8 * len(raw)) // 6
            core = base64.b64encode(bytes(before) + raw)[first:end]
            exact.update(_both_encodings([_join_lines(core)]))
        folded.update(_both_encodings([raw.hex().encode()]))
        # Bodies are unescaped, so escapes within a secret are undone too.
        forms = (
            _join_lines(form)
            for text in _both_encodings([raw])
            for form in (text, _undo_escapes(text))
        )
        plain = {form for form in forms if len(form) >= SHORTEST_SECRET}
        exact |= plain
        # Without texts of letters in one case: any answer may contain them in another case.
        folded |= {
            form.lower()
            for form in plain
            if re.search(rb"[0-9]", form) or not (form.islower() or form.isupper())
        }
    return Needles(frozenset(exact), frozenset(folded))


def contains_needle(body: bytes, wanted: Needles) -> bool:
    """True if a body contains one of the needles, up to a limit of nested escapes."""
    for _ in range(_MOST_NESTED + 1):
        view = _join_lines(body)
        if any(needle in view for needle in wanted.exact):
            return True
        view = view.lower()
        if any(needle in view for needle in wanted.folded):
            return True
        before, body = body, _undo_escapes(body)
        if body == before:
            return False
    return False


def _secret_parts(value: str) -> Iterator[str]:
    """A value, the part after its scheme, its parts, and the decoded credentials of Basic."""
    scheme, _, rest = value.partition(" ")
    found = [value, rest, *_SEPARATORS.split(value)]
    if scheme.lower() == "basic":
        found += _basic_secrets(rest)
    return (part for part in found if len("".join(part.split())) >= SHORTEST_SECRET)


def _basic_secrets(credentials: str) -> list[str]:
    """`user:password` and the password; any answer may contain the user name alone."""
    try:
        whole = base64.b64decode(credentials).decode("latin-1")
    except binascii.Error:
        return []
    return [whole, whole.partition(":")[2]]


def _drop_containing(secrets: set[str]) -> list[str]:
    """The secrets that contain no other secret; the shorter one would be found first."""
    found: list[str] = []
    for secret in sorted(secrets, key=len):
        if not any(other in secret for other in found):
            found.append(secret)
    return found


def _both_encodings(texts: Iterable[bytes]) -> Iterator[bytes]:
    for text in texts:
        yield from (text, text[::-1])


def _join_lines(text: bytes) -> bytes:
    return text.translate(_ONE_ALPHABET, _BLANKS)


def _undo_escapes(text: bytes) -> bytes:
    """The text with one level of escapes undone."""
    if not any(mark in text for mark in _MARKS):
        return text
    pieces = re.split(_ESCAPE, text)
    pieces[1::2] = map(_MEANINGS.__getitem__, pieces[1::2])
    return b"".join(pieces)


class _Meanings(dict[bytes, bytes]):
    """Character of each escape; nothing for characters that no secret can contain."""

    def __missing__(self, escape: bytes) -> bytes:
        if escape[:1] == b"&":
            name = escape[1:].rstrip(b";")
            if name[:1] != b"#":
                return _NAMED_CHARACTERS.get(name, b"") or escape
            code = int(name[2:], 16) if name[1:2] in {b"x", b"X"} else int(name[1:])
            return _encode_character(code) or escape
        if escape[:1] == b"%" or escape[1:2] in {b"u", b"x"}:
            return _encode_character(int(escape.lstrip(b"%\\ux"), 16))
        return b"" if escape[1:] in {b"n", b"r", b"t", b"f", b"b"} else escape[1:]


def _encode_character(code: int) -> bytes:
    return bytes([code]) if code < 256 else b""


def _common_escapes() -> _Meanings:
    """The common escapes, computed in advance; others are computed on demand."""
    found = _Meanings()
    for code in range(256):
        for form in ("%{:02x}", "%{:02X}", "\\x{:02x}", "\\u{:04x}", "\\u{:04X}", "&#{};"):
            found[form.format(code).encode()] = bytes([code])
        if (escape := b"\\" + bytes([code])) not in {b"\\u", b"\\x"}:
            found[escape] = found[escape]
    return found


class SourceConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host with one credential; a source can only append a path to its address."""

    base_url: Annotated[str, Meta(description="Address that paths of sources are appended to.")]
    headers: Annotated[
        dict[str, str],
        Meta(description="Secret. Headers that are sent with each request, such as authorization."),
    ] = {}
    methods: Annotated[
        tuple[str, ...], Meta(description="Methods that sources may use: GET, POST or both.")
    ] = ("GET",)
    at_once: Annotated[
        int, Meta(ge=1, le=100, description="Requests under way at the same time.")
    ] = 4
    shared_with: Annotated[
        tuple[str, ...],
        Meta(description="Owners whose sources may use it, such as `group:default/team-a`."),
    ] = ()

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("https://", "http://")):
            raise ConfigurationError("base_url has to begin with https://")
        try:
            extract_host(self.base_url.rstrip("/"))
        except ConfigurationError:
            raise ConfigurationError(
                "base_url has to be like https://host/path, without name, password and query"
            ) from None
        if not all(map(_HEADER_NAME.fullmatch, self.headers)):
            raise ConfigurationError("headers has an invalid name")
        if not all(map(_HEADER_VALUE.fullmatch, self.headers.values())):
            raise ConfigurationError("headers has a character that cannot be sent")
        if set(self.methods) - _CONNECTION_METHODS:
            raise ConfigurationError("methods can be GET and POST")
        msgspec.structs.force_setattr(self, "shared_with", _canonical_owners(self.shared_with))

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Connection(base_url={self.base_url!r})"

    def is_repeated(self, body: bytes) -> bool:
        """True if a body contains a secret, as some hosts return what they were sent."""
        return contains_needle(body, build_needles(self.headers.values()))

    @property
    def edition(self) -> str:
        """Digest that changes with the connection and does not reveal its secrets."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def credential(self, name: str) -> Credential:
        """The credential that sends the connection's headers."""
        return Credential.fixed(name, self.headers)


class Unusable(NamedTuple):
    """Connection that exists but cannot be used; `problem` gives the reason."""

    problem: str
    shared_with: tuple[str, ...] = ()


def list_usable(
    owner: str | None, connections: Mapping[str, SourceConnection | Unusable]
) -> Mapping[str, SourceConnection | Unusable]:
    """The connections that sources of this owner may use; without an owner, all of them."""
    if owner is None:
        return connections
    return {name: one for name, one in connections.items() if owner in one.shared_with}


def configured_connections(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, SourceConnection]:
    """The connections of the settings; raises ConfigurationError naming the table."""
    return {
        name: option_tables.read_option_table(f"connections.{name}", name, values, SourceConnection)
        for name, values in tables.items()
    }


def _canonical_owners(owners: tuple[str, ...]) -> tuple[str, ...]:
    """The canonical references, each once; raises ConfigurationError."""
    if len(owners) > MOST_OWNERS:
        raise ConfigurationError(f"shared_with can have {MOST_OWNERS} entries at most")
    try:
        found = (ref.canonicalize_ref(owner, kind="group") for owner in owners)
        return tuple(sorted(set(found)))
    except InputError as error:
        raise ConfigurationError(
            f"shared_with has another entry than references: {error.message}"
        ) from None


_NAMED_CHARACTERS: Final = {
    name.rstrip(";").encode(): char.encode()
    for name, char in html5.items()
    if len(char) == 1 and char.isascii()
}
_MEANINGS: Final = _common_escapes()


T = TypeVar("T")
# One thread per batch in progress, to keep batches from waiting for long extractions.
# A separate pool: the event loop's default threads resolve host names.
_EXTRACTION_THREADS: Final = ThreadPoolExecutor(8, thread_name_prefix="extraction")
# Larger bodies are parsed one at a time, to limit memory.
_LARGE_BODY: Final = 512 * 1024
_HAS_ERRORS: Final = Missing(Outcome.INCOMPLETE, "the answer has errors instead of the value")
_large_lock = threading.Lock()
# One at a time: only one body is in memory, and a host that always times out is abandoned within
# a batch's time.
_REQUESTS_IN_BATCH: Final = 4
_MOST_ATTEMPTS: Final = 2
_REFUSED_IN_BATCH: Final = 10_000
# One at a time: only one body is in memory, and a batch ends in time.
_FILES_IN_BATCH: Final = 3
_BATCHES_AT_ONCE: Final = 4
# Few enough for a batch to end in time, however long each takes.
_DOCUMENTS_IN_BATCH: Final = 50
# Expressions with these can read members that they don't name.
_WIDE_EXPRESSION: Final = re.compile(r"[@*\\]")


class SourceReply(NamedTuple):
    """Reply for one target: a body as received, or a document built here.

    `request` is the request as a trial shows it, `missing` the reason for an absent reply.
    `status` and `content_type` are those of HTTP.
    """

    request: dict[str, Any] | None = None
    body: bytes | None = None
    document: Any = None
    missing: Missing | None = None
    status: int | None = None
    content_type: str | None = None


# Creates a source's client on first use: files and entities need none.
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
    """Run a function in a thread, without blocking the event loop."""
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
    # GraphQL and similar APIs answer failures with 200.
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

    If the owner may not use the connection, each run ends with this reason, without a call.
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
    """The reason why the owner may not use the connection; None if allowed, or without an owner.

    Missing connections get the same reason, to reveal nothing about others.
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
    """The source's connection; raises InputError if it is missing or does not allow the request."""
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
    """The request for an entity, or a reason naming the value that the entity lacks."""
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
    # The only part of an answer that is ever shown. Long answers are searched in a thread.
    shown = b"\n".join([answer.headers.get("content-type", "").encode(), answer.body])
    if not await run_in_thread(connection.is_repeated, shown):
        return answer
    bare = Answer(answer.outcome, answer.status, detail=answer.detail, retry_at=answer.retry_at)
    detail = f"{client.host}: the answer repeats what the connection keeps"
    return replace(bare, outcome=Outcome.TRANSIENT, detail=detail) if answer.ok else bare


def _refused_integration(definition: CustomSourceDefinition, refusal: str) -> Integration:
    """An integration that makes no calls and has no credential."""
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
    """Reader of repository files at the code host of an entity."""

    def locate(self, entity: Mapping[str, Any]) -> tuple[str, str] | Missing:
        """The code host's source and the target there, or the reason for a missing one."""

    async def read(self, file: File) -> bytes | Missing:
        """The contents of a file on the default branch."""

    async def paths(self, ref: str) -> list[str] | Missing:
        """The paths of all files in the repository of the entity with this reference."""


def local_integration(definition: CustomSourceDefinition, files: Files) -> Integration:
    """The integration of a source that reads files, directories or entities."""
    is_file = definition.type == "repository-file"
    find_target: Callable[[Mapping[str, Any]], str | Missing]
    if definition.type == "entity":
        find_target = partial(_seen_members, _seen_predicate(definition))
    else:
        find_target = partial(_repository_place, definition, files)
    return Integration(
        source=definition.source,
        credential=f"custom-{definition.source.id}",
        at_once=_BATCHES_AT_ONCE if is_file else 1,
        target=find_target,
        batches=partial(split_targets, size=_FILES_IN_BATCH if is_file else _DOCUMENTS_IN_BATCH),
        collect=partial(collect_targets, definition, local_reader(definition, files)),
    )


def local_reader(definition: CustomSourceDefinition, files: Files) -> Reader:
    """The target reader of a source of files, directories or entities."""
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


def _seen_members(is_seen: Callable[[str], bool], entity: Mapping[str, Any]) -> str:
    """The members of an entity that the source reads, as the target of a run.

    Extracting facts here would delay the planning of the run.
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
    if definition.type == "repository-file":
        return msgspec.json.encode((*place, path)).decode()
    metadata = entity["metadata"]
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    reference = str(EntityRef.of(entity["kind"], namespace, metadata["name"]))
    return msgspec.json.encode((reference, path)).decode()


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

    If the owner may not use the connection, the integration makes no calls. Raises InputError if
    the connection is missing, unusable, or does not allow the method.
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

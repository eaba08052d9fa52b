"""Model Context Protocol servers over Streamable HTTP, without sessions.

The endpoints serve revisions with a handshake (legacy, up to 2025-11-25) and revisions with
metadata in each request (modern, 2026-07-28) side by side. A bare `tools/call` needs neither.

Resources are entities and scorecards by URI, with name completion. A tool provides the content of
each resource and determines the permissions to read it.
"""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType

from factbook import __version__, invisible
from factbook.api.endpoint import require_permissions
from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.auth.tokens import NAMESPACES, TOOLS, Grant
from factbook.catalog.store import browse
from factbook.catalog.store.browse import CompletedColumn
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.errors import (
    FactbookError,
    InputError,
    NotAcceptableError,
    NotAllowedError,
    ToolError,
    UnavailableError,
    UnsupportedMediaTypeError,
    in_words,
    suggestion,
)
from factbook.http import audit
from factbook.http.context import Descriptions, ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Reply, Request, run_offloaded
from factbook.tools import Context, Tool, toolsets
from factbook.tools.tool import ToolCall
from factbook.tools.toolsets import CHECKS, FACTS, MANAGE, Toolset

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
Id = int | str
MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
META: Final = "io.modelcontextprotocol/"
_SERVER: Final = {"name": "factbook", "title": "Factbook", "version": __version__}
_CACHING: Final = {"ttlMs": 300_000, "cacheScope": "public"}
MODERN_MEMBERS: Final = {"resultType": "complete", "_meta": {f"{META}serverInfo": _SERVER}}
log = structlog.get_logger("factbook.mcp")
_LARGE_RESULT: Final = 256 * 1024


class RpcMessage(Struct):
    """A request, or a notification when it has no id; `params` stays bytes until it is read."""

    jsonrpc: Literal["2.0"]
    method: str
    id: Id | UnsetType = UNSET
    params: msgspec.Raw | UnsetType = UNSET


class RpcError(Exception):
    """A JSON-RPC error; `id` is None if the request's id is unknown."""

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int,
        id: Id | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.id = id
        self.data = data

    def reply(self) -> Reply:
        """Render the error as a reply."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        body = {"jsonrpc": "2.0", "id": self.id, "error": error}
        return Reply(msgspec.json.encode(body), self.status)


_message_decoder = msgspec.json.Decoder(RpcMessage)
_members_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_batch_decoder = msgspec.json.Decoder(list[msgspec.Raw])
_MOST_MESSAGES = 20
_NO_PARAMS = msgspec.Raw(b"{}")
_NULL = b"null"


def parse_message(body: bytes | bytearray) -> RpcMessage:
    """Parse a body with one message; raises RpcError with status 400 for anything else."""
    try:
        if not body.isascii():
            body.decode()  # the decoder doesn't validate Raw members
        return _message_decoder.decode(body)
    except msgspec.ValidationError as error:
        text = (
            "A batch is for revision 2025-03-26 alone."
            if body.lstrip()[:1] == b"["
            else f"{in_words(error)}."
        )
        raise RpcError(INVALID_REQUEST, f"Not a JSON-RPC 2.0 request: {text}", status=400) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"Not valid JSON: {error}.", status=400) from None


def parse_batch(body: bytes | bytearray) -> list[bytes]:
    """Split a batch into undecoded messages; raises RpcError unless there are 1 to 20."""
    try:
        messages = _batch_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"Not valid JSON: {error}.", status=400) from None
    if not 0 < len(messages) <= _MOST_MESSAGES:
        text = f"A batch has 1 to {_MOST_MESSAGES} messages."
        raise RpcError(INVALID_REQUEST, text, status=400)
    return [bytes(message) for message in messages]


def build_batch_refusal(body: bytes, text: str) -> RpcError:
    """Build the error for a batch message that isn't answered."""
    try:
        id_ = parse_message(body).id
    except RpcError as error:
        return error
    return RpcError(INVALID_REQUEST, text, status=200, id=None if id_ is UNSET else id_)


def read_given_params(message: RpcMessage) -> msgspec.Raw:
    """Read the params of a request without null members, which some clients send."""
    if message.params is UNSET or _NULL not in (params := bytes(message.params)):
        return _NO_PARAMS if message.params is UNSET else message.params
    if params == _NULL:
        return _NO_PARAMS
    try:
        members = _members_decoder.decode(params)
    except msgspec.ValidationError:
        return message.params  # not an object: the next decoder reports it
    kept = {name: value for name, value in members.items() if bytes(value) != _NULL}
    return msgspec.Raw(msgspec.json.encode(kept))


def wrap_result(id_: Id, value: str) -> str:
    """Wrap a result, given as JSON text, in a JSON-RPC answer."""
    shown = id_ if type(id_) is int else msgspec.json.encode(id_).decode()
    return f'{{"jsonrpc":"2.0","id":{shown},"result":{value}}}'


class Exchange(NamedTuple):
    """A request with an id, its tool server, and whether it uses a modern revision."""

    request: Request
    grant: Grant
    state: ToolContext
    server: ToolServer
    method: str
    id: Id
    params: msgspec.Raw
    modern: bool

    def authorize(self, tool: Tool) -> None:
        """Raise NotAllowedError unless the token may call this tool."""
        require_permissions(self.grant, tool.permissions)
        narrowing = self.grant.narrowing
        if narrowing is not None and not self.reaches(tool):
            raise narrowing.refusal(TOOLS, NAMESPACES)

    @property
    def keeps_session(self) -> bool:
        """True if a missing permission is reported inside the protocol, not as HTTP 403.

        Hosts end their session on HTTP 403. OAuth clients need it to request more permissions.
        """
        return self.server.choice.for_hosts and self.grant.grantable is None

    def lists(self, tool: Tool) -> bool:
        """True if the tool list includes the tool; hides tools the token can never call."""
        can_call = self.grant.permissions.issuperset(tool.permissions)
        return self.reaches(tool) and (can_call or not self.keeps_session)

    def reaches(self, tool: Tool) -> bool:
        """True if the token's limits allow the tool.

        A limit of namespaces excludes all writing tools, as they don't declare their namespaces.
        """
        narrowing = self.grant.narrowing
        if narrowing is None:
            return True
        writes_anywhere = tool.writes and narrowing.namespaces is not None
        return narrowing.allows(TOOLS, tool.name) and not writes_anywhere

    def error(
        self,
        code: int,
        message: str,
        *,
        status: int = 400,
        data: dict[str, Any] | None = None,
    ) -> RpcError:
        """Build an error for this request; `status` is for modern revisions, legacy uses 200."""
        return RpcError(code, message, status=status if self.modern else 200, id=self.id, data=data)


def describe_server(
    tools: Iterable[Tool],
    instructions: str,
    capabilities: dict[str, Any],
    *,
    choice: ServerChoice,
    is_shared: bool = True,
) -> Descriptions:
    """Encode the descriptions of a tool server.

    Pass `is_shared=False` for the list of a single token, which caches must not share.
    """
    caching = _CACHING if is_shared else {**_CACHING, "cacheScope": "private"}
    listed = [_describe_tool(tool, choice) for tool in tools]
    about = {"capabilities": capabilities, "serverInfo": _SERVER, "instructions": instructions}
    return Descriptions(
        legacy=_encode_text({"tools": listed}),
        modern=_encode_text({"tools": listed, **caching, **MODERN_MEMBERS}),
        initialized={
            version: _encode_text({"protocolVersion": version, **about}) for version in LEGACY
        },
        discovered=_encode_text(
            {
                "supportedVersions": [MODERN, *LEGACY],
                "capabilities": capabilities,
                "instructions": instructions,
                **_CACHING,
                **MODERN_MEMBERS,
            }
        ),
    )


def _describe_tool(tool: Tool, choice: ServerChoice) -> dict[str, Any]:
    # Clients that see a result schema expect structured results.
    has_schema = choice.has_output_schemas and not choice.is_compact
    schema = {"outputSchema": tool.output_schema} if has_schema else {}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": (choice.for_hosts and tool.host_description) or tool.description,
        "inputSchema": tool.input_schema,
        **schema,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": not tool.writes,
            "destructiveHint": False,
            "idempotentHint": not tool.writes,
            "openWorldHint": False,
        },
    }


def _encode_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


class CallParams(Struct):
    """The params of tools/call."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_call_params_decoder = msgspec.json.Decoder(CallParams)


async def call_tool(exchange: Exchange) -> Reply:
    """Call the tool in the request and return its result."""
    try:
        params = _call_params_decoder.decode(exchange.params)
    except msgspec.ValidationError as error:
        raise exchange.error(INVALID_PARAMS, f"{in_words(error)}.") from None
    # Accept underscores: some frameworks don't allow hyphens in tool names.
    tools = exchange.server.tools
    tool = tools.get(params.name) or tools.get(params.name.replace("_", "-"))
    if tool is None:
        text = f'There is no tool "{params.name}".{suggestion(params.name, tools)}'
        raise exchange.error(INVALID_PARAMS, text)
    if bytes(params.arguments).lstrip()[:1] != b"{":
        raise exchange.error(INVALID_PARAMS, "arguments have to be an object.")
    try:
        exchange.authorize(tool)
    except NotAllowedError as error:
        if not exchange.keeps_session:
            raise
        return _answer_tool_error(exchange, tool, error)
    return await _run_tool(tool, params.arguments, exchange)


async def build_tool_context(exchange: Exchange) -> Context:
    """Build the context for tools to answer this request."""
    state = exchange.state
    sources = (await state.registry.current()).sources
    return Context(
        state.database,
        sources,
        state.clock(),
        # Few tools ask for it.
        lambda: ToolCall(
            exchange.grant,
            partial(audit.make_request_caller, exchange.request, state),
            state.registry,
            state.settings,
        ),
        in_pages=exchange.server.choice.for_hosts,
    )


async def _run_tool(tool: Tool, arguments: msgspec.Raw, exchange: Exchange) -> Reply:
    state = exchange.state
    extra = MODERN_EXTRA if exchange.modern else ""
    try:
        context = await build_tool_context(exchange)
        found = await tool.call(arguments, context)
        value = found if found.isascii() else await hide_invisible(found)
        if exchange.server.choice.is_strict:
            value = await run_offloaded(toolsets.drop_added_members, tool.name, value)
    except (ToolError, UnavailableError) as error:
        if isinstance(error, UnavailableError):
            log.warning("tool.unavailable", tool=tool.name, cause=error.cause)
        return _answer_tool_error(exchange, tool, error)
    except FactbookError:
        raise
    except Exception as error:
        log.error("tool.failed", tool=tool.name, exc_info=error)
        state.metrics.called(tool.name, "failed")
        text = "The service encountered an unexpected error."
        raise exchange.error(INTERNAL_ERROR, text, status=500) from None
    state.metrics.called(tool.name, "answered")
    state.usage.add(exchange.grant.id, len(value), context.now)
    return _answer_result(exchange, value, extra)


def _answer_tool_error(exchange: Exchange, tool: Tool, error: FactbookError) -> Reply:
    """Answer with the error as a tool result, so the model sees it."""
    state, extra = exchange.state, MODERN_EXTRA if exchange.modern else ""
    state.metrics.called(tool.name, "refused")
    # The message may quote stored names, which can contain invisible characters.
    text = msgspec.json.encode(invisible.without(error.message)).decode()
    state.usage.add(exchange.grant.id, len(text), state.clock())
    failed = f'{{"content":[{{"type":"text","text":{text}}}],"isError":true{extra}}}'
    return Reply(wrap_result(exchange.id, failed).encode())


async def hide_invisible(value: str) -> str:
    """Remove invisible characters from JSON for a model."""
    if len(value) < _LARGE_RESULT:
        return invisible.without_in_json(value)
    found: str = await run_offloaded(invisible.without_in_json, value)
    return found


def _answer_result(exchange: Exchange, value: str, extra: str) -> Reply:
    """Answer with the value as text, and also as structured content unless compact."""
    id_, text = exchange.id, msgspec.json.encode(value)
    if exchange.server.choice.is_compact:
        content = f'{{"content":[{{"type":"text","text":\0}}],"isError":false{extra}}}'
        head, tail = wrap_result(id_, content).encode().split(b"\0")
        return Reply([head, text, tail])
    if len(value) < _LARGE_RESULT:
        return Reply(wrap_result(id_, _build_content(text.decode(), value, extra)).encode())
    head, middle, tail = wrap_result(id_, _build_content("\0", "\0", extra)).encode().split(b"\0")
    return Reply([head, text, middle, value.encode(), tail])


def _build_content(text: str, value: str, extra: str) -> str:
    return (
        f'{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{value}'
        f',"isError":false{extra}}}'
    )


MODERN_EXTRA: Final = "," + _encode_text(MODERN_MEMBERS)[1:-1]


LEGACY_NOT_FOUND: Final = -32002

_PAGE: Final = 100
_COLUMNS: Final[Mapping[str, CompletedColumn]] = {
    "kind": "kind",
    "namespace": "namespace",
    "name": "name",
}
_MOST_VALUES: Final = 100
_ENTITIES: Final = "factbook://entities/"
_SCORECARDS: Final = "factbook://scorecards/"
_RESOURCE_TYPE: Final = "application/json"
# Answers depend on the token, so shared caches must not keep them.
_PRIVATE: Final = {"ttlMs": 0, "cacheScope": "private"}


class ResourceKind(NamedTuple):
    """A kind of resource: its URI, and the tool and arguments that read it."""

    template: str
    name: str
    title: str
    description: str
    address: re.Pattern[str]
    tool: str
    arguments: Callable[[Mapping[str, str]], dict[str, Any]]


RESOURCE_KINDS: Final = (
    ResourceKind(
        f"{_ENTITIES}{{kind}}/{{namespace}}/{{name}}",
        "entity",
        "Entity",
        "An entity with its owner, relations and level.",
        re.compile(rf"{_ENTITIES}(?P<kind>[^/]+)/(?P<namespace>[^/]+)/(?P<name>[^/]+)"),
        "get-entity",
        dict,
    ),
    ResourceKind(
        f"{_SCORECARDS}{{id}}",
        "scorecard",
        "Scorecard",
        "A scorecard with its levels, checks and counts.",
        re.compile(rf"{_SCORECARDS}(?P<id>[^/]+)"),
        "get-scorecard-discovery",
        lambda parts: {"scorecardId": parts["id"], "limit": 200},
    ),
)


class ListParams(Struct):
    """The params of resources/list."""

    cursor: str = ""


class ReadParams(Struct):
    """The params of resources/read."""

    uri: str


class CompletedReference(Struct):
    """The template of a resource, of which an argument is completed."""

    type: str
    uri: str = ""


class CompletedArgument(Struct):
    """The argument that is completed, and its text so far."""

    name: str
    value: str


class CompletionContext(Struct, frozen=True):
    """The arguments that are known already."""

    arguments: dict[str, str] = {}


class CompletionParams(Struct):
    """The params of completion/complete."""

    ref: CompletedReference
    argument: CompletedArgument
    context: CompletionContext = CompletionContext()


async def list_mcp_resources(exchange: Exchange) -> Reply:
    """List a page of resources: all scorecards first, then entities by reference."""
    require_permissions(exchange.grant, (CATALOG_READ,))
    cursor = _read_resource_params(exchange, ListParams).cursor
    database = exchange.state.database
    entities, scorecards = (_reaches_kind(kind, exchange) for kind in RESOURCE_KINDS)
    found = []
    if not cursor and scorecards and CHECK_READ in exchange.grant.permissions:
        stored = await scorecard_store.everything(database)
        found = [_describe_scorecard_resource(one.id, one.title) for one in stored if one.published]
    after = unquote(cursor)
    if cursor and (":" not in after or "/" not in after or "\0" in after):
        raise exchange.error(INVALID_PARAMS, "cursor is not the nextCursor of an earlier page.")
    refs = await browse.complete_refs(database, after, _PAGE + 1) if entities else []
    found += [_describe_entity_resource(ref) for ref in refs[:_PAGE]]
    more = {"nextCursor": quote(refs[_PAGE - 1])} if len(refs) > _PAGE else {}
    return _reply_resource(exchange, {"resources": found, **more}, _PRIVATE)


async def list_mcp_templates(exchange: Exchange) -> Reply:
    """List the resource URI templates."""
    shown = [
        {
            "uriTemplate": kind.template,
            "name": kind.name,
            "title": kind.title,
            "description": kind.description,
            "mimeType": _RESOURCE_TYPE,
        }
        for kind in RESOURCE_KINDS
    ]
    return _reply_resource(exchange, {"resourceTemplates": shown}, _PRIVATE)


async def read_mcp_resource(exchange: Exchange) -> Reply:
    """Read a resource as JSON."""
    uri = _read_resource_params(exchange, ReadParams).uri
    for kind in RESOURCE_KINDS:
        if match := kind.address.fullmatch(uri):
            parts = {name: unquote(text) for name, text in match.groupdict().items()}
            text = await _answer_with_tool(kind, parts, uri, exchange)
            content = {"uri": uri, "mimeType": _RESOURCE_TYPE, "text": text}
            return _reply_resource(exchange, {"contents": [content]}, _PRIVATE)
    raise _build_not_found_error(
        exchange, uri, "resources/templates/list has the forms of addresses."
    )


async def complete_mcp_argument(exchange: Exchange) -> Reply:
    """Complete a template argument with values that start with the current text."""
    params = _read_resource_params(exchange, CompletionParams)
    kind = next((one for one in RESOURCE_KINDS if one.template == params.ref.uri), None)
    name = params.argument.name
    if params.ref.type != "ref/resource" or kind is None or f"{{{name}}}" not in kind.template:
        text = "Only arguments of the templates of resources/templates/list are completed."
        raise exchange.error(INVALID_PARAMS, text)
    values = await _list_completions(params, exchange) if _reaches_kind(kind, exchange) else []
    shown = values[:_MOST_VALUES]
    completion = {"values": shown, "hasMore": len(values) > len(shown)}
    return _reply_resource(exchange, {"completion": completion}, {})


async def _list_completions(params: CompletionParams, exchange: Exchange) -> list[str]:
    """List matching values, up to one more than the answer shows."""
    database, name, start = exchange.state.database, params.argument.name, params.argument.value
    if "\0" in start:
        return []
    if name == "id":
        require_permissions(exchange.grant, (CHECK_READ,))
        stored = await scorecard_store.everything(database)
        return [one.id for one in stored if one.published and one.id.startswith(start)]
    require_permissions(exchange.grant, (CATALOG_READ,))
    kind = params.context.arguments.get("kind", "component").lower().replace("\0", "")
    column = _COLUMNS[name]
    return await browse.complete_values(database, column, start.lower(), kind, _MOST_VALUES + 1)


async def _answer_with_tool(
    kind: ResourceKind, parts: Mapping[str, str], uri: str, exchange: Exchange
) -> str:
    """Read a resource with its tool; raises RpcError if the resource doesn't exist."""
    tool = exchange.state.every_tool[kind.tool]
    exchange.authorize(tool)
    arguments = msgspec.json.encode(kind.arguments(parts))
    try:
        context = await build_tool_context(exchange)
        found = await tool.call(arguments, context)
    except ToolError as error:
        raise _build_not_found_error(exchange, uri, error.message) from None
    value = found if found.isascii() else await hide_invisible(found)
    exchange.state.usage.add(exchange.grant.id, len(value), context.now)
    return value


def _reaches_kind(kind: ResourceKind, exchange: Exchange) -> bool:
    """True if the token's limits allow the tool that reads this kind of resource."""
    return exchange.reaches(exchange.state.every_tool[kind.tool])


def _describe_scorecard_resource(id_: str, title: str) -> dict[str, Any]:
    return {
        "uri": f"{_SCORECARDS}{quote(id_, safe='')}",
        "name": id_,
        "title": invisible.without(title),
        "mimeType": _RESOURCE_TYPE,
    }


def _describe_entity_resource(ref: str) -> dict[str, Any]:
    kind, _, rest = ref.partition(":")
    parts = (kind, *rest.split("/", 1))
    address = "/".join(quote(part, safe="") for part in parts)
    return {
        "uri": f"{_ENTITIES}{address}",
        "name": invisible.without(ref),
        "mimeType": _RESOURCE_TYPE,
    }


def _build_not_found_error(exchange: Exchange, uri: str, hint: str) -> RpcError:
    code = INVALID_PARAMS if exchange.modern else LEGACY_NOT_FOUND
    text = f"Resource not found. {invisible.without(hint)}"
    return exchange.error(code, text, data={"uri": uri})


def _read_resource_params(exchange: Exchange, form: type[Any]) -> Any:
    try:
        return msgspec.json.decode(exchange.params, type=form)
    except msgspec.ValidationError as error:
        raise exchange.error(INVALID_PARAMS, f"params: {in_words(error)}.") from None


def _reply_resource(exchange: Exchange, result: dict[str, Any], caching: dict[str, Any]) -> Reply:
    more = {**caching, **MODERN_MEMBERS} if exchange.modern else {}
    text = msgspec.json.encode({**result, **more}).decode()
    return Reply(wrap_result(exchange.id, text).encode())


RESOURCE_METHODS: Final[Mapping[str, Callable[[Exchange], Awaitable[Reply]]]] = {
    "resources/list": list_mcp_resources,
    "resources/templates/list": list_mcp_templates,
    "resources/read": read_mcp_resource,
    "completion/complete": complete_mcp_argument,
}
CAPABILITIES: Final[dict[str, Any]] = {"resources": {}, "completions": {}}


Traced = Callable[[Mapping[str, Tool]], Mapping[str, Tool]]
FindServer = Callable[[ServerChoice], ToolServer]
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
MAX_BODY: Final = 1024 * 1024
_JSON: Final = b"application/json"
_META_BYTES: Final = META.encode()
_WITH_BATCHES: Final = b"2025-03-26"
_LONGEST_BATCH: Final = 8 * 1024 * 1024
_OF_FACTS: Final = ServerChoice((FACTS,))
_STRICT: Final = ServerChoice((FACTS,), is_strict=True)
_OF_CHECKS: Final = ServerChoice((CHECKS,))
_OF_MANAGING: Final = ServerChoice((MANAGE,))


def build_server_finder(toolsets: Sequence[Toolset], traced: Traced) -> FindServer:
    """Return a function that finds the server for a choice; each server is built once."""
    known = {one.name: one for one in toolsets}

    @cache  # few toolsets, so few choices
    def server(choice: ServerChoice) -> ToolServer:
        return _build_server([known[name] for name in choice.toolsets], traced, choice)

    return server


def _build_server(toolsets: Sequence[Toolset], traced: Traced, choice: ServerChoice) -> ToolServer:
    capabilities = {"tools": {}, **(CAPABILITIES if choice.for_hosts else {})}
    tools = [tool for one in toolsets for tool in one.tools]
    instructions = " ".join(one.instructions for one in toolsets)
    return ToolServer(
        tools=traced({tool.name: tool for tool in tools}),
        described=cache(partial(describe_server, tools, instructions, capabilities, choice=choice)),
        choice=choice,
    )


_TOOLSETS: Final = "toolsets"
_READ: Final = "read"
_READS: Final = ("full", "compact")
_SCHEMAS: Final = "schemas"
_OUTPUT: Final = "output"
_MOST_PARAMETERS: Final = 20


def find_chosen_server(request: Request, state: ToolContext) -> ToolServer:
    """Find the server that the query selects; by default all toolsets with full answers.

    Result schemas, half the size of the list, are included only with `schemas=output`. Raises
    InputError for an unknown toolset or form.
    """
    return state.server(_parse_choice(request.scope["query_string"], state.toolsets))


@lru_cache(maxsize=64)  # a client sends the same query in every call
def _parse_choice(query: bytes, known: tuple[str, ...]) -> ServerChoice:
    names: set[str] = set()
    read: str | None = None
    schemas = False
    for name, value in _parse_choice_query(query):
        if name == _TOOLSETS:
            names.update(part.strip() for part in value.split(","))
        elif name == _READ and read is None and value in _READS:
            read = value
        elif name == _READ:
            raise InputError(f"read is one of {' and '.join(_READS)}, given once.")
        elif name == _SCHEMAS and value == _OUTPUT:
            schemas = True
        elif name == _SCHEMAS:
            raise InputError(f"schemas can only be {_OUTPUT}; without it, none are listed.")
        else:
            known_names = f"{_TOOLSETS}, {_READ} and {_SCHEMAS}"
            raise InputError(f'The query takes {known_names}, not "{name[:100]}".')
    if unknown := sorted(names.difference(known)):
        there = suggestion(unknown[0], known)
        raise InputError(f'There is no toolset "{unknown[0][:100]}".{there}')
    toolsets = tuple(name for name in known if not names or name in names)
    return ServerChoice(
        toolsets, is_compact=read == "compact", for_hosts=True, has_output_schemas=schemas
    )


@lru_cache(maxsize=64)
def is_strict_query(query: bytes) -> bool:
    """True if the query asks for only the answer members that the first nine tools had."""
    return (_READ, "seed") in _parse_choice_query(query)


def _parse_choice_query(query: bytes) -> list[tuple[str, str]]:
    text = query.decode("latin-1")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise InputError(f"The query has more than {_MOST_PARAMETERS} parameters.") from None


class AnyParams(Struct):
    """The params that every method understands."""

    meta: dict[str, Any] | UnsetType = msgspec.field(default=UNSET, name="_meta")
    cursor: Any = UNSET
    name: Any = UNSET
    uri: Any = UNSET
    protocol_version: Any = msgspec.field(default=UNSET, name="protocolVersion")


_any_params_decoder = msgspec.json.Decoder(AnyParams)


async def post_facts_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the facts server."""
    query = request.scope["query_string"]
    choice = _OF_FACTS if not query or not is_strict_query(query) else _STRICT
    return await _answer_request(request, state, state.server(choice))


async def post_checks_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the checks server."""
    return await _answer_request(request, state, state.server(_OF_CHECKS))


async def post_managing_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server with the tools that write."""
    return await _answer_request(request, state, state.server(_OF_MANAGING))


async def post_any_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of all toolsets, or of those that the query names."""
    return await _answer_request(request, state, find_chosen_server(request, state))


async def _answer_request(request: Request, state: ToolContext, server: ToolServer) -> Reply:
    _check_media_types(request)
    body = await request.body(MAX_BODY, "the body of a tool call")
    # Only revision 2025-03-26 has batches, and its clients send no version header. The seed
    # endpoint accepts batches only with the header.
    version = request.headers.get(b"mcp-protocol-version")
    takes_batches = version == _WITH_BATCHES or (version is None and server.choice.for_hosts)
    if takes_batches and body.lstrip()[:1] == b"[":
        return await _answer_batch(body, request, state, server)
    return await _answer_message(body, request, state, server)


async def _answer_batch(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    """Answer each message as if sent alone; refuses the rest once answers get too long."""
    try:
        messages = parse_batch(body)
    except RpcError as error:
        return error.reply()
    assert request.token is not None
    answers, size = list[bytes](), 0
    for at, message in enumerate(messages):
        try:
            if size > _LONGEST_BATCH:
                raise build_batch_refusal(
                    message, "The answers before it are too long: send it alone."
                )
            if at and (seconds := state.calls.take(request.token.id)):
                text = f"This token calls too often: send it again in {seconds} seconds."
                raise build_batch_refusal(message, text)
            if parse_message(message).method == "initialize":
                raise build_batch_refusal(message, "initialize can't be part of a batch.")
            reply = await _answer_message(message, request, state, server)
        except RpcError as error:
            reply = error.reply()
        except NotAllowedError as error:  # other messages already have answers
            reply = build_batch_refusal(message, error.message).reply()
        assert isinstance(reply.body, bytes | list)
        whole = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
        size += len(whole)
        answers += [whole] if whole else []
    return Reply(b"[" + b",".join(answers) + b"]") if answers else Reply(status=202)


async def _answer_message(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    try:
        message = parse_message(body)
        if message.id is UNSET:
            return Reply(status=202)
        params = read_given_params(message)
        version = request.headers.get(b"mcp-protocol-version")
        modern = version is not None and version.decode("latin-1") not in LEGACY
        modern = modern or _META_BYTES in bytes(params)
        grant = request.token
        assert grant is not None
        asked = Exchange(request, grant, state, server, message.method, message.id, params, modern)
        try:
            return await (_Modern(asked).answer() if modern else _answer_legacy(asked))
        except NotAllowedError as error:
            if asked.keeps_session:
                raise asked.error(INVALID_REQUEST, error.message) from None
            raise
    except RpcError as error:
        return error.reply()


def _check_media_types(request: Request) -> None:
    headers = request.headers
    content_type = headers.get(b"content-type", b"")
    if content_type != _JSON and content_type.partition(b";")[0].strip().lower() != _JSON:
        raise UnsupportedMediaTypeError
    accept = headers.get(b"accept")
    if accept is None or _JSON in accept or b"*/*" in accept:
        return
    if _JSON not in accept.lower() and b"application/*" not in accept.lower():
        raise NotAcceptableError


async def _answer_legacy(asked: Exchange) -> Reply:
    method, of_server = asked.method, asked.server.described
    if method == "tools/call":
        return await call_tool(asked)
    params = _read_any_params(asked)
    if method == "tools/list":
        _refuse_cursor(params, asked)
        return _reply_result(asked, _describe_listed_tools(asked).legacy)
    if method == "initialize":
        version = params.protocol_version
        known = version if version in LEGACY else LEGACY[0]
        return _reply_result(asked, of_server().initialized[known])
    if method == "ping":
        return _reply_result(asked, "{}")
    return await _answer_resource_method(asked)


class _Modern:
    """A request of a revision with metadata in each request."""

    def __init__(self, asked: Exchange) -> None:
        self._asked = asked
        self._params = _read_any_params(asked)

    async def answer(self) -> Reply:
        meta, asked = self._params.meta, self._asked
        version = None if meta is UNSET else meta.get(f"{META}protocolVersion")
        if version in (None, *LEGACY) and self._header(b"mcp-protocol-version") in (*LEGACY, None):
            return await _answer_legacy(asked._replace(modern=False))
        self._check_meta()
        self._check_headers()
        self._check_version()
        if asked.method == "server/discover":
            return _reply_result(asked, asked.server.described().discovered)
        if asked.method == "tools/list":
            _refuse_cursor(self._params, asked)
            return _reply_result(asked, _describe_listed_tools(asked).modern)
        if asked.method == "tools/call":
            return await call_tool(asked)
        return await _answer_resource_method(asked)

    def _check_meta(self) -> None:
        meta = {} if self._params.meta is UNSET else self._params.meta
        version = meta.get(f"{META}protocolVersion")
        capabilities = meta.get(f"{META}clientCapabilities")
        if not isinstance(version, str) or not isinstance(capabilities, dict):
            raise self._asked.error(
                INVALID_PARAMS,
                f"_meta has to hold {META}protocolVersion (a string) and "
                f"{META}clientCapabilities (an object).",
            )
        self._version = version

    def _check_headers(self) -> None:
        expected = {b"mcp-protocol-version": self._version, b"mcp-method": self._asked.method}
        if self._asked.method == "tools/call":
            expected[b"mcp-name"] = self._params.name
        elif self._asked.method == "resources/read" and self._asked.server.choice.for_hosts:
            expected[b"mcp-name"] = self._params.uri
        for header, value in expected.items():
            if self._header(header) != value:
                raise self._asked.error(
                    HEADER_MISMATCH,
                    f"The header {header.decode()} has to be there and to equal the body.",
                )

    def _check_version(self) -> None:
        if self._version != MODERN:
            raise self._asked.error(
                UNSUPPORTED_VERSION,
                "This protocol revision is not supported.",
                data={"supported": [MODERN, *LEGACY], "requested": self._version},
            )

    def _header(self, name: bytes) -> str | None:
        raw = self._asked.request.headers.get(name)
        return None if raw is None else _decode_header(raw.decode("latin-1").strip())


def _decode_header(value: str) -> str:
    """Decode a header value; Base64 values are between markers."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _describe_listed_tools(asked: Exchange) -> Descriptions:
    """Descriptions for `tools/list`, limited to tools that the caller may see."""
    server = asked.server
    tools = [tool for tool in server.tools.values() if asked.lists(tool)]
    if asked.grant.narrowing is None and len(tools) == len(server.tools):
        return server.described()
    return describe_server(tools, "", {}, choice=server.choice, is_shared=False)


def _reply_result(asked: Exchange, result: str) -> Reply:
    return Reply(wrap_result(asked.id, result).encode())


def _read_any_params(asked: Exchange) -> AnyParams:
    try:
        return _any_params_decoder.decode(asked.params)
    except msgspec.ValidationError as error:
        raise asked.error(INVALID_PARAMS, f"params: {in_words(error)}.") from None


def _refuse_cursor(params: AnyParams, asked: Exchange) -> None:
    if params.cursor is not UNSET and params.cursor != "":
        text = "The list has one page; no cursor was ever given out."
        raise asked.error(INVALID_PARAMS, text)


async def _answer_resource_method(asked: Exchange) -> Reply:
    """Answer a resource method; raises RpcError if the server has no such method."""
    method = RESOURCE_METHODS.get(asked.method) if asked.server.choice.for_hosts else None
    if method is None:
        text = f'There is no method "{asked.method}".'
        raise asked.error(METHOD_NOT_FOUND, text, status=404)
    return await method(asked)

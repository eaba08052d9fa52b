"""JSON-RPC messages, descriptions of the tools, and tools/call with its results and failures."""

from collections.abc import Iterable
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType

from factbook import __version__, invisible
from factbook.api.endpoint import require_permissions
from factbook.auth.tokens import NAMESPACES, TOOLS, Grant
from factbook.errors import (
    FactbookError,
    NotAllowedError,
    ToolError,
    UnavailableError,
    in_words,
    suggestion,
)
from factbook.http import audit
from factbook.http.context import Descriptions, ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Reply, Request, run_offloaded
from factbook.tools import Context, Tool, toolsets
from factbook.tools.tool import ToolCall

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
    """A JSON-RPC error; `id` is None when the request's is not known."""

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
        """The error as a reply."""
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
    """The one message of a body; raises ProtocolError, with status 400, for anything else."""
    try:
        if not body.isascii():
            body.decode()  # what stays Raw is not looked into
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
    """The messages of a batch, each unread; raises RpcError unless there are 1 to 20."""
    try:
        messages = _batch_decoder.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise RpcError(PARSE_ERROR, f"Not valid JSON: {error}.", status=400) from None
    if not 0 < len(messages) <= _MOST_MESSAGES:
        text = f"A batch has 1 to {_MOST_MESSAGES} messages."
        raise RpcError(INVALID_REQUEST, text, status=400)
    return [bytes(message) for message in messages]


def build_batch_refusal(body: bytes, text: str) -> RpcError:
    """The error for a message of a batch that isn't answered."""
    try:
        id_ = parse_message(body).id
    except RpcError as error:
        return error
    return RpcError(INVALID_REQUEST, text, status=200, id=None if id_ is UNSET else id_)


def read_given_params(message: RpcMessage) -> msgspec.Raw:
    """The params of a request without members that are null, which clients send for none."""
    if message.params is UNSET or _NULL not in (params := bytes(message.params)):
        return _NO_PARAMS if message.params is UNSET else message.params
    if params == _NULL:
        return _NO_PARAMS
    try:
        members = _members_decoder.decode(params)
    except msgspec.ValidationError:
        return message.params  # no object, as whoever reads it says
    kept = {name: value for name, value in members.items() if bytes(value) != _NULL}
    return msgspec.Raw(msgspec.json.encode(kept))


def wrap_result(id_: Id, value: str) -> str:
    """An answer around a result that is JSON text already."""
    shown = id_ if type(id_) is int else msgspec.json.encode(id_).decode()
    return f'{{"jsonrpc":"2.0","id":{shown},"result":{value}}}'


class Exchange(NamedTuple):
    """A request with an id, the server that it is for, and whether its era is the modern one."""

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

        A host ends its session at HTTP 403. A client of OAuth needs one to ask for more.
        """
        return self.server.choice.for_hosts and self.grant.grantable is None

    def lists(self, tool: Tool) -> bool:
        """True if the caller is shown the tool: not what a token made by hand can never call."""
        can_call = self.grant.permissions.issuperset(tool.permissions)
        return self.reaches(tool) and (can_call or not self.keeps_session)

    def reaches(self, tool: Tool) -> bool:
        """True if the tool is within what the token is narrowed to.

        Which namespaces a tool writes to, it does not say.
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
        """An error for this request; `status` is that of the modern era, the legacy one has 200."""
        return RpcError(code, message, status=status if self.modern else 200, id=self.id, data=data)


def describe_server(
    tools: Iterable[Tool],
    instructions: str,
    capabilities: dict[str, Any],
    *,
    choice: ServerChoice,
    is_shared: bool = True,
) -> Descriptions:
    """Encode what the server of a choice says of itself.

    What is not shared is for one token: no cache may show it to others.
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
    # Who is listed the schema of results expects structured ones.
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
    """The result of the tool that the request names."""
    try:
        params = _call_params_decoder.decode(exchange.params)
    except msgspec.ValidationError as error:
        raise exchange.error(INVALID_PARAMS, f"{in_words(error)}.") from None
    # Underscores too: some frameworks cannot write hyphens in a tool's name.
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
    """The context in which tools answer this request."""
    state = exchange.state
    sources = (await state.registry.current()).sources
    in_pages = exchange.server.choice.for_hosts
    return Context(
        state.database, sources, state.clock(), partial(_build_tool_call, exchange), in_pages
    )


def _build_tool_call(exchange: Exchange) -> ToolCall:
    request, state = exchange.request, exchange.state
    caller = partial(audit.make_request_caller, request, state)
    return ToolCall(exchange.grant, caller, state.registry, state.settings)


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
        text = "The service met an unexpected condition."
        raise exchange.error(INTERNAL_ERROR, text, status=500) from None
    state.metrics.called(tool.name, "answered")
    state.usage.add(exchange.grant.id, len(value), context.now)
    return _answer_result(exchange, value, extra)


def _answer_tool_error(exchange: Exchange, tool: Tool, error: FactbookError) -> Reply:
    """The error as the result of the tool, which a model reads."""
    state, extra = exchange.state, MODERN_EXTRA if exchange.modern else ""
    state.metrics.called(tool.name, "refused")
    # It may name entities and sources as they were stored.
    text = msgspec.json.encode(invisible.without(error.message)).decode()
    state.usage.add(exchange.grant.id, len(text), state.clock())
    failed = f'{{"content":[{{"type":"text","text":{text}}}],"isError":true{extra}}}'
    return Reply(wrap_result(exchange.id, failed).encode())


async def hide_invisible(value: str) -> str:
    """JSON as a model gets it: without characters that nobody sees."""
    if len(value) < _LARGE_RESULT:
        return invisible.without_in_json(value)
    found: str = await run_offloaded(invisible.without_in_json, value)
    return found


def _answer_result(exchange: Exchange, value: str, extra: str) -> Reply:
    """The value as text for those who read only text, and structured unless it is to be compact."""
    id_, text = exchange.id, msgspec.json.encode(value)
    if exchange.server.choice.is_compact:
        head, tail = wrap_result(id_, _build_text_content("\0", extra)).encode().split(b"\0")
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


def _build_text_content(text: str, extra: str) -> str:
    return f'{{"content":[{{"type":"text","text":{text}}}],"isError":false{extra}}}'


MODERN_EXTRA: Final = "," + _encode_text(MODERN_MEMBERS)[1:-1]

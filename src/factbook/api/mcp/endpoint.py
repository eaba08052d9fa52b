"""The tool-call endpoint: a Model Context Protocol server over Streamable HTTP, without sessions.

It serves the revisions with a handshake (legacy, up to 2025-11-25) and those with metadata in each
request (modern, 2026-07-28) side by side. A bare `tools/call` needs neither.
"""

import base64
import binascii
from typing import Any, Final

import msgspec
import structlog
from msgspec import UNSET, Struct, UnsetType

from factbook import invisible
from factbook.api.mcp import jsonrpc
from factbook.api.mcp.descriptions import (
    DISCOVERED,
    LEGACY,
    META,
    MODERN,
    MODERN_EXTRA,
    initialized,
)
from factbook.api.mcp.jsonrpc import Id, RpcError, RpcMessage
from factbook.errors import (
    FactbookError,
    NotAcceptableError,
    ToolError,
    UnavailableError,
    UnsupportedMediaTypeError,
)
from factbook.http.context import ToolContext
from factbook.http.requests import Reply, Request, offloaded
from factbook.tools import Context, Tool

log = structlog.get_logger("factbook.mcp")

HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022
MAX_BODY: Final = 1024 * 1024

_JSON: Final = b"application/json"
_META_BYTES: Final = META.encode()
_LARGE: Final = 256 * 1024


class CallParams(Struct):
    """The params of tools/call."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class AnyParams(Struct):
    """The params that every method understands."""

    meta: dict[str, Any] | UnsetType = msgspec.field(default=UNSET, name="_meta")
    cursor: Any = UNSET
    name: Any = UNSET
    protocol_version: Any = msgspec.field(default=UNSET, name="protocolVersion")


_call_params = msgspec.json.Decoder(CallParams)
_any_params = msgspec.json.Decoder(AnyParams)


async def post(request: Request, state: ToolContext) -> Reply:
    """Answer one JSON-RPC message."""
    _check_media_types(request)
    body = await request.body(MAX_BODY, "the body of a tool call")
    try:
        message = jsonrpc.parse(body)
        if message.id is UNSET:
            return Reply(status=202)
        version = request.headers.get(b"mcp-protocol-version")
        modern = version is not None and version.decode("latin-1") not in LEGACY
        if modern or (message.params is not UNSET and _META_BYTES in bytes(message.params)):
            return await _Modern(request, message, message.id).answer(state)
        return await _legacy(message, message.id, state)
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


async def _legacy(message: RpcMessage, id_: Id, state: ToolContext) -> Reply:
    method = message.method
    if method == "tools/call":
        return await _call(message, id_, state, modern=False)
    params = _params(message, id_, status=200)
    if method == "tools/list":
        _refuse_cursor(params, id_, status=200)
        return Reply(jsonrpc.result(id_, state.lists().legacy).encode())
    if method == "initialize":
        asked = params.protocol_version
        version = asked if asked in LEGACY else LEGACY[0]
        return Reply(jsonrpc.result(id_, initialized(version)).encode())
    if method == "ping":
        return Reply(jsonrpc.result(id_, "{}").encode())
    raise _no_method(method, id_, status=200)


class _Modern:
    """One request of a revision in which each request carries its own metadata."""

    def __init__(self, request: Request, message: RpcMessage, id_: Id) -> None:
        self._request = request
        self._message = message
        self._id = id_
        self._params = _params(message, id_, status=400)

    async def answer(self, state: ToolContext) -> Reply:
        meta = self._params.meta
        version = None if meta is UNSET else meta.get(f"{META}protocolVersion")
        if version in (None, *LEGACY) and self._header(b"mcp-protocol-version") in (*LEGACY, None):
            return await _legacy(self._message, self._id, state)
        self._check_meta()
        self._check_headers()
        self._check_version()
        method = self._message.method
        if method == "server/discover":
            return self._reply(DISCOVERED)
        if method == "tools/list":
            _refuse_cursor(self._params, self._id, status=400)
            return self._reply(state.lists().modern)
        if method == "tools/call":
            return await _call(self._message, self._id, state, modern=True)
        raise _no_method(method, self._id, status=404)

    def _reply(self, result: str) -> Reply:
        return Reply(jsonrpc.result(self._id, result).encode())

    def _check_meta(self) -> None:
        meta = {} if self._params.meta is UNSET else self._params.meta
        version = meta.get(f"{META}protocolVersion")
        capabilities = meta.get(f"{META}clientCapabilities")
        if not isinstance(version, str) or not isinstance(capabilities, dict):
            raise RpcError(
                jsonrpc.INVALID_PARAMS,
                f"_meta has to hold {META}protocolVersion (a string) and "
                f"{META}clientCapabilities (an object).",
                status=400,
                id=self._id,
            )
        self._version = version

    def _check_headers(self) -> None:
        expected = {b"mcp-protocol-version": self._version, b"mcp-method": self._message.method}
        if self._message.method == "tools/call":
            expected[b"mcp-name"] = self._params.name
        for header, value in expected.items():
            if self._header(header) != value:
                raise RpcError(
                    HEADER_MISMATCH,
                    f"The header {header.decode()} has to be there and to equal the body.",
                    status=400,
                    id=self._id,
                )

    def _check_version(self) -> None:
        if self._version != MODERN:
            raise RpcError(
                UNSUPPORTED_VERSION,
                "This protocol revision is not supported.",
                status=400,
                id=self._id,
                data={"supported": [MODERN, *LEGACY], "requested": self._version},
            )

    def _header(self, name: bytes) -> str | None:
        raw = self._request.headers.get(name)
        return None if raw is None else _plain(raw.decode("latin-1").strip())


def _plain(value: str) -> str:
    """A header's value, decoded from Base64 if it is between the marks for that."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


async def _call(message: RpcMessage, id_: Id, state: ToolContext, *, modern: bool) -> Reply:
    status = 400 if modern else 200
    try:
        params = _call_params.decode(b"{}" if message.params is UNSET else message.params)
    except msgspec.ValidationError as error:
        raise RpcError(jsonrpc.INVALID_PARAMS, f"{error}.", status=status, id=id_) from None
    # Underscores too: some frameworks cannot write hyphens in a tool's name.
    tools = state.tools
    tool = tools.get(params.name) or tools.get(params.name.replace("_", "-"))
    if tool is None:
        text = f'There is no tool "{params.name}"; tools/list lists those there are.'
        raise RpcError(jsonrpc.INVALID_PARAMS, text, status=status, id=id_)
    if bytes(params.arguments).lstrip()[:1] != b"{":
        text = "arguments have to be an object."
        raise RpcError(jsonrpc.INVALID_PARAMS, text, status=status, id=id_)
    return await _run(tool, params.arguments, id_, state, modern=modern)


async def _run(
    tool: Tool, arguments: msgspec.Raw, id_: Id, state: ToolContext, *, modern: bool
) -> Reply:
    extra = MODERN_EXTRA if modern else ""
    try:
        sources = (await state.registry.current()).sources
        context = Context(state.database, sources, state.clock())
        found = await tool.call(arguments, context)
        value = found if found.isascii() else await _shown(found)
    except (ToolError, UnavailableError) as error:
        state.metrics.called(tool.name, "refused")
        if isinstance(error, UnavailableError):
            log.warning("tool.unavailable", tool=tool.name, cause=error.cause)
        # It may name entities and sources as they were stored.
        text = msgspec.json.encode(invisible.without(error.message)).decode()
        failed = f'{{"content":[{{"type":"text","text":{text}}}],"isError":true{extra}}}'
        return Reply(jsonrpc.result(id_, failed).encode())
    except FactbookError:
        raise
    except Exception as error:
        log.error("tool.failed", tool=tool.name, exc_info=error)
        state.metrics.called(tool.name, "failed")
        raise RpcError(
            jsonrpc.INTERNAL_ERROR,
            "The service met an unexpected condition.",
            status=500 if modern else 200,
            id=id_,
        ) from None
    state.metrics.called(tool.name, "answered")
    return _result(id_, value, extra)


async def _shown(value: str) -> str:
    """The result of a tool as a model gets it: without characters that nobody sees."""
    if len(value) < _LARGE:
        return invisible.without_in_json(value)
    shown: str = await offloaded(invisible.without_in_json, value)
    return shown


def _result(id_: Id, value: str, extra: str) -> Reply:
    """The same value as text for those who read only text, and structured."""
    text = msgspec.json.encode(value)
    if len(value) < _LARGE:
        return Reply(jsonrpc.result(id_, _content(text.decode(), value, extra)).encode())
    head, middle, tail = jsonrpc.result(id_, _content("\0", "\0", extra)).encode().split(b"\0")
    return Reply([head, text, middle, value.encode(), tail])


def _content(text: str, value: str, extra: str) -> str:
    return (
        f'{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{value}'
        f',"isError":false{extra}}}'
    )


def _params(message: RpcMessage, id_: Id, *, status: int) -> AnyParams:
    try:
        return _any_params.decode(b"{}" if message.params is UNSET else message.params)
    except msgspec.ValidationError as error:
        raise RpcError(jsonrpc.INVALID_PARAMS, f"params: {error}.", status=status, id=id_) from None


def _refuse_cursor(params: AnyParams, id_: Id, *, status: int) -> None:
    if params.cursor is not UNSET:
        text = "The list has one page; no cursor was ever given out."
        raise RpcError(jsonrpc.INVALID_PARAMS, text, status=status, id=id_)


def _no_method(method: str, id_: Id, *, status: int) -> RpcError:
    text = f'There is no method "{method}".'
    return RpcError(jsonrpc.METHOD_NOT_FOUND, text, status=status, id=id_)

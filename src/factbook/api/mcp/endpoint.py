"""The tool-call endpoints: Model Context Protocol servers over Streamable HTTP, without sessions.

They serve the revisions with a handshake (legacy, up to 2025-11-25) and those with metadata in each
request (modern, 2026-07-28) side by side. A bare `tools/call` needs neither.
"""

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.api.mcp import jsonrpc, resources, tool_calls
from factbook.api.mcp.descriptions import LEGACY, META, MODERN, described
from factbook.api.mcp.jsonrpc import Exchange, RpcError
from factbook.api.mcp.servers import chosen, is_strict
from factbook.errors import NotAcceptableError, NotAllowedError, UnsupportedMediaTypeError, in_words
from factbook.http.context import Descriptions, ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Reply, Request
from factbook.tools.toolsets import CHECKS, FACTS, MANAGE

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


class AnyParams(Struct):
    """The params that every method understands."""

    meta: dict[str, Any] | UnsetType = msgspec.field(default=UNSET, name="_meta")
    cursor: Any = UNSET
    name: Any = UNSET
    uri: Any = UNSET
    protocol_version: Any = msgspec.field(default=UNSET, name="protocolVersion")


_any_params = msgspec.json.Decoder(AnyParams)


async def post(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of facts."""
    query = request.scope["query_string"]
    choice = _OF_FACTS if not query or not is_strict(query) else _STRICT
    return await _answer(request, state, state.server(choice))


async def post_checks(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of checks."""
    return await _answer(request, state, state.server(_OF_CHECKS))


async def post_managing(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of the tools that write."""
    return await _answer(request, state, state.server(_OF_MANAGING))


async def post_any(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of all toolsets, or of those that the query chooses."""
    return await _answer(request, state, chosen(request, state))


async def _answer(request: Request, state: ToolContext, server: ToolServer) -> Reply:
    _check_media_types(request)
    body = await request.body(MAX_BODY, "the body of a tool call")
    # Clients of 2025-03-26, the only revision with batches, send no version header. The seed's
    # endpoint takes batches only from clients that send it all the same.
    version = request.headers.get(b"mcp-protocol-version")
    takes_batches = version == _WITH_BATCHES or (version is None and server.choice.for_hosts)
    if takes_batches and body.lstrip()[:1] == b"[":
        return await _batch(body, request, state, server)
    return await _one(body, request, state, server)


async def _batch(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    """Answer each message in turn, as if each came alone, until the answers are too long."""
    try:
        messages = jsonrpc.parse_batch(body)
    except RpcError as error:
        return error.reply()
    assert request.token is not None
    answers, size = list[bytes](), 0
    for at, message in enumerate(messages):
        try:
            if size > _LONGEST_BATCH:
                raise jsonrpc.refused(message, "The answers before it are too long: send it alone.")
            if at and (seconds := state.calls.take(request.token.id)):
                text = f"This token calls too often: send it again in {seconds} seconds."
                raise jsonrpc.refused(message, text)
            if jsonrpc.parse(message).method == "initialize":
                raise jsonrpc.refused(message, "initialize can't be part of a batch.")
            reply = await _one(message, request, state, server)
        except RpcError as error:
            reply = error.reply()
        except NotAllowedError as error:  # others of the batch have been answered
            reply = jsonrpc.refused(message, error.message).reply()
        assert isinstance(reply.body, bytes | list)
        whole = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
        size += len(whole)
        answers += [whole] if whole else []
    return Reply(b"[" + b",".join(answers) + b"]") if answers else Reply(status=202)


async def _one(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    try:
        message = jsonrpc.parse(body)
        if message.id is UNSET:
            return Reply(status=202)
        params = jsonrpc.given_params(message)
        version = request.headers.get(b"mcp-protocol-version")
        modern = version is not None and version.decode("latin-1") not in LEGACY
        modern = modern or _META_BYTES in bytes(params)
        grant = request.token
        assert grant is not None
        asked = Exchange(request, grant, state, server, message.method, message.id, params, modern)
        try:
            return await (_Modern(asked).answer() if modern else _legacy(asked))
        except NotAllowedError as error:
            if asked.keeps_session:
                raise asked.error(jsonrpc.INVALID_REQUEST, error.message) from None
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


async def _legacy(asked: Exchange) -> Reply:
    method, of_server = asked.method, asked.server.described
    if method == "tools/call":
        return await tool_calls.call(asked)
    params = _params(asked)
    if method == "tools/list":
        _refuse_cursor(params, asked)
        return _reply(asked, _listed(asked).legacy)
    if method == "initialize":
        version = params.protocol_version
        known = version if version in LEGACY else LEGACY[0]
        return _reply(asked, of_server().initialized[known])
    if method == "ping":
        return _reply(asked, "{}")
    return await _of_resources(asked)


class _Modern:
    """One request of a revision in which each request carries its own metadata."""

    def __init__(self, asked: Exchange) -> None:
        self._asked = asked
        self._params = _params(asked)

    async def answer(self) -> Reply:
        meta, asked = self._params.meta, self._asked
        version = None if meta is UNSET else meta.get(f"{META}protocolVersion")
        if version in (None, *LEGACY) and self._header(b"mcp-protocol-version") in (*LEGACY, None):
            return await _legacy(asked._replace(modern=False))
        self._check_meta()
        self._check_headers()
        self._check_version()
        if asked.method == "server/discover":
            return _reply(asked, asked.server.described().discovered)
        if asked.method == "tools/list":
            _refuse_cursor(self._params, asked)
            return _reply(asked, _listed(asked).modern)
        if asked.method == "tools/call":
            return await tool_calls.call(asked)
        return await _of_resources(asked)

    def _check_meta(self) -> None:
        meta = {} if self._params.meta is UNSET else self._params.meta
        version = meta.get(f"{META}protocolVersion")
        capabilities = meta.get(f"{META}clientCapabilities")
        if not isinstance(version, str) or not isinstance(capabilities, dict):
            raise self._asked.error(
                jsonrpc.INVALID_PARAMS,
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
        return None if raw is None else _plain(raw.decode("latin-1").strip())


def _plain(value: str) -> str:
    """A header's value, decoded from Base64 if it is between the marks for that."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _listed(asked: Exchange) -> Descriptions:
    """Descriptions for `tools/list`."""
    server = asked.server
    tools = [tool for tool in server.tools.values() if asked.lists(tool)]
    if asked.grant.narrowing is None and len(tools) == len(server.tools):
        return server.described()
    return described(tools, "", {}, choice=server.choice, is_shared=False)


def _reply(asked: Exchange, result: str) -> Reply:
    return Reply(jsonrpc.result(asked.id, result).encode())


def _params(asked: Exchange) -> AnyParams:
    try:
        return _any_params.decode(asked.params)
    except msgspec.ValidationError as error:
        raise asked.error(jsonrpc.INVALID_PARAMS, f"params: {in_words(error)}.") from None


def _refuse_cursor(params: AnyParams, asked: Exchange) -> None:
    if params.cursor is not UNSET and params.cursor != "":
        text = "The list has one page; no cursor was ever given out."
        raise asked.error(jsonrpc.INVALID_PARAMS, text)


async def _of_resources(asked: Exchange) -> Reply:
    """The answer to a method of resources; raises RpcError where there are none."""
    method = resources.METHODS.get(asked.method) if asked.server.choice.for_hosts else None
    if method is None:
        raise _no_method(asked)
    return await method(asked)


def _no_method(asked: Exchange) -> RpcError:
    text = f'There is no method "{asked.method}".'
    return asked.error(jsonrpc.METHOD_NOT_FOUND, text, status=404)

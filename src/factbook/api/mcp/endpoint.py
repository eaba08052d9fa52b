"""The tool-call endpoints: Model Context Protocol servers over Streamable HTTP, no sessions.

They serve the revisions with a handshake (legacy, up to 2025-11-25) and those with metadata in each
request (modern, 2026-07-28) side by side. A bare `tools/call` needs neither.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Struct, UnsetType

from factbook.api.mcp import protocol, resources
from factbook.api.mcp.protocol import LEGACY, META, MODERN, Exchange, RpcError, describe_server
from factbook.errors import (
    InputError,
    NotAcceptableError,
    NotAllowedError,
    UnsupportedMediaTypeError,
    in_words,
    suggestion,
)
from factbook.http.context import Descriptions, ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Reply, Request
from factbook.tools import Tool
from factbook.tools.toolsets import CHECKS, FACTS, MANAGE, Toolset

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
    """Find the server of a choice, of which each is made once."""
    known = {one.name: one for one in toolsets}

    @cache  # of a few toolsets there are few choices
    def server(choice: ServerChoice) -> ToolServer:
        return _build_server([known[name] for name in choice.toolsets], traced, choice)

    return server


def _build_server(toolsets: Sequence[Toolset], traced: Traced, choice: ServerChoice) -> ToolServer:
    capabilities = {"tools": {}, **(resources.CAPABILITIES if choice.for_hosts else {})}
    tools = [tool for one in toolsets for tool in one.tools]
    instructions = " ".join(one.instructions for one in toolsets)
    return ToolServer(
        tools=traced({tool.name: tool for tool in tools}),
        described=cache(
            partial(protocol.describe_server, tools, instructions, capabilities, choice=choice)
        ),
        choice=choice,
    )


_TOOLSETS: Final = "toolsets"
_READ: Final = "read"
_READS: Final = ("full", "compact")
_SCHEMAS: Final = "schemas"
_OUTPUT: Final = "output"
_MOST_PARAMETERS: Final = 20


def find_chosen_server(request: Request, state: ToolContext) -> ToolServer:
    """The server that the query chooses; all toolsets and full answers where it says nothing.

    Schemas of results, half of the list, are there if `schemas=output` asks for them. Raises
    InputError for an unknown toolset or form.
    """
    return state.server(_parse_choice(request.scope["query_string"], state.toolsets))


@lru_cache(maxsize=64)  # a client asks with the same one in every call
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
    """True if the query asks for answers with exactly the members that the first nine tools had."""
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
    """Answer one message to the server of facts."""
    query = request.scope["query_string"]
    choice = _OF_FACTS if not query or not is_strict_query(query) else _STRICT
    return await _answer_request(request, state, state.server(choice))


async def post_checks_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of checks."""
    return await _answer_request(request, state, state.server(_OF_CHECKS))


async def post_managing_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of the tools that write."""
    return await _answer_request(request, state, state.server(_OF_MANAGING))


async def post_any_message(request: Request, state: ToolContext) -> Reply:
    """Answer one message to the server of all toolsets, or of those that the query chooses."""
    return await _answer_request(request, state, find_chosen_server(request, state))


async def _answer_request(request: Request, state: ToolContext, server: ToolServer) -> Reply:
    _check_media_types(request)
    body = await request.body(MAX_BODY, "the body of a tool call")
    # Clients of 2025-03-26, the only revision with batches, send no version header. The seed's
    # endpoint takes batches only from clients that send it all the same.
    version = request.headers.get(b"mcp-protocol-version")
    takes_batches = version == _WITH_BATCHES or (version is None and server.choice.for_hosts)
    if takes_batches and body.lstrip()[:1] == b"[":
        return await _answer_batch(body, request, state, server)
    return await _answer_message(body, request, state, server)


async def _answer_batch(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    """Answer each message in turn, as if each came alone, until the answers are too long."""
    try:
        messages = protocol.parse_batch(body)
    except RpcError as error:
        return error.reply()
    assert request.token is not None
    answers, size = list[bytes](), 0
    for at, message in enumerate(messages):
        try:
            if size > _LONGEST_BATCH:
                raise protocol.build_batch_refusal(
                    message, "The answers before it are too long: send it alone."
                )
            if at and (seconds := state.calls.take(request.token.id)):
                text = f"This token calls too often: send it again in {seconds} seconds."
                raise protocol.build_batch_refusal(message, text)
            if protocol.parse_message(message).method == "initialize":
                raise protocol.build_batch_refusal(message, "initialize can't be part of a batch.")
            reply = await _answer_message(message, request, state, server)
        except RpcError as error:
            reply = error.reply()
        except NotAllowedError as error:  # others of the batch have been answered
            reply = protocol.build_batch_refusal(message, error.message).reply()
        assert isinstance(reply.body, bytes | list)
        whole = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
        size += len(whole)
        answers += [whole] if whole else []
    return Reply(b"[" + b",".join(answers) + b"]") if answers else Reply(status=202)


async def _answer_message(
    body: bytes | bytearray, request: Request, state: ToolContext, server: ToolServer
) -> Reply:
    try:
        message = protocol.parse_message(body)
        if message.id is UNSET:
            return Reply(status=202)
        params = protocol.read_given_params(message)
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
                raise asked.error(protocol.INVALID_REQUEST, error.message) from None
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
        return await protocol.call_tool(asked)
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
    """One request of a revision in which each request carries its own metadata."""

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
            return await protocol.call_tool(asked)
        return await _answer_resource_method(asked)

    def _check_meta(self) -> None:
        meta = {} if self._params.meta is UNSET else self._params.meta
        version = meta.get(f"{META}protocolVersion")
        capabilities = meta.get(f"{META}clientCapabilities")
        if not isinstance(version, str) or not isinstance(capabilities, dict):
            raise self._asked.error(
                protocol.INVALID_PARAMS,
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
    """A header's value, decoded from Base64 if it is between the marks for that."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return value


def _describe_listed_tools(asked: Exchange) -> Descriptions:
    """Descriptions for `tools/list`."""
    server = asked.server
    tools = [tool for tool in server.tools.values() if asked.lists(tool)]
    if asked.grant.narrowing is None and len(tools) == len(server.tools):
        return server.described()
    return describe_server(tools, "", {}, choice=server.choice, is_shared=False)


def _reply_result(asked: Exchange, result: str) -> Reply:
    return Reply(protocol.wrap_result(asked.id, result).encode())


def _read_any_params(asked: Exchange) -> AnyParams:
    try:
        return _any_params_decoder.decode(asked.params)
    except msgspec.ValidationError as error:
        raise asked.error(protocol.INVALID_PARAMS, f"params: {in_words(error)}.") from None


def _refuse_cursor(params: AnyParams, asked: Exchange) -> None:
    if params.cursor is not UNSET and params.cursor != "":
        text = "The list has one page; no cursor was ever given out."
        raise asked.error(protocol.INVALID_PARAMS, text)


async def _answer_resource_method(asked: Exchange) -> Reply:
    """The answer to a method of resources; raises RpcError where there are none."""
    method = resources.RESOURCE_METHODS.get(asked.method) if asked.server.choice.for_hosts else None
    if method is None:
        text = f'There is no method "{asked.method}".'
        raise asked.error(protocol.METHOD_NOT_FOUND, text, status=404)
    return await method(asked)

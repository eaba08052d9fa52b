"""The requests of the tool-call endpoint, which are JSON-RPC 2.0."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import httpx2
import msgspec

from factbook.client.answers import Initialized, ToolDescription
from factbook.client.calls import Call
from factbook.client.errors import ProtocolError, ToolCallError, UnexpectedAnswer
from factbook.client.responses import decode
from factbook.schemas.common import WireAnswer

T = TypeVar("T")

PATH = "/api/mcp/v1/tech-insights-facts"
_REVISION = "2025-11-25"


class _Fault(msgspec.Struct):
    code: int
    message: str
    data: Any = None


class _Reply(msgspec.Struct):
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Fault | None = None


class _Text(msgspec.Struct):
    text: str = ""


class _CallResult(WireAnswer):
    content: list[_Text]
    structured_content: dict[str, Any] | None = None
    is_error: bool = False


class _ToolList(msgspec.Struct):
    tools: list[ToolDescription]


def initialize(path: str = PATH) -> Call[Initialized]:
    """The handshake that agents begin with; the other calls need none.

    `path` is that of another server of tools, such as `/mcp`.
    """
    params = {
        "protocolVersion": _REVISION,
        "capabilities": {},
        "clientInfo": {"name": "factbook-client", "version": "1"},
    }
    return _rpc("initialize", params, partial(_result, Initialized), path)


def tools(path: str = PATH) -> Call[list[ToolDescription]]:
    """The tools that the tool-call endpoint offers, or the server at another path."""
    return _rpc("tools/list", {}, lambda response: _result(_ToolList, response).tools, path)


def call(
    tool: str, arguments: Mapping[str, Any] | None = None, path: str = PATH
) -> Call[dict[str, Any]]:
    """Call a tool of the tool-call endpoint, or of the server at another path; its result.

    Raises ToolCallError when the tool says that it cannot answer, and ProtocolError when there is
    no such tool.
    """
    return _rpc("tools/call", {"name": tool, "arguments": arguments or {}}, _tool_result, path)


def _rpc(
    method: str, params: Mapping[str, Any], read: Callable[[httpx2.Response], T], path: str
) -> Call[T]:
    return Call(
        method="POST",
        path=path,
        read=read,
        content=msgspec.json.encode(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ),
        headers={"accept": "application/json, text/event-stream"},
    )


def _result(type_: type[T], response: httpx2.Response) -> T:
    reply = decode(_Reply, response)
    if reply.error is not None:
        raise ProtocolError(reply.error.code, reply.error.message, reply.error.data)
    try:
        return msgspec.json.decode(reply.result, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnexpectedAnswer(f"The tool-call endpoint's result cannot be read: {error}") from None


def _tool_result(response: httpx2.Response) -> dict[str, Any]:
    result = _result(_CallResult, response)
    if result.is_error:
        raise ToolCallError("\n".join(part.text for part in result.content))
    if result.structured_content is None:
        raise UnexpectedAnswer("The tool's result has no structuredContent.")
    return result.structured_content

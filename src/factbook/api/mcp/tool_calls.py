"""tools/call: the tool that a request names, its result, and the words for its failures."""

from functools import partial
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from factbook import invisible
from factbook.api.mcp import jsonrpc
from factbook.api.mcp.descriptions import MODERN_EXTRA
from factbook.api.mcp.jsonrpc import Exchange
from factbook.errors import (
    FactbookError,
    NotAllowedError,
    ToolError,
    UnavailableError,
    in_words,
    suggestion,
)
from factbook.http import audit
from factbook.http.requests import Reply, offloaded
from factbook.tools import Context, Tool, toolsets
from factbook.tools.tool import ToolCall

log = structlog.get_logger("factbook.mcp")

_LARGE: Final = 256 * 1024


class CallParams(Struct):
    """The params of tools/call."""

    name: str
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


_call_params = msgspec.json.Decoder(CallParams)


async def call(exchange: Exchange) -> Reply:
    """The result of the tool that the request names."""
    try:
        params = _call_params.decode(exchange.params)
    except msgspec.ValidationError as error:
        raise exchange.error(jsonrpc.INVALID_PARAMS, f"{in_words(error)}.") from None
    # Underscores too: some frameworks cannot write hyphens in a tool's name.
    tools = exchange.server.tools
    tool = tools.get(params.name) or tools.get(params.name.replace("_", "-"))
    if tool is None:
        text = f'There is no tool "{params.name}".{suggestion(params.name, tools)}'
        raise exchange.error(jsonrpc.INVALID_PARAMS, text)
    if bytes(params.arguments).lstrip()[:1] != b"{":
        raise exchange.error(jsonrpc.INVALID_PARAMS, "arguments have to be an object.")
    try:
        exchange.authorize(tool)
    except NotAllowedError as error:
        if not exchange.keeps_session:
            raise
        return _refused(exchange, tool, error)
    return await _run(tool, params.arguments, exchange)


async def context_of(exchange: Exchange) -> Context:
    """The context in which tools answer this request."""
    state = exchange.state
    sources = (await state.registry.current()).sources
    in_pages = exchange.server.choice.for_hosts
    return Context(state.database, sources, state.clock(), partial(_call_of, exchange), in_pages)


def _call_of(exchange: Exchange) -> ToolCall:
    request, state = exchange.request, exchange.state
    caller = partial(audit.caller, request, state)
    return ToolCall(exchange.grant, caller, state.registry, state.settings)


async def _run(tool: Tool, arguments: msgspec.Raw, exchange: Exchange) -> Reply:
    state = exchange.state
    extra = MODERN_EXTRA if exchange.modern else ""
    try:
        context = await context_of(exchange)
        found = await tool.call(arguments, context)
        value = found if found.isascii() else await shown(found)
        if exchange.server.choice.is_strict:
            value = await offloaded(toolsets.drop_added_members, tool.name, value)
    except (ToolError, UnavailableError) as error:
        if isinstance(error, UnavailableError):
            log.warning("tool.unavailable", tool=tool.name, cause=error.cause)
        return _refused(exchange, tool, error)
    except FactbookError:
        raise
    except Exception as error:
        log.error("tool.failed", tool=tool.name, exc_info=error)
        state.metrics.called(tool.name, "failed")
        text = "The service met an unexpected condition."
        raise exchange.error(jsonrpc.INTERNAL_ERROR, text, status=500) from None
    state.metrics.called(tool.name, "answered")
    state.usage.add(exchange.grant.id, len(value), context.now)
    return _result(exchange, value, extra)


def _refused(exchange: Exchange, tool: Tool, error: FactbookError) -> Reply:
    """The error as the result of the tool, which a model reads."""
    state, extra = exchange.state, MODERN_EXTRA if exchange.modern else ""
    state.metrics.called(tool.name, "refused")
    # It may name entities and sources as they were stored.
    text = msgspec.json.encode(invisible.without(error.message)).decode()
    state.usage.add(exchange.grant.id, len(text), state.clock())
    failed = f'{{"content":[{{"type":"text","text":{text}}}],"isError":true{extra}}}'
    return Reply(jsonrpc.result(exchange.id, failed).encode())


async def shown(value: str) -> str:
    """JSON as a model gets it: without characters that nobody sees."""
    if len(value) < _LARGE:
        return invisible.without_in_json(value)
    found: str = await offloaded(invisible.without_in_json, value)
    return found


def _result(exchange: Exchange, value: str, extra: str) -> Reply:
    """The value as text for those who read only text, and structured unless it is to be compact."""
    id_, text = exchange.id, msgspec.json.encode(value)
    if exchange.server.choice.is_compact:
        head, tail = jsonrpc.result(id_, _text_alone("\0", extra)).encode().split(b"\0")
        return Reply([head, text, tail])
    if len(value) < _LARGE:
        return Reply(jsonrpc.result(id_, _content(text.decode(), value, extra)).encode())
    head, middle, tail = jsonrpc.result(id_, _content("\0", "\0", extra)).encode().split(b"\0")
    return Reply([head, text, middle, value.encode(), tail])


def _content(text: str, value: str, extra: str) -> str:
    return (
        f'{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{value}'
        f',"isError":false{extra}}}'
    )


def _text_alone(text: str, extra: str) -> str:
    return f'{{"content":[{{"type":"text","text":{text}}}],"isError":false{extra}}}'

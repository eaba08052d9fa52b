"""Resources: entities and scorecards by address, listed page by page, with completion of names.

What a resource holds is what a tool answers about it, with the permissions of that tool.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec
from msgspec import Struct

from factbook import invisible
from factbook.api.endpoint import require_permissions
from factbook.api.mcp import protocol
from factbook.api.mcp.protocol import MODERN_MEMBERS, Exchange
from factbook.auth.permissions import CATALOG_READ, CHECK_READ
from factbook.catalog.store import browse
from factbook.catalog.store.browse import CompletedColumn
from factbook.checks.definitions.definition_versions import scorecard_store
from factbook.errors import ToolError, in_words
from factbook.http.requests import Reply

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
_JSON: Final = "application/json"
# Who may read one entity may read others, so nobody shares an answer.
_PRIVATE: Final = {"ttlMs": 0, "cacheScope": "private"}


class ResourceKind(NamedTuple):
    """A kind of resource: its address, the tool that answers it, and that tool's arguments."""

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
    """A page of resources: all scorecards first, then entities by reference."""
    require_permissions(exchange.grant, (CATALOG_READ,))
    cursor = _read_resource_params(exchange, ListParams).cursor
    database = exchange.state.database
    entities, scorecards = (_reaches_kind(kind, exchange) for kind in RESOURCE_KINDS)
    found = []
    if not cursor and scorecards and CHECK_READ in exchange.grant.permissions:
        stored = await scorecard_store.everything(database)
        found = [_describe_scorecard_resource(one.id, one.title) for one in stored if one.published]
    after = _parse_resource_cursor(cursor, exchange) if cursor else ""
    refs = await browse.complete_refs(database, after, _PAGE + 1) if entities else []
    found += [_describe_entity_resource(ref) for ref in refs[:_PAGE]]
    more = {"nextCursor": quote(refs[_PAGE - 1])} if len(refs) > _PAGE else {}
    return _reply_resource(exchange, {"resources": found, **more}, _PRIVATE)


async def list_mcp_templates(exchange: Exchange) -> Reply:
    """The templates of the addresses of resources."""
    shown = [
        {
            "uriTemplate": kind.template,
            "name": kind.name,
            "title": kind.title,
            "description": kind.description,
            "mimeType": _JSON,
        }
        for kind in RESOURCE_KINDS
    ]
    return _reply_resource(exchange, {"resourceTemplates": shown}, _PRIVATE)


async def read_mcp_resource(exchange: Exchange) -> Reply:
    """One resource as JSON."""
    uri = _read_resource_params(exchange, ReadParams).uri
    for kind in RESOURCE_KINDS:
        if match := kind.address.fullmatch(uri):
            parts = {name: unquote(text) for name, text in match.groupdict().items()}
            text = await _answer_with_tool(kind, parts, uri, exchange)
            content = {"uri": uri, "mimeType": _JSON, "text": text}
            return _reply_resource(exchange, {"contents": [content]}, _PRIVATE)
    raise _build_not_found_error(
        exchange, uri, "resources/templates/list has the forms of addresses."
    )


async def complete_mcp_argument(exchange: Exchange) -> Reply:
    """Values of an argument of a template that begin with its text so far."""
    params = _read_resource_params(exchange, CompletionParams)
    kind = next((one for one in RESOURCE_KINDS if one.template == params.ref.uri), None)
    name = params.argument.name
    if params.ref.type != "ref/resource" or kind is None or f"{{{name}}}" not in kind.template:
        text = "Only arguments of the templates of resources/templates/list are completed."
        raise exchange.error(protocol.INVALID_PARAMS, text)
    values = await _list_completions(params, exchange) if _reaches_kind(kind, exchange) else []
    shown = values[:_MOST_VALUES]
    completion = {"values": shown, "hasMore": len(values) > len(shown)}
    return _reply_resource(exchange, {"completion": completion}, {})


async def _list_completions(params: CompletionParams, exchange: Exchange) -> list[str]:
    """One value more than are shown, if there are."""
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
    """The answer of the tool about the resource; raises RpcError for one that there is not."""
    tool = exchange.state.every_tool[kind.tool]
    exchange.authorize(tool)
    arguments = msgspec.json.encode(kind.arguments(parts))
    try:
        context = await protocol.build_tool_context(exchange)
        found = await tool.call(arguments, context)
    except ToolError as error:
        raise _build_not_found_error(exchange, uri, error.message) from None
    value = found if found.isascii() else await protocol.hide_invisible(found)
    exchange.state.usage.add(exchange.grant.id, len(value), context.now)
    return value


def _reaches_kind(kind: ResourceKind, exchange: Exchange) -> bool:
    """True if what the token is narrowed to has the tool that answers resources of the kind."""
    return exchange.reaches(exchange.state.every_tool[kind.tool])


def _describe_scorecard_resource(id_: str, title: str) -> dict[str, Any]:
    return {
        "uri": f"{_SCORECARDS}{quote(id_, safe='')}",
        "name": id_,
        "title": invisible.without(title),
        "mimeType": _JSON,
    }


def _describe_entity_resource(ref: str) -> dict[str, Any]:
    kind, _, rest = ref.partition(":")
    parts = (kind, *rest.split("/", 1))
    address = "/".join(quote(part, safe="") for part in parts)
    return {"uri": f"{_ENTITIES}{address}", "name": invisible.without(ref), "mimeType": _JSON}


def _parse_resource_cursor(cursor: str, exchange: Exchange) -> str:
    place = unquote(cursor)
    if ":" not in place or "/" not in place or "\0" in place:
        text = "cursor is not the nextCursor of an earlier page."
        raise exchange.error(protocol.INVALID_PARAMS, text)
    return place


def _build_not_found_error(exchange: Exchange, uri: str, hint: str) -> protocol.RpcError:
    code = protocol.INVALID_PARAMS if exchange.modern else LEGACY_NOT_FOUND
    text = f"Resource not found. {invisible.without(hint)}"
    return exchange.error(code, text, data={"uri": uri})


def _read_resource_params(exchange: Exchange, form: type[Any]) -> Any:
    try:
        return msgspec.json.decode(exchange.params, type=form)
    except msgspec.ValidationError as error:
        raise exchange.error(protocol.INVALID_PARAMS, f"params: {in_words(error)}.") from None


def _reply_resource(exchange: Exchange, result: dict[str, Any], caching: dict[str, Any]) -> Reply:
    more = {**caching, **MODERN_MEMBERS} if exchange.modern else {}
    text = msgspec.json.encode({**result, **more}).decode()
    return Reply(protocol.wrap_result(exchange.id, text).encode())


RESOURCE_METHODS: Final[Mapping[str, Callable[[Exchange], Awaitable[Reply]]]] = {
    "resources/list": list_mcp_resources,
    "resources/templates/list": list_mcp_templates,
    "resources/read": read_mcp_resource,
    "completion/complete": complete_mcp_argument,
}
CAPABILITIES: Final[dict[str, Any]] = {"resources": {}, "completions": {}}

"""Servers of the protocol: one for each toolset, and those of several at one address, by choice."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from typing import Final
from urllib.parse import parse_qsl

from factbook.api.mcp import descriptions, resources
from factbook.errors import InputError, suggestion
from factbook.http.context import ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Request
from factbook.tools import Tool
from factbook.tools.toolsets import Toolset

Traced = Callable[[Mapping[str, Tool]], Mapping[str, Tool]]
FindServer = Callable[[ServerChoice], ToolServer]


def servers(toolsets: Sequence[Toolset], traced: Traced) -> FindServer:
    """Find the server of a choice, of which each is made once."""
    known = {one.name: one for one in toolsets}

    @cache  # of a few toolsets there are few choices
    def server(choice: ServerChoice) -> ToolServer:
        return _server([known[name] for name in choice.toolsets], traced, choice)

    return server


def _server(toolsets: Sequence[Toolset], traced: Traced, choice: ServerChoice) -> ToolServer:
    capabilities = {"tools": {}, **(resources.CAPABILITIES if choice.for_hosts else {})}
    tools = [tool for one in toolsets for tool in one.tools]
    instructions = " ".join(one.instructions for one in toolsets)
    return ToolServer(
        tools=traced({tool.name: tool for tool in tools}),
        described=cache(
            partial(descriptions.described, tools, instructions, capabilities, choice=choice)
        ),
        choice=choice,
    )


_TOOLSETS: Final = "toolsets"
_READ: Final = "read"
_READS: Final = ("full", "compact")
_SCHEMAS: Final = "schemas"
_OUTPUT: Final = "output"
_MOST_PARAMETERS: Final = 20


def chosen(request: Request, state: ToolContext) -> ToolServer:
    """The server that the query chooses; all toolsets and full answers where it says nothing.

    Schemas of results, half of the list, are there if `schemas=output` asks for them. Raises
    InputError for an unknown toolset or form.
    """
    return state.server(_choice(request.scope["query_string"], state.toolsets))


@lru_cache(maxsize=64)  # a client asks with the same one in every call
def _choice(query: bytes, known: tuple[str, ...]) -> ServerChoice:
    names: set[str] = set()
    read: str | None = None
    schemas = False
    for name, value in _parsed(query):
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
def is_strict(query: bytes) -> bool:
    """True if the query asks for answers with exactly the members that the first nine tools had."""
    return (_READ, "seed") in _parsed(query)


def _parsed(query: bytes) -> list[tuple[str, str]]:
    text = query.decode("latin-1")
    try:
        return parse_qsl(text, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise InputError(f"The query has more than {_MOST_PARAMETERS} parameters.") from None

"""Servers of the protocol: one for each toolset, and those of several at one address."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from factbook.api.mcp import descriptions
from factbook.http.context import ToolServer
from factbook.tools import Tool
from factbook.tools.toolsets import Toolset

Traced = Callable[[Mapping[str, Tool]], Mapping[str, Tool]]
FindServer = Callable[[tuple[str, ...], bool], ToolServer]


def servers(toolsets: Sequence[Toolset], traced: Traced) -> FindServer:
    """Find the server of these names, of which each is made once; perhaps a compact one."""
    known = {one.name: one for one in toolsets}

    @cache  # of a few toolsets there are few choices
    def server(names: tuple[str, ...], is_compact: bool) -> ToolServer:
        return _server([known[name] for name in names], traced, is_compact=is_compact)

    return server


def _server(toolsets: Sequence[Toolset], traced: Traced, *, is_compact: bool) -> ToolServer:
    tools = [tool for one in toolsets for tool in one.tools]
    instructions = " ".join(one.instructions for one in toolsets)
    return ToolServer(
        tools=traced({tool.name: tool for tool in tools}),
        described=cache(
            partial(
                descriptions.described, tools, instructions, {"tools": {}}, is_compact=is_compact
            )
        ),
        is_compact=is_compact,
    )

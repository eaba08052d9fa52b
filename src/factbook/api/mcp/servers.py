"""Servers of the protocol: one for each toolset, and those of several at one address."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial

from factbook.api.mcp import descriptions, resources
from factbook.http.context import ServerChoice, ToolServer
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

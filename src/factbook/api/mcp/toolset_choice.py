"""The choice of toolsets at the address of all of them, and of the form of answers."""

from typing import Final

from factbook.api.openapi.parameter_types import Choice, Texts
from factbook.errors import InputError
from factbook.http.context import ServerChoice, ToolContext, ToolServer
from factbook.http.requests import Request

TOOLSETS: Final = Texts(
    name="toolsets",
    description="Names of toolsets, separated by commas; all of them when left out.",
    example=["facts"],
    most=20,
)
READ: Final = Choice(
    name="read",
    description="compact: results are text alone, and tools are listed without their schemas.",
    words=("full", "compact"),
)
PARAMETERS: Final = (TOOLSETS, READ)


def chosen(request: Request, state: ToolContext) -> ToolServer:
    """The server that the query chooses; all toolsets and full answers where it says nothing.

    Raises InputError for a toolset or a form that there is not.
    """
    if not request.scope["query_string"]:
        return state.server(ServerChoice(state.toolsets, has_resources=True))
    names, is_compact = _toolsets(request, state), READ.of(request) == "compact"
    return state.server(ServerChoice(names, is_compact, has_resources=True))


def _toolsets(request: Request, state: ToolContext) -> tuple[str, ...]:
    named = {name.strip() for one in TOOLSETS.of(request) for name in one.split(",")}
    if unknown := sorted(named.difference(state.toolsets)):
        known = ", ".join(state.toolsets)
        raise InputError(f'There is no toolset "{unknown[0][:100]}". There are: {known}.')
    return tuple(name for name in state.toolsets if not named or name in named)

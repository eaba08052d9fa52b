"""The choice of toolsets at the address of all of them, and of the form of answers."""

from typing import Final

from factbook.errors import InputError
from factbook.http.context import ToolContext, ToolServer
from factbook.http.requests import Request

TOOLSETS: Final = "toolsets"
READ: Final = "read"
_READS: Final = ("full", "compact")


def chosen(request: Request, state: ToolContext) -> ToolServer:
    """The server that the query chooses; all toolsets and full answers where it says nothing.

    Raises InputError for a toolset or a form that there is not.
    """
    if not request.scope["query_string"]:
        return state.server(state.toolsets, False)
    request.allow_only((TOOLSETS, READ))
    return state.server(_toolsets(request, state), _is_compact(request))


def _toolsets(request: Request, state: ToolContext) -> tuple[str, ...]:
    named = [name.strip() for one in request.all(TOOLSETS) for name in one.split(",")]
    known = ", ".join(state.toolsets)
    for name in named:
        if name not in state.toolsets:
            raise InputError(f'There is no toolset "{name}". There are: {known}.')
    return tuple(name for name in state.toolsets if not named or name in named)


def _is_compact(request: Request) -> bool:
    given = request.all(READ)
    if len(given) > 1 or any(one not in _READS for one in given):
        raise InputError(f"read is one of {' and '.join(_READS)}, given once.")
    return given == ["compact"]

"""Routing of requests to applications by their paths."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from re import Pattern
from typing import Final

from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

# A parameter that takes all that is left of a path, its slashes too.
_REST: Final = ":path}"


def router(endpoints: Mapping[str, ASGIApp], nowhere: ASGIApp) -> ASGIApp:
    """Router over all these paths, some with parameters; `nowhere` gets the others.

    A path of fixed length goes before one whose last parameter takes the rest.
    """
    exact = {path: endpoint for path, endpoint in endpoints.items() if "{" not in path}
    lengths: defaultdict[int, list[tuple[Pattern[str], ASGIApp]]] = defaultdict(list)
    rest: list[tuple[Pattern[str], ASGIApp]] = []
    for path, endpoint in endpoints.items():
        if _REST in path:
            rest.append((_pattern(path), endpoint))
        elif "{" in path:
            lengths[path.count("/")].append((_pattern(path), endpoint))

    def found(scope: Scope) -> ASGIApp:
        path: str = scope["path"]
        if (endpoint := exact.get(path)) is not None:
            return endpoint
        for candidates in (lengths.get(path.count("/"), ()), rest):
            for pattern, endpoint in candidates:
                if match := pattern.match(path):
                    scope["path_params"] = match.groupdict()
                    return endpoint
        return nowhere

    async def dispatch(scope: Scope, receive: Receive, send: Send) -> None:
        await found(scope)(scope, receive, send)

    return dispatch


@cache
def _pattern(path: str) -> Pattern[str]:
    """Pattern of a path whose parameters are texts; a process starts many services in tests."""
    pattern, _, _ = compile_path(path)
    return pattern

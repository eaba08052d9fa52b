"""Answers of the tool-call endpoints about themselves, encoded once: the same for every request."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from factbook import __version__
from factbook.http.context import Descriptions, ServerChoice
from factbook.tools import Tool

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
META: Final = "io.modelcontextprotocol/"

_SERVER: Final = {"name": "factbook", "title": "Factbook", "version": __version__}
_CACHING: Final = {"ttlMs": 300_000, "cacheScope": "public"}
MODERN_MEMBERS: Final = {"resultType": "complete", "_meta": {f"{META}serverInfo": _SERVER}}


def described(
    tools: Iterable[Tool],
    instructions: str,
    capabilities: dict[str, Any],
    *,
    choice: ServerChoice,
    is_shared: bool = True,
) -> Descriptions:
    """Encode what the server of a choice says of itself.

    What is not shared is for one token: no cache may show it to others.
    """
    caching = _CACHING if is_shared else {**_CACHING, "cacheScope": "private"}
    listed = [_listed(tool, choice) for tool in tools]
    about = {"capabilities": capabilities, "serverInfo": _SERVER, "instructions": instructions}
    return Descriptions(
        legacy=_encode({"tools": listed}),
        modern=_encode({"tools": listed, **caching, **MODERN_MEMBERS}),
        initialized={version: _encode({"protocolVersion": version, **about}) for version in LEGACY},
        discovered=_encode(
            {
                "supportedVersions": [MODERN, *LEGACY],
                "capabilities": capabilities,
                "instructions": instructions,
                **_CACHING,
                **MODERN_MEMBERS,
            }
        ),
    )


def _listed(tool: Tool, choice: ServerChoice) -> dict[str, Any]:
    # Who is listed the schema of results expects structured ones.
    has_schema = choice.has_output_schemas and not choice.is_compact
    schema = {"outputSchema": tool.output_schema} if has_schema else {}
    return {
        "name": tool.name,
        "title": tool.title,
        "description": (choice.for_hosts and tool.host_description) or tool.description,
        "inputSchema": tool.input_schema,
        **schema,
        "annotations": {
            "title": tool.title,
            "readOnlyHint": not tool.writes,
            "destructiveHint": False,
            "idempotentHint": not tool.writes,
            "openWorldHint": False,
        },
    }


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


MODERN_EXTRA: Final = "," + _encode(MODERN_MEMBERS)[1:-1]

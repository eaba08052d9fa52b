"""Answers of the tool-call endpoint about itself, encoded once: the same for every request."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from factbook import __version__
from factbook.http.context import Lists
from factbook.tools import Tool

MODERN: Final = "2026-07-28"
LEGACY: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
META: Final = "io.modelcontextprotocol/"

_SERVER: Final = {"name": "factbook", "title": "Factbook", "version": __version__}
_CAPABILITIES: Final[dict[str, Any]] = {"tools": {}}
_CACHING: Final = {"ttlMs": 300_000, "cacheScope": "public"}
_INSTRUCTIONS: Final = (
    "Facts about the entities of a software catalog. Call get-data-source-discovery first: it "
    "lists the data sources whose ids get-entity-facts and get-all-entities-facts take. "
    "get-fact-history tells what facts were, get-changed-facts what changed. The other tools "
    "return ready figures about one entity. A value `unknown` was not determined; unknownReasons "
    "says why. Entities are addressed by name, kind (default component) and namespace (default "
    "default)."
)


def lists(tools: Iterable[Tool]) -> Lists:
    """Encode the lists of these tools."""
    listed = [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": {
                "title": tool.title,
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
        }
        for tool in tools
    ]
    return Lists(
        legacy=_encode({"tools": listed}),
        modern=_encode({"tools": listed, **_CACHING, **_MODERN_FIELDS}),
    )


def initialized(version: str) -> str:
    """The result of `initialize` for a legacy revision."""
    return _encode(
        {
            "protocolVersion": version,
            "capabilities": _CAPABILITIES,
            "serverInfo": _SERVER,
            "instructions": _INSTRUCTIONS,
        }
    )


def _encode(value: object) -> str:
    return msgspec.json.encode(value).decode()


_MODERN_FIELDS: Final = {"resultType": "complete", "_meta": {f"{META}serverInfo": _SERVER}}
MODERN_EXTRA: Final = "," + _encode(_MODERN_FIELDS)[1:-1]
DISCOVERED: Final = _encode(
    {
        "supportedVersions": [MODERN, *LEGACY],
        "capabilities": _CAPABILITIES,
        "instructions": _INSTRUCTIONS,
        **_CACHING,
        **_MODERN_FIELDS,
    }
)

"""`python -m tests.contracts.demo --port PORT`: the service with tools that only the suite calls.

The product has no such tools. Everything else is what `factbook serve` serves.
"""

import sys
from functools import cached_property

import uvicorn
from msgspec import Struct

from factbook.app import Application
from factbook.errors import ToolError
from factbook.settings.table import load_settings
from factbook.telemetry import logs
from factbook.tools import TOOLS, Context, Tool
from factbook.tools.tool import Schema

_TEXT: Schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_WORD: Schema = {"type": "string"}


class NoArguments(Struct, forbid_unknown_fields=True):
    """No argument is needed."""


class RichTool(Tool):
    """A tool whose schema has every keyword that has to come through a listing unchanged."""

    @cached_property
    def input_schema(self) -> Schema:
        """A place to meet, with either a street or a room."""
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {
                "address": {
                    "$anchor": "place",
                    "type": "object",
                    "properties": {"street": _WORD, "town": _WORD},
                }
            },
            "type": "object",
            "properties": {"address": {"$ref": "#/$defs/address"}, "room": _WORD, "how": _WORD},
            "allOf": [{"anyOf": [{"required": ["address"]}, {"required": ["room"]}]}],
            "if": {"properties": {"how": {"const": "on site"}}, "required": ["how"]},
            "then": {"required": ["room"]},
            "else": {"required": ["address"]},
            "additionalProperties": False,
        }


async def _simple(_: NoArguments, __: Context) -> str:
    return '{"text":"as simple as that"}'


async def _failing(_: NoArguments, __: Context) -> str:
    raise ToolError("This tool fails whenever it is called.")


# The names are the suite's.
DEMO = (
    Tool("test_simple_text", "Text", "Returns a text.", NoArguments, _TEXT, _simple),
    Tool("test_error_handling", "Failure", "Fails.", NoArguments, _TEXT, _failing),
    RichTool(
        "json_schema_2020_12_tool", "Schema", "Has a schema.", NoArguments, _TEXT, _simple
    ),
)  # fmt: skip


def main() -> None:
    """Serve on a port of loopback until stopped."""
    settings = load_settings()
    logs.configure_logs(settings)
    uvicorn.run(
        Application(settings, tools=(*TOOLS, *DEMO)),
        port=int(sys.argv[sys.argv.index("--port") + 1]),
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
    )


if __name__ == "__main__":
    main()

"""JSON Schemas of results, and texts that several tools say about theirs."""

from collections.abc import Sequence
from typing import Any, Final

Schema = dict[str, Any]

SIZE_NOTE: Final = "Agents cut results above about 25,000 tokens"


def text(description: str) -> Schema:
    """The JSON Schema of a text in a result."""
    return {"type": "string", "description": description}


def record(properties: Schema, required: Sequence[str]) -> Schema:
    """The JSON Schema of an object in a result, with the members that are always there."""
    return {"type": "object", "properties": properties, "required": list(required)}


def array(items: Schema) -> Schema:
    """The JSON Schema of a list in a result."""
    return {"type": "array", "items": items}


NEXT_CURSOR: Final = text("Pass as cursor for the next page.")
AGE: Final[Schema] = {
    "asOf": text("Time as of which the figures are right."),
    "staleSources": array(text("Data source of the figures that is down or overdue since asOf.")),
}

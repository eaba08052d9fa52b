"""Each metric shape in turn, and a value for every path of it."""

from typing import Any

from factbook.facts.schema import Shape

EXAMPLES = {
    "number|unknown": 1,
    "boolean|unknown": True,
    "string|unknown": "text",
    "string[]": ["text"],
    "number": 1,
    "boolean": True,
    "string": "text",
}


def everything(shape: Shape) -> dict[str, Any]:
    """A value for every path of the shape."""
    return {path: EXAMPLES[leaf.type] for member in shape.members for path, leaf in member.paths}

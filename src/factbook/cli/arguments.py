"""Tool arguments as typed on the command line: `key=value`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from factbook.errors import InputError, suggestion

if TYPE_CHECKING:
    from factbook.client import Tool


def typed_arguments(
    tools: Sequence["Tool"], name: str, pairs: Sequence[str]
) -> tuple[str, dict[str, Any]]:
    """The tool's own name and its arguments, each of the type in the tool's schema.

    Raises InputError for an unknown tool or argument, listing the known ones, and for a value of
    another type.
    """
    tool = _tool(tools, name)
    properties = tool.input_schema.get("properties", {})
    return tool.name, dict(_argument(tool.name, properties, pair) for pair in pairs)


def _tool(tools: Sequence["Tool"], name: str) -> "Tool":
    for tool in tools:
        if tool.name == name.replace("_", "-"):
            return tool
    there = suggestion(name, (tool.name for tool in tools))
    raise InputError(f'There is no tool "{name}".{there}')


def _argument(tool: str, properties: Mapping[str, Any], pair: str) -> tuple[str, Any]:
    key, equals, text = pair.partition("=")
    if not equals:
        raise InputError(f'"{pair}" is not of the form key=value.')
    if key not in properties:
        known = ", ".join(properties) or "none"
        raise InputError(f'{tool} has no argument "{key}". Its arguments are: {known}.')
    return key, value(key, text, properties[key].get("type", "string"))


def value(key: str, text: str, type_: str) -> Any:
    """Convert text to a type of JSON Schema; raises InputError if it is not a valid value."""
    import msgspec

    if type_ == "string":
        return text
    python = {
        "integer": int | float,
        "number": float,
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    try:
        found: Any = msgspec.json.decode(text, type=python.get(type_, Any))
        if type_ != "integer":
            return found
        if int(found) != found:
            raise ValueError
        return int(found)
    except (msgspec.DecodeError, ValueError, RecursionError):
        example = {"array": ', for example ["a","b"]', "object": ', for example {"a":1}'}
        raise InputError(
            f'{key} has to be of type {type_}{example.get(type_, "")}, not "{text}".'
        ) from None

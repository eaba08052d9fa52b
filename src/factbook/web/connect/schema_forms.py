"""Forms from the JSON Schema of a tool's arguments, and arguments from typed text."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

Control = Literal["text", "integer", "number", "boolean", "choice", "list", "object"]

_CONTROLS: Final[Mapping[str, Control]] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}
# Beyond, JSON's readers differ about a number.
_MOST_DIGITS = 15


class ArgumentField(NamedTuple):
    """Form field of one argument; texts are empty where the schema has none."""

    name: str
    control: Control
    description: str
    is_required: bool
    default: str
    example: str
    choices: tuple[tuple[str, str], ...]  # values, and how they are shown


def fields(schema: Mapping[str, Any]) -> list[ArgumentField]:
    """Fields of an object schema of strings, numbers, booleans, lists of strings and objects.

    Required ones come first, otherwise in the order of the schema.
    """
    required = schema["required"]
    found = [_field(name, part, name in required) for name, part in schema["properties"].items()]
    return sorted(found, key=lambda field: not field.is_required)


def arguments(
    known: Sequence[ArgumentField], typed: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Typed arguments, and by name the problems of those that cannot be converted.

    Empty ones are left out. The tool itself validates the values.
    """
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field in known:
        text = typed.get(field.name, "").strip()
        if not text:
            continue
        try:
            values[field.name] = _value(field, text)
        except ValueError as error:
            problems[field.name] = str(error)
    return values, problems


def _field(name: str, part: Mapping[str, Any], is_required: bool) -> ArgumentField:
    control = _CONTROLS.get(part["type"], "text")
    choices = tuple((_text(value), _text(value)) for value in part.get("enum", ()))
    examples = part.get("examples") or [""]
    return ArgumentField(
        name,
        "choice" if choices else control,
        part.get("description", ""),
        is_required,
        _text(part.get("default", "")),
        _text(examples[0]),
        choices,
    )


def _text(value: Any) -> str:
    """A value as typed."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _value(field: ArgumentField, text: str) -> Any:
    """Value of a text; raises ValueError saying what to write."""
    match field.control:
        case "integer":
            return _integer(text)
        case "number":
            return _number(text)
        case "boolean":
            if text not in {"true", "false"}:
                raise ValueError("Write true or false.")
            return text == "true"
        case "list":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "object":
            return _object(text, field.example)
        case _:
            return text


def _object(text: str, example: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        raise ValueError(f"Write a JSON object, such as {example}.") from None


def _integer(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError("Write a whole number, such as 20.")
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"Write a number of at most {_MOST_DIGITS} digits.")
    return int(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("Write a number, such as 0.5.")
    return number

"""Facts and their types. A value of another type is never converted: it counts as no value.

Two spellings of a value of the type are: 5.0 is the integer 5, as in JSON Schema, and a date alone
is its first moment in UTC.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

from factbook.facts.reasons import BAD_DEFINITION, NOT_APPLICABLE, UPSTREAM_ERROR

FactType = Literal["integer", "float", "string", "boolean", "datetime", "set", "object"]

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    rf"{_DATE.pattern}T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)", re.ASCII | re.IGNORECASE
)
# Halves of a character that UTF-8, and so the database, cannot hold.
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Fact:
    """A fact of a data source; `unit` is set if a number has one, `title` if people chose one."""

    name: str
    type: FactType
    description: str = ""
    unit: str | None = None
    title: str = ""

    def descriptor(self) -> dict[str, Any]:
        """The fact as shown by discovery: `{type, description, metadata: {key}, unit, title}`."""
        description = {"description": self.description} if self.description else {}
        further = {"unit": self.unit, "title": self.title}
        texts = {name: text for name, text in further.items() if text}
        return {"type": self.type, **description, "metadata": {"key": self.name}, **texts}


class CheckedValues(NamedTuple):
    """Values of the declared types, and the reasons for missing ones by fact name."""

    stored: dict[str, Any]
    reasons: dict[str, str]


def check(
    schema: Iterable[Fact], values: Mapping[str, object], mistaken: str = UPSTREAM_ERROR
) -> CheckedValues:
    """The values that can be stored, in schema order, and a reason for each of the others.

    None is no value. A name that the schema lacks, or a value of the wrong type, gets a reason that
    starts with `mistaken`.
    """
    checked = CheckedValues({}, {})
    facts = {fact.name: fact for fact in schema}
    for name, fact in facts.items():
        if name in values:
            _check_one(fact, values[name], checked, mistaken)
    for name in values:
        if name not in facts:
            checked.reasons[name] = f"{mistaken}: the data source declares no such fact"
    return checked


def _check_one(fact: Fact, value: object, checked: CheckedValues, mistaken: str) -> None:
    type_ = TYPES[fact.type]
    value = _plain(fact.type, value)
    if value is None:
        checked.reasons[fact.name] = f"{NOT_APPLICABLE}: no value was given"
    elif type_.holds(value):
        checked.stored[fact.name] = value
    else:
        text = f"expected {type_.words}, not {_kind_of(value)}"
        where = f"schema.{fact.name}.type: " if mistaken == BAD_DEFINITION else ""
        checked.reasons[fact.name] = f"{mistaken}: {where}{text}"


def _plain(type_: FactType, value: object) -> object:
    """The value in the spelling in which its type is stored."""
    if type_ == "integer" and type(value) is float and value.is_integer():
        return int(value)
    return dated(value) if type_ == "datetime" and isinstance(value, str) else value


def _is_integer(value: object) -> bool:
    return type(value) is int


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_boolean(value: object) -> bool:
    return type(value) is bool


def is_text(value: object) -> bool:
    """Return true for a string that UTF-8, and so the database, can hold."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATES.search(value))


def moment(text: str) -> datetime:
    """The moment of a date, or of a date and time; raises ValueError for another text."""
    text = dated(text)
    if not _DATETIME.fullmatch(text):
        raise ValueError("not a date, or date and time with a UTC offset")
    return datetime.fromisoformat(text.upper())


def dated(text: str) -> str:
    """The text, or the moment at which the day begins if it is a date."""
    return f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text


def _is_datetime(value: object) -> bool:
    if not isinstance(value, str) or not _DATETIME.fullmatch(value):
        return False
    try:
        moment(value)
    except ValueError:
        return False
    return True


def _is_set(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(is_text(item) or _is_number(item) for item in value) and (
        len(set(value)) == len(value)
    )


def _is_object(value: object) -> bool:
    return isinstance(value, dict | list) and _is_json(value)


def _is_json(value: object) -> bool:
    if isinstance(value, dict):
        return all(is_text(key) and _is_json(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    return value is None or _is_boolean(value) or _is_number(value) or is_text(value)


class _ValueType(NamedTuple):
    words: str
    holds: Callable[[object], bool]


TYPES: dict[FactType, _ValueType] = {
    "integer": _ValueType("an integer", _is_integer),
    "float": _ValueType("a number", _is_number),
    "string": _ValueType("a string", is_text),
    "boolean": _ValueType("a boolean", _is_boolean),
    "datetime": _ValueType("an ISO 8601 date, or a date and time with a UTC offset", _is_datetime),
    "set": _ValueType("a list of distinct strings or numbers", _is_set),
    "object": _ValueType("a JSON object or array", _is_object),
}


def _kind_of(value: object) -> str:
    """The JSON type of a value, never the value itself: it may be a misplaced secret."""
    kinds: dict[type, str] = {
        bool: "a boolean",
        int: "an integer",
        float: "this number",
        str: "this string",
        list: "this list",
        dict: "this object",
    }
    return kinds.get(type(value), f"a {type(value).__name__}")

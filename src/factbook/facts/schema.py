"""Facts and their types, and the reasons for unknown values.

A value of another type is never converted: it counts as no value, for a reason from a closed
list of words, each with its meaning and remedy.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

NOT_CONFIGURED: Final = "not-configured"
NO_ANNOTATION: Final = "no-annotation"
BAD_ANNOTATION: Final = "bad-annotation"
NEVER_COLLECTED: Final = "never-collected"
NOT_SENT: Final = "not-sent"
NOT_APPLICABLE: Final = "not-applicable"
UPSTREAM_ERROR: Final = "upstream-error"
RATE_LIMITED: Final = "rate-limited"
EXPIRED: Final = "expired"
TOO_LARGE: Final = "too-large"
BAD_DEFINITION: Final = "bad-definition"
# The place of a reason that stands for all facts, where it is shown.
ANY_FACT: Final = "*"
# They say nothing about a value, only that it could not be asked for.
PASSING: Final = frozenset({RATE_LIMITED, UPSTREAM_ERROR})
REASONS: Final[dict[str, str]] = {
    NOT_CONFIGURED: (
        "No integration that determines this is configured on this server. Asking again does not "
        "help; an administrator can configure one."
    ),
    NO_ANNOTATION: (
        "The entity lacks the annotation that says where to look. Its owner can add it; the "
        "entityFilter of the data source, in get-data-source-discovery, shows which."
    ),
    BAD_ANNOTATION: (
        "The entity has the annotation that says where to look, but its value cannot be read; the "
        "detail says what it should be. Its owner can correct it."
    ),
    NOT_APPLICABLE: (
        "There is no such thing for this entity, for instance no merged pull request to take an "
        "average of. Nothing needs to be done."
    ),
    NEVER_COLLECTED: (
        "No collection has reached this entity yet. Ask again after the next run of the data "
        "source; its cadence is in get-data-source-discovery."
    ),
    NOT_SENT: (
        "Facts of this data source are pushed, and no push sent this one. Asking again doesn't "
        "help; the script that pushes can send it, or state why it is unknown."
    ),
    BAD_DEFINITION: (
        "The definition of the data source doesn't fit the value or document; the detail names the "
        "key. The owner of the data source can correct the definition, or what is sent to it."
    ),
    "not-found": (
        "The vendor does not know what the entity's annotation names, or hides it. The entity's "
        "owner can correct the annotation."
    ),
    "forbidden": (
        "The credential of the integration may not read this, or is not accepted; the detail says "
        "which. An administrator can widen its permissions, or renew it."
    ),
    "feature-off": (
        "The feature is switched off at the vendor, or is not part of the plan or of this version. "
        "An administrator there can switch it on or upgrade."
    ),
    RATE_LIMITED: (
        "The vendor's rate limit was reached before a first value was read. The next run tries "
        "again; ask again after it."
    ),
    TOO_LARGE: (
        "There is more of it than this server reads. The detail names the limit; where it is a "
        "setting, an administrator can raise it."
    ),
    UPSTREAM_ERROR: (
        "The vendor did not answer, or answered what cannot be used. The next run tries again; if "
        "this stays, an administrator can look at the runs of the data source."
    ),
    EXPIRED: (
        "The last value is too old to rely on: no run since then could renew it, and the detail "
        "says why. An administrator can look at the runs of the data source."
    ),
}
# Said instead where a value is needed for an answer, and is not there.
NEEDED: Final[dict[str, str]] = REASONS | {
    NOT_APPLICABLE: (
        "No data source that was asked has such a value for this entity, and asking again does not "
        "help. An administrator can configure one that has it, or the fact can be pushed; "
        "get-entity-facts has what each data source knows."
    ),
}
FactType = Literal["integer", "float", "string", "boolean", "datetime", "set", "object"]
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DATETIME = re.compile(
    rf"{_DATE.pattern}T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)", re.ASCII | re.IGNORECASE
)
# Halves of a character that UTF-8, and so the database, cannot hold.
_SURROGATES = re.compile("[\ud800-\udfff]")


def reason_word(reason: str) -> str:
    """The word of a stored reason, which may be followed by details: `upstream-error: details`.

    A reason that starts with none of these words counts as `upstream-error`.
    """
    found = reason.partition(":")[0]
    return found if found in REASONS else UPSTREAM_ERROR


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


def check_values(
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
            _check_value(fact, values[name], checked, mistaken)
    for name in values:
        if name not in facts:
            checked.reasons[name] = f"{mistaken}: the data source declares no such fact"
    return checked


def _check_value(fact: Fact, value: object, checked: CheckedValues, mistaken: str) -> None:
    type_ = TYPES[fact.type]
    value = _normalize_value(fact.type, value)
    if value is None:
        checked.reasons[fact.name] = f"{NOT_APPLICABLE}: no value was given"
    elif type_.holds(value):
        checked.stored[fact.name] = value
    else:
        text = f"expected {type_.words}, not {_json_type(value)}"
        where = f"schema.{fact.name}.type: " if mistaken == BAD_DEFINITION else ""
        checked.reasons[fact.name] = f"{mistaken}: {where}{text}"


def _normalize_value(type_: FactType, value: object) -> object:
    """The value in the spelling in which its type is stored."""
    if type_ == "integer" and type(value) is float and value.is_integer():
        return int(value)
    return moment_or_text(value) if type_ == "datetime" and isinstance(value, str) else value


def _is_integer(value: object) -> bool:
    return type(value) is int


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_boolean(value: object) -> bool:
    return type(value) is bool


def is_text(value: object) -> bool:
    """Return true for a string that UTF-8, and so the database, can hold."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATES.search(value))


def moment_of_text(text: str) -> datetime:
    """The moment of a date, or of a date and time; raises ValueError for another text."""
    text = moment_or_text(text)
    if not _DATETIME.fullmatch(text):
        raise ValueError("not a date, or date and time with a UTC offset")
    return datetime.fromisoformat(text.upper())


def moment_or_text(text: str) -> str:
    """The text, or the moment at which the day begins if it is a date."""
    return f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text


def _is_datetime(value: object) -> bool:
    if not isinstance(value, str) or not _DATETIME.fullmatch(value):
        return False
    try:
        moment_of_text(value)
    except ValueError:
        return False
    return True


def _is_set_value(value: object) -> bool:
    if not isinstance(value, list):
        return False
    return all(is_text(item) or _is_number(item) for item in value) and (
        len(set(value)) == len(value)
    )


def _is_object_value(value: object) -> bool:
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
    "set": _ValueType("a list of distinct strings or numbers", _is_set_value),
    "object": _ValueType("a JSON object or array", _is_object_value),
}


def _json_type(value: object) -> str:
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

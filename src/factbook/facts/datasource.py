"""Data sources: their public description, and parsing of the document that defines one.

Readers of members call `report` with the path of an invalid value.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from factbook import clock
from factbook.catalog import filters, ref
from factbook.catalog.filters import EntityFilter
from factbook.clock import DAY, HOUR, MINUTE, SECOND, iso_or_none
from factbook.errors import InputError, InvalidItemsError, Problems, one_of, problem
from factbook.facts.schema import (
    BAD_DEFINITION,
    TYPES,
    UPSTREAM_ERROR,
    CheckedValues,
    Fact,
    FactType,
    check_values,
)
from factbook.scheduling import schedule

Report = Callable[[str, str], None]

# The largest number of months whose milliseconds fit a database integer.
LARGEST_COUNT: Final = 1_000_000_000

_IDENTIFIER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Source: the regular expression suggested by semver.org.
_NUMBER: Final = r"(0|[1-9]\d*)"
_PRERELEASE: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?"
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)


def take_object(value: object, path: str, report: Report) -> dict[str, Any]:
    """An object; empty if the value is not an object."""
    if isinstance(value, dict):
        return value
    report(path, "has to be an object")
    return {}


def take_string(value: object, path: str, report: Report) -> str:
    """A text that is not blank."""
    if isinstance(value, str) and value.strip():
        return value
    report(path, "has to be a string that is not blank")
    return ""


def take_text(value: object, path: str, report: Report) -> str:
    """Any text."""
    if isinstance(value, str):
        return value
    report(path, "has to be a string")
    return ""


def take_identifier(value: object, path: str, report: Report) -> str:
    """An id."""
    if isinstance(value, str) and _IDENTIFIER.fullmatch(value):
        return value
    report(path, "has to be 1 to 100 letters, digits, dots, dashes or underscores")
    return ""


def take_boolean(value: object, path: str, report: Report) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        report(path, "has to be true or false")
    return value is True


def take_count(value: object, path: str, report: Report) -> int:
    """A positive integer."""
    if type(value) is int and 0 < value <= LARGEST_COUNT:
        return value
    report(path, f"has to be a whole number from 1 to {LARGEST_COUNT}")
    return 0


def take_version(value: object, path: str, report: Report) -> str:
    """A semantic version."""
    if isinstance(value, str) and _VERSION.fullmatch(value):
        return value
    report(path, "has to be a semantic version such as 1.0.0")
    return ""


def take_reference(value: object, path: str, report: Report, kind: str | None = None) -> str:
    """A canonical reference; `kind` is the default for references without one."""
    try:
        if isinstance(value, str):
            return ref.canonicalize_ref(value, kind=kind)
    except InputError as error:
        report(path, error.message)
        return ""
    report(path, "has to be a reference such as group:default/platform")
    return ""


# How many of each unit, e.g. `{"minutes": 20}`.
Duration = Mapping[str, int]

TIMEOUT_UNITS = {"seconds": SECOND, "minutes": MINUTE, "hours": HOUR}
LIFETIME_UNITS = {"days": DAY, "weeks": 7 * DAY, "months": 30 * DAY}
_DURATION_UNITS = TIMEOUT_UNITS | LIFETIME_UNITS


@dataclass(frozen=True)
class Handler:
    """Collector of the facts. `config` holds the remaining configuration, which is not shown."""

    type: str
    id: str
    builtin_id: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def render(self) -> dict[str, Any]:
        """`{type, config: {id, builtinId?}}`."""
        builtin = {"builtinId": self.builtin_id} if self.builtin_id else {}
        return {"type": self.type, "config": {"id": self.id, **builtin}}


class Lifecycle(Struct, frozen=True):
    """Retention of history: the newest `max_items` of an entity, or rows that are recent enough."""

    max_items: int | None = None
    time_to_live: Duration | None = None

    def keeps(self, place: int, age: int) -> bool:
        """Return true to keep an entity's `place`-th newest row (from 1) of `age` milliseconds."""
        if self.max_items is not None:
            return place <= self.max_items
        return self.time_to_live is None or age <= duration_milliseconds(self.time_to_live)

    def render(self) -> dict[str, Any]:
        """`{maxItems}` or `{timeToLive}`."""
        if self.max_items is not None:
            return {"maxItems": self.max_items}
        return {"timeToLive": dict(self.time_to_live or {})}


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """A source of facts. Times are milliseconds since the epoch; None means not given.

    One with an `owner`, a group or user, is about entities of this owner alone.
    """

    id: str
    title: str
    description: str | None = None
    owner: str | None = None
    cadence: str | None = None
    lifecycle: Lifecycle | None = None
    created_at: int | None = None
    updated_at: int | None = None
    handler: Handler | None = None
    timeout: Duration | None = None
    draft: bool = False
    version: str = "1.0.0"
    entity_filter: EntityFilter | None = None
    schema: tuple[Fact, ...] = ()

    @property
    def selection(self) -> EntityFilter | None:
        """The filter of the source's entities; None for every entity."""
        if self.owner is None:
            return self.entity_filter
        return filters.restrict_to_owner(self.entity_filter, self.owner)

    @property
    def ownership(self) -> EntityFilter | None:
        """The filter of the entities of its owner; None without one."""
        return None if self.owner is None else filters.restrict_to_owner(None, self.owner)

    def left_out(self, ref: str) -> str:
        """The sentence for an entity outside the source's filter."""
        if self.owner is None:
            return f"the entityFilter of {self.id} leaves {ref} out"
        matching = " that match its entityFilter" if self.entity_filter else ""
        about = f"the data source {self.id} is only about entities of {self.owner}{matching}"
        return f"{about}, and leaves {ref} out"

    def check(self, values: Mapping[str, object]) -> CheckedValues:
        """The values that can be stored, and a reason for each of the others."""
        is_custom = self.handler is not None and self.handler.type != "builtin"
        return check_values(self.schema, values, BAD_DEFINITION if is_custom else UPSTREAM_ERROR)

    def render(self) -> dict[str, Any]:
        """The data source as shown by discovery: in camel case, omitting what is not given."""
        shown = {
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "owner": self.owner,
            "cadence": self.cadence,
            "lifecycle": self.lifecycle and self.lifecycle.render(),
            "createdAt": iso_or_none(self.created_at),
            "updatedAt": iso_or_none(self.updated_at),
            "handlerDefinition": self.handler and self.handler.render(),
            "timeout": self.timeout and dict(self.timeout),
            "draft": self.draft,
            "version": self.version,
            "entityFilter": self.entity_filter and [dict(one) for one in self.entity_filter],
            "schema": {fact.name: fact.descriptor() for fact in self.schema},
        }
        return {key: value for key, value in shown.items() if value is not None}


def duration_milliseconds(duration: Duration) -> int:
    """The length of a duration; a month has 30 days."""
    return sum(count * _DURATION_UNITS[unit] for unit, count in duration.items())


def parse_source(document: object) -> DataSource:
    """Parse a document in the form produced by `render`.

    Raises InvalidItemsError with every problem and its path. `handlerDefinition.config` may hold
    more than is shown, and `entityFilter` may be JSON text.
    """
    if not isinstance(document, dict):
        raise InvalidItemsError([problem("", "a data source has to be an object")])
    problems = Problems()
    values = _read_fields(document, problems.report)
    problems.check()
    return DataSource(**values)


def _read_fields(given: dict[str, Any], report: Report) -> dict[str, Any]:
    known = {field.key for field in _DOCUMENT_FIELDS}
    for key in given:
        if key not in known:
            report(key, "is not a field of a data source")
    values = {}
    for key, attribute, read, required in _DOCUMENT_FIELDS:
        if given.get(key) is not None:
            values[attribute] = read(given[key], key, report)
        elif required:
            report(key, "is required")
    return values


def _take_cadence(value: object, path: str, report: Report) -> str:
    line = take_string(value, path, report)
    try:
        if line:
            schedule.parse_cadence(line)
    except InputError as error:
        report(path, error.message)
    return line


def _take_duration(
    value: object, path: str, report: Report, *, units: Mapping[str, int]
) -> Duration:
    given = take_object(value, path, report)
    if (not given and isinstance(value, dict)) or given.keys() - units.keys():
        example = f'{{"{next(iter(units))}": 20}}'
        report(path, f"has to give a number of {', '.join(units)}, such as {example}")
        return {}
    return {unit: take_count(count, f"{path}.{unit}", report) for unit, count in given.items()}


def _take_lifecycle(value: object, path: str, report: Report) -> Lifecycle:
    match value:
        case {"maxItems": count, **rest} if not rest:
            return Lifecycle(max_items=take_count(count, f"{path}.maxItems", report))
        case {"timeToLive": time, **rest} if not rest:
            lifetime = _take_duration(time, f"{path}.timeToLive", report, units=LIFETIME_UNITS)
            return Lifecycle(time_to_live=lifetime)
    report(path, 'has to be {"maxItems": N} or {"timeToLive": {"days": N}} (or weeks, months)')
    return Lifecycle()


def _take_time(value: object, path: str, report: Report) -> int:
    moment = clock.milliseconds(value) if isinstance(value, str) else None
    if moment is None:
        report(path, "has to be an ISO 8601 date and time with a UTC offset, from 1970 on")
    return moment or 0


def _take_handler(value: object, path: str, report: Report) -> Handler:
    given = take_object(value, path, report)
    config = take_object(given.get("config"), f"{path}.config", report)
    builtin = config.get("builtinId")
    return Handler(
        type=take_string(given.get("type"), f"{path}.type", report),
        id=take_string(config.get("id"), f"{path}.config.id", report),
        builtin_id=builtin and take_string(builtin, f"{path}.config.builtinId", report),
        config={key: config[key] for key in config if key not in {"id", "builtinId"}},
    )


def _take_schema(value: object, path: str, report: Report) -> tuple[Fact, ...]:
    given = take_object(value, path, report)
    return tuple(_take_fact(name, given[name], f"{path}.{name}", report) for name in given)


def _take_fact(name: str, value: object, path: str, report: Report) -> Fact:
    given = take_object(value, path, report)
    type_ = given.get("type")
    if not isinstance(type_, str) or type_ not in TYPES:
        report(f"{path}.type", one_of(type_, TYPES))
    metadata = take_object(given.get("metadata", {}), f"{path}.metadata", report)
    if metadata.get("key", name) != name:
        report(f"{path}.metadata.key", "has to be the name of the fact")
    texts = {
        key: take_text(given[key], f"{path}.{key}", report)
        for key in ("description", "unit", "title")
        if given.get(key) is not None
    }
    return Fact(take_string(name, path, report), cast(FactType, type_), **texts)


class _DocumentField(NamedTuple):
    key: str
    attribute: str
    read: Callable[[object, str, Report], Any]
    required: bool = False


_DOCUMENT_FIELDS = (
    _DocumentField("id", "id", take_identifier, required=True),
    _DocumentField("title", "title", take_string, required=True),
    _DocumentField("description", "description", take_text),
    _DocumentField("owner", "owner", partial(take_reference, kind="group")),
    _DocumentField("cadence", "cadence", _take_cadence),
    _DocumentField("lifecycle", "lifecycle", _take_lifecycle),
    _DocumentField("createdAt", "created_at", _take_time),
    _DocumentField("updatedAt", "updated_at", _take_time),
    _DocumentField("handlerDefinition", "handler", _take_handler),
    _DocumentField("timeout", "timeout", partial(_take_duration, units=TIMEOUT_UNITS)),
    _DocumentField("draft", "draft", take_boolean),
    _DocumentField("version", "version", take_version),
    _DocumentField("entityFilter", "entity_filter", filters.parse_entity_filter),
    _DocumentField("schema", "schema", _take_schema),
)

"""Metric shapes: their definition, the JSON Schema of their results, and filling one.

Integrations provide values by path (`pullRequests.total`); tools return results. The type of a leaf
determines the representation of a missing value:

    number|unknown …     the string `unknown`
    string[]             an empty list
    plain, optional      left out
    plain, required      its optional group, or the optional leaf itself, is left out; where nothing
                         optional is around it there is no result at all

Each of these adds a reason to the result's `unknownReasons`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec

from factbook.errors import ToolError
from factbook.facts.reasons import EVERYTHING, NEEDED, NEVER_COLLECTED, REASONS, word
from factbook.facts.schema import Fact, FactType

UNKNOWN = "unknown"

# Of a list, in the text of an error.
_MOST_ITEMS = 20

LeafType = Literal[
    "number|unknown", "boolean|unknown", "string|unknown", "string[]", "number", "boolean", "string"
]
Paths = tuple[tuple[str, "Leaf"], ...]


class _LeafType(NamedTuple):
    schema: dict[str, Any]
    fact: FactType
    stand_in: str | tuple[()] | None


def _or_unknown(type_: str) -> dict[str, Any]:
    return {"anyOf": [{"type": type_}, {"type": "string", "const": UNKNOWN}]}


_TYPES: dict[LeafType, _LeafType] = {
    "number|unknown": _LeafType(_or_unknown("number"), "float", UNKNOWN),
    "boolean|unknown": _LeafType(_or_unknown("boolean"), "boolean", UNKNOWN),
    "string|unknown": _LeafType({"type": "string"}, "string", UNKNOWN),
    "string[]": _LeafType({"type": "array", "items": {"type": "string"}}, "set", ()),
    "number": _LeafType({"type": "number"}, "float", None),
    "boolean": _LeafType({"type": "boolean"}, "boolean", None),
    "string": _LeafType({"type": "string"}, "string", None),
}


@dataclass(frozen=True)
class Leaf:
    """A single value. A number without a unit is a count."""

    name: str
    type: LeafType
    description: str
    unit: str | None = None
    optional: bool = False

    @property
    def stand_in(self) -> str | tuple[()] | None:
        """The placeholder for a missing value; None if there is none."""
        return _TYPES[self.type].stand_in

    @cached_property
    def paths(self) -> Paths:
        """This leaf under its path, as a member of a shape's root."""
        return ((self.name, self),)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the value."""
        told = f"{self.description} Unit: {self.unit}." if self.unit else self.description
        return {**_TYPES[self.type].schema, "description": told}

    def fact(self, path: str) -> Fact:
        """The fact that an integration stores to fill this leaf."""
        type_ = _TYPES[self.type].fact
        counted = type_ == "float" and self.unit is None
        return Fact(path, "integer" if counted else type_, self.description, self.unit)


@dataclass(frozen=True)
class LeafGroup:
    """A group of values; an optional group is left out if it is not known."""

    name: str
    description: str
    leaves: tuple[Leaf, ...]
    optional: bool = False

    @cached_property
    def paths(self) -> Paths:
        """The leaves under their paths."""
        return tuple((f"{self.name}.{leaf.name}", leaf) for leaf in self.leaves)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the group."""
        return {"description": self.description, **_object_schema(self.leaves)}


@dataclass(frozen=True)
class Shape:
    """The result of one metric tool; `title` names it in a sentence, in the plural."""

    name: str
    title: str
    members: tuple[LeafGroup | Leaf, ...]


def facts(shape: Shape) -> tuple[Fact, ...]:
    """The facts of an integration that fills this shape, named by path."""
    return tuple(leaf.fact(path) for member in shape.members for path, leaf in member.paths)


def schema(shape: Shape) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a result: without references, and open to further fields."""
    root = _object_schema(shape.members)
    root["properties"] |= {
        "unknownReasons": _UNKNOWN_REASONS,
        "unknownDetails": _UNKNOWN_DETAILS,
        "collectedAt": _COLLECTED_AT,
        "stale": _STALE,
        "staleFacts": _STALE_FACTS,
    }
    root["required"] += ["unknownReasons", "collectedAt"]
    return root


def fill(
    shape: Shape,
    values: Mapping[str, object],
    reasons: Mapping[str, str],
    collected_at: Mapping[str, str],
) -> dict[str, object]:
    """Build a result of the shape from values by path.

    `reasons` (path → reason for a missing value) and `collected_at` (group → ISO 8601 time) may
    also be given for a whole group by its name and for the whole shape by "". A value without a
    reason was `never-collected`. `collectedAt` of the result has only groups with a known value.
    Raises ToolError if a missing value cannot be left out; the error lists the known and the
    unknown values.
    """
    result: dict[str, object] = {}
    unknown: dict[str, str] = {}
    times: dict[str, str] = {}
    for member in shape.members:
        lacking = [path for path, _ in member.paths if values.get(path) is None]
        gap = _gap(member, lacking)
        if gap is None:
            _place(member, values, result)
            unknown.update((path, _reason(path, reasons)) for path in lacking)
        elif member.optional:
            unknown[member.name] = _reason(gap, reasons)
        else:
            raise _unavailable(shape, values, reasons)
        time = collected_at.get(member.name) or collected_at.get("")
        if time and gap is None and len(lacking) < len(member.paths):
            times[member.name] = time
    folded = _folded(shape, unknown)
    return {**result, "unknownReasons": folded, "collectedAt": times}


def _folded(shape: Shape, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons, with one for a group whose leaves share it, and one for all of a shape."""
    found: dict[str, str] = {}
    for member in shape.members:
        paths = [path for path, _ in member.paths]
        own = {path: reasons[path] for path in (member.name, *paths) if path in reasons}
        if own.keys() == set(paths) != {member.name} and len(set(own.values())) == 1:
            own = {member.name: own[paths[0]]}
        found |= own
    is_all = found.keys() >= {member.name for member in shape.members}
    if is_all and len(found) < len(reasons) and len(set(found.values())) == 1:
        return {EVERYTHING: next(iter(found.values()))}
    return found


def is_needed(shape: Shape) -> bool:
    """Return true if a result of the shape requires some of its values."""
    return any(
        _gap(member, [path for path, _ in member.paths]) and not member.optional
        for member in shape.members
    )


def _gap(member: LeafGroup | Leaf, lacking: list[str]) -> str | None:
    """The first path without which the member cannot be in the result."""
    for path, leaf in member.paths:
        needed = leaf.stand_in is None and (leaf is member or not leaf.optional)
        if needed and path in lacking:
            return path
    return None


def _place(
    member: LeafGroup | Leaf, values: Mapping[str, object], result: dict[str, object]
) -> None:
    """Add the member to the result, with placeholders for missing values."""
    filled: dict[str, object] = {}
    for path, leaf in member.paths:
        value = values.get(path)
        if value is None:
            value = [] if leaf.stand_in == () else leaf.stand_in
        if value is not None:
            filled[leaf.name] = value
    result |= filled if isinstance(member, Leaf) else {member.name: filled}


def _reason(path: str, reasons: Mapping[str, str]) -> str:
    """The word of the nearest reason: for the path, its group, or the whole shape."""
    return word(_whole_reason(path, reasons))


def _whole_reason(path: str, reasons: Mapping[str, str]) -> str:
    for place in (path, path.partition(".")[0], ""):
        if place in reasons:
            return reasons[place]
    return NEVER_COLLECTED


def _unavailable(
    shape: Shape, values: Mapping[str, object], reasons: Mapping[str, str]
) -> ToolError:
    """The error returned instead of a result: known and unknown values, reasons and remedies."""
    known, lacking = list[str](), dict[str, list[str]]()
    for path in (path for member in shape.members for path, _ in member.paths):
        if values.get(path) is None:
            lacking.setdefault(_whole_reason(path, reasons), []).append(path)
        else:
            known.append(f"{path} is {_brief(values[path])}")
    gaps = [
        f"{_listed(paths) if known or len(lacking) > 1 else 'nothing is'} known ({_told(reason)})"
        for reason, paths in lacking.items()
    ]
    found = [f"Known: {'; '.join(known)}."] if known else []
    steps = dict.fromkeys(NEEDED[word(reason)] for reason in lacking)
    text = f"{shape.title} are not available: {'; '.join(gaps)}."
    return ToolError(" ".join([text, *found, *steps]))


def _listed(paths: list[str]) -> str:
    return f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} not"


def _told(reason: str) -> str:
    return reason if reason.partition(":")[0] in REASONS else word(reason)


def _brief(value: object) -> str:
    """A value as JSON; a long list is cut off."""
    if isinstance(value, list) and len(value) > _MOST_ITEMS:
        value = [*value[:_MOST_ITEMS], f"… of {len(value)}"]
    return msgspec.json.encode(value).decode()


def _object_schema(members: tuple[LeafGroup | Leaf, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {member.name: member.schema() for member in members},
        "required": [member.name for member in members if not member.optional],
    }


_UNKNOWN_REASONS = {
    "type": "object",
    "description": "Why something is `unknown`, empty or left out: its path, that of its group if "
    "all of it shares the reason, or `*` for everything, and one of these.",
    "additionalProperties": {"type": "string", "enum": list(REASONS)},
}
_UNKNOWN_DETAILS = {
    "type": "object",
    "description": "By data source: the annotation that it goes by, and the value not found.",
    "additionalProperties": {"type": "string"},
}
_STALE = {
    "type": "boolean",
    "description": "Values could not be renewed when they were last due; they are old.",
}
_STALE_FACTS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The paths of the stale values, if not all.",
}
_COLLECTED_AT = {
    "type": "object",
    "description": "When each group that is known was collected: ISO 8601 with a UTC offset.",
    "additionalProperties": {"type": "string"},
}

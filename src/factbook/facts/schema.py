"""Facts and their types, the reasons for unknown values, and the fixed metric shapes.

A value of another type is never converted: it counts as missing, with a reason from a closed
list of words, each with its meaning and remedy. Each shape is declared once here, filled by
integrations and returned by tools.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factbook.errors import ToolError

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
# The displayed place of a reason that applies to all facts.
ANY_FACT: Final = "*"
# Transient reasons: the value could not be requested.
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
# The message if a required value is missing.
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
# Lone surrogates, which UTF-8 and the database cannot store.
_SURROGATES = re.compile("[\ud800-\udfff]")


def reason_word(reason: str) -> str:
    """The word of a stored reason, which may be followed by details: `upstream-error: details`.

    A reason that does not start with a known word counts as `upstream-error`.
    """
    found = reason.partition(":")[0]
    return found if found in REASONS else UPSTREAM_ERROR


@dataclass(frozen=True)
class Fact:
    """A fact of a data source; `unit` is optional for numbers, `title` is user-chosen if set."""

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
    """The values that can be stored, in schema order, and a reason for each other value.

    None means no value. A name missing from the schema, or a value of the wrong type, gets a reason
    that starts with `mistaken`.
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
    if fact.type == "integer" and type(value) is float and value.is_integer():
        value = int(value)
    else:
        value = (
            moment_or_text(value) if fact.type == "datetime" and isinstance(value, str) else value
        )
    if value is None:
        checked.reasons[fact.name] = f"{NOT_APPLICABLE}: no value was given"
    elif type_.holds(value):
        checked.stored[fact.name] = value
    else:
        text = f"expected {type_.words}, not {_json_type(value)}"
        where = f"schema.{fact.name}.type: " if mistaken == BAD_DEFINITION else ""
        checked.reasons[fact.name] = f"{mistaken}: {where}{text}"


def _is_number(value: object) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_boolean(value: object) -> bool:
    return type(value) is bool


def is_text(value: object) -> bool:
    """Return true for a string that UTF-8 and the database can store."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATES.search(value))


def moment_of_text(text: str) -> datetime:
    """The moment of a date, or of a date and time; raises ValueError for another text."""
    text = moment_or_text(text)
    if not _DATETIME.fullmatch(text):
        raise ValueError("not a date, or date and time with a UTC offset")
    return datetime.fromisoformat(text.upper())


def moment_or_text(text: str) -> str:
    """The text; for a date, the moment at which the day begins."""
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
    "integer": _ValueType("an integer", lambda value: type(value) is int),
    "float": _ValueType("a number", _is_number),
    "string": _ValueType("a string", is_text),
    "boolean": _ValueType("a boolean", _is_boolean),
    "datetime": _ValueType("an ISO 8601 date, or a date and time with a UTC offset", _is_datetime),
    "set": _ValueType("a list of distinct strings or numbers", _is_set_value),
    "object": _ValueType(
        "a JSON object or array", lambda value: isinstance(value, dict | list) and _is_json(value)
    ),
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


UNKNOWN = "unknown"
# Most list items in an error message.
_MOST_ITEMS = 20
LeafType = Literal[
    "number|unknown", "boolean|unknown", "string|unknown", "string[]", "number", "boolean", "string"
]
Paths = tuple[tuple[str, "Leaf"], ...]
HOURS = "hours"
SECONDS = "seconds"
PERCENT = "percent, 0 to 100"
SHAPE_TITLES: Final[Mapping[str, str]] = {
    "codehost.pullRequests.total": "Pull requests",
    "codehost.pullRequests.merged": "Merged pull requests",
    "codehost.pullRequests.open": "Open pull requests",
    "codehost.pullRequests.mergedPercentage": "Share of pull requests merged",
    "codehost.pullRequests.mergedLastMonth": "Pull requests merged last month",
    "codehost.mergeTime.avgHours": "Average time to merge",
    "codehost.mergeTime.avgLastMonthHours": "Average time to merge last month",
    "codehost.mergeTime.minHours": "Shortest time to merge",
    "codehost.mergeTime.maxHours": "Longest time to merge",
    "codehost.mergeTime.minLastMonthHours": "Shortest time to merge last month",
    "codehost.mergeTime.maxLastMonthHours": "Longest time to merge last month",
    "codehost.issues.total": "Issues",
    "codehost.issues.open": "Open issues",
    "codehost.issues.closed": "Closed issues",
    "codehost.issues.closedLastMonth": "Issues closed last month",
    "codehost.latestMergedPR.title": "Pull request merged last",
    "codehost.latestMergedPR.author": "Author of the pull request merged last",
    "codehost.collaboration.languages": "Languages",
    "codehost.collaboration.collaborators": "Collaborators",
    "codehost.collaboration.collaboratorCount": "Number of collaborators",
    "codehost.branchProtection.enabled": "Branch protection",
    "codehost.branchProtection.enforceAdmins": "Protection binds administrators",
    "codehost.branchProtection.allowDeletions": "Branch may be deleted",
    "codehost.branchProtection.requiredLinearHistory": "Merge commits refused",
    "codehost.branchProtection.allowForcePushes": "Force pushes allowed",
    "codehost.branchProtection.blockCreations": "Creation of branches restricted",
    "codehost.branchProtection.requiredSignatures": "Signed commits required",
    "codehost.codeReview.dismissStaleReviews": "New commits dismiss approvals",
    "codehost.codeReview.requireCodeOwnerReviews": "Review by code owners required",
    "codehost.codeReview.requireLastPushApproval": "Approval of the last push required",
    "codehost.codeReview.strictRequiredStatusChecks": "Strict status checks required",
    "codehost.codeReview.usesCodeowners": "CODEOWNERS file",
    "codehost.codeReview.codeownersHasErrors": "CODEOWNERS file has errors",
    "codehost.codeReview.requiredApprovingReviewCount": "Approvals required",
    "codehost.codeReview.codeownersErrorCount": "Errors in CODEOWNERS",
    "security.scannerIssues.total": "Security issues",
    "security.scannerIssues.critical": "Critical security issues",
    "security.scannerIssues.high": "High security issues",
    "security.scannerIssues.medium": "Medium security issues",
    "security.scannerIssues.low": "Low security issues",
    "security.dependencyAlerts.open": "Open dependency alerts",
    "security.dependencyAlerts.dismissed": "Dismissed dependency alerts",
    "security.dependencyAlerts.fixed": "Fixed dependency alerts",
    "security.branchProtection": "Default branch protected",
    "incident.incidentMetrics.totalIncidents": "Incidents in a year",
    "incident.incidentMetrics.monthlyIncidents": "Incidents in 30 days",
    "incident.incidentMetrics.quarterlyIncidents": "Incidents in 90 days",
    "incident.incidentMetrics.meanTimeToResolve": "Mean time to resolve",
    "incident.incidentMetrics.meanTimeToFirstAck": "Mean time to acknowledge",
    "incident.incidentMetrics.upTimePercentage": "Uptime",
    "incident.serviceInfo.hasEscalationPolicy": "Escalation policy",
    "incident.serviceInfo.hasTeamsAssigned": "Teams assigned",
    "incident.serviceInfo.hasDescription": "Description of the service",
    "incident.serviceInfo.alertCreationType": "Creation of alerts",
    "observability.sloCount": "Service level objectives",
    "observability.monitorCount": "Monitors",
    "repository.filePaths": "Paths of files",
    "repository.totalFiles": "Files",
    "repository.inCatalog": "Catalog file",
    "repository.fileTypes.docker": "Container files",
    "repository.fileTypes.yaml": "YAML files",
    "repository.fileTypes.javascript": "JavaScript files",
    "repository.fileTypes.python": "Python files",
    "repository.fileTypes.docs": "Documentation files",
    "repository.fileTypes.config": "Configuration files",
}


class _LeafType(NamedTuple):
    schema: dict[str, Any]
    fact: FactType
    stand_in: str | tuple[()] | None


def _schema_or_unknown(type_: str) -> dict[str, Any]:
    return {"anyOf": [{"type": type_}, {"type": "string", "const": UNKNOWN}]}


_LEAF_TYPES: dict[LeafType, _LeafType] = {
    "number|unknown": _LeafType(_schema_or_unknown("number"), "float", UNKNOWN),
    "boolean|unknown": _LeafType(_schema_or_unknown("boolean"), "boolean", UNKNOWN),
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
        """The placeholder for a missing value; None without a placeholder."""
        return _LEAF_TYPES[self.type].stand_in

    @cached_property
    def paths(self) -> Paths:
        """This leaf under its path, as a member of a shape's root."""
        return ((self.name, self),)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the value."""
        told = f"{self.description} Unit: {self.unit}." if self.unit else self.description
        return {**_LEAF_TYPES[self.type].schema, "description": told}

    def fact(self, path: str) -> Fact:
        """The fact that an integration stores to fill this leaf."""
        type_ = _LEAF_TYPES[self.type].fact
        counted = type_ == "float" and self.unit is None
        return Fact(path, "integer" if counted else type_, self.description, self.unit)


@dataclass(frozen=True)
class LeafGroup:
    """A group of values; an optional group is left out if unknown."""

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
        return {"description": self.description, **_schema_of_members(self.leaves)}


@dataclass(frozen=True)
class Shape:
    """The result of one metric tool; `title` names it in a sentence, in the plural."""

    name: str
    title: str
    members: tuple[LeafGroup | Leaf, ...]


def shape_facts(shape: Shape) -> tuple[Fact, ...]:
    """The facts of an integration that fills this shape, named by path."""
    return tuple(leaf.fact(path) for member in shape.members for path, leaf in member.paths)


def shape_schema(shape: Shape) -> dict[str, Any]:
    """The JSON Schema (2020-12) of a result: without references, and open to further fields."""
    root = _schema_of_members(shape.members)
    root["properties"] |= {
        "unknownReasons": _UNKNOWN_REASONS,
        "unknownDetails": _UNKNOWN_DETAILS,
        "collectedAt": _COLLECTED_AT_SCHEMA,
        "stale": _STALE_SCHEMA,
        "staleFacts": _STALE_FACTS_SCHEMA,
    }
    root["required"] += ["unknownReasons", "collectedAt"]
    return root


def fill_shape(
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
        gap = _find_gap(member, lacking)
        if gap is None:
            _place_member(member, values, result)
            unknown.update((path, _nearest_reason(path, reasons)) for path in lacking)
        elif member.optional:
            unknown[member.name] = _nearest_reason(gap, reasons)
        else:
            raise _unavailable_error(shape, values, reasons)
        time = collected_at.get(member.name) or collected_at.get("")
        if time and gap is None and len(lacking) < len(member.paths):
            times[member.name] = time
    folded = _fold_reasons(shape, unknown)
    return {**result, "unknownReasons": folded, "collectedAt": times}


def _fold_reasons(shape: Shape, reasons: Mapping[str, str]) -> dict[str, str]:
    """The reasons, merged per group or for the whole shape where all leaves share one."""
    found: dict[str, str] = {}
    for member in shape.members:
        paths = [path for path, _ in member.paths]
        own = {path: reasons[path] for path in (member.name, *paths) if path in reasons}
        if own.keys() == set(paths) != {member.name} and len(set(own.values())) == 1:
            own = {member.name: own[paths[0]]}
        found |= own
    is_all = found.keys() >= {member.name for member in shape.members}
    if is_all and len(found) < len(reasons) and len(set(found.values())) == 1:
        return {ANY_FACT: next(iter(found.values()))}
    return found


def needs_values(shape: Shape) -> bool:
    """Return true if a result of the shape requires some of its values."""
    return any(
        _find_gap(member, [path for path, _ in member.paths]) and not member.optional
        for member in shape.members
    )


def _find_gap(member: LeafGroup | Leaf, lacking: list[str]) -> str | None:
    """The first path without which the member cannot be in the result."""
    for path, leaf in member.paths:
        needed = leaf.stand_in is None and (leaf is member or not leaf.optional)
        if needed and path in lacking:
            return path
    return None


def _place_member(
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


def _nearest_reason(path: str, reasons: Mapping[str, str]) -> str:
    """The word of the nearest reason: for the path, its group, or the whole shape."""
    return reason_word(_reason_of_whole(path, reasons))


def _reason_of_whole(path: str, reasons: Mapping[str, str]) -> str:
    for place in (path, path.partition(".")[0], ""):
        if place in reasons:
            return reasons[place]
    return NEVER_COLLECTED


def _unavailable_error(
    shape: Shape, values: Mapping[str, object], reasons: Mapping[str, str]
) -> ToolError:
    """The error returned instead of a result: known and unknown values, reasons and remedies."""
    known, lacking = list[str](), dict[str, list[str]]()
    for path in (path for member in shape.members for path, _ in member.paths):
        if values.get(path) is None:
            lacking.setdefault(_reason_of_whole(path, reasons), []).append(path)
        else:
            value = values[path]
            if isinstance(value, list) and len(value) > _MOST_ITEMS:
                value = [*value[:_MOST_ITEMS], f"… of {len(value)}"]
            known.append(f"{path} is {msgspec.json.encode(value).decode()}")
    gaps = []
    for reason, paths in lacking.items():
        subject = "nothing is"
        if known or len(lacking) > 1:
            subject = f"{', '.join(paths)} {'is' if len(paths) == 1 else 'are'} not"
        cause = reason if reason.partition(":")[0] in REASONS else reason_word(reason)
        gaps.append(f"{subject} known ({cause})")
    known_values = [f"Known: {'; '.join(known)}."] if known else []
    steps = dict.fromkeys(NEEDED[reason_word(reason)] for reason in lacking)
    text = f"{shape.title} are not available: {'; '.join(gaps)}."
    return ToolError(" ".join([text, *known_values, *steps]))


def _schema_of_members(members: tuple[LeafGroup | Leaf, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {member.name: member.schema() for member in members},
        "required": [member.name for member in members if not member.optional],
    }


def _number_leaf(name: str, description: str, unit: str | None = None) -> Leaf:
    return Leaf(name, "number|unknown", description, unit)


def _boolean_leaf(name: str, description: str) -> Leaf:
    return Leaf(name, "boolean|unknown", description)


def _count_leaf(name: str, description: str) -> Leaf:
    return Leaf(name, "number", description)


def _flag_leaf(name: str, description: str) -> Leaf:
    return Leaf(name, "boolean", description)


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
_STALE_SCHEMA = {
    "type": "boolean",
    "description": "Values could not be renewed when they were last due; they are old.",
}
_STALE_FACTS_SCHEMA = {
    "type": "array",
    "items": {"type": "string"},
    "description": "The paths of the stale values, if not all.",
}
_COLLECTED_AT_SCHEMA = {
    "type": "object",
    "description": "When each group that is known was collected: ISO 8601 with a UTC offset.",
    "additionalProperties": {"type": "string"},
}


CODEHOST = Shape(
    "codehost",
    "Code-host metrics",
    (
        LeafGroup(
            "pullRequests",
            "Pull requests of the repository.",
            (
                _number_leaf("total", "All pull requests, in any state."),
                _number_leaf("merged", "Merged pull requests."),
                _number_leaf("open", "Open pull requests."),
                _number_leaf("mergedPercentage", "Share of merged among all.", PERCENT),
                _number_leaf("mergedLastMonth", "Pull requests merged in the last 30 days."),
            ),
        ),
        LeafGroup(
            "mergeTime",
            "Time from opening a pull request to merging it, of the 100 merged most recently and "
            "of every one merged in the last 30 days.",
            (
                _number_leaf("avgHours", "Average time.", HOURS),
                _number_leaf(
                    "avgLastMonthHours", "Average of those merged in the last month.", HOURS
                ),
                _number_leaf("minHours", "Shortest time.", HOURS),
                _number_leaf("maxHours", "Longest time.", HOURS),
                _number_leaf(
                    "minLastMonthHours", "Shortest of those merged in the last month.", HOURS
                ),
                _number_leaf(
                    "maxLastMonthHours", "Longest of those merged in the last month.", HOURS
                ),
            ),
        ),
        LeafGroup(
            "issues",
            "Issues of the repository, without pull requests.",
            (
                _number_leaf("total", "All issues."),
                _number_leaf("open", "Open issues."),
                _number_leaf("closed", "Closed issues."),
                _number_leaf("closedLastMonth", "Issues closed in the last 30 days."),
            ),
        ),
        LeafGroup(
            "latestMergedPR",
            "The pull request merged last.",
            (
                Leaf("title", "string|unknown", "Its title."),
                Leaf("author", "string|unknown", "User name of its author."),
            ),
        ),
        LeafGroup(
            "collaboration",
            "Who works in the repository, and in which languages.",
            (
                Leaf("languages", "string[]", "Programming languages, most used first."),
                Leaf("collaborators", "string[]", "User names of those with access."),
                _number_leaf("collaboratorCount", "Number of those with access."),
            ),
        ),
        LeafGroup(
            "branchProtection",
            "Protection of the default branch.",
            (
                _boolean_leaf("enabled", "The branch is protected."),
                _boolean_leaf("enforceAdmins", "Administrators are bound too."),
                _boolean_leaf("allowDeletions", "The branch may be deleted."),
                _boolean_leaf("requiredLinearHistory", "Merge commits are refused."),
                _boolean_leaf("allowForcePushes", "Force pushes are allowed."),
                _boolean_leaf("blockCreations", "Creating matching branches is restricted."),
                _boolean_leaf("requiredSignatures", "Commits have to be signed."),
            ),
        ),
        LeafGroup(
            "codeReview",
            "Rules for reviews on the default branch, and code owners.",
            (
                _boolean_leaf("dismissStaleReviews", "New commits dismiss earlier approvals."),
                _boolean_leaf("requireCodeOwnerReviews", "A code owner has to approve."),
                _boolean_leaf("requireLastPushApproval", "Someone else approves the last push."),
                _boolean_leaf(
                    "strictRequiredStatusChecks",
                    "Checks are required, on a branch that is up to date.",
                ),
                _boolean_leaf("usesCodeowners", "There is a CODEOWNERS file."),
                _boolean_leaf("codeownersHasErrors", "The CODEOWNERS file has errors."),
                _number_leaf("requiredApprovingReviewCount", "Approvals that a merge needs."),
                _number_leaf("codeownersErrorCount", "Errors in the CODEOWNERS file."),
            ),
        ),
    ),
)

SECURITY = Shape(
    "security",
    "Security metrics",
    (
        LeafGroup(
            "scannerIssues",
            "Open issues that the security scanner found.",
            (
                _count_leaf("total", "Issues of all four severities."),
                _count_leaf("critical", "Issues of critical severity."),
                _count_leaf("high", "Issues of high severity."),
                _count_leaf("medium", "Issues of medium severity."),
                _count_leaf("low", "Issues of low severity."),
            ),
            optional=True,
        ),
        LeafGroup(
            "dependencyAlerts",
            "Alerts about vulnerable dependencies.",
            (
                _count_leaf("open", "Open alerts."),
                _count_leaf("dismissed", "Alerts dismissed by a person or by a rule."),
                _count_leaf("fixed", "Fixed alerts."),
            ),
            optional=True,
        ),
        Leaf("branchProtection", "boolean", "The default branch is protected.", optional=True),
    ),
)

INCIDENT = Shape(
    "incident",
    "Incident metrics",
    (
        LeafGroup(
            "incidentMetrics",
            "Incidents of the service, in windows that end at the collection.",
            (
                _count_leaf("totalIncidents", "Incidents of the last 365 days."),
                _count_leaf("monthlyIncidents", "Incidents of the last 30 days."),
                _count_leaf("quarterlyIncidents", "Incidents of the last 90 days."),
                Leaf(
                    "meanTimeToResolve",
                    "number",
                    "Mean time until an incident is resolved, over the last 90 days.",
                    SECONDS,
                    optional=True,
                ),
                Leaf(
                    "meanTimeToFirstAck",
                    "number",
                    "Mean time until an incident is first acknowledged, over the last 90 days.",
                    SECONDS,
                    optional=True,
                ),
                Leaf(
                    "upTimePercentage",
                    "number",
                    "Share of the last 30 days without a major incident.",
                    PERCENT,
                    optional=True,
                ),
            ),
            optional=True,
        ),
        LeafGroup(
            "serviceInfo",
            "How the service is set up for incidents.",
            (
                _flag_leaf("hasEscalationPolicy", "An escalation policy is set."),
                _flag_leaf("hasTeamsAssigned", "At least one team is assigned."),
                _flag_leaf("hasDescription", "There is a description."),
                Leaf(
                    "alertCreationType",
                    "string",
                    "Whether events create incidents alone or alerts too, in the vendor's word.",
                    optional=True,
                ),
            ),
            optional=True,
        ),
    ),
)

OBSERVABILITY = Shape(
    "observability",
    "Observability metrics",
    (
        _count_leaf("sloCount", "Service level objectives of the entity."),
        _count_leaf("monitorCount", "Monitors of the entity."),
    ),
)

COMPLIANCE = Shape(
    "compliance",
    "Compliance facts",
    (
        LeafGroup(
            "metadata",
            "What the entity's metadata says.",
            (
                _boolean_leaf("hasTitle", "There is a title."),
                _boolean_leaf("hasDescription", "There is a description."),
                _boolean_leaf("hasTags", "There is at least one tag."),
                _boolean_leaf("hasOwner", "The entity names an owner (`spec.owner`)."),
            ),
        ),
        LeafGroup(
            "techdocs",
            "Documentation.",
            (_boolean_leaf("hasTechdocsRef", "An annotation points to documentation."),),
        ),
        LeafGroup(
            "ownership",
            "The entity's relations in the catalog.",
            (
                _boolean_leaf(
                    "hasOwner", "There is an ownedBy relation, its target in the catalog or not."
                ),
                _boolean_leaf("hasGroupOwner", "The owner is a group."),
                _boolean_leaf("hasRelationships", "There is any relation other than ownedBy."),
                _boolean_leaf(
                    "ownerExists", "The target of the ownedBy relation is in the catalog."
                ),
            ),
        ),
    ),
)

REPOSITORY = Shape(
    "repository",
    "Facts about the repository",
    (
        Leaf("filePaths", "string[]", "Paths of all files of the default branch, sorted."),
        _count_leaf("totalFiles", "Number of files of the default branch."),
        Leaf("inCatalog", "boolean", "There is a catalog-info file.", optional=True),
        LeafGroup(
            "fileTypes",
            "Number of files by type; a file may count in several.",
            (
                _count_leaf("docker", "Container and compose files."),
                _count_leaf("yaml", "YAML files."),
                _count_leaf("javascript", "JavaScript and TypeScript files."),
                _count_leaf("python", "Python files."),
                _count_leaf("docs", "Documentation files."),
                _count_leaf("config", "Configuration files."),
            ),
        ),
    ),
)

SHAPES = (CODEHOST, SECURITY, INCIDENT, OBSERVABILITY, COMPLIANCE, REPOSITORY)

"""Answers of the interface of results of checks."""

from typing import Annotated, Any

from msgspec import Meta, field

from factbook.schemas.common import AgedAnswer, Count, Ref, Time, WireAnswer, known

State = Annotated[str, known("pass", "fail", "unknown", "exempt", "not-applicable")]
_Stale = Annotated[bool, Meta(description="It rests on values that could not be renewed.")]
_Value = Annotated[Any, Meta(description="Long texts and lists are cut.")]


class CheckResultRow(WireAnswer):
    """The state of a check for an entity."""

    check_id: str
    entity_ref: Ref
    state: State
    owner: str | None = None
    stale: _Stale = False


class CheckResults(WireAnswer):
    """Results by check and reference; a page may hold few, or none, while there is a cursor."""

    results: list[CheckResultRow]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class CheckOverview(AgedAnswer):
    """Numbers of entities by their state; those that the check is not about are not counted."""

    check_id: str
    title: str
    version: str
    passing: Count
    failing: Count
    unknown: Count
    exempt: Count
    not_applicable: Annotated[Count, Meta(description="By `applicableWhen`.")]
    total: Annotated[Count, Meta(description="Passing, failing and unknown.")]
    percentage: Annotated[
        float | None,
        Meta(description="Passing of those that pass or fail; null while nothing is known."),
    ]
    last_run: Annotated[
        Time | None, Meta(description="The last change of a result, or of the check.")
    ]


class SeenFact(WireAnswer):
    """Evidence of a comparison of the rule."""

    path: Annotated[str, Meta(description="Its place in the check.")]
    source: str
    fact: str
    operator: str
    state: State
    value: _Value = None
    wanted: _Value = None
    inside: Annotated[str, Meta(description="The part of an object that is meant.")] | None = None
    collected_at: Time | None = None
    reason: Annotated[str, Meta(description="Why the value is unknown.")] | None = None
    stale: Annotated[bool, Meta(description="The last collections could not renew the value.")] = (
        False
    )


class ResultFix(WireAnswer):
    """The way to make a check pass."""

    link: str | None = None
    instructions: str | None = None


class OneCheckResult(WireAnswer):
    """The result of a check for an entity, and what it rests on."""

    check_id: str
    title: str
    entity_ref: Ref
    state: State
    severity: Annotated[str, known("required", "advisory")]
    flapping: Annotated[bool, Meta(description="It changed three times in a week, and lately.")]
    stale: _Stale
    because: list[SeenFact]
    owner: str | None = None
    since: Time | None = None
    message: str | None = None
    fix: ResultFix | None = None
    effective_from: str | None = None
    exemption: Annotated[str, Meta(description="Its id.")] | None = None


class ResultChange(WireAnswer):
    """A change of a result."""

    at: Time
    to: State
    why: Annotated[dict[str, Any], Meta(description="What was written.")]
    from_: State | None = field(default=None, name="from")


class ResultHistory(WireAnswer):
    """The changes of a result, newest first."""

    check_id: str
    entity_ref: Ref
    changes: list[ResultChange]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None

"""Bodies and answers of the interface of checks: their definitions and versions."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas import patterns
from factbook.schemas.common import Count, Text, Time, Wire, WireAnswer, described_as, known

CheckId = Annotated[
    str,
    patterns.of(patterns.SOURCE_ID, "check-id", description="Its id.", examples=["has-owner"]),
]
_OptionalText = str | UnsetType | None
_OptionalObject = dict[str, Any] | UnsetType | None
Condition = Annotated[
    dict[str, Any],
    Meta(
        description='`{"all": […]}`, `{"any": […]}`, `{"not": …}`, or a comparison of `source`, '
        "`fact`, `operator`, `value`, `path` and `caseSensitive`.",
        examples=[
            {"source": "entity", "fact": "spec.owner", "operator": "isKnown"},
        ],
    ),
]


class NewCheck(Wire):
    """A check as its author defines it."""

    id: CheckId
    title: Text
    rule: Condition
    description: _OptionalText = UNSET
    owner: Annotated[_OptionalText, Meta(description="A group or user.")] = UNSET
    applies_to: Annotated[
        Any, Meta(description="Which entities it is about; every one when it is left out.")
    ] = UNSET
    applicable_when: Annotated[
        _OptionalObject, Meta(description="A condition without which it is not applicable.")
    ] = UNSET
    on_unknown: Annotated[
        Literal["unknown", "fail", "pass"] | UnsetType | None,
        Meta(description="The state where the rule is unknown."),
    ] = UNSET
    messages: Annotated[
        _OptionalObject, Meta(description="Templates: `pass`, `fail` and `unknown`.")
    ] = UNSET
    fix: Annotated[_OptionalObject, Meta(description="Templates: `link`, `instructions`.")] = UNSET
    severity: Literal["required", "advisory"] | UnsetType | None = UNSET
    effective_from: Annotated[
        _OptionalText, Meta(description="The date from which results count.")
    ] = UNSET
    labels: list[str] | UnsetType | None = UNSET
    tests: Annotated[
        list[dict[str, Any]] | UnsetType | None, Meta(description="Facts and what they give.")
    ] = UNSET


class CheckPublication(WireAnswer):
    """A version that is being published: readers see the one before until all are evaluated."""

    version: str
    evaluated: Annotated[Count, Meta(description="Entities that were evaluated so far.")]
    total: Count


class ShownCheck(WireAnswer):
    """A check as it is in effect; before the first publication, its draft."""

    id: str
    title: Annotated[str | None, Meta(description="Null for tokens that only write.")]
    version: str
    draft: Annotated[bool, Meta(description="It was never published.")]
    tag: Annotated[str, Meta(description="Its ETag without quotes, for If-Match.")]
    sentence: Annotated[str, Meta(description="The rule in words.")] | None = None
    rule: dict[str, Any] | None = None
    description: str | None = None
    owner: str | None = None
    applies_to: (
        Annotated[
            dict[str, Any] | list[Any],
            described_as({"anyOf": [{"type": "object"}, {"type": "array"}]}),
        ]
        | None
    ) = None
    applicable_when: dict[str, Any] | None = None
    on_unknown: Annotated[str, known("unknown", "fail", "pass")] | None = None
    messages: dict[str, str] | None = None
    fix: dict[str, str] | None = None
    severity: Annotated[str, known("required", "advisory")] | None = None
    effective_from: str | None = None
    labels: list[str] | None = None
    tests: list[dict[str, Any]] | None = None
    created_at: Time | None = None
    created_by: str | None = None
    updated_at: Time | None = None
    updated_by: str | None = None
    published_at: Time | None = None
    published_by: str | None = None
    publication: CheckPublication | None = None
    unpublished: (
        Annotated[dict[str, Any], Meta(description="The draft beside what is published.")] | None
    ) = None


class Checks(WireAnswer):
    """Checks by their ids."""

    checks: list[ShownCheck]
    total_count: Count
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class DefinitionVersions(WireAnswer):
    """Published versions of a check or scorecard, newest first."""

    versions: list["OneDefinitionVersion"]


class OneDefinitionVersion(WireAnswer):
    """A version that was published."""

    version: str
    published_at: Time
    published_by: str

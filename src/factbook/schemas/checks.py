"""Bodies and answers about checks, scorecards, the starter scorecard and exemptions."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from factbook.schemas import common
from factbook.schemas.common import (
    AnyRef,
    Count,
    Ref,
    Text,
    Time,
    Wire,
    WireAnswer,
    describe_as,
    describe_known,
)

CheckId = Annotated[
    str,
    common.describe_text(
        common.SOURCE_ID, "check-id", description="Its id.", examples=["has-owner"]
    ),
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
            describe_as({"anyOf": [{"type": "object"}, {"type": "array"}]}),
        ]
        | None
    ) = None
    applicable_when: dict[str, Any] | None = None
    on_unknown: Annotated[str, describe_known("unknown", "fail", "pass")] | None = None
    messages: dict[str, str] | None = None
    fix: dict[str, str] | None = None
    severity: Annotated[str, describe_known("required", "advisory")] | None = None
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


ScorecardId = Annotated[
    str,
    common.describe_text(
        common.SOURCE_ID, "scorecard-id", description="Its id.", examples=["readiness"]
    ),
]
_Listed = Annotated[list[Any], describe_as({"type": "array"})]
_Filter = Annotated[
    dict[str, Any] | list[Any],
    describe_as({"anyOf": [{"type": "object"}, {"type": "array"}]}),
]


class NewScorecard(Wire):
    """A scorecard as its author defines it."""

    id: ScorecardId
    title: Text
    entries: Annotated[
        list[Any],
        Meta(
            min_length=1,
            description="Ids of checks, or objects `{check, level, weight, advisory, effort}`.",
        ),
    ]
    levels: Annotated[
        list[Any] | UnsetType | None,
        Meta(description="Names of levels, or objects `{id, title}`, the lowest first."),
    ] = UNSET
    description: _OptionalText = UNSET
    owner: Annotated[_OptionalText, Meta(description="A group or user.")] = UNSET
    applies_to: Annotated[
        Any, Meta(description="Which entities it is about; every one when it is left out.")
    ] = UNSET
    exemptions: Annotated[
        _OptionalObject,
        Meta(
            description="`{enabled, maxDays, approvers, permanent}`. Without `maxDays` an exemption"
            " lasts 365 days at most, unless it may be permanent."
        ),
    ] = UNSET
    public: Annotated[
        bool | UnsetType | None, Meta(description="Badges are shown to everyone.")
    ] = UNSET
    target: Annotated[
        _OptionalObject, Meta(description="`{level, by}`: the level of all by the end of a day.")
    ] = UNSET
    effective_from: _OptionalText = UNSET
    minimum_coverage: Annotated[
        float | UnsetType | None, Meta(description="The least coverage of a score, from 0 to 1.")
    ] = UNSET


class ShownScorecard(WireAnswer):
    """A scorecard as it is in effect; before the first publication, its draft."""

    id: str
    title: Annotated[str | None, Meta(description="Null for tokens that only write.")]
    version: str
    draft: Annotated[bool, Meta(description="It was never published.")]
    tag: Annotated[str, Meta(description="Its ETag without quotes, for If-Match.")]
    levels: _Listed | None = None
    entries: _Listed | None = None
    description: str | None = None
    owner: str | None = None
    applies_to: _Filter | None = None
    exemptions: dict[str, Any] | None = None
    public: bool | None = None
    target: dict[str, Any] | None = None
    effective_from: str | None = None
    minimum_coverage: float | None = None
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


class Scorecards(WireAnswer):
    """Scorecards by their ids."""

    scorecards: list[ShownScorecard]
    total_count: Count
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class StarterCheck(WireAnswer):
    """A check of the starter that no data source can answer."""

    check: str
    title: str
    fact: Annotated[str, Meta(description="What no data source has.")]


class StarterDocuments(WireAnswer):
    """Documents of the starter, as they would be adopted."""

    checks: list[dict[str, Any]]
    scorecards: list[dict[str, Any]]
    missing: list[StarterCheck]


class AdoptedStarter(WireAnswer):
    """Ids of the new drafts, of what was there before, and what is left out."""

    made: list[str]
    kept: list[str]
    missing: list[StarterCheck]


_DAY = "A date, the whole of which is meant, or a date and time with a UTC offset."


class NewExemption(Wire):
    """An exemption as it is asked for, from a check or a scorecard."""

    entity: AnyRef
    reason: Text
    check: CheckId | UnsetType | None = UNSET
    scorecard: ScorecardId | UnsetType | None = UNSET
    link: Annotated[_OptionalText, Meta(description="Such as a ticket.")] = UNSET
    from_: Annotated[_OptionalText, Meta(description=f"{_DAY} Now when left out.")] = field(
        default=UNSET, name="from"
    )
    until: Annotated[
        _OptionalText,
        Meta(
            description=f"{_DAY} Required unless scorecards allow to do without, and within 365"
            " days of the start unless they say otherwise."
        ),
    ] = UNSET


class NewDecision(Wire, forbid_unknown_fields=True):
    """Comment on a decision."""

    comment: Annotated[str, Meta(max_length=2_000)] | None = None


class ShownExemption(WireAnswer):
    """An exemption."""

    id: str
    entity: Ref
    reason: str
    state: Annotated[str, describe_known("requested", "approved", "denied", "revoked", "expired")]
    requested_by: str
    requested_at: Time
    check: str | None = None
    scorecard: str | None = None
    link: str | None = None
    from_: Time | None = field(default=None, name="from")
    until: Time | None = None
    decided_by: str | None = None
    decided_at: Time | None = None
    comment: str | None = None


class Exemptions(WireAnswer):
    """Exemptions, newest first."""

    exemptions: list[ShownExemption]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None

"""Bodies and answers of the interface of scorecards: their definitions."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas import patterns
from factbook.schemas.checks import CheckPublication
from factbook.schemas.common import Count, Text, Time, Wire, WireAnswer, described_as

ScorecardId = Annotated[
    str,
    patterns.of(patterns.SOURCE_ID, "scorecard-id", description="Its id.", examples=["readiness"]),
]
_OptionalText = str | UnsetType | None
_OptionalObject = dict[str, Any] | UnsetType | None
_Listed = Annotated[list[Any], described_as({"type": "array"})]
_Filter = Annotated[
    dict[str, Any] | list[Any],
    described_as({"anyOf": [{"type": "object"}, {"type": "array"}]}),
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

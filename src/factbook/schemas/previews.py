"""Body and answer of previews of checks."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas.check_results import SeenFact, State
from factbook.schemas.checks import CheckId
from factbook.schemas.common import AgedAnswer, AnyRef, Count, Ref, Wire, WireAnswer, known


class NewPreview(Wire, forbid_unknown_fields=True):
    """The check to preview: a definition, or a stored one with changes."""

    definition: Annotated[
        dict[str, Any] | UnsetType, Meta(description="A check as it would be stored.")
    ] = UNSET
    check_id: CheckId | UnsetType = UNSET
    changes: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="Members in place of those of the stored check; null removes one."),
    ] = UNSET
    entities: (
        Annotated[
            list[AnyRef],
            Meta(max_length=1_000, description="Only for these; for every one when left out."),
        ]
        | UnsetType
    ) = UNSET
    facts: Annotated[
        dict[str, dict[str, Any]] | UnsetType,
        Meta(description="Values in place of those that are known, by source and fact."),
    ] = UNSET
    at: Annotated[
        str | UnsetType,
        Meta(
            description="The time at which rules are evaluated: ISO 8601 with a UTC offset.",
            extra_json_schema={"format": "moment"},
        ),
    ] = UNSET
    limit: Annotated[int, Meta(ge=0, le=500, description="Most entities in the answer.")] = 20


class PreviewCounts(WireAnswer):
    """Numbers of entities by state."""

    passing: Count
    failing: Count
    unknown: Count
    exempt: Count
    not_applicable: Count


class PreviewedResult(WireAnswer):
    """An entity whose result would be another one; of the first 20 with what it would rest on."""

    entity_ref: Ref
    now: Annotated[str, known("none", "pass", "fail", "unknown", "exempt", "not-applicable")]
    then: State
    message: str | None = None
    because: list[SeenFact] | None = None


class Preview(AgedAnswer):
    """Effect of a check; nothing is written."""

    now: PreviewCounts
    then: PreviewCounts
    changed: Annotated[Count, Meta(description="Entities whose result would be another one.")]
    entities: Annotated[
        list[PreviewedResult],
        Meta(description="The first of those: what would fail, then by reference."),
    ]

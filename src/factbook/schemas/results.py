"""Answers about the results of checks and scorecards, previews of both, and badges."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from factbook.schemas.checks import CheckId
from factbook.schemas.common import (
    AgedAnswer,
    AnyRef,
    AsOf,
    Count,
    Ref,
    StaleSources,
    Time,
    Wire,
    WireAnswer,
    describe_as,
    describe_known,
)

State = Annotated[str, describe_known("pass", "fail", "unknown", "exempt", "not-applicable")]
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
    severity: Annotated[str, describe_known("required", "advisory")]
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


_Level = Annotated[str | None, Meta(description="The id of a level; null below the first.")]
_Score = Annotated[float | None, Meta(description="The mean of those that have a score.")]
_Groups = Annotated[list[Any], describe_as({"type": "array", "items": {"type": "object"}})]


class ScorecardFigures(AgedAnswer):
    """Entities of a scorecard by level, and their mean score."""

    scorecard_id: str
    title: str
    version: str
    total: Count
    levels: dict[str, int]
    no_level: Annotated[Count, Meta(description="Entities below the first level.")]
    score: _Score
    scored: Annotated[Count, Meta(description="Entities that have a score.")]


class ScorecardResults(WireAnswer):
    """The figures of every scorecard in effect, by id."""

    scorecards: list[ScorecardFigures]


class EntityLevel(WireAnswer):
    """Standing of an entity in a scorecard."""

    entity_ref: Ref
    level: _Level
    level_if_known: Annotated[
        str | None, Meta(description="The best that it can be once every check is known.")
    ]
    score: Annotated[int | None, Meta(description="In percent; null below the least coverage.")]
    coverage: Annotated[
        int | None, Meta(description="In percent, how much of it is known; null if nothing counts.")
    ]


class OneScorecardResults(ScorecardFigures):
    """The figures of a scorecard, and the levels of its entities."""

    entities: list[EntityLevel]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class Rollup(AgedAnswer):
    """A scorecard by owner, system, domain, kind or label.

    Each group has `name` (null: without one), `total`, `levels`, `noLevel`, `score`, `scored`;
    `own` without what is below it, and `children`.
    """

    scorecard_id: str
    by: str
    groups: _Groups


class Trend(AgedAnswer):
    """The figures of a scorecard day by day.

    Each point has `date`, `total`, `levels`, `noLevel`, `score` and `scored`, all of that day;
    `asOf` is that of today's.
    """

    scorecard_id: str
    group: str | None
    points: _Groups


class NextStep(WireAnswer):
    """A check that keeps an entity from a level."""

    check_id: str
    title: str
    state: State
    level: _Level
    gain: Annotated[float, Meta(description="What the score wins if it passes, from 0 to 1.")]
    effort: float
    message: str | None = None
    fix: ResultFix | None = None


class NextSteps(EntityLevel):
    """Standing of an entity, and the steps to the next level: the cheapest first."""

    scorecard_id: str
    steps: list[NextStep]
    as_of: AsOf = None
    stale_sources: StaleSources = []  # noqa: RUF012


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
    now: Annotated[
        str, describe_known("none", "pass", "fail", "unknown", "exempt", "not-applicable")
    ]
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


_TreePath = Annotated[str, Meta(min_length=1, max_length=4_096)]


class NewEntityPreview(Wire, forbid_unknown_fields=True):
    """The entities of a working tree, and its files."""

    items: Annotated[
        list[dict[str, Any]],
        Meta(min_length=1, max_length=500, description="Entities, in the form of a push."),
    ]
    paths: (
        Annotated[
            list[_TreePath],
            Meta(
                max_length=50_000,
                description="The paths of all files of their repository, for what code hosts say "
                "of these; when left out, what is stored counts.",
            ),
        ]
        | UnsetType
    ) = UNSET
    set: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=100,
                description="The set that the entities are in. Of others, and of all where it is "
                "left out, values and texts tell what the items, the paths and the catalog say, "
                "and nothing else that is stored.",
            ),
        ]
        | UnsetType
    ) = UNSET


class PreviewedEntity(WireAnswer):
    """An entity of the body, and what the push of it would be."""

    entity_ref: Ref
    change: Annotated[str, describe_known("added", "updated", "unchanged")]


class EntityPreviewResult(WireAnswer):
    """A result that would be another one."""

    check_id: str
    title: str
    entity_ref: Ref
    now: Annotated[State | None, Meta(description="Null for an entity that is not there.")]
    then: State
    severity: Annotated[str, describe_known("required", "advisory")]
    decided: Annotated[
        bool,
        Meta(
            description="The documents, the files and the catalog decide it, whatever else is "
            "known. Otherwise it rests on facts from elsewhere."
        ),
    ]
    new_failure: Annotated[
        bool, Meta(description="It is decided, would fail and does not fail now, and counts.")
    ]
    message: str | None = None
    fix: ResultFix | None = None
    because: list[SeenFact] | None = None


class EntityPreview(WireAnswer):
    """Results as they would be; nothing is written."""

    entities: list[PreviewedEntity]
    changed: Annotated[Count, Meta(description="Results that would be another one.")]
    new_failures: Count
    results: Annotated[
        list[EntityPreviewResult],
        Meta(description="The first 500, those of the entities of the body first."),
    ]


class ShieldsBadge(Wire):
    """A badge to be drawn."""

    schema_version: Literal[1]
    label: str
    message: str
    color: Annotated[str, Meta(description="Of the background of the message.")]

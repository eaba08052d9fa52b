"""Answers of the interface of results of scorecards."""

from typing import Annotated, Any

from msgspec import Meta

from factbook.schemas.check_results import ResultFix, State
from factbook.schemas.common import (
    AgedAnswer,
    AsOf,
    Count,
    Ref,
    StaleSources,
    WireAnswer,
    described_as,
)

_Level = Annotated[str | None, Meta(description="The id of a level; null below the first.")]
_Score = Annotated[float | None, Meta(description="The mean of those that have a score.")]
_Groups = Annotated[list[Any], described_as({"type": "array", "items": {"type": "object"}})]


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

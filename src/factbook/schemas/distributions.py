"""Answers about one fact of many entities."""

from typing import Annotated, Any

from msgspec import Meta

from factbook.schemas.common import Count, Ref, Time, WireAnswer

_Figure = Annotated[
    Any, Meta(description="A number, or of a datetime an ISO 8601 time; in the unit of the fact.")
]


class FactShown(WireAnswer):
    """A fact of a data source."""

    name: str
    type: str
    description: str = ""
    unit: str | None = None


class ValueSpread(WireAnswer):
    """Figures of numbers and datetimes."""

    min: _Figure
    lower_quartile: _Figure
    median: _Figure
    upper_quartile: _Figure
    max: _Figure
    mean: Annotated[float | None, Meta(description="Of numbers alone.")] = None


class HistogramBin(WireAnswer):
    """The number of entities with a value from `min` on and below `below`, as far as given."""

    count: Count
    min: _Figure = None
    below: _Figure = None


class FrequentValue(WireAnswer):
    """A text, or an item of sets, and the number of entities that have it."""

    value: Any
    count: Count


class GroupShare(WireAnswer):
    """The entities of one owner, system or kind; without a name those that have none."""

    entities: Count
    known: Count
    name: Annotated[str, Meta(description="A reference, or a kind.")] = ""
    true: Annotated[int | None, Meta(description="Of a boolean: how many have true.")] = None
    median: _Figure = None


class ValueOfEntity(WireAnswer):
    """The value of an entity, or why there is none."""

    entity_ref: Ref
    value: Annotated[Any, Meta(description="Left out where none is known.")] = None
    unknown_reason: (
        Annotated[str, Meta(description="A word, with details behind a colon.")] | None
    ) = None
    collected_at: Annotated[Time, Meta(description="When the value was found.")] | None = None
    stale: Annotated[bool, Meta(description="The last collections could not renew the value.")] = (
        False
    )
    kept: Annotated[bool, Meta(description="The same as `stale`.")] = False


class FactDistribution(WireAnswer):
    """The values of a fact over the entities that its source is about."""

    data_source_id: str
    fact: FactShown
    entities: Count
    known: Count
    unknown: Count
    unknown_reasons: Annotated[
        dict[str, int], Meta(description="The number of entities by the word of the reason.")
    ]
    kept: Annotated[int, Meta(description="Known ones whose value is from before the last run.")]
    draft: Annotated[bool, Meta(description="The source was never published.")] = False
    truncated: Annotated[
        bool, Meta(description="There was too much to count: the figures are of a part.")
    ] = False
    as_of: Annotated[Time, Meta(description="When it was counted.")] | None = None
    oldest: Annotated[Time, Meta(description="When the oldest value was found.")] | None = None
    newest: Annotated[Time, Meta(description="When the newest one was found.")] | None = None
    booleans: dict[str, int] | None = None
    spread: ValueSpread | None = None
    histogram: list[HistogramBin] | None = None
    top: list[FrequentValue] | None = None
    distinct: Annotated[int | None, Meta(description="Of which `top` has the most frequent.")] = (
        None
    )
    lowest: list[ValueOfEntity] | None = None
    highest: list[ValueOfEntity] | None = None
    by: Annotated[str, Meta(description="What the groups are: owner, system or kind.")] | None = (
        None
    )
    groups: list[GroupShare] | None = None
    more_groups: Annotated[int, Meta(description="Groups that are left out, the smallest.")] = 0


class ValuePage(WireAnswer):
    """A page of entities with their values of a fact."""

    data_source_id: str
    fact: FactShown
    entities: list[ValueOfEntity]
    draft: Annotated[bool, Meta(description="The source was never published.")] = False
    as_of: Annotated[Time, Meta(description="When the values were read.")] | None = None
    next_cursor: (
        Annotated[str, Meta(description="Asks for the next page; a page may have few entities.")]
        | None
    ) = None

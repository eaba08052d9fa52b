"""Bodies and answers of the interface of facts, and the values of one fact across entities."""

from typing import Annotated, Any

from msgspec import Meta, field

from factbook.schemas.common import Count, Ref, Time, Wire, WireAnswer


class NewFacts(Wire, forbid_unknown_fields=True):
    """Facts about an entity at a time."""

    entity: Annotated[
        str,
        Meta(
            description="Reference of the entity, `kind:[namespace/]name`.",
            examples=["component:default/payments"],
        ),
    ]
    facts: Annotated[
        dict[str, Any], Meta(description="Values by fact; null says that there is none.")
    ] = field(default_factory=dict)
    reasons: Annotated[
        dict[str, str],
        Meta(
            description="Why facts are unknown, by fact: a reason such as `forbidden: the scanner "
            "has no access`. Any other text is stored as `upstream-error: text`.",
        ),
    ] = field(default_factory=dict)
    merge: Annotated[
        bool,
        Meta(
            description="Keep what the source says about facts that the item leaves out. Without "
            "it the item replaces everything, and these facts are unknown: `not-sent`."
        ),
    ] = False
    timestamp: Annotated[
        str | None,
        Meta(description="ISO 8601 with a UTC offset; the moment of the push when it is left out."),
    ] = None


class NewItems(Wire, forbid_unknown_fields=True):
    """Facts about entities."""

    items: Annotated[list[NewFacts], Meta(min_length=1, max_length=1000)]


class ItemProblem(WireAnswer):
    """A problem in a part of an item; if the item is accepted the rest of it is stored."""

    path: str
    message: str


class PushedItem(WireAnswer):
    """The result for an item."""

    entity: Annotated[str, Meta(description="The whole reference; empty for what is none.")]
    timestamp: Time | None
    accepted: Annotated[bool, Meta(description="History has it, now or from an earlier push.")]
    stored: Annotated[list[str], Meta(description="The names of the facts that are stored.")]
    latest: Annotated[bool, Meta(description="They are the latest facts of the entity.")]
    problems: list[ItemProblem]


class PushedFacts(WireAnswer):
    """The result of a push, item by item."""

    data_source_id: str
    version: Annotated[str, Meta(description="The version of the source that history keeps.")]
    accepted_items: Annotated[Count, Meta(description="How many items history has.")]
    items: list[PushedItem]


class EntityFacts(WireAnswer):
    """The latest facts about an entity; without a time when there never were any."""

    entity_ref: Ref
    facts: dict[str, Any]
    timestamp: Time | None = None
    reasons: (
        Annotated[dict[str, str], Meta(description="Why facts have no value; of one entity.")]
        | None
    ) = None
    stale: Annotated[
        bool, Meta(description="The last collections could not renew values, or are overdue.")
    ] = False
    stale_facts: (
        Annotated[list[str], Meta(description="Which values are stale, if not all.")] | None
    ) = None


class LatestFacts(WireAnswer):
    """The latest facts of a data source, by the references of the entities."""

    data_source_id: str
    entities: list[EntityFacts]
    draft: Annotated[bool, Meta(description="The source was never published.")] = False
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class PastFacts(WireAnswer):
    """The facts that a source had at a time, and the version of it that wrote them."""

    data_source_id: str
    timestamp: Time
    version: str
    facts: dict[str, Any]
    reasons: Annotated[dict[str, str], Meta(description="Why facts had no value.")]
    draft: Annotated[bool, Meta(description="The source was a draft then.")] = False
    confirmed_at: (
        Annotated[Time, Meta(description="The last later time at which the source found the same.")]
        | None
    ) = None


class History(WireAnswer):
    """The history of an entity, newest first."""

    entity_ref: Ref
    items: list[PastFacts]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


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

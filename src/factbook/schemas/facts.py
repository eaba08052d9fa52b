"""Data sources with their runs and connections, and facts."""

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

SourceId = Annotated[
    str,
    common.describe_text(
        common.SOURCE_ID, "data-source-id", description="Its id.", examples=["coverage"]
    ),
]
_OptionalText = str | UnsetType | None
_OptionalObject = dict[str, Any] | UnsetType | None
# Of a definition: null says that there is none, and left out that it is not shown.
_Document = Annotated[
    dict[str, Any] | None, describe_as({"anyOf": [{"type": "object"}, {"type": "null"}]})
]

# Data sources as they are defined


class FactType(Wire):
    """The type of a fact."""

    type: Literal["integer", "float", "string", "boolean", "datetime", "set", "object"]
    description: Annotated[_OptionalText, Meta(description="What it says.")] = UNSET
    unit: Annotated[_OptionalText, Meta(description="Of a number.")] = UNSET
    title: Annotated[
        _OptionalText, Meta(description="What pages call it, in place of its name.")
    ] = UNSET
    extract: Annotated[
        _OptionalObject,
        Meta(
            description='How it is come by: `{"jmespath": "..."}` or `{"regex": "..."}`. A '
            "pushed fact has none."
        ),
    ] = UNSET


class NewConfig(Wire):
    """Configuration of the handler; further members depend on its type."""

    id: Annotated[str, Meta(description="The id of the source.")]


class NewHandler(Wire):
    """The handler that collects the facts."""

    type: Literal["http", "repository-file", "repository-directory", "entity", "push"]
    config: NewConfig


class NewDataSource(Wire):
    """A data source as its author defines it."""

    id: SourceId
    title: Text
    schema: Annotated[
        dict[str, FactType], Meta(min_length=1, description="The facts, by their names.")
    ]
    handler_definition: NewHandler
    description: _OptionalText = UNSET
    owner: Annotated[
        _OptionalText,
        Meta(
            description="A group or user. The source is then about entities of this owner alone, "
            "and uses only connections that are shared with it."
        ),
    ] = UNSET
    cadence: Annotated[_OptionalText, Meta(description="Cron line of five fields, UTC.")] = UNSET
    lifecycle: Annotated[
        _OptionalObject,
        Meta(
            description="How much history is kept: "
            '`{"maxItems": 10}` or `{"timeToLive": {"days": 90}}`.'
        ),
    ] = UNSET
    timeout: Annotated[
        _OptionalObject, Meta(description='Of a run, such as `{"minutes": 20}`.')
    ] = UNSET
    entity_filter: Annotated[
        Any, Meta(description="Which entities it is about; every one when it is left out.")
    ] = UNSET


class Publish(Wire, forbid_unknown_fields=True):
    """Options for publishing."""

    force: Annotated[
        bool, Meta(description="Also when a fact is removed or gets another type.")
    ] = False


class NewRun(Wire, forbid_unknown_fields=True):
    """The scope of a run."""

    entity: (
        Annotated[
            str,
            common.describe_text(
                common.REFERENCE,
                "entity-reference",
                description="Only this entity; everything when it is left out.",
                examples=["component:default/payments"],
            ),
        ]
        | None
    ) = None


class NewTrial(Wire, forbid_unknown_fields=True):
    """The entity and the definition to try."""

    entity: Ref
    definition: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="As it would be stored; when it is not given, that of the source."),
    ] = UNSET


class Answered(WireAnswer):
    """The answer of the other system: its status if it came by HTTP, and the start of its body."""

    status: int | None
    content_type: str | None
    body: str
    truncated: bool


class Trial(WireAnswer):
    """The result of a trial; `reasons` say by fact, or for "" of all, why there is no value."""

    entity: Ref
    request: Annotated[
        dict[str, Any] | None, Meta(description="Without what the connection adds to it.")
    ]
    answer: Answered | None
    facts: dict[str, Any]
    reasons: dict[str, str]


# Data sources as they are shown


class ShownFact(WireAnswer):
    """The type of a fact."""

    type: str
    metadata: dict[str, str]
    description: str | None = None
    unit: str | None = None
    title: str | None = None


class ShownSource(WireAnswer):
    """A data source, as discovery shows it too."""

    id: str
    title: str
    origin: Annotated[
        str,
        describe_known("builtin", "custom"),
        Meta(description="Whether it was defined by a user."),
    ]
    draft: Annotated[bool, Meta(description="It was never published.")]
    version: str
    schema: dict[str, ShownFact]
    description: str | None = None
    owner: Annotated[Ref, Meta(description="Whose entities alone it is about.")] | None = None
    cadence: str | None = None
    lifecycle: dict[str, Any] | None = None
    created_at: Time | None = None
    updated_at: Time | None = None
    handler_definition: dict[str, Any] | None = None
    timeout: dict[str, int] | None = None
    entity_filter: list[dict[str, Any]] | None = None
    problem: (
        Annotated[str, Meta(description="Why it cannot be collected on this server.")] | None
    ) = None


class PublishedVersion(WireAnswer):
    """A version that was published."""

    version: str
    published_at: Time
    published_by: str


class Definition(WireAnswer):
    """Definition of a custom source.

    The documents are there for tokens that may write them: they hold configuration that nobody
    else is shown.
    """

    pending: Annotated[bool, Meta(description="There is a draft that is not published.")]
    created_by: str
    updated_by: str
    versions: Annotated[
        list[PublishedVersion], Meta(description="What was published, newest first; 50 at most.")
    ]
    draft: Annotated[_Document, Meta(description="What is not published yet.")] = None
    published: _Document = None


class WholeDefinition(Definition, omit_defaults=False):
    """The same with its documents, null where there is none."""


class OneSource(ShownSource):
    """A data source, and of a custom one how it is defined."""

    definition: Definition | None = None


class Sources(WireAnswer):
    """Data sources: the builtin ones first, then the custom ones by their ids."""

    data_sources: list[ShownSource]
    total_count: Count
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


# Runs


class Run(WireAnswer):
    """A collection of a source; `covered`, `failed` and `skipped` count entities."""

    id: Count
    whole: Annotated[bool, Meta(description="Of every entity, not of some that were asked for.")]
    reason: Annotated[str, Meta(description="`cadence` or `asked`.")]
    state: Annotated[str, describe_known("done", "failed", "partial", "running")]
    started_at: Time
    finished_at: Time | None
    entities: Count
    covered: Count
    failed: Count
    incomplete: Annotated[
        Count, Meta(description="Covered, but some facts could not be asked for.")
    ]
    skipped: Count
    calls: Count
    rate_limit_left: int | None
    error: Annotated[str | None, Meta(description="The commonest reason for failures.")]
    waits_until: Annotated[
        Time | None, Meta(description="When the rate limit lets it resume; null if it may now.")
    ]


class Gap(WireAnswer):
    """Facts that a run could not bring."""

    place: Annotated[
        str, Meta(description="A fact, or a group of facts; empty for everything of an entity.")
    ]
    reason: Annotated[str, Meta(description="One of the reasons, and what there is to say of it.")]
    kind: Annotated[
        str,
        describe_known("final", "passing", "skipped"),
        Meta(
            description="`passing`: could not be asked for, the last values are kept for a while. "
            "`final`: the vendor says so. `skipped`: the entity does not say where to ask."
        ),
    ]
    entities: Count


class OneRun(Run):
    """A run with what it could not bring, the commonest first."""

    gaps: list[Gap]


class Runs(WireAnswer):
    """The last runs of a source, newest first: 50 of everything and 50 of some entities."""

    runs: list[Run]


_Method = Literal["GET", "POST"]
_AtOnce = Annotated[int, Meta(ge=1, le=100, description="Requests under way at the same time.")]
_Header = Annotated[str, common.describe_text(common.HEADER, "connection-header")]
_Value = Annotated[str, common.describe_text(common.HEADER_VALUE)]
_BaseUrl = Annotated[
    str,
    common.describe_text(
        None,
        "connection-address",
        min_length=1,
        max_length=2_000,
        description="Address that paths of sources are appended to.",
        examples=["https://ci.example.com/api"],
    ),
]


class NewConnection(Wire, forbid_unknown_fields=True):
    """A connection as it is wanted."""

    base_url: _BaseUrl
    headers: Annotated[
        dict[_Header, _Value | None],
        Meta(
            max_length=20,
            description="What is sent with each request, by name, such as `authorization`. The "
            "values are secret. `null` keeps the value that is stored, as long as `baseUrl` stays "
            "on its scheme, host and port. A header that is not named is removed.",
        ),
    ] = field(default_factory=dict)
    methods: Annotated[
        list[_Method], Meta(min_length=1, description="Methods that sources may use; GET alone.")
    ] = field(default_factory=lambda: ["GET"])
    at_once: _AtOnce = 4
    shared_with: Annotated[
        list[AnyRef],
        Meta(
            max_length=500,
            description="Owners whose data sources may use it; nobody when it is left out. Sources "
            "without an owner may use every connection.",
        ),
    ] = field(default_factory=list)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"NewConnection(base_url={self.base_url!r})"


class ShownHeader(WireAnswer):
    """A header of a connection; its value is never shown."""

    name: str
    set_at: Annotated[Time | None, Meta(description="Not known of those of the settings.")]


class ShownConnection(WireAnswer):
    """A connection, without its secrets."""

    name: str
    base_url: str
    methods: list[Annotated[str, describe_known("GET", "POST")]]
    at_once: int
    headers: list[ShownHeader]
    shared_with: Annotated[list[Ref], Meta(description="Owners whose data sources may use it.")]
    origin: Annotated[
        Literal["settings", "stored"],
        Meta(description="One of the settings is changed there alone."),
    ]
    used_by: Annotated[
        list[str],
        Meta(
            description="The ids of the data sources that ask it; empty for a token that may not "
            "read data sources."
        ),
    ]
    used_by_count: Annotated[Count, Meta(description="How many data sources ask it.")]
    problem: Annotated[str, Meta(description="Why it cannot be used.")] | None = None
    created_at: Time | None = None
    created_by: str | None = None
    updated_at: Time | None = None
    updated_by: str | None = None


class Connections(WireAnswer):
    """Every connection, by its name."""

    connections: list[ShownConnection]


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

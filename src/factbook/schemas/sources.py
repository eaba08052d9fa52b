"""Bodies and answers of the interface of data sources, their runs, and connections."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from factbook.schemas import patterns
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
    patterns.describe_text(
        patterns.SOURCE_ID, "data-source-id", description="Its id.", examples=["coverage"]
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
            patterns.describe_text(
                patterns.REFERENCE,
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
_Header = Annotated[str, patterns.describe_text(patterns.HEADER, "connection-header")]
_Value = Annotated[str, patterns.describe_text(patterns.HEADER_VALUE)]
_BaseUrl = Annotated[
    str,
    patterns.describe_text(
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

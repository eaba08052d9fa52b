"""Bodies and answers of the interface of data sources, their trials and runs."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas import patterns
from factbook.schemas.common import Count, Ref, Text, Time, Wire

SourceId = Annotated[
    str,
    patterns.of(patterns.SOURCE_ID, "data-source-id", description="Its id.", examples=["coverage"]),
]
_OptionalText = str | UnsetType | None
_OptionalObject = dict[str, Any] | UnsetType | None

# Data sources as they are defined


class FactType(Wire):
    """The type of a fact."""

    type: Literal["integer", "float", "string", "boolean", "datetime", "set", "object"]
    description: Annotated[_OptionalText, Meta(description="What it says.")] = UNSET
    unit: Annotated[_OptionalText, Meta(description="Of a number.")] = UNSET
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
            patterns.of(
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


class Answered(Wire):
    """The answer of the other system: its status if it came by HTTP, and the start of its body."""

    status: int | None
    content_type: str | None
    body: str
    truncated: bool


class Trial(Wire):
    """The result of a trial; `reasons` say by fact, or for "" of all, why there is no value."""

    entity: Ref
    request: Annotated[
        dict[str, Any] | None, Meta(description="Without what the connection adds to it.")
    ]
    answer: Answered | None
    facts: dict[str, Any]
    reasons: dict[str, str]


# Data sources as they are shown


class ShownFact(Wire):
    """The type of a fact."""

    type: str
    metadata: dict[str, str]
    description: str | UnsetType = UNSET
    unit: str | UnsetType = UNSET


class ShownSource(Wire):
    """A data source, as discovery shows it too."""

    id: str
    title: str
    origin: Annotated[
        Literal["builtin", "custom"], Meta(description="Whether it was defined by a user.")
    ]
    draft: Annotated[bool, Meta(description="It was never published.")]
    version: str
    schema: dict[str, ShownFact]
    description: str | UnsetType = UNSET
    cadence: str | UnsetType = UNSET
    lifecycle: dict[str, Any] | UnsetType = UNSET
    created_at: Time | UnsetType = UNSET
    updated_at: Time | UnsetType = UNSET
    handler_definition: dict[str, Any] | UnsetType = UNSET
    timeout: dict[str, int] | UnsetType = UNSET
    entity_filter: list[dict[str, Any]] | UnsetType = UNSET
    problem: (
        Annotated[str, Meta(description="Why it cannot be collected on this server.")] | UnsetType
    ) = UNSET


class PublishedVersion(Wire):
    """A version that was published."""

    version: str
    published_at: Time
    published_by: str


class Definition(Wire):
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
    draft: Annotated[dict[str, Any] | None, Meta(description="What is not published yet.")] | (
        UnsetType
    ) = UNSET
    published: _OptionalObject = UNSET


class OneSource(ShownSource):
    """A data source, and of a custom one how it is defined."""

    definition: Definition | UnsetType = UNSET


class Sources(Wire):
    """Data sources: the builtin ones first, then the custom ones by their ids."""

    data_sources: list[ShownSource]
    total_count: Count
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | UnsetType = UNSET


# Runs


class Run(Wire):
    """A collection of a source; `covered`, `failed` and `skipped` count entities."""

    id: Count
    whole: Annotated[bool, Meta(description="Of every entity, not of some that were asked for.")]
    reason: Annotated[str, Meta(description="`cadence` or `asked`.")]
    state: Literal["running", "done", "partial", "failed"]
    started_at: Time
    finished_at: Time | None
    entities: Count
    covered: Count
    failed: Count
    skipped: Count
    calls: Count
    rate_limit_left: int | None
    error: Annotated[str | None, Meta(description="The commonest reason for failures.")]


class Runs(Wire):
    """The last runs of a source, newest first: 50 of everything and 50 of some entities."""

    runs: list[Run]

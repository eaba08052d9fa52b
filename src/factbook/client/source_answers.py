"""What a server answers about data sources and facts, as types."""

from typing import Any

from factbook.client.answers import Answer


class FactType(Answer, omit_defaults=True):
    """What a fact of a data source is."""

    type: str
    description: str | None = None
    unit: str | None = None


class Version(Answer):
    """A version of a data source, and who published it when."""

    version: str
    published_at: str
    published_by: str


class SourceDefinition(Answer, omit_defaults=True):
    """How a custom data source is defined; `draft` and `published` are its documents.

    Both are None for a token that may not write data sources. `pending`: there is a draft.
    """

    pending: bool
    created_by: str
    updated_by: str
    versions: list[Version]
    draft: dict[str, Any] | None = None
    published: dict[str, Any] | None = None


class DataSource(Answer, omit_defaults=True):
    """A data source; `definition` is there when a custom one was asked for by its id.

    `origin` is `builtin` or `custom`; `draft`: it was never published; `problem` says why it cannot
    be collected as it is defined.
    """

    id: str
    title: str
    origin: str
    draft: bool
    version: str
    schema: dict[str, FactType]
    description: str | None = None
    cadence: str | None = None
    lifecycle: dict[str, Any] | None = None
    created_at: str | None = None
    updated_at: str | None = None
    handler_definition: dict[str, Any] | None = None
    timeout: dict[str, int] | None = None
    entity_filter: list[dict[str, Any]] | None = None
    problem: str | None = None
    definition: SourceDefinition | None = None


class SourcePage(Answer, omit_defaults=True):
    """A page of data sources: the builtin ones first, then the custom ones by their ids."""

    data_sources: list[DataSource]
    total_count: int
    next_cursor: str | None = None


class SourceRun(Answer):
    """A collection of a data source; `covered`, `failed` and `skipped` count entities."""

    id: int
    whole: bool
    reason: str
    state: str
    started_at: str
    finished_at: str | None
    entities: int
    covered: int
    failed: int
    skipped: int
    calls: int
    rate_limit_left: int | None
    error: str | None


class TriedAnswer(Answer):
    """What a data source was answered in a trial; `status` is that of HTTP where there is one."""

    status: int | None
    content_type: str | None
    body: str
    truncated: bool


class Tried(Answer):
    """What came of a trial; `reasons` says by fact, or "" for all of them, why there is none."""

    request: dict[str, Any] | None
    answer: TriedAnswer | None
    facts: dict[str, Any]
    reasons: dict[str, str]


class Problem(Answer):
    """What is wrong at a place of what was sent."""

    path: str
    message: str


class PushedItem(Answer):
    """What became of the facts of one entity; `latest`: they are its latest ones now.

    `accepted`: the service has them, if only from an earlier push.
    """

    entity: str
    timestamp: str | None
    accepted: bool
    stored: list[str]
    latest: bool
    problems: list[Problem]


class PushedFacts(Answer):
    """What became of pushed facts, item by item; `version` is that of the data source."""

    data_source_id: str
    version: str
    accepted_items: int
    items: list[PushedItem]


class EntityFacts(Answer, omit_defaults=True):
    """The latest facts about an entity; without `timestamp` there never were any.

    `reasons` are there when one entity was asked about.
    """

    entity_ref: str
    facts: dict[str, Any]
    timestamp: str | None = None
    reasons: dict[str, str] | None = None


class FactsPage(Answer, omit_defaults=True):
    """A page of the latest facts of a data source, by the references of the entities."""

    data_source_id: str
    entities: list[EntityFacts]
    draft: bool = False
    next_cursor: str | None = None


class PastFacts(Answer, omit_defaults=True):
    """The facts that a data source had at a time, and the version of it that wrote them."""

    data_source_id: str
    timestamp: str
    version: str
    facts: dict[str, Any]
    reasons: dict[str, str]
    draft: bool = False


class HistoryPage(Answer, omit_defaults=True):
    """A page of the history of an entity's facts, newest first."""

    entity_ref: str
    items: list[PastFacts]
    next_cursor: str | None = None

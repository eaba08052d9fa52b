"""Entities, sets of entities, and importers of sets."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType, field

from factbook.schemas import common
from factbook.schemas.common import (
    Count,
    Link,
    Ref,
    Text,
    Time,
    Uuid,
    Wire,
    WireAnswer,
    describe_as,
    describe_known,
)

# An entity has members that no type here has: a client reads it as it is.
Document = Annotated[dict[str, Any], describe_as({"$ref": "#/components/schemas/Entity"})]
PartsDocument = Annotated[dict[str, Any], describe_as({"$ref": "#/components/schemas/EntityParts"})]


class Relation(WireAnswer):
    """A relation to another entity, which need not exist."""

    type: str
    target_ref: Ref


class Metadata(WireAnswer):
    """Metadata of an entity; other fields than these are kept."""

    uid: Uuid
    etag: Annotated[str, Meta(description="Changes when the entity changes.")]
    name: str
    annotations: dict[str, str]
    namespace: str | None = None
    title: Text | None = None
    description: str | None = None
    labels: dict[str, str] | None = None
    tags: list[Text] | None = None
    links: list[Link] | None = None


class StatusItem(WireAnswer):
    """Something that the spec of an entity misses."""

    type: str
    level: str
    message: str
    error: dict[str, Any]


class Status(WireAnswer):
    """Problems in the spec of an entity; left out when there are none."""

    items: list[StatusItem]


class Entity(WireAnswer):
    """An entity of the catalog."""

    api_version: str
    kind: str
    metadata: Metadata
    relations: list[Relation]
    spec: dict[str, Any] | None = None
    status: Status | None = None


class EntityParts(WireAnswer):
    """An entity, or those parts of it that `fields` names."""

    api_version: str | None = None
    kind: str | None = None
    metadata: dict[str, Any] | None = None
    relations: list[Relation] | None = None
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class EntitiesByRefs(WireAnswer):
    """Entities in the order of the references, null for each that there is not."""

    items: list[PartsDocument | None]


class Ancestor(WireAnswer):
    """An entity, and the references of those that led to it."""

    entity: Document
    parent_entity_refs: list[Ref]


class Ancestry(WireAnswer):
    """The origin of an entity: the entity itself, as entities are pushed."""

    root_entity_ref: Ref
    items: list[Ancestor]


class PageInfo(WireAnswer):
    """Cursors of the pages beside this one; left out where there is none."""

    next_cursor: str | None = None
    prev_cursor: str | None = None


class EntityPage(WireAnswer):
    """A page of entities; `totalItems` counts those on all pages, and is 0 when excluded."""

    items: list[PartsDocument]
    total_items: Count
    page_info: PageInfo


class FacetValue(WireAnswer):
    """A value as it was written, and in how many entities."""

    value: str
    count: Annotated[int, Meta(extra_json_schema={"minimum": 1})]


class FacetValues(WireAnswer):
    """For each path that was asked for, its values in their order."""

    facets: dict[str, list[FacetValue]]


# Entities as they are pushed


class NewMetadata(Wire):
    """Metadata of a pushed entity; other fields than these are kept.

    `uid` and `etag`, which an entity that was read carries, are dropped with a warning.
    """

    name: Annotated[
        str,
        common.describe_text(
            common.NAME,
            "entity-name",
            description="Spaces around it are cut off.",
            examples=["payments"],
        ),
    ]
    namespace: Annotated[str, common.describe_text(common.NAMESPACE)] | UnsetType = UNSET
    title: Text | UnsetType = UNSET
    description: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET
    tags: list[Text] | UnsetType = UNSET
    links: list[Link] | UnsetType = UNSET


class NewEntity(Wire, forbid_unknown_fields=True):
    """An entity to push. `relations` and `status` are dropped with a warning."""

    api_version: Annotated[
        str,
        common.describe_text(
            common.API_VERSION,
            description="`[prefix/]version`, such as `backstage.io/v1alpha1`. Kept as it comes.",
            examples=["backstage.io/v1alpha1"],
        ),
    ]
    kind: Annotated[str, common.describe_text(common.KIND, examples=["Component"])]
    metadata: NewMetadata
    spec: dict[str, Any] | UnsetType = UNSET
    relations: Any = UNSET
    status: Any = UNSET


class NewSet(Wire, forbid_unknown_fields=True):
    """The whole content of a set."""

    items: Annotated[
        list[NewEntity],
        Meta(description="Each reference once.", extra_json_schema={"uniqueItems": True}),
    ]


# Sets


class Changes(WireAnswer):
    """Numbers of entities that a push added, updated, removed and left unchanged."""

    added: Count
    updated: Count
    removed: Count
    unchanged: Count


class Item(WireAnswer):
    """A pushed entity."""

    id: Uuid
    entity: Annotated[dict[str, Any], Meta(description="The entity as it is stored.")]
    entity_ref: Ref
    raw_data: Annotated[dict[str, Any], Meta(description="The same as `entity`.")]
    set: Annotated[str | None, Meta(description="The set; null outside any set.")]
    updated_by: Annotated[str, Meta(description="The user who changed it last.")]
    source: Literal["api-entity"]
    updated_at: Time


class Notice(WireAnswer):
    """Something to know about an entity that was stored nevertheless."""

    path: str
    message: str
    entity_ref: Ref


class WrittenItem(Item):
    """A pushed entity; with what was accepted with a warning."""

    warnings: list[Notice] | None = None


class Items(WireAnswer):
    """Pushed entities."""

    items: list[Item]


class SetPage(WireAnswer):
    """A set, or a page of it."""

    set: str
    revision: Count
    items: list[Item]
    next_cursor: Annotated[str, Meta(description="Asks for the next page.")] | None = None


class Pushed(WireAnswer):
    """The result of a push."""

    set: str
    revision: Annotated[Count, Meta(description="The set's revision after the push.")]
    changes: Changes
    warnings: list[Notice]
    items: Annotated[
        list[Item],
        Meta(
            description="In the order of the request. A restore sends none: it answers with those "
            "of the revision to a token that may read the catalog."
        ),
    ]


class Difference(WireAnswer):
    """The change that a push would make to one entity."""

    entity_ref: Ref
    change: Annotated[str, describe_known("added", "removed", "updated")]


class TriedResult(WireAnswer):
    """A result of a check that would be another one."""

    check_id: str
    entity_ref: Ref
    to: str
    from_: Annotated[str, Meta(description="Left out of an entity that is new.")] | None = field(
        default=None, name="from"
    )


class TriedChecks(WireAnswer):
    """Results of checks that would be others."""

    changed: Count
    failing: Annotated[Count, Meta(description="Of them would fail.")]
    results: Annotated[list[TriedResult], Meta(description="The first 500, by reference.")]


class Tried(WireAnswer):
    """The result of a dry run: the changes that a push would make."""

    set: str
    dry_run: Literal[True]
    revision: Annotated[Count, Meta(description="The set's present revision.")]
    changes: Changes
    difference: Annotated[
        list[Difference],
        Meta(
            description="Only of entities that were sent for a token that may not read the catalog."
        ),
    ]
    warnings: list[Notice]
    checks: TriedChecks | None = None


class SetSummary(WireAnswer):
    """A set that has entities."""

    id: str
    item_count: Count
    revision: Count
    updated_by: str
    updated_at: Time


class Sets(WireAnswer):
    """Every set that has entities."""

    sets: list[SetSummary]


class Revision(WireAnswer):
    """The changes of one push."""

    revision: Count
    created_by: str
    created_at: Time
    changes: Changes
    restored: Annotated[int, Meta(description="The revision that it put back.")] | None = None


class Revisions(WireAnswer):
    """The revisions of a set that are kept, newest first."""

    revisions: list[Revision]


class ImportRunSummary(WireAnswer):
    """A run of an importer that has ended."""

    id: int
    reason: Annotated[
        str,
        describe_known("cadence", "asked", "command"),
        Meta(description="`command`: from the command line of the service."),
    ]
    state: Annotated[
        str,
        describe_known("complete", "partial", "held", "failed"),
        Meta(description="`failed`: nothing could be read; everything stays as it was."),
    ]
    started_at: Time
    ended_at: Time
    calls: Count
    calls_left: Annotated[
        int | None, Meta(description="Calls that the tightest limit of the account still allowed.")
    ]
    error: Annotated[str | None, Meta(description="Why not everything was read.")]


class ShownImporter(WireAnswer):
    """An importer, its last run and its next one."""

    id: Annotated[str, Meta(description="Names its sets: `import/<id>/<part>`.")]
    kind: str
    title: str
    state: Annotated[
        str,
        describe_known(
            "new", "waiting", "running", "complete", "partial", "held", "failed", "unusable"
        ),
        Meta(
            description="`waiting` and `running` are of a run that has not ended. An importer that "
            "is `unusable` does not run; `problem` has the reason."
        ),
    ]
    complete_at: Annotated[
        Time | None, Meta(description="Of the last complete reading of every part.")
    ]
    next_run_at: Annotated[
        Time | None, Meta(description="Null if it only runs when it is asked, or runs now.")
    ]
    problem_count: Count
    held_count: Annotated[Count, Meta(description="Removals that wait for a decision.")]
    last_run: Annotated[ImportRunSummary | None, Meta(description="Null before the first.")]
    problem: Annotated[str | None, Meta(description="Why it cannot be used.")]


class ShownImporters(WireAnswer):
    """Every importer, by id."""

    importers: list[ShownImporter]


class ImportProblem(WireAnswer):
    """Something that was not imported, with its place."""

    origin: Annotated[str, Meta(description="What was read, such as a repository.")]
    message: str
    file: Annotated[str | None, Meta(description="The path of a file in it.")]
    line: Annotated[int | None, Meta(description="The line in that file.")]
    url: Annotated[str | None, Meta(description="The file's page at its host, where it is known.")]


class ImportPartSummary(WireAnswer):
    """A part that an importer reads, after its last reading."""

    importer: str
    part: str
    set: Annotated[str, Meta(description="The set that its entities are in.")]
    state: Annotated[
        str,
        describe_known("complete", "partial", "held"),
        Meta(description="`held`: removals wait for a decision."),
    ]
    read_at: Time
    complete_at: Annotated[Time | None, Meta(description="Of the last complete reading.")]
    entities: Count
    problem_count: Count
    held_count: Annotated[Count, Meta(description="Removals that wait for a decision.")]


class ImportPart(ImportPartSummary):
    """A part with its problems, of which a thousand are kept, and what it holds."""

    problems: list[ImportProblem]
    held: Annotated[list[str], Meta(description="References of entities that were not found.")]
    reason: Annotated[str | None, Meta(description="Why their removal waits.")]


class ImportParts(WireAnswer):
    """Every part of every importer."""

    parts: list[ImportPartSummary]


class ImporterMaker(WireAnswer):
    """People who made and changed an importer."""

    created_at: Time
    created_by: str
    updated_at: Time
    updated_by: str


class ImporterAnswer(ShownImporter):
    """An importer with its runs, newest first, and the parts that it reads."""

    interval_seconds: Annotated[
        int | None, Meta(description="From one run to the next; null if it only runs when asked.")
    ]
    made: Annotated[ImporterMaker | None, Meta(description="Null for an importer of the settings.")]
    runs: Annotated[list[ImportRunSummary], Meta(description="Those that have ended, at most 50.")]
    parts: Annotated[
        list[ImportPart], Meta(description="Of the last reading, each with what it holds.")
    ]

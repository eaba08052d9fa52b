"""Entities as they are read, their queries and their facets."""

from typing import Annotated, Any

from msgspec import Meta

from factbook.schemas.common import Count, Link, Ref, Text, Uuid, WireAnswer, described_as

# An entity has members that no type here has: a client reads it as it is.
Document = Annotated[dict[str, Any], described_as({"$ref": "#/components/schemas/Entity"})]
PartsDocument = Annotated[
    dict[str, Any], described_as({"$ref": "#/components/schemas/EntityParts"})
]


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

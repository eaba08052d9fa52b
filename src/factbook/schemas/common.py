"""Texts, numbers and base classes that several subjects share."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from factbook.auth.permissions import NAMES
from factbook.schemas import patterns

Text = Annotated[str, Meta(min_length=1)]
Time = Annotated[
    str,
    Meta(
        description="ISO 8601, with milliseconds and the offset +00:00.",
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00$",
    ),
]
Uuid = Annotated[
    str, Meta(extra_json_schema={"format": "uuid"}, description="Stays the same through pushes.")
]
Count = Annotated[int, Meta(ge=0)]
Predicate = Annotated[
    dict[str, Any], Meta(extra_json_schema={"$ref": "#/components/schemas/Predicate"})
]
FieldPath = Annotated[str, patterns.of(patterns.FIELDS)]
AnyRef = Annotated[
    str,
    patterns.of(
        patterns.REFERENCE,
        "entity-reference",
        description="`kind:[namespace/]name`.",
        examples=["component:default/payments"],
    ),
]
Ref = Annotated[str, Meta(description="`kind:namespace/name`, in lower case.")]


class Wire(Struct, rename="camel"):
    """A type of the interfaces."""


# Errors


class Problem(Wire):
    """What is wrong with a part of the body."""

    path: str
    message: str


class Conflict(Wire):
    """An entity that another set holds."""

    entity_ref: Ref
    owner: Annotated[str, Meta(description="The set, or `no set`.")]


class ErrorDetails(Wire):
    """What went wrong."""

    name: Annotated[str, Meta(description="The kind of error, such as `InputError`.")]
    message: Annotated[str, Meta(description="What is wrong and what to do about it.")]
    problems: list[Problem] | UnsetType = UNSET
    conflicts: list[Conflict] | UnsetType = UNSET
    removals: (
        Annotated[int, Meta(description="How many entities a push would remove.")] | UnsetType
    ) = UNSET
    revision: Annotated[int, Meta(description="The set's present revision.")] | UnsetType = UNSET


class ErrorRequest(Wire):
    """The request that was refused."""

    method: str
    url: str


class ErrorStatus(Wire):
    """The status of the refusal."""

    status_code: int


class ErrorAnswer(Wire):
    """Any refusal."""

    error: ErrorDetails
    request: ErrorRequest
    response: ErrorStatus


# Entities as they are read


class Link(Wire):
    """A link to something about an entity."""

    url: Text
    title: Text | UnsetType = UNSET
    icon: Text | UnsetType = UNSET
    type: Text | UnsetType = UNSET


class Relation(Wire):
    """A relation to another entity, which need not exist."""

    type: str
    target_ref: Ref


class Metadata(Wire):
    """What an entity says of itself; other fields than these are kept."""

    uid: Uuid
    etag: Annotated[str, Meta(description="Changes when the entity changes.")]
    name: str
    annotations: dict[str, str]
    namespace: str | UnsetType = UNSET
    title: Text | UnsetType = UNSET
    description: str | UnsetType = UNSET
    labels: dict[str, str] | UnsetType = UNSET
    tags: list[Text] | UnsetType = UNSET
    links: list[Link] | UnsetType = UNSET


class StatusItem(Wire):
    """Something that the spec of an entity misses."""

    type: str
    level: str
    message: str
    error: dict[str, Any]


class Status(Wire):
    """What the spec of an entity misses; left out when there is nothing."""

    items: list[StatusItem]


class Entity(Wire):
    """An entity of the catalog."""

    api_version: str
    kind: str
    metadata: Metadata
    relations: list[Relation]
    spec: dict[str, Any] | UnsetType = UNSET
    status: Status | UnsetType = UNSET


class EntityParts(Wire):
    """An entity, or those parts of it that `fields` names."""

    api_version: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    relations: list[Relation] | UnsetType = UNSET
    spec: dict[str, Any] | UnsetType = UNSET
    status: dict[str, Any] | UnsetType = UNSET


class EntitiesByRefs(Wire):
    """Entities in the order of the references, null for each that there is not."""

    items: list[EntityParts | None]


class Ancestor(Wire):
    """An entity, and the references of those that led to it."""

    entity: Entity
    parent_entity_refs: list[Ref]


class Ancestry(Wire):
    """What led to an entity: the entity itself, as entities are pushed."""

    root_entity_ref: Ref
    items: list[Ancestor]


# Tokens

PermissionName = Annotated[str, Meta(extra_json_schema={"enum": sorted(NAMES)})]


class Token(Wire):
    """A token, without its value."""

    id: Uuid
    name: str
    owner: Annotated[str, Meta(description="The user for whom it acts.")]
    permissions: list[PermissionName]
    created_at: Time
    expires_at: Time | None
    last_used_at: Time | None


class MadeToken(Token):
    """A new token with its value, which is never shown again."""

    value: Annotated[str, Meta(pattern=r"^fbk_[0-9A-Za-z]{46}$")]


class Tokens(Wire):
    """Every token that was not revoked."""

    tokens: list[Token]

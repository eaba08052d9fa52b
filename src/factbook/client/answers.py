"""Answers that the client reads in another form than `factbook.schemas` describes."""

from typing import Any

import msgspec

Entity = dict[str, Any]


class Answer(msgspec.Struct, rename="camel"):
    """Every answer; a member that this client does not know is ignored."""


class Changes(Answer):
    """How many entities a push added, updated, removed and left as they were."""

    added: int
    updated: int
    removed: int
    unchanged: int


class SetItem(Answer):
    """An entity of a set as the server stores it: the described `Item` without `rawData`.

    `rawData` has the content of `entity` again and would double the memory of a large set.
    """

    id: str
    entity: Entity
    entity_ref: str
    set: str
    updated_by: str
    source: str
    updated_at: str


class Notice(Answer):
    """Something to know about an entity that was stored nevertheless."""

    path: str
    message: str
    entity_ref: str | None = None


class Difference(Answer):
    """What a push does to one entity: `added`, `updated` or `removed`."""

    entity_ref: str
    change: str


class PushAnswer(Answer, omit_defaults=True):
    """The result of a push, or of a dry run: that one has `difference` and no `items`.

    The server describes the two as `Pushed` and `Tried`.
    """

    set: str
    revision: int
    changes: Changes
    warnings: list[Notice]
    items: list[SetItem] = msgspec.field(default_factory=list)
    dry_run: bool = False
    difference: list[Difference] | None = None


class SetSummary(Answer):
    """One set: how many entities it has, and which push changed it last."""

    id: str
    item_count: int
    revision: int
    updated_by: str
    updated_at: str


class SetItemPage(Answer, omit_defaults=True):
    """A page of a set's entities; `next_cursor` asks for the next one and is None on the last."""

    set: str
    items: list[SetItem]
    revision: int
    next_cursor: str | None = None


class Revision(Answer, omit_defaults=True):
    """One push that changed a set; `restored` is the revision whose content it put back."""

    revision: int
    created_by: str
    created_at: str
    changes: Changes
    restored: int | None = None


class PageInfo(Answer, omit_defaults=True):
    """The cursors of the pages before and after; None where there is none."""

    next_cursor: str | None = None
    prev_cursor: str | None = None


class QueryPage(Answer):
    """A page of what a query found; `total_items` counts all of it."""

    items: list[Entity]
    total_items: int
    page_info: PageInfo


class FacetValue(Answer):
    """A value of a field, and how many entities have it."""

    value: str
    count: int


class Ancestor(Answer):
    """An entity, and the references of those that it comes from."""

    entity: Entity
    parent_entity_refs: list[str]


class Ancestry(Answer):
    """An entity and all that it comes from."""

    root_entity_ref: str
    items: list[Ancestor]


class ServerInfo(Answer, omit_defaults=True):
    """Name and version of a tool-call endpoint."""

    name: str
    version: str
    title: str | None = None


class Initialized(Answer, omit_defaults=True):
    """The answer to a handshake: the protocol revision to speak, and with whom."""

    protocol_version: str
    server_info: ServerInfo
    instructions: str | None = None


class ToolDescription(Answer, omit_defaults=True):
    """A tool of the tool-call endpoint, with the JSON Schemas of its arguments and its answer."""

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None

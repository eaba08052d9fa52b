"""Answers that the client reads in another form than `factbook.schemas` describes."""

from typing import Any

import msgspec

from factbook.schemas.catalog import Changes, Difference, Notice
from factbook.schemas.common import WireAnswer
from factbook.schemas.events import Undelivered, Webhook
from factbook.schemas.sources import Answered, OneSource

Entity = dict[str, Any]


class SetItem(WireAnswer):
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


class PushAnswer(WireAnswer):
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


class SetItemPage(WireAnswer):
    """A page of a set's entities; `next_cursor` asks for the next one and is None on the last."""

    set: str
    items: list[SetItem]
    revision: int
    next_cursor: str | None = None


class DataSourcePage(WireAnswer):
    """A page of data sources: the builtin ones first, then the custom ones by their ids.

    They have a `definition`, which is None here: only a source that is asked for by its id has it.
    """

    data_sources: list[OneSource]
    total_count: int
    next_cursor: str | None = None


class TrialAnswer(WireAnswer):
    """The result of a trial, of the server or replayed: `Trial` without the entity.

    `reasons` says by fact, or "" for all of them, why there is none.
    """

    request: dict[str, Any] | None
    answer: Answered | None
    facts: dict[str, Any]
    reasons: dict[str, str]


class WebhookAnswer(Webhook):
    """A webhook, as every call answers with it; the server describes three types.

    `secret` is there when it was just made, `undelivered` when it was asked for by its id.
    """

    secret: str | None = None
    undelivered: list[Undelivered] | None = None


class WebhookAnswers(WireAnswer):
    """Every webhook, the oldest first."""

    webhooks: list[WebhookAnswer]


class ServerInfo(WireAnswer):
    """Name and version of a tool-call endpoint."""

    name: str
    version: str
    title: str | None = None


class Initialized(WireAnswer):
    """The answer to a handshake: the protocol revision to speak, and with whom."""

    protocol_version: str
    server_info: ServerInfo
    instructions: str | None = None


class ToolDescription(WireAnswer):
    """A tool of the tool-call endpoint, with the JSON Schemas of its arguments and its answer."""

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None

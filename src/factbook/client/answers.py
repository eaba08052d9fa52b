"""Answers and errors of a server, as the client reads them."""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import httpx2
import msgspec

from factbook.schemas.catalog import Changes, Difference, Notice
from factbook.schemas.common import WireAnswer
from factbook.schemas.events import Undelivered, Webhook
from factbook.schemas.facts import Answered, OneSource

Entity = dict[str, Any]

T = TypeVar("T")


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


class ClientError(Exception):
    """Something kept the client from its answer."""


class ConnectionFailed(ClientError):
    """The server was not reached, or the connection broke before the answer was complete."""


class ApiError(ClientError):
    """The server refused.

    `details` holds the further members of its error object, such as `problems` of a push that is
    not valid, `[{path, message}]`, and `conflicts`, `[{entityRef, owner}]`.
    """

    def __init__(self, status: int, name: str, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message
        self.details = details


class ProtocolError(ClientError):
    """A JSON-RPC error of the tool-call endpoint, such as an unknown tool."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class ToolCallError(ClientError):
    """A tool cannot answer; the text says why and what to do next."""


class UnexpectedAnswer(ClientError):
    """The answer is none that a Factbook server gives; perhaps the address is another's."""


def decode_answer(type_: type[T], response: httpx2.Response) -> T:
    """The body as that type. Raises UnexpectedAnswer when it is none."""
    try:
        return msgspec.json.decode(response.content, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        asked = response.request
        raise UnexpectedAnswer(
            f"{asked.method} {asked.url} gave an answer that is not Factbook's: {error}"
        ) from None


def accept_nothing(_: httpx2.Response) -> None:
    """An answer that says no more than that it was done."""
    return


def receive_answer(
    read: Callable[[httpx2.Response], T], response: httpx2.Response, answers: Collection[int] = ()
) -> T:
    """Read a response with `read`. Raises ClientError for one that is an error.

    `answers` are the statuses that `read` understands beside those of success.
    """
    if response.is_success or response.status_code in answers:
        return read(response)
    if response.is_redirect:
        target = response.headers.get("location", "another address")
        raise UnexpectedAnswer(f"{response.request.url} redirects to {target}: use that address.")
    raise read_refusal(response)


def read_refusal(response: httpx2.Response) -> ClientError:
    """The error of a response: a REST one, a JSON-RPC one, one of RFC 6750, or a proxy's."""
    status = response.status_code
    try:
        body = msgspec.json.decode(response.content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = {}
    match body.get("error"):
        case {"code": int(code), "message": str(message), **rest}:
            return ProtocolError(code, message, rest.get("data"))
        case {"name": str(name), "message": str(message), **rest}:
            return ApiError(status, name, message, {str(key): rest[key] for key in rest})
        case str(name):
            return ApiError(status, name, str(body.get("error_description", name)), {})
    reason = response.reason_phrase
    return ApiError(status, reason, f"{response.request.url} answered {status} {reason}.", {})

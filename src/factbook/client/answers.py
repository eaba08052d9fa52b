"""Types of a server's answers and errors."""

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
    """An entity of a set, as the server stores it: `Item` of the API without `rawData`.

    `rawData` repeats the content of `entity`, which would double the memory of a large set.
    """

    id: str
    entity: Entity
    entity_ref: str
    set: str
    updated_by: str
    source: str
    updated_at: str


class PushAnswer(WireAnswer):
    """The result of a push or a dry run; a dry run has `difference` and no `items`.

    The API describes these as `Pushed` and `Tried`.
    """

    set: str
    revision: int
    changes: Changes
    warnings: list[Notice]
    items: list[SetItem] = msgspec.field(default_factory=list)
    dry_run: bool = False
    difference: list[Difference] | None = None


class SetItemPage(WireAnswer):
    """A page of a set's entities; `next_cursor` leads to the next page, and is None on the last."""

    set: str
    items: list[SetItem]
    revision: int
    next_cursor: str | None = None


class DataSourcePage(WireAnswer):
    """A page of data sources: builtin sources first, then custom sources by id.

    Their `definition` is None here; call `data_source` to get it.
    """

    data_sources: list[OneSource]
    total_count: int
    next_cursor: str | None = None


class TrialAnswer(WireAnswer):
    """The result of a trial, from the server or replayed: `Trial` of the API without the entity.

    `reasons` says why a fact has no value, by its name, or "" for all facts.
    """

    request: dict[str, Any] | None
    answer: Answered | None
    facts: dict[str, Any]
    reasons: dict[str, str]


class WebhookAnswer(Webhook):
    """A webhook, in the form all calls return; the API describes three types.

    Only `create_webhook` returns `secret`, and only `webhook` returns `undelivered`.
    """

    secret: str | None = None
    undelivered: list[Undelivered] | None = None


class WebhookAnswers(WireAnswer):
    """All webhooks, oldest first."""

    webhooks: list[WebhookAnswer]


class ServerInfo(WireAnswer):
    """Name and version of a tool-call endpoint."""

    name: str
    version: str
    title: str | None = None


class Initialized(WireAnswer):
    """The answer to a handshake: the protocol revision, and who the server is."""

    protocol_version: str
    server_info: ServerInfo
    instructions: str | None = None


class ToolDescription(WireAnswer):
    """A tool of the tool-call endpoint, with JSON Schemas of its arguments and answer."""

    name: str
    input_schema: dict[str, Any]
    title: str | None = None
    description: str | None = None
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] | None = None


class ClientError(Exception):
    """The client could not get an answer."""


class ConnectionFailed(ClientError):
    """The server could not be reached, or the connection broke before the answer was complete."""


class ApiError(ClientError):
    """The server refused a request.

    `details` has the other members of the error object, such as `problems` of an invalid push,
    `[{path, message}]`, and `conflicts`, `[{entityRef, owner}]`.
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
    """The answer isn't from a Factbook server; the address may be wrong."""


def decode_answer(type_: type[T], response: httpx2.Response) -> T:
    """Decode the body as a type. Raises UnexpectedAnswer if it doesn't fit."""
    try:
        return msgspec.json.decode(response.content, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        asked = response.request
        raise UnexpectedAnswer(
            f"{asked.method} {asked.url} gave an answer that is not Factbook's: {error}"
        ) from None


def accept_nothing(_: httpx2.Response) -> None:
    """Accept an answer without content."""
    return


def receive_answer(
    read: Callable[[httpx2.Response], T], response: httpx2.Response, answers: Collection[int] = ()
) -> T:
    """Read a response with `read`. Raises ClientError for an error response.

    `answers` are statuses besides success that `read` understands.
    """
    if response.is_success or response.status_code in answers:
        return read(response)
    if response.is_redirect:
        target = response.headers.get("location", "another address")
        raise UnexpectedAnswer(f"{response.request.url} redirects to {target}: use that address.")
    raise read_refusal(response)


def read_refusal(response: httpx2.Response) -> ClientError:
    """Make the error for a response from REST, JSON-RPC, RFC 6750 or a proxy."""
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

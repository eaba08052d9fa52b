"""What a server answers about events and webhooks, as types."""

from typing import Any

from factbook.client.answers import Answer


class Event(Answer):
    """Something that changed; `subject` is a set, an entity's reference or a data source."""

    id: str
    type: str
    at: str
    subject: str
    data: dict[str, Any]


class EventPage(Answer):
    """Events, the oldest first; `next_cursor` is where the next page begins, now or later.

    `more`: there is more to read already.
    """

    events: list[Event]
    next_cursor: str
    more: bool


class Undelivered(Answer):
    """A message that could not be delivered to a webhook."""

    event_id: str
    type: str
    first_at: str
    attempts: int
    error: str


class Webhook(Answer, omit_defaults=True):
    """An address that events are sent to; no `types` are all of them.

    `waiting` counts messages that are sent again, `given_up` those that are not. `secret` is there
    when the webhook was just made, `undelivered` when it was asked for by its id.
    """

    id: str
    url: str
    types: list[str]
    created_at: str
    created_by: str
    last_success_at: str | None
    last_failure_at: str | None
    last_error: str | None
    disabled_at: str | None
    waiting: int
    given_up: int
    secret: str | None = None
    undelivered: list[Undelivered] | None = None


class TriedWebhook(Answer):
    """What came of a test message; `status` is 0 without an answer."""

    delivered: bool
    status: int
    milliseconds: int
    error: str | None

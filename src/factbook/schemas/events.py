"""Bodies and answers of the interface of events."""

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, field

from factbook.schemas.common import Count, Time, WireAnswer, known

LONGEST_URL = 2_000

EventType = Literal[
    "check.changed",
    "check.published",
    "entity.added",
    "entity.removed",
    "entity.updated",
    "exemption.decided",
    "exemption.expired",
    "exemption.expiring",
    "exemption.requested",
    "fact.changed",
    "import.held",
    "level.changed",
    "set.replaced",
    "source.down",
    "source.up",
]
_KnownType = Annotated[str, known(*get_args(EventType))]
_TYPES = "Only events of these types; empty for every type."
_Url = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_URL,
        description="Where each event is sent to, as POST.",
        examples=["https://events.example.com/factbook"],
        extra_json_schema={"format": "webhook-address"},
    ),
]


class Event(WireAnswer):
    """Something that changed."""

    id: Annotated[str, Meta(description="What no other event has; webhooks send it, too.")]
    type: _KnownType
    at: Time
    subject: Annotated[str, Meta(description="A set, a reference, a data source, or a check.")]
    data: dict[str, Any]


class Events(WireAnswer):
    """Events in the order in which they are read."""

    events: list[Event]
    next_cursor: Annotated[str, Meta(description="The `after` of the next call; always there.")]
    more: Annotated[bool, Meta(description="Whether there is more to read already.")]


class NewWebhook(Struct, forbid_unknown_fields=True):
    """A webhook as it is wanted."""

    url: _Url
    types: Annotated[list[EventType], Meta(description=_TYPES)] = field(default_factory=list)


class Webhook(WireAnswer):
    """A webhook, without its secrets."""

    id: str
    url: Annotated[
        str, Meta(description="Of the address the scheme and host, as the rest may be a secret.")
    ]
    types: Annotated[list[_KnownType], Meta(description=_TYPES)]
    created_at: Time
    created_by: str
    last_success_at: Time | None
    last_failure_at: Time | None
    last_error: Annotated[str | None, Meta(description="Of the last failure.")]
    disabled_at: Annotated[
        Time | None, Meta(description="Since when nothing is sent, as nothing arrived for a day.")
    ]
    waiting: Annotated[Count, Meta(description="Messages that will be sent again.")]
    given_up: Annotated[Count, Meta(description="Messages that could not be delivered.")]


class MadeWebhook(Webhook):
    """A webhook with its address and its secret, which are in this answer and never again."""

    url: Annotated[str, Meta(description="The address as it was given.")]
    secret: Annotated[str, Meta(description="`whsec_` and the key of the signatures in base64.")]


class Undelivered(WireAnswer):
    """A message that could not be delivered."""

    event_id: str
    type: str
    first_at: Time
    attempts: Count
    error: str


class WebhookDetail(Webhook):
    """A webhook, and what could not be delivered to it, the newest first, up to a hundred."""

    undelivered: list[Undelivered]


class Webhooks(WireAnswer):
    """Every webhook, the oldest first."""

    webhooks: list[Webhook]


class TriedWebhook(WireAnswer):
    """The result of a test."""

    delivered: bool
    status: Annotated[int, Meta(description="What the receiver answered; 0 without an answer.")]
    milliseconds: Count
    error: str | None

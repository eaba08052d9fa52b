"""Events, the webhooks and digests that send them, and records of the audit log."""

from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct, UnsetType, field

from factbook.schemas import common
from factbook.schemas.common import Count, Time, Wire, WireAnswer, describe_known

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
_KnownType = Annotated[str, describe_known(*get_args(EventType))]
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


DigestForm = Literal["slack", "teams"]
CadenceUnit = Literal["weekly", "daily"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_Owner = Annotated[
    str,
    common.describe_text(
        common.REFERENCE,
        "entity-reference",
        description="A group and its subgroups. Without one, the digest covers the whole catalog.",
        examples=["group:default/payments"],
    ),
]
_Form = Annotated[DigestForm, Meta(description="Format of the messages.")]
_DigestUrl = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=LONGEST_URL,
        description="The incoming webhook of a channel. It is a secret, and never shown again.",
        examples=["https://events.example.com/services/T0/B0/key"],
        extra_json_schema={"format": "webhook-address"},
    ),
]


class _Digest(Wire, forbid_unknown_fields=True, kw_only=True):
    owner: _Owner | UnsetType = UNSET
    cadence: CadenceUnit = "weekly"
    day: Annotated[Weekday, Meta(description="Day of a weekly digest.")] = "monday"
    hour: Annotated[int, Meta(ge=0, le=23, description="Hour in the time zone.")] = 8
    time_zone: Annotated[
        str,
        Meta(
            max_length=64,
            description="Such as UTC or Europe/Paris.",
            examples=["Europe/Paris"],
            extra_json_schema={"format": "time-zone"},
        ),
    ] = "UTC"


class NewDigest(_Digest, kw_only=True):
    """A digest to create."""

    form: _Form = "slack"
    url: _DigestUrl


class ChangedDigest(_Digest, kw_only=True):
    """New settings of a digest; without `url` or `form`, the current value stays."""

    form: _Form | UnsetType = UNSET
    url: _DigestUrl | UnsetType = UNSET


class ShownDigest(WireAnswer):
    """A digest, without its address."""

    id: str
    owner: Annotated[str | None, Meta(description="Null for the whole catalog.")]
    form: Annotated[str, describe_known("slack", "teams")]
    url: Annotated[str, Meta(description="Scheme and host of the address; the rest is a secret.")]
    cadence: Annotated[str, describe_known("weekly", "daily")]
    hour: Count
    time_zone: str
    created_at: Time
    created_by: str
    told_up_to: Annotated[Time, Meta(description="Changes up to this time were reported.")]
    next_at: Annotated[Time, Meta(description="When the next digest is or was due.")]
    last_success_at: Annotated[Time | None, Meta(description="When a message last arrived.")]
    last_failure_at: Annotated[Time | None, Meta(description="When the message now due failed.")]
    last_error: str | None
    day: Annotated[str, Meta(description="Day of a weekly digest.")] | None = None


class ShownDigests(WireAnswer):
    """Every digest, by owner."""

    digests: list[ShownDigest]


class AuditRecord(Wire):
    """Something that was done, or was refused."""

    id: str
    at: Time
    actor: str
    action: str
    object: str
    outcome: str
    status: int
    address: str
    token: str
    detail: dict[str, Any]
    grant: Annotated[
        str,
        Meta(
            description="What allowed it: `role`, with the group that gave the role if one did, "
            "`token`, or `group` with the one that owns what was written. Empty for what was "
            "refused, and where nothing had to allow it."
        ),
    ]


class AuditLine(AuditRecord):
    """Something that was done, or was refused, on a line of its own."""

    cursor: str


class AuditPage(Wire):
    """Records, newest first."""

    records: list[AuditRecord]
    next_cursor: str | UnsetType = UNSET

"""Bodies and answers of the interface of digests."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from factbook.schemas import patterns
from factbook.schemas.common import Count, Time, Wire, WireAnswer, known
from factbook.schemas.events import LONGEST_URL

DigestForm = Literal["slack", "teams"]
CadenceUnit = Literal["weekly", "daily"]
Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_Owner = Annotated[
    str,
    patterns.of(
        patterns.REFERENCE,
        "entity-reference",
        description="A group, with those below it. Without one it is about the whole catalog.",
        examples=["group:default/payments"],
    ),
]
_Form = Annotated[DigestForm, Meta(description="What the address takes.")]
_Url = Annotated[
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
    day: Annotated[Weekday, Meta(description="Of a weekly one.")] = "monday"
    hour: Annotated[int, Meta(ge=0, le=23, description="In its time zone.")] = 8
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
    """A digest as it is wanted."""

    form: _Form = "slack"
    url: _Url


class ChangedDigest(_Digest, kw_only=True):
    """A digest as it is wanted instead; without `url` its address stays, and so does `form`."""

    form: _Form | UnsetType = UNSET
    url: _Url | UnsetType = UNSET


class ShownDigest(WireAnswer):
    """A digest, without its address."""

    id: str
    owner: Annotated[str | None, Meta(description="Null for the whole catalog.")]
    form: Annotated[str, known("slack", "teams")]
    url: Annotated[
        str, Meta(description="Of the address the scheme and host, as the rest is a secret.")
    ]
    cadence: Annotated[str, known("weekly", "daily")]
    hour: Count
    time_zone: str
    created_at: Time
    created_by: str
    told_up_to: Annotated[Time, Meta(description="Changes until then were told.")]
    next_at: Annotated[Time, Meta(description="When the next one is due, or was.")]
    last_success_at: Annotated[Time | None, Meta(description="When a message last arrived.")]
    last_failure_at: Annotated[Time | None, Meta(description="Of a message that is to be sent.")]
    last_error: str | None
    day: Annotated[str, Meta(description="Of a weekly one.")] | None = None


class ShownDigests(WireAnswer):
    """Every digest, by owner."""

    digests: list[ShownDigest]

"""Bodies and answers of the interface of connections."""

from typing import Annotated, Literal

from msgspec import Meta, field

from factbook.schemas import patterns
from factbook.schemas.common import AnyRef, Count, Ref, Time, Wire, WireAnswer, known

_Method = Literal["GET", "POST"]
_AtOnce = Annotated[int, Meta(ge=1, le=100, description="Requests under way at the same time.")]
_Header = Annotated[str, patterns.of(patterns.HEADER, "connection-header")]
_Value = Annotated[str, patterns.of(patterns.HEADER_VALUE)]
_BaseUrl = Annotated[
    str,
    patterns.of(
        None,
        "connection-address",
        min_length=1,
        max_length=2_000,
        description="Address that paths of sources are appended to.",
        examples=["https://ci.example.com/api"],
    ),
]


class NewConnection(Wire, forbid_unknown_fields=True):
    """A connection as it is wanted."""

    base_url: _BaseUrl
    headers: Annotated[
        dict[_Header, _Value | None],
        Meta(
            max_length=20,
            description="What is sent with each request, by name, such as `authorization`. The "
            "values are secret. `null` keeps the value that is stored, as long as `baseUrl` stays "
            "on its scheme, host and port. A header that is not named is removed.",
        ),
    ] = field(default_factory=dict)
    methods: Annotated[
        list[_Method], Meta(min_length=1, description="Methods that sources may use; GET alone.")
    ] = field(default_factory=lambda: ["GET"])
    at_once: _AtOnce = 4
    shared_with: Annotated[
        list[AnyRef],
        Meta(
            max_length=500,
            description="Owners whose data sources may use it; nobody when it is left out. Sources "
            "without an owner may use every connection.",
        ),
    ] = field(default_factory=list)

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"NewConnection(base_url={self.base_url!r})"


class ShownHeader(WireAnswer):
    """A header of a connection; its value is never shown."""

    name: str
    set_at: Annotated[Time | None, Meta(description="Not known of those of the settings.")]


class ShownConnection(WireAnswer):
    """A connection, without its secrets."""

    name: str
    base_url: str
    methods: list[Annotated[str, known("GET", "POST")]]
    at_once: int
    headers: list[ShownHeader]
    shared_with: Annotated[list[Ref], Meta(description="Owners whose data sources may use it.")]
    origin: Annotated[
        Literal["settings", "stored"],
        Meta(description="One of the settings is changed there alone."),
    ]
    used_by: Annotated[
        list[str],
        Meta(
            description="The ids of the data sources that ask it; empty for a token that may not "
            "read data sources."
        ),
    ]
    used_by_count: Annotated[Count, Meta(description="How many data sources ask it.")]
    problem: Annotated[str, Meta(description="Why it cannot be used.")] | None = None
    created_at: Time | None = None
    created_by: str | None = None
    updated_at: Time | None = None
    updated_by: str | None = None


class Connections(WireAnswer):
    """Every connection, by its name."""

    connections: list[ShownConnection]

"""Connections: hosts that an administrator lets custom sources call.

They are tables of the settings, `[connections.<name>]`, or are created while the service runs.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from msgspec import Meta

from factbook.catalog import ref
from factbook.datasources.custom import echo
from factbook.errors import ConfigurationError, InputError
from factbook.outbound.client import Credential, extract_host
from factbook.settings import option_tables

MOST_OWNERS: Final = 500
_METHODS: Final = frozenset({"GET", "POST"})
_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", re.ASCII)
_VALUE: Final = re.compile(r"[\x20-\x7e]*")


class SourceConnection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One host with one credential; a source can only append a path to its address."""

    base_url: Annotated[str, Meta(description="Address that paths of sources are appended to.")]
    headers: Annotated[
        dict[str, str],
        Meta(description="Secret. Headers that are sent with each request, such as authorization."),
    ] = {}
    methods: Annotated[
        tuple[str, ...], Meta(description="Methods that sources may use: GET, POST or both.")
    ] = ("GET",)
    at_once: Annotated[
        int, Meta(ge=1, le=100, description="Requests under way at the same time.")
    ] = 4
    shared_with: Annotated[
        tuple[str, ...],
        Meta(description="Owners whose sources may use it, such as `group:default/team-a`."),
    ] = ()

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("https://", "http://")):
            raise ConfigurationError("base_url has to begin with https://")
        try:
            extract_host(self.base_url.rstrip("/"))
        except ConfigurationError:
            raise ConfigurationError(
                "base_url has to be like https://host/path, without name, password and query"
            ) from None
        if not all(map(_NAME.fullmatch, self.headers)):
            raise ConfigurationError("headers has an invalid name")
        if not all(map(_VALUE.fullmatch, self.headers.values())):
            raise ConfigurationError("headers has a character that cannot be sent")
        if set(self.methods) - _METHODS:
            raise ConfigurationError("methods can be GET and POST")
        msgspec.structs.force_setattr(self, "shared_with", _references(self.shared_with))

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Connection(base_url={self.base_url!r})"

    def is_repeated(self, body: bytes) -> bool:
        """True if a body contains a secret, as some hosts return what they were sent."""
        return echo.has(body, echo.needles(self.headers.values()))

    @property
    def edition(self) -> str:
        """Digest that changes with the connection and does not reveal its secrets."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def credential(self, name: str) -> Credential:
        """The credential that sends the connection's headers."""
        return Credential.fixed(name, self.headers)


class Unusable(NamedTuple):
    """Connection that exists but cannot be used; `problem` gives the reason."""

    problem: str
    shared_with: tuple[str, ...] = ()


def usable_by(
    owner: str | None, connections: Mapping[str, SourceConnection | Unusable]
) -> Mapping[str, SourceConnection | Unusable]:
    """The connections that sources of the owner may use; those of no owner may use all of them."""
    if owner is None:
        return connections
    return {name: one for name, one in connections.items() if owner in one.shared_with}


def configured(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, SourceConnection]:
    """The connections of the settings; raises ConfigurationError naming the table."""
    return {
        name: option_tables.read_option_table(f"connections.{name}", name, values, SourceConnection)
        for name, values in tables.items()
    }


def _references(owners: tuple[str, ...]) -> tuple[str, ...]:
    """The canonical references, each once; raises ConfigurationError."""
    if len(owners) > MOST_OWNERS:
        raise ConfigurationError(f"shared_with can have {MOST_OWNERS} entries at most")
    try:
        found = (ref.canonical(owner, kind="group") for owner in owners)
        return tuple(sorted(set(found)))
    except InputError as error:
        raise ConfigurationError(
            f"shared_with has another entry than references: {error.message}"
        ) from None

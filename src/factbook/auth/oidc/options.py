"""The table `[openid]` of the settings: the provider for sign-in."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

import msgspec

from factbook.auth import roles
from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about, read_option_table

NO_ROLE: Final = "none"
# What parsers of addresses read differently.
_PROVEN: Final = re.compile(r"\*(@[^@*\s]+)?")
_ODD: Final = re.compile(r"[^!-~]|\\")


class ProviderOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the table. Raises ConfigurationError for invalid ones."""

    issuer: Annotated[
        str,
        about(
            "Address of the provider as its discovery document has it, e.g. "
            "`https://id.example.com`. Without encryption only a loopback address, to try it out."
        ),
    ]
    client_id: Annotated[str, about("Client id of Factbook at the provider.")]
    client_secret: Annotated[
        str, about("Secret. Client secret from the provider; empty for a public client.")
    ] = ""
    title: Annotated[str, about("Name of the provider on the sign-in page.")] = "single sign-on"
    scopes: Annotated[str, about("Scopes to ask for, separated by spaces.")] = (
        "openid profile email"
    )
    name_claim: Annotated[
        str,
        about(
            "Claim with the name of a new person, up to an `@`. When there is none that can be a "
            "name, it is taken from the email address, then from `sub`."
        ),
    ] = "preferred_username"
    proven_names: Annotated[
        list[str],
        about(
            "Names at the provider that prove who somebody is in the catalog: `*@example.com` for "
            "`NAME@example.com`, `*` for names without an `@`. Set it only if people cannot choose "
            "or change the claim `name_claim`. Other new accounts never get the name of a user of "
            "the catalog, nor its groups, until an administrator confirms them."
        ),
    ] = []
    role: Annotated[
        str,
        about(
            "Role of a new person; with `none`, only people who already have an account may sign "
            "in."
        ),
    ] = roles.VIEWER
    groups_claim: Annotated[str, about("Claim with the names of a person's groups.")] = "groups"
    administrator_groups: Annotated[
        list[str], about("Groups of which each member is an administrator.")
    ] = []

    def __post_init__(self) -> None:
        if not is_secure(self.issuer) or urlsplit(self.issuer).query:
            raise ConfigurationError("issuer has to be like https://host/path")
        if not self.client_id:
            raise ConfigurationError("client_id has to be set")
        if "openid" not in self.scopes.split():
            raise ConfigurationError("scopes has to have openid among them")
        if not all(map(_PROVEN.fullmatch, self.proven_names)):
            raise ConfigurationError("proven_names has to be of the form *@example.com, or *")
        if self.role not in {*roles.ROLES, NO_ROLE}:
            names = ", ".join([*roles.ROLES, NO_ROLE])
            raise ConfigurationError(f"role has to be one of {names}")

    def __repr__(self) -> str:
        """Representation without the secret."""
        return f"Options(issuer={self.issuer!r}, client_id={self.client_id!r})"


def configured(table: Mapping[str, Any]) -> ProviderOptions | None:
    """Options of the settings, None when the table is empty.

    Raises ConfigurationError naming the option, and never a value.
    """
    return read_option_table("openid", "openid", table, ProviderOptions) if table else None


def is_secure(url: str) -> bool:
    """True if this is an absolute address over TLS, or one on the loopback interface."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    odd = parts.fragment or "@" in parts.netloc or _ODD.search(url)
    safe = parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))
    return bool(host) and safe and not odd


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False

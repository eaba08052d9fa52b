"""The table `[oauth]` of the settings: how agents get tokens without somebody who copies one."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from factbook.auth.oauth import redirects, scopes
from factbook.auth.oidc.options import is_secure
from factbook.errors import ConfigurationError
from factbook.settings.option_tables import about, read_option_table

# A client id that no address and no registration looks like.
_CLIENT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,99}")
_HOST: Final = re.compile(r"[a-z0-9.-]+(:\d{1,5})?")


class OAuthOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the table. Raises ConfigurationError for invalid ones."""

    enabled: Annotated[
        bool, about("Offer OAuth at `/mcp`; without it, only tokens made by hand are accepted.")
    ] = True
    clients: Annotated[
        dict[str, list[str]],
        about(
            "Clients that are known beforehand: the id of each, and the addresses that it may be "
            "answered at."
        ),
    ] = {}
    client_hosts: Annotated[
        list[str],
        about(
            "Hosts whose client metadata documents are accepted, e.g. `claude.ai`. Empty: any "
            "public host."
        ),
    ] = []
    registration: Annotated[
        bool,
        about(
            "Let clients register themselves (RFC 7591). Only for clients that can do nothing "
            "else: anybody can register under any name."
        ),
    ] = False
    issuer: Annotated[
        str,
        about(
            "Address of an authorization server of your own, whose tokens are accepted in place of "
            "those that this service would issue, e.g. `https://id.example.com`."
        ),
    ] = ""
    audience: Annotated[
        str,
        about("Audience that tokens of `issuer` have to name. Empty: the address of `/mcp`."),
    ] = ""
    name_claim: Annotated[
        str,
        about(
            "Claim in tokens of `issuer` with what the provider of `[openid]` calls a person who "
            "signs in there, in full. Empty: people are known by their subject alone."
        ),
    ] = ""
    permissions: Annotated[
        tuple[str, ...],
        about("Permissions of a token of `issuer` whose scopes name none of this service."),
    ] = scopes.BASIC

    def __post_init__(self) -> None:
        if self.issuer and not is_secure(self.issuer):
            raise ConfigurationError("issuer has to be like https://host/path")
        if unknown := sorted(set(self.permissions) - set(scopes.SCOPES)):
            raise ConfigurationError(f"permissions cannot have {', '.join(unknown)} among them")
        for client, uris in self.clients.items():
            if not _CLIENT.fullmatch(client):
                raise ConfigurationError("clients: an id has letters, digits and . _ ~ -")
            if not uris or not all(map(redirects.is_acceptable, uris)):
                raise ConfigurationError(
                    f"clients: {client} needs addresses that begin with https://, with http:// "
                    "and a loopback address, or with a scheme of the program's own"
                )
        if not all(map(_HOST.fullmatch, self.client_hosts)):
            raise ConfigurationError("client_hosts has to have names of hosts")

    @property
    def issues(self) -> bool:
        """True if this service issues tokens itself."""
        return self.enabled and not self.issuer


def configured(table: Mapping[str, Any]) -> OAuthOptions:
    """Options of the settings. Raises ConfigurationError naming the option, and never a value."""
    return read_option_table("oauth", "oauth", table, OAuthOptions)

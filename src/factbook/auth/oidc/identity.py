"""OpenID Connect sign-in: the settings, an attempt, and the person's identity."""

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Annotated, Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from factbook import invisible
from factbook.auth import permissions, users
from factbook.auth.encryption import sign_content
from factbook.clock import MINUTE
from factbook.errors import ConfigurationError, InputError
from factbook.settings.option_tables import about, read_option_table

NO_ROLE: Final = "none"
_PROVEN: Final = re.compile(r"\*(@[^@*\s]+)?")
# Characters that URL parsers interpret differently.
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
    ] = permissions.VIEWER
    groups_claim: Annotated[str, about("Claim with the names of a person's groups.")] = "groups"
    administrator_groups: Annotated[
        list[str], about("Groups of which each member is an administrator.")
    ] = []

    def __post_init__(self) -> None:
        if not is_secure_url(self.issuer) or urlsplit(self.issuer).query:
            raise ConfigurationError("issuer has to be like https://host/path")
        if not self.client_id:
            raise ConfigurationError("client_id has to be set")
        if "openid" not in self.scopes.split():
            raise ConfigurationError("scopes has to have openid among them")
        if not all(map(_PROVEN.fullmatch, self.proven_names)):
            raise ConfigurationError("proven_names has to be of the form *@example.com, or *")
        if self.role not in {*permissions.ROLES, NO_ROLE}:
            names = ", ".join([*permissions.ROLES, NO_ROLE])
            raise ConfigurationError(f"role has to be one of {names}")

    def __repr__(self) -> str:
        """Representation without the secret."""
        return f"Options(issuer={self.issuer!r}, client_id={self.client_id!r})"


def make_openid_options(table: Mapping[str, Any]) -> ProviderOptions | None:
    """Read options from the settings; None if the table is empty.

    Raises ConfigurationError naming the option, not its value.
    """
    return read_option_table("openid", "openid", table, ProviderOptions) if table else None


def is_secure_url(url: str) -> bool:
    """True for an absolute https URL, or an http URL on the loopback interface."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if not host or parts.fragment or "@" in parts.netloc or _ODD.search(url):
        return False
    if parts.scheme != "http":
        return parts.scheme == "https"
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


_LONGEST_TEXT: Final = 200


class Identity(NamedTuple):
    """The provider's claims about a person.

    Only `issuer` and `subject` together identify a person permanently: names and email addresses
    can be reassigned. `name` is a suggested name for a new person, which `users.make_user_ref` may
    still reject. `email` is None if missing or if the provider says it isn't verified. `login` is
    the full account name at the provider.
    """

    issuer: str
    subject: str
    name: str
    display_name: str
    email: str | None
    groups: tuple[str, ...]
    login: str | None = None


def make_identity(claims: Mapping[str, Any], options: ProviderOptions) -> Identity:
    """Identity from checked claims (OpenID Connect Core 1.0, section 5.1)."""
    subject: str = claims["sub"]
    # Some providers send it as a string.
    unverified = claims.get("email_verified") in (False, "false")
    email = None if unverified else _clean_text(claims.get("email"))
    login = _clean_text(claims.get(options.name_claim))
    name = _choose_name(login, email, subject)
    groups = claims.get(options.groups_claim)
    if isinstance(groups, str):
        groups = [groups]  # some providers send a single group as text
    elif not isinstance(groups, list):
        groups = []
    return Identity(
        options.issuer,
        subject,
        name,
        _clean_text(claims.get("name")) or name,
        email,
        tuple(group for group in groups if isinstance(group, str)),
        login,
    )


def find_proven_name(identity: Identity, options: ProviderOptions) -> str | None:
    """Return the name before the `@` if the options accept it as proof of a catalog user."""
    name, at, domain = (identity.login or "").casefold().partition("@")
    proven = {pattern.casefold() for pattern in options.proven_names}
    return name if name and f"*{at}{domain}" in proven else None


def choose_role(identity: Identity, options: ProviderOptions) -> str | None:
    """Choose the role of a new person; None if only existing people may sign in.

    Members of an administrator group always become administrators.
    """
    if set(identity.groups) & set(options.administrator_groups):
        return permissions.ADMINISTRATOR
    return None if options.role == NO_ROLE else options.role


def _choose_name(*proposals: str | None) -> str:
    """First candidate that is a valid name here, else the last one."""
    for proposal in proposals:
        name = (proposal or "").partition("@")[0]
        try:
            users.make_user_ref(name)
        except InputError:
            continue
        return name
    return proposals[-1] or ""


def _clean_text(value: object) -> str | None:
    """A text as one printable line."""
    if not isinstance(value, str):
        return None
    visible = invisible.without(value)
    shown = "".join(character for character in visible if character.isprintable())
    return shown.strip()[:_LONGEST_TEXT].strip() or None


ATTEMPT_LIFETIME: Final = 10 * MINUTE
_ATTEMPT_LABEL: Final = b"factbook: an attempt to sign in with OpenID Connect"


class Attempt(msgspec.Struct, frozen=True):
    """State of one sign-in, checked when the browser comes back.

    `expires_at` is in milliseconds since the epoch.
    """

    state: str
    nonce: str
    code_verifier: str
    expires_at: int

    def __repr__(self) -> str:
        """Representation without the values, which are secrets."""
        return "Attempt(…)"


def seal_attempt(attempt: Attempt, key: bytes) -> str:
    """Encode an attempt as a cookie value, signed with a key derived from `key`."""
    body = base64.urlsafe_b64encode(msgspec.json.encode(attempt))
    return f"{body.decode()}.{sign_content(key, _ATTEMPT_LABEL, body)}"


def open_attempt(text: str, key: bytes, now: int) -> Attempt | None:
    """Decode an attempt from a cookie value; None if changed, expired or invalid."""
    body, _, given = text.encode("utf-8", "replace").rpartition(b".")
    if not hmac.compare_digest(given, sign_content(key, _ATTEMPT_LABEL, body).encode()):
        return None
    try:
        attempt = msgspec.json.decode(base64.urlsafe_b64decode(body), type=Attempt)
    except (binascii.Error, msgspec.DecodeError):
        return None
    return attempt if now < attempt.expires_at else None

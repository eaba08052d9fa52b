"""OAuth as clients see it: addresses, scopes, and the refusal of a request.

The issuer has a path of its own, so that the metadata of the resource and of the authorization
server are found by path alone (RFC 8414 and RFC 9728): whoever looks for it at the root of the host
finds nothing, and goes on with the header that was configured.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    EXEMPTION_REQUEST,
    SOURCE_READ,
)
from factbook.errors import InputError

RESOURCE_PATH: Final = "/mcp"
ISSUER_PATH: Final = "/oauth"
RESOURCE_METADATA_PATH: Final = f"/.well-known/oauth-protected-resource{RESOURCE_PATH}"
SERVER_METADATA_PATH: Final = f"/.well-known/oauth-authorization-server{ISSUER_PATH}"
AUTHORIZE_PATH: Final = f"{ISSUER_PATH}/authorize"
TOKEN_PATH: Final = f"{ISSUER_PATH}/token"
REVOKE_PATH: Final = f"{ISSUER_PATH}/revoke"
REGISTER_PATH: Final = f"{ISSUER_PATH}/register"


def build_issuer(server: str) -> str:
    """Issuer of the authorization server at this address of the service."""
    return f"{server}{ISSUER_PATH}"


def build_resource(server: str) -> str:
    """Identifier of the protected resource, the audience of access tokens."""
    return f"{server}{RESOURCE_PATH}"


def names_resource(text: str, server: str) -> bool:
    """True if a `resource` parameter names the protected resource (RFC 8707).

    With a query too: clients repeat the address that they were given, which may choose tools.
    """
    if "#" in text or not text.isprintable():
        return False
    try:
        return _normalize_uri(text) == _normalize_uri(build_resource(server))
    except ValueError:
        return False


def _normalize_uri(uri: str) -> tuple[str, str, str]:
    """The address without its query, where equivalent ones are equal (RFC 3986, section 6.2).

    URL classes of some hosts add a slash, change the case of the host, or drop or add its port.
    """
    parts = urlsplit(uri)
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    host = parts.netloc.lower().removesuffix(port)
    return parts.scheme, host, parts.path.removesuffix("/")


# What the tools need that only read; asked for where a client names none.
BASIC_SCOPES: Final = (CATALOG_READ, SOURCE_READ)
# What any tool needs, in the words of the page that asks for consent. Tokens of OAuth are good for
# tools alone, so nothing else is given.
SCOPE_WORDS: Final[Mapping[str, str]] = {
    CATALOG_READ: "Read every entity of the catalog",
    SOURCE_READ: "Read the facts and checks of each of them, and their history",
    CHECK_READ: "Read checks and scorecards with their results",
    CHECK_WRITE: "Define, change and publish checks",
    EXEMPTION_REQUEST: "Ask for exemptions from checks, in your name",
}
SCOPES: Final = tuple(SCOPE_WORDS)
LONGEST_SCOPE: Final = 1_000


def list_asked_permissions(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter asks for; the basic ones where it names none.

    Unknown names are ignored (RFC 6749, section 3.3): hosts send their own, such as `claudeai` or
    `offline_access`.
    """
    return list_named_permissions(text) or frozenset(BASIC_SCOPES)


def list_named_permissions(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter names."""
    return frozenset(text.split()).intersection(SCOPES)


def format_scope(permissions: frozenset[str]) -> str:
    """Permissions as the value of a `scope` parameter."""
    return " ".join(sorted(permissions))


INVALID_REQUEST: Final = "invalid_request"


class OAuthError(InputError):
    """The request of a client is not one of OAuth."""

    name = "OAuthError"

    def __init__(self, message: str | None = None, *, code: str = INVALID_REQUEST) -> None:
        self.code = code
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Header that keeps the answer out of caches (RFC 6749, section 5.1)."""
        return {"cache-control": "no-store"}

"""OAuth as clients see it: URLs, scopes, and errors.

The issuer has its own path, so clients find the metadata of the resource and the authorization
server only below that path (RFC 8414 and RFC 9728). Clients that look at the host's root find
nothing and continue with their configured header.
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
    """Build the issuer URL of the authorization server at this service address."""
    return f"{server}{ISSUER_PATH}"


def build_resource(server: str) -> str:
    """Build the identifier of the protected resource, which is the audience of access tokens."""
    return f"{server}{RESOURCE_PATH}"


def names_resource(text: str, server: str) -> bool:
    """True if a `resource` parameter names the protected resource (RFC 8707).

    A query is allowed: clients repeat their configured URL, whose query may choose toolsets.
    """
    if "#" in text or not text.isprintable():
        return False
    try:
        return _normalize_uri(text) == _normalize_uri(build_resource(server))
    except ValueError:
        return False


def _normalize_uri(uri: str) -> tuple[str, str, str]:
    """Normalize a URL for comparison, without its query (RFC 3986, section 6.2).

    URL classes in some hosts add a slash, change the host's case, or add or drop the port.
    """
    parts = urlsplit(uri)
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    host = parts.netloc.lower().removesuffix(port)
    return parts.scheme, host, parts.path.removesuffix("/")


# Scopes for read-only tools, the default if a client names none.
BASIC_SCOPES: Final = (CATALOG_READ, SOURCE_READ)
# Every scope that any tool needs, in the words of the consent page. OAuth tokens only work for
# tools, so no other permission is granted.
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
    """Permissions that a `scope` parameter requests; the basic ones if it names none.

    Unknown names are ignored (RFC 6749, section 3.3): hosts send their own, such as `claudeai` or
    `offline_access`.
    """
    return list_named_permissions(text) or frozenset(BASIC_SCOPES)


def list_named_permissions(text: str) -> frozenset[str]:
    """Permissions that a `scope` parameter names."""
    return frozenset(text.split()).intersection(SCOPES)


def format_scope(permissions: frozenset[str]) -> str:
    """Format permissions as the value of a `scope` parameter."""
    return " ".join(sorted(permissions))


INVALID_REQUEST: Final = "invalid_request"


class OAuthError(InputError):
    """The client's request is not a valid OAuth request."""

    name = "OAuthError"

    def __init__(self, message: str | None = None, *, code: str = INVALID_REQUEST) -> None:
        self.code = code
        super().__init__(message)

    def headers(self) -> dict[str, str]:
        """Header that keeps the answer out of caches (RFC 6749, section 5.1)."""
        return {"cache-control": "no-store"}

"""Addresses of OAuth: the resource that tokens are for, and the authorization server.

The issuer has a path of its own, so that the metadata of both is found by path alone (RFC 8414 and
RFC 9728): whoever looks for it at the root of the host finds nothing, and goes on with the header
that was configured.
"""

from typing import Final
from urllib.parse import urlsplit

RESOURCE: Final = "/mcp"
ISSUER: Final = "/oauth"
RESOURCE_METADATA: Final = f"/.well-known/oauth-protected-resource{RESOURCE}"
SERVER_METADATA: Final = f"/.well-known/oauth-authorization-server{ISSUER}"
AUTHORIZE: Final = f"{ISSUER}/authorize"
TOKEN: Final = f"{ISSUER}/token"
REVOKE: Final = f"{ISSUER}/revoke"
REGISTER: Final = f"{ISSUER}/register"


def issuer(server: str) -> str:
    """Issuer of the authorization server at this address of the service."""
    return f"{server}{ISSUER}"


def resource(server: str) -> str:
    """Identifier of the protected resource, the audience of access tokens."""
    return f"{server}{RESOURCE}"


def is_resource(text: str, server: str) -> bool:
    """True if a `resource` parameter names the protected resource (RFC 8707).

    With a query too: clients repeat the address that they were given, which may choose tools.
    """
    if "#" in text or not text.isprintable():
        return False
    try:
        return _normalized(text) == _normalized(resource(server))
    except ValueError:
        return False


def _normalized(uri: str) -> tuple[str, str, str]:
    """The address without its query, where equivalent ones are equal (RFC 3986, section 6.2).

    URL classes of some hosts add a slash, change the case of the host, or drop or add its port.
    """
    parts = urlsplit(uri)
    port = {"http": ":80", "https": ":443"}.get(parts.scheme, "")
    host = parts.netloc.lower().removesuffix(port)
    return parts.scheme, host, parts.path.removesuffix("/")

"""A client's request for consent: everything about it is checked before a person sees it."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from factbook.auth.oauth import addresses, redirects, scopes
from factbook.auth.oauth.clients import OAuthClient
from factbook.auth.oauth.refusal import OAuthError

PARAMETERS: Final = (
    *("response_type", "client_id", "redirect_uri", "scope", "state", "resource"),
    *("code_challenge", "code_challenge_method", "response_mode"),
)
# Browsers drop cookies above 4 KB, and one of them keeps the request while somebody signs in.
LONGEST: Final = 2_800
# The hash of S256 (RFC 7636, section 4.2).
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")


class AuthorizationRequest(NamedTuple):
    """A request that a person can be asked about."""

    client: OAuthClient
    redirect_uri: str
    permissions: frozenset[str]
    state: str
    challenge: str
    resource: str


def once(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Parameters by name. Raises OAuthError for one that is there twice (RFC 6749, section 3.1)."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found and name in PARAMETERS:
            raise OAuthError(f"{name} may be given only once.")
        found[name] = value
    return found


def answer_address(client: OAuthClient, given: Mapping[str, str]) -> str:
    """Address for the answer. Raises OAuthError unless the client has named it."""
    uri = given.get("redirect_uri", "")
    if not redirects.is_acceptable(uri) or not client.may_be_answered_at(uri):
        raise OAuthError("The address for the answer is not one that the client has named.")
    return uri


def checked(
    client: OAuthClient, redirect_uri: str, given: Mapping[str, str], server: str
) -> AuthorizationRequest:
    """The request with these parameters; `server` is the address of this service.

    Raises OAuthError with the code that its client understands.
    """
    if given.get("response_type") != "code":
        raise OAuthError("response_type has to be code.", code="unsupported_response_type")
    if given.get("response_mode", "query") != "query":
        raise OAuthError("response_mode has to be query.")
    if given.get("code_challenge_method") != "S256":
        raise OAuthError("code_challenge_method has to be S256.")
    challenge = given.get("code_challenge", "")
    if not _CHALLENGE.fullmatch(challenge):
        raise OAuthError("code_challenge has to be the hash of S256.")
    if not addresses.is_resource(given.get("resource", addresses.resource(server)), server):
        raise OAuthError(f"resource has to be {addresses.resource(server)}.", code="invalid_target")
    if len(scope := given.get("scope", "")) > scopes.LONGEST:
        raise OAuthError("scope is too long.", code="invalid_scope")
    resource = addresses.resource(server)
    state = given.get("state", "")
    return AuthorizationRequest(
        client, redirect_uri, scopes.asked(scope), state, challenge, resource
    )

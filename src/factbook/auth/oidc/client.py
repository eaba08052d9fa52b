"""OpenID Connect client: the authorization code flow with PKCE.

Heavy to import: only for a service with a provider. The modules that a page needs, `attempt`,
`identity` and `options`, are light.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

import msgspec

from factbook.auth.oidc import token as id_token
from factbook.auth.oidc.attempt import LIFETIME, Attempt
from factbook.auth.oidc.identity import Identity, identity_of
from factbook.auth.oidc.options import ProviderOptions, configured
from factbook.auth.oidc.provider import (
    HEADERS,
    DiscoveryDocument,
    Fetch,
    GuardedFetch,
    Provider,
    decoded,
)
from factbook.auth.oidc.token import Expected, NoKeyError, Signed
from factbook.clock import Clock, now
from factbook.errors import SignInError
from factbook.outbound import HostReply
from factbook.settings import Settings

_FORM: Final = {**HEADERS, "content-type": "application/x-www-form-urlencoded"}
# The codes of RFC 6749 and OpenID Connect Core 1.0; no other text of an answer is repeated.
_CODES: Final = frozenset(
    {
        *("access_denied", "invalid_client", "invalid_grant", "invalid_request", "invalid_scope"),
        *("server_error", "temporarily_unavailable", "unauthorized_client"),
        *("unsupported_grant_type", "unsupported_response_type", "interaction_required"),
        *("login_required", "account_selection_required", "consent_required"),
    }
)


class _TokenResponse(msgspec.Struct):
    """The members of a token response that are used (as above, section 3.1.3.3)."""

    id_token: str
    access_token: str
    token_type: str


class _Failure(msgspec.Struct):
    error: str = ""


class OpenID:
    """Signs people in at the provider of the options.

    Every failure becomes a SignInError whose sentence can be shown to anybody: it repeats nothing
    secret and nothing that the provider or the browser sent.
    """

    def __init__(
        self,
        options: ProviderOptions,
        fetch: Fetch,
        clock: Clock = now,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.options = options
        self._fetch = fetch
        self._clock = clock
        self._close = close
        self._provider = Provider(options.issuer, fetch, clock)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._close is not None:
            await self._close()

    async def begin(self, redirect_uri: str) -> tuple[str, Attempt]:
        """Address to send the browser to, and the attempt to check its return against."""
        document = await self._provider.document()
        state, nonce, code_verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = Attempt(state, nonce, code_verifier, self._clock() + LIFETIME)
        return _authorization_url(document, self.options, attempt, redirect_uri), attempt

    async def finish(
        self, attempt: Attempt, query: Mapping[str, str], redirect_uri: str
    ) -> Identity:
        """Identity of the person, from the query with which the browser came back.

        `redirect_uri` has to be the one of the beginning.
        """
        state = query.get("state", "").encode("utf-8", "replace")
        if not hmac.compare_digest(state, attempt.state.encode()):
            raise SignInError("This sign-in was not started in this browser. Start it again.")
        document = await self._provider.document()
        code = _code(query, document)
        tokens = await self._tokens(document, attempt, redirect_uri, code)
        token = await self._signed(tokens.id_token, document)
        expected = Expected(
            self.options.issuer,
            self.options.client_id,
            attempt.nonce,
            tokens.access_token,
            self._clock(),
        )
        id_token.check(token, expected)
        more = await self._user_info(document, tokens.access_token, token.claims)
        return identity_of({**more, **token.claims}, self.options)

    async def _tokens(
        self, document: DiscoveryDocument, attempt: Attempt, redirect_uri: str, code: str
    ) -> _TokenResponse:
        headers, body = _token_request(document, self.options, attempt, redirect_uri, code)
        reply = await self._fetch("POST", document.token_endpoint, headers, body)
        if reply.status in {400, 401, 403}:
            raise SignInError(f"The provider did not take the code{_told(_error_in(reply))}.")
        tokens = decoded(reply, "answer to the code", _TokenResponse)
        if tokens.token_type.lower() != "bearer":
            raise SignInError("The provider's answer to the code has a token of the wrong type.")
        return tokens

    async def _signed(self, token: str, document: DiscoveryDocument) -> Signed:
        """Verified claims of the token; fetches the keys again if no known one has signed it."""
        supported = document.id_token_signing_alg_values_supported
        try:
            return id_token.signed(token, await self._provider.keys(), supported)
        except NoKeyError:
            keys = await self._provider.renewed_keys()
        try:
            return id_token.signed(token, keys or [], supported)
        except NoKeyError:
            raise SignInError("The provider's ID token is not signed by any of its keys.") from None

    async def _user_info(
        self, document: DiscoveryDocument, access_token: str, claims: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Further claims, when used ones are missing (as above, section 5.3)."""
        used = {self.options.name_claim, "name", "email"}
        if self.options.administrator_groups:
            used.add(self.options.groups_claim)
        url = document.userinfo_endpoint
        if url is None or used <= claims.keys():
            return {}
        headers = {**HEADERS, "authorization": f"Bearer {access_token}"}
        reply = await self._fetch("GET", url, headers)
        found = decoded(reply, "user information", dict[str, Any])
        if found.get("sub") != claims["sub"]:
            raise SignInError("The provider's user information is about someone else.")
        return found


def connected(settings: Settings, clock: Clock = now) -> OpenID | None:
    """Client for the provider of the settings; None when there is none.

    Raises ConfigurationError for settings that cannot be used.
    """
    options = configured(settings.openid)
    if options is None:
        return None
    fetch = GuardedFetch(settings)
    return OpenID(options, fetch, clock, fetch.aclose)


def _authorization_url(
    document: DiscoveryDocument, options: ProviderOptions, attempt: Attempt, redirect_uri: str
) -> str:
    """Address for the browser to sign in at (OpenID Connect Core 1.0, 3.1.2.1; RFC 7636)."""
    challenge = hashlib.sha256(attempt.code_verifier.encode("ascii")).digest()
    address = urlsplit(document.authorization_endpoint)
    parameters = [
        *parse_qsl(address.query, keep_blank_values=True),
        ("response_type", "code"),
        ("client_id", options.client_id),
        ("redirect_uri", redirect_uri),
        ("scope", options.scopes),
        ("state", attempt.state),
        ("nonce", attempt.nonce),
        ("code_challenge", base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()),
        ("code_challenge_method", "S256"),
    ]
    return address._replace(query=urlencode(parameters)).geturl()


def _token_request(
    document: DiscoveryDocument,
    options: ProviderOptions,
    attempt: Attempt,
    redirect_uri: str,
    code: str,
) -> tuple[dict[str, str], bytes]:
    """Headers and body that exchange a code for tokens (as above, 3.1.3.1).

    Raises SignInError when the provider supports no known method of client authentication.
    """
    headers, more = _credential(document, options)
    form = {
        "grant_type": "authorization_code",
        "redirect_uri": redirect_uri,
        "code": code,
        "code_verifier": attempt.code_verifier,
        **more,
    }
    return {**_FORM, **headers}, urlencode(form).encode()


def _credential(
    document: DiscoveryDocument, options: ProviderOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """Client authentication, as headers and as form parameters (RFC 6749, 2.3.1)."""
    if not options.client_secret:
        return {}, {"client_id": options.client_id}
    ways = document.token_endpoint_auth_methods_supported
    if "client_secret_basic" in ways:
        # Both are encoded as in a form first (RFC 6749, 2.3.1).
        pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}
    if "client_secret_post" in ways:
        return {}, {"client_id": options.client_id, "client_secret": options.client_secret}
    raise SignInError("The provider supports no known way to send the client's secret.")


def _code(query: Mapping[str, str], document: DiscoveryDocument) -> str:
    """Code in an answer from the provider itself (RFC 9207)."""
    sent = document.authorization_response_iss_parameter_supported
    if (sent or "iss" in query) and query.get("iss") != document.issuer:
        raise SignInError("The answer comes from another provider.")
    if "error" in query:
        raise SignInError(f"The provider did not sign you in{_told(query['error'])}.")
    if not query.get("code"):
        raise SignInError("The provider's answer has no code.")
    return query["code"]


def _error_in(reply: HostReply) -> str:
    try:
        return msgspec.json.decode(reply.body, type=_Failure).error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""


def _told(code: str) -> str:
    return f": {code}" if code in _CODES else ""

"""OpenID Connect client: the authorization code flow with PKCE, and checks of the ID token.

An ID token must be signed, and bound to this service and this sign-in. Slow to import: only for
services with a provider. Pages import only `identity`, which is light.
"""

import base64
import hashlib
import hmac
import secrets
import warnings
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Annotated, Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl, quote_plus, urlencode, urlsplit

import msgspec
from joserfc import jws
from joserfc.errors import (
    BadSignatureError,
    InvalidClaimError,
    JoseError,
    MissingClaimError,
    SecurityWarning,
    UnsupportedAlgorithmError,
)
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import CompactSignature, JWSRegistry
from joserfc.jwt import JWTClaimsRegistry
from msgspec import Meta

from factbook.auth.oidc.identity import (
    ATTEMPT_LIFETIME,
    Attempt,
    Identity,
    ProviderOptions,
    make_identity,
    make_openid_options,
)
from factbook.auth.oidc.provider import (
    HEADERS,
    DiscoveryDocument,
    Fetch,
    GuardedFetch,
    Keys,
    Provider,
    decode_provider_reply,
)
from factbook.clock import SECOND, Clock, now
from factbook.errors import SignInError, in_words
from factbook.settings import Settings

# Excludes algorithms with a shared secret, and `none`.
ALGORITHMS: Final = frozenset(
    {
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
    }
)
LEEWAY_SECONDS: Final = 60


class NoKeyError(Exception):
    """No known key matches the token; fetching the keys again may help."""


class Signed(NamedTuple):
    """A token with a valid signature: its algorithm and its claims."""

    algorithm: str
    claims: dict[str, Any]


class Expected(NamedTuple):
    """Expected claims; `now` in milliseconds since the epoch."""

    issuer: str
    client_id: str
    nonce: str
    access_token: str
    now: int


class _IdTokenClaims(msgspec.Struct):
    """Types of the checked claims (OpenID Connect Core 1.0, section 2)."""

    iss: str
    sub: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z")]
    aud: str | list[str]
    exp: float
    iat: float
    nonce: str
    azp: str | None = None
    at_hash: str | None = None


def verify_signature(token: str, keys: Keys, supported: Collection[str]) -> Signed:
    """Verify a token's signature by one of the keys, with a supported algorithm.

    Raises NoKeyError if fetching the keys again may help, SignInError otherwise.
    """
    allowed = ALGORITHMS & set(supported)
    # The library treats an empty list as any algorithm.
    registry = JWSRegistry(algorithms=allowed or {"-"}, strict_check_header=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # EdDSA was renamed
            found = jws.deserialize_compact(
                token, lambda each: _find_key(each, keys), registry=registry
            )
            claims = msgspec.json.decode(found.payload, type=dict[str, Any])
    except BadSignatureError:
        raise NoKeyError from None
    except UnsupportedAlgorithmError:
        raise SignInError(
            _explain_refusal("it is not signed in a way that is announced and safe")
        ) from None
    except (JoseError, msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        raise SignInError(_explain_refusal("it is not one")) from None
    return Signed(found.headers()["alg"], claims)


def check_id_token(token: Signed, expected: Expected) -> None:
    """Raise SignInError unless the claims match (as above, section 3.1.3.7)."""
    try:
        msgspec.convert(token.claims, _IdTokenClaims)
        # The type says whole seconds, but the library compares fractions too.
        now = cast("int", expected.now / SECOND)
        JWTClaimsRegistry(
            now,
            LEEWAY_SECONDS,
            iss={"essential": True, "value": expected.issuer},
            aud={"essential": True, "value": expected.client_id},
        ).validate(token.claims)
        _check_sign_in(token, expected)
    except msgspec.ValidationError as error:
        raise SignInError(_explain_refusal(in_words(error))) from None
    except JoseError as error:
        raise SignInError(_explain_refusal(error.description or error.error)) from None


def _find_key(token: CompactSignature, keys: Keys) -> Key:
    """Find the only key that fits the token's header. Raises NoKeyError."""
    header = token.headers()
    algorithm = JWSRegistry.algorithms[header["alg"]]
    fitting = []
    for each in keys:
        if "kid" in header and header["kid"] != each.get("kid"):
            continue
        try:
            key = JWKRegistry.import_key(each)
            algorithm.check_key(key)
        except (JoseError, ValueError, TypeError, LookupError):
            continue  # the key is of another or an unknown type
        fitting.append(key)
    if len(fitting) != 1:
        raise NoKeyError
    return fitting[0]


def _check_sign_in(token: Signed, expected: Expected) -> None:
    """Raise JoseError unless the token belongs to this sign-in, client and access token."""
    claims = token.claims
    if (time := claims.get("auth_time")) and not isinstance(time, int | float):
        raise InvalidClaimError("auth_time")
    if claims["nonce"] != expected.nonce:
        raise InvalidClaimError("nonce")
    if (methods := claims.get("amr")) and not isinstance(methods, list):
        raise InvalidClaimError("amr")
    party = claims.get("azp")
    if not party and claims["aud"] not in (expected.client_id, [expected.client_id]):
        raise MissingClaimError("azp")
    if party and party != expected.client_id:
        raise InvalidClaimError("azp")
    if (half := claims.get("at_hash")) and expected.access_token:
        # Left half of the token's hash, by the signature's hash algorithm (as above, 3.1.3.6).
        is_edwards = token.algorithm in {"EdDSA", "Ed25519"}
        name = "sha512" if is_edwards else f"sha{token.algorithm[2:]}"
        digest = hashlib.new(name, expected.access_token.encode()).digest()
        expected_half = base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=")
        if not hmac.compare_digest(expected_half, half.encode()):
            raise InvalidClaimError("at_hash")


def _explain_refusal(why: str) -> str:
    return f"The provider's ID token was refused: {why.rstrip('.')}."


_FORM: Final = {**HEADERS, "content-type": "application/x-www-form-urlencoded"}
# Error codes of RFC 6749 and OpenID Connect Core 1.0; other text in an answer is never repeated.
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
    """Signs people in at the configured provider.

    Every failure becomes a SignInError with a message that is safe to show: it contains no secrets
    and quotes nothing from the provider or the browser.
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
        """Return the URL for the browser, and the attempt to verify when it comes back."""
        document = await self._provider.document()
        state, nonce, code_verifier = (secrets.token_urlsafe(32) for _ in range(3))
        attempt = Attempt(state, nonce, code_verifier, self._clock() + ATTEMPT_LIFETIME)
        return _build_authorization_url(document, self.options, attempt, redirect_uri), attempt

    async def finish(
        self, attempt: Attempt, query: Mapping[str, str], redirect_uri: str
    ) -> Identity:
        """Return the person's identity, from the query that the browser came back with.

        `redirect_uri` has to be the same as in `begin`.
        """
        state = query.get("state", "").encode("utf-8", "replace")
        if not hmac.compare_digest(state, attempt.state.encode()):
            raise SignInError("This sign-in was not started in this browser. Start it again.")
        document = await self._provider.document()
        code = _read_code(query, document)
        tokens = await self._tokens(document, attempt, redirect_uri, code)
        token = await self._signed(tokens.id_token, document)
        expected = Expected(
            self.options.issuer,
            self.options.client_id,
            attempt.nonce,
            tokens.access_token,
            self._clock(),
        )
        check_id_token(token, expected)
        more = await self._user_info(document, tokens.access_token, token.claims)
        return make_identity({**more, **token.claims}, self.options)

    async def _tokens(
        self, document: DiscoveryDocument, attempt: Attempt, redirect_uri: str, code: str
    ) -> _TokenResponse:
        headers, body = _build_token_request(document, self.options, attempt, redirect_uri, code)
        reply = await self._fetch("POST", document.token_endpoint, headers, body)
        if reply.status in {400, 401, 403}:
            try:
                error_code = msgspec.json.decode(reply.body, type=_Failure).error
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                error_code = ""
            raise SignInError(f"The provider did not take the code{_quote_code(error_code)}.")
        tokens = decode_provider_reply(reply, "answer to the code", _TokenResponse)
        if tokens.token_type.lower() != "bearer":
            raise SignInError("The provider's answer to the code has a token of the wrong type.")
        return tokens

    async def _signed(self, token: str, document: DiscoveryDocument) -> Signed:
        """Verify the token and return its claims; fetches the keys again if no known key fits."""
        supported = document.id_token_signing_alg_values_supported
        try:
            return verify_signature(token, await self._provider.keys(), supported)
        except NoKeyError:
            keys = await self._provider.renewed_keys()
        try:
            return verify_signature(token, keys or [], supported)
        except NoKeyError:
            raise SignInError("The provider's ID token is not signed by any of its keys.") from None

    async def _user_info(
        self, document: DiscoveryDocument, access_token: str, claims: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Fetch user info if needed claims are missing (as above, section 5.3)."""
        used = {self.options.name_claim, "name", "email"}
        if self.options.administrator_groups:
            used.add(self.options.groups_claim)
        url = document.userinfo_endpoint
        if url is None or used <= claims.keys():
            return {}
        headers = {**HEADERS, "authorization": f"Bearer {access_token}"}
        reply = await self._fetch("GET", url, headers)
        found = decode_provider_reply(reply, "user information", dict[str, Any])
        if found.get("sub") != claims["sub"]:
            raise SignInError("The provider's user information is about someone else.")
        return found


def connect_openid(settings: Settings, clock: Clock = now) -> OpenID | None:
    """Connect to the configured provider; None without one.

    Raises ConfigurationError for invalid settings.
    """
    options = make_openid_options(settings.openid)
    if options is None:
        return None
    fetch = GuardedFetch(settings)
    return OpenID(options, fetch, clock, fetch.aclose)


def _build_authorization_url(
    document: DiscoveryDocument, options: ProviderOptions, attempt: Attempt, redirect_uri: str
) -> str:
    """Build the sign-in URL for the browser (OpenID Connect Core 1.0, 3.1.2.1; RFC 7636)."""
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


def _build_token_request(
    document: DiscoveryDocument,
    options: ProviderOptions,
    attempt: Attempt,
    redirect_uri: str,
    code: str,
) -> tuple[dict[str, str], bytes]:
    """Build headers and body to exchange a code for tokens (as above, 3.1.3.1).

    Raises SignInError if the provider supports no known client authentication method.
    """
    headers, more = _choose_client_credential(document, options)
    form = {
        "grant_type": "authorization_code",
        "redirect_uri": redirect_uri,
        "code": code,
        "code_verifier": attempt.code_verifier,
        **more,
    }
    return {**_FORM, **headers}, urlencode(form).encode()


def _choose_client_credential(
    document: DiscoveryDocument, options: ProviderOptions
) -> tuple[dict[str, str], dict[str, str]]:
    """Client authentication, as headers and as form parameters (RFC 6749, 2.3.1)."""
    if not options.client_secret:
        return {}, {"client_id": options.client_id}
    ways = document.token_endpoint_auth_methods_supported
    if "client_secret_basic" in ways:
        # Both are form-encoded first (RFC 6749, 2.3.1).
        pair = f"{quote_plus(options.client_id)}:{quote_plus(options.client_secret)}"
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}, {}
    if "client_secret_post" in ways:
        return {}, {"client_id": options.client_id, "client_secret": options.client_secret}
    raise SignInError("The provider supports no known way to send the client's secret.")


def _read_code(query: Mapping[str, str], document: DiscoveryDocument) -> str:
    """Read the code, after checking that the answer is from this provider (RFC 9207)."""
    sent = document.authorization_response_iss_parameter_supported
    if (sent or "iss" in query) and query.get("iss") != document.issuer:
        raise SignInError("The answer comes from another provider.")
    if "error" in query:
        raise SignInError(f"The provider did not sign you in{_quote_code(query['error'])}.")
    if not query.get("code"):
        raise SignInError("The provider's answer has no code.")
    return query["code"]


def _quote_code(code: str) -> str:
    return f": {code}" if code in _CODES else ""

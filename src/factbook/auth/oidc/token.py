"""The ID token: its signature, and its binding to this service and this sign-in."""

import base64
import hashlib
import hmac
import warnings
from collections.abc import Collection
from typing import Annotated, Any, Final, NamedTuple, cast

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

from factbook.auth.oidc.provider import Keys
from factbook.clock import SECOND
from factbook.errors import SignInError, in_words

# None with a shared secret, and not `none`.
ALGORITHMS: Final = frozenset(
    {
        *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
        *("ES256", "ES384", "ES512", "EdDSA", "Ed25519"),
    }
)
LEEWAY_SECONDS: Final = 60


class NoKeyError(Exception):
    """None of the keys has signed the token, as far as can be told."""


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


class _Form(msgspec.Struct):
    """Types of the checked claims (OpenID Connect Core 1.0, section 2)."""

    iss: str
    sub: Annotated[str, Meta(pattern=r"^[^\x00-\x1f\x7f]{1,255}\Z")]
    aud: str | list[str]
    exp: float
    iat: float
    nonce: str
    azp: str | None = None
    at_hash: str | None = None


def signed(token: str, keys: Keys, supported: Collection[str]) -> Signed:
    """Claims of a token that one of the keys has signed, with a supported algorithm.

    Raises NoKeyError when other keys may help, SignInError otherwise.
    """
    allowed = ALGORITHMS & set(supported)
    # An empty list would stand for any algorithm.
    registry = JWSRegistry(algorithms=allowed or {"-"}, strict_check_header=False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SecurityWarning)  # EdDSA has got another name
            found = jws.deserialize_compact(token, lambda each: _key(each, keys), registry=registry)
            claims = msgspec.json.decode(found.payload, type=dict[str, Any])
    except BadSignatureError:
        raise NoKeyError from None
    except UnsupportedAlgorithmError:
        raise SignInError(
            _refused("it is not signed in a way that is announced and safe")
        ) from None
    except (JoseError, msgspec.DecodeError, ValueError, TypeError, AttributeError, RecursionError):
        raise SignInError(_refused("it is not one")) from None
    return Signed(found.headers()["alg"], claims)


def check(token: Signed, expected: Expected) -> None:
    """Raise SignInError unless the claims match (as above, section 3.1.3.7)."""
    try:
        msgspec.convert(token.claims, _Form)
        # Its type is that of whole seconds; it compares parts of them as well.
        now = cast("int", expected.now / SECOND)
        JWTClaimsRegistry(
            now,
            LEEWAY_SECONDS,
            iss={"essential": True, "value": expected.issuer},
            aud={"essential": True, "value": expected.client_id},
        ).validate(token.claims)
        _check_sign_in(token, expected)
    except msgspec.ValidationError as error:
        raise SignInError(_refused(in_words(error))) from None
    except JoseError as error:
        raise SignInError(_refused(error.description or error.error)) from None


def _key(token: CompactSignature, keys: Keys) -> Key:
    """The only key that the token's header can mean. Raises NoKeyError."""
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
            continue  # it is of another kind, or one that is not known here
        fitting.append(key)
    if len(fitting) != 1:
        raise NoKeyError
    return fitting[0]


def _check_sign_in(token: Signed, expected: Expected) -> None:
    """Raise JoseError unless the token is of this sign-in, this client and its access token."""
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
        expected_half = _half_hash(expected.access_token, token.algorithm)
        if not hmac.compare_digest(expected_half, half.encode()):
            raise InvalidClaimError("at_hash")


def _half_hash(text: str, algorithm: str) -> bytes:
    """The left half of the text's hash, by the hash of the signature (as above, 3.1.3.6)."""
    name = "sha512" if algorithm in {"EdDSA", "Ed25519"} else f"sha{algorithm[2:]}"
    digest = hashlib.new(name, text.encode()).digest()
    return base64.urlsafe_b64encode(digest[: len(digest) // 2]).rstrip(b"=")


def _refused(why: str) -> str:
    return f"The provider's ID token was refused: {why.rstrip('.')}."

"""The ID token: its signature, and its binding to this service and this sign-in."""

import warnings
from collections.abc import Collection
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from authlib.oidc.core import CodeIDToken
from joserfc import jws
from joserfc.errors import BadSignatureError, JoseError, SecurityWarning, UnsupportedAlgorithmError
from joserfc.jwk import JWKRegistry, Key
from joserfc.jws import CompactSignature, JWSRegistry
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
        CodeIDToken(
            token.claims,
            {"alg": _with_hash(token.algorithm)},
            {
                "iss": {"essential": True, "value": expected.issuer},
                "aud": {"essential": True, "value": expected.client_id},
            },
            {
                "nonce": expected.nonce,
                "client_id": expected.client_id,
                "access_token": expected.access_token,
            },
        ).validate(now=expected.now / SECOND, leeway=LEEWAY_SECONDS)
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


def _with_hash(algorithm: str) -> str:
    """Algorithm by a name that includes its hash."""
    return "EdDSA" if algorithm == "Ed25519" else algorithm


def _refused(why: str) -> str:
    return f"The provider's ID token was refused: {why.rstrip('.')}."

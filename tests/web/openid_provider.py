"""An OpenID Connect provider as an ASGI application, in which every field can be bent."""

import base64
import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlsplit

import httpx2
import pytest
from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from factbook.auth.oidc.client import OpenID
from factbook.auth.oidc.identity import Identity, make_openid_options
from factbook.auth.oidc.provider import MOST_BYTES, MOST_SECONDS
from factbook.errors import SignInError
from factbook.outbound.network import Sender
from tests.service import Time

ISSUER = "https://id.example.com"
CLIENT, SECRET = "factbook", "a secret: with +, % and ü in it"
REDIRECT = "https://factbook.example.com/sign-in/openid/callback"
ACCESS_TOKEN = "an-access-token"
JANE = Identity(ISSUER, "subject-7", "jane", "Jane Doe", "jane@example.com", (), "jane")
DISCOVERY = "/.well-known/openid-configuration"

KEYS: dict[str, Callable[[], Key]] = {
    "RS": lambda: RSAKey.generate_key(2048, auto_kid=True),
    "PS": lambda: RSAKey.generate_key(2048, auto_kid=True),
    "ES256": lambda: ECKey.generate_key("P-256", auto_kid=True),
    "ES384": lambda: ECKey.generate_key("P-384", auto_kid=True),
    "ES512": lambda: ECKey.generate_key("P-521", auto_kid=True),
    "Ed": lambda: OKPKey.generate_key("Ed25519", auto_kid=True),
}


@cache
def key_for(algorithm: str, number: int = 0) -> Key:
    """A key for an algorithm, the same for the same number."""
    return next(make for start, make in KEYS.items() if algorithm.startswith(start))()


class OpenIDProvider:
    """Signs in whoever comes.

    `document`, `header`, `claims`, `tokens` and `user_info` are put over what is right; None takes
    a member away. `faults` has the answers of paths that go wrong. `forge` makes the ID token from
    its header and claims, instead of signing it with the first key.
    """

    def __init__(self, issuer: str = ISSUER) -> None:
        self.issuer = issuer
        self.secret: str | None = SECRET
        self.algorithm = "ES256"
        self.keys = [key_for("ES256")]
        self.published: list[dict[str, Any]] | None = None
        self.document: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.claims: dict[str, Any] = {}
        self.tokens: dict[str, Any] = {}
        self.user_info: dict[str, Any] = {}
        self.faults: dict[str, Response] = {}
        self.forge: Callable[[dict[str, Any], dict[str, Any]], str] | None = None
        self.asked: Counter[str] = Counter()
        self.time = Time()
        self._codes: dict[str, dict[str, str]] = {}

    def signed_in(self, url: str) -> dict[str, str]:
        """The query that a browser comes back with, sent here to sign in."""
        given = dict(parse_qsl(urlsplit(url).query))
        assert given["response_type"] == "code"
        assert given["client_id"] == CLIENT
        assert given["code_challenge_method"] == "S256"
        code = f"code-{len(self._codes)}"
        self._codes[code] = given
        return {"code": code, "state": given["state"], "iss": self.issuer}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        path = request.url.path.removeprefix(urlsplit(self.issuer).path.rstrip("/"))
        self.asked[path] += 1
        answers = {DISCOVERY: self._discovery, "/keys": self._keys, "/me": self._user_info}
        if path in self.faults:
            response = self.faults[path]
        elif path == "/token":
            response = self._exchanged(request, dict(parse_qsl((await request.body()).decode())))
        elif path in answers:
            response = answers[path](request)
        else:
            response = Response(status_code=404)
        await response(scope, receive, send)

    def _discovery(self, request: Request) -> Response:
        base = self.issuer.rstrip("/")
        return _json(
            {
                "issuer": self.issuer,
                "authorization_endpoint": f"{base}/authorize?tenant=one",
                "token_endpoint": f"{base}/token",
                "jwks_uri": f"{base}/keys",
                "userinfo_endpoint": f"{base}/me",
                "id_token_signing_alg_values_supported": [self.algorithm],
                "authorization_response_iss_parameter_supported": True,
            },
            self.document,
        )

    def _keys(self, request: Request) -> Response:
        published = self.published
        if published is None:
            published = [dict(key.as_dict(private=False)) for key in self.keys]
        return JSONResponse({"keys": published})

    def _user_info(self, request: Request) -> Response:
        assert request.headers["authorization"] == f"Bearer {ACCESS_TOKEN}"
        info = {"sub": "subject-7", "name": "Jane Doe", "email": "jane@example.com"}
        return _json(info, self.user_info)

    def _exchanged(self, request: Request, form: dict[str, str]) -> Response:
        if not self._is_client(request, form):
            return JSONResponse({"error": "invalid_client"}, 401)
        given = self._codes.pop(form["code"], None)
        challenge = _hash(form["code_verifier"], hashlib.sha256)
        if (
            given is None
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != given["redirect_uri"]
            or challenge != given["code_challenge"]
        ):
            return JSONResponse({"error": "invalid_grant"}, 400)
        token = self._id_token(given["nonce"])
        tokens = {"token_type": "Bearer", "access_token": ACCESS_TOKEN, "id_token": token}
        return _json(tokens, self.tokens)

    def _is_client(self, request: Request, form: dict[str, str]) -> bool:
        if self.secret is None:
            return form.get("client_id") == CLIENT and "authorization" not in request.headers
        if "client_secret" in form:
            return (form.get("client_id"), form["client_secret"]) == (CLIENT, self.secret)
        scheme, _, value = request.headers.get("authorization", " ").partition(" ")
        name, _, secret = base64.b64decode(value).decode().partition(":")
        given = (unquote_plus(name), unquote_plus(secret))
        return scheme == "Basic" and given == (CLIENT, self.secret)

    def _id_token(self, nonce: str) -> str:
        seconds = self.time() // 1000
        header = {"alg": self.algorithm, "kid": self.keys[0].kid}
        claims = {
            "iss": self.issuer,
            "sub": "subject-7",
            "aud": CLIENT,
            "exp": seconds + 300,
            "iat": seconds,
            "nonce": nonce,
            "preferred_username": "jane",
        }
        header, claims = _bent(header, self.header), _bent(claims, self.claims)
        return self.forge(header, claims) if self.forge else signed(header, claims, self.keys[0])


def at(provider: OpenIDProvider, **options: Any) -> OpenID:
    """What signs in at the provider, by the real way of asking but for the network."""
    table = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, **options}
    found = make_openid_options(table)
    assert found is not None
    transport = httpx2.ASGITransport(provider)
    sender = Sender(transport, seconds=MOST_SECONDS, most_bytes=MOST_BYTES)
    return OpenID(found, sender.send, provider.time)


async def sign_in(
    provider: OpenIDProvider, openid: OpenID | None = None, **query: str | None
) -> Identity:
    """Who signs in, with the query of the answer bent."""
    openid = openid or at(provider)
    url, attempt = await openid.begin(REDIRECT)
    answer = {**provider.signed_in(url), **query}
    sent = {name: value for name, value in answer.items() if value is not None}
    return await openid.finish(attempt, sent, REDIRECT)


async def refusal(
    provider: OpenIDProvider, openid: OpenID | None = None, **query: str | None
) -> str:
    """The sentence with which a sign-in is refused."""
    with pytest.raises(SignInError) as raised:
        await sign_in(provider, openid, **query)
    told = raised.value
    assert told.status == 403
    assert told.__cause__ is None
    for secret in (SECRET, ACCESS_TOKEN, "eyJ", "code-0"):
        assert secret not in told.message
    return told.message


def signed(header: dict[str, Any], claims: dict[str, Any], key: Key) -> str:
    """A token as it should be made."""
    registry = JWSRegistry(algorithms=[header["alg"]], strict_check_header=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)  # EdDSA has got another name
        return jws.serialize_compact(header, json.dumps(claims), key, registry=registry)


def forged(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """A token as nobody should make it."""
    parts = [_base64(json.dumps(part).encode()) for part in (header, claims)]
    signature = sign(".".join(parts).encode())
    return ".".join([*parts, _base64(signature)])


def half_hash(text: str, algorithm: Callable[[bytes], Any]) -> str:
    """The left half of a hash, as `at_hash` has it."""
    digest: bytes = algorithm(text.encode()).digest()
    return _base64(digest[: len(digest) // 2])


def _hash(text: str, algorithm: Callable[[bytes], Any]) -> str:
    return _base64(algorithm(text.encode()).digest())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _json(right: dict[str, Any], bent: dict[str, Any]) -> Response:
    return JSONResponse(_bent(right, bent))


def _bent(right: dict[str, Any], bent: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**right, **bent}.items() if value is not None}

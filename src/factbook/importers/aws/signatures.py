"""Signature of a request to AWS, version 4, by the published description of it."""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit

from factbook.clock import SECOND

_ALGORITHM: Final = "AWS4-HMAC-SHA256"


class AwsKeys(NamedTuple):
    """Pair of keys that requests are signed with; temporary ones have a token."""

    id: str
    secret: str
    token: str = ""

    def __repr__(self) -> str:
        """Without the secrets."""
        return "AwsKeys(…)"


class Scope(NamedTuple):
    """Service and region that a signature is valid for."""

    service: str
    region: str


class AwsRequest(NamedTuple):
    """Request to sign; `query` is as `canonical_query` gives it."""

    method: str
    url: str
    query: str = ""
    headers: Mapping[str, str] = {}
    content: bytes = b""


def signed(request: AwsRequest, keys: AwsKeys, scope: Scope, now: int) -> dict[str, str]:
    """The headers of the request with those that sign it."""
    moment = datetime.fromtimestamp(now // SECOND, UTC).strftime("%Y%m%dT%H%M%SZ")
    given = {name.lower(): " ".join(value.split()) for name, value in request.headers.items()}
    headers = {**given, "x-amz-date": moment}
    if keys.token:
        headers["x-amz-security-token"] = keys.token
    place = f"{moment[:8]}/{scope.region}/{scope.service}/aws4_request"
    canonical, names = _canonical(request, {**headers, "host": urlsplit(request.url).netloc})
    text = "\n".join([_ALGORITHM, moment, place, _digest(canonical.encode())])
    signature = hmac.new(_key(keys, moment[:8], scope), text.encode(), hashlib.sha256).hexdigest()
    proof = f"Credential={keys.id}/{place}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": f"{_ALGORITHM} {proof}"}


def canonical_query(parameters: Mapping[str, str]) -> str:
    """The query of a URL in the only form that a signature is valid for."""
    pairs = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parameters.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def _canonical(request: AwsRequest, headers: Mapping[str, str]) -> tuple[str, str]:
    """The text that stands for a request, and the names of the headers in it."""
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    path = quote(urlsplit(request.url).path or "/", safe="/-_.~")
    body = _digest(request.content)
    return "\n".join([request.method, path, request.query, *lines, "", names, body]), names


def _key(keys: AwsKeys, day: str, scope: Scope) -> bytes:
    key = f"AWS4{keys.secret}".encode()
    for part in (day, scope.region, scope.service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()

"""One call of a client: its URL, the credential it is sent with, its options and its decoding.

A client may request URLs on the origin of its base URL, and no others.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypedDict
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

import msgspec

from factbook import json_parts
from factbook.clock import SECOND
from factbook.errors import ConfigurationError
from factbook.outbound.caches import Memory
from factbook.outbound.outcome_rules import REPEATABLE
from factbook.outbound.outcomes import EMPTY, Answer, HostReply, Outcome

_PORTS: Final = {"https": 443, "http": 80}
_ABSOLUTE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
# What parsers of addresses read differently; a fragment is never sent.
_UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f\\#]")


def path(*segments: str | int) -> str:
    """A path from its segments, each percent-encoded as a whole: `/repos/owner/name`.

    Raises ValueError for an empty segment, `.` and `..`, which would name another resource.
    """
    texts = [str(segment) for segment in segments]
    if {"", ".", ".."} & set(texts):
        raise ValueError("A path cannot have an empty segment, a dot or two dots.")
    return "".join(f"/{quote(text, safe='')}" for text in texts)


def host_of(base_url: str) -> str:
    """The host of a base URL. Raises ConfigurationError for anything else."""
    host = _origin(base_url)[1]
    if not host or "?" in base_url or _UNPRINTABLE.search(base_url):
        raise ConfigurationError(
            "A base URL has to be like https://host/path, without name, password and query."
        )
    return host


def address(base_url: str, target: str, query: Mapping[str, str | int]) -> str | None:
    """The full URL of a target: below the base URL, or as given if it is a URL on the same origin.

    None if it leads to another origin or contains `..`.
    """
    url = target if _ABSOLUTE.match(target) else f"{base_url}/{target.lstrip('/')}"
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    if _UNPRINTABLE.search(url) or _origin(url) != _origin(base_url):
        return None
    return None if climbs(unquote(urlsplit(url).path)) else url


def climbs(text: str) -> bool:
    """True if a path has a segment that some server may read as a step up.

    Some servers treat a backslash as a slash, and drop the part of a segment after a `;`.
    """
    segments = text.replace("\\", "/").split("/")
    return any(segment.partition(";")[0] in {".", ".."} for segment in segments)


def moved(base_url: str, url: str, location: str) -> str | None:
    """The target of a redirect from `url`; None if the client may not request it."""
    try:
        return address(base_url, urljoin(url, location), {})
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port; an empty host if this is not a plain HTTP URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return "", "", 0
    return parts.scheme, parts.hostname, port


@dataclass(frozen=True, slots=True)
class Credential:
    """One credential for one host.

    `name` is for people and never secret. `identity` stands for the account that it authenticates:
    answers are kept under it, so it changes with the credential unless the account is the same.
    `authorize` returns the headers to send; it may first fetch a short-lived token, and returns the
    failed answer if it cannot. It is called before each call, outside the queue.
    """

    name: str
    identity: str = field(repr=False)
    authorize: Callable[[], Awaitable[Mapping[str, str] | Answer]] = field(repr=False)

    @classmethod
    def fixed(cls, name: str, headers: Mapping[str, str]) -> "Credential":
        """A credential whose headers never change, such as a token."""
        text = "\0".join(f"{key.lower()}\0{headers[key]}" for key in sorted(headers))

        async def authorize() -> Mapping[str, str]:
            return headers

        return cls(name, hashlib.sha256(text.encode()).hexdigest(), authorize)


ANONYMOUS: Final = Credential.fixed("anonymous", {})


def expiry(headers: Mapping[str, str]) -> int | None:
    """The time at which the credential expires, in milliseconds, if the host states it (GitHub)."""
    text = headers.get("github-authentication-token-expiration", "").replace("UTC", "+0000")
    try:
        found = datetime.strptime(text.strip(), "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)
    except (ValueError, OverflowError):  # an offset can lead out of the years that there are
        return None
    return int(found.timestamp()) * SECOND


_MOVED: Final = frozenset({301, 302, 307, 308})


class RequestOptions(TypedDict, total=False):
    """Options of a request besides its target.

    `query` is appended to the target. `headers` are sent before the client's and the credential's.
    `budget` names the limit that the call counts against. With `memory`, a GET is conditional on
    the answer kept there, and keeps a new one. `follow`: follow a redirect on the same origin.
    `decode=False`: the body of a good answer is not JSON. `form`: a type that matching JSON is
    decoded as, which is faster; other JSON is decoded as without it. A transient failure is tried
    `attempts` times in all, three by default.
    """

    query: Mapping[str, str | int]
    headers: Mapping[str, str]
    budget: str
    memory: Memory
    follow: bool
    decode: bool
    form: Any
    attempts: int


# Of an answer beyond so many bytes; a file tree of GitHub has at most 700,000.
_SMALL: Final = 1024 * 1024
_MOST_PARTS: Final = 2_000_000


class HttpCall(NamedTuple):
    """One call; `content` is its body."""

    method: str
    url: str
    content: bytes | None
    options: RequestOptions


def decoded(reply: HostReply, form: Any) -> tuple[Any, bool]:
    """The body's JSON, None if there is none; and true if the body is as the status promises."""
    if not reply.body:
        return None, reply.status in {204, 205}
    if len(reply.body) > _SMALL and json_parts.has_more(reply.body, _MOST_PARTS):
        return None, False
    try:
        return msgspec.json.decode(reply.body, type=form), True
    except msgspec.ValidationError:
        return decoded(reply, Any)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None, False


def is_redirect(call: HttpCall, answer: Answer) -> bool:
    """True if the answer is a redirect and the same request can be made there."""
    if answer.status not in _MOVED or "location" not in answer.headers:
        return False
    return call.method in {"GET", "HEAD"} or answer.status in {307, 308}


def may_be_repeated(answer: Answer, reply: HostReply) -> bool:
    """True if another attempt may succeed: no reply, a failure of the host, or a broken body."""
    if answer.outcome is not Outcome.TRANSIENT:
        return False
    return reply.repeatable or reply.status in REPEATABLE or reply.status == 200


@dataclass(frozen=True, slots=True)
class HostRoute:
    """Addresses that a program may connect to, with the credential and the trusted certificates.

    `url` is the client's base URL. `name` and `port` are those of its host, or of the proxy in
    front of it; `addresses` are its checked addresses, the only ones to connect to. `proxy` is the
    proxy's URL with its password, or empty. `authorities` are certificates in PEM form. `headers`
    authenticate the caller.
    """

    url: str
    name: str
    port: int
    addresses: Sequence[str]
    proxy: str = field(default="", repr=False)
    authorities: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=lambda: EMPTY, repr=False)


# Makes one call on a route. What the host says is a reply with the status of HTTP that stands for
# it; all else is one with a failure. It ends in time by itself, and raises nothing.
Exchange = Callable[[HostRoute], Awaitable[HostReply]]

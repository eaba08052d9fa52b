"""Requests as handlers see them, replies, and the service's own addresses."""

import asyncio
import ipaddress
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qsl

import msgspec

from factbook import json_parts
from factbook.asgi import Receive, Scope
from factbook.errors import (
    ConfigurationError,
    InputError,
    PayloadTooLargeError,
    TooSlowError,
    UnsupportedMediaTypeError,
    in_words,
)
from factbook.settings import Settings

if TYPE_CHECKING:
    from factbook.auth.tokens import Grant, Narrowing
    from factbook.settings import Settings


JSON = b"application/json; charset=utf-8"

_TAKEN = (b"application/json", b"", b"application/x-www-form-urlencoded")
_SMALL = 64 * 1024
# Limit for all bodies but pushes, which have a limit of items. A part takes about 100 bytes.
_MOST_PARTS = 1_000_000
# Seconds that a body may take, and the bytes a second it needs beyond that: a slow body uses
# memory that others need.
_PATIENCE = 30.0
_SLOWEST = 64 * 1024
_PIECE = 256 * 1024

T = TypeVar("T")
A = TypeVar("A", covariant=True)  # noqa: PLC0105 - as short as the others
_encode = msgspec.json.Encoder().encode


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


class Reply(NamedTuple):
    """A status, a body, and headers other than the content type.

    The body is bytes, a list of bytes too large to join, or an iterator that produces pieces while
    they are sent.
    """

    body: bytes | list[bytes] | AsyncIterator[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    content_type: bytes = JSON
    cookies: tuple[str, ...] = ()  # each a value of Set-Cookie


class JsonReply(Reply, Generic[A]):
    """A reply with a JSON body of this type, which the OpenAPI document describes."""

    __slots__ = ()


def reply(value: T, status: int = 200, **headers: str) -> JsonReply[T]:
    """Encode a value as a JSON reply; write header names with underscores."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return JsonReply(msgspec.json.encode(value), status, named)


def splice_document(document: str | bytes) -> Any:
    """Embed stored JSON in an answer without decoding it."""
    return msgspec.Raw(document)


async def stream_list(
    answer: msgspec.Struct,
    portions: AsyncIterator[Iterable[T]],
    shown: Callable[[T], msgspec.Struct],
) -> AsyncIterator[bytes]:
    """Stream an answer that ends in an empty list, filling the list with these items."""
    buffer = bytearray(msgspec.json.encode(answer)[:-2])
    comma = b""
    async for portion in portions:
        for item in portion:
            buffer += comma + _encode(shown(item))
            comma = b","
            if len(buffer) >= _PIECE:
                yield bytes(buffer)
                buffer.clear()
    yield bytes(buffer + b"]}")


class Slots(Protocol):
    """Slots for concurrent requests."""

    def release(self) -> None:
        """Release a slot; the next waiter, if any, gets it."""

    async def acquire(self) -> None:
        """Wait for a slot again."""


class Request:
    """An HTTP request, with its token once authenticated."""

    __slots__ = (
        "_query",
        "_receive",
        "gate",
        "headers",
        "may_read",
        "method",
        "own_only",
        "resource_metadata",
        "scope",
        "token",
        "token_id",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self._receive = receive
        self.method: str = scope["method"]
        self._query: list[tuple[str, str]] | None = None
        # The queue that admitted the request, in which it occupies a slot.
        self.gate: Slots | None = None
        # By lower-case name; the last value of a repeated header.
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.token: Grant | None = None  # set once verified
        # False for a write-only token: answers hold only what it sent, and counts of stored items.
        self.may_read = True
        # True if the token may write only what its owner's groups own.
        self.own_only = False
        # URL that says how to get a token, if the route provides one.
        self.resource_metadata = ""
        self.token_id = ""  # of the sent token, even if expired or revoked

    @property
    def narrowing(self) -> "Narrowing | None":
        """Limits of the token; None without a token or limits."""
        return None if self.token is None else self.token.narrowing

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def url(self) -> str:
        """Path and query as sent."""
        raw: bytes = self.scope.get("raw_path") or self.path.encode()
        query: bytes = self.scope["query_string"]
        return (raw + (b"?" + query if query else b"")).decode("latin-1")

    @property
    def caller(self) -> str:
        """Key for rate limits: the token id, or the user if the token has no id."""
        return self.token_id or self.actor

    @property
    def actor(self) -> str:
        """The entity reference of the token's user."""
        assert self.token is not None
        return self.token.owner

    def parameter(self, name: str) -> str:
        """Value of a path parameter."""
        return str(self.scope["path_params"][name])

    @property
    def wants_fresh(self) -> bool:
        """True if the request asks to bypass caches."""
        return "no-cache" in (self.header(b"cache-control") or "").lower()

    def header(self, name: bytes) -> str | None:
        """Value of a header."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    @property
    def query(self) -> list[tuple[str, str]]:
        """Names and values of the query, in order."""
        if self._query is None:
            text = self.scope["query_string"].decode("latin-1")
            try:
                self._query = parse_qsl(text, keep_blank_values=True, max_num_fields=1000)
            except ValueError:
                raise InputError("The query has more than 1000 parameters.") from None
        return self._query

    def all(self, name: str) -> list[str]:
        """All values of a query parameter."""
        return [value for key, value in self.query if key == name]

    def allow_only(self, names: Collection[str]) -> None:
        """Raise InputError for any query parameter but these."""
        for key, _ in self.query:
            if key not in names:
                raise InputError(f"Unknown query parameter '{key}'.")

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Release this request's slot while it only waits."""
        gate = self.gate
        if gate is not None:
            gate.release()
        try:
            yield
        finally:
            if gate is not None:
                await gate.acquire()

    async def gone(self) -> None:
        """Wait until the client hangs up; discards the body, if any."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def body(self, limit: int, setting: str) -> bytes | bytearray:
        """Read the whole body; raises PayloadTooLargeError naming the setting, ClientGoneError.

        Raises TooSlowError if a large body takes more than 30 seconds and arrives slowly.
        """
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise _make_too_large_error(limit, setting)
        # Slow bodies don't block other requests.
        if self.gate is not None:
            self.gate.release()
        try:
            return await self._arrived(limit, setting)
        finally:
            if self.gate is not None:
                await self.gate.acquire()

    async def _arrived(self, limit: int, setting: str) -> bytes | bytearray:
        message, began = await self._receive(), time.monotonic()
        if not message.get("more_body") and message["type"] == "http.request":
            whole: bytes = message.get("body", b"")
            _check_size(whole, limit, setting)
            return whole
        body = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGoneError
            body += message.get("body", b"")
            _check_size(body, limit, setting)
            if not message.get("more_body"):
                return body
            if time.monotonic() - began > _PATIENCE + len(body) / _SLOWEST:
                raise TooSlowError(
                    "The request body arrives too slowly: less than "
                    f"{_SLOWEST // 1024} KiB a second."
                )
            message = await self._receive()

    async def json_body(self, limit: int, setting: str) -> bytes | bytearray:
        """Read a JSON body; raises as `body` does, and UnsupportedMediaTypeError.

        A missing content type or a form's counts as JSON: curl and others send it by default.
        """
        declared = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if declared not in _TAKEN and not declared.endswith(b"+json"):
            raise UnsupportedMediaTypeError
        return await self.body(limit, setting)

    async def json(self, type_: Any, limit: int = 1024 * 1024) -> Any:
        """Read and decode the body as a type; raises as `json_body` and `decode` do."""
        body = await self.json_body(limit, "the body of this call")
        return (
            decode(body, type_) if len(body) <= _SMALL else await run_offloaded(decode, body, type_)
        )


def decode(body: bytes | bytearray, type_: Any) -> Any:
    """Decode JSON as a type; raises InputError with the reason, and PayloadTooLargeError."""
    if len(body) > _SMALL and json_parts.has_more(body, _MOST_PARTS):
        raise PayloadTooLargeError(
            f"The body has more than {_MOST_PARTS:,} values. Send it in several parts."
        )
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        wrong = InputError(f"The body is not valid: {in_words(error, type_)}.")
        if "got `float`" not in str(error) or len(body) > _SMALL:
            raise wrong from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InputError(f"The body is not valid JSON: {error}.") from None
    try:
        return msgspec.convert(_check_whole(msgspec.json.decode(body)), type_)
    except (msgspec.MsgspecError, RecursionError):
        raise wrong from None


def _check_whole(value: Any) -> Any:
    """Convert whole floats such as 20.0 to integers, as JSON Schema and some clients do."""
    if isinstance(value, dict):
        return {key: _check_whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_check_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def run_offloaded(function: Any, *arguments: Any) -> Any:
    """Run a slow function on a thread to keep the event loop free; returns its result."""
    return await asyncio.to_thread(function, *arguments)


def _check_size(body: bytes | bytearray, limit: int, setting: str) -> None:
    if len(body) > limit:
        raise _make_too_large_error(limit, setting)


def _make_too_large_error(limit: int, setting: str) -> PayloadTooLargeError:
    return PayloadTooLargeError(f"The body is larger than {limit} bytes: {setting}.")


class Proxies:
    """Proxies trusted to report a client's address."""

    def __init__(self, settings: "Settings") -> None:
        try:
            self._trusted = [
                ipaddress.ip_network(text, strict=False) for text in settings.trusted_proxies
            ]
        except ValueError as error:
            raise ConfigurationError(f"trusted_proxies: {error}.") from None

    def client(self, peer: str, forwarded_for: str | None) -> str:
        """Address of the client: the peer, or the address that trusted proxies report.

        Each proxy appends its peer's address. So the last address that isn't a trusted proxy is
        the client's; anything before it could be forged.
        """
        if not self._trusted or forwarded_for is None:
            return peer
        address = peer
        for hop in reversed(forwarded_for.split(",")):
            try:
                proxy = ipaddress.ip_address(address)
            except ValueError:
                break
            if not any(proxy in network for network in self._trusted):
                break
            address = hop.strip()
            # Some proxies add a port: `192.0.2.1:5000`, `[2001:db8::1]:5000`.
            if address.startswith("["):
                address = address[1:].partition("]")[0]
            elif address.count(":") == 1:
                address = address.partition(":")[0]
        return address


def get_client_address(scope: Scope, proxies: Proxies) -> str:
    """Client address of a request, as far as trusted proxies report it."""
    client = scope.get("client")
    # Proxies extend the header or add another one.
    hops = [text for name, text in scope["headers"] if name == b"x-forwarded-for"]
    forwarded_for = b",".join(hops).decode("latin-1") if hops else None
    return proxies.client(client[0] if client else "", forwarded_for)


# Page that accepts an invitation.
WELCOME_PATH: Final = "/welcome/{secret}"


def get_server_address(settings: Settings) -> str | None:
    """Service address from the settings; None if the system chooses the port."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.port == 0:
        return None
    return f"http://{_choose_browser_host(settings.host)}:{settings.port}"


def get_own_address(request: Request, settings: Settings) -> str:
    """Service address for this client, from the settings or else from the Host header."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    # Requests with a disallowed host never get here.
    host = request.header(b"host") or "127.0.0.1:8000"
    return f"{request.scope.get('scheme', 'http')}://{host}"


def require_address(settings: Settings, given: str | None) -> str:
    """Return the given address or the one in the settings; raises InputError without either."""
    found = given or get_server_address(settings)
    if found is None:
        raise InputError("The system chooses the port: give the address with --server.")
    return found


def render_welcome_link(server: str, secret: str) -> str:
    """Link to accept the invitation with this secret."""
    return server.rstrip("/") + WELCOME_PATH.replace("{secret}", secret)


def _choose_browser_host(bound: str) -> str:
    """Host name that a browser on this machine uses to reach the bound address."""
    try:
        found = ipaddress.ip_address(bound)
    except ValueError:
        return bound
    if found.is_unspecified:
        return "localhost"
    return f"[{bound}]" if found.version == 6 else bound

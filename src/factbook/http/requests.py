"""Requests as handlers see them, the replies that they return, and addresses of the service."""

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
# Of a body of any kind but a push, which is counted by its items. A part takes about 100 bytes.
_MOST_PARTS = 1_000_000
# A body may take so many seconds, and more at so many bytes a second: what it takes up is taken
# from others.
_PATIENCE = 30.0
_SLOWEST = 64 * 1024
_PIECE = 256 * 1024

T = TypeVar("T")
A = TypeVar("A", covariant=True)  # noqa: PLC0105 - as short as the others
_encode = msgspec.json.Encoder().encode


class ClientGoneError(Exception):
    """The client hung up before its request was complete."""


class Reply(NamedTuple):
    """A status, a body, and headers beside the content type.

    The body is bytes, a list of bytes too large to be joined, or an iterator of pieces that are
    made while they are sent.
    """

    body: bytes | list[bytes] | AsyncIterator[bytes] = b""
    status: int = 200
    headers: Mapping[str, str] = {}
    content_type: bytes = JSON
    cookies: tuple[str, ...] = ()  # each a value of Set-Cookie


class JsonReply(Reply, Generic[A]):
    """A reply whose body is JSON of this type, which describes it to clients."""

    __slots__ = ()


def reply(value: T, status: int = 200, **headers: str) -> JsonReply[T]:
    """Encode a value as a JSON reply; header names are written with underscores."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return JsonReply(msgspec.json.encode(value), status, named)


def splice_document(document: str | bytes) -> Any:
    """JSON as it is stored, in the place of the value that clients read: it is not read again."""
    return msgspec.Raw(document)


async def stream_list(
    answer: msgspec.Struct,
    portions: AsyncIterator[Iterable[T]],
    shown: Callable[[T], msgspec.Struct],
) -> AsyncIterator[bytes]:
    """An answer that ends in an empty list, with these items in the list, in pieces."""
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
    """Places of requests that are worked on at once."""

    def release(self) -> None:
        """Release a place, to the next waiter if any."""

    async def acquire(self) -> None:
        """Wait for a place again."""


class Request:
    """One HTTP request."""

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
        # What it was let in by, and takes a place of while it is worked on.
        self.gate: Slots | None = None
        # By lower-case name; of one sent twice, the last.
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.token: Grant | None = None  # set once it is known to be good
        # False: its token only writes. It is shown what it sent, and counts of what is stored.
        self.may_read = True
        # True: it may write what groups of its owner own, and nothing else.
        self.own_only = False
        # Where it is described how to get a token, if the route says so.
        self.resource_metadata = ""
        self.token_id = ""  # of the token that was sent, though it may have expired or be revoked

    @property
    def narrowing(self) -> "Narrowing | None":
        """Limits of its token; None for one that is not narrowed, and without a token."""
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
        """The token, or its user where the token has no id: whose work is bounded together."""
        return self.token_id or self.actor

    @property
    def actor(self) -> str:
        """The entity reference of the token's user."""
        assert self.token is not None
        return self.token.owner

    def parameter(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.scope["path_params"][name])

    @property
    def wants_fresh(self) -> bool:
        """True if it asks not to be answered from what is kept."""
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
        """Every value of one query parameter."""
        return [value for key, value in self.query if key == name]

    def allow_only(self, names: Collection[str]) -> None:
        """Raise InputError for any query parameter but these."""
        for key, _ in self.query:
            if key not in names:
                raise InputError(f"Unknown query parameter '{key}'.")

    @asynccontextmanager
    async def aside(self) -> AsyncIterator[None]:
        """Release this request's slot to others while it only waits."""
        gate = self.gate
        if gate is not None:
            gate.release()
        try:
            yield
        finally:
            if gate is not None:
                await gate.acquire()

    async def gone(self) -> None:
        """Return when the client has hung up; its body, if any, is not kept."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def body(self, limit: int, setting: str) -> bytes | bytearray:
        """The whole body; raises PayloadTooLargeError naming the setting, ClientGoneError.

        Raises TooSlowError when a large one takes longer than half a minute and arrives slowly.
        """
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise _make_too_large_error(limit, setting)
        # However slowly it comes, nobody else waits for it.
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
                    f"The body comes too slowly: less than {_SLOWEST // 1024} KiB a second."
                )
            message = await self._receive()

    async def json_body(self, limit: int, setting: str) -> bytes | bytearray:
        """The whole body; raises what `body` does, and UnsupportedMediaTypeError for another type.

        A missing type or that of forms counts as JSON: programs such as curl send it unasked.
        """
        declared = self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if declared not in _TAKEN and not declared.endswith(b"+json"):
            raise UnsupportedMediaTypeError
        return await self.body(limit, setting)

    async def json(self, type_: Any, limit: int = 1024 * 1024) -> Any:
        """Decode the body as a type; raises InputError with the reason."""
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
    """The same JSON with 20.0 as 20: JSON Schema, and some clients, take both for integers."""
    if isinstance(value, dict):
        return {key: _check_whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_check_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


async def run_offloaded(function: Any, *arguments: Any) -> Any:
    """Run a slow function on a thread and return its result, to keep the event loop free."""
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
        """The client's address: the peer's own, or the one reported by trusted proxies.

        Each proxy appends the address of its peer: the last one that is no trusted proxy is the
        client's, and anything before it is made up by the client.
        """
        if not self._trusted or forwarded_for is None:
            return peer
        address = peer
        for hop in reversed(forwarded_for.split(",")):
            if not self._is_trusted(address):
                break
            address = _strip_port(hop.strip())
        return address

    def _is_trusted(self, text: str) -> bool:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            return False
        return any(address in network for network in self._trusted)


def get_client_address(scope: Scope, proxies: Proxies) -> str:
    """The address that a request comes from."""
    client = scope.get("client")
    # Proxies add to the one header or add one of their own.
    hops = [text for name, text in scope["headers"] if name == b"x-forwarded-for"]
    forwarded_for = b",".join(hops).decode("latin-1") if hops else None
    return proxies.client(client[0] if client else "", forwarded_for)


def _strip_port(hop: str) -> str:
    """Strip the port that some proxies add: `192.0.2.1:5000`, `[2001:db8::1]:5000`."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


# Where the secret of an invitation is used.
WELCOME_PATH: Final = "/welcome/{secret}"


def get_server_address(settings: Settings) -> str | None:
    """Address of the service by the settings; None when the system chooses the port."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.port == 0:
        return None
    return f"http://{_choose_browser_host(settings.host)}:{settings.port}"


def get_own_address(request: Request, settings: Settings) -> str:
    """Address of the service for this client, by the settings or else as it was called."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    # A host that is not among the allowed ones does not get here.
    host = request.header(b"host") or "127.0.0.1:8000"
    return f"{request.scope.get('scheme', 'http')}://{host}"


def require_address(settings: Settings, given: str | None) -> str:
    """The given address, or that of the settings; raises InputError without either."""
    found = given or get_server_address(settings)
    if found is None:
        raise InputError("The system chooses the port: give the address with --server.")
    return found


def render_welcome_link(server: str, secret: str) -> str:
    """Link of the invitation with this secret."""
    return server.rstrip("/") + WELCOME_PATH.replace("{secret}", secret)


def _choose_browser_host(bound: str) -> str:
    """Host name with which a browser on this machine reaches the bound address."""
    try:
        found = ipaddress.ip_address(bound)
    except ValueError:
        return bound
    if found.is_unspecified:
        return "localhost"
    return f"[{bound}]" if found.version == 6 else bound

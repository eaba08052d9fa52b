"""Outgoing calls, bounded in size and time, to checked addresses or through the proxy."""

import asyncio
import ipaddress
import socket
import ssl
import zlib
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpcore2
import httpx2
import stamina
from stamina import instrumentation

from factbook.errors import ConfigurationError
from factbook.outbound.client import Exchange, HostRoute
from factbook.outbound.outcomes import Answer, HostReply
from factbook.settings import Settings
from factbook.telemetry.spans import NO_TRACER, Attributes, Span, Tracer

T = TypeVar("T")

MOST_SECONDS: Final = 30.0
MOST_BYTES: Final = 20 * 1024 * 1024
CONNECT_SECONDS: Final = 5.0

# The collector logs once that a source is down; don't log each retry.
instrumentation.set_on_retry_hooks(())


class RefusedError(httpx2.ConnectError):
    """The address guard refused the connection; the text names the setting that would allow it."""


class _UnreadableError(Exception):
    """The body cannot be used; the text gives the reason."""


class _AgainError(Exception):
    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.detail)


class Sender:
    """Sends calls through one transport, each within `seconds`, reading at most `most_bytes`.

    Ignores environment variables, keeps no cookies, and follows no redirects.
    """

    def __init__(
        self,
        transport: httpx2.AsyncBaseTransport,
        *,
        seconds: float = MOST_SECONDS,
        most_bytes: int = MOST_BYTES,
        find_route: Callable[[], Awaitable[HostRoute]] | None = None,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        """`find_route` may raise httpx2.TransportError; without it, other programs get no route."""
        self._transport = transport
        self._find_route = find_route
        self._tracer = tracer
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._under_way = 0
        self._closed = False
        self._timeouts = httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)).as_dict()

    @property
    def closed(self) -> bool:
        """True if new calls must use another sender."""
        return self._closed

    async def aclose(self, *, idle: bool = False) -> None:
        """Close the connections; with `idle`, once no call is under way."""
        self._closed = True
        if not (idle and self._under_way):
            await self._transport.aclose()

    async def send(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None = None
    ) -> HostReply:
        """Send a request; without a reply, the result has the reason in `failure`."""
        self._under_way += 1
        try:
            about = {"http.request.method": method, **_describe_destination(url)}
            with self._tracer.span(method, about, outgoing=True) as span:
                reply = await self._ended(self._exchanged(method, url, headers, content))
                _note_reply(span, reply)
            return reply
        finally:
            self._under_way -= 1
            if self._closed and not self._under_way:
                await self._transport.aclose()

    async def route(self) -> HostRoute | HostReply:
        """The route to the host for another program, or the reason that there is none."""
        if self._find_route is None:
            return HostReply(0, failure="other programs cannot reach it")
        return await self._ended(self._find_route())

    async def delegated(self, exchange: Exchange, proof: Mapping[str, str]) -> HostReply:
        """Let another program call the host with these authentication headers."""
        route = await self.route()
        if isinstance(route, HostReply):
            return route
        with self._tracer.span("exchange", _describe_destination(route.url), outgoing=True) as span:
            reply = await exchange(replace(route, headers=proof))
            _note_reply(span, reply)
        return reply

    async def _ended(self, asking: Awaitable[T]) -> T | HostReply:
        """The result within the time limit, or the reason that there is none."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asking
        except (TimeoutError, httpx2.TimeoutException):
            failure = f"no answer within {self._seconds:g} seconds"
            return HostReply(0, failure=failure, repeatable=True)
        except RefusedError as error:
            return HostReply(0, failure=str(error))
        except _UnreadableError as error:
            return HostReply(0, failure=str(error))
        except httpx2.TransportError as error:
            return _describe_failure(error)
        except (UnicodeEncodeError, httpx2.InvalidURL):
            # The error's text may quote the credential, so don't repeat it.
            return HostReply(
                0, failure="the address or a header has a character that cannot be sent"
            )

    async def _exchanged(
        self, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> HostReply:
        request = httpx2.Request(
            method,
            url,
            headers={**headers, "accept-encoding": "gzip"},
            content=content,
            extensions={"timeout": self._timeouts},
        )
        response = await self._transport.handle_async_request(request)
        try:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            encoding = response.headers.get("content-encoding", "")
            body = await _read_body(response.stream, encoding, self._most_bytes)
        finally:
            await response.aclose()
        found = {name.lower(): value for name, value in response.headers.items()}
        return HostReply(response.status_code, found, body)

    async def repeat(
        self, once: Callable[[], Awaitable[tuple[Answer, bool]]], attempts: int
    ) -> Answer:
        """Call `once` until another attempt would not help, and return the last answer.

        At most `attempts` times, with growing, jittered pauses.
        """
        try:
            async for attempt in stamina.retry_context(
                on=_AgainError, attempts=attempts, timeout=None, wait_initial=0.5, wait_max=10.0
            ):
                with attempt:
                    answer, again = await once()
                    if again:
                        raise _AgainError(answer)
        except _AgainError as error:
            return error.answer
        return answer


def _describe_destination(url: str) -> Attributes:
    """Trace attributes of the destination, without path and query, which may hold secrets."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # such a URL is never called
        return {}
    host = parts.hostname or ""
    return {"url.scheme": parts.scheme, "server.address": host, "server.port": port}


def _note_reply(span: Span, reply: HostReply) -> None:
    if reply.status:
        span.note({"http.response.status_code": reply.status})
    if not reply.status or reply.status >= 400:
        span.fail(str(reply.status) if reply.status else "no_answer")


async def _read_body(chunks: AsyncIterable[bytes], encoding: str, most: int) -> bytes:
    """The body, decompressed in chunks to stop a small one from expanding without limit.

    Raises _UnreadableError if the body is too large before or after decompression, or in an
    encoding that was not requested.
    """
    encoding = encoding.strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise _UnreadableError("the answer is compressed in a way that was not requested")
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    raw = 0
    body = bytearray()
    async for chunk in chunks:
        raw += len(chunk)
        body += _unpack_chunk(unpacker, chunk, most + 1 - len(body))
        if raw > most or len(body) > most:
            raise _UnreadableError(f"the answer is larger than {most} bytes")
    if unpacker and raw and not unpacker.eof:
        raise _UnreadableError("the answer is compressed and cut off")
    return bytes(body)


def _unpack_chunk(unpacker: "zlib._Decompress | None", chunk: bytes, room: int) -> bytes:
    if unpacker is None:
        return chunk
    try:
        return b"" if unpacker.eof else unpacker.decompress(chunk, room)
    except zlib.error:
        raise _UnreadableError("the answer does not match its content encoding") from None


def _describe_failure(error: httpx2.TransportError) -> HostReply:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        text = "its certificate is not trusted; outgoing_ca_file can name a private authority"
        return HostReply(0, failure=text)
    if isinstance(error, httpx2.ProxyError):
        return HostReply(0, failure="the proxy did not let the call through", repeatable=True)
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return HostReply(0, failure="the call is not valid HTTP")
    if isinstance(error, httpx2.RemoteProtocolError):
        return HostReply(0, failure="the response is not valid HTTP", repeatable=True)
    if isinstance(error, httpx2.ConnectError):
        return HostReply(0, failure="no connection", repeatable=True)
    return HostReply(0, failure="the connection broke", repeatable=True)


IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

# From the registries of special-purpose addresses (RFC 6890). Written out because `is_global`
# differs between Python versions and includes multicast and translated addresses.
_NOT_PUBLIC: Final = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's platform services, in a public range
        "169.254.0.0/16",  # link-local, with cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, with broadcast
    )
)
# The rest of IPv6 is unspecified, loopback, mapped, translated (64:ff9b::/96), unique-local,
# link-local, site-local (fec0::/10), multicast or unassigned.
_UNICAST: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, with Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4, which leads to any IPv4 address
        "3fff::/20",  # documentation
    )
)


class Guard:
    """Allows connections to public addresses and those in `networks`, such as `10.0.0.0/8`."""

    def __init__(self, networks: Iterable[str] = ()) -> None:
        self._networks: tuple[IPNetwork, ...] = tuple(map(ipaddress.ip_network, networks))

    def allows(self, address: str) -> bool:
        """True if a connection to the address is allowed; false if it is not an address."""
        parsed = _parse_address(address)
        if parsed is None:
            return False
        if self._is_listed(parsed):
            return True
        if isinstance(parsed, IPv4Address):
            return not any(parsed in network for network in _NOT_PUBLIC)
        return parsed in _UNICAST and not any(parsed in network for network in _NOT_PUBLIC_6)

    def lists(self, address: str) -> bool:
        """True if the address is in one of the configured networks."""
        parsed = _parse_address(address)
        return parsed is not None and self._is_listed(parsed)

    def _is_listed(self, address: IPAddress) -> bool:
        return any(
            address.version == network.version and address in network for network in self._networks
        )


def normalize_literal_address(host: str) -> str | None:
    """The IP address in any notation that systems accept; None for a host name."""
    if found := _parse_address(host):
        return str(found)
    try:
        # Also `127.1`, `0x7f.1` and `2130706433`.
        return str(IPv4Address(socket.inet_aton(host)))
    except (OSError, ValueError):
        return None


def _parse_address(text: str) -> IPAddress | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

MOST_ADDRESSES: Final = 16
PORTS: Final = {"https": 443, "http": 80}
KEEPALIVE_SECONDS: Final = 30.0


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """The distinct addresses of a name from the system's resolver. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Network:
    """Factory for senders with the configured guard, proxy and certificate authorities.

    Raises ConfigurationError for unusable settings.
    """

    def __init__(
        self, settings: Settings, *, resolver: Resolver = resolve_host, tracer: Tracer = NO_TRACER
    ) -> None:
        self._tracer = tracer
        self._guard = Guard(settings.outgoing_networks)
        self._proxy_url = settings.outgoing_proxy or ""
        self._proxy = _make_proxy(self._proxy_url)
        self._direct = tuple(name.lower().strip(".") for name in settings.outgoing_direct)
        self._authorities = _load_authorities(settings.outgoing_ca_file)
        self._resolver = resolver

    def proxied(self, host: str) -> bool:
        """True if calls to the host go through the proxy."""
        if not self._proxy:
            return False
        name = host.lower().rstrip(".")
        return not any(name == direct or name.endswith(f".{direct}") for direct in self._direct)

    def sender(
        self, base_url: str, *, seconds: float = MOST_SECONDS, most_bytes: int = MOST_BYTES
    ) -> Sender:
        """A sender for the host of the base URL.

        Plain HTTP reaches only addresses in outgoing_networks. Through the proxy, which would
        resolve the name itself, it raises ConfigurationError.
        """
        parts = urlsplit(base_url)
        proxied, plain = self.proxied(parts.hostname or ""), parts.scheme == "http"
        if proxied and plain:
            raise ConfigurationError(
                f"{parts.hostname} is not called through outgoing_proxy without encryption; "
                "outgoing_direct can name it."
            )
        backend = GuardedBackend(self._guard, self._resolver, listed_only=plain)
        transport = _Transport(self._pool(backend, proxied), self._guard)
        find_route = partial(self._route, base_url, backend)
        return Sender(
            transport,
            seconds=seconds,
            most_bytes=most_bytes,
            find_route=find_route,
            tracer=self._tracer,
        )

    async def _route(self, base_url: str, backend: "GuardedBackend") -> HostRoute:
        """The route to the host of the base URL. Raises httpx2.TransportError."""
        host = urlsplit(base_url).hostname or ""
        _refuse_literal_address(self._guard, host)
        proxy = self._proxy_url if self.proxied(host) else ""
        parts = urlsplit(proxy)
        if proxy and not parts.port:
            # Programs have different default ports.
            netloc = f"{parts.netloc}:{PORTS[parts.scheme]}"
            proxy = parts._replace(netloc=netloc).geturl()
        place = urlsplit(proxy or base_url)
        name, port = place.hostname or "", place.port or PORTS[place.scheme]
        with _translate_errors():
            addresses = await backend.checked(name, port)
        return HostRoute(base_url, name, port, addresses, proxy, self._pem)

    @cached_property
    def _pem(self) -> str:
        found = self._authorities.get_ca_certs(binary_form=True)
        return "".join(map(ssl.DER_cert_to_PEM_cert, found))

    def _pool(self, backend: "GuardedBackend", proxied: bool) -> httpcore2.AsyncConnectionPool:
        if not (proxied and self._proxy):
            return httpcore2.AsyncConnectionPool(
                max_connections=None,  # governors bound the calls
                ssl_context=self._authorities,
                keepalive_expiry=KEEPALIVE_SECONDS,
                network_backend=backend,
            )
        proxy = self._proxy
        return httpcore2.AsyncHTTPProxy(
            proxy_url=str(proxy.url),
            proxy_auth=proxy.raw_auth,
            max_connections=None,
            ssl_context=self._authorities,
            proxy_ssl_context=self._authorities if proxy.url.scheme == "https" else None,
            keepalive_expiry=KEEPALIVE_SECONDS,
            network_backend=backend,
        )


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Network backend that connects to checked addresses, and resolves a name only once."""

    def __init__(self, guard: Guard, resolver: Resolver, *, listed_only: bool = False) -> None:
        self._guard = guard
        self._resolver = resolver
        self._allows = guard.lists if listed_only else guard.allows
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers, if all addresses of the name are allowed."""
        failure: Exception = httpcore2.ConnectError("no address")
        for address in await self.checked(host, port):
            try:
                return await self._backend.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def checked(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a name, if every one is allowed. Raises httpcore2.ConnectError."""
        try:
            addresses = await self._resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("the name is not known") from error
        if not all(map(self._allows, addresses)):
            raise RefusedError(
                f"{host} resolves to an address that is not called; outgoing_networks can allow it"
            )
        return addresses[:MOST_ADDRESSES]

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Always raises RefusedError: socket files are never called."""
        raise RefusedError("Unix sockets are not called")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Transport(httpx2.AsyncBaseTransport):
    """Transport over the pool; httpx2's own accepts no other network backend."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, guard: Guard) -> None:
        self._pool = pool
        self._guard = guard

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request. Raises httpx2.TransportError."""
        url = request.url
        _refuse_literal_address(self._guard, url.host)
        with _translate_errors():
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    httpcore2.URL(
                        scheme=url.raw_scheme,
                        host=url.raw_host,
                        port=url.port,
                        target=url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Stream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translate_errors():
            async for chunk in self._response.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        with _translate_errors():
            await self._response.aclose()


_ERRORS: Final[tuple[tuple[type[Exception], type[httpx2.TransportError]], ...]] = (
    (httpcore2.TimeoutException, httpx2.ReadTimeout),
    (httpcore2.ConnectError, httpx2.ConnectError),
    (httpcore2.NetworkError, httpx2.ReadError),
    (httpcore2.ProxyError, httpx2.ProxyError),
    (httpcore2.LocalProtocolError, httpx2.LocalProtocolError),
    (httpcore2.ProtocolError, httpx2.RemoteProtocolError),
    (httpcore2.UnsupportedProtocol, httpx2.UnsupportedProtocol),
)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except tuple(low for low, _ in _ERRORS) as error:
        high = next(high for low, high in _ERRORS if isinstance(error, low))
        raise high(type(error).__name__) from error


def _refuse_literal_address(guard: Guard, host: str) -> None:
    """Raise RefusedError for a forbidden literal address, which a proxy wouldn't check."""
    address = normalize_literal_address(host)
    if address and not guard.allows(address):
        raise RefusedError(f"{host} is not called; outgoing_networks can allow it")


def _make_proxy(url: str) -> httpx2.Proxy | None:
    if not url:
        return None
    try:
        proxy = httpx2.Proxy(url)
        host = urlsplit(url).hostname
    except (ValueError, httpx2.InvalidURL):
        host = None
    if not host:
        raise ConfigurationError("outgoing_proxy has to be like http://host:port.")
    return proxy


def _load_authorities(file: str | None) -> ssl.SSLContext:
    """The system's certificate authorities, and those in the file."""
    if not file:
        return _load_system_authorities()
    context = httpx2.create_ssl_context(trust_env=False)
    try:
        context.load_verify_locations(cafile=Path(file))
    except (OSError, ssl.SSLError):
        raise ConfigurationError(
            f"outgoing_ca_file: {file} is not a readable file of certificates in PEM form."
        ) from None
    return context


@cache
def _load_system_authorities() -> ssl.SSLContext:
    """Cached, as loading takes 50 ms."""
    return httpx2.create_ssl_context(trust_env=False)

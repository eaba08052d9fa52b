"""Outgoing connections: to checked addresses only, or through the proxy in the settings."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpcore2
import httpx2

from factbook.errors import ConfigurationError
from factbook.outbound.address_guard import Guard, literal
from factbook.outbound.calls import HostRoute
from factbook.outbound.sender import MOST_BYTES, MOST_SECONDS, RefusedError, Sender
from factbook.settings import Settings
from factbook.telemetry.spans import NO_TRACER, Tracer

Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

MOST_ADDRESSES: Final = 16
PORTS: Final = {"https": 443, "http": 80}
KEEPALIVE_SECONDS: Final = 30.0


async def resolved(host: str, port: int) -> Sequence[str]:
    """The distinct addresses that the system's resolver gives for a name. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class Network:
    """Factory for the senders of this service, all with the same guard, proxy and authorities.

    `proxied` tells if a host is called through the proxy. Raises ConfigurationError for unusable
    settings.
    """

    def __init__(
        self, settings: Settings, *, resolver: Resolver = resolved, tracer: Tracer = NO_TRACER
    ) -> None:
        self._tracer = tracer
        self._guard = Guard(settings.outgoing_networks)
        self._proxy_url = settings.outgoing_proxy or ""
        self._proxy = _proxy(self._proxy_url)
        self._direct = tuple(name.lower().strip(".") for name in settings.outgoing_direct)
        self._authorities = _authorities(settings.outgoing_ca_file)
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

        Without encryption only addresses in outgoing_networks are called, and never through the
        proxy, which would look the address up: that raises ConfigurationError.
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
        _refuse_inner(self._guard, host)
        proxy = _with_port(self._proxy_url) if self.proxied(host) else ""
        place = urlsplit(proxy or base_url)
        name, port = place.hostname or "", place.port or PORTS[place.scheme]
        with _as_transport_errors():
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
    """Network backend that connects to a checked address, never to a name resolved again."""

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
        """A connection to the first address that answers, if all of the name's are allowed."""
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
                f"{host} leads to an address that is not called; outgoing_networks can allow it"
            )
        return addresses[:MOST_ADDRESSES]

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refused: no host is reached through a socket file."""
        raise RefusedError("sockets that are files are not called")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class _Transport(httpx2.AsyncBaseTransport):
    """Transport over the pool; the client library's own does not accept another backend."""

    def __init__(self, pool: httpcore2.AsyncConnectionPool, guard: Guard) -> None:
        self._pool = pool
        self._guard = guard

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send the request. Raises httpx2.TransportError."""
        url = request.url
        _refuse_inner(self._guard, url.host)
        with _as_transport_errors():
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
        with _as_transport_errors():
            async for chunk in self._response.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        with _as_transport_errors():
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
def _as_transport_errors() -> Iterator[None]:
    try:
        yield
    except tuple(low for low, _ in _ERRORS) as error:
        high = next(high for low, high in _ERRORS if isinstance(error, low))
        raise high(type(error).__name__) from error


def _refuse_inner(guard: Guard, host: str) -> None:
    """Raise for a literal address that is not allowed: a proxy resolves names by itself."""
    address = literal(host)
    if address and not guard.allows(address):
        raise RefusedError(f"{host} is not called; outgoing_networks can allow it")


def _with_port(url: str) -> str:
    """The URL of a proxy with an explicit port, since programs assume different ones."""
    parts = urlsplit(url)
    if parts.port:
        return url
    return parts._replace(netloc=f"{parts.netloc}:{PORTS[parts.scheme]}").geturl()


def _proxy(url: str) -> httpx2.Proxy | None:
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


def _authorities(file: str | None) -> ssl.SSLContext:
    """The system's certificate authorities, and those in the file."""
    if not file:
        return _system_authorities()
    context = httpx2.create_ssl_context(trust_env=False)
    try:
        context.load_verify_locations(cafile=Path(file))
    except (OSError, ssl.SSLError):
        raise ConfigurationError(
            f"outgoing_ca_file: {file} is not a readable file of certificates in PEM form."
        ) from None
    return context


@cache
def _system_authorities() -> ssl.SSLContext:
    """Reading them takes 50 ms."""
    return httpx2.create_ssl_context(trust_env=False)

"""One call over the network: its reply is bounded in size and time, and it never raises."""

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar
from urllib.parse import urlsplit

import httpx2
import stamina
import stamina.instrumentation

from factbook.outbound.calls import Exchange, HostRoute
from factbook.outbound.outcomes import Answer, HostReply
from factbook.telemetry.spans import NO_TRACER, Attributes, Span, Tracer

T = TypeVar("T")

MOST_SECONDS: Final = 30.0
MOST_BYTES: Final = 20 * 1024 * 1024
CONNECT_SECONDS: Final = 5.0

# A source that goes down is logged once, by whoever collects; not at every try.
stamina.instrumentation.set_on_retry_hooks(())


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

    Nothing is taken from the environment; cookies are not kept; redirects are not followed.
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
        """`find_route` raises httpx2.TransportError; without it there are no routes."""
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
        """The host's reply, or the reason that none came."""
        self._under_way += 1
        try:
            about = {"http.request.method": method, **_place(url)}
            with self._tracer.span(method, about, outgoing=True) as span:
                reply = await self._ended(self._exchanged(method, url, headers, content))
                _note(span, reply)
            return reply
        finally:
            self._under_way -= 1
            if self._closed and not self._under_way:
                await self._transport.aclose()

    async def route(self) -> HostRoute | HostReply:
        """The route to the host for another program, or the reason that there is none."""
        if self._find_route is None:
            return HostReply(0, failure="other programs have no way to it")
        return await self._ended(self._find_route())

    async def delegated(self, exchange: Exchange, proof: Mapping[str, str]) -> HostReply:
        """The reply that another program obtains from the host with the authenticating headers."""
        route = await self.route()
        if isinstance(route, HostReply):
            return route
        with self._tracer.span("exchange", _place(route.url), outgoing=True) as span:
            reply = await exchange(replace(route, headers=proof))
            _note(span, reply)
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
            return _broken(error)
        except (UnicodeEncodeError, httpx2.InvalidURL):
            # Their texts repeat what could not be sent, which may be the credential.
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
            body = await _read(response.stream, encoding, self._most_bytes)
        finally:
            await response.aclose()
        found = {name.lower(): value for name, value in response.headers.items()}
        return HostReply(response.status_code, found, body)

    async def repeat(
        self, once: Callable[[], Awaitable[tuple[Answer, bool]]], attempts: int
    ) -> Answer:
        """The answer of `once`, repeated until it reports that another attempt would not help.

        At most `attempts` times, with growing, jittered pauses between.
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


def _place(url: str) -> Attributes:
    """The call's destination as attributes of a trace; a path or a query may hold a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:  # it is not called either
        return {}
    host = parts.hostname or ""
    return {"url.scheme": parts.scheme, "server.address": host, "server.port": port}


def _note(span: Span, reply: HostReply) -> None:
    if reply.status:
        span.note({"http.response.status_code": reply.status})
    if not reply.status or reply.status >= 400:
        span.fail(str(reply.status) if reply.status else "no_answer")


async def _read(chunks: AsyncIterable[bytes], encoding: str, most: int) -> bytes:
    """The body, decompressed in chunks, so that a small one cannot expand without limit.

    Raises _UnreadableError if it is too large before or after decompression, or in an encoding
    that was not requested.
    """
    encoding = encoding.strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise _UnreadableError("the answer is compressed in a way that was not asked for")
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
    raw = 0
    body = bytearray()
    async for chunk in chunks:
        raw += len(chunk)
        body += _unpacked(unpacker, chunk, most + 1 - len(body))
        if raw > most or len(body) > most:
            raise _UnreadableError(f"the answer is larger than {most} bytes")
    if unpacker and raw and not unpacker.eof:
        raise _UnreadableError("the answer is compressed and cut off")
    return bytes(body)


def _unpacked(unpacker: "zlib._Decompress | None", chunk: bytes, room: int) -> bytes:
    if unpacker is None:
        return chunk
    try:
        return b"" if unpacker.eof else unpacker.decompress(chunk, room)
    except zlib.error:
        raise _UnreadableError("the answer is not compressed as it says") from None


def _broken(error: httpx2.TransportError) -> HostReply:
    if _caused_by_certificate(error):
        text = "its certificate is not trusted; outgoing_ca_file can name a private authority"
        return HostReply(0, failure=text)
    if isinstance(error, httpx2.ProxyError):
        return HostReply(0, failure="the proxy did not let the call through", repeatable=True)
    if isinstance(error, httpx2.LocalProtocolError | httpx2.UnsupportedProtocol):
        return HostReply(0, failure="the call cannot be put into HTTP")
    if isinstance(error, httpx2.RemoteProtocolError):
        return HostReply(0, failure="what came is not whole HTTP", repeatable=True)
    if isinstance(error, httpx2.ConnectError):
        return HostReply(0, failure="no connection", repeatable=True)
    return HostReply(0, failure="the connection broke", repeatable=True)


def _caused_by_certificate(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False

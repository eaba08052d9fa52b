"""HTTP/1.1 connections protected from clients that keep them open or fill memory.

Uvicorn limits the idle time between two requests. This module adds limits for requests that don't
arrive, answers that aren't read, and framing bytes around a body.

It also decides where a request ends. Requests to upgrade the protocol are read as if they didn't
ask, including their body. Reading ends after a refused request or the last one of a connection.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# Names in lower case, and values, in the order of arrival.
Headers = Sequence[tuple[bytes, bytes]]

_BLANKS: Final = b" \t"
# Headers that must not repeat: a second one would make the host or the end ambiguous.
_ONCE: Final = (b"host", b"content-length", b"transfer-encoding")
_BAD: Final = b"400 Bad Request"
_NOT_IMPLEMENTED: Final = b"501 Not Implemented"
_OTHER_VERSION: Final = b"505 HTTP Version Not Supported"

log = structlog.get_logger("factbook.connections")

_PAUSE_BETWEEN_LINES: Final = 60.0  # seconds

Later = Callable[[float, Callable[[], None]], Any]

# Bytes a second below which a client counts as slow.
LEAST_RATE: Final = 500

# Offset of `tcpi_bytes_acked` in Linux's `struct tcp_info`, and the length up to its end.
_ACKNOWLEDGED: Final = struct.Struct("=120xQ")

# Bytes of a request outside its body: request line and headers, or framing of chunks.
MOST_HEAD: Final = 64 * 1024
# Framing bytes allowed for each byte of a chunked body.
_FRAMING: Final = 16
# Start of an interim answer, and the header of a body of known length.
_INTERIM: Final = b"HTTP/1.1 100"
_LENGTH: Final = b"\r\ncontent-length: "


def refuse_head(method: bytes, version: str, headers: Headers) -> bytes:
    """Status to refuse a request with; empty if its host and its end are unambiguous."""
    if version not in {"1.0", "1.1"}:
        return _OTHER_VERSION
    if method == b"CONNECT":
        return _NOT_IMPLEMENTED  # all following bytes would belong to the tunnel
    values = dict(headers)
    if len(values) < len(headers):
        names = [name for name, _ in headers]
        if any(names.count(name) > 1 for name in _ONCE):
            return _BAD
    if version == "1.1" and b"host" not in values:
        return _BAD
    length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
    if coding is None:
        has_one_end = length is None or length.strip(_BLANKS).isdigit()
    else:
        is_chunked = coding.strip(_BLANKS).lower() == b"chunked"
        has_one_end = is_chunked and version == "1.1" and length is None
    return b"" if has_one_end else _BAD


def asks_to_wait(headers: Headers) -> bool:
    """True if the client may wait for an interim answer before it sends the body."""
    return b"expect" in dict(headers)


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """Rebuild the request head without its request to upgrade the protocol."""
    lines = [b"%s %s HTTP/%s" % (method, target, version.encode())]
    lines += [b"%s: %s" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])


class Tally:
    """Logs the first event at once, then a count for each minute with events."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counts: Counter[str] = Counter()
        self._pauses = False

    def add(self, kind: str, later: Later) -> None:
        """Count an event; `later` schedules a function in seconds. Use only a few kinds."""
        self._counts[kind] += 1
        if not self._pauses:
            self._tell(later)

    def _tell(self, later: Later) -> None:
        self._pauses = bool(self._counts)
        if self._pauses:
            log.warning(self._event, counts=dict(self._counts))
            self._counts.clear()
            later(_PAUSE_BETWEEN_LINES, partial(self._tell, later))


class Uptake:
    """Byte credit of a connection's client: time uses it up, and reading restores it.

    The credit lasts `patience` seconds at the minimum rate. Readers and proxies often take more
    than a megabyte at once and then nothing for a while, so a single pause proves little.
    """

    def __init__(self, transport: asyncio.Transport, patience: float) -> None:
        self._transport = transport
        self._most = self._credit = patience * LEAST_RATE
        self._unsent = 0  # bytes at the last check
        self._acknowledged = 0

    def is_too_slow(self, seconds: float) -> bool:
        """Return true if the credit is used up, `seconds` after the last check."""
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        if not self._unsent:
            self._credit = self._most
            return False
        acknowledged, self._acknowledged = self._acknowledged, self._total_acknowledged()
        if not before:
            return False  # nothing was waiting for part of this time
        taken: float = self._acknowledged - acknowledged
        if not self._acknowledged:
            # Without system counters: the buffer grows only after the client took most of it.
            taken = before - self._unsent if self._unsent <= before else self._most
        self._credit = min(self._most, self._credit + taken - seconds * LEAST_RATE)
        return self._credit <= 0

    def _total_acknowledged(self) -> int:
        """Bytes that the client's system has acknowledged since the start; 0 if unsupported.

        The write buffer alone moves in steps: for a slow client, the kernel takes more bytes only
        when a third of its own buffer, which grows to megabytes, is free.
        """
        connection = self._transport.get_extra_info("socket")
        try:
            information = connection.getsockopt(
                socket.IPPROTO_TCP, socket.TCP_INFO, _ACKNOWLEDGED.size
            )
            (total,) = _ACKNOWLEDGED.unpack(information)
        except (AttributeError, OSError, struct.error):
            return 0
        return int(total)


class _RefusedError(Exception):
    """The request head was refused; the answer is already written."""


class _Flow(FlowControl):
    """Flow control that wakes waiting senders when the client is gone."""

    is_lost = False

    async def drain(self) -> None:
        """Wait until more can be sent; raises ConnectionResetError if the connection is gone."""
        await super().drain()
        if self.is_lost:
            raise ConnectionResetError


class _JoinedWrites:
    """Transport of one answer that writes the head with the first piece of the body.

    Each write is a system call, and a separate first write would wake the client for the head
    alone. The head of a body of unknown length, which is produced while sent, goes ahead of it.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None  # None: not here yet; empty: written

    def write(self, data: bytes) -> None:
        """Write the data; a head with a content length is kept until its body arrives."""
        head = self._head
        if head is None and not data.startswith(_INTERIM):
            self._head = data if _LENGTH in data else b""
            if self._head:
                return
        if head:
            self._transport.writelines((head, data))
            self._head = b""
        else:
            self._transport.write(data)

    def is_closing(self) -> bool:
        """True once the transport takes no more."""
        return self._transport.is_closing()

    def close(self) -> None:
        """Close the transport once everything is written."""
        if self._head:
            self.write(b"")
        self._transport.close()


class HttpConnection(HttpToolsProtocol):
    """HTTP/1.1 connection that disconnects clients who send slowly for `patience` seconds.

    Clients that read an answer slowly are disconnected after `answer_patience` seconds.
    """

    patience = 30.0
    answer_patience = 120.0
    look_every = 5.0  # seconds
    refused: ClassVar = Tally("requests.refused")  # of all connections of the process

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.parser = HttpRequestParser(self)  # stricter than Uvicorn's
        self._arriving = False  # a request has started to arrive, but not ended
        self._begun = False  # its headers have arrived
        self._is_last = False  # the last request of this connection has arrived
        self._started: RequestResponseCycle | None = None  # the newest that the application got
        self._beside = 0  # bytes outside the body, without the piece the request began in
        self._piece = 0  # bytes of the current piece
        self._first = 0  # bytes of the piece that this request began in
        self._received = 0  # bytes since the last check
        self._slow_request = 0.0  # seconds
        self._next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the server
        super().connection_made(transport)
        self.flow = self._flow = _Flow(transport)
        self._uptake = Uptake(transport, self.answer_patience)
        self._next_look = self.loop.call_later(self.look_every, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        self._flow.is_lost = True
        self._disconnect()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        # Uvicorn waits for running answers, and open-ended ones stop only on this event.
        if stopping := self.app_state.get("stopping"):
            stopping.set()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._is_last or self.transport.is_closing():
            return
        self._piece = len(data)
        self._received += self._piece
        self._beside += self._piece
        self._unset_keepalive_if_required()
        self._parse(data)
        if self._beside > MOST_HEAD and not self._is_last:
            self._refuse(b"431 Request Header Fields Too Large")

    def _parse(self, data: bytes) -> None:
        """Parse all data, or stop at an invalid request or after the last request."""
        pieces = [memoryview(data)]
        while pieces:
            piece = pieces.pop()
            try:
                self.parser.feed_data(piece)
            except HttpParserUpgrade as upgrade:
                # This parser has skipped the body. A new one reads the head again, then the rest.
                method, version = self.parser.get_method(), self.parser.get_http_version()
                pieces += [
                    piece[upgrade.args[0] :],
                    memoryview(without_upgrade(method, self.url, version, self.headers)),
                ]
                self.parser = HttpRequestParser(self)
            except HttpParserError:
                if not self._is_last:
                    self._refuse(b"400 Bad Request")
                return

    def on_message_begin(self) -> None:
        if self._is_last:
            raise _RefusedError
        super().on_message_begin()
        self._arriving = True
        self._first = self._piece
        self._beside = 0
        self._slow_request = 0.0

    def on_headers_complete(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version()
        status = refuse_head(method, version, self.headers)
        if self._first + self._beside > MOST_HEAD and self._head() > MOST_HEAD:
            status = b"431 Request Header Fields Too Large"
        if status:
            self._refuse(status)
            raise _RefusedError
        if self.parser.should_upgrade():
            return  # `_parse` feeds the request again
        self._begun = True
        super().on_headers_complete()
        if asks_to_wait(self.headers):
            # A client that gets a final answer instead may skip the body.
            self.cycle.keep_alive = False
            self.cycle.waiting_for_100_continue &= version == "1.1"
        # Otherwise trailers, which follow the body, would count as request headers.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._beside = max(0, self._beside - (_FRAMING + 1) * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        self._is_last = not self.cycle.keep_alive
        self._arriving = self._begun = False
        self._beside = 0
        self._slow_request = 0.0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._started = cycle
        if cycle.scope["method"] != "HEAD":
            cycle.transport = _JoinedWrites(self.transport)  # type: ignore[assignment]  # what a cycle uses
        super()._start_asgi_task(cycle, app)

    def _disconnect(self) -> None:
        """Tell running applications that the client is gone, and drop their output."""
        for cycle in (self._started, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _head(self) -> int:
        """Approximate size of the request line and headers in bytes."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _look(self) -> None:
        """Disconnect the client if it is too slow, else schedule the next check."""
        if self._uptake.is_too_slow(self.look_every):
            # The answer ends before its announced length or its last chunk.
            if incomplete := self.app_state.get("incomplete"):
                incomplete.add("slow")
            self.transport.abort()
            return
        enough = self.look_every * LEAST_RATE
        waiting = self._waits_for_the_client()
        # Bytes that arrive after the answer are discarded, so their rate doesn't count.
        slow = waiting and (self._received < enough or self._is_answered())
        self._slow_request = max(
            0.0, self._slow_request + (self.look_every if slow else -self.look_every)
        )
        self._received = 0
        if self._slow_request >= self.patience and not self.transport.is_closing():
            self._refuse(b"408 Request Timeout" if self._arriving else b"")
        self._next_look = self.loop.call_later(self.look_every, self._look)

    def _waits_for_the_client(self) -> bool:
        """True if the server waits for the client and nothing here keeps it from sending."""
        if self.flow.read_paused:
            return False
        if self._begun:
            return not self.cycle.waiting_for_100_continue or self._is_answered()
        return self.cycle is None or self._is_answered()

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _refuse(self, status: bytes) -> None:
        """Disconnect, sending an error response if there is a status and no answer has begun."""
        if self.transport.is_closing():
            return
        if status:
            self.refused.add(status.decode(), self.loop.call_later)
        # Until this request's headers arrive, `cycle` belongs to the request before.
        of_this = self._begun and self.cycle is not None and not self.cycle.response_started
        silent = self.cycle is None or self._is_answered() or of_this
        if status and silent and not self.pipeline and not (self._begun and self._is_answered()):
            self.transport.write(
                b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status
            )
        self._disconnect()
        self.transport.close()

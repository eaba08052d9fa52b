"""HTTP/1.1 connections bounded against clients that hold them open or fill memory.

The server bounds the idle time between two requests. This adds bounds on a request that does not
arrive, on an answer that is not read, and on framing bytes around a body.

It also settles where a request ends. No other protocol is ever spoken: a request that asks for one
is read as if it did not, body and all. Nothing is read after a request that is refused, or that is
the last of its connection.
"""

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import structlog
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

# Names in lower case, and values, in the order of arrival.
Headers = Sequence[tuple[bytes, bytes]]

_BLANKS: Final = b" \t"
# Headers of which a second one would leave it open whose request this is, or where it ends.
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

# Bytes of a request beside its body: its line and headers, or what frames the body's chunks.
MOST_HEAD: Final = 64 * 1024
# Bytes of framing that each byte of a body in chunks may take.
_FRAMING: Final = 16
# Beginning of an answer before the answer, and the header of a body of known length.
_INTERIM: Final = b"HTTP/1.1 100"
_LENGTH: Final = b"\r\ncontent-length: "


def refuse_head(method: bytes, version: str, headers: Headers) -> bytes:
    """Status to refuse a head with; empty when the request has one host and one end."""
    if version not in {"1.0", "1.1"}:
        return _OTHER_VERSION
    if method == b"CONNECT":
        return _NOT_IMPLEMENTED  # all that follows it would be for the tunnel
    values = dict(headers)
    if len(values) < len(headers):
        names = [name for name, _ in headers]
        if any(names.count(name) > 1 for name in _ONCE):
            return _BAD
    if version == "1.1" and b"host" not in values:
        return _BAD
    return b"" if _has_one_end(version, values) else _BAD


def asks_to_wait(headers: Headers) -> bool:
    """True if the client may withhold the body, depending on the answer."""
    return b"expect" in dict(headers)


def without_upgrade(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    """The head as sent by a client that asks for no other protocol."""
    lines = [b"%s %s HTTP/%s" % (method, target, version.encode())]
    lines += [b"%s: %s" % (name, value) for name, value in headers if name != b"upgrade"]
    return b"\r\n".join([*lines, b"", b""])


def _has_one_end(version: str, values: Mapping[bytes, bytes]) -> bool:
    length, coding = values.get(b"content-length"), values.get(b"transfer-encoding")
    if coding is not None:
        is_chunked = coding.strip(_BLANKS).lower() == b"chunked"
        return is_chunked and version == "1.1" and length is None
    return length is None or length.strip(_BLANKS).isdigit()


class Tally:
    """Logs the first event at once, then the counts of each minute that had some."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counts: Counter[str] = Counter()
        self._pauses = False

    def add(self, kind: str, later: Later) -> None:
        """Count one event; `later` schedules a function in seconds. Kinds have to be few."""
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
    """Credit of one connection's client in bytes: time uses it up, and reading restores it.

    It holds `patience` seconds at the minimum rate. A reader, or a proxy before it, takes more than
    a megabyte at once and then nothing for a while, so that a single pause says little.
    """

    def __init__(self, transport: asyncio.Transport, patience: float) -> None:
        self._transport = transport
        self._most = self._credit = patience * LEAST_RATE
        self._unsent = 0  # bytes at the last look
        self._acknowledged = 0

    def is_too_slow(self, seconds: float) -> bool:
        """Return true if the credit is used up, `seconds` after the last look."""
        before, self._unsent = self._unsent, self._transport.get_write_buffer_size()
        if not self._unsent:
            self._credit = self._most
            return False
        acknowledged, self._acknowledged = self._acknowledged, self._total_acknowledged()
        if not before:
            return False  # the answer has not waited for all of this time
        taken: float = self._acknowledged - acknowledged
        if not self._acknowledged:
            # Where the system does not count: the buffer grows only after most of it was taken.
            taken = before - self._unsent if self._unsent <= before else self._most
        self._credit = min(self._most, self._credit + taken - seconds * LEAST_RATE)
        return self._credit <= 0

    def _total_acknowledged(self) -> int:
        """Bytes that the client's system has acknowledged since the start; 0 if unsupported.

        The buffer alone moves in steps: the system here takes the next bytes of a slow client only
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
    """The head of the request is not accepted; the answer is written already."""


class _Flow(FlowControl):
    """Back-pressure that wakes waiting senders when the client is gone."""

    is_lost = False

    async def drain(self) -> None:
        """Return when more can be sent; raises ConnectionResetError when the connection is gone."""
        await super().drain()
        if self.is_lost:
            raise ConnectionResetError


class _JoinedWrites:
    """Transport of one answer: the head is written with the first piece of a body of known length.

    Each write is a system call, and the first of them would wake the client for the head alone.
    A body without a length is sent while it is made, so its head goes ahead of it.
    """

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = None  # not here yet; empty: it was written

    def write(self, data: bytes) -> None:
        """Write the data, after the head; a head with a length is kept for its body."""
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
    """HTTP/1.1 with bounds: a client that is slow for `patience` seconds is disconnected.

    One that reads its answer slowly has `answer_patience` seconds.
    """

    patience = 30.0
    answer_patience = 120.0
    look_every = 5.0  # seconds
    refused: ClassVar = Tally("requests.refused")  # of all connections of the process

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.parser = HttpRequestParser(self)  # without the leniency of the server's
        self._arriving = False  # a request has begun to arrive, and its end is not here
        self._begun = False  # its headers are here
        self._is_last = False  # the last request of this connection is here
        self._started: RequestResponseCycle | None = None  # the newest that the application has
        self._beside = 0  # bytes of this request beside its body, without the piece it began in
        self._piece = 0  # bytes that came at once
        self._first = 0  # bytes of the piece that this request began in
        self._received = 0  # bytes since the last look
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
        # The server waits for answers under way, of which some end only when they are told to.
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
        """Parse the data up to its end, an invalid request, or the end of the last request."""
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
            return  # `_parse` has it read again
        self._begun = True
        super().on_headers_complete()
        if asks_to_wait(self.headers):
            # An answer may come in place of the body, and a client may go on without sending it.
            self.cycle.keep_alive = False
            self.cycle.waiting_for_100_continue &= version == "1.1"
        # Trailers, which come behind a body, would be taken for headers of the request.
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
        """Drop further output of the running application and notify it."""
        for cycle in (self._started, self.cycle):
            if cycle is not None and not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _head(self) -> int:
        """Approximate size of the request line and headers in bytes."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _look(self) -> None:
        """Disconnect a client that has been slow for too long; else check again later."""
        if self._uptake.is_too_slow(self.look_every):
            # The client gets less than announced, or no last chunk.
            if incomplete := self.app_state.get("incomplete"):
                incomplete.add("slow")
            self.transport.abort()
            return
        enough = self.look_every * LEAST_RATE
        waiting = self._waits_for_the_client()
        # What comes behind the answer is thrown away, however quickly.
        slow = waiting and (self._received < enough or self._is_answered())
        self._slow_request = max(
            0.0, self._slow_request + (self.look_every if slow else -self.look_every)
        )
        self._received = 0
        if self._slow_request >= self.patience and not self.transport.is_closing():
            self._refuse(b"408 Request Timeout" if self._arriving else b"")
        self._next_look = self.loop.call_later(self.look_every, self._look)

    def _waits_for_the_client(self) -> bool:
        """True if only the client can make progress, and nothing here keeps it from sending."""
        if self.flow.read_paused:
            return False
        if self._begun:
            return not self.cycle.waiting_for_100_continue or self._is_answered()
        return self.cycle is None or self._is_answered()

    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _refuse(self, status: bytes) -> None:
        """Disconnect, with an error response unless one has begun or no status is given."""
        if self.transport.is_closing():
            return
        if status:
            self.refused.add(status.decode(), self.loop.call_later)
        # Before its headers are here, what is not answered is the request before it.
        of_this = self._begun and self.cycle is not None and not self.cycle.response_started
        silent = self.cycle is None or self._is_answered() or of_this
        if status and silent and not self.pipeline and not (self._begun and self._is_answered()):
            self.transport.write(
                b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status
            )
        self._disconnect()
        self.transport.close()

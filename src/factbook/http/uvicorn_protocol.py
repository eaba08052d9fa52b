"""HTTP/1.1 connections bounded against clients that hold them open or fill memory.

The server bounds the idle time between two requests. This adds bounds on a request that does not
arrive, on an answer that is not read, and on framing bytes around a body.

It also settles where a request ends. No other protocol is ever spoken: a request that asks for one
is read as if it did not, body and all. Nothing is read after a request that is refused, or that is
the last of its connection.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Bytes of a request beside its body: its line and headers, or what frames the body's chunks.
MOST_HEAD: Final = 64 * 1024
# Bytes of framing that each byte of a body in chunks may take.
_FRAMING: Final = 16
# Bytes a second below which a client counts as slow.
_SLOWEST: Final = 500


class _RefusedError(Exception):
    """The head of the request is not accepted; the answer is written already."""


class HttpConnection(HttpToolsProtocol):
    """HTTP/1.1 with bounds: a client that is slow for `patience` seconds is disconnected.

    One that reads its answer slowly has `answer_patience` seconds.
    """

    patience = 30.0
    look_every = 5.0  # seconds

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._arriving = False  # a request has begun to arrive, and its end is not here
        self._begun = False  # its headers are here
        self._beside = 0  # bytes of this request beside its body, without the piece it began in
        self._piece = 0  # bytes that came at once
        self._first = 0  # bytes of the piece that this request began in
        self._received = 0  # bytes since the last look
        self._unsent = 0  # bytes at the last look
        self._slow_request = 0.0  # seconds
        self._slow_answer = 0.0
        self._next_look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in the server
        super().connection_made(transport)
        self._next_look = self.loop.call_later(self.look_every, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._piece = len(data)
        self._received += self._piece
        self._beside += self._piece
        super().data_received(data)
        if self._beside > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._arriving = True
        self._first = self._piece
        self._beside = 0
        self._slow_request = 0.0

    def on_headers_complete(self) -> None:
        # A proxy may have gone by another of them than what is here.
        if sum(name == b"host" for name, _ in self.headers) > 1:
            self._refuse(b"400 Bad Request")
            raise _RefusedError
        if self._first + self._beside > MOST_HEAD and self._head() > MOST_HEAD:
            self._refuse(b"431 Request Header Fields Too Large")
            raise _RefusedError
        self._begun = True
        super().on_headers_complete()
        # Trailers, which come behind a body, would be taken for headers of the request.
        self.headers = []

    def on_body(self, body: bytes) -> None:
        self._beside = max(0, self._beside - (_FRAMING + 1) * len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._arriving = self._begun = False
        self._beside = 0
        self._slow_request = 0.0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        if not self.transport.is_closing():
            super().send_400_response(msg)

    def _head(self) -> int:
        """Approximate size of the request line and headers in bytes."""
        return len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)

    def _look(self) -> None:
        """Hang up on a client that has been slow for too long; else look again later."""
        enough = self.look_every * _SLOWEST
        self._slow_answer = self._after(self._slow_answer, slow=self._answer_is_slow(enough))
        waiting = self._waits_for_the_client()
        # What comes behind the answer is thrown away, however quickly.
        slow = waiting and (self._received < enough or self._is_answered())
        self._slow_request = self._after(self._slow_request, slow=slow)
        self._received = 0
        if self._slow_answer >= self.patience:
            self.transport.abort()
            return
        if self._slow_request >= self.patience and not self.transport.is_closing():
            self._refuse(b"408 Request Timeout" if self._arriving else b"")
        self._next_look = self.loop.call_later(self.look_every, self._look)

    def _after(self, slow_seconds: float, *, slow: bool) -> float:
        """Seconds for which a client has been slow, updated since the last look."""
        return max(0.0, slow_seconds + (self.look_every if slow else -self.look_every))

    def _answer_is_slow(self, enough: float) -> bool:
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        return self._unsent > 0 and 0 <= before - self._unsent < enough

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
        # Before its headers are here, what is not answered is the request before it.
        of_this = self._begun and self.cycle is not None and not self.cycle.response_started
        silent = self.cycle is None or self._is_answered() or of_this
        if status and silent and not self.pipeline and not (self._begun and self._is_answered()):
            self.transport.write(
                b"HTTP/1.1 %s\r\nconnection: close\r\ncontent-length: 0\r\n\r\n" % status
            )
        self.transport.close()

"""The service's connections without a network: each segment arrives at the moment a test says."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from factbook.http.uvicorn_protocol import HttpConnection

# Turns of the event loop in which a request is answered that arrived whole.
TURNS: Final = 12
_MOST_TURNS: Final = 10_000

# Bytes arrive, or the client is done sending, or resets the stream, or the server is told to stop.
Event = bytes | Literal["end", "reset", "stop"]


@dataclass(slots=True)
class Seen:
    """A request as a reader sees it; not complete where the end of its body has not been seen."""

    method: str
    target: bytes
    body: bytes = b""
    complete: bool = False


@dataclass
class Recorder:
    """An application that notes each request; the end of a path decides how it is answered."""

    seen: list[Seen] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope["query_string"]
        target = scope["raw_path"] + (b"?" + query if query else b"")
        request = Seen(scope["method"], target)
        self.seen.append(request)
        path = scope["path"]
        if path.endswith("/fails"):
            raise ValueError("This request is to fail.")
        if not path.endswith("/early"):
            await self._read(request, receive, once=path.endswith("/once"))
        if path.endswith("/late"):
            for _ in range(TURNS // 3):
                await asyncio.sleep(0)
        headers = [(b"content-length", b"2")]
        if path.endswith("/closes"):
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"ok"})

    async def _read(self, request: Seen, receive: Receive, *, once: bool) -> None:
        while not request.complete:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            request.body += message["body"]
            request.complete = not message["more_body"]
            if once:
                return


class Wire(asyncio.Transport):
    """The transport of one connection, which keeps what is written and how the end came."""

    def __init__(self, protocol: HttpConnection) -> None:
        super().__init__({"peername": ("192.0.2.7", 40_000), "sockname": ("127.0.0.1", 8000)})
        self.protocol = protocol
        self.writes: list[bytes] = []
        self.is_paused = False
        self.is_lost = False
        self._closing = False

    def write(self, data: Any) -> None:
        if not self._closing:
            self.writes.append(bytes(data))

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            asyncio.get_running_loop().call_soon(self.lose, None)

    def abort(self) -> None:
        self._closing = True
        self.lose(None)

    def lose(self, error: Exception | None) -> None:
        """Tell the protocol, once, that the connection is gone."""
        if not self.is_lost:
            self._closing = self.is_lost = True
            self.protocol.connection_lost(error)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def get_write_buffer_size(self) -> int:
        return 0


class Loop(asyncio.BaseEventLoop):
    """An event loop that waits for nothing: nothing happens on it but what a test does."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self

    def select(self, timeout: float | None) -> list[Any]:
        """No file is ever ready."""
        return []

    def _process_events(self, events: list[Any]) -> None:
        assert not events

    async def settle(self, turns: int) -> None:
        """Let so many turns pass, or as many as there is something to do in."""
        while turns > 0 and self._ready:  # type: ignore[attr-defined]  # of the base class
            await asyncio.sleep(0)
            turns -= 1


def converse(
    events: Iterable[Event],
    application: Callable[[Scope, Receive, Send], Awaitable[None]],
    *,
    turns: int = TURNS,
) -> bytes:
    """All that is answered to these events, with so many turns of the event loop before each."""
    return b"".join(writes(events, application, turns=turns))


def writes(
    events: Iterable[Event],
    application: Callable[[Scope, Receive, Send], Awaitable[None]],
    *,
    turns: int = TURNS,
) -> list[bytes]:
    """The same, by the writes that bring it."""
    loop = _loop()
    return loop.run_until_complete(_converse(loop, events, application, turns))


async def _converse(
    loop: Loop, events: Iterable[Event], application: Any, turns: int
) -> list[bytes]:
    state = ServerState()
    protocol = HttpConnection(_CONFIG, state, {})
    protocol.app = application
    wire = Wire(protocol)
    protocol.connection_made(wire)
    for event in events:
        await loop.settle(turns)
        if wire.is_paused:
            await loop.settle(TURNS)
        if wire.is_closing() or wire.is_paused:
            break
        _happen(protocol, wire, event)
    await loop.settle(_MOST_TURNS)
    wire.lose(None)
    protocol._unset_keepalive_if_required()
    await asyncio.gather(*state.tasks)
    return wire.writes


def _happen(protocol: HttpConnection, wire: Wire, event: Event) -> None:
    if isinstance(event, bytes):
        protocol.data_received(event)
    elif event == "stop":
        protocol.shutdown()
    else:
        wire.lose(ConnectionResetError() if event == "reset" else None)


@functools.cache
def _loop() -> Loop:
    return Loop()


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands for an application until a conversation brings its own."""


_CONFIG: Final = uvicorn.Config(_nothing, ws="none", lifespan="off", log_config=None)
_CONFIG.load()

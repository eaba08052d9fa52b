"""A client that takes its answer slowly, in a time that passes only as fast as nothing happens."""

import asyncio
import selectors
import socket
import struct
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from factbook.http.uvicorn_protocol import HttpConnection

T = TypeVar("T")

_TICK = 0.5  # seconds
_SHORT = 0.02


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns; while a slow reader reads, the next timer is due at once."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(work)


class _VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop whose time passes while it waits, and never while anything is done."""

    def __init__(self) -> None:
        self.leaps = False
        self.now = 0.0
        super().__init__(_Leaping(self))

    def time(self) -> float:
        return self.now


class _Leaping(selectors.SelectSelector):
    def __init__(self, loop: _VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._loop.leaps:
            # Threads are at work, for which the loop waits truly.
            timeout = _SHORT if timeout is None else min(timeout, _SHORT)
            ready = super().select(timeout)
        else:
            ready = super().select(0)
        if timeout is not None and not ready:
            self._loop.now += timeout
        return ready


class SlowReader(asyncio.Transport):
    """Connection to a client that takes `rate` bytes a second through its system's buffer.

    As on Linux, a full buffer takes nothing more before a third of it is free. Where the system
    does not count what is confirmed, `counts` is False.
    """

    system_buffer = 4 * 1024 * 1024
    high, low = 64 * 1024, 16 * 1024

    def __init__(self, app: ASGIApp, state: dict[str, Any], rate: int, *, counts: bool) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self._rate = rate
        self._counts = counts
        self._unsent = bytearray()
        self._in_system = bytearray()
        self._is_full = self._is_paused = False
        self.received = bytearray()
        self._closing = False
        self.ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        assert isinstance(loop, _VirtualLoop)
        self._loop = loop
        config = uvicorn.Config(app, lifespan="off", log_config=None)
        self._protocol = HttpConnection(
            config=config, server_state=ServerState(), app_state=state, _loop=loop
        )
        self._protocol.connection_made(self)
        loop.leaps = True
        self._tick()

    def ask(self, path: str) -> None:
        """Send a request, after which the server closes the connection."""
        request = f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
        self._protocol.data_received(request.encode())

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else super().get_extra_info(name, default)

    @property
    def family(self) -> int:
        return socket.AF_INET

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 1)

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 2)

    def getsockopt(self, *_: int) -> bytes:
        """What the client's system has confirmed, as `struct tcp_info` says it."""
        if not self._counts:
            raise OSError
        return struct.pack("=120xQ", len(self.received))

    def write(self, data: Any) -> None:
        self._unsent += data
        self._fill()
        if len(self._unsent) > self.high and not self._is_paused:
            self._is_paused = True
            self._protocol.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self._closing = True

    def abort(self) -> None:
        self._closing = True
        self._unsent.clear()
        self._in_system.clear()

    def _fill(self) -> None:
        if not self._is_full:
            room = self.system_buffer - len(self._in_system)
            self._in_system += self._unsent[:room]
            del self._unsent[:room]
            self._is_full = len(self._in_system) == self.system_buffer

    def _tick(self) -> None:
        """Let the client take what it takes, then the system, then the server."""
        taken = int(self._rate * _TICK)
        self.received += self._in_system[:taken]
        del self._in_system[:taken]
        self._is_full = self._is_full and len(self._in_system) > self.system_buffer * 2 // 3
        self._fill()
        if self._is_paused and len(self._unsent) < self.low:
            self._is_paused = False
            self._protocol.resume_writing()
        if self._closing and not self._unsent and not self._in_system:
            self._protocol.connection_lost(None)
            self._loop.leaps = False
            self.ended.set()
            return
        self._loop.call_later(_TICK, self._tick)

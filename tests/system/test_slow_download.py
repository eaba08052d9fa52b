"""A long answer to a slow client over real sockets, with every time sixty times as short."""

import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from factbook.http.pipeline import IncompleteAnswers, send_reply
from factbook.http.requests import Reply
from factbook.http.uvicorn_protocol import HttpConnection
from factbook.observability.metrics import Metrics

pytestmark = pytest.mark.system

FASTER = 60
LENGTH = 32 * 1024 * 1024
PIECE = 4 * 1024 * 1024
RATE = 40_000 * FASTER


class Hurried(HttpConnection):
    """The bounds of the service, as much quicker as the client is."""

    patience = HttpConnection.patience / FASTER
    answer_patience = HttpConnection.answer_patience / FASTER
    look_every = HttpConnection.look_every / FASTER


async def _pieces() -> AsyncIterator[bytes]:
    for _ in range(LENGTH // PIECE):
        yield b"x" * PIECE


async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
    """Answers `/pieces` piece by piece, anything else whole."""
    body = _pieces() if scope["path"] == "/pieces" else b"x" * LENGTH
    await send_reply(Reply(body), send, IncompleteAnswers(Metrics()), head=False)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(answer, http=Hurried, loop="uvloop", lifespan="off")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(30)


@pytest.mark.parametrize("path", ["/pieces", "/whole"])
def test_a_client_at_40_kilobytes_a_second_gets_32_megabytes(port: int, path: str) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        begun, received, end = time.monotonic(), 0, b""
        while piece := connection.recv(64 * 1024):
            received += len(piece)
            end = (end + piece)[-5:]
            # Being slow is what this client is for.
            time.sleep(max(0.0, received / RATE - (time.monotonic() - begun)))
    assert received > LENGTH
    assert end == (b"0\r\n\r\n" if path == "/pieces" else b"xxxxx")

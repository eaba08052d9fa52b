"""Clients that hold a connection open without asking anything or without taking the answer."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from factbook.http.uvicorn_protocol import HttpConnection
from tests.waiting import LONG, until

LARGE = b"x" * 32 * 1024 * 1024
# What a client is to notice, within seconds of this.
LATEST = LONG


class Impatient(HttpConnection):
    """The bounds of the service, sixty times as quick."""

    patience = 0.5
    answer_patience = 2.0
    look_every = 0.05


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers `/refused` before the body is read, `/large` with a large body, else the length."""
    path = scope["path"]
    if path == "/refused":
        answer = PlainTextResponse("no", 401)
    elif path == "/large":
        answer = PlainTextResponse(LARGE)
    else:
        answer = PlainTextResponse(str(len(await Request(scope, receive).body())))
    await answer(scope, receive, send)


@pytest.fixture
def port() -> Iterator[int]:
    """Where `echo` is served by the service's own server, which is told to be impatient."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(
            echo,
            http=Impatient,
            loop="uvloop",
            lifespan="off",
            log_config=None,
            log_level="critical",
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join(30)


@contextmanager
def connected(port: int, *sent: bytes) -> Iterator[socket.socket]:
    """A connection on which this was sent."""
    with socket.create_connection(("127.0.0.1", port), timeout=LATEST) as connection:
        for piece in sent:
            connection.sendall(piece)
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server hangs up."""
    found = bytearray()
    try:
        while piece := connection.recv(1024 * 1024):
            found += piece
    except ConnectionResetError:
        pass
    return bytes(found)


def hung_up_on(connection: socket.socket, piece: bytes) -> bool:
    """Whether the server hangs up while a piece is sent again and again."""
    end = time.monotonic() + LATEST
    while time.monotonic() < end:
        try:
            connection.sendall(piece)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(0.01)  # the pause is what makes the client slow
    return False


def test_a_connection_that_asks_nothing_is_closed(port: int) -> None:
    with connected(port) as connection:
        assert rest(connection) == b""


@pytest.mark.parametrize(
    "begun",
    [
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
    ids=["line", "header", "body", "chunk"],
)
def test_a_request_that_does_not_arrive_is_408(port: int, begun: bytes) -> None:
    with connected(port, begun) as connection:
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


@pytest.mark.spec("security.slow-clients-hold-nothing")
@pytest.mark.parametrize(
    "begun",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Long: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
        b"POST /refused HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n",
    ],
    ids=["header", "body", "body that nobody reads"],
)
def test_a_request_that_drips_in_is_cut_off(port: int, begun: bytes) -> None:
    with connected(port, begun) as connection:
        assert hung_up_on(connection, b"x")


def test_what_is_sent_behind_a_refusal_is_cut_off_however_quickly_it_comes(port: int) -> None:
    begun = b"POST /refused HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with connected(port, begun) as connection:
        assert hung_up_on(connection, b"400\r\n" + b"x" * 1024 + b"\r\n")


@pytest.mark.spec("security.slow-clients-hold-nothing")
def test_an_answer_that_nobody_takes_is_given_up(port: int) -> None:
    with connected(port, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
        connection.recv(1)
        # Nothing is read until the server has given up: then what was on its way is all.
        until(lambda: _is_reset(connection))
        assert len(rest(connection)) < len(LARGE)


def _is_reset(connection: socket.socket) -> bool:
    """Whether the other end has given up the connection, read or not."""
    try:
        connection.sendall(b"\r\n")
    except (BrokenPipeError, ConnectionResetError):
        return True
    return False


def test_a_client_that_is_slow_now_and_then_is_served(port: int) -> None:
    """A large body in pieces with pauses, each shorter than the patience."""
    head = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n"
    with connected(port, head) as connection:
        for _ in range(20):
            connection.sendall(b"x" * 10_000)
            time.sleep(0.05)  # the pause is what makes the client slow
        assert rest(connection).endswith(b"\r\n\r\n200000")


def test_a_slow_client_keeps_nobody_else_waiting(port: int) -> None:
    half = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n"
    open_: list[socket.socket] = []
    try:
        for _ in range(200):
            open_.append(socket.create_connection(("127.0.0.1", port), timeout=LATEST))
            open_[-1].sendall(half)
        with connected(port, b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n") as one:
            assert rest(one).startswith(b"HTTP/1.1 200 ")
        assert all(rest(connection).startswith(b"HTTP/1.1 408 ") for connection in open_)
    finally:
        for connection in open_:
            connection.close()

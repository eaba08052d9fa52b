"""Requests that two programs could read differently, or that are too large beside their body."""

import json
import socket
import struct
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import httpx2
import pytest

from tests.processes import ServerProcess, serving
from tests.service import PUSH, component

HOST = b"Host: 127.0.0.1\r\n"
KIB = 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server on a new file."""
    folder: Path = tmp_path_factory.mktemp("odd")
    with serving(f"sqlite:///{folder}/facts.db", folder, FACTBOOK_FAILED_LOGINS="1000000") as found:
        # The first page takes long, and who hangs up meanwhile is not answered.
        assert httpx2.get(f"{found.url}/sign-in", timeout=60).status_code == 200
        yield found


def answers(server: ServerProcess, request: bytes) -> list[int]:
    """The statuses of all that is answered until the server hangs up, or for want of more."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        lines = rest(connection, request).split(b"HTTP/1.1 ")[1:]
    return [int(line[:3]) for line in lines]


def rest(connection: socket.socket, request: bytes) -> bytes:
    """All that comes when the client sends this and no more."""
    found = bytearray()
    try:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(64 * KIB):
            found += piece
    except OSError:  # the server has hung up already
        pass
    return bytes(found)


@pytest.mark.spec("security.requests-are-read-in-one-way")
def test_a_body_of_unclear_length_is_400_and_nothing_behind_it_is_read(
    server: ServerProcess, subtests: pytest.Subtests
) -> None:
    """Request smuggling: RFC 9112, section 6.3."""
    hidden = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    for headers in [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Content-Length : 5\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        b" Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding\x0b: chunked\r\n",
        b"X: a\nTransfer-Encoding: chunked\r\n",
        b"X: a\rTransfer-Encoding: chunked\r\n",
        b"X: a\x00b\r\n",
    ]:
        with subtests.test(headers=headers):
            request = b"POST /sign-in HTTP/1.1\r\n" + HOST + headers + b"\r\n0\r\n\r\n" + hidden
            assert answers(server, request) == [400]


def test_a_chunk_of_unclear_length_ends_the_connection(
    server: ServerProcess, subtests: pytest.Subtests
) -> None:
    head = b"POST /api/nowhere HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    hidden = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    for chunks in [
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"-1\r\n\r\n",
        b"5 5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n",
    ]:
        with subtests.test(chunks=chunks):
            assert 200 not in answers(server, head + chunks + hidden)


@pytest.mark.spec("security.requests-are-read-in-one-way")
def test_two_hosts_are_400(server: ServerProcess) -> None:
    twice = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n"
    assert answers(server, twice) == [400]
    assert answers(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == [200]


def test_a_refused_request_does_not_answer_the_one_before_it(server: ServerProcess) -> None:
    first = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    second = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Host: other\r\n\r\n"
    assert answers(server, first + second) in ([], [200])


def test_a_host_in_the_line_does_not_get_around_the_host_check(server: ServerProcess) -> None:
    line = b"GET http://127.0.0.1/readyz HTTP/1.1\r\nHost: evil.example\r\n\r\n"
    assert answers(server, line) == [421]


@pytest.mark.spec("security.requests-are-read-in-one-way")
def test_a_head_of_more_than_64_kib_is_431(
    server: ServerProcess, subtests: pytest.Subtests
) -> None:
    for head in [
        b"GET /" + b"a" * 100 * KIB + b" HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 100 * KIB + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"Cookie: a=b\r\n" * 10_000 + b"\r\n",
        b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 8 * KIB * KIB,
    ]:
        with subtests.test(head=head):
            # What is still on its way may hide the answer.
            assert answers(server, head) in ([431], [])
            large = b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 60 * KIB + b"\r\n\r\n"
            assert answers(server, large) == [200]


def test_trailers_are_no_headers_and_bounded(server: ServerProcess) -> None:
    head = b"POST /sign-in HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    # A form without a type; the trailer does not give it one.
    assert answers(server, head + b"Content-Type: application/x-www-form-urlencoded\r\n\r\n") == [
        415
    ]
    assert answers(server, head + b"X: a\r\n" * 200_000)[:1] in ([415], [431], [])
    assert answers(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n") == [200]


@pytest.mark.spec("security.requests-end-in-one-place")
def test_the_body_of_a_declined_upgrade_is_no_request(
    server: ServerProcess, subtests: pytest.Subtests
) -> None:
    """The body comes behind the answer, so in a segment of its own."""
    hidden = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    headers = b"Connection: Upgrade\r\nUpgrade: %s\r\nContent-Length: %d\r\n\r\n"
    for version, method, upgrade in product(
        (b"1.0", b"1.1"),
        (b"GET", b"POST", b"PUT", b"PATCH", b"DELETE"),
        (b"h2c", b"websocket", b"other"),
    ):
        line = method + b" /api/catalog/factbook-entities/sets/a HTTP/" + version + b"\r\n"
        with (
            subtests.test(version=version, method=method, upgrade=upgrade),
            socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection,
        ):
            connection.sendall(line + HOST + headers % (upgrade, len(hidden)))
            refused = connection.recv(64 * KIB)
            assert refused.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 405 ")), refused
            assert refused.count(b"HTTP/1.1 ") == 1
            assert rest(connection, hidden).count(b"HTTP/1.1 ") == 0


@pytest.mark.spec("security.requests-end-in-one-place")
def test_a_push_that_asks_for_an_upgrade_is_stored(server: ServerProcess) -> None:
    """As curl, Java and Ktor send it, which ask for HTTP/2 with each request without TLS."""
    body = json.dumps({"items": [component("web")]}).encode()
    token = server.token("--permission", "catalog.entity-set.write").encode()
    head = (
        b"PUT /api/catalog/factbook-entities/sets/upgraded HTTP/1.1\r\n" + HOST
        + b"Authorization: Bearer " + token + b"\r\nContent-Type: application/json\r\n"
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
        + b"Content-Length: %d\r\n\r\n" % len(body)
    )  # fmt: skip
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head + body)
        assert connection.recv(64 * KIB).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_an_upgrade_that_is_not_offered_is_answered_as_if_it_were_not_asked_for(
    server: ServerProcess,
) -> None:
    asked = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert answers(server, b"GET /healthz HTTP/1.1\r\n" + HOST + asked) == [200]


@pytest.mark.slow
@pytest.mark.spec("security.log-lines-are-bounded")
def test_upgrades_garbage_and_resets_take_few_lines_of_the_log(server: ServerProcess) -> None:
    token = server.token()
    with server.client(token) as client:
        items = [component(f"n{number}", description="x" * 2_000) for number in range(500)]
        assert client.put(f"{PUSH}/sets/large", json={"items": items}).status_code == 200
    permitted = b"Authorization: Bearer " + token.encode() + b"\r\n\r\n"
    large = b"GET " + f"{PUSH}/sets/large".encode() + b" HTTP/1.1\r\n" + HOST + permitted
    upgrade = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    before = len(server.log.read_text().splitlines())
    for _ in range(20):
        reset_after(server, upgrade)
        reset_after(server, b"\x00\x01\r\n\r\n")
        reset_after(server, large * 3)
    assert answers(server, upgrade) == [200]
    lines = [json.loads(line) for line in server.log.read_text().splitlines()[before:]]
    # One for what was refused, and one more where a minute ends meanwhile.
    assert [line["event"] for line in lines] in ([], ["requests.refused"], ["requests.refused"] * 2)


def reset_after(server: ServerProcess, request: bytes) -> None:
    """Send a request, and reset the connection when its answer begins."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request)
        connection.recv(1_000)
        at_once = struct.pack("ii", 1, 0)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

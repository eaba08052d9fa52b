"""Writes to the connection: as many as it takes for the client to have what is ready."""

import asyncio

from starlette.types import Receive, Scope, Send

from tests.wire import Recorder, writes

HOST = b"Host: 127.0.0.1\r\n"
GET = b"GET /read HTTP/1.1\r\n" + HOST + b"\r\n"
# Every header of HTTP in a body, where it means nothing.
QUOTED = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


def test_the_head_of_an_answer_comes_with_its_body() -> None:
    [answer] = writes([GET], Recorder())
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok")


def test_so_does_each_of_several_on_a_connection() -> None:
    answers = writes([GET + GET, GET], Recorder())
    assert [answer[-6:] for answer in answers] == [b"\r\n\r\nok"] * 3


def test_an_answer_to_head_is_its_head() -> None:
    [answer] = writes([GET.replace(b"GET", b"HEAD")], Recorder())
    assert answer.endswith(b"content-length: 2\r\n\r\n")


def test_the_interim_answer_comes_before_the_body_was_sent() -> None:
    ask = b"POST /read HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n"
    interim, answer = writes([ask, b"hello"], Recorder())
    assert interim == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert answer.endswith(b"\r\n\r\nok")


async def in_pieces(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Answer with pieces of a known length, one of which looks like a head."""
    length = b"%d" % (2 * len(QUOTED) + 2)
    headers = [(b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for piece in (b"ok", QUOTED, QUOTED):
        await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def test_further_pieces_come_as_they_are_made_whatever_they_hold() -> None:
    first, *others = writes([GET], in_pieces)
    assert first.endswith(b"\r\n\r\nok")
    assert [piece for piece in others if piece] == [QUOTED, QUOTED]


async def without_a_length(_scope: Scope, receive: Receive, send: Send) -> None:
    """Begin an answer of which no piece is made before the client hangs up."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    while (await receive())["type"] != "http.disconnect":
        pass


def test_the_head_of_a_body_that_is_still_made_does_not_wait_for_it() -> None:
    [head] = writes([GET, "end"], without_a_length)
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")


async def without_its_body(_scope: Scope, _receive: Receive, send: Send) -> None:
    """Announce a body, and fail before it."""
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    raise ValueError("This answer is to fail.")


def test_what_is_announced_and_fails_is_not_answered_in_full() -> None:
    found = b"".join(writes([GET], without_its_body))
    assert found.endswith(b"content-length: 2\r\n\r\n")

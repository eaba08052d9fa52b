"""Hosts that answer too much, too slowly, or not in HTTP; over real connections."""

import asyncio
import gzip
import tracemalloc
import zlib

import pytest

from factbook.outbound.outcomes import Outcome
from tests.outbound.asking import calling, network
from tests.outbound.conftest import Serve, Talk
from tests.outbound.talking import GOOD, endless, heard, saying

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
PIECE = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
MB = 1_000_000


def packed(body: bytes, *, claimed: bytes = b"gzip") -> bytes:
    return (
        HEAD
        + b"content-encoding: "
        + claimed
        + b"\r\ncontent-length: "
        + str(len(body)).encode()
        + b"\r\n\r\n"
        + body
    )


@pytest.mark.slow
async def test_a_hostile_answer_ends_within_its_bounds(
    subtests: pytest.Subtests, serve: Serve
) -> None:
    cases: list[tuple[Talk, str]] = [
        (endless(CHUNKED, PIECE), "the answer is larger than 1000000 bytes"),
        (endless(HEAD + b"\r\n", b" " * 65536), "the answer is larger than 1000000 bytes"),
        (
            saying(packed(gzip.compress(b" " * 50 * MB, 1))),
            "the answer is larger than 1000000 bytes",
        ),
        (
            endless(HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"{}"), b"\0" * 65536),
            "the answer is larger than 1000000 bytes",
        ),
        (saying(packed(gzip.compress(b"{}" * 999)[:-20])), "the answer is compressed and cut off"),
        (saying(packed(b"not gzip at all")), "the answer does not match its content encoding"),
        (
            saying(packed(zlib.compress(b"{}"), claimed=b"deflate")),
            "the answer is compressed in a way that was not requested",
        ),
        (
            saying(packed(gzip.compress(gzip.compress(b"{}")), claimed=b"gzip, gzip")),
            "the answer is compressed in a way that was not requested",
        ),
        (endless(HEAD, b"x-flood: " + b"a" * 1000 + b"\r\n"), "the response is not valid HTTP"),
        (saying(HEAD + b"x: " + b"a" * 200_000), "the response is not valid HTTP"),
        (saying(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"), "the response is not valid HTTP"),
        (
            saying(b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"),
            "the response is not valid HTTP",
        ),
        (saying(b"HTTP/1.1 20"), "no answer within 0.5 seconds"),
        (endless(CHUNKED, b"1\r\n \r\n", pause=0.01), "no answer within 0.5 seconds"),
        (
            endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n", pause=0.01),
            "no answer within 0.5 seconds",
        ),
        (endless(HEAD, b"x: y\r\n", pause=0.01), "no answer within 0.5 seconds"),
    ]
    for number, (talk, detail) in enumerate(cases):
        with subtests.test(number=number, detail=detail):
            port = await serve(talk)
            async with calling(f"http://127.0.0.1:{port}", network(), seconds=0.5) as client:
                answer = await client.get("x", attempts=1)
            assert (answer.outcome, answer.status, answer.body) == (Outcome.TRANSIENT, 0, b"")
            assert answer.detail == f"127.0.0.1: {detail}"


@pytest.mark.slow
async def test_a_bomb_of_compression_takes_no_memory(serve: Serve) -> None:
    port = await serve(saying(packed(gzip.compress(b" " * 100 * MB, 1))))
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        tracemalloc.start()
        try:
            answer = await client.get("x", attempts=1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert answer.outcome is Outcome.TRANSIENT
    assert peak < 5 * MB


async def test_a_compressed_answer_within_the_bounds_is_read(serve: Serve) -> None:
    port = await serve(saying(packed(gzip.compress(b'{"a": 1}'))))
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        assert (await client.get("x")).data == {"a": 1}


async def test_a_connection_that_closes_without_an_answer_is_tried_again(serve: Serve) -> None:
    connections = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await heard(reader)
        if connections == 3:
            writer.write(GOOD)

    port = await serve(talk)
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        answer = await client.get("x")
    assert (answer.data, connections) == ({"a": 1}, 3)


async def test_a_body_that_is_cut_off_is_transient(serve: Serve) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(HEAD + b"content-length: 100\r\n\r\n{}")

    port = await serve(talk)
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        answer = await client.get("x")
    assert answer.detail == "127.0.0.1: the response is not valid HTTP"


async def test_after_a_hostile_answer_the_next_one_is_read_as_usual(serve: Serve) -> None:
    answers = iter([CHUNKED + PIECE * 20, GOOD])

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard(reader)
        writer.write(next(answers))
        await writer.drain()

    port = await serve(talk)
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        assert (await client.get("x", attempts=1)).outcome is Outcome.TRANSIENT
        assert (await client.get("x")).data == {"a": 1}


async def test_a_cookie_is_not_sent_back(serve: Serve) -> None:
    heads: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await heard(reader))
            writer.write(GOOD.replace(b"\r\n", b"\r\nset-cookie: a=b\r\n", 1))

    port = await serve(talk)
    async with calling(f"http://127.0.0.1:{port}", network()) as client:
        assert [(await client.get("x")).ok for _ in range(2)] == [True, True]
    assert len(heads) == 2
    assert b"cookie" not in heads[1].lower()


async def test_nobody_listening_is_no_connection(serve: Serve) -> None:
    port = await serve(saying(GOOD))
    async with calling("http://127.0.0.1:1", network()) as client:
        answer = await client.get("x")
    assert port != 1
    assert answer.detail == "127.0.0.1: no connection"

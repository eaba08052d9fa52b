"""Hosts that answer with more, deeper or slower than can be read, over real connections."""

import gzip
from typing import Any

import pytest

from factbook.datasources.custom.definition import CustomSourceDefinition
from tests.datasources.hostile import (
    CHUNKED,
    DEEP,
    HEAD,
    MB,
    PATIENT,
    PIECE,
    Beside,
    everyone,
    evil,
    whole,
)
from tests.outbound.conftest import Serve, Talk
from tests.outbound.talking import endless, heard, saying

HTML = b"<!doctype html><title>Sign in</title>"


def closing(answer: bytes) -> Talk:
    """Answers one request, and hangs up."""

    async def talk(reader: Any, writer: Any) -> None:
        await heard(reader)
        writer.write(answer)
        await writer.drain()

    return talk


def aliases() -> bytes:
    """A few lines that stand for a thousand million values."""
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 8)) for i in range(1, 10)]
    return b"\n".join(lines)


TOO_LARGE = "127.0.0.1: the answer is larger than 1000000 bytes"
NOT_HTTP = "127.0.0.1: the response is not valid HTTP"
TOO_SLOW = "127.0.0.1: no answer within 0.3 seconds"
IMPATIENT = 0.3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("talk", "source", "detail"),
    [
        pytest.param(endless(CHUNKED, PIECE), evil(), TOO_LARGE, id="endless body"),
        pytest.param(
            saying(whole(gzip.compress(b" " * 50 * MB, 1), headers=b"content-encoding: gzip\r\n")),
            evil(),
            TOO_LARGE,
            id="gzip bomb",
        ),
        pytest.param(
            saying(whole(DEEP)), evil(), "the answer is nested more than 100 deep", id="deep JSON"
        ),
        pytest.param(
            saying(whole(b'{"ok":' * 10_000)),
            evil(),
            "the answer is nested more than 100 deep",
            id="deep JSON without an end",
        ),
        pytest.param(
            saying(whole(DEEP)),
            evil(format="yaml"),
            "the answer is nested more than 100 deep",
            id="deep YAML",
        ),
        pytest.param(
            saying(whole(aliases())),
            evil(format="yaml"),
            "the answer has an alias, which is not read",
            id="alias bomb",
        ),
        pytest.param(
            saying(whole(b"[" + b"1," * 200_000 + b"1]")),
            evil(format="yaml"),
            "the answer has more than 150000 parts",
            id="YAML that takes long",
        ),
        pytest.param(
            endless(CHUNKED, b"1\r\n \r\n", pause=0.01), evil(), TOO_SLOW, id="slow drip of a body"
        ),
        pytest.param(
            endless(HEAD, b"x: y\r\n", pause=0.01), evil(), TOO_SLOW, id="slow drip of headers"
        ),
        pytest.param(
            endless(HEAD, b"x-flood: " + b"a" * 1000 + b"\r\n"),
            evil(),
            NOT_HTTP,
            id="headers without end",
        ),
        pytest.param(
            closing(whole(b'{"ok": true}', length=100)), evil(), NOT_HTTP, id="length too large"
        ),
        pytest.param(
            saying(whole(b'{"ok": true}', length=5)),
            evil(),
            "the answer is not JSON",
            id="length too small",
        ),
        pytest.param(
            saying(whole(b'{"ok": true}', headers=b"content-length: 5\r\n")),
            evil(),
            NOT_HTTP,
            id="two lengths",
        ),
        pytest.param(saying(whole(HTML)), evil(), "the answer is not JSON", id="HTML"),
        pytest.param(closing(b""), evil(), NOT_HTTP, id="nothing"),
        pytest.param(saying(b"\0\xff" * 500 + b"\r\n\r\n"), evil(), NOT_HTTP, id="no HTTP"),
    ],
)
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_hostile_host_ends_in_a_clear_error_and_costs_no_other_source(
    beside: Beside, serve: Serve, talk: Talk, source: CustomSourceDefinition, detail: str
) -> None:
    port = await serve(talk)
    seconds = IMPATIENT if detail == TOO_SLOW else PATIENT
    reasons = await beside.run(source, f"http://127.0.0.1:{port}", seconds)
    assert reasons == everyone({"": f"upstream-error: {detail}"})
    run = await beside.world.last("evil")
    assert (run.state, run.failed, run.error) == ("failed", 3, f"upstream-error: {detail}")

"""Whole requests: what reaches a service over HTTP, as a server hands it on.

An input is a request as it is written, with three words that stand for what only a run knows:

    POST /api/mcp/v1/tech-insights-facts?a=b
    authorization: Bearer {token}
    cookie: factbook={session}

    csrf={csrf}&name=x
"""

import asyncio
import functools
import re
from contextlib import AbstractAsyncContextManager
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import msgspec

from factbook.settings import Settings
from factbook.telemetry import logs
from tests.api.defining import define, of_entities, pushed
from tests.fuzz.promises import text
from tests.fuzz.target import Target
from tests.service import TOOLS, Service, component, resource, started
from tests.web.visiting import Browser, add_person

_SECRET: Final = "a key of tests, long enough to be one"
_UNSENT: Final = bytes({*range(0x21), 0x7F} | set(range(0x80, 0x100)))
# Paths by which the person who is signed in for all of the run could be signed out.
_ENDING: Final = re.compile(rb"POST .*(?:sign-out|account|people)")
_MOST: Final = 200
_PROMPTLY: Final = 30.0


class _World(NamedTuple):
    """A running service, and what a request needs to be let in."""

    loop: asyncio.AbstractEventLoop
    running: AbstractAsyncContextManager[Service]
    service: Service
    words: dict[bytes, bytes]


class _Answer(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    body: bytes


def request(data: bytes) -> None:
    """Whatever is asked, the service blames the request, or does what it says."""
    world = _world()
    words = {} if _ENDING.search(data.partition(b"\n")[0]) else world.words
    head, _, body = _filled(data, words).partition(b"\n\n")
    first, *rest = head.split(b"\n")
    method, _, target = first.partition(b" ")
    answer = world.loop.run_until_complete(_asked(world, method, target, rest, body))
    _check(answer, data)


def message(data: bytes) -> None:
    """Whatever comes to the tools, they answer in the form of JSON-RPC."""
    world = _world()
    headers, _, body = data.rpartition(b"\n\n")
    given = [*headers.split(b"\n"), b"content-type: application/json"]
    target = TOOLS.encode()
    answer = world.loop.run_until_complete(_asked(world, b"POST", target, given, body))
    _check(answer, data)


async def _asked(
    world: _World, method: bytes, target: bytes, lines: list[bytes], body: bytes
) -> _Answer:
    raw, _, query = target.translate(None, _UNSENT).partition(b"?")
    raw = b"/" + raw.lstrip(b"/")
    pairs = [line.partition(b":") for line in lines[:_MOST]]
    headers = [(name.strip().lower(), _sendable(value)) for name, _, value in pairs if name.strip()]
    if not any(name in {b"authorization", b"cookie"} for name, _ in headers):
        headers.append((b"authorization", b"Bearer " + world.words[b"{token}"]))
    if not any(name == b"host" for name, _ in headers):
        headers.append((b"host", b"127.0.0.1:8000"))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": text(method).upper() if method.isalpha() else "GET",
        "scheme": "http",
        "path": unquote(raw.decode()),
        "raw_path": raw,
        "query_string": query,
        "headers": headers,
        "client": ("127.0.0.1", 40_000),
        "server": ("127.0.0.1", 8000),
        "root_path": "",
    }
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    with logs.silence_logs():
        async with asyncio.timeout(_PROMPTLY):
            await world.service.application(scope, receive, send)
    head, *pieces = sent
    return _Answer(
        head["status"], dict(head["headers"]), b"".join(one.get("body", b"") for one in pieces)
    )


def _sendable(value: bytes) -> bytes:
    """A header's value without what no server would hand on."""
    return bytes(byte for byte in value.strip() if byte >= 0x20 and byte != 0x7F)


def _filled(data: bytes, words: dict[bytes, bytes]) -> bytes:
    for word, value in words.items():
        data = data.replace(word, value)
    return data


def _check(answer: _Answer, data: bytes) -> None:
    assert answer.status < 500 or answer.status == 501, (answer.status, answer.body[:500])
    type_ = answer.headers.get(b"content-type", b"")
    if type_.startswith(b"application/json") and answer.body:
        found = msgspec.json.decode(answer.body)
        if answer.status >= 400 and not {"jsonrpc", "errors"} & found.keys():
            error = found["error"]
            assert isinstance(error, str) or error["message"].strip()
    assert b'"code":-32603' not in answer.body, answer.body
    for value in answer.headers.values():
        assert b"\n" not in value
        assert b"\r" not in value
    assert _SECRET.encode() not in answer.body
    if type_.startswith(b"text/html"):
        assert b"<script>alert" not in answer.body, data


def close() -> None:
    """End the service, if one was started."""
    if _world.cache_info().currsize:
        world = _world()
        world.loop.run_until_complete(world.running.__aexit__(None, None, None))
        world.loop.close()
        _world.cache_clear()


@functools.cache
def _world() -> _World:
    loop = asyncio.new_event_loop()
    running = started(_settings())
    with logs.silence_logs():
        service = loop.run_until_complete(running.__aenter__())
        words = loop.run_until_complete(_filled_in(service))
    return _World(loop, running, service, words)


def _settings() -> Settings:
    folder = mkdtemp(prefix="factbook-fuzz-")
    return Settings(
        database_url=f"sqlite:///{folder}/factbook.db",
        token_key=_SECRET,
        token_rate=1e9,
        token_burst=10**9,
        failed_logins=10**9,
        # Nothing leaves the machine: no name is looked up, and nobody listens there.
        outgoing_proxy="http://127.0.0.1:9",
        outgoing_networks=["127.0.0.0/8"],
        log_level="error",
    )


async def _filled_in(service: Service) -> dict[bytes, bytes]:
    """What a run knows of a service, which is given something to find."""
    await service.push("all", component("web"), component("api"), resource("db", tags=["a"]))
    for source in (pushed(), of_entities()):
        await define(service, source)
    await add_person(service, "kim")
    browser = Browser(service.client(None))
    await browser.sign_in("kim")
    session = browser.http.cookies["factbook"]
    token = await service.token()
    return {
        b"{token}": token.encode(),
        b"{session}": session.encode(),
        b"{csrf}": browser.csrf.encode(),
    }


TARGETS = (
    Target("request", request, ("http.requests.decode",), share=20, examples=25),
    Target("mcp", message, (), share=20, examples=25),
)

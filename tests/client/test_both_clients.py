"""The client and its asynchronous twin offer the same and behave alike."""

from collections.abc import Callable
from typing import Any

import httpx2
import msgspec
import pytest

from factbook.client import (
    ApiError,
    AsyncClient,
    Client,
)
from tests.cli.fake_server import TOOLS, FakeServer, component, result


def names(type_: type) -> list[str]:
    return [name for name in dir(type_) if not name.startswith("_")]


def test_both_clients_offer_the_same() -> None:
    assert names(Client) == names(AsyncClient)


def test_every_method_says_what_it_returns() -> None:
    assert names(Client)
    assert [name for name in names(Client) if not getattr(Client, name).__doc__] == []


async def asgi(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:
    """A server in a few lines, which echoes what a tool is given and has two pages of entities."""
    message = await receive()
    headers = [(b"content-type", b"application/json")]
    body: Any
    if scope["path"] == TOOLS:
        arguments = msgspec.json.decode(message["body"])["params"]["arguments"]
        body = {"jsonrpc": "2.0", "id": 1, "result": result(arguments)}
    else:
        body = [component("a")]
        if b"after" not in scope["query_string"]:
            headers.append((b"link", b'</api/catalog/entities?after=x>; rel="next"'))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


async def test_the_asynchronous_client_calls_and_iterates() -> None:
    transport = httpx2.ASGITransport(asgi)
    async with AsyncClient("http://factbook.test", transport=transport) as client:
        assert await client.call("echo", {"name": "a"}) == {"name": "a"}
        assert [entity async for entity in client.entities()] == [component("a")] * 2


async def test_the_asynchronous_client_raises_the_same_errors(server: FakeServer) -> None:
    transport = httpx2.MockTransport(server)
    async with AsyncClient("http://factbook.test", transport=transport) as client:
        with pytest.raises(ApiError, match="nothing at"):
            await client.sets()

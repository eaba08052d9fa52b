"""The clients of an integration with more than one host, on real sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

import pytest

from factbook import clock
from factbook.datasources.clients import ClientFactory
from factbook.outbound.client import Credential, HttpClient
from factbook.outbound.outcomes import Outcome
from factbook.settings import Settings
from tests.collection.madeup import Vendor, integration

SETTINGS = Settings(outgoing_networks=["127.0.0.0/8"])


@asynccontextmanager
async def host(heads: list[str]) -> AsyncIterator[str]:
    """The address of a host that keeps what it was asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


def proving(secret: str, _: HttpClient) -> Credential:
    return Credential.fixed(secret, {"authorization": f"Bearer {secret}"} if secret else {})


@pytest.mark.spec("sources.credential-stays-with-its-host")
@pytest.mark.parametrize("secret", ["two", ""])
async def test_each_host_is_sent_the_credential_configured_for_it_and_no_other(secret: str) -> None:
    first, second = list[str](), list[str]()
    async with AsyncExitStack() as stack:
        one, two = [await stack.enter_async_context(host(heads)) for heads in (first, second)]
        asking = replace(
            integration(Vendor()),
            authorize=partial(proving, "one"),
            base_url=one,
            further={two: partial(proving, secret)},
        )
        client = ClientFactory(SETTINGS, clock.now).client(asking)
        stack.push_async_callback(client.aclose)
        assert (await client.get("/x")).ok
        assert (await client.further[two].get("/y")).ok
        # Neither leads to the other.
        assert (await client.get(f"{two}/x")).outcome is Outcome.TRANSIENT
        assert (await client.further[two].get(f"{one}/y")).outcome is Outcome.TRANSIENT
    assert [proof(head) for head in first] == ["bearer one"]
    assert [proof(head) for head in second] == ["bearer two" if secret else None]


async def test_calls_with_one_credential_do_not_wait_for_those_with_another() -> None:
    each, credentials = 12, 3
    waiting = asyncio.Barrier(each * credentials)

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await waiting.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    connections = ClientFactory(SETTINGS, clock.now)
    async with server, AsyncExitStack() as stack:
        clients = [
            connections.client(replace(integration(Vendor(), str(n)), base_url=url, at_once=each))
            for n in range(credentials)
        ]
        for client in clients:
            stack.push_async_callback(client.aclose)
        calls = (client.get("/x") for client in clients for _ in range(each))
        assert all(answer.ok for answer in await asyncio.gather(*calls))


def proof(head: str) -> str | None:
    lines = (line.partition(": ") for line in head.splitlines())
    return next((value for name, _, value in lines if name == "authorization"), None)

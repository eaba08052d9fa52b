"""Servers of a test's own, down to the byte."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from tests.no_retry_delay import no_pauses

__all__ = ["Serve", "Talk", "no_pauses", "serve"]

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[..., Awaitable[int]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Starts servers on this machine that talk as the test says; gives their ports."""
    servers: list[asyncio.Server] = []
    talks: set[asyncio.Task[None]] = set()

    async def start(talk: Talk, *, tls: ssl.SSLContext | None = None) -> int:
        async def talked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            talks.add(task)
            with suppress(ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
                await talk(reader, writer)
            writer.close()

        server = await asyncio.start_server(talked, "127.0.0.1", 0, ssl=tls)
        servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    yield start
    for server in servers:
        server.close()
    for talk in talks:
        talk.cancel()
    await asyncio.gather(*talks, return_exceptions=True)

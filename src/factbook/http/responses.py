"""Sending of replies, whole or piece by piece, and accounting of those that are cut off."""

import asyncio
from collections.abc import AsyncIterator

import structlog
from starlette.types import Send

from factbook.errors import UnavailableError
from factbook.http.requests import Reply

log = structlog.get_logger("factbook.api")

_SLOWEST_SECONDS = 60


async def begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Start iterating the pieces, so that an error before the first can still be answered."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


async def send_reply(reply: Reply, send: Send, *, head: bool) -> None:
    """Send a reply; `head`: without its body."""
    body = reply.body
    if isinstance(body, bytes):
        body = [body]
    headers = [(b"content-type", reply.content_type)]
    if reply.headers:
        headers += [(name.encode(), text.encode("latin-1")) for name, text in reply.headers.items()]
    headers += [(b"set-cookie", cookie.encode("latin-1")) for cookie in reply.cookies]
    if isinstance(body, list):
        headers.append((b"content-length", str(sum(map(len, body))).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if head:
        await send({"type": "http.response.body", "body": b""})
    elif isinstance(body, list):
        *others, last = body
        for piece in others:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": last})
    else:
        await _stream(body, send)


async def _stream(pieces: AsyncIterator[bytes], send: Send) -> None:
    """Send the pieces; hang up on a client that takes nothing while a read is kept open for it."""
    try:
        async for piece in pieces:
            async with asyncio.timeout(_SLOWEST_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Sending to a quick client never waits, and others want to be answered between.
            await asyncio.sleep(0)
    except TimeoutError:
        return  # the server closes a connection whose answer is not complete
    except UnavailableError as error:
        log.warning("answer.incomplete", cause=error.cause)
        return
    await send({"type": "http.response.body", "body": b""})

"""Sending of replies, whole or piece by piece, and accounting of those that are cut off."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Final, Literal

import structlog
from starlette.types import Send

from factbook.errors import UnavailableError
from factbook.http.requests import Reply
from factbook.observability.metrics import Metrics

log = structlog.get_logger("factbook.api")

# `slow`: the client took next to nothing; `unavailable`: the database went away; `failed`: a bug.
Reason = Literal["slow", "unavailable", "failed"]

_LOGGED_EVERY: Final = 10.0  # seconds


class IncompleteAnswers:
    """Counts answers that were cut off, and logs one line per reason every ten seconds."""

    def __init__(self, metrics: Metrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._logged_at: dict[Reason, float] = {}
        self._unlogged: Counter[Reason] = Counter()

    def add(self, reason: Reason, cause: str | None = None) -> None:
        """Count one answer; `cause` gives details for the log."""
        self._metrics.incomplete(reason)
        self._unlogged[reason] += 1
        now, before = self._now(), self._logged_at.get(reason)
        if before is None or now - before >= _LOGGED_EVERY:
            more = {} if cause is None else {"cause": cause}
            log.warning("answer.incomplete", reason=reason, answers=self._unlogged[reason], **more)
            self._logged_at[reason], self._unlogged[reason] = now, 0


async def begun(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Start iterating the pieces, so that an error before the first can still be answered."""
    first = await anext(pieces, b"")

    async def all_pieces() -> AsyncIterator[bytes]:
        yield first
        async for piece in pieces:
            yield piece

    return all_pieces()


async def send_reply(
    reply: Reply, send: Send, incomplete: IncompleteAnswers, *, head: bool
) -> None:
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
    # The connection ends an answer that nobody takes, and counts it.
    with suppress(ConnectionResetError):
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if head:
            await send({"type": "http.response.body", "body": b""})
        elif isinstance(body, list):
            *others, last = body
            for piece in others:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": last})
        else:
            await _stream(body, send, incomplete)


async def _stream(pieces: AsyncIterator[bytes], send: Send, incomplete: IncompleteAnswers) -> None:
    """Send the pieces.

    A failing piece ends the answer without its last chunk: the server closes the connection, and
    the client sees that the answer is incomplete.
    """
    try:
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            # Sending to a quick client never waits, and others want to be answered between.
            await asyncio.sleep(0)
    except ConnectionResetError:
        raise
    except UnavailableError as error:
        incomplete.add("unavailable", error.cause)
        return
    except Exception:
        incomplete.add("failed")
        raise
    await send({"type": "http.response.body", "body": b""})

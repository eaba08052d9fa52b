"""Delivery of due messages to webhooks, shared by any number of processes.

Each webhook has a task of its own, so that a slow or unresponsive one delays no other.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec
import structlog

from factbook import shutdown
from factbook.auth.encryption import NotOpenedError
from factbook.clock import SECOND, Clock, iso
from factbook.errors import GoneError, UnavailableError
from factbook.events import store as events
from factbook.events.event import FeedEvent, FeedPosition
from factbook.events.store import EventFilter
from factbook.outbound import HostReply
from factbook.outbound.client import USER_AGENT
from factbook.storage import Database
from factbook.telemetry.spans import NO_TRACER, Attributes, Tracer
from factbook.webhooks import adoption, queue, secrets, signatures
from factbook.webhooks.queue import Claimed, Sent, WebhookMessage
from factbook.webhooks.secrets import WebhookTarget
from factbook.webhooks.transport import Post

log = structlog.get_logger("factbook.webhooks")

# Messages of a webhook that one round sends, and how many of them at a time: with the longest that
# one may take, a round is over well before another process may take the webhook over.
ROUND: Final = 8
_AT_ONCE: Final = 4
_GONE: Final = HTTPStatus.GONE


class WebhookSender:
    """Sends messages for webhooks that no other process serves."""

    def __init__(
        self,
        database: Database,
        post: Post,
        key: Callable[[], bytes],
        clock: Clock,
        holder: str,
        tracer: Tracer = NO_TRACER,
        count: Callable[[str], None] = lambda outcome: None,
    ) -> None:
        """`key` returns the key that seals webhooks; `count` gets the outcome of each message."""
        self._database = database
        self._post = post
        self._key = key
        self._clock = clock
        self._holder = holder
        self._tracer = tracer
        self._count = count
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def tick(self) -> int:
        """Start to serve the webhooks that have due messages; returns their number."""
        await events.catch_up(self._database)
        await adoption.adopt_added(self._database, self._key)
        found = await queue.due(self._database, self._clock())
        new = [id_ for id_ in found if id_ not in self._tasks]
        for id_ in new:
            task = asyncio.create_task(self._serve(id_))
            self._tasks[id_] = task
            task.add_done_callback(partial(self._end, id_))
        return len(new)

    async def drain(self) -> None:
        """Send everything that is due now."""
        while await self.tick() or self._tasks:
            await asyncio.wait(self._tasks.values())

    async def stop(self) -> None:
        """Stop sending, and release unsent messages to other processes at once."""
        tasks = list(self._tasks.values())
        await shutdown.cancel(tasks)
        if tasks:
            # Without it their claims lapse.
            with suppress(UnavailableError):
                await self._database.write(lambda tx: queue.release(tx, self._holder))
        await self._post.aclose()

    def _end(self, id_: str, task: "asyncio.Task[None]") -> None:
        del self._tasks[id_]
        error = None if task.cancelled() else task.exception()
        # Its claim lapses, and then it is tried again.
        if isinstance(error, UnavailableError):
            log.warning("webhook.unavailable", webhook=id_, cause=error.cause)
        elif error is not None:
            log.error("webhook.failed", webhook=id_, exc_info=error)

    async def _serve(self, id_: str) -> None:
        """Send in rounds until nothing is due."""
        more = True
        while more:
            with self._tracer.span("webhook round", {"factbook.webhook.id": id_}):
                more = await self._round(id_)

    async def _round(self, id_: str) -> bool:
        """Do one round; returns true if there may be more to send now."""
        now = self._clock()
        claimed = await self._database.write(
            lambda tx: queue.claim(tx, id_, self._holder, now, ROUND)
        )
        if claimed is None:
            return False
        found, place, more = await self._new(claimed)
        turns = asyncio.Semaphore(_AT_ONCE)
        messages = [*claimed.due, *(_message(event, now) for event in found)]
        target = self._target(claimed) if messages else None
        sent = await asyncio.gather(*(self._send(target, one, turns) for one in messages))
        disabled = await self._database.write(
            lambda tx: queue.finish(tx, claimed, sent, place, self._clock())
        )
        if disabled:
            error = next((one.error for one in sent if one.error is not None), None)
            log.error("webhook.disabled", webhook=id_, reason=error)
        return disabled is False and (more or len(claimed.due) == ROUND)

    async def _new(self, claimed: Claimed) -> tuple[list[FeedEvent], FeedPosition, bool]:
        """New events, the place after them, and whether there are more."""
        if claimed.room <= 0:
            return [], claimed.next, False
        wanted, place = EventFilter(claimed.types), claimed.next
        try:
            page = await events.page(self._database, place, wanted, claimed.room)
        except GoneError:
            # It was disabled for longer than events are kept.
            log.warning("webhook.skipped", webhook=claimed.id)
            return [], await events.start(self._database), True
        return page.events, page.next, page.more

    def _target(self, claimed: Claimed) -> WebhookTarget | None:
        try:
            return secrets.opened(self._key(), claimed.id, claimed.sealed)
        except NotOpenedError:
            return None

    async def _send(
        self, target: WebhookTarget | None, message: WebhookMessage, turns: asyncio.Semaphore
    ) -> Sent:
        if target is None:
            return Sent(message, "its secret was sealed under another token_key")
        async with turns:
            now = self._clock()
            about: Attributes = {
                "factbook.event.type": message.type,
                "factbook.attempt": message.attempts + 1,
            }
            with self._tracer.span("webhook message", about):
                reply = await send(self._post, target, message, now)
        if 200 <= reply.status < 300 and not reply.failure:
            self._count("delivered")
            return Sent(message, None)
        self._count("failed")
        error = reply.failure or f"answered {reply.status}"
        return Sent(message, error, reply.status == _GONE, now + asked_pause(reply))


async def send(post: Post, target: WebhookTarget, message: WebhookMessage, now: int) -> HostReply:
    """Send a message, signed with the current time."""
    body = message.body.encode()
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        **signatures.headers(target.secret, message.event_id, now // SECOND, body),
    }
    return await post(target.url, headers, body)


def body(type_: str, at: int, data: object) -> str:
    """JSON of a message."""
    return msgspec.json.encode({"type": type_, "timestamp": iso(at), "data": data}).decode()


def _message(event: FeedEvent, now: int) -> WebhookMessage:
    return WebhookMessage(event.id, event.type, body(event.type, event.at, event.data), now, 0)


def asked_pause(reply: HostReply) -> int:
    """Pause that the receiver asks for in seconds, if it does."""
    text = reply.headers.get("retry-after", "")
    return int(text) * SECOND if text.isascii() and text.isdigit() and len(text) < 8 else 0

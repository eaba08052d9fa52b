"""Delivery of digests that are due: at least once each, by one process at a time.

A process that is killed between the reply and its record leaves the digest to another one, which
sends it again: about the same period, and with the same `Idempotency-Key`.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from factbook.auth.encryption import NotOpenedError
from factbook.checks.digests import digest, digest_figures
from factbook.checks.digests.digest import Digest
from factbook.clock import DAY, HOUR, MINUTE, Clock
from factbook.outbound.client import USER_AGENT
from factbook.schemas.events import DigestForm
from factbook.storage import Database
from factbook.webhooks import digest_replies, digest_store, sender
from factbook.webhooks.digest_store import ClaimedDigest
from factbook.webhooks.transport import Post

log = structlog.get_logger("factbook.webhooks")

OTHER_KEY: Final = "its address was sealed under another token_key"
# A change has its time a moment before others can read it.
_SETTLED: Final = MINUTE
# Pauses after failures double up to a day.
_AGAIN: Final = HOUR
_AT_ONCE: Final = 8
_MOST_DOUBLINGS: Final = 5
_HEADERS: Final = {"content-type": "application/json", "user-agent": USER_AGENT}


class DeliveredDigest(NamedTuple):
    """Result of a message: the error if it failed, the status, and the pause that was asked for."""

    error: str | None
    status: int = 0
    pause: int = 0


class DigestSender:
    """Sends the digests that are due and that no other process sends."""

    def __init__(
        self,
        database: Database,
        post: Post,
        key: Callable[[], bytes],
        clock: Clock,
        public_url: str | None = None,
    ) -> None:
        """`key` returns the key that seals addresses; messages link to pages at `public_url`."""
        self._database = database
        self._post = post
        self._key = key
        self._clock = clock
        self._public_url = public_url

    async def tick(self) -> int:
        """Send what is due, several at once, so that a slow receiver holds up no other.

        Returns the number of digests, with those that had nothing to say.
        """
        if not await digest_store.is_due(self._database, self._clock()):
            return 0
        ended = await asyncio.gather(
            *(self._send_some() for _ in range(_AT_ONCE)), return_exceptions=True
        )
        count = 0
        for one in ended:
            if isinstance(one, BaseException):
                raise one
            count += one
        return count

    async def _send_some(self) -> int:
        """Send one after the other until none is left."""
        count = 0
        while found := await self._database.write(partial(digest_store.claim, now=self._clock())):
            count += 1
            await self._send(found)
        return count

    async def stop(self) -> None:
        """Close the connections."""
        await self._post.aclose()

    async def _send(self, claimed: ClaimedDigest) -> None:
        stored, now = claimed.digest, self._clock()
        # The end of the period stays the same when it is sent again.
        end = max(stored.next_at, stored.cadence.latest(now)) - _SETTLED
        until = max(end, stored.told_up_to)
        content, levels = await digest_figures.of_owner(
            self._database,
            stored.owner,
            stored.told_up_to,
            until,
            stored.levels,
            now,
            self._public_url,
        )
        sent = None
        if not content.is_empty:
            sent = await self._posted(claimed, content)
        if sent is not None and sent.error is not None:
            await self._failed(claimed, sent, now)
            return
        next_at, sent_at = stored.cadence.following(now), None if sent is None else now
        await self._database.write(
            lambda tx: digest_store.finish(tx, claimed, until, levels, next_at, sent_at)
        )

    async def _posted(self, claimed: ClaimedDigest, content: Digest) -> DeliveredDigest:
        id_ = claimed.digest.id
        try:
            url = digest_store.opened(self._key(), id_, claimed.address)
        except NotOpenedError:
            return DeliveredDigest(OTHER_KEY)
        key = f"{id_}.{content.until}"
        return await send(self._post, url, claimed.digest.form, content, key)

    async def _failed(self, claimed: ClaimedDigest, sent: DeliveredDigest, now: int) -> None:
        stored, error = claimed.digest, sent.error or ""
        log.warning("digest.failed", digest=stored.id, owner=stored.owner, reason=error)
        pause = min(_AGAIN << min(stored.failures, _MOST_DOUBLINGS), DAY)
        again_at = now + max(pause, min(sent.pause, DAY))
        await self._database.write(lambda tx: digest_store.fail(tx, claimed, error, now, again_at))


async def send(
    post: Post, url: str, form: DigestForm, content: Digest, key: str
) -> DeliveredDigest:
    """Send a digest once."""
    body = msgspec.json.encode(digest.message(content, form))
    reply = await post(url, {**_HEADERS, "idempotency-key": key}, body)
    error = digest_replies.problem(reply, form, url)
    return DeliveredDigest(error, reply.status, sender.asked_pause(reply))

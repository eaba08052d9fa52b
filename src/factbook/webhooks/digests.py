"""Digests for teams: sent weekly to Slack or Microsoft Teams, and only if something changed."""

import secrets as chance
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec
import structlog

from factbook.auth.encryption import NotOpenedError
from factbook.catalog import ref
from factbook.checks import digest, digest_figures
from factbook.checks.digest import DigestForm
from factbook.clock import HOUR, Clock
from factbook.outbound.client import USER_AGENT
from factbook.scheduling import crontab
from factbook.storage import Database, Write
from factbook.webhooks import digest_store, secrets
from factbook.webhooks.digest_store import StoredDigest
from factbook.webhooks.transport import Post

log = structlog.get_logger("factbook.webhooks")

# Monday mornings, in UTC.
CADENCE: Final = "0 8 * * mon"
_AGAIN: Final = HOUR
_HEADERS: Final = {"content-type": "application/json", "user-agent": USER_AGENT}


async def create(
    post: Post,
    key: bytes,
    owner: str,
    form: DigestForm,
    url: str,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredDigest:
    """Send digests of an owner to an address from now on, which is never shown again.

    Raises InputError for an address that may not be called, ConflictError.
    """
    await post.check(url)
    id_ = chance.token_hex(8)
    made = StoredDigest(
        id_,
        ref.canonical(owner, kind="group"),
        form,
        secrets.shown(url),
        now,
        actor,
        now,
        _next(now),
        None,
        None,
    )
    address = digest_store.sealed(key, id_, url)
    await write(lambda transaction: digest_store.add(transaction, made, address))
    return made


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
        """`key` returns the key that seals addresses; messages link to `public_url`."""
        self._database = database
        self._post = post
        self._key = key
        self._clock = clock
        self._link = public_url

    async def tick(self) -> int:
        """Send what is due; returns the number of digests, with those that had nothing to say."""
        count = 0
        if not await digest_store.is_due(self._database, self._clock()):
            return 0
        while found := await self._database.write(partial(digest_store.claim, now=self._clock())):
            count += 1
            await self._send(*found)
        return count

    async def stop(self) -> None:
        """Close the connections."""
        await self._post.aclose()

    async def _send(self, one: StoredDigest, address: bytes) -> None:
        now = self._clock()
        content = await digest_figures.of_owner(
            self._database, one.owner, one.told_up_to, now, self._link
        )
        error = None
        if not content.is_empty:
            error = await self._posted(
                one, address, msgspec.json.encode(digest.message(content, one.form))
            )
        if error is None:
            await self._database.write(lambda tx: digest_store.finish(tx, one.id, now, _next(now)))
            return
        log.warning("digest.failed", digest=one.id, owner=one.owner, reason=error)
        again = min(now + _AGAIN, _next(now))
        await self._database.write(lambda tx: digest_store.fail(tx, one.id, error, now, again))

    async def _posted(self, one: StoredDigest, address: bytes, body: bytes) -> str | None:
        """Send a message; returns the reason if it did not arrive."""
        try:
            url = digest_store.opened(self._key(), one.id, address)
        except NotOpenedError:
            return "its address was sealed under another token_key"
        reply = await self._post(url, _HEADERS, body)
        if 200 <= reply.status < 300 and not reply.failure:
            return None
        return reply.failure or f"answered {reply.status}"


def _next(now: int) -> int:
    return crontab.following(crontab.parse(CADENCE), now)

"""Creation, test and removal of webhooks."""

import secrets as chance
import time
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from factbook.auth.encryption import NotOpenedError
from factbook.errors import ConflictError
from factbook.events import store as events
from factbook.storage import Database, Transaction, Write
from factbook.webhooks import secrets, sender, signatures, store
from factbook.webhooks.queue import WebhookMessage
from factbook.webhooks.secrets import WebhookTarget
from factbook.webhooks.store import GivenUp, StoredWebhook
from factbook.webhooks.transport import Post

log = structlog.get_logger("factbook.webhooks")

TEST = "webhook.test"


class Made(NamedTuple):
    """A new webhook with its address and its secret, which are never shown again."""

    webhook: StoredWebhook
    url: str
    secret: str

    def __repr__(self) -> str:
        """Representation without the secrets."""
        return f"Made(webhook={self.webhook!r})"


class DeliveryResult(NamedTuple):
    """Result of a test: the receiver's status, 0 without any, and the error if it failed."""

    status: int
    milliseconds: int
    error: str | None


async def create(
    database: Database,
    post: Post,
    key: bytes,
    url: str,
    types: Sequence[str],
    *,
    actor: str,
    now: int,
    write: Write,
) -> Made:
    """Create a webhook that gets every event from now on.

    Raises InputError for an address that may not be called, ConflictError.
    """
    await post.check(url)
    id_, target = chance.token_hex(8), WebhookTarget(url, signatures.secret())
    hook = StoredWebhook(
        id_, secrets.shown(url), tuple(dict.fromkeys(types)), now, actor, *(None,) * 4, 0, 0
    )
    sealed, place = secrets.seal(key, id_, target), await events.end(database)

    def work(transaction: Transaction) -> StoredWebhook:
        store.add(transaction, hook, sealed, place)
        return hook

    await write(work)
    log.info("webhook.created", webhook=id_, actor=actor)
    return Made(hook, url, signatures.shown(target.secret))


async def one(database: Database, id_: str) -> tuple[StoredWebhook, list[GivenUp]]:
    """A webhook and its recently undelivered messages; raises NotFoundError."""
    return await store.one(database, id_), await store.given_up(database, id_)


async def remove(id_: str, *, write: Write) -> None:
    """Remove a webhook; raises NotFoundError."""
    await write(lambda transaction: store.remove(transaction, id_))


async def enable(id_: str, *, now: int, write: Write) -> StoredWebhook:
    """Resume sending to a webhook, beginning with given-up messages; raises NotFoundError."""
    return await write(lambda transaction: store.enable(transaction, id_, now))


async def try_out(database: Database, post: Post, key: bytes, id_: str, now: int) -> DeliveryResult:
    """Send a message of the type `webhook.test` once; raises NotFoundError, ConflictError."""
    try:
        target = secrets.opened(key, id_, await store.sealed(database, id_))
    except NotOpenedError:
        raise ConflictError(
            "This webhook was sealed under another token_key. Make it again."
        ) from None
    text = sender.body(TEST, now, {"webhook": id_})
    message = WebhookMessage(f"test-{chance.token_hex(8)}", TEST, text, now, 0)
    started = time.perf_counter()
    reply = await sender.send(post, target, message, now)
    spent = round((time.perf_counter() - started) * 1000)
    good = 200 <= reply.status < 300 and not reply.failure
    error = None if good else reply.failure or f"answered {reply.status}"
    return DeliveryResult(reply.status, spent, error)

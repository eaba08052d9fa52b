"""Delivery of events to webhooks, shared by any number of processes; creation and tests.

Calls are guarded like every outgoing call. Signatures follow the Standard Webhooks specification
1.0.0, symmetric signatures. One process at a time claims the messages of a webhook; after a failure
they return to the queue.
"""

import asyncio
import hmac
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import urlsplit
from zlib import crc32

import msgspec
import structlog

from factbook import shutdown
from factbook.auth.encryption import NotOpenedError
from factbook.clock import HOUR, MINUTE, SECOND, Clock, iso
from factbook.errors import (
    ConfigurationError,
    ConflictError,
    GoneError,
    InputError,
    UnavailableError,
)
from factbook.events.store import (
    EVENT_COUNTER,
    EventFilter,
    FeedEvent,
    FeedPosition,
    find_feed_end,
    find_feed_start,
    number_new_events,
    page_events,
)
from factbook.outbound.client import USER_AGENT
from factbook.outbound.outcomes import HostReply
from factbook.scheduling import lease
from factbook.scheduling.lease import Claim
from factbook.settings import Settings
from factbook.settings.option_tables import url_origin
from factbook.storage import Database, Transaction, Write
from factbook.storage.database import render_counter
from factbook.telemetry.spans import NO_TRACER, Attributes, Tracer
from factbook.webhooks import store
from factbook.webhooks.store import GivenUp, Sealed, StoredWebhook, WebhookTarget, list_types

if TYPE_CHECKING:
    from factbook.outbound.network import Sender

MOST_SECONDS: Final = 10.0
MOST_BYTES: Final = 1024 * 1024
LONGEST_URL: Final = 2_000

PREFIX = "whsec_"
_SECRET_BYTES = 32

# Longer than a round of messages takes.
CLAIM_DURATION: Final = 40 * SECOND
# Most messages waiting for a retry; with more, no new ones are begun.
WINDOW: Final = 100
# Retry delays: about a day until a message is abandoned.
RETRY_PAUSES: Final = (
    5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR,
)  # fmt: skip

# Retries further ahead are sent anyway: the clock was set back.
_FAR_AHEAD: Final = 2 * RETRY_PAUSES[-1]

_READ_DUE = """
SELECT w.id FROM webhook_endpoints w WHERE w.disabled_at IS NULL AND {free} AND ((
    w.next_position <= {newest} AND (
        SELECT COUNT(*) FROM webhook_retries r
        WHERE r.webhook_id = w.id AND r.next_at IS NOT NULL
    ) < ?
) OR EXISTS (
    SELECT 1 FROM webhook_retries r
    WHERE r.webhook_id = w.id AND (r.next_at <= ? OR r.next_at > ?)
)) ORDER BY w.id
""".replace("{free}", lease.free_lease_condition("w")).replace(
    "{newest}", render_counter(EVENT_COUNTER)
)

log = structlog.get_logger("factbook.webhooks")

# Messages per round of a webhook, and how many at a time: even at the timeout, a round ends well
# before another process may claim the webhook.
ROUND: Final = 8
_MESSAGES_AT_ONCE: Final = 4
_GONE: Final = HTTPStatus.GONE

TEST_TYPE = "webhook.test"


class Post(Protocol):
    """Sends messages, follows no redirect and never raises."""

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
        """Send a message; returns the receiver's reply or the reason for its absence."""

    async def check(self, url: str) -> None:
        """Raise InputError unless messages may be sent there, as it seems now."""

    async def aclose(self) -> None:
        """Close the connections."""


class GuardedPost:
    """Sends within the limits of the settings for outgoing calls."""

    def __init__(self, settings: Settings, tracer: Tracer = NO_TRACER) -> None:
        self._settings = settings
        self._tracer = tracer
        self._senders: dict[str, Sender] = {}

    async def __call__(self, url: str, headers: Mapping[str, str], body: bytes) -> HostReply:
        """Send a message; returns the receiver's reply or the reason for its absence."""
        try:
            sender = self._sender(url)
        except ConfigurationError as error:
            return HostReply(0, failure=error.message)
        return await sender.send("POST", url, headers, body)

    async def check(self, url: str) -> None:
        """Raise InputError unless messages may be sent there, as it seems now."""
        _check_url_form(url)
        try:
            route = await self._sender(url).route()
        except ConfigurationError as error:
            raise InputError(f"url: {error.message}") from None
        # An unknown host name may resolve later; its addresses are checked again then.
        if isinstance(route, HostReply) and not route.repeatable:
            raise InputError(f"url: {route.failure}.")

    async def aclose(self) -> None:
        """Close the connections."""
        for sender in self._senders.values():
            await sender.aclose()
        self._senders.clear()

    def _sender(self, url: str) -> "Sender":
        found = self._senders.get(url_origin(url))
        if found is None:
            # Slow to import, and unused without webhooks.
            from factbook.outbound.network import Network  # noqa: PLC0415

            network = Network(self._settings, tracer=self._tracer)
            found = self._senders[url_origin(url)] = network.sender(
                url_origin(url), seconds=MOST_SECONDS, most_bytes=MOST_BYTES
            )
        return found


def _check_url_form(url: str) -> None:
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"https", "http"} and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if (
        not whole
        or not url.isascii()
        or not url.isprintable()
        or " " in url
        or len(url) > LONGEST_URL
    ):
        raise InputError(
            f"url: has to be an address that begins with https:// or http://, of {LONGEST_URL} "
            "characters at most."
        )
    if parts.username is not None or parts.fragment:
        raise InputError("url: must not have a user or a fragment.")


def generate_secret() -> bytes:
    """Generate a secret."""
    return secrets.token_bytes(_SECRET_BYTES)


def format_secret(secret: bytes) -> str:
    """A secret in the form that receivers expect."""
    return PREFIX + b64encode(secret).decode()


def sign_message(secret: bytes, id_: str, seconds: int, body: bytes) -> dict[str, str]:
    """Headers of a message sent at `seconds` since the epoch."""
    signed = f"{id_}.{seconds}.".encode() + body
    signature = b64encode(hmac.digest(secret, signed, "sha256")).decode()
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": f"v1,{signature}",
    }


class WebhookMessage(NamedTuple):
    """An event to send, with the time and the number of the attempts so far."""

    event_id: str
    type: str
    body: str
    first_at: int
    attempts: int


class ClaimedWebhook(NamedTuple):
    """A webhook that one process serves while its claim lasts."""

    id: str
    types: tuple[str, ...]
    sealed: Sealed
    next: FeedPosition
    claim: Claim
    due: list[WebhookMessage]
    room: int


class SentMessage(NamedTuple):
    """Result of a message: the error (None: delivered) and the receiver's requests."""

    message: WebhookMessage
    error: str | None
    gone: bool = False
    not_before: int = 0


async def list_due_webhooks(database: Database, now: int) -> list[str]:
    """Webhooks with due messages that no process serves."""
    rows = await database.all(
        _READ_DUE, (*lease.lapse_bounds(now, CLAIM_DURATION), WINDOW, now, now + _FAR_AHEAD)
    )
    return [id_ for (id_,) in rows]


def claim_webhook(
    transaction: Transaction, id_: str, holder: str, now: int, most: int
) -> ClaimedWebhook | None:
    """Claim the webhook, with up to `most` messages that are due again.

    None if another process has the webhook, or if sending is not allowed.
    """
    claim = Claim(holder, now + CLAIM_DURATION)
    row = transaction.one(_CLAIM_WEBHOOK, (*claim, id_, *lease.lapse_bounds(now, CLAIM_DURATION)))
    if row is None:
        return None
    again = [
        WebhookMessage(*one)
        for one in transaction.all(_READ_RETRIES, (id_, now, now + _FAR_AHEAD, most))
    ]
    (waiting,) = transaction.one(_COUNT_RETRIES, (id_,)) or (0,)
    room = min(most - len(again), WINDOW - waiting)
    types, address, secret, *place = row
    sealed = Sealed(address, secret)
    return ClaimedWebhook(id_, list_types(types), sealed, FeedPosition(*place), claim, again, room)


def finish_delivery(
    transaction: Transaction,
    claimed: ClaimedWebhook,
    sent: Sequence[SentMessage],
    place: FeedPosition,
    now: int,
) -> bool | None:
    """Store the results, advance the feed position to `place`, and release the webhook.

    Returns true if the webhook was disabled, None if the holder has lost its claim.
    """
    failed = next((one.error for one in sent if one.error is not None), None)
    succeeded = any(one.error is None for one in sent)
    row = transaction.one(_FINISH_DELIVERY, (
        *place, now if succeeded else None, None if failed is None else now, failed,
        claimed.id, *claimed.claim,
    ))  # fmt: skip
    if row is None:
        return None
    lost = [_store_retry(transaction, claimed.id, one, now) for one in sent]
    [last_success] = row
    disabled = any(one.gone for one in sent) or any(
        one.message.first_at > (last_success or 0)
        for one, is_lost in zip(sent, lost, strict=True)
        if is_lost
    )
    if disabled:
        transaction.run(
            "UPDATE webhook_endpoints SET disabled_at = ? WHERE id = ?", (now, claimed.id)
        )
    return disabled


def release_webhooks(transaction: Transaction, holder: str) -> None:
    """Release the webhooks of the holder at once."""
    transaction.run(_RELEASE_WEBHOOKS, (holder,))


def _store_retry(transaction: Transaction, id_: str, sent: SentMessage, now: int) -> bool:
    """Store the time of the next attempt, or abandon the message; returns true if abandoned."""
    message = sent.message
    if sent.error is None:
        if message.attempts:
            transaction.run(_DELETE_RETRY, (id_, message.event_id))
        return False
    attempts, next_at = message.attempts + 1, None
    if attempts <= len(RETRY_PAUSES):
        # Spreads the retries of messages that failed together.
        spread = crc32(f"{message.event_id} {message.attempts}".encode()) % 20
        pause = RETRY_PAUSES[message.attempts] * (100 + spread) // 100
        next_at = max(now + pause, min(sent.not_before, now + RETRY_PAUSES[-1]))
    row = (id_, *message[:-1], attempts, next_at, sent.error)
    transaction.run(_STORE_RETRY, row)
    return next_at is None


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
        await number_new_events(self._database)
        await store.adopt_added_webhooks(self._database, self._key)
        found = await list_due_webhooks(self._database, self._clock())
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
            # If not released, the claims lapse.
            with suppress(UnavailableError):
                await self._database.write(lambda tx: release_webhooks(tx, self._holder))
        await self._post.aclose()

    def _end(self, id_: str, task: "asyncio.Task[None]") -> None:
        del self._tasks[id_]
        error = None if task.cancelled() else task.exception()
        # The claim lapses, then the webhook is tried again.
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
            lambda tx: claim_webhook(tx, id_, self._holder, now, ROUND)
        )
        if claimed is None:
            return False
        events, place, more = await self._new(claimed)
        turns = asyncio.Semaphore(_MESSAGES_AT_ONCE)
        messages = list(claimed.due)
        for event in events:
            body = encode_message(event.type, event.at, event.data)
            messages.append(WebhookMessage(event.id, event.type, body, now, 0))
        target: WebhookTarget | None = None
        if messages:
            with suppress(NotOpenedError):
                target = store.open_target(self._key(), claimed.id, claimed.sealed)
        sent = await asyncio.gather(*(self._send(target, message, turns) for message in messages))
        disabled = await self._database.write(
            lambda tx: finish_delivery(tx, claimed, sent, place, self._clock())
        )
        if disabled:
            error = next((one.error for one in sent if one.error is not None), None)
            log.error("webhook.disabled", webhook=id_, reason=error)
        return disabled is False and (more or len(claimed.due) == ROUND)

    async def _new(self, claimed: ClaimedWebhook) -> tuple[list[FeedEvent], FeedPosition, bool]:
        """New events, the place after them, and whether there are more."""
        if claimed.room <= 0:
            return [], claimed.next, False
        wanted, place = EventFilter(claimed.types), claimed.next
        try:
            page = await page_events(self._database, place, wanted, claimed.room)
        except GoneError:
            # The webhook was disabled for longer than events are kept.
            log.warning("webhook.skipped", webhook=claimed.id)
            return [], await find_feed_start(self._database), True
        return page.events, page.next, page.more

    async def _send(
        self, target: WebhookTarget | None, message: WebhookMessage, turns: asyncio.Semaphore
    ) -> SentMessage:
        if target is None:
            return SentMessage(message, "its secret was sealed under another token_key")
        async with turns:
            now = self._clock()
            about: Attributes = {
                "factbook.event.type": message.type,
                "factbook.attempt": message.attempts + 1,
            }
            with self._tracer.span("webhook message", about):
                reply = await send_message(self._post, target, message, now)
        if 200 <= reply.status < 300 and not reply.failure:
            self._count("delivered")
            return SentMessage(message, None)
        self._count("failed")
        error = reply.failure or f"answered {reply.status}"
        return SentMessage(message, error, reply.status == _GONE, now + find_retry_after(reply))


async def send_message(
    post: Post, target: WebhookTarget, message: WebhookMessage, now: int
) -> HostReply:
    """Send a message, signed with the current time."""
    body = message.body.encode()
    headers = {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        **sign_message(target.secret, message.event_id, now // SECOND, body),
    }
    return await post(target.url, headers, body)


def encode_message(type_: str, at: int, data: object) -> str:
    """JSON of a message."""
    return msgspec.json.encode({"type": type_, "timestamp": iso(at), "data": data}).decode()


def find_retry_after(reply: HostReply) -> int:
    """Pause requested by the receiver's Retry-After, in milliseconds; 0 without a request."""
    text = reply.headers.get("retry-after", "")
    return int(text) * SECOND if text.isascii() and text.isdigit() and len(text) < 8 else 0


class CreatedWebhook(NamedTuple):
    """A new webhook with its address and its secret, which are never shown again."""

    webhook: StoredWebhook
    url: str
    secret: str

    def __repr__(self) -> str:
        """Representation without the secrets."""
        return f"CreatedWebhook(webhook={self.webhook!r})"


class DeliveryResult(NamedTuple):
    """Result of a test: the receiver's status, 0 without any, and the error if it failed."""

    status: int
    milliseconds: int
    error: str | None


async def create_webhook(
    database: Database,
    post: Post,
    key: bytes,
    url: str,
    types: Sequence[str],
    *,
    actor: str,
    now: int,
    write: Write,
) -> CreatedWebhook:
    """Create a webhook that gets every event from now on.

    Raises InputError for an address that may not be called, ConflictError.
    """
    await post.check(url)
    id_, target = secrets.token_hex(8), WebhookTarget(url, generate_secret())
    hook = StoredWebhook(
        id_, store.mask_address(url), tuple(dict.fromkeys(types)), now, actor, *(None,) * 4, 0, 0
    )
    sealed, place = store.seal_target(key, id_, target), await find_feed_end(database)

    def work(transaction: Transaction) -> StoredWebhook:
        store.add_webhook(transaction, hook, sealed, place)
        return hook

    await write(work)
    log.info("webhook.created", webhook=id_, actor=actor)
    return CreatedWebhook(hook, url, format_secret(target.secret))


async def get_webhook_detail(database: Database, id_: str) -> tuple[StoredWebhook, list[GivenUp]]:
    """A webhook and its recently undelivered messages; raises NotFoundError."""
    return await store.get_webhook(database, id_), await store.list_given_up(database, id_)


async def delete_webhook(id_: str, *, write: Write) -> None:
    """Remove a webhook; raises NotFoundError."""
    await write(lambda transaction: store.remove_webhook(transaction, id_))


async def enable_webhook(id_: str, *, now: int, write: Write) -> StoredWebhook:
    """Resume sending to a webhook, beginning with given-up messages; raises NotFoundError."""
    return await write(lambda transaction: store.mark_enabled(transaction, id_, now))


async def send_test_message(
    database: Database, post: Post, key: bytes, id_: str, now: int
) -> DeliveryResult:
    """Send a message of the type `webhook.test` once; raises NotFoundError, ConflictError."""
    try:
        target = store.open_target(key, id_, await store.get_sealed_target(database, id_))
    except NotOpenedError:
        raise ConflictError(
            "This webhook was sealed under another token_key. Make it again."
        ) from None
    text = encode_message(TEST_TYPE, now, {"webhook": id_})
    message = WebhookMessage(f"test-{secrets.token_hex(8)}", TEST_TYPE, text, now, 0)
    started = time.perf_counter()
    reply = await send_message(post, target, message, now)
    spent = round((time.perf_counter() - started) * 1000)
    good = 200 <= reply.status < 300 and not reply.failure
    error = None if good else reply.failure or f"answered {reply.status}"
    return DeliveryResult(reply.status, spent, error)


_CLAIM_WEBHOOK = """
UPDATE webhook_endpoints SET holder = ?, held_until = ?
WHERE id = ? AND disabled_at IS NULL AND {free}
RETURNING types, address, secret, next_position, next_item
""".replace("{free}", lease.free_lease_condition("webhook_endpoints"))

_READ_RETRIES = """
SELECT event_id, type, body, first_at, attempts FROM webhook_retries
WHERE webhook_id = ? AND (next_at <= ? OR next_at > ?) ORDER BY next_at, event_id LIMIT ?
"""

_COUNT_RETRIES = "SELECT COUNT(*) FROM webhook_retries WHERE webhook_id = ? AND next_at IS NOT NULL"

_FINISH_DELIVERY = """
UPDATE webhook_endpoints SET next_position = ?, next_item = ?, holder = '', held_until = 0,
    succeeded_at = COALESCE(?, succeeded_at), failed_at = COALESCE(?, failed_at),
    error = COALESCE(?, error)
WHERE id = ? AND {mine} RETURNING succeeded_at
""".replace("{mine}", lease.CLAIMED)

_RELEASE_WEBHOOKS = "UPDATE webhook_endpoints SET holder = '', held_until = 0 WHERE holder = ?"

_STORE_RETRY = """
INSERT INTO webhook_retries (
    webhook_id, event_id, type, body, first_at, attempts, next_at, error
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (webhook_id, event_id) DO UPDATE SET attempts = excluded.attempts,
    next_at = excluded.next_at, error = excluded.error
"""

_DELETE_RETRY = "DELETE FROM webhook_retries WHERE webhook_id = ? AND event_id = ?"

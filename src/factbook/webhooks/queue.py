"""Queue of webhook messages: claimed by one process at a time, requeued after a failure.

A process stores its results in one transaction after a few messages; if it dies before that,
another process sends them once more.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.events.event import FeedPosition
from factbook.events.store import COUNTER
from factbook.scheduling import lease
from factbook.scheduling.lease import Claim
from factbook.storage import Database, Transaction, counters
from factbook.webhooks.secrets import Sealed
from factbook.webhooks.store import types_of

# Longer than a round of messages takes (webhooks/sender.py).
HELD: Final = 40 * SECOND
# Messages that wait for another try; with so many no new ones are begun.
WINDOW: Final = 100
# After how long a message is sent again: about a day until it is given up.
PAUSES: Final = (
    5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR,
)  # fmt: skip


class WebhookMessage(NamedTuple):
    """An event to send, with the time and the number of the attempts so far."""

    event_id: str
    type: str
    body: str
    first_at: int
    attempts: int


class Claimed(NamedTuple):
    """A webhook that one process serves while its claim lasts."""

    id: str
    types: tuple[str, ...]
    sealed: Sealed
    next: FeedPosition
    claim: Claim
    due: list[WebhookMessage]
    room: int


class Sent(NamedTuple):
    """Result of a message: the error (None: delivered) and the receiver's wishes."""

    message: WebhookMessage
    error: str | None
    gone: bool = False
    not_before: int = 0


async def due(database: Database, now: int) -> list[str]:
    """Webhooks that have something to send and that no process serves."""
    rows = await database.all(_DUE, (*lease.lapse_bounds(now, HELD), WINDOW, now, now + _FAR))
    return [id_ for (id_,) in rows]


def claim(transaction: Transaction, id_: str, holder: str, now: int, most: int) -> Claimed | None:
    """Claim the webhook, with up to `most` messages that are due again.

    None when another process has it, or nobody may send for it.
    """
    claim = Claim(holder, now + HELD)
    row = transaction.one(_CLAIM, (*claim, id_, *lease.lapse_bounds(now, HELD)))
    if row is None:
        return None
    again = [
        WebhookMessage(*one) for one in transaction.all(_AGAIN_NOW, (id_, now, now + _FAR, most))
    ]
    (waiting,) = transaction.one(_WAITING, (id_,)) or (0,)
    room = min(most - len(again), WINDOW - waiting)
    types, address, secret, *place = row
    sealed = Sealed(address, secret)
    return Claimed(id_, types_of(types), sealed, FeedPosition(*place), claim, again, room)


def finish(
    transaction: Transaction, claimed: Claimed, sent: Sequence[Sent], place: FeedPosition, now: int
) -> bool | None:
    """Store the results, advance the feed position to `place`, and release the webhook.

    Returns true if the webhook was disabled, None if the holder has lost its claim.
    """
    failed = next((one.error for one in sent if one.error is not None), None)
    succeeded = any(one.error is None for one in sent)
    row = transaction.one(_FINISH, (
        *place, now if succeeded else None, None if failed is None else now, failed,
        claimed.id, *claimed.claim,
    ))  # fmt: skip
    if row is None:
        return None
    lost = [_retry(transaction, claimed.id, one, now) for one in sent]
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


def release(transaction: Transaction, holder: str) -> None:
    """Release the webhooks of the holder at once."""
    transaction.run(_RELEASE, (holder,))


def _retry(transaction: Transaction, id_: str, sent: Sent, now: int) -> bool:
    """Store when a message is sent again or that it is not; returns true if it is given up."""
    message = sent.message
    if sent.error is None:
        if message.attempts:
            transaction.run(_DELIVERED, (id_, message.event_id))
        return False
    attempts, next_at = message.attempts + 1, None
    if attempts <= len(PAUSES):
        next_at = max(now + _pause(message), min(sent.not_before, now + PAUSES[-1]))
    row = (id_, *message[:-1], attempts, next_at, sent.error)
    transaction.run(_RETRY, row)
    return next_at is None


def _pause(message: WebhookMessage) -> int:
    # What failed together is not sent again at the same moment.
    spread = crc32(f"{message.event_id} {message.attempts}".encode()) % 20
    return PAUSES[message.attempts] * (100 + spread) // 100


# A clock that was set back keeps no message from being sent.
_FAR: Final = 2 * PAUSES[-1]

_DUE = """
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
    "{newest}", counters.expression(COUNTER)
)

_CLAIM = """
UPDATE webhook_endpoints SET holder = ?, held_until = ?
WHERE id = ? AND disabled_at IS NULL AND {free}
RETURNING types, address, secret, next_position, next_item
""".replace("{free}", lease.free_lease_condition("webhook_endpoints"))

_AGAIN_NOW = """
SELECT event_id, type, body, first_at, attempts FROM webhook_retries
WHERE webhook_id = ? AND (next_at <= ? OR next_at > ?) ORDER BY next_at, event_id LIMIT ?
"""

_WAITING = "SELECT COUNT(*) FROM webhook_retries WHERE webhook_id = ? AND next_at IS NOT NULL"

_FINISH = """
UPDATE webhook_endpoints SET next_position = ?, next_item = ?, holder = '', held_until = 0,
    succeeded_at = COALESCE(?, succeeded_at), failed_at = COALESCE(?, failed_at),
    error = COALESCE(?, error)
WHERE id = ? AND {mine} RETURNING succeeded_at
""".replace("{mine}", lease.CLAIMED)

_RELEASE = "UPDATE webhook_endpoints SET holder = '', held_until = 0 WHERE holder = ?"

_RETRY = """
INSERT INTO webhook_retries (
    webhook_id, event_id, type, body, first_at, attempts, next_at, error
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (webhook_id, event_id) DO UPDATE SET attempts = excluded.attempts,
    next_at = excluded.next_at, error = excluded.error
"""

_DELIVERED = "DELETE FROM webhook_retries WHERE webhook_id = ? AND event_id = ?"

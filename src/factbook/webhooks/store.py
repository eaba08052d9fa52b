"""The store of webhooks: where each is in the feed, and what has to be sent to it again.

One process at a time sends for a webhook. What it did is stored in one transaction after a few
messages; when it dies before that, another process sends them once more.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from zlib import crc32

import msgspec

from factbook.clock import HOUR, MINUTE, SECOND
from factbook.errors import ConflictError, NotFoundError
from factbook.events.event import Place
from factbook.storage import Database, Row, Transaction

MOST: Final = 50
# Longer than a round of messages takes (webhooks/courier.py).
HELD: Final = 40 * SECOND
# Messages that wait for another try; with so many no new ones are begun.
WINDOW: Final = 100
# After how long a message is sent again: about a day until it is given up.
PAUSES: Final = (
    5 * SECOND, MINUTE, 5 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 8 * HOUR,
)  # fmt: skip
_GIVEN_UP_SHOWN: Final = 100


class Webhook(NamedTuple):
    """A webhook without its secret; `waiting` and `given_up` count messages."""

    id: str
    url: str
    types: tuple[str, ...]
    created_at: int
    created_by: str
    succeeded_at: int | None
    failed_at: int | None
    error: str | None
    disabled_at: int | None
    waiting: int
    given_up: int


class GivenUp(NamedTuple):
    """A message that could not be delivered."""

    event_id: str
    type: str
    first_at: int
    attempts: int
    error: str


class Message(NamedTuple):
    """What is sent of an event, and when and how often that was tried before."""

    event_id: str
    type: str
    body: str
    first_at: int
    attempts: int


class Claimed(NamedTuple):
    """A webhook for which one process sends until `held_until`."""

    id: str
    url: str
    types: tuple[str, ...]
    secret: bytes
    next: Place
    holder: str
    held_until: int
    due: list[Message]
    room: int


class Sent(NamedTuple):
    """What came of a message: why it failed (None: delivered), and what the receiver asks for."""

    message: Message
    error: str | None
    gone: bool = False
    not_before: int = 0


def add(transaction: Transaction, hook: Webhook, secret: bytes, place: Place) -> None:
    """Store a webhook, `secret` sealed, that gets the events from `place` on.

    Raises ConflictError when there are too many.
    """
    transaction.lock("webhooks")
    if len(transaction.all("SELECT id FROM webhooks")) >= MOST:
        raise ConflictError(f"There are {MOST} webhooks already, which is the most.")
    types = msgspec.json.encode(hook.types).decode()
    transaction.run(
        _ADD, (hook.id, hook.url, types, secret, hook.created_at, hook.created_by, *place)
    )


async def listed(database: Database) -> list[Webhook]:
    """Every webhook, the oldest first."""
    rows = await database.all(_SHOWN.replace("{}", "ORDER BY w.created_at, w.id"))
    return [_webhook(row) for row in rows]


async def one(database: Database, id_: str) -> Webhook:
    """A webhook; raises NotFoundError."""
    row = await database.one(_SHOWN.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise _missing(id_)
    return _webhook(row)


async def given_up(database: Database, id_: str) -> list[GivenUp]:
    """The messages that could not be delivered, the newest first, up to a hundred."""
    return [GivenUp(*row) for row in await database.all(_GIVEN_UP, (id_, _GIVEN_UP_SHOWN))]


async def secret(database: Database, id_: str) -> bytes:
    """The sealed secret; raises NotFoundError."""
    row = await database.one("SELECT secret FROM webhooks WHERE id = ?", (id_,))
    if row is None:
        raise _missing(id_)
    return bytes(row[0])


def remove(transaction: Transaction, id_: str) -> Webhook:
    """Forget a webhook and its messages; raises NotFoundError."""
    found = _existing(transaction, id_)
    transaction.run("DELETE FROM webhook_retries WHERE webhook_id = ?", (id_,))
    transaction.run("DELETE FROM webhooks WHERE id = ?", (id_,))
    return found


def enable(transaction: Transaction, id_: str, now: int) -> Webhook:
    """Send again, what was given up first; raises NotFoundError."""
    found = _existing(transaction, id_)
    transaction.run("UPDATE webhooks SET disabled_at = NULL WHERE id = ?", (id_,))
    transaction.run(_AGAIN, (now, now, id_))
    return found._replace(disabled_at=None)


async def due(database: Database, now: int) -> list[str]:
    """The webhooks for which there is something to send, and nobody does."""
    rows = await database.all(_DUE, (now, now + 2 * HELD, WINDOW, now))
    return [id_ for (id_,) in rows]


def claim(transaction: Transaction, id_: str, holder: str, now: int, most: int) -> Claimed | None:
    """The webhook, to send for it, with up to `most` messages that are due again.

    None when another process does, or nobody may.
    """
    held_until = now + HELD
    row = transaction.one(_CLAIM, (holder, held_until, id_, now, now + 2 * HELD))
    if row is None:
        return None
    again = [Message(*one) for one in transaction.all(_AGAIN_NOW, (id_, now, most))]
    (waiting,) = transaction.one(_WAITING, (id_,)) or (0,)
    room = min(most - len(again), WINDOW - waiting)
    url, types, sealed, *place = row
    return Claimed(
        id_, url, _types(types), bytes(sealed), Place(*place), holder, held_until, again, room
    )


def finish(
    transaction: Transaction, claimed: Claimed, sent: Sequence[Sent], place: Place, now: int
) -> bool | None:
    """Store what was sent, and that the feed is read up to `place`, and let others have it.

    Whether the webhook was disabled; None when it is not the holder's any more.
    """
    failed = next((one.error for one in sent if one.error is not None), None)
    succeeded = any(one.error is None for one in sent)
    row = transaction.one(_FINISH, (
        *place, now if succeeded else None, None if failed is None else now, failed,
        claimed.id, claimed.holder, claimed.held_until,
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
        transaction.run("UPDATE webhooks SET disabled_at = ? WHERE id = ?", (now, claimed.id))
    return disabled


def release(transaction: Transaction, holder: str) -> None:
    """Let others send for the webhooks of the holder at once."""
    transaction.run(_RELEASE, (holder,))


def forget(transaction: Transaction, before: int) -> int:
    """Forget messages from before a time that were given up; how many."""
    return transaction.run(_FORGET, (before,))


def _retry(transaction: Transaction, id_: str, sent: Sent, now: int) -> bool:
    """Store when a message is sent again, or that it is not; whether it is given up."""
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


def _pause(message: Message) -> int:
    # What failed together is not sent again at the same moment.
    spread = crc32(f"{message.event_id} {message.attempts}".encode()) % 20
    return PAUSES[message.attempts] * (100 + spread) // 100


def _existing(transaction: Transaction, id_: str) -> Webhook:
    row = transaction.one(_SHOWN.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise _missing(id_)
    return _webhook(row)


def _missing(id_: str) -> NotFoundError:
    return NotFoundError(f'There is no webhook "{id_}".')


def _webhook(row: Row) -> Webhook:
    id_, url, types, *rest = row
    return Webhook(id_, url, _types(types), *rest)


def _types(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


_ADD = """
INSERT INTO webhooks (
    id, url, types, secret, created_at, created_by, next_position, next_item, holder, held_until
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, '', 0)
"""

_SHOWN = """
SELECT w.id, w.url, w.types, w.created_at, w.created_by, w.succeeded_at, w.failed_at, w.error,
    w.disabled_at,
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NULL)
FROM webhooks w {}
"""

_GIVEN_UP = """
SELECT event_id, type, first_at, attempts, error FROM webhook_retries
WHERE webhook_id = ? AND next_at IS NULL ORDER BY first_at DESC, event_id LIMIT ?
"""

_AGAIN = """
UPDATE webhook_retries SET next_at = ?, first_at = ?, attempts = 1 WHERE webhook_id = ?
"""

# A clock that was set back does not keep a webhook from being taken over.
_FREE = "disabled_at IS NULL AND (held_until <= ? OR held_until > ?)"

_DUE = f"""
SELECT w.id FROM webhooks w WHERE {_FREE} AND ((
    w.next_position <= (SELECT value FROM counters WHERE name = 'event') AND (
        SELECT COUNT(*) FROM webhook_retries r
        WHERE r.webhook_id = w.id AND r.next_at IS NOT NULL
    ) < ?
) OR EXISTS (
    SELECT 1 FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at <= ?
)) ORDER BY w.id
"""

_CLAIM = f"""
UPDATE webhooks SET holder = ?, held_until = ? WHERE id = ? AND {_FREE}
RETURNING url, types, secret, next_position, next_item
"""

_AGAIN_NOW = """
SELECT event_id, type, body, first_at, attempts FROM webhook_retries
WHERE webhook_id = ? AND next_at <= ? ORDER BY next_at, event_id LIMIT ?
"""

_WAITING = "SELECT COUNT(*) FROM webhook_retries WHERE webhook_id = ? AND next_at IS NOT NULL"

_FINISH = """
UPDATE webhooks SET next_position = ?, next_item = ?, holder = '', held_until = 0,
    succeeded_at = COALESCE(?, succeeded_at), failed_at = COALESCE(?, failed_at),
    error = COALESCE(?, error)
WHERE id = ? AND holder = ? AND held_until = ? RETURNING succeeded_at
"""

_RELEASE = "UPDATE webhooks SET holder = '', held_until = 0 WHERE holder = ?"

_RETRY = """
INSERT INTO webhook_retries (
    webhook_id, event_id, type, body, first_at, attempts, next_at, error
) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (webhook_id, event_id) DO UPDATE SET attempts = excluded.attempts,
    next_at = excluded.next_at, error = excluded.error
"""

_DELIVERED = "DELETE FROM webhook_retries WHERE webhook_id = ? AND event_id = ?"

_FORGET = "DELETE FROM webhook_retries WHERE next_at IS NULL AND first_at < ?"

"""Storage of webhooks as administrators see and change them."""

from typing import Final, NamedTuple

import msgspec

from factbook.errors import ConflictError, NotFoundError, no_such
from factbook.events import store as events
from factbook.events.event import FeedPosition
from factbook.storage import Database, Row, Transaction
from factbook.webhooks import secrets
from factbook.webhooks.secrets import Sealed

MOST: Final = 50
_GIVEN_UP_SHOWN: Final = 100


class StoredWebhook(NamedTuple):
    """A webhook without its secrets; `waiting` and `given_up` count messages.

    `url` is the address as it is shown.
    """

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


class WebhookCounts(NamedTuple):
    """Counts of webhooks and messages.

    `oldest_at` is the time of the oldest event that an enabled webhook has not been sent.
    """

    enabled: int
    disabled: int
    waiting: int
    given_up: int
    oldest_at: int | None


async def figures(database: Database) -> WebhookCounts:
    """Current counts of webhooks and messages."""
    row = await database.one(_FIGURES)
    assert row is not None
    enabled, disabled, waiting, given_up, first_at, position = row
    times = first_at, None if position is None else await events.time_of(database, position)
    oldest = min((at for at in times if at is not None), default=None)
    return WebhookCounts(enabled, disabled, waiting, given_up, oldest)


def add(transaction: Transaction, hook: StoredWebhook, sealed: Sealed, place: FeedPosition) -> None:
    """Store a webhook that gets the events from `place` on.

    Raises ConflictError when there are too many.
    """
    transaction.lock("webhooks")
    if len(transaction.all("SELECT id FROM webhook_endpoints")) >= MOST:
        raise ConflictError(f"There are already {MOST} webhooks, the maximum.")
    types = msgspec.json.encode(hook.types).decode()
    transaction.run(
        _ADD, (hook.id, hook.url, *sealed, types, hook.created_at, hook.created_by, *place)
    )


async def listed(database: Database) -> list[StoredWebhook]:
    """Every webhook, oldest first."""
    rows = await database.all(_SHOWN.replace("{}", "ORDER BY w.created_at, w.id"))
    return [_webhook(row) for row in rows]


async def one(database: Database, id_: str) -> StoredWebhook:
    """A webhook; raises NotFoundError."""
    row = await database.one(_SHOWN.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise await _missing(database, id_)
    return _webhook(row)


async def given_up(database: Database, id_: str) -> list[GivenUp]:
    """Up to a hundred messages that could not be delivered, newest first."""
    return [GivenUp(*row) for row in await database.all(_GIVEN_UP, (id_, _GIVEN_UP_SHOWN))]


async def sealed(database: Database, id_: str) -> Sealed:
    """Sealed secrets of a webhook; raises NotFoundError."""
    row = await database.one("SELECT address, secret FROM webhook_endpoints WHERE id = ?", (id_,))
    if row is None:
        raise await _missing(database, id_)
    return Sealed(*row)


async def every_sealed(database: Database) -> dict[str, Sealed]:
    """Sealed secrets of each webhook, by its id."""
    rows = await database.all("SELECT id, address, secret FROM webhook_endpoints")
    return {id_: Sealed(*row) for id_, *row in rows}


def remove(transaction: Transaction, id_: str) -> StoredWebhook:
    """Delete a webhook and its messages; raises NotFoundError."""
    found = _existing(transaction, id_)
    transaction.run("DELETE FROM webhook_retries WHERE webhook_id = ?", (id_,))
    transaction.run("DELETE FROM webhook_endpoints WHERE id = ?", (id_,))
    return found


def enable(transaction: Transaction, id_: str, now: int) -> StoredWebhook:
    """Resume sending, given-up messages first; raises NotFoundError."""
    found = _existing(transaction, id_)
    transaction.run("UPDATE webhook_endpoints SET disabled_at = NULL WHERE id = ?", (id_,))
    transaction.run(_AGAIN, (now, now, id_))
    return found._replace(disabled_at=None)


def begin_at(transaction: Transaction, place: FeedPosition) -> None:
    """Reset every webhook to the events from `place` on and delete all messages."""
    transaction.run("DELETE FROM webhook_retries")
    transaction.run("UPDATE webhook_endpoints SET next_position = ?, next_item = ?", place)
    # Those of an older release are yet to be adopted.
    transaction.run("UPDATE webhooks SET next_position = ?, next_item = ?", place)


def forget(transaction: Transaction, before: int) -> int:
    """Delete given-up messages from before a time; returns their number."""
    return transaction.run(_FORGET, (before,))


def _existing(transaction: Transaction, id_: str) -> StoredWebhook:
    row = transaction.one(_SHOWN.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise no_such("webhook", id_, [one for (one,) in transaction.all(_IDS)])
    return _webhook(row)


_IDS: Final = "SELECT id FROM webhook_endpoints ORDER BY id"


async def _missing(database: Database, id_: str) -> NotFoundError:
    return no_such("webhook", id_, [one for (one,) in await database.all(_IDS)])


def _webhook(row: Row) -> StoredWebhook:
    id_, url, types, *rest = row
    # One that could not be sealed yet has the whole address.
    return StoredWebhook(id_, secrets.shown(url), types_of(types), *rest)


def types_of(text: str) -> tuple[str, ...]:
    """Event types that a webhook gets; none means all."""
    return msgspec.json.decode(text, type=tuple[str, ...])


_ADD = """
INSERT INTO webhook_endpoints (
    id, url, address, secret, types, created_at, created_by, next_position, next_item, holder,
    held_until
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0)
"""

_SHOWN = """
SELECT w.id, w.url, w.types, w.created_at, w.created_by, w.succeeded_at, w.failed_at, w.error,
    w.disabled_at,
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NULL)
FROM webhook_endpoints w {}
"""

_GIVEN_UP = """
SELECT event_id, type, first_at, attempts, error FROM webhook_retries
WHERE webhook_id = ? AND next_at IS NULL ORDER BY first_at DESC, event_id LIMIT ?
"""

_AGAIN = """
UPDATE webhook_retries SET next_at = ?, first_at = ?, attempts = 1 WHERE webhook_id = ?
"""

# The first that waits to be sent again, and the first that was never sent.
_FIGURES = """
SELECT (SELECT COUNT(*) FROM webhook_endpoints WHERE disabled_at IS NULL),
    (SELECT COUNT(*) FROM webhook_endpoints WHERE disabled_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries WHERE next_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries WHERE next_at IS NULL),
    (SELECT MIN(r.first_at) FROM webhook_retries r JOIN webhook_endpoints w ON w.id = r.webhook_id
        WHERE r.next_at IS NOT NULL AND w.disabled_at IS NULL),
    (SELECT MIN(next_position) FROM webhook_endpoints WHERE disabled_at IS NULL)
"""

_FORGET = "DELETE FROM webhook_retries WHERE next_at IS NULL AND first_at < ?"

"""Storage of webhooks: sealed addresses and keys, and the data for administrators.

Releases before 0015 stored addresses in the clear. Such a release may run alongside and add
webhooks. These are adopted with their claims, so sending continues where that release stopped.
"""

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec
import structlog

from factbook.auth import encryption
from factbook.auth.encryption import NotOpenedError
from factbook.errors import ConflictError, NotFoundError, UnavailableError, no_such
from factbook.events.store import FeedPosition, fetch_event_time
from factbook.storage import Database, Row, Transaction

_ADDRESS_LABEL: Final = "webhook addresses"
_KEY_LABEL: Final = "webhooks"
# Placeholder for the hidden part of an address.
_HIDDEN: Final = "/…"

MOST_WEBHOOKS: Final = 50
_MOST_GIVEN_UP: Final = 100

log = structlog.get_logger("factbook.webhooks")


class WebhookTarget(NamedTuple):
    """Address of a webhook and the key that signs its messages."""

    url: str
    secret: bytes

    def __repr__(self) -> str:
        """Representation without the secrets."""
        return "WebhookTarget(…)"


class Sealed(NamedTuple):
    """A stored target; `address` is missing in rows that are not yet sealed."""

    address: bytes | None
    secret: bytes


def seal_target(key: bytes, id_: str, target: WebhookTarget) -> Sealed:
    """Seal the target for storage."""
    return Sealed(
        encryption.seal_secret(key, _ADDRESS_LABEL, id_, target.url.encode()),
        encryption.seal_secret(key, _KEY_LABEL, f"{id_} {target.url}", target.secret),
    )


def open_target(key: bytes, id_: str, sealed: Sealed) -> WebhookTarget:
    """Open the target; raises NotOpenedError, also for a target that is not yet sealed."""
    if sealed.address is None:
        raise NotOpenedError
    url = encryption.open_secret(key, _ADDRESS_LABEL, id_, sealed.address).decode()
    return WebhookTarget(
        url, encryption.open_secret(key, _KEY_LABEL, f"{id_} {url}", sealed.secret)
    )


def seal_address(key: bytes, id_: str, url: str, secret: bytes) -> bytes:
    """Seal the address alone; raises NotOpenedError unless the key opens its secret."""
    encryption.open_secret(key, _KEY_LABEL, f"{id_} {url}", secret)
    return encryption.seal_secret(key, _ADDRESS_LABEL, id_, url.encode())


def mask_address(url: str) -> str:
    """The address without what may be secret: scheme, host, port, and a mark if there is more."""
    parts = urlsplit(url)
    more = parts.path.strip("/") or parts.query
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{_HIDDEN if more else ''}"


class StoredWebhook(NamedTuple):
    """A webhook without its secrets; `waiting` and `given_up` count messages.

    `url` is the masked address.
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


async def count_webhooks(database: Database) -> WebhookCounts:
    """Current counts of webhooks and messages."""
    row = await database.one(_COUNT_WEBHOOKS)
    assert row is not None
    enabled, disabled, waiting, given_up, first_at, position = row
    times = first_at, None if position is None else await fetch_event_time(database, position)
    oldest = min((at for at in times if at is not None), default=None)
    return WebhookCounts(enabled, disabled, waiting, given_up, oldest)


def add_webhook(
    transaction: Transaction, hook: StoredWebhook, sealed: Sealed, place: FeedPosition
) -> None:
    """Store a webhook that gets the events from `place` on.

    Raises ConflictError when there are too many.
    """
    transaction.lock("webhooks")
    if len(transaction.all("SELECT id FROM webhook_endpoints")) >= MOST_WEBHOOKS:
        raise ConflictError(f"There are already {MOST_WEBHOOKS} webhooks, the maximum.")
    types = msgspec.json.encode(hook.types).decode()
    transaction.run(
        _ADD_WEBHOOK, (hook.id, hook.url, *sealed, types, hook.created_at, hook.created_by, *place)
    )


async def list_webhooks(database: Database) -> list[StoredWebhook]:
    """Every webhook, oldest first."""
    rows = await database.all(_READ_WEBHOOKS.replace("{}", "ORDER BY w.created_at, w.id"))
    return [_parse_webhook(row) for row in rows]


async def get_webhook(database: Database, id_: str) -> StoredWebhook:
    """A webhook; raises NotFoundError."""
    row = await database.one(_READ_WEBHOOKS.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise await _make_missing_error(database, id_)
    return _parse_webhook(row)


async def list_given_up(database: Database, id_: str) -> list[GivenUp]:
    """Up to a hundred messages that could not be delivered, newest first."""
    return [GivenUp(*row) for row in await database.all(_READ_GIVEN_UP, (id_, _MOST_GIVEN_UP))]


async def get_sealed_target(database: Database, id_: str) -> Sealed:
    """Sealed secrets of a webhook; raises NotFoundError."""
    row = await database.one("SELECT address, secret FROM webhook_endpoints WHERE id = ?", (id_,))
    if row is None:
        raise await _make_missing_error(database, id_)
    return Sealed(*row)


async def list_sealed_targets(database: Database) -> dict[str, Sealed]:
    """Sealed secrets of each webhook, by its id."""
    rows = await database.all("SELECT id, address, secret FROM webhook_endpoints")
    return {id_: Sealed(*row) for id_, *row in rows}


def remove_webhook(transaction: Transaction, id_: str) -> StoredWebhook:
    """Delete a webhook and its messages; raises NotFoundError."""
    found = _require_webhook(transaction, id_)
    transaction.run("DELETE FROM webhook_retries WHERE webhook_id = ?", (id_,))
    transaction.run("DELETE FROM webhook_endpoints WHERE id = ?", (id_,))
    return found


def mark_enabled(transaction: Transaction, id_: str, now: int) -> StoredWebhook:
    """Resume sending, given-up messages first; raises NotFoundError."""
    found = _require_webhook(transaction, id_)
    transaction.run("UPDATE webhook_endpoints SET disabled_at = NULL WHERE id = ?", (id_,))
    transaction.run(_RETRY_GIVEN_UP, (now, now, id_))
    return found._replace(disabled_at=None)


def reset_webhooks(transaction: Transaction, place: FeedPosition) -> None:
    """Reset every webhook to the events from `place` on and delete all messages."""
    transaction.run("DELETE FROM webhook_retries")
    transaction.run("UPDATE webhook_endpoints SET next_position = ?, next_item = ?", place)
    # Webhooks of an older release are not adopted yet.
    transaction.run("UPDATE webhooks SET next_position = ?, next_item = ?", place)


def delete_given_up(transaction: Transaction, before: int) -> int:
    """Delete given-up messages from before a time; returns their number."""
    return transaction.run(_DELETE_GIVEN_UP, (before,))


def _require_webhook(transaction: Transaction, id_: str) -> StoredWebhook:
    row = transaction.one(_READ_WEBHOOKS.replace("{}", "WHERE w.id = ?"), (id_,))
    if row is None:
        raise no_such("webhook", id_, [one for (one,) in transaction.all(_WEBHOOK_IDS)])
    return _parse_webhook(row)


async def _make_missing_error(database: Database, id_: str) -> NotFoundError:
    return no_such("webhook", id_, [one for (one,) in await database.all(_WEBHOOK_IDS)])


def _parse_webhook(row: Row) -> StoredWebhook:
    id_, url, types, *rest = row
    # Unsealed webhooks still have the full address.
    return StoredWebhook(id_, mask_address(url), list_types(types), *rest)


def list_types(text: str) -> tuple[str, ...]:
    """Event types that a webhook gets; none means all."""
    return msgspec.json.decode(text, type=tuple[str, ...])


async def adopt_webhooks(database: Database, key: bytes) -> None:
    """Move and seal webhooks stored in the clear; to be called at process start.

    If the database is not writable now, the senders do so later.
    """
    try:
        if await database.one(_ANY_ADDED) or await database.one(_READ_CLEAR):
            await _write_adoption(database, key)
    except UnavailableError as error:
        log.warning("webhook.unsealed", cause=error.cause)


async def adopt_added_webhooks(database: Database, key: Callable[[], bytes]) -> None:
    """Move and seal webhooks that another process has added since."""
    if await database.one(_ANY_ADDED):
        await _write_adoption(database, key())


async def _write_adoption(database: Database, key: bytes) -> None:
    def move_and_seal(transaction: Transaction) -> int:
        transaction.lock("webhooks")
        transaction.many(_ADD_TAKEN, transaction.all(_TAKE_ADDED))
        unsealed = transaction.all(_READ_CLEAR)
        return sum(_seal_clear_address(transaction, key, *row) for row in unsealed)

    if count := await database.write(move_and_seal):
        log.info("webhook.sealed", webhooks=count)


def _seal_clear_address(
    transaction: Transaction, key: bytes, id_: str, url: str, secret: bytes
) -> bool:
    """Seal one address, unless the key may be wrong because it does not open the secret."""
    try:
        address = seal_address(key, id_, url, bytes(secret))
    except NotOpenedError:
        return False
    transaction.run(_STORE_ADDRESS, (mask_address(url), address, id_))
    return True


_WEBHOOK_IDS: Final = "SELECT id FROM webhook_endpoints ORDER BY id"

_ADD_WEBHOOK = """
INSERT INTO webhook_endpoints (
    id, url, address, secret, types, created_at, created_by, next_position, next_item, holder,
    held_until
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0)
"""

_READ_WEBHOOKS = """
SELECT w.id, w.url, w.types, w.created_at, w.created_by, w.succeeded_at, w.failed_at, w.error,
    w.disabled_at,
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries r WHERE r.webhook_id = w.id AND r.next_at IS NULL)
FROM webhook_endpoints w {}
"""

_READ_GIVEN_UP = """
SELECT event_id, type, first_at, attempts, error FROM webhook_retries
WHERE webhook_id = ? AND next_at IS NULL ORDER BY first_at DESC, event_id LIMIT ?
"""

_RETRY_GIVEN_UP = """
UPDATE webhook_retries SET next_at = ?, first_at = ?, attempts = 1 WHERE webhook_id = ?
"""

# The oldest message waiting for a retry, and the oldest unsent event.
_COUNT_WEBHOOKS = """
SELECT (SELECT COUNT(*) FROM webhook_endpoints WHERE disabled_at IS NULL),
    (SELECT COUNT(*) FROM webhook_endpoints WHERE disabled_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries WHERE next_at IS NOT NULL),
    (SELECT COUNT(*) FROM webhook_retries WHERE next_at IS NULL),
    (SELECT MIN(r.first_at) FROM webhook_retries r JOIN webhook_endpoints w ON w.id = r.webhook_id
        WHERE r.next_at IS NOT NULL AND w.disabled_at IS NULL),
    (SELECT MIN(next_position) FROM webhook_endpoints WHERE disabled_at IS NULL)
"""

_DELETE_GIVEN_UP = "DELETE FROM webhook_retries WHERE next_at IS NULL AND first_at < ?"

_ANY_ADDED: Final = "SELECT 1 FROM webhooks LIMIT 1"

_TAKE_ADDED: Final = """
DELETE FROM webhooks RETURNING id, url, types, secret, created_at, created_by, next_position,
    next_item, holder, held_until, succeeded_at, failed_at, error, disabled_at
"""

_ADD_TAKEN: Final = """
INSERT INTO webhook_endpoints (
    id, url, types, secret, created_at, created_by, next_position, next_item, holder, held_until,
    succeeded_at, failed_at, error, disabled_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_READ_CLEAR: Final = "SELECT id, url, secret FROM webhook_endpoints WHERE address IS NULL"

_STORE_ADDRESS: Final = "UPDATE webhook_endpoints SET url = ?, address = ? WHERE id = ?"

"""Adoption of webhooks whose addresses older releases stored in the clear (before 0015).

Such a release may run beside this one and add webhooks. Their messages are taken from it, with its
claim, so that this one begins where that one would have stopped.
"""

from collections.abc import Callable
from typing import Final

import structlog

from factbook.auth.encryption import NotOpenedError
from factbook.errors import UnavailableError
from factbook.storage import Database, Transaction
from factbook.webhooks import secrets

log = structlog.get_logger("factbook.webhooks")


async def adopt(database: Database, key: bytes) -> None:
    """Move and seal webhooks in the clear; to be called when a process starts.

    Where the database cannot be written now, the senders do so later.
    """
    try:
        if await database.one(_ADDED) or await database.one(_IN_THE_CLEAR):
            await _adopted(database, key)
    except UnavailableError as error:
        log.warning("webhook.unsealed", cause=error.cause)


async def adopt_added(database: Database, key: Callable[[], bytes]) -> None:
    """Move and seal webhooks that another process has added since."""
    if await database.one(_ADDED):
        await _adopted(database, key())


async def _adopted(database: Database, key: bytes) -> None:
    if sealed := await database.write(lambda transaction: _adopt(transaction, key)):
        log.info("webhook.sealed", webhooks=sealed)


def _adopt(transaction: Transaction, key: bytes) -> int:
    """Do both; returns the number of sealed webhooks."""
    transaction.lock("webhooks")
    transaction.many(_ADD, transaction.all(_TAKE))
    return sum(_seal(transaction, key, *row) for row in transaction.all(_IN_THE_CLEAR))


def _seal(transaction: Transaction, key: bytes, id_: str, url: str, secret: bytes) -> bool:
    """Seal one address, unless the key does not open its secret and may thus be a mistake."""
    try:
        address = secrets.sealed_address(key, id_, url, bytes(secret))
    except NotOpenedError:
        return False
    transaction.run(_SEAL, (secrets.shown(url), address, id_))
    return True


_ADDED: Final = "SELECT 1 FROM webhooks LIMIT 1"

_TAKE: Final = """
DELETE FROM webhooks RETURNING id, url, types, secret, created_at, created_by, next_position,
    next_item, holder, held_until, succeeded_at, failed_at, error, disabled_at
"""

_ADD: Final = """
INSERT INTO webhook_endpoints (
    id, url, types, secret, created_at, created_by, next_position, next_item, holder, held_until,
    succeeded_at, failed_at, error, disabled_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_IN_THE_CLEAR: Final = "SELECT id, url, secret FROM webhook_endpoints WHERE address IS NULL"

_SEAL: Final = "UPDATE webhook_endpoints SET url = ?, address = ? WHERE id = ?"

"""Clients that registered themselves (RFC 7591), kept while somebody lets them do something."""

import uuid
from typing import Final, NamedTuple

import msgspec

from factbook.clock import DAY
from factbook.errors import ConflictError
from factbook.storage import Database, Transaction

MOST: Final = 10_000
# A registration that nobody makes use of is forgotten so soon.
_UNUSED: Final = DAY
# One that was used, so long after its last consent.
_IDLE: Final = 90 * DAY


class Registration(NamedTuple):
    """A client that registered itself, under a name of its own choice."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


def store(
    transaction: Transaction, name: str, redirect_uris: tuple[str, ...], now: int
) -> Registration:
    """Store a new client, in place of the oldest unused one if there are too many.

    Raises ConflictError if all of these are in use.
    """
    transaction.lock("oauth clients")
    [count] = transaction.one("SELECT count(*) FROM oauth_clients") or (0,)
    if count >= MOST and not _forget_oldest(transaction, count - MOST + 1):
        raise ConflictError(
            f"{MOST} clients that registered are in use. An administrator can name further "
            "ones in the setting oauth.clients."
        )
    made = Registration(str(uuid.uuid4()), name, redirect_uris)
    transaction.run(
        "INSERT INTO oauth_clients (id, name, redirect_uris, created_at) VALUES (?, ?, ?, ?)",
        (made.id, name, msgspec.json.encode(redirect_uris).decode(), now),
    )
    return made


def _forget_oldest(transaction: Transaction, number: int) -> int:
    """Delete the oldest clients that nobody let do anything; returns their number."""
    return transaction.run(
        "DELETE FROM oauth_clients WHERE id IN (SELECT id FROM oauth_clients "
        "WHERE used_at IS NULL AND NOT EXISTS "
        "(SELECT 1 FROM oauth_consents c WHERE c.client = oauth_clients.id) "
        "ORDER BY created_at, id LIMIT ?)",
        (number,),
    )


async def find(database: Database, id_: str) -> Registration | None:
    """The client with this id."""
    row = await database.one(
        "SELECT id, name, redirect_uris FROM oauth_clients WHERE id = ?", (id_,)
    )
    if row is None:
        return None
    return Registration(row[0], row[1], msgspec.json.decode(row[2], type=tuple[str, ...]))


def touch(transaction: Transaction, id_: str, now: int) -> None:
    """Record that somebody let the client do something."""
    transaction.run("UPDATE oauth_clients SET used_at = ? WHERE id = ?", (now, id_))


def forget_unused(transaction: Transaction, now: int) -> int:
    """Delete clients that nobody lets do anything any more; returns their number."""
    return transaction.run(
        "DELETE FROM oauth_clients WHERE ((used_at IS NULL AND created_at <= ?) OR used_at <= ?) "
        "AND NOT EXISTS (SELECT 1 FROM oauth_consents c WHERE c.client = oauth_clients.id)",
        (now - _UNUSED, now - _IDLE),
    )

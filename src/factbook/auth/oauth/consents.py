"""Consents: what a person lets a client do, with all the tokens that it has for that."""

from typing import Final, NamedTuple

import msgspec

from factbook.clock import MINUTE
from factbook.errors import NotFoundError
from factbook.storage import Database, Row, Transaction

_COLUMNS: Final = (
    "id, person, client, client_name, redirect_uri, audience, permissions, created_at, "
    "last_used_at, ends_at"
)
_permissions = msgspec.json.Decoder(frozenset[str])


class Consent(NamedTuple):
    """A consent as stored; times in milliseconds since the epoch."""

    id: str
    person: str
    client: str
    client_name: str
    redirect_uri: str
    audience: str
    permissions: frozenset[str]
    created_at: int
    last_used_at: int | None
    ends_at: int


def store(transaction: Transaction, consent: Consent) -> None:
    """Store a new consent."""
    transaction.run(
        "INSERT INTO oauth_consents (id, person, client, client_name, redirect_uri, audience, "
        "permissions, created_at, last_used_at, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*consent[:6], encoded(consent.permissions), *consent[7:]),
    )


def find(transaction: Transaction, id_: str) -> Consent | None:
    """The consent with this id."""
    row = transaction.one(f"SELECT {_COLUMNS} FROM oauth_consents WHERE id = ?", (id_,))
    return _consent(row) if row else None


async def listed(database: Database, person: str, now: int) -> list[Consent]:
    """The person's consents that have not ended, newest first."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM oauth_consents WHERE person = ? AND ends_at > ? "
        "ORDER BY created_at DESC, id",
        (person, now),
    )
    return [_consent(row) for row in rows]


def extend(transaction: Transaction, id_: str, ends_at: int) -> None:
    """Let a consent last until its newest token ends."""
    transaction.run("UPDATE oauth_consents SET ends_at = ? WHERE id = ?", (ends_at, id_))


def touch(transaction: Transaction, id_: str, now: int) -> None:
    """Record the time of a use, at most once a minute."""
    transaction.run(
        "UPDATE oauth_consents SET last_used_at = ? "
        "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ? OR last_used_at > ?)",
        (now, id_, now - MINUTE, now),
    )


def revoke(transaction: Transaction, id_: str) -> None:
    """End a consent with all its tokens, from the next request on."""
    transaction.run("DELETE FROM oauth_tokens WHERE consent = ?", (id_,))
    transaction.run("DELETE FROM oauth_consents WHERE id = ?", (id_,))


def revoke_own(transaction: Transaction, id_: str, person: str) -> Consent:
    """End one of the person's consents; raises NotFoundError."""
    found = find(transaction, id_)
    if found is None or found.person != person:
        raise NotFoundError("This client has no access any more.")
    revoke(transaction, id_)
    return found


def end_all(transaction: Transaction, person: str) -> int:
    """End every consent of the person: whoever was signed in may have given it."""
    transaction.run(
        "DELETE FROM oauth_tokens "
        "WHERE consent IN (SELECT id FROM oauth_consents WHERE person = ?)",
        (person,),
    )
    return transaction.run("DELETE FROM oauth_consents WHERE person = ?", (person,))


def trim(transaction: Transaction, person: str, allowed: frozenset[str]) -> None:
    """Reduce the person's consents to the allowed permissions; end those left with none."""
    rows = transaction.all(
        "SELECT id, permissions FROM oauth_consents WHERE person = ? ORDER BY id", (person,)
    )
    for id_, text in rows:
        left = decoded(text) & allowed
        if not left:
            revoke(transaction, id_)
        elif left != decoded(text):
            transaction.run(
                "UPDATE oauth_consents SET permissions = ? WHERE id = ?", (encoded(left), id_)
            )


def forget_everyone(transaction: Transaction) -> None:
    """End every consent of everybody."""
    transaction.run("DELETE FROM oauth_tokens")
    transaction.run("DELETE FROM oauth_consents")


def forget_ended(transaction: Transaction, now: int) -> int:
    """Delete tokens and consents that have ended; returns their number."""
    gone = transaction.run("DELETE FROM oauth_tokens WHERE expires_at <= ?", (now,))
    return gone + transaction.run("DELETE FROM oauth_consents WHERE ends_at <= ?", (now,))


def encoded(permissions: frozenset[str]) -> str:
    """Permissions as they are stored."""
    return msgspec.json.encode(sorted(permissions)).decode()


def decoded(text: str) -> frozenset[str]:
    """Permissions from their stored form."""
    return _permissions.decode(text)


def _consent(row: Row) -> Consent:
    found = Consent(*row)
    return found._replace(permissions=decoded(str(row[6])))

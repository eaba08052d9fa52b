"""The store of digests: where they are sent to for which owner, and when next."""

from typing import Final, NamedTuple

from factbook.auth import encryption
from factbook.checks.digest import DigestForm
from factbook.errors import ConflictError, NotFoundError
from factbook.storage import Database, Row, Transaction

MOST: Final = 500
_LABEL: Final = "digest addresses"
# How long one process has to send a digest before another one may.
_LEASE: Final = 10 * 60 * 1000


class StoredDigest(NamedTuple):
    """A digest without its address; `url` is as it is shown."""

    id: str
    owner: str
    form: DigestForm
    url: str
    created_at: int
    created_by: str
    told_up_to: int
    next_at: int
    failed_at: int | None
    error: str | None


def add(transaction: Transaction, digest: StoredDigest, address: bytes) -> None:
    """Store a digest; raises ConflictError when there are too many."""
    transaction.lock("digests")
    [count] = transaction.one("SELECT count(*) FROM digests") or (0,)
    if count >= MOST:
        raise ConflictError(f"There are already {MOST} digests, the maximum.")
    transaction.run(_ADD, (*digest[:4], address, *digest[4:8]))


async def listed(database: Database) -> list[StoredDigest]:
    """Every digest, by owner."""
    return [StoredDigest(*row) for row in await database.all(_LISTED)]


def remove(transaction: Transaction, digest_id: str) -> None:
    """Delete a digest; raises NotFoundError."""
    if not transaction.run("DELETE FROM digests WHERE id = ?", (digest_id,)):
        raise NotFoundError(f'There is no digest "{digest_id}".')


async def is_due(database: Database, now: int) -> bool:
    """Return true if a digest is due, or being sent for too long."""
    return await database.one(_IS_DUE, (now,)) is not None


def claim(transaction: Transaction, now: int) -> tuple[StoredDigest, bytes] | None:
    """A digest that is due, with its sealed address, kept from other processes for a while."""
    transaction.lock("digests")
    row: Row | None = transaction.one(_DUE, (now,))
    if row is None:
        return None
    transaction.run("UPDATE digests SET next_at = ? WHERE id = ?", (now + _LEASE, row[0]))
    *rest, address = row
    return StoredDigest(*rest), address


def finish(transaction: Transaction, digest_id: str, told_up_to: int, next_at: int) -> None:
    """Record that a digest was sent, or that nothing had changed."""
    transaction.run(_FINISH, (told_up_to, next_at, digest_id))


def fail(transaction: Transaction, digest_id: str, error: str, now: int, next_at: int) -> None:
    """Record that a digest could not be sent; what it would have told stays to be told."""
    transaction.run(_FAIL, (next_at, now, error, digest_id))


def sealed(key: bytes, digest_id: str, url: str) -> bytes:
    """The address as it is stored."""
    return encryption.seal(key, _LABEL, digest_id, url.encode())


def opened(key: bytes, digest_id: str, address: bytes) -> str:
    """The address; raises NotOpenedError."""
    return encryption.opened(key, _LABEL, digest_id, address).decode()


_LISTED: Final = """
SELECT id, owner, form, url, created_at, created_by, told_up_to, next_at, failed_at, error
FROM digests ORDER BY owner, id
"""

_DUE: Final = """
SELECT id, owner, form, url, created_at, created_by, told_up_to, next_at, failed_at, error, address
FROM digests WHERE next_at <= ? ORDER BY next_at, id LIMIT 1
"""

_IS_DUE: Final = "SELECT 1 FROM digests WHERE next_at <= ? LIMIT 1"

_ADD: Final = """
INSERT INTO digests (id, owner, form, url, address, created_at, created_by, told_up_to, next_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_FINISH: Final = """
UPDATE digests SET told_up_to = ?, next_at = ?, failed_at = NULL, error = NULL WHERE id = ?
"""

_FAIL: Final = "UPDATE digests SET next_at = ?, failed_at = ?, error = ? WHERE id = ?"

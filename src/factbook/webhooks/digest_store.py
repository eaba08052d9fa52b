"""The store of digests: where they are sent to for which owner, and when next."""

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec

from factbook.auth import encryption
from factbook.checks.digests.digest import DigestLevels
from factbook.errors import ConflictError, no_such
from factbook.schemas.events import DigestForm
from factbook.storage import Database, Row, Transaction
from factbook.webhooks.digest_cadence import DigestCadence

MOST: Final = 500
_LABEL: Final = "digest addresses"
# How long one process has to send a digest before another one may.
_IDS: Final = "SELECT id FROM digests ORDER BY id"
_LEASE: Final = 10 * 60 * 1000


class StoredDigest(NamedTuple):
    """A digest without its address; `url` is as it is shown, and "" owns everything.

    `failures` counts those since the last success, and `levels` are as they were last told.
    """

    id: str
    owner: str
    form: DigestForm
    url: str
    cadence: DigestCadence
    created_at: int
    created_by: str
    told_up_to: int
    next_at: int
    levels: DigestLevels
    failures: int = 0
    sent_at: int | None = None
    failed_at: int | None = None
    error: str | None = None


class ClaimedDigest(NamedTuple):
    """A digest that is due, with its sealed address, and until when no other process sends it."""

    digest: StoredDigest
    address: bytes
    held_until: int


class DigestCounts(NamedTuple):
    """Digests, by whether the last message that was due arrived."""

    arriving: int
    failing: int


def add(transaction: Transaction, digest: StoredDigest, address: bytes) -> None:
    """Store a digest; raises ConflictError when there are too many."""
    transaction.lock("digests")
    [count] = transaction.one("SELECT count(*) FROM digests") or (0,)
    if count >= MOST:
        raise ConflictError(f"There are already {MOST} digests, the maximum.")
    levels = _json(digest.levels)
    transaction.run(_ADD, (*digest[:4], *digest.cadence, *digest[5:9], levels, address))


def replace(transaction: Transaction, digest: StoredDigest, address: bytes | None) -> None:
    """Store a digest anew, with another address if one is given; no send that goes on counts."""
    transaction.run(
        _REPLACE,
        (
            *digest[1:4],
            *digest.cadence,
            digest.told_up_to,
            digest.next_at,
            _json(digest.levels),
            address,
            digest.id,
        ),
    )


async def listed(database: Database) -> list[StoredDigest]:
    """Every digest, by owner."""
    return [_digest(row) for row in await database.all(_LISTED)]


async def one(database: Database, digest_id: str) -> tuple[StoredDigest, bytes]:
    """A digest and its sealed address; raises NotFoundError."""
    row = await database.one(_ONE, (digest_id,))
    if row is None:
        raise no_such("digest", digest_id, [one for (one,) in await database.all(_IDS)])
    return _digest(row), bytes(row[-1])


def within(transaction: Transaction, digest_id: str) -> StoredDigest:
    """A digest that no other transaction changes now; raises NotFoundError."""
    transaction.lock("digests")
    row = transaction.one(_ONE, (digest_id,))
    if row is None:
        raise no_such("digest", digest_id, [one for (one,) in transaction.all(_IDS)])
    return _digest(row)


async def figures(database: Database) -> DigestCounts:
    """The number of digests, and of those of which the last one did not arrive."""
    row = await database.one(_COUNTED)
    return DigestCounts(*(row or (0, 0)))


async def every_sealed(database: Database) -> dict[str, bytes]:
    """The sealed address of each digest, by its id."""
    return {row[0]: bytes(row[1]) for row in await database.all("SELECT id, address FROM digests")}


def remove(transaction: Transaction, digest_id: str) -> StoredDigest:
    """Delete a digest; raises NotFoundError."""
    found = within(transaction, digest_id)
    transaction.run("DELETE FROM digests WHERE id = ?", (digest_id,))
    return found


def forget_owner(transaction: Transaction, owners: Collection[str]) -> int:
    """Delete the digests of these owners; returns their number."""
    transaction.lock("digests")
    return transaction.run("DELETE FROM digests WHERE owner IN LIST(?)", (sorted(owners),))


async def is_due(database: Database, now: int) -> bool:
    """Return true if a digest is due, or being sent for too long."""
    return await database.one(_IS_DUE, (now, now)) is not None


def claim(transaction: Transaction, now: int) -> ClaimedDigest | None:
    """A digest that is due, kept from other processes for a while."""
    transaction.lock("digests")
    row = transaction.one(_DUE, (now, now))
    if row is None:
        return None
    held_until = now + _LEASE
    transaction.run("UPDATE digests SET held_until = ? WHERE id = ?", (held_until, row[0]))
    return ClaimedDigest(_digest(row), bytes(row[-1]), held_until)


def finish(
    transaction: Transaction,
    claimed: ClaimedDigest,
    told_up_to: int,
    levels: DigestLevels,
    next_at: int,
    sent_at: int | None,
) -> None:
    """Record that a digest was sent, or with None that nothing had changed."""
    row = (told_up_to, _json(levels), next_at, sent_at, claimed.digest.id, claimed.held_until)
    transaction.run(_FINISH, row)


def fail(
    transaction: Transaction, claimed: ClaimedDigest, error: str, now: int, again_at: int
) -> None:
    """Record that a digest could not be sent; what it would have told stays to be told."""
    transaction.run(_FAIL, (again_at, now, error, claimed.digest.id, claimed.held_until))


def sealed(key: bytes, digest_id: str, url: str) -> bytes:
    """The address as it is stored."""
    return encryption.seal(key, _LABEL, digest_id, url.encode())


def opened(key: bytes, digest_id: str, address: bytes) -> str:
    """The address; raises NotOpenedError."""
    return encryption.opened(key, _LABEL, digest_id, address).decode()


def _digest(row: Row) -> StoredDigest:
    levels = msgspec.json.decode(row[12], type=dict[str, dict[str, int]])
    return StoredDigest._make([*row[:4], DigestCadence(*row[4:8]), *row[8:12], levels, *row[13:-1]])


def _json(levels: DigestLevels) -> str:
    return msgspec.json.encode(levels).decode()


_SELECT: Final = """
SELECT id, owner, form, url, cadence, day, hour, time_zone, created_at, created_by, told_up_to,
    next_at, levels, failures, sent_at, failed_at, error, address
FROM digests {}
"""

_COUNTED: Final = """
SELECT COALESCE(SUM(CASE WHEN failures = 0 THEN 1 ELSE 0 END), 0),
    COALESCE(SUM(CASE WHEN failures > 0 THEN 1 ELSE 0 END), 0)
FROM digests
"""

_LISTED: Final = _SELECT.replace("{}", "ORDER BY owner, id")

_ONE: Final = _SELECT.replace("{}", "WHERE id = ?")

_DUE: Final = _SELECT.replace(
    "{}", "WHERE next_at <= ? AND held_until <= ? ORDER BY next_at, id LIMIT 1"
)

_IS_DUE: Final = "SELECT 1 FROM digests WHERE next_at <= ? AND held_until <= ? LIMIT 1"

_ADD: Final = """
INSERT INTO digests (id, owner, form, url, cadence, day, hour, time_zone, created_at, created_by,
    told_up_to, next_at, levels, address)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_REPLACE: Final = """
UPDATE digests SET owner = ?, form = ?, url = ?, cadence = ?, day = ?, hour = ?, time_zone = ?,
    told_up_to = ?, next_at = ?, levels = ?, address = COALESCE(?, address), held_until = 0,
    failures = 0, failed_at = NULL, error = NULL
WHERE id = ?
"""

# What was claimed before a replacement, or for too long, is another's.
_FINISH: Final = """
UPDATE digests SET told_up_to = ?, levels = ?, next_at = ?, sent_at = COALESCE(?, sent_at),
    held_until = 0, failures = 0, failed_at = NULL, error = NULL
WHERE id = ? AND held_until = ?
"""

_FAIL: Final = """
UPDATE digests SET held_until = ?, failed_at = ?, error = ?, failures = failures + 1
WHERE id = ? AND held_until = ?
"""

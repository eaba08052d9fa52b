"""Sessions of people who signed in to the pages; only a keyed hash of the cookie is stored."""

import secrets
from typing import Final, NamedTuple

from factbook.auth import roles, tokens
from factbook.clock import DAY, MINUTE
from factbook.storage import Database, Transaction

# A session ends so long after the sign-in, and when it was not used for so long.
LIFETIME: Final = 14 * DAY
IDLE: Final = 3 * DAY
_LONGEST_AGENT = 200
_ID = 16


class Session(NamedTuple):
    """A session found by a request's cookie, valid or not."""

    hash: str
    ref: str
    display_name: str
    role: str
    created_at: int
    used_at: int
    ends_at: int
    disabled_at: int | None
    role_group: str | None = None

    @property
    def id(self) -> str:
        """Identifier among the person's sessions that gives no access."""
        return self.hash[:_ID]

    @property
    def permissions(self) -> frozenset[str]:
        """Permissions of the person."""
        return roles.ROLES[self.role]

    @property
    def grant(self) -> str:
        """Grant of the person for the audit: the role, and the group that gives it."""
        return f"role {self.role}" + (f" of group {self.role_group}" if self.role_group else "")

    def counts(self, now: int) -> bool:
        """True if it has neither ended nor been idle too long, and its person is not disabled."""
        return now < self.ends_at and now < self.used_at + IDLE and self.disabled_at is None


class SessionSummary(NamedTuple):
    """A session as shown to its owner; times in milliseconds since the epoch."""

    id: str
    created_at: int
    used_at: int
    ends_at: int
    address: str
    agent: str


_FIND = """
SELECT s.hash, s.person, p.display_name, p.role, s.created_at, s.used_at, s.ends_at, p.disabled_at,
p.role_group FROM sessions s JOIN people p ON p.ref = s.person WHERE s.hash IN LIST(?)
"""


def generate() -> str:
    """Generate the value of a cookie."""
    return secrets.token_urlsafe(32)


def digest(value: str, key: bytes) -> str:
    """Keyed hash under which the session with this cookie is stored."""
    return tokens.digest(value, key)


async def find(database: Database, digest: str) -> Session | None:
    """The session with this hash in any state: the caller checks that it `counts`."""
    row = await database.find(_FIND, digest, small=True)
    return Session(*row) if row else None


async def listed(database: Database, ref: str) -> list[SessionSummary]:
    """The person's sessions, last used first."""
    rows = await database.all(
        "SELECT substr(hash, 1, ?), created_at, used_at, ends_at, address, agent "
        "FROM sessions WHERE person = ? ORDER BY used_at DESC, hash",
        (_ID, ref),
    )
    return [SessionSummary(*row) for row in rows]


def start(
    transaction: Transaction,
    *,
    hash: str,
    ref: str,
    now: int,
    lifetime: int = LIFETIME,
    address: str,
    agent: str,
) -> None:
    """Store a session of this person, who signed in just now from this address."""
    transaction.run(
        "INSERT INTO sessions (hash, person, created_at, used_at, ends_at, address, agent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (hash, ref, now, now, now + lifetime, address, agent[:_LONGEST_AGENT]),
    )


def end(transaction: Transaction, hash: str) -> None:
    """End a session from the next request on."""
    transaction.run("DELETE FROM sessions WHERE hash = ?", (hash,))


def end_by_id(transaction: Transaction, ref: str, id_: str) -> bool:
    """End one of the person's sessions by the id from `listed`; returns true if it existed."""
    return bool(
        transaction.run(
            "DELETE FROM sessions WHERE person = ? AND substr(hash, 1, ?) = ?", (ref, _ID, id_)
        )
    )


def end_others(transaction: Transaction, ref: str, keep_hash: str) -> int:
    """End every session of the person but this one; returns their number."""
    return transaction.run("DELETE FROM sessions WHERE person = ? AND hash <> ?", (ref, keep_hash))


def end_all(transaction: Transaction, ref: str) -> int:
    """End every session of the person; returns their number."""
    return transaction.run("DELETE FROM sessions WHERE person = ?", (ref,))


def forget_everyone(transaction: Transaction) -> int:
    """End every session of everybody; returns their number."""
    return transaction.run("DELETE FROM sessions")


def touch(transaction: Transaction, hash: str, now: int) -> None:
    """Record the time of a session's use, at most once a minute."""
    transaction.run(
        "UPDATE sessions SET used_at = ? WHERE hash = ? AND (used_at <= ? OR used_at > ?)",
        (now, hash, now - MINUTE, now),
    )


def forget_ended(transaction: Transaction, now: int) -> int:
    """Delete sessions that have ended or were idle too long; returns their number."""
    return transaction.run(
        "DELETE FROM sessions WHERE ends_at <= ? OR used_at <= ?", (now, now - IDLE)
    )

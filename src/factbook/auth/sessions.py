"""Sessions of people signed in to the web pages, and the browsers they signed in from.

Only a keyed hash of the session cookie is stored.

Password guesses are limited per name, which could also lock out the real person. So known browsers,
recognized by a signed mark, have their own limit. The mark doesn't replace the password: it is
valid for one person, for a limited time, and until the password changes.
"""

import hmac
import secrets
from typing import Final, NamedTuple

from factbook.auth import permissions, tokens
from factbook.auth.encryption import sign_content
from factbook.clock import DAY, MINUTE, SECOND
from factbook.storage import Database, Transaction

# A session ends this long after sign-in, or earlier if idle too long.
SESSION_LIFETIME: Final = 14 * DAY
LONGEST_IDLE: Final = 3 * DAY
_LONGEST_AGENT = 200
_SESSION_ID_LENGTH = 16


class Session(NamedTuple):
    """A session looked up by cookie, valid or not."""

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
        """Public id of the session, which gives no access."""
        return self.hash[:_SESSION_ID_LENGTH]

    @property
    def permissions(self) -> frozenset[str]:
        """Permissions of the person's role."""
        return permissions.ROLES[self.role]

    @property
    def grant(self) -> str:
        """Grant for the audit: the role and the group that grants it."""
        return f"role {self.role}" + (f" of group {self.role_group}" if self.role_group else "")

    def counts(self, now: int) -> bool:
        """True unless the session ended or was idle too long, or the person is disabled."""
        return now < self.ends_at and now < self.used_at + LONGEST_IDLE and self.disabled_at is None


class SessionSummary(NamedTuple):
    """A session as shown to its owner; times in milliseconds since the epoch."""

    id: str
    created_at: int
    used_at: int
    ends_at: int
    address: str
    agent: str


_FIND_SESSION = """
SELECT s.hash, s.person, p.display_name, p.role, s.created_at, s.used_at, s.ends_at, p.disabled_at,
p.role_group FROM sessions s JOIN people p ON p.ref = s.person WHERE s.hash IN LIST(?)
"""


def generate_cookie() -> str:
    """Generate a random cookie value."""
    return secrets.token_urlsafe(32)


def hash_cookie(value: str, key: bytes) -> str:
    """Hash a cookie with the key, as sessions are stored."""
    return tokens.hash_token(value, key)


async def find_session(database: Database, digest: str) -> Session | None:
    """Find the session with this hash in any state; the caller has to check `counts`."""
    row = await database.find(_FIND_SESSION, digest, small=True)
    return Session(*row) if row else None


async def list_sessions(database: Database, ref: str) -> list[SessionSummary]:
    """The person's sessions, last used first."""
    rows = await database.all(
        "SELECT substr(hash, 1, ?), created_at, used_at, ends_at, address, agent "
        "FROM sessions WHERE person = ? ORDER BY used_at DESC, hash",
        (_SESSION_ID_LENGTH, ref),
    )
    return [SessionSummary(*row) for row in rows]


def start_session(
    transaction: Transaction,
    *,
    hash: str,
    ref: str,
    now: int,
    lifetime: int = SESSION_LIFETIME,
    address: str,
    agent: str,
) -> None:
    """Store a session for a person who just signed in from this address."""
    transaction.run(
        "INSERT INTO sessions (hash, person, created_at, used_at, ends_at, address, agent) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (hash, ref, now, now, now + lifetime, address, agent[:_LONGEST_AGENT]),
    )


def end_session(transaction: Transaction, hash: str) -> None:
    """End a session, effective with the next request."""
    transaction.run("DELETE FROM sessions WHERE hash = ?", (hash,))


def end_session_by_id(transaction: Transaction, ref: str, id_: str) -> bool:
    """End one of the person's sessions by an id from `list_sessions`; true if it existed."""
    return bool(
        transaction.run(
            "DELETE FROM sessions WHERE person = ? AND substr(hash, 1, ?) = ?",
            (ref, _SESSION_ID_LENGTH, id_),
        )
    )


def end_other_sessions(transaction: Transaction, ref: str, keep_hash: str) -> int:
    """End every session of the person but this one; returns their number."""
    return transaction.run("DELETE FROM sessions WHERE person = ? AND hash <> ?", (ref, keep_hash))


def end_sessions_of(transaction: Transaction, ref: str) -> int:
    """End every session of the person; returns their number."""
    return transaction.run("DELETE FROM sessions WHERE person = ?", (ref,))


def delete_all_sessions(transaction: Transaction) -> int:
    """End every session of everybody; returns their number."""
    return transaction.run("DELETE FROM sessions")


def record_session_use(transaction: Transaction, hash: str, now: int) -> None:
    """Record the time of a session's use, at most once a minute."""
    transaction.run(
        "UPDATE sessions SET used_at = ? WHERE hash = ? AND (used_at <= ? OR used_at > ?)",
        (now, hash, now - MINUTE, now),
    )


def delete_ended_sessions(transaction: Transaction, now: int) -> int:
    """Delete sessions that have ended or were idle too long; returns their number."""
    return transaction.run(
        "DELETE FROM sessions WHERE ends_at <= ? OR used_at <= ?", (now, now - LONGEST_IDLE)
    )


MARK_LIFETIME: Final = 180 * DAY
_MARK_LABEL: Final = b"factbook: a browser that somebody has signed in from"
_MARK_NAME_LENGTH: Final = 16
_BROWSER_ID_BYTES: Final = 12


def make_mark_name(key: bytes, ref: str) -> str:
    """Cookie name of a person's mark, which hides the person: 16 hexadecimal digits."""
    return _sign_mark(key, "name", ref)[:_MARK_NAME_LENGTH]


def make_browser_mark(key: bytes, ref: str, stored: str, now: int) -> str:
    """Make a mark for a browser of the person, bound to their password hash `stored`.

    Consists of letters, digits and `-_.`.
    """
    signed = f"{secrets.token_urlsafe(_BROWSER_ID_BYTES)}.{(now + MARK_LIFETIME) // SECOND}"
    return f"{signed}.{_sign_mark(key, signed, ref, stored)}"


def recognize_browser(
    key: bytes, value: str | None, ref: str, stored: str | None, now: int
) -> str | None:
    """Return the id of the browser with this mark.

    None if the mark was changed, has expired or belongs to another person or password, or if the
    person has no password.
    """
    signed, _, given = (value or "").rpartition(".")
    expected = _sign_mark(key, signed, ref, stored or "")
    fits = hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
    if not fits or stored is None:
        return None
    id_, _, ends_at = signed.partition(".")
    return id_ if now < int(ends_at) * SECOND else None


def _sign_mark(key: bytes, *parts: str) -> str:
    # No part contains the separator.
    return sign_content(key, _MARK_LABEL, "\n".join(parts).encode("utf-8", "replace"))

"""Codes, access tokens and refresh tokens of OAuth: `fbk_…` as all others, stored as hashes."""

from typing import Final, NamedTuple

from factbook.auth import roles
from factbook.auth.oauth.consents import decoded, encoded
from factbook.clock import DAY, HOUR, MINUTE
from factbook.storage import Database, Transaction

CODE: Final = "code"
ACCESS: Final = "access"
REFRESH: Final = "refresh"
LIFETIMES: Final = {CODE: MINUTE, ACCESS: HOUR, REFRESH: 30 * DAY}
_FIND: Final = """
SELECT t.hash, t.permissions, t.expires_at, c.id, c.person, c.audience, c.permissions,
c.last_used_at, p.role, p.disabled_at
FROM oauth_tokens t JOIN oauth_consents c ON c.id = t.consent JOIN people p ON p.ref = c.person
WHERE t.kind = 'access' AND t.hash IN LIST(?)
"""
_FIND_ISSUED: Final = """
SELECT t.consent, t.challenge, t.expires_at, t.used_at, p.role, p.disabled_at
FROM oauth_tokens t JOIN oauth_consents c ON c.id = t.consent JOIN people p ON p.ref = c.person
WHERE t.hash = ? AND t.kind = ?
"""
# Of one consent. A client that renews without pause would fill the table otherwise; refresh tokens
# that were used are kept to recognize one that comes twice.
_MOST: Final = {CODE: 100, ACCESS: 100, REFRESH: 1_000}
_OLDER: Final = """
DELETE FROM oauth_tokens WHERE consent = ? AND kind = ? AND (used_at IS NOT NULL OR kind = 'access')
AND expires_at < (SELECT expires_at FROM oauth_tokens WHERE consent = ? AND kind = ?
    ORDER BY expires_at DESC LIMIT 1 OFFSET ?)
"""
_KNOWN: Final = "SELECT hash FROM oauth_tokens WHERE hash IN LIST(?)"


class AccessToken(NamedTuple):
    """An access token as found, expired or not, with what its person may do now."""

    hash: str
    permissions: frozenset[str]
    expires_at: int
    consent: str
    person: str
    audience: str
    grantable: frozenset[str]  # permissions that the person may still give to the client
    last_used_at: int | None


class IssuedToken(NamedTuple):
    """A code or refresh token, used or not; `allowed` is what its person may do now."""

    consent: str
    challenge: str
    expires_at: int
    used_at: int | None
    allowed: frozenset[str]


async def is_known(database: Database, digest: str) -> bool:
    """True if there is a code or token with this hash, of any kind and in any state."""
    return await database.find(_KNOWN, digest, small=True) is not None


async def find_access(database: Database, digest: str) -> AccessToken | None:
    """The access token with this hash, in any state.

    Its permissions are those that the client asked for, the person gave and the role still has.
    """
    row = await database.find(_FIND, digest, small=True)
    if row is None:
        return None
    hash_, own, expires_at, consent, person, audience, given, last_used_at, role, disabled_at = row
    allowed = _allowed(role, disabled_at)
    permissions = decoded(own) & decoded(given) & allowed
    return AccessToken(
        hash_, permissions, expires_at, consent, person, audience, allowed, last_used_at
    )


def find(transaction: Transaction, digest: str, kind: str) -> IssuedToken | None:
    """The code or refresh token with this hash."""
    row = transaction.one(_FIND_ISSUED, (digest, kind))
    if row is None:
        return None
    consent, challenge, expires_at, used_at, role, disabled_at = row
    return IssuedToken(consent, challenge, expires_at, used_at, _allowed(role, disabled_at))


def consent_of(transaction: Transaction, digest: str) -> tuple[str, str] | None:
    """Kind of the token with this hash, and the id of its consent."""
    row = transaction.one("SELECT kind, consent FROM oauth_tokens WHERE hash = ?", (digest,))
    return (row[0], row[1]) if row else None


def store(
    transaction: Transaction,
    kind: str,
    digest: str,
    consent: str,
    permissions: frozenset[str],
    now: int,
    challenge: str = "",
) -> int:
    """Store a new token of a consent and return when it expires.

    Of its kind, only the newest stay: 100 access tokens, and 1,000 refresh tokens that were used.
    """
    expires_at = now + LIFETIMES[kind]
    transaction.run(
        "INSERT INTO oauth_tokens (hash, consent, kind, challenge, permissions, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (digest, consent, kind, challenge, encoded(permissions), expires_at),
    )
    transaction.run(_OLDER, (consent, kind, consent, kind, _MOST[kind] - 1))
    return expires_at


def use(transaction: Transaction, digest: str, now: int) -> bool:
    """Mark a code or refresh token as used; returns false if it was already."""
    return bool(
        transaction.run(
            "UPDATE oauth_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL", (now, digest)
        )
    )


def forget(transaction: Transaction, digest: str) -> None:
    """End one token from the next request on."""
    transaction.run("DELETE FROM oauth_tokens WHERE hash = ?", (digest,))


def _allowed(role: str, disabled_at: int | None) -> frozenset[str]:
    return roles.ROLES[role] if disabled_at is None else frozenset()

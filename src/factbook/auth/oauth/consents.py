"""Consents that people give to clients, with the codes and tokens issued for them.

Codes, access tokens and refresh tokens begin with `fbk_` like all tokens, and are stored as hashes.

A code or refresh token that is used twice, or by another client, has leaked. It's impossible to
know which use was legitimate, so the whole consent ends in the same transaction.
"""

import base64
import hashlib
import hmac
import uuid
from typing import Final, NamedTuple

import msgspec

from factbook.auth import permissions
from factbook.auth.oauth.protocol import OAuthError
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import NotFoundError
from factbook.storage import Database, Row, Transaction

_COLUMNS: Final = (
    "id, person, client, client_name, redirect_uri, audience, permissions, created_at, "
    "last_used_at, ends_at"
)
_permissions_decoder = msgspec.json.Decoder(frozenset[str])


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


def store_consent(transaction: Transaction, consent: Consent) -> None:
    """Store a new consent."""
    transaction.run(
        "INSERT INTO oauth_consents (id, person, client, client_name, redirect_uri, audience, "
        "permissions, created_at, last_used_at, ends_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*consent[:6], encode_permissions(consent.permissions), *consent[7:]),
    )


def find_consent(transaction: Transaction, id_: str) -> Consent | None:
    """Find a consent by id."""
    row = transaction.one(f"SELECT {_COLUMNS} FROM oauth_consents WHERE id = ?", (id_,))
    return _make_consent(row) if row else None


async def list_consents(database: Database, person: str, now: int) -> list[Consent]:
    """List the person's current consents, newest first."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM oauth_consents WHERE person = ? AND ends_at > ? "
        "ORDER BY created_at DESC, id",
        (person, now),
    )
    return [_make_consent(row) for row in rows]


def extend_consent(transaction: Transaction, id_: str, ends_at: int) -> None:
    """Extend a consent until its newest token expires."""
    transaction.run("UPDATE oauth_consents SET ends_at = ? WHERE id = ?", (ends_at, id_))


def record_consent_use(transaction: Transaction, id_: str, now: int) -> None:
    """Record the time of a consent's use, at most once a minute."""
    transaction.run(
        "UPDATE oauth_consents SET last_used_at = ? "
        "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ? OR last_used_at > ?)",
        (now, id_, now - MINUTE, now),
    )


def revoke_consent(transaction: Transaction, id_: str) -> None:
    """End a consent and all its tokens, effective with the next request."""
    transaction.run("DELETE FROM oauth_tokens WHERE consent = ?", (id_,))
    transaction.run("DELETE FROM oauth_consents WHERE id = ?", (id_,))


def revoke_own_consent(transaction: Transaction, id_: str, person: str) -> Consent:
    """End one of the person's consents; raises NotFoundError."""
    found = find_consent(transaction, id_)
    if found is None or found.person != person:
        raise NotFoundError("This client no longer has access.")
    revoke_consent(transaction, id_)
    return found


def end_consents_of(transaction: Transaction, person: str) -> int:
    """End all consents of the person, as an intruder who was signed in may have given them."""
    transaction.run(
        "DELETE FROM oauth_tokens "
        "WHERE consent IN (SELECT id FROM oauth_consents WHERE person = ?)",
        (person,),
    )
    return transaction.run("DELETE FROM oauth_consents WHERE person = ?", (person,))


def trim_consents(transaction: Transaction, person: str, allowed: frozenset[str]) -> None:
    """Reduce the person's consents to the allowed permissions; end those left with none."""
    rows = transaction.all(
        "SELECT id, permissions FROM oauth_consents WHERE person = ? ORDER BY id", (person,)
    )
    for id_, text in rows:
        left = decode_permissions(text) & allowed
        if not left:
            revoke_consent(transaction, id_)
        elif left != decode_permissions(text):
            transaction.run(
                "UPDATE oauth_consents SET permissions = ? WHERE id = ?",
                (encode_permissions(left), id_),
            )


def delete_all_consents(transaction: Transaction) -> None:
    """End every consent of everybody."""
    transaction.run("DELETE FROM oauth_tokens")
    transaction.run("DELETE FROM oauth_consents")


def delete_ended_consents(transaction: Transaction, now: int) -> int:
    """Delete tokens and consents that have ended; returns their number."""
    gone = transaction.run("DELETE FROM oauth_tokens WHERE expires_at <= ?", (now,))
    return gone + transaction.run("DELETE FROM oauth_consents WHERE ends_at <= ?", (now,))


def encode_permissions(permissions: frozenset[str]) -> str:
    """Encode permissions for storage."""
    return msgspec.json.encode(sorted(permissions)).decode()


def decode_permissions(text: str) -> frozenset[str]:
    """Decode stored permissions."""
    return _permissions_decoder.decode(text)


def _make_consent(row: Row) -> Consent:
    found = Consent(*row)
    return found._replace(permissions=decode_permissions(str(row[6])))


CODE: Final = "code"
ACCESS: Final = "access"
REFRESH: Final = "refresh"
ISSUED_LIFETIMES: Final = {CODE: MINUTE, ACCESS: HOUR, REFRESH: 30 * DAY}
_FIND_ACCESS: Final = """
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
# Limits per consent, because a client that keeps renewing would fill the table. Used refresh tokens
# are kept to detect a second use.
_MOST_ISSUED: Final = {CODE: 100, ACCESS: 100, REFRESH: 1_000}
_DELETE_OLDER: Final = """
DELETE FROM oauth_tokens WHERE consent = ? AND kind = ? AND (used_at IS NOT NULL OR kind = 'access')
AND expires_at < (SELECT expires_at FROM oauth_tokens WHERE consent = ? AND kind = ?
    ORDER BY expires_at DESC LIMIT 1 OFFSET ?)
"""
_FIND_HASH: Final = "SELECT hash FROM oauth_tokens WHERE hash IN LIST(?)"


class AccessToken(NamedTuple):
    """An access token, expired or not, with the person's current permissions."""

    hash: str
    permissions: frozenset[str]
    expires_at: int
    consent: str
    person: str
    audience: str
    grantable: frozenset[str]  # permissions that the person could still grant the client
    last_used_at: int | None


class IssuedToken(NamedTuple):
    """A code or refresh token, used or not; `allowed` has the person's current permissions."""

    consent: str
    challenge: str
    expires_at: int
    used_at: int | None
    allowed: frozenset[str]


async def is_issued(database: Database, digest: str) -> bool:
    """True if a code or token with this hash exists, of any kind and in any state."""
    return await database.find(_FIND_HASH, digest, small=True) is not None


async def find_access_token(database: Database, digest: str) -> AccessToken | None:
    """Find the access token with this hash, in any state.

    It has the permissions that the client requested, the person granted and the role still allows.
    """
    row = await database.find(_FIND_ACCESS, digest, small=True)
    if row is None:
        return None
    hash_, own, expires_at, consent, person, audience, given, last_used_at, role, disabled_at = row
    allowed = _list_allowed_permissions(role, disabled_at)
    permissions = decode_permissions(own) & decode_permissions(given) & allowed
    return AccessToken(
        hash_, permissions, expires_at, consent, person, audience, allowed, last_used_at
    )


def find_issued_token(transaction: Transaction, digest: str, kind: str) -> IssuedToken | None:
    """Find the code or refresh token with this hash."""
    row = transaction.one(_FIND_ISSUED, (digest, kind))
    if row is None:
        return None
    consent, challenge, expires_at, used_at, role, disabled_at = row
    return IssuedToken(
        consent, challenge, expires_at, used_at, _list_allowed_permissions(role, disabled_at)
    )


def find_consent_of_token(transaction: Transaction, digest: str) -> tuple[str, str] | None:
    """Find the kind and the consent id of the token with this hash."""
    row = transaction.one("SELECT kind, consent FROM oauth_tokens WHERE hash = ?", (digest,))
    return (row[0], row[1]) if row else None


def store_issued_token(
    transaction: Transaction,
    kind: str,
    digest: str,
    consent: str,
    permissions: frozenset[str],
    now: int,
    challenge: str = "",
) -> int:
    """Store a new token of a consent and return its expiry time.

    Keeps only the newest tokens of a consent: 100 access tokens and 1,000 used refresh tokens.
    """
    expires_at = now + ISSUED_LIFETIMES[kind]
    transaction.run(
        "INSERT INTO oauth_tokens (hash, consent, kind, challenge, permissions, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (digest, consent, kind, challenge, encode_permissions(permissions), expires_at),
    )
    transaction.run(_DELETE_OLDER, (consent, kind, consent, kind, _MOST_ISSUED[kind] - 1))
    return expires_at


def mark_token_used(transaction: Transaction, digest: str, now: int) -> bool:
    """Mark a code or refresh token as used; returns false if already used."""
    return bool(
        transaction.run(
            "UPDATE oauth_tokens SET used_at = ? WHERE hash = ? AND used_at IS NULL", (now, digest)
        )
    )


def end_issued_token(transaction: Transaction, digest: str) -> None:
    """End a single token, effective with the next request."""
    transaction.run("DELETE FROM oauth_tokens WHERE hash = ?", (digest,))


def _list_allowed_permissions(role: str, disabled_at: int | None) -> frozenset[str]:
    return permissions.ROLES[role] if disabled_at is None else frozenset()


_INVALID_GRANT: Final = "invalid_grant"


class TokenDigests(NamedTuple):
    """Hashes for storing a new access token and refresh token."""

    access: str
    refresh: str


class Issuance(NamedTuple):
    """Outcome of a request: permissions of new tokens, or the error for the client.

    `consent` is the consent involved; `ended` says why the request ended the consent.
    """

    consent: Consent | None = None
    permissions: frozenset[str] = frozenset()
    error: OAuthError | None = None
    ended: str = ""


UNKNOWN_TOKEN: Final = Issuance(
    error=OAuthError(
        "The code or token is unknown, was revoked or has expired.", code=_INVALID_GRANT
    )
)


def give_consent(transaction: Transaction, consent: Consent, code: str, challenge: str) -> Consent:
    """Store a new consent and the hash of the code that the client exchanges for tokens."""
    now = consent.created_at
    made = consent._replace(id=str(uuid.uuid4()), ends_at=now + ISSUED_LIFETIMES[CODE])
    store_consent(transaction, made)
    store_issued_token(transaction, CODE, code, made.id, made.permissions, now, challenge)
    return made


def exchange_code(
    transaction: Transaction,
    *,
    code: str,
    client: str,
    redirect_uri: str,
    verifier: str,
    new: TokenDigests,
    now: int,
) -> Issuance:
    """Exchange the code with this hash for tokens; any mistake uses up the code."""
    found = find_issued_token(transaction, code, CODE)
    consent = found and find_consent(transaction, found.consent)
    if found is None or consent is None:
        return _refuse_request(_INVALID_GRANT, "The code is unknown, or its time is over.")
    # The S256 challenge of the verifier (RFC 7636).
    hashed = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    challenge = base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()
    wrong = ""
    if not mark_token_used(transaction, code, now):
        wrong = "The code was used already."
    elif consent.client != client:
        wrong = "The code was issued to another client."
    elif found.expires_at <= now:
        wrong = "The code is unknown, or its time is over."
    elif redirect_uri not in {"", consent.redirect_uri}:
        wrong = "redirect_uri is not the one that was asked for."
    elif not hmac.compare_digest(challenge, found.challenge):
        wrong = "code_verifier is not the one of this code."
    if wrong:
        return _end_consent(transaction, consent, wrong)
    return _issue_tokens(transaction, consent, consent.permissions & found.allowed, new, now)


def refresh_tokens(
    transaction: Transaction,
    *,
    token: str,
    client: str,
    scope: frozenset[str],
    new: TokenDigests,
    now: int,
) -> Issuance:
    """Exchange the refresh token with this hash for tokens with the consented part of `scope`.

    An empty scope asks for the whole consent. Hosts repeat the scope they first asked for, even if
    the person's role allowed less.
    """
    found = find_issued_token(transaction, token, REFRESH)
    consent = found and find_consent(transaction, found.consent)
    if found is None or consent is None or found.expires_at <= now:
        return _refuse_request(
            _INVALID_GRANT, "The refresh token is unknown, was revoked or has expired."
        )
    if consent.client != client:
        return _end_consent(transaction, consent, "The refresh token was issued to another client.")
    wanted = (scope or consent.permissions) & consent.permissions
    if not wanted:
        return _refuse_request(
            "invalid_scope", "A refresh token gives no more than it was issued for."
        )
    if not mark_token_used(transaction, token, now):
        return _end_consent(transaction, consent, "The refresh token was used already.")
    return _issue_tokens(transaction, consent, wanted & found.allowed, new, now)


def revoke_issued_token(transaction: Transaction, token: str, client: str) -> Issuance:
    """End the token with this hash: a refresh token ends the whole consent (RFC 7009).

    An unknown token, or another client's, gets the same answer.
    """
    found = find_consent_of_token(transaction, token)
    consent = found and find_consent(transaction, found[1])
    if found is None or consent is None or consent.client != client:
        return Issuance()
    if found[0] == ACCESS:
        end_issued_token(transaction, token)
        return Issuance(consent)
    revoke_consent(transaction, consent.id)
    return Issuance(consent, ended="The client revoked it.")


def _issue_tokens(
    transaction: Transaction,
    consent: Consent,
    permissions: frozenset[str],
    new: TokenDigests,
    now: int,
) -> Issuance:
    if not permissions:
        return _end_consent(transaction, consent, "The person may no longer do any of this.")
    store_issued_token(transaction, ACCESS, new.access, consent.id, permissions, now)
    ends_at = store_issued_token(
        transaction, REFRESH, new.refresh, consent.id, consent.permissions, now
    )
    extend_consent(transaction, consent.id, ends_at)
    return Issuance(consent, permissions)


def _refuse_request(code: str, message: str) -> Issuance:
    return Issuance(error=OAuthError(message, code=code))


def _end_consent(transaction: Transaction, consent: Consent, why: str) -> Issuance:
    revoke_consent(transaction, consent.id)
    return Issuance(consent, error=OAuthError(why, code=_INVALID_GRANT), ended=why)

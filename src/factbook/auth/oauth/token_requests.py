"""Outcomes of clients' requests: tokens for a code or a refresh token, and an end to them.

A code or refresh token that comes a second time, or from another client, has leaked. Who came first
cannot be told, so the whole consent ends, in the transaction that finds it out.
"""

import base64
import hashlib
import hmac
import uuid
from typing import Final, NamedTuple

from factbook.auth.oauth import consents, issued_tokens
from factbook.auth.oauth.consents import Consent
from factbook.auth.oauth.issued_tokens import ACCESS, CODE, LIFETIMES, REFRESH
from factbook.auth.oauth.refusal import OAuthError
from factbook.storage import Transaction

_GRANT: Final = "invalid_grant"


class TokenDigests(NamedTuple):
    """Hashes under which the tokens of an answer are stored."""

    access: str
    refresh: str


class Issuance(NamedTuple):
    """Outcome of a request: permissions of new tokens, or the error for the client.

    `consent` is the one that it is about; `ended` says why it is over now.
    """

    consent: Consent | None = None
    permissions: frozenset[str] = frozenset()
    error: OAuthError | None = None
    ended: str = ""


UNKNOWN: Final = Issuance(
    error=OAuthError("The code or token is unknown, was revoked or has expired.", code=_GRANT)
)


def give(transaction: Transaction, consent: Consent, code: str, challenge: str) -> Consent:
    """Store a new consent, and the code with this hash that its client gets tokens for."""
    now = consent.created_at
    made = consent._replace(id=str(uuid.uuid4()), ends_at=now + LIFETIMES[CODE])
    consents.store(transaction, made)
    issued_tokens.store(transaction, CODE, code, made.id, made.permissions, now, challenge)
    return made


def exchange(
    transaction: Transaction,
    *,
    code: str,
    client: str,
    redirect_uri: str,
    verifier: str,
    new: TokenDigests,
    now: int,
) -> Issuance:
    """Exchange the code with this hash; whatever is wrong with it, it counts no more."""
    found = issued_tokens.find(transaction, code, CODE)
    consent = found and consents.find(transaction, found.consent)
    if found is None or consent is None:
        return _refused(_GRANT, "The code is unknown, or its time is over.")
    wrong = ""
    if not issued_tokens.use(transaction, code, now):
        wrong = "The code was used already."
    elif consent.client != client:
        wrong = "The code was issued to another client."
    elif found.expires_at <= now:
        wrong = "The code is unknown, or its time is over."
    elif redirect_uri not in {"", consent.redirect_uri}:
        wrong = "redirect_uri is not the one that was asked for."
    elif not hmac.compare_digest(_challenge(verifier), found.challenge):
        wrong = "code_verifier is not the one of this code."
    if wrong:
        return _ended(transaction, consent, wrong)
    return _issued(transaction, consent, consent.permissions & found.allowed, new, now)


def refresh(
    transaction: Transaction,
    *,
    token: str,
    client: str,
    scope: frozenset[str],
    new: TokenDigests,
    now: int,
) -> Issuance:
    """Exchange the refresh token with this hash, for what `scope` shares with its consent.

    An empty scope asks for the whole consent. Hosts repeat the scope that they first asked for,
    even where the person's role allowed less of it.
    """
    found = issued_tokens.find(transaction, token, REFRESH)
    consent = found and consents.find(transaction, found.consent)
    if found is None or consent is None or found.expires_at <= now:
        return _refused(_GRANT, "The refresh token is unknown, was revoked or has expired.")
    if consent.client != client:
        return _ended(transaction, consent, "The refresh token was issued to another client.")
    wanted = (scope or consent.permissions) & consent.permissions
    if not wanted:
        return _refused("invalid_scope", "A refresh token gives no more than it was issued for.")
    if not issued_tokens.use(transaction, token, now):
        return _ended(transaction, consent, "The refresh token was used already.")
    return _issued(transaction, consent, wanted & found.allowed, new, now)


def revoke(transaction: Transaction, token: str, client: str) -> Issuance:
    """End the token with this hash: a refresh token ends the whole consent (RFC 7009).

    Nothing is said of one that is unknown, or that another client has.
    """
    found = issued_tokens.consent_of(transaction, token)
    consent = found and consents.find(transaction, found[1])
    if found is None or consent is None or consent.client != client:
        return Issuance()
    if found[0] == ACCESS:
        issued_tokens.forget(transaction, token)
        return Issuance(consent)
    consents.revoke(transaction, consent.id)
    return Issuance(consent, ended="The client revoked it.")


def _issued(
    transaction: Transaction,
    consent: Consent,
    permissions: frozenset[str],
    new: TokenDigests,
    now: int,
) -> Issuance:
    if not permissions:
        return _ended(transaction, consent, "The person may not do any of this any more.")
    issued_tokens.store(transaction, ACCESS, new.access, consent.id, permissions, now)
    ends_at = issued_tokens.store(
        transaction, REFRESH, new.refresh, consent.id, consent.permissions, now
    )
    consents.extend(transaction, consent.id, ends_at)
    return Issuance(consent, permissions)


def _refused(code: str, message: str) -> Issuance:
    return Issuance(error=OAuthError(message, code=code))


def _ended(transaction: Transaction, consent: Consent, why: str) -> Issuance:
    consents.revoke(transaction, consent.id)
    return Issuance(consent, error=OAuthError(why, code=_GRANT), ended=why)


def _challenge(verifier: str) -> str:
    """Challenge of a verifier by S256 (RFC 7636)."""
    hashed = hashlib.sha256(verifier.encode("ascii", "replace")).digest()
    return base64.urlsafe_b64encode(hashed).rstrip(b"=").decode()

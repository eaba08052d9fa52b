"""Accounts of people whom an identity provider gives and takes access.

An account is somebody's only by proof: the subject or the name by which the OpenID Connect provider
knows it, or a local account whose name is the whole user name. A name that merely begins alike, and
an address of e-mail, prove nothing: they may be another person's.
"""

from typing import NamedTuple

from factbook.auth import tokens, users
from factbook.errors import InputError
from factbook.storage import Transaction


class ProvisionedPerson(NamedTuple):
    """Person at the identity provider; `issuer` is that of the sign-in, None without one.

    `ref` is the reference of the person's entity, which may be somebody else's, empty if there is
    none; `is_own` says that the entity is the person's.
    """

    issuer: str | None
    external_id: str
    user_name: str
    ref: str
    is_own: bool = False


class Revocation(NamedTuple):
    """Result of a deactivation: the account `disabled`, and the one `left` for want of proof."""

    disabled: str = ""
    left: str = ""


def note_login(transaction: Transaction, ref: str, name: str) -> None:
    """Record what the provider calls an account, as it was said at the sign-in."""
    login = _login_key(name)
    transaction.run(
        "UPDATE people SET login = ? WHERE ref = ? AND (login IS NULL OR login <> ?)",
        (login, ref, login),
    )


def deactivate(transaction: Transaction, person: ProvisionedPerson, now: int) -> Revocation:
    """Disable the person's account, and revoke the tokens: those of the person's own entity, too.

    Raises ConflictError if no administrator would be left.
    """
    account, disabled = _account(transaction, person), ""
    if account:
        if _is_enabled(transaction, account):
            disabled = account
        users.disable(transaction, account, now)
    if not person.ref or person.ref == account:
        return Revocation(disabled)
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (person.ref,)):
        return Revocation(disabled, left=person.ref)
    if person.is_own:
        # Tokens for somebody without an account, as the command line makes them.
        tokens.trim(transaction, person.ref, frozenset(), now)
    return Revocation(disabled)


def reactivate(transaction: Transaction, ref: str, disabled_at: int) -> bool:
    """Enable an account that was disabled at this time, and by nobody again; true if it was."""
    return bool(
        transaction.run(
            "UPDATE people SET disabled_at = NULL WHERE ref = ? AND disabled_at = ?",
            (ref, disabled_at),
        )
    )


def _account(transaction: Transaction, person: ProvisionedPerson) -> str:
    """The account that is proved to be the person's, empty if none is."""
    if person.issuer is not None:
        of_subject = "SELECT ref FROM people WHERE issuer = ? AND subject = ?"
        row = transaction.one(of_subject, (person.issuer, person.external_id))
        if row and person.external_id:
            return str(row[0])
        rows = transaction.all(
            "SELECT ref FROM people WHERE issuer = ? AND login = ?",
            (person.issuer, _login_key(person.user_name)),
        )
        if len(rows) == 1:
            return str(rows[0][0])
    try:
        ref = users.reference(person.user_name)
    except InputError:
        return ""
    row = transaction.one("SELECT ref FROM people WHERE ref = ? AND issuer IS NULL", (ref,))
    return str(row[0]) if row else ""


def _is_enabled(transaction: Transaction, ref: str) -> bool:
    found = "SELECT 1 FROM people WHERE ref = ? AND disabled_at IS NULL"
    return transaction.one(found, (ref,)) is not None


def _login_key(text: str) -> str:
    """The form of a provider's name for an account in which letters do not differ by case."""
    return text.casefold()

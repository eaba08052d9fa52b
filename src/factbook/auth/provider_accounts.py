"""Accounts of people whom an identity provider gives and takes access.

An account is somebody's only by proof: the subject or the name by which the OpenID Connect provider
knows it, or a local account whose name is the whole user name. What is proved follows the person to
another user name, and is nothing to whoever gets the old one. A name that merely begins alike, and
an address of e-mail, prove nothing: they may be another person's.
"""

from typing import Final, NamedTuple

from factbook.auth import tokens, users
from factbook.auth.users import Person
from factbook.errors import InputError
from factbook.storage import Database, Transaction

_OF_LOGIN: Final = "SELECT ref FROM people WHERE issuer = ? AND login = ?"


class ProvisionedPerson(NamedTuple):
    """Person at the identity provider; `issuer` is that of the sign-in, None without one."""

    issuer: str | None
    external_id: str
    user_name: str


class AccountNames(NamedTuple):
    """Proofs of an account: its name here, its subject, and what the provider calls it."""

    local: str
    subject: str
    login: str


class ProvisionedEntity(NamedTuple):
    """Entity under a person's name, empty for none; `is_own` if it is not somebody else's."""

    ref: str
    is_own: bool


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


def account(transaction: Transaction, person: ProvisionedPerson) -> str:
    """The account that is proved to be the person's, empty if none is."""
    login = _login_key(person.user_name)
    if person.issuer is not None:
        of_subject = "SELECT ref FROM people WHERE issuer = ? AND subject = ?"
        row = transaction.one(of_subject, (person.issuer, person.external_id))
        if row and person.external_id:
            return str(row[0])
        rows = transaction.all(_OF_LOGIN, (person.issuer, login))
        if len(rows) == 1:
            return str(rows[0][0])
    return _local_account(transaction, person.user_name)


def names_of(transaction: Transaction, ref: str) -> AccountNames:
    """Proofs of this account; empty for what is not known."""
    row = transaction.one("SELECT subject, login FROM people WHERE ref = ?", (ref,))
    subject, login = row or (None, None)
    return AccountNames(ref.removeprefix(users.PREFIX), subject or "", login or "")


async def find_by_login(database: Database, issuer: str, name: str) -> Person | None:
    """The person whom the provider calls so, in full; None if it is several."""
    login = _login_key(name)
    if not login:
        return None  # that of everybody whom the provider calls nothing
    rows = await database.all(_OF_LOGIN, (issuer, login))
    return await users.find(database, rows[0][0]) if len(rows) == 1 else None


def rename(transaction: Transaction, account: str, old: str, new: str) -> None:
    """Let another name prove an account which the old one has proved."""
    transaction.run(
        "UPDATE people SET login = ? "
        "WHERE ref = ? AND (login = ? OR (login IS NULL AND issuer IS NULL))",
        (_login_key(new), account, _login_key(old)),
    )


def deactivate(
    transaction: Transaction, account: str, entity: ProvisionedEntity, now: int
) -> Revocation:
    """Disable a person's account, if any, and revoke the tokens: those of the own entity, too.

    Raises ConflictError if no administrator would be left.
    """
    disabled = ""
    if account:
        if _is_enabled(transaction, account):
            disabled = account
        users.disable(transaction, account, now)
    if not entity.ref or entity.ref == account:
        return Revocation(disabled)
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (entity.ref,)):
        return Revocation(disabled, left=entity.ref)
    if entity.is_own:
        # Tokens for somebody without an account, as the command line makes them.
        tokens.trim(transaction, entity.ref, frozenset(), now)
    return Revocation(disabled)


def reactivate(transaction: Transaction, ref: str, disabled_at: int) -> bool:
    """Enable an account that was disabled at this time, and by nobody again; true if it was."""
    return bool(
        transaction.run(
            "UPDATE people SET disabled_at = NULL WHERE ref = ? AND disabled_at = ?",
            (ref, disabled_at),
        )
    )


def _local_account(transaction: Transaction, user_name: str) -> str:
    """The local account of this name, or that a renaming has left with it; empty for several."""
    try:
        ref = users.reference(user_name)
    except InputError:
        ref = ""
    rows = transaction.all(
        "SELECT ref FROM people "
        "WHERE issuer IS NULL AND (login = ? OR (ref = ? AND login IS NULL))",
        (_login_key(user_name), ref),
    )
    return str(rows[0][0]) if len(rows) == 1 else ""


def _is_enabled(transaction: Transaction, ref: str) -> bool:
    found = "SELECT 1 FROM people WHERE ref = ? AND disabled_at IS NULL"
    return transaction.one(found, (ref,)) is not None


def _login_key(text: str) -> str:
    """The form of a provider's name for an account in which letters do not differ by case."""
    return text.casefold()

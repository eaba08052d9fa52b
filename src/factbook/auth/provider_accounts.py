"""Accounts of people whom an identity provider gives and takes access.

There are two questions. *Who loses access with a SCIM user?* The account with the user's subject or
the one that an administrator has confirmed; without either, the account that the OpenID Connect
provider calls so, or a local account whose name is the whole user name. Such a match follows the
person to another user name, and is nothing to whoever gets the old one.

*Who gets the roles of a SCIM user's groups?* Only an account with the user's subject, or one that
an administrator has confirmed. People may have chosen a name themselves, so names prove nothing
here. A name that merely begins alike, and an address of e-mail, never count.
"""

from collections.abc import Collection
from typing import Final, NamedTuple

from factbook.auth import tokens, users
from factbook.auth.users import Person
from factbook.errors import InputError
from factbook.storage import Database, Transaction

_OF_LOGIN: Final = "SELECT ref FROM people WHERE issuer = ? AND login = ?"
_OF_LINK: Final = """
SELECT l.ref FROM account_links l JOIN people p ON p.ref = l.ref WHERE l.scim_id = ?
"""


class ProvisionedPerson(NamedTuple):
    """SCIM user `id`; `issuer` is that of the sign-in, None without one."""

    id: str
    issuer: str | None
    external_id: str
    user_name: str


class SignIn(NamedTuple):
    """An account with what it signs in with; empty for what there is not."""

    ref: str
    issuer: str
    subject: str
    login: str


class ProvisionedEntity(NamedTuple):
    """Entity under a person's name, empty for none; `is_own` if it is not somebody else's."""

    ref: str
    is_own: bool


class Revocation(NamedTuple):
    """Accounts `disabled` by a deactivation, by spaces, and the one `left` for want of proof."""

    disabled: str = ""
    left: str = ""


def note_login(transaction: Transaction, ref: str, name: str) -> None:
    """Record what the provider calls an account, as it was said at the sign-in."""
    login = _login_key(name)
    transaction.run(
        "UPDATE people SET login = ? WHERE ref = ? AND (login IS NULL OR login <> ?)",
        (login, ref, login),
    )


def proven_accounts(transaction: Transaction, person: ProvisionedPerson) -> list[str]:
    """The accounts that are proven to be the person's: by the subject, or by an administrator."""
    found = [account_of_subject(transaction, person.issuer, person.external_id)]
    found += [ref for (ref,) in transaction.all(_OF_LINK, (person.id,))]
    return sorted({*found} - {""})


def accounts_to_revoke(transaction: Transaction, person: ProvisionedPerson) -> list[str]:
    """The accounts that lose access with the person: without a proof, those matched by name."""
    if proven := proven_accounts(transaction, person):
        return proven
    if person.issuer is not None:
        rows = transaction.all(_OF_LOGIN, (person.issuer, _login_key(person.user_name)))
        if len(rows) == 1:
            return [str(rows[0][0])]
    local = _local_account(transaction, person.user_name)
    return [local] if local else []


def account_of_subject(transaction: Transaction, issuer: str | None, subject: str) -> str:
    """The account with this subject at the issuer, empty if there is none."""
    if issuer is None or not subject:
        return ""
    row = transaction.one(
        "SELECT ref FROM people WHERE issuer = ? AND subject = ?", (issuer, subject)
    )
    return str(row[0]) if row else ""


def subject_of(transaction: Transaction, ref: str, issuer: str | None) -> str:
    """The subject of an account at the issuer, empty if it has none there."""
    row = transaction.one("SELECT issuer, subject FROM people WHERE ref = ?", (ref,))
    return str(row[1] or "") if row and issuer is not None and row[0] == issuer else ""


def link(transaction: Transaction, scim_id: str, ref: str, by: str, now: int) -> None:
    """Record that an administrator has confirmed whose account this is; earlier links of it end."""
    transaction.run("DELETE FROM account_links WHERE scim_id = ? OR ref = ?", (scim_id, ref))
    transaction.run(
        "INSERT INTO account_links (scim_id, ref, confirmed_by, confirmed_at) VALUES (?, ?, ?, ?)",
        (scim_id, ref, by, now),
    )


def unlink(transaction: Transaction, scim_id: str) -> None:
    """Forget the confirmation of a SCIM user that is deleted."""
    transaction.run("DELETE FROM account_links WHERE scim_id = ?", (scim_id,))


def erase(transaction: Transaction, ref: str) -> int:
    """Forget the confirmations of an account; returns their number."""
    return transaction.run("DELETE FROM account_links WHERE ref = ?", (ref,))


def linked_users(transaction: Transaction, ref: str) -> list[str]:
    """The ids of the SCIM users whose account an administrator has confirmed this one to be."""
    rows = transaction.all("SELECT scim_id FROM account_links WHERE ref = ?", (ref,))
    return [scim_id for (scim_id,) in rows]


async def find_by_login(database: Database, issuer: str, name: str) -> Person | None:
    """The person whom the provider calls so, in full; None if it is several."""
    login = _login_key(name)
    if not login:
        return None  # that of everybody whom the provider calls nothing
    rows = await database.all(_OF_LOGIN, (issuer, login))
    return await users.find(database, rows[0][0]) if len(rows) == 1 else None


async def links(database: Database) -> dict[str, str]:
    """The account that an administrator has confirmed of each SCIM user that has one."""
    return dict(await database.all("SELECT scim_id, ref FROM account_links"))


async def sign_ins(database: Database) -> list[SignIn]:
    """The way in which every account signs in."""
    rows = await database.all("SELECT ref, issuer, subject, login FROM people")
    return [
        SignIn(ref, issuer or "", subject or "", login or "")
        for ref, issuer, subject, login in rows
    ]


def names_of(sign_in: SignIn, issuer: str | None) -> set[str]:
    """The names of an account at the issuer, or here: they prove nothing."""
    if sign_in.issuer:
        return {sign_in.login} - {""} if sign_in.issuer == issuer else set()
    return {sign_in.login, sign_in.ref.removeprefix(users.PREFIX)} - {""}


def rename(transaction: Transaction, account: str, old: str, new: str) -> None:
    """Let another name prove an account which the old one has proved."""
    transaction.run(
        "UPDATE people SET login = ? "
        "WHERE ref = ? AND (login = ? OR (login IS NULL AND issuer IS NULL))",
        (_login_key(new), account, _login_key(old)),
    )


def deactivate(
    transaction: Transaction, accounts: Collection[str], entity: ProvisionedEntity, now: int
) -> Revocation:
    """Disable a person's accounts, and revoke the tokens: those of the own entity, too.

    Raises ConflictError if no administrator would be left.
    """
    disabled = " ".join(ref for ref in sorted(accounts) if _is_enabled(transaction, ref))
    for ref in sorted(accounts):
        users.disable(transaction, ref, now)
    if not entity.ref or entity.ref in accounts:
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

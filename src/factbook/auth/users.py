"""People with local accounts or accounts of an OpenID Connect provider.

A person's permissions follow from the role, and those of the person's tokens never exceed them: a
permission lost here is lost everywhere in the same transaction.
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook import invisible
from factbook.auth import group_roles, invitations, roles, sessions, tokens
from factbook.auth.invitations import Invitation
from factbook.auth.oauth import consents
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.storage import Database, Row, Transaction

PREFIX = "user:default/"
# The strict rule of an entity's name in the catalog API's descriptor format.
_NAME = re.compile(r"(?=.{1,63}\Z)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST_DISPLAY_NAME = 200
_COLUMNS = (
    "ref, display_name, role, password IS NOT NULL, issuer, subject, "
    "created_by, created_at, signed_in_at, disabled_at, given_role, role_group, proof"
)
# What proves that an account is the catalog's user of its name.
BY_ADMINISTRATOR: Final = "administrator"
BY_PROVIDER: Final = "provider"
BY_SCIM: Final = "scim"
UNPROVEN: Final = ""


class Person(NamedTuple):
    """A person as stored; times in milliseconds since the epoch.

    Where a group gives a higher role, it is `role`, and `given_role` is the one that was given.
    `proof` is what proves that the account is the catalog's user of its name, empty if nothing
    does; None for an account of a release that did not ask.
    """

    ref: str
    display_name: str
    role: str
    has_password: bool
    issuer: str | None
    subject: str | None
    created_by: str
    created_at: int
    signed_in_at: int | None
    disabled_at: int | None
    given_role: str | None = None
    role_group: str | None = None
    proof: str | None = UNPROVEN

    @property
    def name(self) -> str:
        """Name to sign in with."""
        return self.ref.removeprefix(PREFIX)

    @property
    def permissions(self) -> frozenset[str]:
        """Permissions of the role."""
        return roles.ROLES[self.role]


def reference(name: str) -> str:
    """Canonical reference of a sign-in name; raises InputError for an invalid one."""
    if not _NAME.fullmatch(name):
        raise InputError(
            "A name has 1 to 63 characters: letters (a-z) and digits, "
            "and between them hyphens, underscores and dots."
        )
    return PREFIX + name.lower()


async def any_there(database: Database) -> bool:
    """True if any person exists."""
    return await database.one("SELECT 1 FROM people LIMIT 1") is not None


async def find(database: Database, ref: str) -> Person | None:
    """The person with this canonical reference."""
    row = await database.one(f"SELECT {_COLUMNS} FROM people WHERE ref = ?", (ref,))
    return _person(row) if row else None


async def find_by_subject(database: Database, issuer: str, subject: str) -> Person | None:
    """The person with this subject at this OpenID Connect provider."""
    row = await database.one(
        f"SELECT {_COLUMNS} FROM people WHERE issuer = ? AND subject = ?", (issuer, subject)
    )
    return _person(row) if row else None


async def password_of(database: Database, ref: str) -> str | None:
    """Hash of the person's password; None if there is no such person or password."""
    row = await database.one("SELECT password FROM people WHERE ref = ?", (ref,))
    return row[0] if row else None


async def listed(database: Database) -> list[Person]:
    """Everyone, ordered by reference, including disabled people."""
    rows = await database.all(f"SELECT {_COLUMNS} FROM people ORDER BY ref")
    return [_person(row) for row in rows]


async def enabled_refs(database: Database) -> set[str]:
    """References of everyone who may sign in; also on the schemas of earlier releases."""
    rows = await database.all("SELECT ref FROM people WHERE disabled_at IS NULL")
    return {ref for (ref,) in rows}


async def page(database: Database, after: str, limit: int) -> list[Person]:
    """Up to `limit` people whose references come after this one, in order."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM people WHERE ref > ? ORDER BY ref LIMIT ?", (after, limit)
    )
    return [_person(row) for row in rows]


def permissions_of(transaction: Transaction, ref: str) -> frozenset[str] | None:
    """Permissions of the person, locked until the end of the transaction.

    Empty when disabled; None for a reference that is no person's, such as a machine's. Read in the
    transaction that makes a token, they cannot change while it is made.
    """
    _lock_roles(transaction)
    row = transaction.one("SELECT role, disabled_at FROM people WHERE ref = ?", (ref,))
    if row is None:
        return None
    role, disabled_at = row
    return roles.ROLES[role] if disabled_at is None else frozenset()


def create(
    transaction: Transaction,
    *,
    ref: str,
    display_name: str,
    role: str,
    password: str | None = None,
    issuer: str | None = None,
    subject: str | None = None,
    created_by: str,
    now: int,
    proof: str = UNPROVEN,
) -> Person:
    """Store a new person, `password` being a hash; raises ConflictError if the name exists.

    The first person of any origin ends the link to become the first administrator.
    """
    invitations.lock(transaction)
    shown = _display_name(display_name)
    made = transaction.run(
        "INSERT INTO people (ref, display_name, role, password, issuer, subject, created_by, "
        "created_at, proof) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (ref, shown, roles.checked(role), password, issuer, subject, created_by, now, proof),
    )
    if not made:
        raise _taken(transaction, ref)
    invitations.withdraw_by(transaction, invitations.FIRST_START)
    has_password = password is not None
    return Person(
        ref,
        shown,
        role,
        has_password,
        issuer,
        subject,
        created_by,
        now,
        signed_in_at=None,
        disabled_at=None,
        proof=proof,
    )


def is_known(transaction: Transaction, ref: str) -> bool:
    """True if there is a person with this reference."""
    return transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)) is not None


def prove(transaction: Transaction, ref: str, proof: str) -> None:
    """Record what proves that an account is the catalog's user of its name."""
    _change(transaction, ref, "proof", proof)


def unprove(transaction: Transaction, refs: Sequence[str]) -> None:
    """Record that accounts are no longer proven: their names now belong to other users, or none."""
    transaction.run("UPDATE people SET proof = ? WHERE ref IN LIST(?)", (UNPROVEN, refs))


def is_unproven(transaction: Transaction, ref: str) -> bool:
    """True for an account that nothing proves to be the catalog's user of its name.

    False for a reference without an account, such as a machine's, which administrators chose.
    """
    return transaction.one(_UNPROVEN, (ref,)) is not None


async def read_unproven(database: Database, ref: str) -> bool:
    """The same, for those who read."""
    return await database.one(_UNPROVEN, (ref,)) is not None


def set_password(transaction: Transaction, ref: str, hashed: str) -> None:
    """Set a person's password; ends every session, consent and link to set it."""
    invitations.withdraw_of(transaction, ref)
    rehash(transaction, ref, hashed)
    sessions.end_all(transaction, ref)
    consents.end_all(transaction, ref)


def reset(transaction: Transaction, ref: str, *, digest: str, made_by: str, now: int) -> Invitation:
    """Create a link with which a person sets a new password, ending earlier such links.

    Raises NotFoundError for an unknown person, and ConflictError for a disabled one.
    """
    invitations.lock(transaction)
    row = transaction.one("SELECT role, disabled_at FROM people WHERE ref = ?", (ref,))
    if row is None:
        raise _nobody(ref)
    role, disabled_at = row
    if disabled_at is not None:
        raise ConflictError(f"{ref} is disabled and cannot sign in; enable the account first.")
    return invitations.make(
        transaction,
        digest=digest,
        role=role,
        ref=ref,
        made_by=made_by,
        now=now,
        lifetime=invitations.LIFETIME,
    )


def rehash(transaction: Transaction, ref: str, hashed: str) -> None:
    """Store another hash of the same password, ending nothing."""
    _change(transaction, ref, "password", hashed)


def rename(transaction: Transaction, ref: str, display_name: str) -> None:
    """Change the display name of a person."""
    _change(transaction, ref, "display_name", _display_name(display_name))


def require_password(transaction: Transaction, ref: str, stored: str) -> None:
    """Raise NotFoundError if the person's password no longer has this hash.

    To be called in the transaction that starts the session: the password may have been changed
    while it was being verified, which takes a while.
    """
    if transaction.one("SELECT password FROM people WHERE ref = ?", (ref,)) != (stored,):
        raise _nobody(ref)


def signed_in(transaction: Transaction, ref: str, now: int) -> None:
    """Record the time of a sign-in; raises NotFoundError for one who may not sign in (any more).

    To be called in the transaction that starts the session: no disabled person gets one then.
    """
    if not transaction.run(
        "UPDATE people SET signed_in_at = ? WHERE ref = ? AND disabled_at IS NULL", (now, ref)
    ):
        raise _nobody(ref)


def change_role(transaction: Transaction, ref: str, role: str, now: int) -> None:
    """Change the role that was given to a person; tokens lose permissions that the new one lacks.

    A group that gives a higher one goes on to do so. Raises ConflictError if no administrator would
    be left.
    """
    roles.checked(role)
    _lock_roles(transaction)
    if role != roles.ADMINISTRATOR:
        _leave_an_administrator(transaction, ref)
    group_roles.give(transaction, ref, role, now)


def disable(transaction: Transaction, ref: str, now: int) -> None:
    """Disable a person: ends the sessions, tokens and invitations from the next request on.

    Raises ConflictError if no administrator would be left.
    """
    _lock_roles(transaction)
    _leave_an_administrator(transaction, ref)
    invitations.withdraw_of(transaction, ref)
    invitations.withdraw_by(transaction, ref)
    transaction.run(
        "UPDATE people SET disabled_at = ? WHERE ref = ? AND disabled_at IS NULL", (now, ref)
    )
    sessions.end_all(transaction, ref)
    tokens.trim(transaction, ref, frozenset(), now)
    consents.trim(transaction, ref, frozenset())


def enable(transaction: Transaction, ref: str) -> None:
    """Let a disabled person sign in again; what ended stays ended."""
    _change(transaction, ref, "disabled_at", None)


class SignInNames(NamedTuple):
    """The name that is shown of a person, and what the provider calls the person; or empty."""

    display_name: str = ""
    subject: str = ""
    login: str = ""


def lock_to_erase(transaction: Transaction, ref: str) -> SignInNames:
    """The names of a person who is to be deleted; empty ones without an account.

    Raises ConflictError if no administrator would be left.
    """
    _lock_roles(transaction)
    row = transaction.one("SELECT display_name, subject, login FROM people WHERE ref = ?", (ref,))
    if row is None:
        return SignInNames()
    _leave_an_administrator(transaction, ref)
    return SignInNames(*(text or "" for text in row))


def erase(transaction: Transaction, ref: str) -> int:
    """Delete an account; returns 0 if there is none."""
    return transaction.run("DELETE FROM people WHERE ref = ?", (ref,))


_UNPROVEN: Final = "SELECT 1 FROM people WHERE ref = ? AND proof = ''"


def _lock_roles(transaction: Transaction) -> None:
    """Serialise changes of roles: of two administrators who leave at once, one stays."""
    transaction.lock("administrators")


def _leave_an_administrator(transaction: Transaction, ref: str) -> None:
    """Raise ConflictError when nobody but this person can administer.

    Administrators by a group do not count: the identity provider could take them all away.
    """
    _require(transaction, ref)
    enabled = transaction.all(
        "SELECT ref FROM people WHERE coalesce(given_role, role) = ? AND disabled_at IS NULL",
        (roles.ADMINISTRATOR,),
    )
    if enabled == [(ref,)]:
        raise ConflictError(f"{ref} is the only administrator; give someone else the role first.")


def _change(transaction: Transaction, ref: str, column: str, value: str | int | None) -> None:
    if not transaction.run(f"UPDATE people SET {column} = ? WHERE ref = ?", (value, ref)):
        raise _nobody(ref)


def _require(transaction: Transaction, ref: str) -> None:
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)) is None:
        raise _nobody(ref)


def _nobody(ref: str) -> NotFoundError:
    return NotFoundError(f"There is no person {ref}.")


def _taken(transaction: Transaction, ref: str) -> ConflictError:
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)):
        return ConflictError(f"There is already a person {ref}.")
    return ConflictError("This account of the OpenID Connect provider already belongs to someone.")


def _display_name(text: str) -> str:
    shown = text.strip()
    if not 1 <= len(shown) <= _LONGEST_DISPLAY_NAME or not invisible.is_visible(shown):
        raise InputError(
            f"A display name has 1 to {_LONGEST_DISPLAY_NAME} characters that can be printed."
        )
    return shown


def _person(row: Row) -> Person:
    ref, display_name, role, has_password, *rest = row
    return Person(ref, display_name, role, bool(has_password), *rest)

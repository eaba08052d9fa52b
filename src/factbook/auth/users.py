"""People with local accounts or accounts of an OpenID Connect provider, and their erasure.

A person's role determines their permissions, and their tokens never exceed these: a permission
lost here is lost everywhere in the same transaction.

An identity provider grants and revokes access, which raises two questions. *Which account loses
access with a SCIM user?* The account with the user's subject, or the one an administrator
confirmed. Without either, the account with this login at the OpenID Connect provider, or a local
account with exactly this user name. The match follows the person to a new user name, and doesn't
apply to the next owner of the old one.

*Which account gets the roles of a SCIM user's groups?* Only an account with the user's subject, or
one an administrator confirmed. People may choose their own names, so names prove nothing here.
Names with the same beginning and email addresses never count.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from factbook import invisible
from factbook.auth import group_roles, invitations, permissions, sessions, tokens
from factbook.auth.invitations import Invitation
from factbook.auth.oauth import consents
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.storage import Database, Row, Transaction

PREFIX = "user:default/"
# The strict rule for entity names in the catalog API's descriptor format.
_SIGN_IN_NAME = re.compile(r"(?=.{1,63}\Z)([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LONGEST_DISPLAY_NAME = 200
_USER_COLUMNS = (
    "ref, display_name, role, password IS NOT NULL, issuer, subject, "
    "created_by, created_at, signed_in_at, disabled_at, given_role, role_group, proof"
)
# Kinds of proof that an account belongs to the catalog user of the same name.
BY_ADMINISTRATOR: Final = "administrator"
BY_PROVIDER: Final = "provider"
BY_SCIM: Final = "scim"
UNPROVEN: Final = ""


class Person(NamedTuple):
    """A person as stored; times in milliseconds since the epoch.

    If a group grants a higher role, `role` is that role and `given_role` the assigned one. `proof`
    says why the account belongs to the catalog user of the same name, empty without proof; None
    for accounts of releases that didn't require proof.
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
        """Sign-in name."""
        return self.ref.removeprefix(PREFIX)

    @property
    def permissions(self) -> frozenset[str]:
        """Permissions of the role."""
        return permissions.ROLES[self.role]


def make_user_ref(name: str) -> str:
    """Convert a sign-in name to its canonical reference; raises InputError for an invalid name."""
    if not _SIGN_IN_NAME.fullmatch(name):
        raise InputError(
            "A name has 1 to 63 characters: letters (a-z) and digits, "
            "and between them hyphens, underscores and dots."
        )
    return PREFIX + name.lower()


async def has_users(database: Database) -> bool:
    """True if any person exists."""
    return await database.one("SELECT 1 FROM people LIMIT 1") is not None


async def find_user(database: Database, ref: str) -> Person | None:
    """The person with this canonical reference."""
    row = await database.one(f"SELECT {_USER_COLUMNS} FROM people WHERE ref = ?", (ref,))
    return _make_person(row) if row else None


async def find_user_by_subject(database: Database, issuer: str, subject: str) -> Person | None:
    """The person with this subject at this OpenID Connect provider."""
    row = await database.one(
        f"SELECT {_USER_COLUMNS} FROM people WHERE issuer = ? AND subject = ?", (issuer, subject)
    )
    return _make_person(row) if row else None


async def get_password_hash(database: Database, ref: str) -> str | None:
    """Read the hash of a person's password; None without a person or password."""
    row = await database.one("SELECT password FROM people WHERE ref = ?", (ref,))
    return row[0] if row else None


async def list_users(database: Database) -> list[Person]:
    """List all people, including disabled ones, by reference."""
    rows = await database.all(f"SELECT {_USER_COLUMNS} FROM people ORDER BY ref")
    return [_make_person(row) for row in rows]


async def list_enabled_refs(database: Database) -> set[str]:
    """List the references of people who may sign in; works on earlier schemas too."""
    rows = await database.all("SELECT ref FROM people WHERE disabled_at IS NULL")
    return {ref for (ref,) in rows}


async def list_user_page(database: Database, after: str, limit: int) -> list[Person]:
    """List up to `limit` people after this reference, by reference."""
    rows = await database.all(
        f"SELECT {_USER_COLUMNS} FROM people WHERE ref > ? ORDER BY ref LIMIT ?", (after, limit)
    )
    return [_make_person(row) for row in rows]


def get_user_permissions(transaction: Transaction, ref: str) -> frozenset[str] | None:
    """Permissions of the person, locked until the end of the transaction.

    Empty if disabled; None if the reference isn't a person, such as a machine. The lock keeps them
    unchanged while a transaction creates a token.
    """
    _lock_roles(transaction)
    row = transaction.one("SELECT role, disabled_at FROM people WHERE ref = ?", (ref,))
    if row is None:
        return None
    role, disabled_at = row
    return permissions.ROLES[role] if disabled_at is None else frozenset()


def create_user(
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
    """Store a new person; `password` is a hash. Raises ConflictError if the name exists.

    The first person, whatever their origin, ends the link that creates the first administrator.
    """
    invitations.lock_invitations(transaction)
    shown = _check_display_name(display_name)
    made = transaction.run(
        "INSERT INTO people (ref, display_name, role, password, issuer, subject, created_by, "
        "created_at, proof) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            ref,
            shown,
            permissions.check_role(role),
            password,
            issuer,
            subject,
            created_by,
            now,
            proof,
        ),
    )
    if not made:
        if transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)):
            raise ConflictError(f"There is already a person {ref}.")
        raise ConflictError(
            "This account of the OpenID Connect provider already belongs to someone."
        )
    invitations.withdraw_invitations_by(transaction, invitations.FIRST_START)
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


def user_exists(transaction: Transaction, ref: str) -> bool:
    """True if there is a person with this reference."""
    return transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)) is not None


def record_proof(transaction: Transaction, ref: str, proof: str) -> None:
    """Record the proof that an account belongs to the catalog user of the same name."""
    _update_user(transaction, ref, "proof", proof)


def remove_proofs(transaction: Transaction, refs: Sequence[str]) -> None:
    """Remove the proof from accounts whose names now belong to other catalog users or none."""
    transaction.run("UPDATE people SET proof = ? WHERE ref IN LIST(?)", (UNPROVEN, refs))


def is_unproven(transaction: Transaction, ref: str) -> bool:
    """True for an account without proof that it belongs to the catalog user of the same name.

    False without an account, such as for a machine, whose name an administrator chose.
    """
    return transaction.one(_FIND_UNPROVEN, (ref,)) is not None


async def read_unproven(database: Database, ref: str) -> bool:
    """Check `is_unproven` outside a write transaction."""
    return await database.one(_FIND_UNPROVEN, (ref,)) is not None


def set_password(transaction: Transaction, ref: str, hashed: str) -> None:
    """Set a person's password; ends all sessions, consents and password links."""
    invitations.withdraw_password_links(transaction, ref)
    store_password_hash(transaction, ref, hashed)
    sessions.end_sessions_of(transaction, ref)
    consents.end_consents_of(transaction, ref)


def create_password_link(
    transaction: Transaction, ref: str, *, digest: str, made_by: str, now: int
) -> Invitation:
    """Create a link to set a new password, which replaces earlier ones.

    Raises NotFoundError for an unknown person, and ConflictError for a disabled one.
    """
    invitations.lock_invitations(transaction)
    row = transaction.one("SELECT role, disabled_at FROM people WHERE ref = ?", (ref,))
    if row is None:
        raise _make_unknown_user_error(ref)
    role, disabled_at = row
    if disabled_at is not None:
        raise ConflictError(f"{ref} is disabled and cannot sign in; enable the account first.")
    return invitations.create_invitation(
        transaction,
        digest=digest,
        role=role,
        ref=ref,
        made_by=made_by,
        now=now,
        lifetime=invitations.INVITATION_LIFETIME,
    )


def store_password_hash(transaction: Transaction, ref: str, hashed: str) -> None:
    """Store a new hash of the same password; sessions stay valid."""
    _update_user(transaction, ref, "password", hashed)


def rename_user(transaction: Transaction, ref: str, display_name: str) -> None:
    """Change the display name of a person."""
    _update_user(transaction, ref, "display_name", _check_display_name(display_name))


def require_password_hash(transaction: Transaction, ref: str, stored: str) -> None:
    """Raise NotFoundError if the person's password no longer has this hash.

    Call this in the transaction that starts the session: verifying takes a while, and the password
    may have changed in the meantime.
    """
    if transaction.one("SELECT password FROM people WHERE ref = ?", (ref,)) != (stored,):
        raise _make_unknown_user_error(ref)


def record_sign_in(transaction: Transaction, ref: str, now: int) -> None:
    """Record the time of a sign-in; raises NotFoundError if the person may not sign in.

    Call this in the transaction that starts the session, so disabled people never get one.
    """
    if not transaction.run(
        "UPDATE people SET signed_in_at = ? WHERE ref = ? AND disabled_at IS NULL", (now, ref)
    ):
        raise _make_unknown_user_error(ref)


def change_user_role(transaction: Transaction, ref: str, role: str, now: int) -> None:
    """Change a person's assigned role; tokens lose the permissions that the new role lacks.

    A higher role from a group still counts. Raises ConflictError if no administrator would be left.
    """
    permissions.check_role(role)
    _lock_roles(transaction)
    if role != permissions.ADMINISTRATOR:
        _require_another_administrator(transaction, ref)
    group_roles.give_role(transaction, ref, role, now)


def disable_user(transaction: Transaction, ref: str, now: int) -> None:
    """Disable a person; ends their sessions, tokens and invitations with the next request.

    Raises ConflictError if no administrator would be left.
    """
    _lock_roles(transaction)
    _require_another_administrator(transaction, ref)
    invitations.withdraw_password_links(transaction, ref)
    invitations.withdraw_invitations_by(transaction, ref)
    transaction.run(
        "UPDATE people SET disabled_at = ? WHERE ref = ? AND disabled_at IS NULL", (now, ref)
    )
    sessions.end_sessions_of(transaction, ref)
    tokens.trim_tokens(transaction, ref, frozenset(), now)
    consents.trim_consents(transaction, ref, frozenset())


def enable_user(transaction: Transaction, ref: str) -> None:
    """Let a disabled person sign in again; sessions, tokens and invitations aren't restored."""
    _update_user(transaction, ref, "disabled_at", None)


class SignInNames(NamedTuple):
    """A person's display name and their login at the provider, each possibly empty."""

    display_name: str = ""
    subject: str = ""
    login: str = ""


def lock_user_to_erase(transaction: Transaction, ref: str) -> SignInNames:
    """Lock and return the names of a person to delete; empty names without an account.

    Raises ConflictError if no administrator would be left.
    """
    _lock_roles(transaction)
    row = transaction.one("SELECT display_name, subject, login FROM people WHERE ref = ?", (ref,))
    if row is None:
        return SignInNames()
    _require_another_administrator(transaction, ref)
    return SignInNames(*(text or "" for text in row))


def delete_user(transaction: Transaction, ref: str) -> int:
    """Delete an account; returns 0 if there is none."""
    return transaction.run("DELETE FROM people WHERE ref = ?", (ref,))


_FIND_UNPROVEN: Final = "SELECT 1 FROM people WHERE ref = ? AND proof = ''"


def _lock_roles(transaction: Transaction) -> None:
    """Serialize role changes, so two administrators can't leave at the same time."""
    transaction.lock("administrators")


def _require_another_administrator(transaction: Transaction, ref: str) -> None:
    """Raise ConflictError if this person is the last administrator.

    Administrators by a group don't count: the identity provider could remove them all.
    """
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (ref,)) is None:
        raise _make_unknown_user_error(ref)
    enabled = transaction.all(
        "SELECT ref FROM people WHERE coalesce(given_role, role) = ? AND disabled_at IS NULL",
        (permissions.ADMINISTRATOR,),
    )
    if enabled == [(ref,)]:
        raise ConflictError(f"{ref} is the only administrator; give someone else the role first.")


def _update_user(transaction: Transaction, ref: str, column: str, value: str | int | None) -> None:
    if not transaction.run(f"UPDATE people SET {column} = ? WHERE ref = ?", (value, ref)):
        raise _make_unknown_user_error(ref)


def _make_unknown_user_error(ref: str) -> NotFoundError:
    return NotFoundError(f"There is no person {ref}.")


def _check_display_name(text: str) -> str:
    shown = text.strip()
    if not 1 <= len(shown) <= _LONGEST_DISPLAY_NAME or not invisible.is_visible(shown):
        raise InputError(
            f"A display name has 1 to {_LONGEST_DISPLAY_NAME} characters that can be printed."
        )
    return shown


def _make_person(row: Row) -> Person:
    ref, display_name, role, has_password, *rest = row
    return Person(ref, display_name, role, bool(has_password), *rest)


_OF_LOGIN: Final = "SELECT ref FROM people WHERE issuer = ? AND login = ?"
_OF_LINK: Final = """
SELECT l.ref FROM account_links l JOIN people p ON p.ref = l.ref WHERE l.scim_id = ?
"""


class ProvisionedPerson(NamedTuple):
    """A SCIM user; `issuer` is the OpenID Connect issuer for sign-in, None without one."""

    id: str
    issuer: str | None
    external_id: str
    user_name: str


class SignIn(NamedTuple):
    """An account with its sign-in data; missing values are empty."""

    ref: str
    issuer: str
    subject: str
    login: str


class ProvisionedEntity(NamedTuple):
    """Entity with a person's name, empty for none; `is_own` if it isn't another person's."""

    ref: str
    is_own: bool


class Revocation(NamedTuple):
    """Result of a deactivation: space-separated disabled accounts, and one left without proof."""

    disabled: str = ""
    left: str = ""


def record_login(transaction: Transaction, ref: str, name: str) -> None:
    """Record an account's login at the provider, as reported at sign-in."""
    login = _fold_login(name)
    transaction.run(
        "UPDATE people SET login = ? WHERE ref = ? AND (login IS NULL OR login <> ?)",
        (login, ref, login),
    )


def list_proven_accounts(transaction: Transaction, person: ProvisionedPerson) -> list[str]:
    """List accounts proven to be the person's, by subject or by an administrator."""
    found = [find_account_of_subject(transaction, person.issuer, person.external_id)]
    found += [ref for (ref,) in transaction.all(_OF_LINK, (person.id,))]
    return sorted({*found} - {""})


def list_accounts_to_revoke(transaction: Transaction, person: ProvisionedPerson) -> list[str]:
    """List accounts that lose access with the person; matched by name if none is proven."""
    if proven := list_proven_accounts(transaction, person):
        return proven
    if person.issuer is not None:
        rows = transaction.all(_OF_LOGIN, (person.issuer, _fold_login(person.user_name)))
        if len(rows) == 1:
            return [str(rows[0][0])]
    local = _find_local_account(transaction, person.user_name)
    return [local] if local else []


def find_account_of_subject(transaction: Transaction, issuer: str | None, subject: str) -> str:
    """Find the account with this subject at the issuer; empty if none."""
    if issuer is None or not subject:
        return ""
    row = transaction.one(
        "SELECT ref FROM people WHERE issuer = ? AND subject = ?", (issuer, subject)
    )
    return str(row[0]) if row else ""


def find_subject(transaction: Transaction, ref: str, issuer: str | None) -> str:
    """Find the subject of an account at the issuer; empty if none."""
    row = transaction.one("SELECT issuer, subject FROM people WHERE ref = ?", (ref,))
    return str(row[1] or "") if row and issuer is not None and row[0] == issuer else ""


def link_account(transaction: Transaction, scim_id: str, ref: str, by: str, now: int) -> None:
    """Record an administrator's confirmation of an account; replaces its earlier links."""
    transaction.run("DELETE FROM account_links WHERE scim_id = ? OR ref = ?", (scim_id, ref))
    transaction.run(
        "INSERT INTO account_links (scim_id, ref, confirmed_by, confirmed_at) VALUES (?, ?, ?, ?)",
        (scim_id, ref, by, now),
    )


def unlink_account(transaction: Transaction, scim_id: str) -> None:
    """Delete the confirmed account link of a deleted SCIM user."""
    transaction.run("DELETE FROM account_links WHERE scim_id = ?", (scim_id,))


def delete_account_links(transaction: Transaction, ref: str) -> int:
    """Delete the confirmed links of an account; returns their number."""
    return transaction.run("DELETE FROM account_links WHERE ref = ?", (ref,))


def list_linked_users(transaction: Transaction, ref: str) -> list[str]:
    """List the ids of SCIM users that an administrator linked to this account."""
    rows = transaction.all("SELECT scim_id FROM account_links WHERE ref = ?", (ref,))
    return [scim_id for (scim_id,) in rows]


async def find_user_by_login(database: Database, issuer: str, name: str) -> Person | None:
    """Find the person with exactly this login at the provider; None if several have it."""
    login = _fold_login(name)
    if not login:
        return None  # an empty name would match every account without a login
    rows = await database.all(_OF_LOGIN, (issuer, login))
    return await find_user(database, rows[0][0]) if len(rows) == 1 else None


async def list_account_links(database: Database) -> dict[str, str]:
    """Map SCIM user ids to the accounts that an administrator confirmed."""
    return dict(await database.all("SELECT scim_id, ref FROM account_links"))


async def list_sign_ins(database: Database) -> list[SignIn]:
    """List all accounts with their sign-in data."""
    rows = await database.all("SELECT ref, issuer, subject, login FROM people")
    return [
        SignIn(ref, issuer or "", subject or "", login or "")
        for ref, issuer, subject, login in rows
    ]


def list_sign_in_names(sign_in: SignIn, issuer: str | None) -> set[str]:
    """List names of an account at the issuer or here; names are no proof."""
    if sign_in.issuer:
        return {sign_in.login} - {""} if sign_in.issuer == issuer else set()
    return {sign_in.login, sign_in.ref.removeprefix(PREFIX)} - {""}


def rename_login(transaction: Transaction, account: str, old: str, new: str) -> None:
    """Match an account by a new login if it was matched by the old one."""
    transaction.run(
        "UPDATE people SET login = ? "
        "WHERE ref = ? AND (login = ? OR (login IS NULL AND issuer IS NULL))",
        (_fold_login(new), account, _fold_login(old)),
    )


def deactivate_accounts(
    transaction: Transaction, accounts: Collection[str], entity: ProvisionedEntity, now: int
) -> Revocation:
    """Disable a person's accounts and revoke their tokens, including those of their own entity.

    Raises ConflictError if no administrator would be left.
    """
    find_enabled = "SELECT 1 FROM people WHERE ref = ? AND disabled_at IS NULL"
    disabled = " ".join(ref for ref in sorted(accounts) if transaction.one(find_enabled, (ref,)))
    for ref in sorted(accounts):
        disable_user(transaction, ref, now)
    if not entity.ref or entity.ref in accounts:
        return Revocation(disabled)
    if transaction.one("SELECT 1 FROM people WHERE ref = ?", (entity.ref,)):
        return Revocation(disabled, left=entity.ref)
    if entity.is_own:
        # The command line can create tokens for a person without an account.
        tokens.trim_tokens(transaction, entity.ref, frozenset(), now)
    return Revocation(disabled)


def reactivate_account(transaction: Transaction, ref: str, disabled_at: int) -> bool:
    """Enable an account if it was disabled at exactly this time; true if so."""
    return bool(
        transaction.run(
            "UPDATE people SET disabled_at = NULL WHERE ref = ? AND disabled_at = ?",
            (ref, disabled_at),
        )
    )


def _find_local_account(transaction: Transaction, user_name: str) -> str:
    """Find the only local account with this name, original or renamed; empty if several."""
    try:
        ref = make_user_ref(user_name)
    except InputError:
        ref = ""
    rows = transaction.all(
        "SELECT ref FROM people "
        "WHERE issuer IS NULL AND (login = ? OR (ref = ? AND login IS NULL))",
        (_fold_login(user_name), ref),
    )
    return str(rows[0][0]) if len(rows) == 1 else ""


def _fold_login(text: str) -> str:
    return text.casefold()


T = TypeVar("T")


class Erasure(NamedTuple):
    """A started erasure of a person, stored until it finishes.

    `refs` has the person's references, `texts` other texts to replace everywhere, and `names` texts
    to replace only where they must mean a person. `entities` has entity ids.
    """

    pseudonym: str
    refs: frozenset[str]
    texts: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    entities: frozenset[int] = frozenset()

    @property
    def ref(self) -> str:
        """Pseudonymous reference that replaces the person's."""
        return PREFIX + self.pseudonym


class ErasedAccount(NamedTuple):
    """Number of deleted rows by kind, and the texts that identified the person."""

    deleted: Mapping[str, int]
    identifiers: frozenset[str]
    subject: str
    scim_ids: list[str]


class _Identifiers(NamedTuple):
    refs: frozenset[str]
    texts: frozenset[str]
    names: frozenset[str]


def find_unfinished_erasure(transaction: Transaction, ref: str) -> Erasure | None:
    """Find the unfinished erasure of this person."""
    row = transaction.one(_FIND_ERASURE, (ref,))
    if row is None:
        return None
    stored = msgspec.json.decode(row[1], type=_Identifiers)
    return Erasure(row[0], *stored, msgspec.json.decode(row[2], type=frozenset[int]))


def save_erasure(transaction: Transaction, person: str, erasure: Erasure, now: int) -> None:
    """Store an erasure; if interrupted, it resumes with the same pseudonym."""
    identifiers = msgspec.json.encode(erasure[1:4]).decode()
    entities = msgspec.json.encode(sorted(erasure.entities)).decode()
    transaction.run(_SAVE_ERASURE, (erasure.pseudonym, person, identifiers, entities, now))


def open_for_erasure(
    erasure: Erasure, work: Callable[[Transaction], T]
) -> Callable[[Transaction], T]:
    """Wrap work to permit writing the pseudonym into audit records, which are otherwise fixed."""

    def within(transaction: Transaction) -> T:
        transaction.run(_OPEN_ERASURE, (1, erasure.pseudonym))
        result = work(transaction)
        transaction.run(_OPEN_ERASURE, (0, erasure.pseudonym))
        return result

    return within


def finish_erasure(transaction: Transaction, erasure: Erasure) -> None:
    """Delete a finished erasure; after this, the pseudonym can't be traced to the person."""
    transaction.run("DELETE FROM erasures WHERE pseudonym = ?", (erasure.pseudonym,))


def delete_account(transaction: Transaction, ref: str) -> ErasedAccount:
    """Delete an account and all its data; also deletes data left without an account.

    Raises ConflictError if no administrator would be left.
    """
    account = lock_user_to_erase(transaction, ref)
    scim_ids = list_linked_users(transaction, ref)
    deleted = {
        "sessions": sessions.end_sessions_of(transaction, ref),
        "invitations": invitations.delete_invitations_of(transaction, ref),
        "OAuth consents": consents.end_consents_of(transaction, ref),
        "tokens": tokens.delete_tokens_of(transaction, ref),
        "account links": delete_account_links(transaction, ref),
        "accounts": delete_user(transaction, ref),
    }
    return ErasedAccount(deleted, frozenset(account) - {""}, account.subject, scim_ids)


_FIND_ERASURE: Final = "SELECT pseudonym, identifiers, entities FROM erasures WHERE person = ?"

_SAVE_ERASURE: Final = """
INSERT INTO erasures (pseudonym, person, identifiers, entities, begun_at, is_open)
VALUES (?, ?, ?, ?, ?, 0)
ON CONFLICT (pseudonym) DO UPDATE SET identifiers = excluded.identifiers,
    entities = excluded.entities
"""

_OPEN_ERASURE: Final = "UPDATE erasures SET is_open = ? WHERE pseudonym = ?"

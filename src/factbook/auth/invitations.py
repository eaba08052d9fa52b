"""Single-use links: to create an account, or to set a new password.

Only a keyed hash of a link's secret is stored.
"""

import secrets
from typing import Final, NamedTuple

from factbook.auth import permissions, tokens
from factbook.clock import DAY
from factbook.errors import NotFoundError
from factbook.storage import Database, Row, Transaction

# Maker of the link that a new service prints at its first start.
FIRST_START: Final = "first start"
# Time in which an invitation can be used.
INVITATION_LIFETIME: Final = 3 * DAY
FIRST_LIFETIME: Final = DAY
ID_LENGTH: Final = 16
_COLUMNS = "hash, ref, role, made_by, made_at, ends_at, new_ref, scim_id"


class Invitation(NamedTuple):
    """An invitation as stored, without its secret; times in milliseconds."""

    id: str
    ref: str | None  # person whose password it resets; None: it creates an account
    role: str
    made_by: str
    made_at: int
    ends_at: int
    new_ref: str | None = None  # account to create; None: the person chooses a name
    # SCIM user that will own the account; empty for a user only in the catalog. None if the name
    # isn't confirmed to be the invited person's.
    scim_id: str | None = None


def generate_invitation_secret() -> str:
    """Generate the secret for a link."""
    return secrets.token_urlsafe(32)


def hash_invitation_secret(value: str, key: bytes) -> str:
    """Keyed hash under which the invitation with this secret is stored."""
    return tokens.hash_token(value, key)


def create_invitation(
    transaction: Transaction,
    *,
    digest: str,
    role: str,
    ref: str | None = None,
    made_by: str,
    now: int,
    lifetime: int,
    new_ref: str | None = None,
    scim_id: str | None = None,
) -> Invitation:
    """Store an invitation; a new password link replaces the person's earlier ones."""
    lock_invitations(transaction)
    if ref is not None:
        withdraw_password_links(transaction, ref)
    row = (
        digest,
        ref,
        permissions.check_role(role),
        made_by,
        now,
        now + lifetime,
        new_ref,
        scim_id,
    )
    transaction.run(f"INSERT INTO invitations ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
    return _make_invitation(row)


async def find_invitation(database: Database, digest: str, now: int) -> Invitation | None:
    """Find the invitation with this hash; None if unknown, used or expired."""
    row = await database.one(
        f"SELECT {_COLUMNS} FROM invitations WHERE hash = ? AND ends_at > ?", (digest, now)
    )
    return _make_invitation(row) if row else None


async def list_invitations(database: Database, now: int) -> list[Invitation]:
    """List usable invitations, newest first."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM invitations WHERE ends_at > ? ORDER BY made_at DESC, hash", (now,)
    )
    return [_make_invitation(row) for row in rows]


def use_up_invitation(transaction: Transaction, digest: str, now: int) -> Invitation:
    """Use up an invitation and return it.

    An invitation works once: concurrent and later uses raise NotFoundError.
    """
    lock_invitations(transaction)
    row = transaction.one(
        f"SELECT {_COLUMNS} FROM invitations WHERE hash = ? AND ends_at > ?", (digest, now)
    )
    if row is None:
        raise NotFoundError("This link has been used or has expired. Ask for a new one.")
    transaction.run("DELETE FROM invitations WHERE hash = ?", (digest,))
    return _make_invitation(row)


def replace_first_invitation(
    transaction: Transaction, digest: str, now: int, lifetime: int
) -> bool:
    """Replace the link that creates the first administrator.

    Returns false without a new link if any person exists.
    """
    lock_invitations(transaction)
    if transaction.one("SELECT 1 FROM people LIMIT 1"):
        return False
    withdraw_invitations_by(transaction, FIRST_START)
    create_invitation(
        transaction,
        digest=digest,
        role=permissions.ADMINISTRATOR,
        made_by=FIRST_START,
        now=now,
        lifetime=lifetime,
    )
    return True


def withdraw_invitation(transaction: Transaction, id_: str) -> None:
    """End an invitation by its id; raises NotFoundError if unknown."""
    lock_invitations(transaction)
    if not transaction.run(
        "DELETE FROM invitations WHERE substr(hash, 1, ?) = ?", (ID_LENGTH, id_)
    ):
        raise NotFoundError("This invitation has been used or has expired.")


def withdraw_password_links(transaction: Transaction, ref: str) -> None:
    """End the person's password links."""
    lock_invitations(transaction)
    transaction.run("DELETE FROM invitations WHERE ref = ?", (ref,))


def withdraw_invitations_by(transaction: Transaction, made_by: str) -> None:
    """End the invitations made by this person or program."""
    lock_invitations(transaction)
    transaction.run("DELETE FROM invitations WHERE made_by = ?", (made_by,))


def delete_invitations_of(transaction: Transaction, ref: str) -> int:
    """Delete the invitations of and by this person; returns their number."""
    lock_invitations(transaction)
    return transaction.run(
        "DELETE FROM invitations WHERE ref = ? OR new_ref = ? OR made_by = ?", (ref, ref, ref)
    )


def delete_ended_invitations(transaction: Transaction, now: int) -> int:
    """Delete ended invitations; returns their number."""
    lock_invitations(transaction)
    return transaction.run("DELETE FROM invitations WHERE ends_at <= ?", (now,))


def delete_all_invitations(transaction: Transaction) -> int:
    """End every invitation; returns their number."""
    lock_invitations(transaction)
    return transaction.run("DELETE FROM invitations")


def lock_invitations(transaction: Transaction) -> None:
    """Lock out other changes to invitations, and new people, one of whom could be the first.

    Call this before changing any row of people, or two transactions could deadlock.
    """
    transaction.lock("people")


def _make_invitation(row: Row) -> Invitation:
    hash_, *rest = row
    return Invitation(hash_[:ID_LENGTH], *rest)

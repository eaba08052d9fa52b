"""Rules for creating and revoking tokens, shared by all interfaces.

A token never exceeds its creator's permissions and limits, nor its owner's current permissions.
"""

import uuid
from typing import NamedTuple

from factbook import invisible
from factbook.auth import tokens, users
from factbook.auth.tokens import Narrowing, StoredToken
from factbook.errors import InputError, NotAllowedError, NotFoundError
from factbook.storage import Transaction

LONGEST_TOKEN_NAME = 200


class TokenRequest(NamedTuple):
    """A requested token; `lifetime` is in milliseconds, None if it never expires."""

    name: str
    permissions: frozenset[str]
    lifetime: int | None
    narrowing: Narrowing | None = None


def check_token_name(text: str) -> str:
    """Trim and validate the name of a token; raises InputError for an invalid one."""
    name = text.strip()
    if not 1 <= len(name) <= LONGEST_TOKEN_NAME or not invisible.is_visible(name):
        raise InputError(f"A name has 1 to {LONGEST_TOKEN_NAME} printable characters.")
    return name


def make_token(
    transaction: Transaction,
    wish: TokenRequest,
    *,
    digest: str,
    owner: str,
    held: frozenset[str],
    created_by: str,
    now: int,
    id: str | None = None,
    narrowed: Narrowing | None = None,
) -> StoredToken:
    """Store a token for its owner, created by a holder of these permissions.

    The new token inherits the holder's limits in `narrowed` unless it asks for tighter ones. Raises
    NotAllowedError if the token would exceed these limits, the permissions or the owner's, which
    are read in this transaction in case the owner's role changes.
    """
    allowed = users.get_user_permissions(transaction, owner)
    may = held if allowed is None else held & allowed
    if beyond := tuple(sorted(wish.permissions - may)):
        raise NotAllowedError(
            f"A token cannot carry more than the one that makes it: {', '.join(beyond)}.",
            missing=beyond,
        )
    return tokens.create_token(
        transaction,
        name=wish.name,
        digest=digest,
        owner=owner,
        permissions=wish.permissions,
        created_by=created_by,
        now=now,
        lifetime=wish.lifetime,
        id=id,
        narrowing=tokens.inherit_narrowing(wish.narrowing, narrowed),
    )


def derive_token_id(request: str, owner: str, key: bytes) -> str:
    """Derive a token id from a form's random text, so a resent form can't create two tokens."""
    return str(uuid.UUID(hex=tokens.hash_token(f"token {owner} {request}", key)[:32], version=4))


def revoke_owned_token(
    transaction: Transaction, id_: str, owner: str | None, now: int
) -> StoredToken:
    """Revoke a token by id; with an owner, only theirs. Raises NotFoundError."""
    token = tokens.revoke_token(transaction, id_, now)
    if token.id != id_ or owner not in {None, token.owner}:
        raise NotFoundError("There is no such token, or it is already revoked.")
    return token

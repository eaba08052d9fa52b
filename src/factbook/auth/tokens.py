"""API tokens: `fbk_`, 40 random characters and a checksum; only a keyed hash is ever stored."""

import hashlib
import re
import secrets
import uuid
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from factbook.auth import token_reach
from factbook.auth.permissions import with_included
from factbook.auth.token_reach import Narrowing
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConflictError, InputError, NotFoundError
from factbook.storage import Database, Row, Transaction

PREFIX: Final = "fbk_"
DEFAULT_LIFETIME: Final = "90d"
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM: Final = 40
_CHECKSUM: Final = 6
_LENGTH: Final = len(PREFIX) + _RANDOM + _CHECKSUM
_LIFETIME = re.compile(r"([0-9]{1,5})([dhm])")
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE}
_COLUMNS = (
    "id, name, owner, permissions, created_by, created_at, expires_at, last_used_at, revoked_at, "
    "narrowing"
)
_BEFORE_ALL = (2**63 - 1, "")
_FIND = """
SELECT hash, id, owner, permissions, expires_at, last_used_at, revoked_at, narrowing
FROM tokens WHERE hash IN LIST(?)
"""
_permissions = msgspec.json.Decoder(frozenset[str])


class Grant(NamedTuple):
    """Grant of a request's token: its owner, permissions and validity.

    `grantable` are permissions that its client can ask the owner for; None: it has no client.
    `narrowing` is None for a token that is not narrowed.
    """

    id: str
    owner: str
    permissions: frozenset[str]
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    grantable: frozenset[str] | None = None
    narrowing: Narrowing | None = None


class StoredToken(NamedTuple):
    """A token as stored; times in milliseconds since the epoch."""

    id: str
    name: str
    owner: str
    permissions: frozenset[str]
    created_by: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None
    revoked_at: int | None
    narrowing: Narrowing | None = None


def generate() -> str:
    """Generate a token value, shown once and never stored."""
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return f"{PREFIX}{random}{_checksum(random)}"


def is_shaped(value: str) -> bool:
    """True if this has the prefix and length of a token."""
    return len(value) == _LENGTH and value.startswith(PREFIX) and value.isascii()


def is_well_formed(value: str) -> bool:
    """True if the checksum fits too, which tells a mistyped value from an unknown one."""
    return is_shaped(value) and _checksum(value[len(PREFIX) : -_CHECKSUM]) == value[-_CHECKSUM:]


def digest(value: str, key: bytes) -> str:
    """Keyed hash (BLAKE2b, 256 bits) under which a token is stored, in hexadecimal."""
    return hashlib.blake2b(value.encode(), key=key, digest_size=32).hexdigest()


def lifetime(text: str) -> int | None:
    """Milliseconds of `90d`, `12h` or `30m`, None for `never`; raises InputError otherwise."""
    if text == "never":
        return None
    match = _LIFETIME.fullmatch(text)
    if not match or not int(match[1]):
        raise InputError(f'"{text}" is not a lifetime: write 90d, 12h, 30m or never.')
    return int(match[1]) * _UNITS[match[2]]


def is_noted(used_at: int, now: int) -> bool:
    """True if a recorded use is recent enough to stand for one now; a future one never is."""
    return now - MINUTE < used_at <= now


def create(
    transaction: Transaction,
    *,
    name: str,
    digest: str,
    owner: str,
    permissions: frozenset[str],
    created_by: str,
    now: int,
    lifetime: int | None,
    id: str | None = None,
    narrowing: Narrowing | None = None,
) -> StoredToken:
    """Store a new token; `lifetime` is in milliseconds, None for ever.

    Raises ConflictError if a token with this id exists or existed; without an id one is generated.
    """
    expires = None if lifetime is None else now + lifetime
    id_ = id or str(uuid.uuid4())
    made = transaction.run(
        "INSERT INTO tokens (hash, id, name, owner, permissions, created_by, created_at, "
        "expires_at, narrowing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            *(digest, id_, name, owner, _text(permissions), created_by, now, expires),
            token_reach.encoded(narrowing),
        ),
    )
    if not made:
        raise ConflictError(f'The token "{name}" was made already.')
    return StoredToken(
        id_, name, owner, permissions, created_by, now, expires, None, None, narrowing
    )


async def find(database: Database, digest: str) -> Grant | None:
    """Grant of the token with this hash, valid or not, with what its permissions include."""
    row = await database.find(_FIND, digest, small=True)
    if row is None:
        return None
    _, id_, owner, permissions, expires_at, last_used_at, revoked_at, text = row
    held = with_included(_read(permissions))
    return Grant(
        *(id_, owner, held, expires_at, last_used_at, revoked_at), narrowing=_narrowing(text)
    )


def any_of(transaction: Transaction, owner: str) -> bool:
    """True if the owner has a token that was not revoked."""
    query = "SELECT 1 FROM tokens WHERE owner = ? AND revoked_at IS NULL LIMIT 1"
    return transaction.one(query, (owner,)) is not None


async def listed(database: Database) -> list[StoredToken]:
    """Every token that is not revoked, newest first."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE revoked_at IS NULL ORDER BY created_at DESC, id"
    )
    return [_token(row) for row in rows]


async def page(
    database: Database, *, owner: str | None, after: tuple[int, str] | None, limit: int
) -> list[StoredToken]:
    """Up to `limit` tokens that are not revoked, of one owner or of all, newest first.

    `after` is the time and the id of the last token of the page before.
    """
    of_owner = "" if owner is None else " AND owner = ?"
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE revoked_at IS NULL AND (created_at, id) < (?, ?)"
        f"{of_owner} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*(after or _BEFORE_ALL), *(() if owner is None else (owner,)), limit),
    )
    return [_token(row) for row in rows]


async def counts(database: Database, owners: Sequence[str]) -> dict[str, int]:
    """Number of tokens not revoked for each of these owners that has any."""
    rows = await database.all(
        "SELECT owner, count(*) FROM tokens WHERE owner IN LIST(?) AND revoked_at IS NULL "
        "GROUP BY owner",
        (list(owners),),
    )
    return dict(rows)


async def ids_of(database: Database, owner: str) -> list[str]:
    """The ids of the tokens of an owner that are not revoked."""
    rows = await database.all(
        "SELECT id FROM tokens WHERE owner = ? AND revoked_at IS NULL", (owner,)
    )
    return [row[0] for row in rows]


async def owners(database: Database) -> list[str]:
    """Everybody who owns a token that is not revoked, sorted."""
    rows = await database.all(
        "SELECT DISTINCT owner FROM tokens WHERE revoked_at IS NULL ORDER BY owner"
    )
    return [owner for (owner,) in rows]


async def use_counts(database: Database) -> tuple[int, int]:
    """Number of all tokens, and of those that were ever used."""
    row = await database.one("SELECT COUNT(*), COUNT(last_used_at) FROM tokens")
    made, used = row or (0, 0)
    return made, used


def revoke(transaction: Transaction, id_or_name: str, now: int) -> StoredToken:
    """Revoke a token from the next request on; raises NotFoundError."""
    rows = transaction.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE (id = ? OR name = ?) AND revoked_at IS NULL",
        (id_or_name, id_or_name),
    )
    # An id is meant, even where another token bears it as its name.
    rows = [row for row in rows if row[0] == id_or_name] or rows
    if len(rows) != 1:
        number = "no token" if not rows else "more than one token"
        raise NotFoundError(f'There is {number} called "{id_or_name}"; give its id.')
    token = _token(rows[0])
    transaction.run("UPDATE tokens SET revoked_at = ? WHERE id = ?", (now, token.id))
    return token._replace(revoked_at=now)


def forget(transaction: Transaction, id_: str) -> None:
    """Delete a token that was never handed out; others are revoked."""
    transaction.run("DELETE FROM tokens WHERE id = ?", (id_,))


def erase(transaction: Transaction, owner: str) -> int:
    """Delete the tokens of an owner with their usage; returns their number."""
    transaction.run(
        "DELETE FROM token_usage WHERE token_id IN (SELECT id FROM tokens WHERE owner = ?)",
        (owner,),
    )
    return transaction.run("DELETE FROM tokens WHERE owner = ?", (owner,))


def trim(transaction: Transaction, owner: str, allowed: frozenset[str], now: int) -> None:
    """Reduce the owner's tokens to the allowed permissions; revoke those left with none."""
    rows = transaction.all(
        "SELECT id, permissions FROM tokens WHERE owner = ? AND revoked_at IS NULL ORDER BY id",
        (owner,),
    )
    for id_, text in rows:
        left = _read(text) & allowed
        if not left:
            transaction.run("UPDATE tokens SET revoked_at = ? WHERE id = ?", (now, id_))
        elif left != _read(text):
            transaction.run("UPDATE tokens SET permissions = ? WHERE id = ?", (_text(left), id_))


def touch(transaction: Transaction, id_: str, now: int) -> None:
    """Record the time of a token's use, at most once a minute."""
    transaction.run(
        "UPDATE tokens SET last_used_at = ? "
        "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ? OR last_used_at > ?)",
        (now, id_, now - MINUTE, now),
    )


def _token(row: Row) -> StoredToken:
    id_, name, owner, permissions, *rest, text = row
    return StoredToken(id_, name, owner, _read(permissions), *(*rest, _narrowing(text)))


def _narrowing(text: str | None) -> Narrowing | None:
    return None if text is None else token_reach.decoded(text)


def _text(permissions: frozenset[str]) -> str:
    return msgspec.json.encode(sorted(permissions)).decode()


@lru_cache(maxsize=256)
def _read(text: str) -> frozenset[str]:
    return _permissions.decode(text)


def _checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))

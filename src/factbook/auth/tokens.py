"""API tokens: `fbk_`, 40 random characters and a checksum; only a keyed hash is ever stored.

A token can be limited to some sets, namespaces, data sources and tools. A pattern is a whole name,
or a prefix followed by `*`; names are compared exactly as stored. Tool calls and the size of their
answers are counted per token and day.
"""

import hashlib
import re
import secrets
import uuid
import zlib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from factbook import invisible
from factbook.auth.permissions import add_included
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import ConflictError, InputError, NotAllowedError, NotFoundError
from factbook.schemas import common
from factbook.storage import Database, Row, Transaction

SETS: Final = "sets"
NAMESPACES: Final = "namespaces"
SOURCES: Final = "sources"
TOOLS: Final = "tools"
DIMENSIONS: Final = (SETS, NAMESPACES, SOURCES, TOOLS)

MOST_PATTERNS: Final = 50
_LONGEST_PATTERN: Final = 128
# Valid names per dimension; sets allow any visible text.
_FORMS: Final[Mapping[str, re.Pattern[str]]] = {
    NAMESPACES: re.compile(common.REACHED_NAMESPACE),
    SOURCES: re.compile(common.REACHED_SOURCE),
    TOOLS: re.compile(common.REACHED_TOOL),
}
_narrowing_decoder = msgspec.json.Decoder(dict[str, list[str]])


class Narrowing(NamedTuple):
    """Limits of a token: name patterns by dimension. None means no limit."""

    sets: tuple[str, ...] | None = None
    namespaces: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None

    @property
    def given(self) -> dict[str, tuple[str, ...]]:
        """Patterns of the dimensions that have a limit."""
        return {name: found for name, found in self._asdict().items() if found is not None}

    def allows(self, dimension: str, name: str) -> bool:
        """True if the limits allow a name in the dimension."""
        patterns = self.given.get(dimension)
        return patterns is None or _matches_any(patterns, name)

    def check(self, dimension: str, names: Iterable[str]) -> None:
        """Raise NotAllowedError unless the limits allow all of these names."""
        if not all(self.allows(dimension, name) for name in names):
            raise self.refusal(dimension)

    def check_refs(self, refs: Iterable[str]) -> None:
        """Raise NotAllowedError for a canonical reference outside the allowed namespaces."""
        if self.namespaces is not None:
            self.check(NAMESPACES, {ref.partition(":")[2].partition("/")[0] for ref in refs})

    def refusal(self, *dimensions: str) -> NotAllowedError:
        """Build the error that names the token's own limits, and nothing of other tokens."""
        given = self.given
        told = [
            f"the {name} {', '.join(given[name])}"
            for name in dimensions or DIMENSIONS
            if name in given
        ]
        return NotAllowedError(f"This token is narrowed to {' and '.join(told)}.")


def check_narrowed_refs(narrowing: Narrowing | None, refs: Iterable[str]) -> None:
    """Raise NotAllowedError for an entity outside the allowed namespaces, if limited."""
    if narrowing is not None:
        narrowing.check_refs(refs)


def check_narrowed_sets(narrowing: Narrowing | None, sets: Iterable[str | None]) -> None:
    """Raise NotAllowedError for other sets, and for None, if the token is limited to sets."""
    if narrowing is None or narrowing.sets is None:
        return
    for name in sets:
        if name is None:
            raise narrowing.refusal(SETS)
        narrowing.check(SETS, [name])


class Reach(NamedTuple):
    """Dimensions whose limits a route enforces (`bounds`) or never touches (`apart`).

    A route with neither refuses limited tokens.
    """

    bounds: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()

    def check(self, narrowing: Narrowing, *, writes: bool) -> None:
        """Raise NotAllowedError unless a token with these limits may use the route.

        Sets, sources and tools define a token's purpose: the route has to enforce one of the limits
        and must not touch a limited dimension without enforcing it. Namespaces only limit writes.
        """
        given = narrowing.given
        aims = given.keys() - {NAMESPACES}
        if aims and not (aims <= self.bounds | self.apart and aims & self.bounds):
            raise narrowing.refusal(*(name for name in DIMENSIONS if name in aims))
        if NAMESPACES in given and writes and NAMESPACES not in self.bounds:
            raise narrowing.refusal(NAMESPACES)


NO_REACH: Final = Reach()
SET_REACH: Final = Reach(frozenset({SETS, NAMESPACES}), frozenset({SOURCES, TOOLS}))
SOURCE_REACH: Final = Reach(frozenset({SOURCES}), frozenset({SETS, TOOLS}))
PUSHED_FACTS_REACH: Final = Reach(frozenset({SOURCES, NAMESPACES}), frozenset({SETS, TOOLS}))
# Tools answer with facts of every source.
TOOLS_REACH: Final = Reach(frozenset({TOOLS}), frozenset({SETS}))
GRANTING_REACH: Final = Reach(frozenset(DIMENSIONS))


def check_narrowing(given: Mapping[str, Iterable[str]]) -> Narrowing | None:
    """Validate the patterns of a token's limits; None without any. Raises InputError."""
    found = {name: _check_patterns(name, patterns) for name, patterns in given.items()}
    return Narrowing(**found) if found else None


def inherit_narrowing(wish: Narrowing | None, held: Narrowing | None) -> Narrowing | None:
    """Combine a new token's limits with those of the token that creates it.

    Unlimited dimensions inherit the holder's limits. Raises NotAllowedError if a limit is wider.
    """
    if held is None:
        return wish
    asked = {} if wish is None else wish.given
    for name, reached in held.given.items():
        if not all(_is_covered(pattern, reached) for pattern in asked.get(name, ())):
            raise held.refusal(name)
    return Narrowing(**(held.given | asked))


def encode_narrowing(narrowing: Narrowing | None) -> str | None:
    """Encode limits for storage; None without limits."""
    return None if narrowing is None else msgspec.json.encode(narrowing.given).decode()


@lru_cache(maxsize=256)
def decode_narrowing(text: str) -> Narrowing:
    """Decode stored limits."""
    return Narrowing(
        **{name: tuple(found) for name, found in _narrowing_decoder.decode(text).items()}
    )


def _check_patterns(dimension: str, patterns: Iterable[str]) -> tuple[str, ...]:
    found = tuple(sorted(set(patterns)))
    if dimension not in DIMENSIONS:
        raise InputError(f"A token is narrowed to {', '.join(DIMENSIONS)}, and to nothing else.")
    if not 1 <= len(found) <= MOST_PATTERNS:
        raise InputError(f"Name 1 to {MOST_PATTERNS} {dimension}, or leave {dimension} out.")
    for pattern in found:
        _check_pattern_form(dimension, pattern)
    return found


def _check_pattern_form(dimension: str, pattern: str) -> None:
    form = _FORMS.get(dimension)
    if form is not None:
        sound = bool(form.fullmatch(pattern))
    else:
        sound = 1 <= len(pattern) <= _LONGEST_PATTERN and pattern.isprintable()
    if not sound or invisible.has(pattern):
        raise InputError(
            f"A name among the {dimension} is not one that they can have: write it as it is "
            "stored, or its beginning and *."
        )


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(name.startswith(one[:-1]) if one.endswith("*") else name == one for one in patterns)


def _is_covered(pattern: str, patterns: Iterable[str]) -> bool:
    """True if one of the patterns matches every name that `pattern` matches."""
    if not pattern.endswith("*"):
        return _matches_any(patterns, pattern)
    return any(one.endswith("*") and pattern[:-1].startswith(one[:-1]) for one in patterns)


VALUE_PREFIX: Final = "fbk_"
DEFAULT_LIFETIME: Final = "90d"
_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM: Final = 40
_CHECKSUM: Final = 6
_LENGTH: Final = len(VALUE_PREFIX) + _RANDOM + _CHECKSUM
_LIFETIME = re.compile(r"([0-9]{1,5})([dhm])")
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE}
_COLUMNS = (
    "id, name, owner, permissions, created_by, created_at, expires_at, last_used_at, revoked_at, "
    "narrowing"
)
_BEFORE_ALL = (2**63 - 1, "")
_FIND_GRANT = """
SELECT hash, id, owner, permissions, expires_at, last_used_at, revoked_at, narrowing
FROM tokens WHERE hash IN LIST(?)
"""
_permissions_decoder = msgspec.json.Decoder(frozenset[str])


class Grant(NamedTuple):
    """Grant of a request's token: its owner, permissions and validity.

    `grantable` has the permissions that the OAuth client can ask the owner for; None without a
    client. `narrowing` is None for a token without limits.
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


def generate_token() -> str:
    """Generate a token value, shown once and never stored."""
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return f"{VALUE_PREFIX}{random}{_compute_checksum(random)}"


def is_token_shaped(value: str) -> bool:
    """True if the value has the prefix and length of a token."""
    return len(value) == _LENGTH and value.startswith(VALUE_PREFIX) and value.isascii()


def is_well_formed(value: str) -> bool:
    """True if the checksum is right too; a mistyped token has a wrong one."""
    return (
        is_token_shaped(value)
        and _compute_checksum(value[len(VALUE_PREFIX) : -_CHECKSUM]) == value[-_CHECKSUM:]
    )


def hash_token(value: str, key: bytes) -> str:
    """Hash a token for storage: keyed BLAKE2b, 256 bits, in hexadecimal."""
    return hashlib.blake2b(value.encode(), key=key, digest_size=32).hexdigest()


def convert_lifetime(text: str) -> int | None:
    """Convert `90d`, `12h` or `30m` to milliseconds and `never` to None; raises InputError."""
    if text == "never":
        return None
    match = _LIFETIME.fullmatch(text)
    if not match or not int(match[1]):
        raise InputError(f'"{text}" is not a lifetime: write 90d, 12h, 30m or never.')
    return int(match[1]) * _UNITS[match[2]]


def is_use_noted(used_at: int, now: int) -> bool:
    """True if a use was recorded within the last minute; false for a time in the future."""
    return now - MINUTE < used_at <= now


def create_token(
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
    """Store a new token; `lifetime` is in milliseconds, None if it never expires.

    Generates an id if none is passed. Raises ConflictError if the id is or was in use.
    """
    expires = None if lifetime is None else now + lifetime
    id_ = id or str(uuid.uuid4())
    made = transaction.run(
        "INSERT INTO tokens (hash, id, name, owner, permissions, created_by, created_at, "
        "expires_at, narrowing) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
        (
            *(digest, id_, name, owner, _encode_permissions(permissions), created_by, now, expires),
            encode_narrowing(narrowing),
        ),
    )
    if not made:
        raise ConflictError(f'The token "{name}" was made already.')
    return StoredToken(
        id_, name, owner, permissions, created_by, now, expires, None, None, narrowing
    )


async def find_token(database: Database, digest: str) -> Grant | None:
    """Find the grant of the token with this hash, valid or not, with included permissions."""
    row = await database.find(_FIND_GRANT, digest, small=True)
    if row is None:
        return None
    _, id_, owner, permissions, expires_at, last_used_at, revoked_at, text = row
    held = add_included(_decode_permissions(permissions))
    return Grant(
        *(id_, owner, held, expires_at, last_used_at, revoked_at), narrowing=_read_narrowing(text)
    )


def has_tokens(transaction: Transaction, owner: str) -> bool:
    """True if the owner has a token that isn't revoked."""
    query = "SELECT 1 FROM tokens WHERE owner = ? AND revoked_at IS NULL LIMIT 1"
    return transaction.one(query, (owner,)) is not None


async def list_tokens(database: Database) -> list[StoredToken]:
    """List tokens that aren't revoked, newest first."""
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE revoked_at IS NULL ORDER BY created_at DESC, id"
    )
    return [_make_stored_token(row) for row in rows]


async def list_token_page(
    database: Database, *, owner: str | None, after: tuple[int, str] | None, limit: int
) -> list[StoredToken]:
    """List up to `limit` tokens that aren't revoked, of one owner or all, newest first.

    `after` is the time and id of the last token on the previous page.
    """
    of_owner = "" if owner is None else " AND owner = ?"
    rows = await database.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE revoked_at IS NULL AND (created_at, id) < (?, ?)"
        f"{of_owner} ORDER BY created_at DESC, id DESC LIMIT ?",
        (*(after or _BEFORE_ALL), *(() if owner is None else (owner,)), limit),
    )
    return [_make_stored_token(row) for row in rows]


async def count_tokens_by_owner(database: Database, owners: Sequence[str]) -> dict[str, int]:
    """Count tokens that aren't revoked by owner; owners without tokens are left out."""
    rows = await database.all(
        "SELECT owner, count(*) FROM tokens WHERE owner IN LIST(?) AND revoked_at IS NULL "
        "GROUP BY owner",
        (list(owners),),
    )
    return dict(rows)


async def list_token_ids(database: Database, owner: str) -> list[str]:
    """List the ids of an owner's tokens that aren't revoked."""
    rows = await database.all(
        "SELECT id FROM tokens WHERE owner = ? AND revoked_at IS NULL", (owner,)
    )
    return [row[0] for row in rows]


async def list_token_owners(database: Database) -> list[str]:
    """List the owners of tokens that aren't revoked, sorted."""
    rows = await database.all(
        "SELECT DISTINCT owner FROM tokens WHERE revoked_at IS NULL ORDER BY owner"
    )
    return [owner for (owner,) in rows]


async def count_used_tokens(database: Database) -> tuple[int, int]:
    """Count all tokens, and the tokens that were ever used."""
    row = await database.one("SELECT COUNT(*), COUNT(last_used_at) FROM tokens")
    made, used = row or (0, 0)
    return made, used


def revoke_token(transaction: Transaction, id_or_name: str, now: int) -> StoredToken:
    """Revoke a token, effective with the next request; raises NotFoundError."""
    rows = transaction.all(
        f"SELECT {_COLUMNS} FROM tokens WHERE (id = ? OR name = ?) AND revoked_at IS NULL",
        (id_or_name, id_or_name),
    )
    # An id takes precedence over another token with that name.
    rows = [row for row in rows if row[0] == id_or_name] or rows
    if len(rows) != 1:
        number = "no token" if not rows else "more than one token"
        raise NotFoundError(f'There is {number} called "{id_or_name}"; give its id.')
    token = _make_stored_token(rows[0])
    transaction.run("UPDATE tokens SET revoked_at = ? WHERE id = ?", (now, token.id))
    return token._replace(revoked_at=now)


def discard_token(transaction: Transaction, id_: str) -> None:
    """Delete a token that was never handed out; revoke all others instead."""
    transaction.run("DELETE FROM tokens WHERE id = ?", (id_,))


def delete_tokens_of(transaction: Transaction, owner: str) -> int:
    """Delete the tokens of an owner with their usage; returns their number."""
    transaction.run(
        "DELETE FROM token_usage WHERE token_id IN (SELECT id FROM tokens WHERE owner = ?)",
        (owner,),
    )
    return transaction.run("DELETE FROM tokens WHERE owner = ?", (owner,))


def trim_tokens(transaction: Transaction, owner: str, allowed: frozenset[str], now: int) -> None:
    """Reduce the owner's tokens to the allowed permissions; revoke those left with none."""
    rows = transaction.all(
        "SELECT id, permissions FROM tokens WHERE owner = ? AND revoked_at IS NULL ORDER BY id",
        (owner,),
    )
    for id_, text in rows:
        left = _decode_permissions(text) & allowed
        if not left:
            transaction.run("UPDATE tokens SET revoked_at = ? WHERE id = ?", (now, id_))
        elif left != _decode_permissions(text):
            transaction.run(
                "UPDATE tokens SET permissions = ? WHERE id = ?", (_encode_permissions(left), id_)
            )


def record_token_use(transaction: Transaction, id_: str, now: int) -> None:
    """Record the time of a token's use, at most once a minute."""
    transaction.run(
        "UPDATE tokens SET last_used_at = ? "
        "WHERE id = ? AND (last_used_at IS NULL OR last_used_at <= ? OR last_used_at > ?)",
        (now, id_, now - MINUTE, now),
    )


def _make_stored_token(row: Row) -> StoredToken:
    id_, name, owner, permissions, *rest, text = row
    return StoredToken(
        id_, name, owner, _decode_permissions(permissions), *(*rest, _read_narrowing(text))
    )


def _read_narrowing(text: str | None) -> Narrowing | None:
    return None if text is None else decode_narrowing(text)


def _encode_permissions(permissions: frozenset[str]) -> str:
    return msgspec.json.encode(sorted(permissions)).decode()


@lru_cache(maxsize=256)
def _decode_permissions(text: str) -> frozenset[str]:
    return _permissions_decoder.decode(text)


def _compute_checksum(text: str) -> str:
    number = zlib.crc32(text.encode())
    digits = []
    for _ in range(_CHECKSUM):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))


USAGE_DAYS: Final = 90
# Typical of most models for English text and JSON.
_CHARACTERS_A_TOKEN: Final = 4


class TokenUsage(NamedTuple):
    """Number of tool calls, and characters of their results."""

    calls: int = 0
    size: int = 0

    @property
    def model_tokens(self) -> int:
        """Estimated number of model tokens in the results."""
        return self.size // _CHARACTERS_A_TOKEN

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        """Add two usages."""
        return TokenUsage(self.calls + other.calls, self.size + other.size)


class UsageDay(NamedTuple):
    """A token id, and a day counted from the epoch."""

    token_id: str
    day: int


def add_token_usage(transaction: Transaction, found: Mapping[UsageDay, TokenUsage]) -> None:
    """Add to the stored usage, in a fixed order to avoid deadlocks between processes."""
    for key in sorted(found):
        transaction.run(_ADD_USAGE, (*key, *found[key]))


async def sum_token_usage(
    database: Database, ids: Sequence[str], day: int
) -> dict[str, TokenUsage]:
    """Sum the usage per token since a day; unused tokens are left out."""
    rows = await database.all(_USAGE_SINCE, (list(ids), day))
    return {id_: TokenUsage(calls, size) for id_, calls, size in rows}


def delete_token_usage(transaction: Transaction, before: int) -> None:
    """Delete usage from before a day."""
    transaction.run("DELETE FROM token_usage WHERE day < ?", (before,))


_ADD_USAGE: Final = """
INSERT INTO token_usage (token_id, day, calls, size) VALUES (?, ?, ?, ?)
ON CONFLICT (token_id, day)
DO UPDATE SET calls = token_usage.calls + excluded.calls, size = token_usage.size + excluded.size
"""

_USAGE_SINCE: Final = """
SELECT token_id, CAST(sum(calls) AS BIGINT), CAST(sum(size) AS BIGINT) FROM token_usage
WHERE token_id IN LIST(?) AND day >= ? GROUP BY token_id
"""

"""Reads of entities by reference or uid, their names and changes, and the catalog's own facts."""

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from factbook.catalog import validation
from factbook.catalog.compliance import HAS_OWNER_RELATION, OWNER_EXISTS
from factbook.catalog.store.conditions import Condition, EntityRange, narrowed
from factbook.catalog.store.documents import COLUMNS, DOCUMENT, StoredEntity
from factbook.errors import NotFoundError, near, suggestion
from factbook.storage import Database, Transaction

# The stored bits of `entities e`, and that of its owner.
COMPLIANCE = f"""e.compliance + CASE WHEN (e.compliance & {HAS_OWNER_RELATION}) <> 0 AND EXISTS (
    SELECT 1 FROM relations o JOIN entities t ON t.ref = o.target_ref
    WHERE o.source_id = e.id AND o.type = 'ownedBy'
) THEN {OWNER_EXISTS} ELSE 0 END"""

# Entities whose facts are read in one statement.
_PORTION = 2_000
# A document that is longer is not read for a name alone.
_LONGEST = 20_000
# Revisions of the set that are looked at.
_LOOKED_AT = 500
# References that a refusal suggests.
_SUGGESTED = 3


class EntityDetail(NamedTuple):
    """An entity with its metadata in the store; `set` is None outside any set."""

    stored: StoredEntity
    id: int
    set: str | None
    updated_by: str
    updated_at: int
    compliance: int


class DisplayName(NamedTuple):
    """Display name of a related entity: its title, or else its name as written."""

    title: str
    name: str


class EntityRevision(NamedTuple):
    """A revision with the documents of the entity before and after it; None where it was not there.

    `restored` is the number of the revision that it restored.
    """

    number: int
    created_at: int
    created_by: str
    restored: int | None
    before: str | None
    after: str | None


async def entity(database: Database, ref: str) -> StoredEntity | None:
    """The entity with this canonical reference."""
    row = await database.find(
        f"SELECT {COLUMNS} FROM entities e WHERE e.ref IN LIST(?)",
        ref,
    )
    return StoredEntity(*row) if row else None


async def entity_by_uid(database: Database, uid: str) -> StoredEntity | None:
    """The entity with this uid."""
    row = await database.one(f"SELECT {COLUMNS} FROM entities e WHERE e.uid = ?", (uid,))
    return StoredEntity(*row) if row else None


async def entities_by_refs(
    database: Database, wanted: list[str], condition: Condition
) -> dict[str, StoredEntity]:
    """The entities among these references that exist and meet the condition."""
    where, parameters = condition.sql()
    rows = await database.all(
        f"SELECT {COLUMNS} FROM entities e WHERE e.ref IN LIST(?) AND ({where})",
        [wanted, *parameters],
    )
    return {row[0]: StoredEntity(*row) for row in rows}


async def entity_detail(database: Database, ref: str) -> EntityDetail | None:
    """The entity with this canonical reference."""
    row = await database.one(_SHOWN, (ref,))
    width = len(StoredEntity._fields)
    return EntityDetail(StoredEntity(*row[:width]), *row[width:]) if row else None


async def display_names(database: Database, refs: Sequence[str]) -> dict[str, DisplayName]:
    """The display names of the entities that are in the catalog, by reference."""
    rows = await database.all(_NAMES, (_LONGEST, list(refs)))
    return {ref: _named(ref, document) for ref, document in rows}


async def same_name(database: Database, name: str, limit: int) -> list[str]:
    """References with this name, of any kind and namespace."""
    rows = await database.all(_SAME_NAME, (name.lower(), limit))
    return [row[0] for row in rows]


class _NameMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""


class _NameDocument(msgspec.Struct):
    metadata: _NameMetadata


_read = msgspec.json.Decoder(_NameDocument).decode


def _named(ref: str, document: str | None) -> DisplayName:
    name = ref.rpartition("/")[2]
    if document is None:
        return DisplayName(name, name)
    metadata = _read(document).metadata
    return DisplayName(metadata.title.strip() or metadata.name or name, metadata.name or name)


async def nearest(database: Database, kind: str, name: str, limit: int = 100) -> list[str]:
    """References of this kind whose names are neighbours of `name` or share a prefix with it."""
    found: dict[str, None] = {}
    for sql, values in _neighbors(kind, name, limit):
        found.update(dict.fromkeys(row[0] for row in await database.all(sql, values)))
    return list(found)


def _neighbors(kind: str, name: str, limit: int) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    for condition, order, text in (
        ("e.name >= ?", "e.name", name),
        ("e.name < ?", "e.name DESC", name),
        ("e.name >= ?", "e.name", name[:2]),
    ):
        yield (
            "SELECT e.ref FROM entities e "
            f"WHERE e.kind = ? AND {condition} ORDER BY {order} LIMIT ?",
            (kind, text, limit),
        )


async def similar(database: Database, kind: str, name: str, most: int) -> list[str]:
    """References of this kind with one of the names most like `name`, of which up to `most`."""
    return _alike(name, await nearest(database, kind, name), most)


async def unknown(database: Database, ref: str) -> NotFoundError:
    """The error for an entity that is not in the catalog; who may read gets those like it."""
    kind, name = _meant(ref)
    return _unknown(ref, await similar(database, kind, name, _SUGGESTED))


def unknown_within(transaction: Transaction, ref: str) -> NotFoundError:
    """As `unknown`."""
    kind, name = _meant(ref)
    rows = [
        row for sql, values in _neighbors(kind, name, 100) for row in transaction.all(sql, values)
    ]
    return _unknown(ref, _alike(name, list(dict.fromkeys(row[0] for row in rows)), _SUGGESTED))


def _meant(ref: str) -> tuple[str, str]:
    """The kind and the name; a kind that is one letter off a well-known one is taken for that."""
    kind, name = ref.partition(":")[0], ref.partition("/")[2]
    return (validation.nearest_kind(kind) or kind).lower(), name


def _alike(name: str, known: Sequence[str], most: int) -> list[str]:
    names = list(dict.fromkeys(ref.partition("/")[2] for ref in known))
    close = near(name, names, most)
    return [ref for found in close for ref in known if ref.partition("/")[2] == found][:most]


def _unknown(ref: str, close: Sequence[str]) -> NotFoundError:
    plain = f"There is no entity {ref} in the catalog."
    refused = NotFoundError(f"{plain}{suggestion('', (), close)}")
    return refused.unless_read(NotFoundError(plain))


async def revisions(
    database: Database, set_name: str, ref: str, limit: int
) -> list[EntityRevision]:
    """Up to `limit` of the kept revisions that changed an entity of a set, newest first."""
    rows = await database.all(_CHANGED, (set_name, _LOOKED_AT, ref, limit))
    if not rows:
        return []
    now = await database.one(f"SELECT {DOCUMENT} FROM entities e WHERE e.ref = ?", (ref,))
    chain = [now[0] if now else None, *(row[-1] for row in rows)]
    return [
        EntityRevision(number, created_at, created_by, restored, before, after)
        for (number, created_at, created_by, restored, _), (after, before) in zip(
            rows, pairwise(chain), strict=True
        )
    ]


class Complying(NamedTuple):
    """The catalog's own facts about an entity: the bits of `catalog.compliance`, and their time."""

    ref: str
    compliance: int
    updated_at: int


async def complying(database: Database, ref: str, *, owners: bool = True) -> Complying | None:
    """The catalog's own facts about one entity.

    Without `owners` the OWNER_EXISTS bit is not looked up, which is faster.
    """
    row = await database.find(_COMPLYING if owners else _COMPLYING_ALONE, ref, small=True)
    return Complying(*row) if row else None


async def complying_pages(
    database: Database, wanted: EntityRange, *, owners: bool = True
) -> AsyncIterator[list[tuple[str, int, int]]]:
    """Rows of Complying, by reference, from one snapshot; `owners` as in `complying`."""
    where, parameters = narrowed(wanted.kind, wanted.namespace)
    after, left = wanted.after, wanted.limit
    bits = COMPLIANCE if owners else "e.compliance"
    sql = (
        "SELECT LIST_OF(ref), LIST_OF(compliance), LIST_OF(updated_at) FROM ("
        f"SELECT e.ref, {bits} AS compliance, e.updated_at FROM entities e WHERE {where} "
        "AND ref > ? ORDER BY ref LIMIT ?) found"
    )
    async with database.moment() as moment:
        while left is None or left > 0:
            size = _PORTION if left is None else min(left, _PORTION)
            columns = await moment.columns(sql, (*parameters, after, size))
            rows = list(zip(*columns, strict=True))
            if rows:
                yield rows
            if len(rows) < size:
                return
            after = rows[-1][0]
            left = left and left - size


async def compliance_by_id(database: Database, after: int, limit: int) -> list[tuple[int, int]]:
    """(id, compliance bits) of up to `limit` entities with an id above `after`, by id."""
    rows = await database.all(
        f"SELECT e.id, {COMPLIANCE} FROM entities e WHERE e.id > ? ORDER BY e.id LIMIT ?",
        (after, limit),
    )
    return [(row[0], row[1]) for row in rows]


async def compliance_of_ids(database: Database, ids: Sequence[int]) -> dict[int, int]:
    """The compliance bits of those of the given entities that exist, by id."""
    return dict(await database.all(_COMPLIANCE_OF, (list(ids),)))


def compliance_of(transaction: Transaction, ids: list[int]) -> list[tuple[int, int]]:
    """(id, compliance bits) of those of the given entities that exist."""
    rows = transaction.all(_COMPLIANCE_OF, (ids,))
    return [(row[0], row[1]) for row in rows]


async def count(database: Database, wanted: EntityRange, most: int) -> int:
    """Count the entities of a kind and namespace, up to `most`."""
    where, parameters = narrowed(wanted.kind, wanted.namespace)
    some = f"SELECT 1 FROM entities WHERE {where} LIMIT {most}"
    row = await database.one(f"SELECT count(*) FROM ({some}) found", parameters)
    return row[0] if row else 0


_SHOWN = (
    f"SELECT {COLUMNS}, e.id, s.name, e.updated_by, e.updated_at, {COMPLIANCE} "
    "FROM entities e "
    "LEFT JOIN sets s ON s.id = e.set_id WHERE e.ref = ?"
)

_COMPLYING = f"SELECT e.ref, {COMPLIANCE}, e.updated_at FROM entities e WHERE e.ref IN LIST(?)"
_COMPLYING_ALONE = "SELECT e.ref, e.compliance, e.updated_at FROM entities e WHERE e.ref IN LIST(?)"

_COMPLIANCE_OF = f"SELECT e.id, {COMPLIANCE} FROM entities e WHERE e.id IN LIST(?)"

_NAMES = """
SELECT e.ref, CASE WHEN length(e.body) <= ? THEN e.head || e.body || '}' END FROM entities e
WHERE e.ref IN LIST(?)
"""

_SAME_NAME = "SELECT ref FROM entities WHERE name = ? ORDER BY ref LIMIT ?"

_CHANGED = """
SELECT r.number, r.created_at, r.created_by, r.restored, c.document FROM (
    SELECT v.set_id, v.number, v.created_at, v.created_by, v.restored
    FROM sets s JOIN revisions v ON v.set_id = s.id WHERE s.name = ?
    ORDER BY v.number DESC LIMIT ?
) r CROSS JOIN revision_changes c
WHERE c.set_id = r.set_id AND c.number = r.number AND c.ref = ? ORDER BY r.number DESC LIMIT ?
"""

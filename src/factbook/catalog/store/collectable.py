"""Reads of the entities that facts are collected for: whole documents, ordered by id."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from factbook.catalog.store.by_ref import COMPLIANCE
from factbook.catalog.store.conditions import SQL
from factbook.catalog.store.documents import COLUMNS, StoredEntity
from factbook.storage import Database, Row, Transaction

EVERYTHING: SQL = ("1 = 1", [])


def page(where: SQL, after: int, limit: int) -> SQL:
    """The statement for up to `limit` entities that meet the condition, with ids above `after`."""
    condition, parameters = where
    sql = f"{_SELECT} WHERE e.id > ? AND {condition} ORDER BY e.id LIMIT ?"
    return sql, [after, *parameters, limit]


def among(where: SQL, ids: list[int]) -> SQL:
    """The statement for the given entities that meet the condition."""
    condition, parameters = where
    return f"{_SELECT} WHERE e.id IN LIST(?) AND {condition} ORDER BY e.id", [ids, *parameters]


async def matching(database: Database, conditions: Iterable[SQL], ids: list[int]) -> set[int]:
    """The ids among these of entities that meet any of the conditions."""
    texts, values = zip(*conditions, strict=True)
    sql = f"SELECT e.id FROM entities e WHERE e.id IN LIST(?) AND ({' OR '.join(texts)})"
    rows = await database.search(sql, [ids, *chain.from_iterable(values)])
    return {id_ for (id_,) in rows}


def read(rows: Iterable[Row]) -> list[tuple[int, str, dict[str, Any]]]:
    """(id, reference, entity in the form that the catalog shows) from rows of such a statement."""
    return [(row[0], row[1], msgspec.json.decode(StoredEntity(*row[1:]).render())) for row in rows]


async def id_of(database: Database, ref: str) -> int | None:
    """The id of the entity with this canonical reference."""
    row = await database.one("SELECT id FROM entities WHERE ref = ?", (ref,))
    return row[0] if row else None


async def entity(database: Database, ref: str) -> dict[str, Any] | None:
    """The entity with this canonical reference, in the form that the catalog shows."""
    rows = await database.all(f"{_SELECT} WHERE e.ref = ?", (ref,))
    return next((found for _, _, found in read(rows)), None)


def ids_of(transaction: Transaction, refs: Iterable[str]) -> dict[str, int]:
    """The ids of the entities with these canonical references, by reference."""
    rows = transaction.all("SELECT ref, id FROM entities WHERE ref IN LIST(?)", (sorted(refs),))
    return dict(rows)


async def known_refs(database: Database, refs: Iterable[str]) -> set[str]:
    """The canonical references among these that are in the catalog."""
    rows = await database.all("SELECT ref FROM entities WHERE ref IN LIST(?)", (sorted(refs),))
    return {ref for (ref,) in rows}


def refs_of(transaction: Transaction, ids: Iterable[int]) -> dict[int, str]:
    """The references of the entities with these ids, by id."""
    return dict(transaction.all("SELECT id, ref FROM entities WHERE id IN LIST(?)", (list(ids),)))


def range_(first: int, last: int) -> SQL:
    """The statement for the entities from one id to another."""
    return f"{_SELECT} WHERE e.id BETWEEN ? AND ?", [first, last]


async def between(database: Database, where: SQL, first: int, last: int) -> set[int]:
    """The ids from one to another that belong to entities which meet the condition."""
    condition, values = where
    sql = f"SELECT e.id FROM entities e WHERE e.id BETWEEN ? AND ? AND {condition}"
    return {id_ for (id_,) in await database.search(sql, (first, last, *values))}


def bits_of(
    transaction: Transaction, ids: list[int], *, owners: bool
) -> list[tuple[int, int, int]]:
    """(id, bits of `catalog.compliance`, time of the last change) of entities.

    Without `owners` the bit that the owner exists is not looked up, which is faster.
    """
    rows = transaction.all(f"{_BITS[owners]} e.id IN LIST(?)", (ids,))
    return [(id_, bits, at) for id_, bits, at in rows]


async def bits_of_ids(
    database: Database, ids: list[int], *, owners: bool
) -> list[tuple[int, int, int]]:
    """The same, for those who read."""
    rows = await database.all(f"{_BITS[owners]} e.id IN LIST(?)", (ids,))
    return [(id_, bits, at) for id_, bits, at in rows]


async def bits_between(
    database: Database, first: int, last: int, *, owners: bool
) -> list[tuple[int, int, int]]:
    """The same of the entities from one id to another."""
    rows = await database.search(f"{_BITS[owners]} e.id BETWEEN ? AND ?", (first, last))
    return [(id_, bits, at) for id_, bits, at in rows]


async def refs_after(
    database: Database, after: int, limit: int, refs: list[str]
) -> list[tuple[int, str]]:
    """Up to `limit` ids and references of entities above an id, of those named if there are any."""
    only, named = (" AND ref IN LIST(?)", [refs]) if refs else ("", [])
    sql = f"SELECT id, ref FROM entities WHERE id > ?{only} ORDER BY id LIMIT ?"
    return [(id_, ref) for id_, ref in await database.search(sql, (after, *named, limit))]


async def refs_of_ids(database: Database, ids: Iterable[int]) -> dict[int, str]:
    """The references of the entities with these ids that are in the catalog, by id."""
    return dict(
        await database.all("SELECT id, ref FROM entities WHERE id IN LIST(?)", (list(ids),))
    )


async def ref_further(database: Database, ref: str, count: int) -> str | None:
    """The reference so many entities after one in their order; None beyond the last."""
    sql = "SELECT ref FROM entities WHERE ref > ? ORDER BY ref LIMIT 1 OFFSET ?"
    rows = await database.search(sql, (ref, count - 1))
    return rows[0][0] if rows else None


def meeting(transaction: Transaction, where: SQL, ids: list[int]) -> set[int]:
    """The given ids that belong to entities which meet the condition."""
    condition, values = where
    sql = f"SELECT e.id FROM entities e WHERE e.id IN LIST(?) AND {condition}"
    return {row[0] for row in transaction.all(sql, (ids, *values))}


async def some(database: Database, where: SQL, limit: int) -> list[str]:
    """The references of up to `limit` entities that meet the condition, in no particular order."""
    condition, values = where
    sql = f"SELECT e.ref FROM entities e WHERE {condition} LIMIT ?"
    return [ref for (ref,) in await database.search(sql, (*values, limit))]


def ids_after(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` ids of entities above `after`, in order."""
    sql = "SELECT id FROM entities WHERE id > ? ORDER BY id LIMIT ?"
    return [id_ for (id_,) in transaction.all(sql, (after, limit))]


def ids_among(transaction: Transaction, wanted: range, limit: int) -> list[int]:
    """Up to `limit` ids of entities among those of a range, in order."""
    sql = "SELECT id FROM entities WHERE id BETWEEN ? AND ? AND id % ? = ? ORDER BY id LIMIT ?"
    bounds = wanted.start, wanted.stop - 1, wanted.step, wanted.start % wanted.step
    return [id_ for (id_,) in transaction.all(sql, (*bounds, limit))]


def owners(transaction: Transaction, ids: list[int]) -> dict[int, str]:
    """The first owner of each of the given entities that are in the catalog; '' without one."""
    return dict(transaction.all(_OWNERS, (ids,)))


def existing(transaction: Transaction, ids: list[int]) -> set[int]:
    """The given ids that belong to entities in the catalog."""
    rows = transaction.all("SELECT id FROM entities WHERE id IN LIST(?)", (ids,))
    return {row[0] for row in rows}


_OWNERS = """
SELECT e.id, COALESCE(MIN(r.target_ref), '') FROM entities e
LEFT JOIN relations r ON r.source_id = e.id AND r.type = 'ownedBy'
WHERE e.id IN LIST(?) GROUP BY e.id
"""

# Without and with the bit of the owner.
_BITS = tuple(
    f"SELECT e.id, {bits}, e.updated_at FROM entities e WHERE"
    for bits in ("e.compliance", COMPLIANCE)
)
_SELECT = f"SELECT e.id, {COLUMNS} FROM entities e"

"""Reads of stored entities: by reference, by uid, and by id for the collection of facts."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

import msgspec

from factbook.catalog import validation
from factbook.catalog.kinds import HAS_OWNER_RELATION, OWNER_EXISTS
from factbook.catalog.store.conditions import SQL, Condition, EntityRange, narrow_condition
from factbook.errors import NotFoundError, near, suggestion
from factbook.storage import Database, Row, Transaction

_METADATA = '"metadata":{'

# The whole document of `entities e`, reassembled.
DOCUMENT = "e.head || e.body || '}'"

# The rendered document, as parts to concatenate.
_PARTS = (
    """e.head || '"uid":"' || e.uid || '","etag":"' || e.etag || '",'""",
    "e.body",
    """',"relations":' || e.relations || CASE WHEN e.problems IS NULL THEN '}' """
    """ELSE ',"status":{"items":' || e.problems || '}}' END""",
)
# As one column: faster for pages with few rows.
RENDERED_DOCUMENT = " || ".join(_PARTS)
# As columns that follow a comma.
JOINED_DOCUMENT = ", ".join([f"',' || {_PARTS[0]}", *_PARTS[1:]])

# The stored bits of `entities e`, and the bit of its owner.
COMPLIANCE = f"""e.compliance + CASE WHEN (e.compliance & {HAS_OWNER_RELATION}) <> 0 AND EXISTS (
    SELECT 1 FROM relations o JOIN entities t ON t.ref = o.target_ref
    WHERE o.source_id = e.id AND o.type = 'ownedBy'
) THEN {OWNER_EXISTS} ELSE 0 END"""

# Entities whose facts are read in one statement.
_PORTION = 2_000
# Longer documents are not read just for a name.
_LONGEST_NAME = 20_000
# Revisions of the set that are scanned.
_LOOKED_AT = 500
# References suggested in an error.
_SUGGESTED = 3

EVERY_ENTITY: SQL = ("1 = 1", [])

# Without and with the owner bit.
_BITS_SQL = tuple(
    f"SELECT e.id, {bits}, e.updated_at FROM entities e WHERE"
    for bits in ("e.compliance", COMPLIANCE)
)


def split_document(document: str) -> tuple[str, str]:
    """Split into head, up to the brace that opens `metadata`, and body, without the last brace."""
    # metadata is the first object of a document: nothing before it can hold this text.
    head, opening, body = document.partition(_METADATA)
    return head + opening, body[:-1]


class StoredEntity(NamedTuple):
    """A stored entity; `relations` and `problems` are JSON."""

    ref: str
    head: str
    uid: str
    etag: str
    body: str
    relations: str
    problems: str | None

    def render(self) -> str:
        """The entity in the form that the catalog shows: with uid, etag, relations and status."""
        status = f',"status":{{"items":{self.problems}}}' if self.problems else ""
        return (
            f'{self.head}"uid":"{self.uid}","etag":"{self.etag}",{self.body},'
            f'"relations":{self.relations}{status}}}'
        )


# Of `entities e`.
STORED_COLUMNS = ", ".join(f"e.{name}" for name in StoredEntity._fields)


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
    """A revision with an entity's documents before and after; None where it did not exist.

    `restored` is the number of the revision that this one restored.
    """

    number: int
    created_at: int
    created_by: str
    restored: int | None
    before: str | None
    after: str | None


async def read_entity(database: Database, ref: str) -> StoredEntity | None:
    """The entity with this canonical reference."""
    row = await database.find(
        f"SELECT {STORED_COLUMNS} FROM entities e WHERE e.ref IN LIST(?)",
        ref,
    )
    return StoredEntity(*row) if row else None


async def read_entity_by_uid(database: Database, uid: str) -> StoredEntity | None:
    """The entity with this uid."""
    row = await database.one(f"SELECT {STORED_COLUMNS} FROM entities e WHERE e.uid = ?", (uid,))
    return StoredEntity(*row) if row else None


async def read_entities_by_refs(
    database: Database, wanted: list[str], condition: Condition
) -> dict[str, StoredEntity]:
    """The entities among these references that exist and meet the condition."""
    where, parameters = condition.sql()
    rows = await database.all(
        f"SELECT {STORED_COLUMNS} FROM entities e WHERE e.ref IN LIST(?) AND ({where})",
        [wanted, *parameters],
    )
    return {row[0]: StoredEntity(*row) for row in rows}


async def read_entity_detail(database: Database, ref: str) -> EntityDetail | None:
    """The entity with this canonical reference."""
    row = await database.one(_ENTITY_BY_REF, (ref,))
    width = len(StoredEntity._fields)
    return EntityDetail(StoredEntity(*row[:width]), *row[width:]) if row else None


async def read_display_names(database: Database, refs: Sequence[str]) -> dict[str, DisplayName]:
    """The display names of the entities that are in the catalog, by reference."""
    rows = await database.all(_NAMES, (_LONGEST_NAME, list(refs)))
    names = {}
    for ref, document in rows:
        name = ref.rpartition("/")[2]
        metadata = _NameMetadata() if document is None else _decode_name(document).metadata
        written = metadata.name or name
        names[ref] = DisplayName(metadata.title.strip() or written, written)
    return names


async def find_refs_with_name(database: Database, name: str, limit: int) -> list[str]:
    """References with this name, of any kind and namespace."""
    rows = await database.all(_SAME_NAME, (name.lower(), limit))
    return [row[0] for row in rows]


class _NameMetadata(msgspec.Struct):
    name: str = ""
    title: str = ""


class _NameDocument(msgspec.Struct):
    metadata: _NameMetadata


_decode_name = msgspec.json.Decoder(_NameDocument).decode


async def find_nearest_names(
    database: Database, kind: str, name: str, limit: int = 100
) -> list[str]:
    """References of this kind whose names are neighbors of `name` or share a prefix with it."""
    found: dict[str, None] = {}
    for sql, values in _find_neighbors(kind, name, limit):
        found.update(dict.fromkeys(row[0] for row in await database.all(sql, values)))
    return list(found)


def _find_neighbors(
    kind: str, name: str, limit: int
) -> Iterator[tuple[str, tuple[str | int, ...]]]:
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


async def find_similar_refs(database: Database, kind: str, name: str, most: int) -> list[str]:
    """References of this kind with one of the `most` names closest to `name`."""
    return _alike_names(name, await find_nearest_names(database, kind, name), most)


async def make_unknown_error(database: Database, ref: str) -> NotFoundError:
    """The error for an unknown entity, with similar references for callers that may read them."""
    kind, name = _meant_ref(ref)
    return _unknown_error(ref, await find_similar_refs(database, kind, name, _SUGGESTED))


def make_unknown_error_within(transaction: Transaction, ref: str) -> NotFoundError:
    """Like `make_unknown_error`, within a transaction."""
    kind, name = _meant_ref(ref)
    rows = [
        row
        for sql, values in _find_neighbors(kind, name, 100)
        for row in transaction.all(sql, values)
    ]
    return _unknown_error(
        ref, _alike_names(name, list(dict.fromkeys(row[0] for row in rows)), _SUGGESTED)
    )


def _meant_ref(ref: str) -> tuple[str, str]:
    """The kind and the name; a kind one letter off a well-known kind is corrected."""
    kind, name = ref.partition(":")[0], ref.partition("/")[2]
    return (validation.nearest_kind(kind) or kind).lower(), name


def _alike_names(name: str, known: Sequence[str], most: int) -> list[str]:
    names = list(dict.fromkeys(ref.partition("/")[2] for ref in known))
    close = near(name, names, most)
    return [ref for found in close for ref in known if ref.partition("/")[2] == found][:most]


def _unknown_error(ref: str, close: Sequence[str]) -> NotFoundError:
    plain = f"There is no entity {ref} in the catalog."
    refused = NotFoundError(f"{plain}{suggestion('', (), close)}")
    return refused.unless_read(NotFoundError(plain))


async def list_entity_revisions(
    database: Database, set_name: str, ref: str, limit: int
) -> list[EntityRevision]:
    """Up to `limit` kept revisions that changed an entity of a set, newest first."""
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


async def list_complying(database: Database, ref: str, *, owners: bool = True) -> Complying | None:
    """The catalog's own facts about one entity.

    Without `owners` the OWNER_EXISTS bit is not looked up, which is faster.
    """
    row = await database.find(_COMPLYING if owners else _COMPLYING_ALONE, ref, small=True)
    return Complying(*row) if row else None


async def stream_complying(
    database: Database, wanted: EntityRange, *, owners: bool = True
) -> AsyncIterator[list[tuple[str, int, int]]]:
    """Rows of Complying, by reference, from one snapshot; `owners` as in `list_complying`."""
    where, parameters = narrow_condition(wanted.kind, wanted.namespace)
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


async def page_compliance(database: Database, after: int, limit: int) -> list[tuple[int, int]]:
    """(id, compliance bits) of up to `limit` entities with an id above `after`, by id."""
    rows = await database.all(
        f"SELECT e.id, {COMPLIANCE} FROM entities e WHERE e.id > ? ORDER BY e.id LIMIT ?",
        (after, limit),
    )
    return [(row[0], row[1]) for row in rows]


async def read_compliance(database: Database, ids: Sequence[int]) -> dict[int, int]:
    """The compliance bits of the given entities that exist, by id."""
    return dict(await database.all(_COMPLIANCE_OF, (list(ids),)))


def read_compliance_within(transaction: Transaction, ids: list[int]) -> list[tuple[int, int]]:
    """(id, compliance bits) of the given entities that exist."""
    rows = transaction.all(_COMPLIANCE_OF, (ids,))
    return [(row[0], row[1]) for row in rows]


async def count_matching(database: Database, wanted: EntityRange, most: int) -> int:
    """Count the entities of a kind and namespace, up to `most`."""
    where, parameters = narrow_condition(wanted.kind, wanted.namespace)
    some = f"SELECT 1 FROM entities WHERE {where} LIMIT {most}"
    row = await database.one(f"SELECT count(*) FROM ({some}) found", parameters)
    return row[0] if row else 0


def entity_page_sql(where: SQL, after: int, limit: int) -> SQL:
    """The statement for up to `limit` entities that meet the condition, with ids above `after`."""
    condition, parameters = where
    sql = f"{_SELECT_COLLECTABLE} WHERE e.id > ? AND {condition} ORDER BY e.id LIMIT ?"
    return sql, [after, *parameters, limit]


def entities_among_sql(where: SQL, ids: list[int]) -> SQL:
    """The statement for the given entities that meet the condition."""
    condition, parameters = where
    return f"{_SELECT_COLLECTABLE} WHERE e.id IN LIST(?) AND {condition} ORDER BY e.id", [
        ids,
        *parameters,
    ]


async def matching_ids(database: Database, conditions: Iterable[SQL], ids: list[int]) -> set[int]:
    """The ids among these whose entities meet any of the conditions."""
    texts, values = zip(*conditions, strict=True)
    sql = f"SELECT e.id FROM entities e WHERE e.id IN LIST(?) AND ({' OR '.join(texts)})"
    rows = await database.search(sql, [ids, *chain.from_iterable(values)])
    return {id_ for (id_,) in rows}


def decode_collectable(rows: Iterable[Row]) -> list[tuple[int, str, dict[str, Any]]]:
    """(id, reference, entity in the form that the catalog shows) from rows of such a statement."""
    return [(row[0], row[1], msgspec.json.decode(StoredEntity(*row[1:]).render())) for row in rows]


async def read_entity_id(database: Database, ref: str) -> int | None:
    """The id of the entity with this canonical reference."""
    row = await database.one("SELECT id FROM entities WHERE ref = ?", (ref,))
    return row[0] if row else None


async def read_collectable(database: Database, ref: str) -> dict[str, Any] | None:
    """The entity with this canonical reference, in the form that the catalog shows."""
    rows = await database.all(f"{_SELECT_COLLECTABLE} WHERE e.ref = ?", (ref,))
    return next((found for _, _, found in decode_collectable(rows)), None)


def read_ids_of_refs(transaction: Transaction, refs: Iterable[str]) -> dict[str, int]:
    """The ids of the entities with these canonical references, by reference."""
    rows = transaction.all("SELECT ref, id FROM entities WHERE ref IN LIST(?)", (sorted(refs),))
    return dict(rows)


async def filter_known_refs(database: Database, refs: Iterable[str]) -> set[str]:
    """The canonical references among these that are in the catalog."""
    rows = await database.all("SELECT ref FROM entities WHERE ref IN LIST(?)", (sorted(refs),))
    return {ref for (ref,) in rows}


def read_refs_of_ids_within(transaction: Transaction, ids: Iterable[int]) -> dict[int, str]:
    """The references of the entities with these ids, by id."""
    return dict(transaction.all("SELECT id, ref FROM entities WHERE id IN LIST(?)", (list(ids),)))


def id_range_condition(first: int, last: int) -> SQL:
    """The condition for entities in a range of ids."""
    return f"{_SELECT_COLLECTABLE} WHERE e.id BETWEEN ? AND ?", [first, last]


async def read_entities_between(database: Database, where: SQL, first: int, last: int) -> set[int]:
    """The ids in a range whose entities meet the condition."""
    condition, values = where
    sql = f"SELECT e.id FROM entities e WHERE e.id BETWEEN ? AND ? AND {condition}"
    return {id_ for (id_,) in await database.search(sql, (first, last, *values))}


def read_bits_within(
    transaction: Transaction, ids: list[int], *, owners: bool
) -> list[tuple[int, int, int]]:
    """(id, `catalog.compliance` bits, time of the last change) of these entities.

    Without `owners`, the OWNER_EXISTS bit is not looked up, which is faster.
    """
    rows = transaction.all(f"{_BITS_SQL[owners]} e.id IN LIST(?)", (ids,))
    return [(id_, bits, at) for id_, bits, at in rows]


async def read_bits(
    database: Database, ids: list[int], *, owners: bool
) -> list[tuple[int, int, int]]:
    """Like `read_bits_within`, outside a transaction."""
    rows = await database.all(f"{_BITS_SQL[owners]} e.id IN LIST(?)", (ids,))
    return [(id_, bits, at) for id_, bits, at in rows]


async def read_bits_between(
    database: Database, first: int, last: int, *, owners: bool
) -> list[tuple[int, int, int]]:
    """Like `read_bits`, for the entities in a range of ids."""
    rows = await database.search(f"{_BITS_SQL[owners]} e.id BETWEEN ? AND ?", (first, last))
    return [(id_, bits, at) for id_, bits, at in rows]


async def page_refs(
    database: Database, after: int, limit: int, refs: list[str]
) -> list[tuple[int, str]]:
    """Up to `limit` (id, reference) of entities above an id, only among `refs` if not empty."""
    only, named = (" AND ref IN LIST(?)", [refs]) if refs else ("", [])
    sql = f"SELECT id, ref FROM entities WHERE id > ?{only} ORDER BY id LIMIT ?"
    return [(id_, ref) for id_, ref in await database.search(sql, (after, *named, limit))]


async def read_refs_of_ids(database: Database, ids: Iterable[int]) -> dict[int, str]:
    """The references of the entities with these ids that are in the catalog, by id."""
    return dict(
        await database.all("SELECT id, ref FROM entities WHERE id IN LIST(?)", (list(ids),))
    )


async def read_ref_further(database: Database, ref: str, count: int) -> str | None:
    """The reference `count` entities after this one, in order; None beyond the last."""
    sql = "SELECT ref FROM entities WHERE ref > ? ORDER BY ref LIMIT 1 OFFSET ?"
    rows = await database.search(sql, (ref, count - 1))
    return rows[0][0] if rows else None


def filter_ids_meeting(transaction: Transaction, where: SQL, ids: list[int]) -> set[int]:
    """The given ids that belong to entities which meet the condition."""
    condition, values = where
    sql = f"SELECT e.id FROM entities e WHERE e.id IN LIST(?) AND {condition}"
    return {row[0] for row in transaction.all(sql, (ids, *values))}


async def read_some_ids(database: Database, where: SQL, limit: int) -> list[str]:
    """The references of up to `limit` entities that meet the condition, in no particular order."""
    condition, values = where
    sql = f"SELECT e.ref FROM entities e WHERE {condition} LIMIT ?"
    return [ref for (ref,) in await database.search(sql, (*values, limit))]


def page_ids(transaction: Transaction, after: int, limit: int) -> list[int]:
    """Up to `limit` ids of entities above `after`, in order."""
    sql = "SELECT id FROM entities WHERE id > ? ORDER BY id LIMIT ?"
    return [id_ for (id_,) in transaction.all(sql, (after, limit))]


def page_ids_among(transaction: Transaction, wanted: range, limit: int) -> list[int]:
    """Up to `limit` ids of entities among those of a range, in order."""
    sql = "SELECT id FROM entities WHERE id BETWEEN ? AND ? AND id % ? = ? ORDER BY id LIMIT ?"
    bounds = wanted.start, wanted.stop - 1, wanted.step, wanted.start % wanted.step
    return [id_ for (id_,) in transaction.all(sql, (*bounds, limit))]


def read_owner_refs(transaction: Transaction, ids: list[int]) -> dict[int, str]:
    """The first owner of each of the given entities that are in the catalog; '' without one."""
    return dict(transaction.all(_OWNERS_OF_IDS, (ids,)))


def filter_existing_ids(transaction: Transaction, ids: list[int]) -> set[int]:
    """The given ids that belong to entities in the catalog."""
    rows = transaction.all("SELECT id FROM entities WHERE id IN LIST(?)", (ids,))
    return {row[0] for row in rows}


_ENTITY_BY_REF = (
    f"SELECT {STORED_COLUMNS}, e.id, s.name, e.updated_by, e.updated_at, {COMPLIANCE} "
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

_OWNERS_OF_IDS = """
SELECT e.id, COALESCE(MIN(r.target_ref), '') FROM entities e
LEFT JOIN relations r ON r.source_id = e.id AND r.type = 'ownedBy'
WHERE e.id IN LIST(?) GROUP BY e.id
"""

_SELECT_COLLECTABLE = f"SELECT e.id, {STORED_COLUMNS} FROM entities e"

"""Removed entities, remembered for some days: added again, they have their ids, facts and history.

They are remembered by their external id, and by reference. A move to another reference is a
removal and an addition in one write. An entity with another external id than the remembered one of
its name is another thing, and begins with nothing.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from factbook.auth import users
from factbook.catalog.people_trust import IMPORTED
from factbook.storage import Transaction
from factbook.storage.database import RestartError
from factbook.storage.touches import Touched

# Told, with the reference that it had, of an entity that moves.
_MOVED: Final = "moved entities"


class Holder(NamedTuple):
    """An entity in the catalog, its set, and its relation to the reference; empty for none."""

    ref: str
    set: str
    relation: str


class ErasedEntities(NamedTuple):
    """Ids of removed entities, documents they had, and the number of deleted `changes`."""

    ids: list[int]
    documents: list[str]
    changes: int


def remember(
    transaction: Transaction,
    gone: Iterable[tuple[str, int, str]],
    keys: Mapping[int, str],
    now: int,
) -> None:
    """Remember entities, given by reference, id and uid; `keys` are those of `memory_key` by id."""
    columns = ("ref", "id", "uid", "removed_at", "external_id")
    rows = [(ref, id_, uid, now, keys.get(id_) or None) for ref, id_, uid in gone]
    transaction.insert("removed_entities", columns, rows)


def memory_key(set_name: str | None, external_id: str) -> str:
    """The text by which an external id is remembered; empty without one.

    One that an importer states is known everywhere, one that is pushed only in its set: otherwise a
    pusher could claim what another set removed.
    """
    if not external_id or set_name is None:
        return ""
    if set_name.startswith(IMPORTED):
        return external_id
    return f"{external_id}{_IN_SET}{set_name}"


def recall(transaction: Transaction, added: Mapping[str, str]) -> dict[str, tuple[int, str]]:
    """Ids and uids of removed entities that are added again; they are not remembered any more.

    `added` has the key of `memory_key` by reference. A namesake with another external id is set
    aside: its name belongs to something else now.
    """
    keys = sorted({key for key in added.values() if key})
    # The latest last, which counts.
    known = transaction.all(f"{_READ} external_id IN LIST(?) ORDER BY removed_at, id", (keys,))
    by_key = {row[3]: row for row in known}
    namesakes = {row[0]: row for row in transaction.all(f"{_READ} ref IN LIST(?)", (list(added),))}
    found = {ref: by_key.pop(key) for ref, key in added.items() if key in by_key}
    for row in found.values():
        namesakes.pop(row[0], None)
    for ref in namesakes.keys() - found.keys():
        if _may_be(namesakes[ref][3], added[ref]):
            found[ref] = namesakes.pop(ref)
    given = [row[0] for row in found.values()]
    transaction.run("DELETE FROM removed_entities WHERE ref IN LIST(?)", (given,))
    _vacate(transaction, {row[0]: row[1] for ref, row in found.items() if row[0] != ref})
    _set_aside(transaction, {ref: row[1] for ref, row in namesakes.items()})
    return {ref: (row[1], row[2]) for ref, row in found.items()}


def forget(transaction: Transaction, before: int) -> list[int]:
    """Forget what was removed before that time; the ids."""
    gone = transaction.all(
        "DELETE FROM removed_entities WHERE removed_at < ? RETURNING id, ref, external_id",
        (before,),
    )
    # Whatever gets one of their names is another thing.
    _vacate(transaction, {ref: id_ for id_, ref, key in gone if key and _ASIDE not in ref})
    return [row[0] for row in gone]


def _may_be(known: str | None, key: str) -> bool:
    """True unless both sides have an external id, and not the same."""
    return not known or not key or known.partition(_IN_SET)[0] == key.partition(_IN_SET)[0]


def _set_aside(transaction: Transaction, namesakes: Mapping[str, int]) -> None:
    rows = [(aside(ref, id_), ref) for ref, id_ in namesakes.items()]
    transaction.many("UPDATE removed_entities SET ref = ? WHERE ref = ?", rows)
    _vacate(transaction, namesakes)


def aside(ref: str, id_: int) -> str:
    """The reference in place of that which an entity lost to another thing."""
    return f"{ref}{_ASIDE}{id_}"


def _vacate(transaction: Transaction, left: Mapping[str, int]) -> None:
    """Tell that entities no longer have these names; accounts of such names prove nothing now."""
    for ref, id_ in left.items():
        transaction.touch((_MOVED, ref), (id_,))
    if people := [ref for ref in left if ref.startswith(users.PREFIX)]:
        users.remove_proofs(transaction, people)


def check(transaction: Transaction, refs: list[str]) -> None:
    """Begin anew if an entity was added and removed by others since it was planned to add it.

    Then it has another id. From now on no other write can add it.
    """
    rows = "SELECT 1 FROM removed_entities WHERE ref IN LIST(?) LIMIT 1"
    if any_of(transaction) and transaction.one(rows, (refs,)) is not None:
        raise RestartError


def moved(touched: Touched) -> dict[str, int]:
    """The ids of what has moved in a transaction, by the references before."""
    return {topic[1]: id_ for topic, ids in touched.items() if topic[0] == _MOVED for id_ in ids}


def refs_of(transaction: Transaction, ids: Iterable[int]) -> dict[int, str]:
    """The references by which entities with these ids are in the catalog, or remembered, by id."""
    wanted = sorted(ids)
    sql = (f"SELECT id, ref FROM {table} WHERE id IN LIST(?)" for table in _TABLES)
    return dict(chain.from_iterable(transaction.all(each, (wanted,)) for each in sql))


def holders(transaction: Transaction, refs: Collection[str]) -> list[Holder]:
    """Entities of the catalog that still name these references, the named ones themselves first."""
    given = sorted(refs)
    return [
        Holder(ref, set_name, relation)
        for sql in (_THEMSELVES, _RELATED)
        for ref, set_name, relation in transaction.all(sql, (given,))
    ]


def erase(transaction: Transaction, refs: Collection[str]) -> ErasedEntities:
    """Delete what is remembered of removed entities, and their documents of earlier revisions."""
    given = sorted(refs)
    found = transaction.all(_DOCUMENTS, (given,))
    transaction.many(
        "DELETE FROM revision_changes WHERE set_id = ? AND number = ? AND ref = ?",
        [row[:3] for row in found],
    )
    ids = [
        id_
        for ref in given
        for (id_,) in transaction.all(_ERASE, (ref, f"{ref}{_ASIDE}", f"{ref}{_BEHIND_ASIDE}"))
    ]
    documents = [row[3] for row in found if row[3]]
    return ErasedEntities(ids, documents, len(found))


def any_of(transaction: Transaction) -> bool:
    """True if anything is remembered."""
    return transaction.one("SELECT 1 FROM removed_entities LIMIT 1") is not None


# No reference has one.
_ASIDE: Final = "#"
_BEHIND_ASIDE: Final = chr(ord(_ASIDE) + 1)
# No external id has one.
_IN_SET: Final = "\t"
_ERASE: Final = "DELETE FROM removed_entities WHERE ref = ? OR ref BETWEEN ? AND ? RETURNING id"
_TABLES: Final = ("removed_entities", "entities")
_READ: Final = "SELECT ref, id, uid, external_id FROM removed_entities WHERE"

_THEMSELVES = """
SELECT e.ref, coalesce(s.name, ''), '' FROM entities e LEFT JOIN sets s ON s.id = e.set_id
WHERE e.ref IN LIST(?)
"""
_RELATED = """
SELECT e.ref, coalesce(s.name, ''), r.type FROM relations r JOIN entities e ON e.id = r.source_id
LEFT JOIN sets s ON s.id = e.set_id WHERE r.target_ref IN LIST(?) ORDER BY e.ref, r.type LIMIT 100
"""
# By revision, as changes have no index by reference.
_DOCUMENTS = """
SELECT c.set_id, c.number, c.ref, c.document FROM revisions r CROSS JOIN revision_changes c
WHERE c.set_id = r.set_id AND c.number = r.number AND c.ref IN LIST(?)
"""

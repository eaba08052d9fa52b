"""Removed entities, remembered for some days: added again, they have their ids, facts and history.

They are remembered by reference. A move to another reference is a removal and an addition in one
write: it renames the memory before the addition looks for it.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

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


def recall(transaction: Transaction, refs: list[str]) -> dict[str, tuple[int, str]]:
    """Ids and uids of removed entities that are added again; they are not remembered any more."""
    if not refs or not _any(transaction):
        return {}
    rows = transaction.all(
        "SELECT ref, id, uid FROM removed_entities WHERE ref IN LIST(?)", (refs,)
    )
    transaction.run("DELETE FROM removed_entities WHERE ref IN LIST(?)", (refs,))
    return {ref: (id_, uid) for ref, id_, uid in rows}


def check(transaction: Transaction, refs: list[str]) -> None:
    """Begin anew if an entity was added and removed by others since it was planned to add it.

    Then it has another id. From now on no other write can add it.
    """
    rows = "SELECT 1 FROM removed_entities WHERE ref IN LIST(?) LIMIT 1"
    if _any(transaction) and transaction.one(rows, (refs,)) is not None:
        raise RestartError


def carry_over(transaction: Transaction, moves: Mapping[str, str]) -> None:
    """Remember what has moved by its new reference.

    What else was removed under that is not forgotten before its time, and found no more.
    """
    for old, new in moves.items():
        transaction.run(_SET_ASIDE, (new,))
        ids = [id_ for (id_,) in transaction.all(_RENAME, (new, old))]
        transaction.touch((_MOVED, old), ids)


def moved(touched: Touched) -> dict[str, int]:
    """The ids of what has moved in a transaction, by the references before."""
    return {topic[1]: id_ for topic, ids in touched.items() if topic[0] == _MOVED for id_ in ids}


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
    ids = transaction.all(
        "DELETE FROM removed_entities WHERE ref IN LIST(?) RETURNING id", (given,)
    )
    documents = [row[3] for row in found if row[3]]
    return ErasedEntities([id_ for (id_,) in ids], documents, len(found))


def _any(transaction: Transaction) -> bool:
    return transaction.one("SELECT 1 FROM removed_entities LIMIT 1") is not None


# No reference is without a colon.
_SET_ASIDE = "UPDATE removed_entities SET ref = '#' || id WHERE ref = ?"
_RENAME = "UPDATE removed_entities SET ref = ? WHERE ref = ? RETURNING id"

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

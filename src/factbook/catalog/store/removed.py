"""Removed entities, remembered for some days: added again, they have their ids, facts and history.

They are remembered by reference. A move to another reference is a removal and an addition in one
write: it renames the memory before the addition looks for it.
"""

from collections.abc import Mapping
from typing import Final

from factbook.storage import Transaction
from factbook.storage.database import RestartError
from factbook.storage.touches import Touched

# Told, with the reference that it had, of an entity that moves.
_MOVED: Final = "moved entities"


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


def _any(transaction: Transaction) -> bool:
    return transaction.one("SELECT 1 FROM removed_entities LIMIT 1") is not None


# No reference is without a colon.
_SET_ASIDE = "UPDATE removed_entities SET ref = '#' || id WHERE ref = ?"
_RENAME = "UPDATE removed_entities SET ref = ? WHERE ref = ? RETURNING id"

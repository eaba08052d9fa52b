"""Moves: entities that get another reference and keep their ids, and with these facts and history.

A move is the removal of one reference and the addition of another in one write. Removed entities
are remembered by reference; a move renames that memory before the addition looks for it.
"""

from collections.abc import Mapping

from factbook.catalog.store.diff import WritePlan
from factbook.storage import Transaction


def planned(plan: WritePlan, moves: Mapping[str, str]) -> dict[str, str]:
    """The moves, old to new reference, that a plan carries out: each to one of its own."""
    removed = {item.ref for item in plan.removed}
    added = {item.ref for item in plan.added}
    found: dict[str, str] = {}
    for old, new in moves.items():
        if old in removed and new in added and new not in found.values():
            found[old] = new
    return found


def carry_over(transaction: Transaction, moves: Mapping[str, str]) -> None:
    """Rename what is remembered of removed entities.

    What else was removed under a new reference is not forgotten before its time, and found no more.
    """
    for old, new in moves.items():
        transaction.run(_SET_ASIDE, (new,))
        transaction.run(_RENAME, (new, old))


# No reference is without a colon.
_SET_ASIDE = "UPDATE removed_entities SET ref = '#' || id WHERE ref = ?"
_RENAME = "UPDATE removed_entities SET ref = ? WHERE ref = ?"

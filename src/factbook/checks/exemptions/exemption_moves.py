"""Exemptions of entities that move to another reference: they move with them."""

from collections.abc import Mapping
from typing import Final

from factbook.catalog.store import removed
from factbook.checks.exemptions.exemption_store import MOVES
from factbook.storage import Transaction


def follow(transaction: Transaction, moved: Mapping[str, int]) -> None:
    """Have exemptions name entities as they are called now; `moved` has ids by former names.

    Those of an entity that lost its name and has no other one yet wait for it, and hold for nobody.
    """
    if not moved:
        return
    # A request that found the entity by its former name is committed from here on.
    transaction.lock(MOVES)
    named = transaction.all(_NAMED, (list(moved),))
    now = removed.refs_of(transaction, {moved[ref] for _, ref in named})
    rows = [(now.get(moved[ref]) or removed.aside(ref, moved[ref]), id_) for id_, ref in named]
    transaction.many(_RENAME, rows)


# Each by its id, as an entity may have got the name that another had. In one order for all.
_NAMED: Final = "SELECT id, entity_ref FROM exemptions WHERE entity_ref IN LIST(?) ORDER BY id"
_RENAME: Final = "UPDATE exemptions SET entity_ref = ? WHERE id = ?"

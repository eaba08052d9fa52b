"""Entities whose owners come into the catalog or leave it.

An entity names its owner whether that is there or not, so an owner that comes or goes changes what
is known of others. A write that names an owner and one that adds or removes it wait for each other
(catalog/store/locks.py): whoever is second sees what the first has committed.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from factbook.catalog.compliance import OWNER_RENAMED
from factbook.catalog.people_trust import IMPORTED
from factbook.catalog.piecewise import slices
from factbook.catalog.store import apply, removed
from factbook.storage import Transaction

_AT_ONCE: Final = 500


def owned(transaction: Transaction) -> set[int]:
    """The entities whose owner the transaction adds, removes or moves."""
    found: set[int] = set()
    for refs in slices(_references(transaction), _AT_ONCE):
        found.update(id_ for (id_,) in transaction.all(_OWNED, (refs,)))
    return found


def mark_renamed(transaction: Transaction, refs: Iterable[str]) -> None:
    """Note at pushed entities that these owners have other names, until they are written anew."""
    for names in slices(refs, _AT_ONCE):
        ids = sorted({id_ for (id_,) in transaction.all(_PUSHED, (names, f"{IMPORTED}%"))})
        for some in slices(ids, _AT_ONCE):
            transaction.run(_MARK, (some,))


def _references(transaction: Transaction) -> Iterator[str]:
    """The references, before and after, of what comes and goes."""
    yield from removed.moved(transaction.touched)
    for ids in slices(sorted(transaction.touched.get(apply.COME_AND_GONE, ())), _AT_ONCE):
        yield from (ref for (ref,) in transaction.all(_REFERENCES, (ids, ids)))


_REFERENCES: Final = """
SELECT ref FROM entities WHERE id IN LIST(?)
UNION SELECT ref FROM removed_entities WHERE id IN LIST(?)
"""

_OWNED: Final = "SELECT source_id FROM relations WHERE type = 'ownedBy' AND target_ref IN LIST(?)"
_PUSHED: Final = f"""
{_OWNED} AND source_id IN (
    SELECT e.id FROM entities e JOIN sets s ON s.id = e.set_id WHERE s.name NOT LIKE ?
)
"""
_MARK: Final = f"UPDATE entities SET compliance = compliance | {OWNER_RENAMED} WHERE id IN LIST(?)"

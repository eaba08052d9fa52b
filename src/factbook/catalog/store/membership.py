"""Groups of a person and owners of an entity, whichever end states them."""

from typing import Final

from factbook.catalog.store import locks
from factbook.catalog.store.locks import WriteLocks
from factbook.storage import Database, Transaction


def groups_of(transaction: Transaction, ref: str) -> frozenset[str]:
    """The groups that a person is a direct member of."""
    return frozenset(group for (group,) in transaction.all(_GROUPS, (ref, ref)))


def kept_groups(transaction: Transaction, held: WriteLocks, ref: str) -> frozenset[str]:
    """The same, as they stay until the end of the write: what states them is locked."""
    while True:
        rows = transaction.all(_STATED, (ref, ref))
        owners = {locks.owner(name, stating) for _, stating, name in rows}
        if not held.share(transaction, owners):
            return frozenset(group for group, _, _ in rows)


async def read_groups(database: Database, ref: str) -> frozenset[str]:
    """The same, for those who read."""
    return frozenset(group for (group,) in await database.all(_GROUPS, (ref, ref)))


def owners_of(transaction: Transaction, ref: str) -> frozenset[str]:
    """The owners of an entity."""
    return frozenset(owner for (owner,) in transaction.all(_OWNERS, (ref,)))


_GROUPS: Final = """
SELECT r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.ref = ? AND r.type = 'memberOf'
UNION
SELECT e.ref FROM relations r JOIN entities e ON e.id = r.source_id
WHERE r.target_ref = ? AND r.type = 'hasMember'
"""

# Each with the entity that states it, and the set of that.
_STATED: Final = """
SELECT r.target_ref, e.ref, s.name FROM entities e JOIN relations r ON r.source_id = e.id
LEFT JOIN sets s ON s.id = e.set_id WHERE e.ref = ? AND r.type = 'memberOf'
UNION
SELECT e.ref, e.ref, s.name FROM relations r JOIN entities e ON e.id = r.source_id
LEFT JOIN sets s ON s.id = e.set_id WHERE r.target_ref = ? AND r.type = 'hasMember'
"""

_OWNERS: Final = """
SELECT r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.ref = ? AND r.type = 'ownedBy'
"""

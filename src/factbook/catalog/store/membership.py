"""Groups of a person and owners of an entity, whichever end states them."""

from typing import Final

from factbook.storage import Database, Transaction


def groups_of(transaction: Transaction, ref: str) -> frozenset[str]:
    """The groups that a person is a direct member of."""
    return frozenset(group for (group,) in transaction.all(_GROUPS, (ref, ref)))


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

_OWNERS: Final = """
SELECT r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.ref = ? AND r.type = 'ownedBy'
"""

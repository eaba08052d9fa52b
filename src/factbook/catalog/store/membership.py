"""Groups of a person and owners of an entity, whichever end states them.

Rights come from `groups_of`, `kept_groups` and `read_groups` alone, which leave out memberships
that no trusted set states. `stated_groups` is for display.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from factbook.auth import users
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.piecewise import slices
from factbook.catalog.store import locks
from factbook.catalog.store.locks import WriteLocks
from factbook.storage import Database, Row, Transaction

_AT_ONCE: Final = 500


class StatedMembership(NamedTuple):
    """A membership as one entity states it.

    `stated_in` is the set of that entity and `group_in` that of the group, None for no set. The
    group need not be in the catalog; then `group_id` is None.
    """

    person: str
    group: str
    stated_by: str
    stated_in: str | None
    group_id: int | None
    group_in: str | None

    def counts(self, trust: PeopleTrust) -> bool:
        """True if it gives the rights of the group."""
        return trust.counts(self.stated_in, self.group_in)


def groups_of(transaction: Transaction, ref: str, trust: PeopleTrust) -> frozenset[str]:
    """The groups whose rights a person has as a direct member.

    None, here and below, for an account that nothing proves to be the catalog's user of its name.
    """
    if users.is_unproven(transaction, ref):
        return frozenset()
    return _counted(transaction.all(_STATED, ([ref], [ref])), trust)


def kept_groups(
    transaction: Transaction, held: WriteLocks, ref: str, trust: PeopleTrust
) -> frozenset[str]:
    """The same, as they stay until the end of the write: what states them is locked."""
    if users.is_unproven(transaction, ref):
        return frozenset()
    while True:
        rows = [StatedMembership(*row) for row in transaction.all(_STATED, ([ref], [ref]))]
        counted = [row for row in rows if row.counts(trust)]
        owners = {locks.owner(row.stated_in, row.stated_by) for row in counted}
        owners |= {locks.owner(row.group_in, row.group) for row in counted if row.group_id}
        if not held.share(transaction, owners):
            return frozenset(row.group for row in counted)


async def read_groups(database: Database, ref: str, trust: PeopleTrust) -> frozenset[str]:
    """The same, for those who read."""
    if await users.read_unproven(database, ref):
        return frozenset()
    return _counted(await database.all(_STATED, ([ref], [ref])), trust)


async def stated_groups(database: Database, ref: str) -> frozenset[str]:
    """Every group that a person is said to be in. Gives no right."""
    return frozenset(row[1] for row in await database.all(_STATED, ([ref], [ref])))


async def without_rights(
    database: Database, people: Iterable[str], trust: PeopleTrust
) -> list[StatedMembership]:
    """The memberships of these people that give no right, with all that state them."""
    found: list[StatedMembership] = []
    for refs in slices(sorted(set(people)), _AT_ONCE):
        rows = [StatedMembership(*row) for row in await database.all(_STATED, (refs, refs))]
        counted = {(row.person, row.group) for row in rows if row.counts(trust)}
        found += sorted(row for row in rows if (row.person, row.group) not in counted)
    return found


def owners_of(transaction: Transaction, ref: str) -> frozenset[str]:
    """The owners of an entity."""
    return frozenset(owner for (owner,) in transaction.all(_OWNERS, (ref,)))


def _counted(rows: Sequence[Row], trust: PeopleTrust) -> frozenset[str]:
    stated = [StatedMembership(*row) for row in rows]
    return frozenset(row.group for row in stated if row.counts(trust))


_STATED: Final = """
SELECT e.ref, r.target_ref, e.ref, s.name, g.id, t.name
FROM entities e JOIN relations r ON r.source_id = e.id
LEFT JOIN sets s ON s.id = e.set_id
LEFT JOIN entities g ON g.ref = r.target_ref LEFT JOIN sets t ON t.id = g.set_id
WHERE e.ref IN LIST(?) AND r.type = 'memberOf'
UNION
SELECT r.target_ref, g.ref, g.ref, s.name, g.id, s.name
FROM relations r JOIN entities g ON g.id = r.source_id
LEFT JOIN sets s ON s.id = g.set_id
WHERE r.target_ref IN LIST(?) AND r.type = 'hasMember'
"""

_OWNERS: Final = """
SELECT r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.ref = ? AND r.type = 'ownedBy'
"""

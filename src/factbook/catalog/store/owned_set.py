"""Writes of sets by members of the groups that own all that is in them."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import SET_WRITE, TITLES
from factbook.catalog.store import locks, membership
from factbook.errors import NotAllowedError
from factbook.storage import Database, Transaction, Write

T = TypeVar("T")


class OwnedSet:
    """A set of whose entities each is owned by a group of the actor, as it has to stay.

    Users and groups have no owner, so that nobody becomes a member by it.
    """

    def __init__(self, name: str, actor: str) -> None:
        self._name = name
        self._actor = actor
        self._group = ""

    def guarding(self, write: Write) -> Write:
        """The runner, which raises NotAllowedError for a set that is or would be of others too."""

        def guarded(function: Callable[[Transaction], T], /) -> Awaitable[T]:
            def work(transaction: Transaction) -> T:
                # Nobody else pushes to it between the look and the write.
                locks.lock_alone(transaction)
                groups = membership.groups_of(transaction, self._actor)
                self._check(transaction, groups)
                result = function(transaction)
                self._check(transaction, groups)
                return result

            return write(work)

        return guarded

    def told(self, about: About) -> About:
        """The entry of the audit, with the group that allowed the write."""

        def entry(result: Any) -> AuditEntry | None:
            found = about(result)
            return found and found._replace(grant=f"group {self._group}")

        return entry

    def _check(self, transaction: Transaction, groups: frozenset[str]) -> None:
        foreign = transaction.one(_FOREIGN, (self._name, list(groups)))
        if foreign is not None or not groups:
            raise NotAllowedError(
                "A group of yours has to own every entity of this set, before and after; for "
                f'others it needs the permission "{TITLES[SET_WRITE]}" ({SET_WRITE}).',
                missing=(SET_WRITE,),
            )
        row = transaction.one(_OWNER, (self._name, list(groups)))
        self._group = str(row[0]) if row and row[0] else self._group or min(groups)


async def is_own(database: Database, name: str, actor: str) -> bool:
    """True if groups of the actor own every entity of the set."""
    groups = await membership.read_groups(database, actor)
    return bool(groups) and await database.one(_FOREIGN, (name, list(groups))) is None


_FOREIGN: Final = """
SELECT 1 FROM entities e JOIN sets s ON s.id = e.set_id
WHERE s.name = ? AND NOT EXISTS (
    SELECT 1 FROM relations r
    WHERE r.source_id = e.id AND r.type = 'ownedBy' AND r.target_ref IN LIST(?)
) LIMIT 1
"""

_OWNER: Final = """
SELECT min(r.target_ref) FROM entities e JOIN sets s ON s.id = e.set_id
JOIN relations r ON r.source_id = e.id AND r.type = 'ownedBy'
WHERE s.name = ? AND r.target_ref IN LIST(?)
"""

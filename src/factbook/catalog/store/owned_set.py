"""Writes of sets by members of the groups that own all that is in them."""

from typing import Final, NoReturn

from factbook.auth.permissions import SET_WRITE, TITLES
from factbook.catalog.compliance import OWNER_RENAMED
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import membership
from factbook.catalog.store.locks import WriteLocks
from factbook.errors import NotAllowedError
from factbook.storage import Database, Transaction


class OwnedSet:
    """Guard of a write of a set: groups of a member own all of it, before and after.

    Users and groups have no owner, so that nobody becomes a member by it. Who owns an entity is
    stated by itself: the lock of the set keeps both. What makes somebody a member is locked, too.
    """

    def __init__(self, name: str, member: str, trust: PeopleTrust, *, takes: bool = False) -> None:
        """Raises NotAllowedError for a write that takes entities of others."""
        if takes:
            _refuse()
        self._name = name
        self._member = member
        self._trust = trust
        self._groups: frozenset[str] = frozenset()
        self._owner = ""

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Look whose the set is; raises NotAllowedError for one that is of others too."""
        self._groups = membership.kept_groups(transaction, held, self._member, self._trust)
        self._owner = _owner(transaction, self._name, self._groups)

    def end(self, transaction: Transaction) -> str:
        """Look again when it is written; the group that allows it."""
        owner = _owner(transaction, self._name, self._groups) or self._owner or min(self._groups)
        return f"group {owner}"


async def is_own(database: Database, name: str, actor: str, trust: PeopleTrust) -> bool:
    """True if groups of the actor own every entity of the set."""
    groups = await membership.read_groups(database, actor, trust)
    return bool(groups) and await database.one(_FOREIGN, (name, list(groups))) is None


def _owner(transaction: Transaction, name: str, groups: frozenset[str]) -> str:
    """One of the groups, which own all of a set; empty for an empty set."""
    if not groups or transaction.one(_FOREIGN, (name, list(groups))) is not None:
        _refuse()
    row = transaction.one(_OWNER, (name, list(groups)))
    return str(row[0]) if row and row[0] else ""


def _refuse() -> NoReturn:
    raise NotAllowedError(
        "A group of yours has to own every entity of this set, before and after; for "
        f'others it needs the permission "{TITLES[SET_WRITE]}" ({SET_WRITE}).',
        missing=(SET_WRITE,),
    )


_FOREIGN: Final = f"""
SELECT 1 FROM entities e JOIN sets s ON s.id = e.set_id
WHERE s.name = ? AND ((e.compliance & {OWNER_RENAMED}) <> 0 OR NOT EXISTS (
    SELECT 1 FROM relations r
    WHERE r.source_id = e.id AND r.type = 'ownedBy' AND r.target_ref IN LIST(?)
)) LIMIT 1
"""

_OWNER: Final = """
SELECT min(r.target_ref) FROM entities e JOIN sets s ON s.id = e.set_id
JOIN relations r ON r.source_id = e.id AND r.type = 'ownedBy'
WHERE s.name = ? AND r.target_ref IN LIST(?)
"""

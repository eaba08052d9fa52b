"""Writes of definitions by members of the groups that own them."""

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import CHECK_WRITE, SCORECARD_WRITE, TITLES
from factbook.catalog.store import membership
from factbook.checks.definitions import definition_lock
from factbook.checks.versions.staged_store import StagedDefinition, StagedStore
from factbook.definitions.owners import owners_of
from factbook.errors import NotAllowedError
from factbook.storage import Transaction

T = TypeVar("T")

_NEEDED: Final = {"check": CHECK_WRITE, "scorecard": SCORECARD_WRITE}


class OwnedWork(Generic[T]):
    """Work on a definition that groups of the actor own, before it and after it.

    It raises NotAllowedError for any other.
    """

    def __init__(
        self, store: StagedStore[Any], id_: str, actor: str, work: Callable[[Transaction], T]
    ) -> None:
        self._store = store
        self._id = id_
        self._actor = actor
        self._work = work
        self._group = ""

    def __call__(self, transaction: Transaction) -> T:
        # Nobody hands it to another group meanwhile.
        definition_lock.take(transaction)
        groups = membership.groups_of(transaction, self._actor)
        self._check(transaction, groups)
        result = self._work(transaction)
        self._check(transaction, groups)
        return result

    def told(self, about: AuditEntry | About) -> About:
        """The entry of the audit, with the group that allowed the work."""

        def entry(result: Any) -> AuditEntry | None:
            found = about if isinstance(about, AuditEntry) else about(result)
            return found and found._replace(grant=f"group {self._group}")

        return entry

    def _check(self, transaction: Transaction, groups: frozenset[str]) -> None:
        """Raise NotAllowedError unless each of its versions is owned by one of the groups."""
        stored = self._store.read(transaction, self._id)
        if stored is None:
            return
        found = owners(stored)
        if not found or not found <= groups:
            needed = _NEEDED[self._store.noun]
            raise NotAllowedError(
                f"A group of yours has to own this {self._store.noun}, published and drafted; for "
                f'others it needs the permission "{TITLES[needed]}" ({needed}).',
                missing=(needed,),
            )
        self._group = min(found)


def owners(stored: StagedDefinition) -> frozenset[str]:
    """The owners of what is in effect, what is pending and the draft; "" for one without."""
    return owners_of(stored.published, stored.pending, stored.draft)

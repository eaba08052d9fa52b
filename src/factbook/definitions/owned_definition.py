"""Writes of definitions by members of the groups that own them."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import TITLES
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import membership
from factbook.catalog.store.locks import WriteLocks
from factbook.definitions.store import DefinitionStore, StoredDefinition
from factbook.errors import NotAllowedError
from factbook.storage import Transaction, Write

S = TypeVar("S", bound=StoredDefinition)
T = TypeVar("T")

VERSIONS: Final = ", published and drafted"


class OwnedDefinition(ABC, Generic[S]):
    """Guard of a write: groups of the actor own a definition, before and after.

    Without this it needs the permission `needed`. Until the commit nobody hands the definition
    over, and what makes the actor a member of the groups stays.
    """

    def __init__(
        self, store: DefinitionStore[S], id_: str, actor: str, needed: str, trust: PeopleTrust
    ) -> None:
        self._store = store
        self._id = id_
        self._actor = actor
        self._needed = needed
        self._trust = trust
        self._groups: frozenset[str] = frozenset()
        self._before: S | None = None
        self._group = ""

    def guarding(self, write: Write) -> Write:
        """The runner, which raises NotAllowedError for what is or would be of others."""

        def guarded(function: Callable[[Transaction], T], /) -> Awaitable[T]:
            held = WriteLocks({}, self)

            def work(transaction: Transaction) -> T:
                held.begin(transaction)
                result = function(transaction)
                held.end(transaction)
                return result

            return write(work)

        return guarded

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Look whose it is, and keep it and the groups of the actor as they are."""
        self._groups = membership.kept_groups(transaction, held, self._actor, self._trust)
        self._before = self._check(transaction)

    def end(self, transaction: Transaction) -> str:
        """Look again when it is written; the group that allows it."""
        self.verify(transaction, self._before, self._check(transaction))
        return f"group {self._group}"

    def told(self, about: AuditEntry | About) -> About:
        """The entry of the audit, with the group that allowed the write."""

        def entry(result: Any) -> AuditEntry | None:
            found = about if isinstance(about, AuditEntry) else about(result)
            return found and found._replace(grant=f"group {self._group}")

        return entry

    @abstractmethod
    def owners(self, stored: S) -> frozenset[str]:
        """The owners that have to be groups of the actor; "" for none."""

    @abstractmethod
    def refusal(self) -> NotAllowedError:
        """The error for a definition of others."""

    def verify(self, transaction: Transaction, before: S | None, after: S | None) -> None:
        """Raise an error for what owners may not write."""

    def _check(self, transaction: Transaction) -> S | None:
        """The definition, locked, so that nobody hands it over meanwhile."""
        stored = self._store.read(transaction, self._id)
        if stored is None:
            return None
        found = self.owners(stored)
        if not found or not found <= self._groups:
            raise self.refusal()
        self._group = min(found)
        return stored


def of_others(noun: str, needed: str, versions: str = VERSIONS) -> NotAllowedError:
    """The error for a definition that no group of the actor owns, in these versions of it."""
    return NotAllowedError(
        f"A group of yours has to own this {noun}{versions}; for others it needs the "
        f'permission "{TITLES[needed]}" ({needed}).',
        missing=(needed,),
    )

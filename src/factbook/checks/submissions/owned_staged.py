"""Writes of checks and scorecards by members of the groups that own them."""

from typing import Any, Final

from factbook.auth.permissions import CHECK_WRITE, SCORECARD_WRITE
from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store.locks import WriteLocks
from factbook.checks.definitions import definition_lock
from factbook.checks.versions.staged_store import StagedDefinition, StagedStore
from factbook.definitions.owned_definition import OwnedDefinition, of_others
from factbook.definitions.owners import owners_of
from factbook.errors import NotAllowedError
from factbook.storage import Transaction

_NEEDED: Final = {"check": CHECK_WRITE, "scorecard": SCORECARD_WRITE}


class OwnedStaged(OwnedDefinition[StagedDefinition]):
    """A check or scorecard that groups of the actor own: what is in effect, pending and drafted."""

    def __init__(self, store: StagedStore[Any], id_: str, actor: str, trust: PeopleTrust) -> None:
        super().__init__(store, id_, actor, _NEEDED[store.noun], trust)

    def begin(self, transaction: Transaction, held: WriteLocks) -> None:
        """Look whose it is, when no definition is changed by others any more.

        Pushes evaluate at their end, while they hold their sets. So those are waited for without
        this lock in hand, and under it they are tried only: `held` begins anew without it.
        """
        definition_lock.take(transaction)
        super().begin(transaction, held)

    def owners(self, stored: StagedDefinition) -> frozenset[str]:
        return owners(stored)

    def refusal(self) -> NotAllowedError:
        return of_others(self._store.noun, self._needed)


def owners(stored: StagedDefinition) -> frozenset[str]:
    """The owners of what is in effect, what is pending and the draft; "" for one without."""
    return owners_of(stored.published, stored.pending, stored.draft)

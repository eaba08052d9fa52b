"""The store of scorecards.

When other levels follow from a publication, of a scorecard or of one of its checks, all entities
are graded for a pending slot, which then takes the place of the one before
(checks/levels/grades.py).
"""

from collections.abc import Iterable
from typing import Final

from factbook.checks.definitions import definition_lock, scorecard
from factbook.checks.versions import grade_slots
from factbook.checks.versions.grade_slots import StoredScorecard
from factbook.checks.versions.staged_store import StagedStore
from factbook.definitions.documents import Document
from factbook.definitions.store import DefinitionTables
from factbook.storage import Transaction


class ScorecardStore(StagedStore[StoredScorecard]):
    """The scorecards."""

    most = 200
    decisive = ("appliesTo", "levels", "entries", "minimumCoverage")

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError with every mistake of a document."""
        scorecard.parse(document, {id_ for (id_,) in transaction.all("SELECT id FROM checks")})

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        permitted: bool = False,
    ) -> StoredScorecard:
        """Publish the draft, and note for which checks its exemption rules count.

        Publishing once more with the permission makes the rules count that had no effect.
        """
        definition_lock.take(transaction)
        before = self.existing_within(transaction, id_)
        after = super().publish(transaction, id_, actor, now, permitted=permitted)
        if after.newest is None:
            return after
        ruling = grade_slots.ruling_after(before, after, permitted=permitted)
        if ruling == after.ruling:
            return after
        grade_slots.store_ruling(transaction, id_, ruling)
        return self._again(transaction, id_)

    def begin(self, transaction: Transaction, stored: StoredScorecard, now: int) -> None:
        """Grade all entities for a pending slot, or once more from the first one."""
        grade_slots.begin(transaction, self.existing_within(transaction, stored.id), now)

    def naming(self, transaction: Transaction, check_id: str) -> list[str]:
        """The ids of the scorecards with a check, published or as a draft."""
        return grade_slots.naming(self.all_within(transaction), [check_id], drafts=True)

    def grade_again(self, transaction: Transaction, check_ids: Iterable[str], now: int) -> None:
        """Grade all entities anew for the published scorecards that name one of the checks.

        The transaction holds the lock of the definitions alone.
        """
        stored = self.all_within(transaction)
        found = grade_slots.naming(stored, check_ids)
        for one in stored:
            if one.id in found:
                grade_slots.begin(transaction, one, now)
        if found:
            self.raise_revision(transaction)

    def forget(self, transaction: Transaction, stored: StoredScorecard) -> None:
        """Delete the levels and their days."""
        super().forget(transaction, stored)
        grade_slots.release(transaction, stored)
        transaction.run("DELETE FROM scorecard_days WHERE scorecard_id = ?", (stored.id,))


scorecard_store: Final = ScorecardStore(
    "scorecard",
    DefinitionTables("scorecards", "scorecard_versions", "scorecard_id"),
    StoredScorecard,
)

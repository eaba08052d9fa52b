"""The store of checks, and of what is left of their publications (background/publication.py)."""

from collections.abc import Iterable
from typing import Final

import msgspec

from factbook.checks.rules import check_definition
from factbook.checks.states import batch_order, change_events
from factbook.checks.versions import slots
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.checks.versions.staged_store import StagedDefinition, StagedStore, alike
from factbook.definitions.documents import Document
from factbook.definitions.store import DefinitionTables, DefinitionVersion
from factbook.errors import ConflictError
from factbook.storage import Row, Transaction

# What decides if scorecards count the results.
_COUNTED: Final = ("severity", "effectiveFrom")


class StoredCheck(StagedDefinition, frozen=True):
    """A stored check."""

    evaluated_up_to: int | None
    in_effect_at: int | None

    @property
    def reached(self) -> int | None:
        if self.evaluated_up_to is None:
            return None
        return batch_order.last_id(self.evaluated_up_to)


class CheckStore(StagedStore[StoredCheck]):
    """The checks."""

    most = 2_000
    decisive = ("appliesTo", "applicableWhen", "rule", "onUnknown")

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError if a check reads one that is missing, or itself in the end."""
        rows = transaction.all(_NEWEST)
        check_definition.check_references(document, _reading(rows), {id_ for id_, _ in rows})

    def verify_publication(self, transaction: Transaction, document: Document) -> None:
        """Raise the same as what is published reads; a draft may no longer read what that does."""
        rows = transaction.all(_PUBLISHED)
        drafts = {id_ for id_, _, has_draft in rows if has_draft}
        others = _reading(row[:2] for row in rows)
        check_definition.check_references(document, others, {id_ for id_, _, _ in rows}, drafts)

    def begin(self, transaction: Transaction, stored: StoredCheck, now: int) -> None:
        """Evaluate a version in a slot of its own, or a pending one once more from the start.

        So are the checks that read the state of this one: all come into effect together.
        """
        place = batch_order.first_place(transaction, self.progress(transaction).values())
        for id_ in (stored.id, *check_definition.list_readers(transaction, stored.id)):
            found = self.existing_within(transaction, id_)
            slot = found.pending_slot or slots.free(transaction)
            transaction.run(_BEGIN, (slot, place, id_))

    def ready(self, transaction: Transaction) -> list[StoredCheck]:
        """The pending versions that are evaluated for every entity.

        So are all that they read and all that read them, in what is pending or still in effect.
        """
        pending = [one for one in self.all_within(transaction) if one.pending]
        reads = {
            one.id: {
                id_
                for document in (one.pending, one.published)
                for id_ in check_definition.list_referenced_checks(document or {})
            }
            for one in pending
        }
        unready = {one.id for one in pending if one.evaluated_up_to != batch_order.ALL}
        more = unready
        while more:
            read = set[str]().union(*(reads[id_] for id_ in unready))
            more = {
                id_
                for id_, others in reads.items()
                if id_ not in unready and (id_ in read or others & unready)
            }
            unready = unready | more
        return [one for one in pending if one.id not in unready]

    def put_into_effect(
        self, transaction: Transaction, stored: Iterable[StoredCheck], now: int
    ) -> None:
        """Make pending versions the published ones; what they replace is retired.

        Levels follow from them: the scorecards with them are graded anew. The transaction holds
        the lock of the definitions alone.
        """
        ids: list[str] = []
        for one in stored:
            if one.slot is not None:
                slots.retire(transaction, one.slot)
            transaction.run(_PUT_INTO_EFFECT, (now, one.id))
            ids.append(one.id)
        scorecard_store.grade_again(transaction, ids, now)
        self.raise_revision(transaction)

    def forget(self, transaction: Transaction, stored: StoredCheck) -> None:
        """Delete the results and their history; raises ConflictError if others read the check."""
        id_ = stored.id
        readers = check_definition.list_readers(transaction, id_, drafts=True)
        if readers:
            raise _is_used(id_, ", ".join(readers), f"{len(readers)} others", "read")
        named = scorecard_store.naming(transaction, id_)
        if named:
            told, untold = f"The scorecards {', '.join(named)}", f"{len(named)} scorecards"
            raise _is_used(id_, told, untold, "have")
        super().forget(transaction, stored)
        for slot in (stored.slot, stored.pending_slot):
            if slot is not None:
                slots.retire(transaction, slot)
        transaction.run("DELETE FROM check_changes WHERE check_id = ?", (id_,))
        transaction.run("DELETE FROM check_days WHERE check_id = ?", (id_,))

    def progress(self, transaction: Transaction) -> dict[str, int]:
        """The place up to which each pending version was evaluated, by the id of the check."""
        return dict(transaction.all(_PLACES))

    def note_progress(self, transaction: Transaction, ids: list[str], evaluated_up_to: int) -> None:
        """Record the place up to which pending versions were evaluated."""
        transaction.run(_PROGRESS, (evaluated_up_to, ids))

    def _publish_text(
        self, transaction: Transaction, before: StoredCheck, version: DefinitionVersion
    ) -> None:
        super()._publish_text(transaction, before, version)
        now = version.published_at
        change_events.tell_published(transaction, [(before.id, version.version)], now)
        if not alike(before.published or {}, before.draft or {}, _COUNTED):
            scorecard_store.grade_again(transaction, [before.id], now)


def _reading(rows: Iterable[Row]) -> dict[str, Document]:
    """The documents that may read checks, by id, from rows of both."""
    return {id_: msgspec.json.decode(text) for id_, text in rows if text and '"checks"' in text}


def _is_used(check_id: str, told: str, untold: str, verb: str) -> ConflictError:
    first, second = (
        ConflictError(f"{by} {verb} the check {check_id}; change them first.")
        for by in (told, untold)
    )
    return first.unless_read(second)


check_store: Final = CheckStore(
    "check", DefinitionTables("checks", "check_versions", "check_id"), StoredCheck
)

_NEWEST: Final = "SELECT id, COALESCE(draft, pending, published) FROM checks"

_PUBLISHED: Final = "SELECT id, COALESCE(pending, published), draft IS NOT NULL FROM checks"

_BEGIN: Final = """
UPDATE checks SET pending = COALESCE(pending, published), pending_slot = ?, evaluated_up_to = ?,
    pending_version = COALESCE(pending_version, version)
WHERE id = ?
"""

_PUT_INTO_EFFECT: Final = """
UPDATE checks SET published = pending, version = pending_version, slot = pending_slot,
    in_effect_at = ?, pending = NULL, pending_version = NULL, pending_slot = NULL,
    evaluated_up_to = NULL
WHERE id = ?
"""

_PLACES: Final = "SELECT id, evaluated_up_to FROM checks WHERE pending_slot IS NOT NULL"

_PROGRESS: Final = "UPDATE checks SET evaluated_up_to = ? WHERE id IN LIST(?)"

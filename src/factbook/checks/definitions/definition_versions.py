"""Stores of checks and scorecards: drafts, versions in effect and pending versions.

Readers see the published version. A new version that changes results is pending in its own slot
until every entity is evaluated or graded, and then replaces the published version.

A scorecard's slot is the position of its levels among an entity's levels. A full grading fills the
pending slots from the first entity on and never reads leftovers of another scorecard. When the
grading ends, all pending slots come into effect together.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any, ClassVar, Final, Literal, TypeVar

import msgspec

from factbook.checks.definitions import exemption_store, publications, scorecard
from factbook.checks.rules import check_definition
from factbook.definitions import documents
from factbook.definitions.documents import Document
from factbook.definitions.store import (
    MINOR,
    PATCH,
    DefinitionStore,
    DefinitionTables,
    DefinitionVersion,
    StoredDefinition,
)
from factbook.errors import ConflictError
from factbook.events.store import append_events, make_published_check_row
from factbook.storage import Row, Transaction

# A full grading's batch holds it exclusively, other gradings hold it shared: the batch can't see
# entities of open transactions, so those transactions have to see the batch's progress.
GRADING_LOCK: Final = "scorecard progress"
_FORGET_COUNTS: Final = (
    "DELETE FROM scorecard_counts WHERE slot = ?",
    "DELETE FROM scorecard_label_counts WHERE slot = ?",
)
_FORGET_PENDING: Final = [
    sql.replace("= ?", "IN (SELECT pending_slot FROM scorecards WHERE pending_slot IS NOT NULL)")
    for sql in _FORGET_COUNTS
]
# Members that decide whether scorecards count the results.
_COUNTED_MEMBERS: Final = ("severity", "effectiveFrom")


class StagedDefinition(StoredDefinition, frozen=True):
    """A stored check or scorecard; `slot` is None before it is in effect."""

    pending: dict[str, Any] | None
    pending_version: str | None
    slot: int | None
    pending_slot: int | None

    @property
    def newest(self) -> dict[str, Any] | None:
        return self.pending or self.published

    @property
    def newest_version(self) -> str:
        return self.pending_version or self.version

    @property
    @abstractmethod
    def reached(self) -> int | None:
        """The approximate id up to which the pending version is evaluated."""


S = TypeVar("S", bound=StagedDefinition)


class StagedStore(DefinitionStore[S]):
    """A store of checks or scorecards."""

    # The members that affect results; the others are text.
    decisive: ClassVar[tuple[str, ...]]

    def __init__(
        self, noun: Literal["check", "scorecard"], tables: DefinitionTables, form: type[S]
    ) -> None:
        super().__init__(noun, tables, form, publications.DEFINITIONS_REVISION)
        self._exempt_from = noun

    def create(self, transaction: Transaction, document: Document, actor: str, now: int) -> S:
        """Store a new definition as a draft; its references stay valid until the commit."""
        publications.share_definitions(transaction)
        return super().create(transaction, document, actor, now)

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        permitted: bool = False,
    ) -> S:
        """Publish the draft as the next version; does nothing without a draft.

        A version that changes results is pending until every entity has its results. `permitted`:
        the actor may write any definition, not only those of its groups.
        """
        publications.lock_definitions(transaction)
        return super().publish(transaction, id_, actor, now)

    def delete(self, transaction: Transaction, id_: str) -> bool:
        publications.lock_definitions(transaction)
        return super().delete(transaction, id_)

    def raised(self, before: Document, after: Document) -> int:
        return PATCH if are_alike(before, after, self.decisive) else MINOR

    def forget(self, transaction: Transaction, stored: S) -> None:
        exemption_store.delete_exemptions(transaction, self._exempt_from, stored.id)

    @abstractmethod
    def begin(self, transaction: Transaction, stored: S, now: int) -> None:
        """Start evaluating a version for every entity, or start over."""

    def _publish(
        self, transaction: Transaction, before: S, version: DefinitionVersion, part: int
    ) -> None:
        if part == PATCH and before.pending is None:
            self._publish_text(transaction, before, version)
            return
        text = documents.stored_document(before.draft or {})
        transaction.run(self._sql(_PUBLISH_PENDING), (text, *version, before.id))
        if part != PATCH:
            self.begin(transaction, before, version.published_at)

    def _publish_text(
        self, transaction: Transaction, before: S, version: DefinitionVersion
    ) -> None:
        """Put a draft that gives the same results into effect at once."""
        super()._publish(transaction, before, version, PATCH)


def are_alike(
    document: Mapping[str, Any], other: Mapping[str, Any], names: tuple[str, ...]
) -> bool:
    """Return true if two documents have the same values of these members."""
    return all(document.get(name) == other.get(name) for name in names)


def append_published(
    transaction: Transaction, versions: Iterable[tuple[str, str]], now: int
) -> None:
    """Append events for versions that came into effect, as (check id, version)."""
    append_events(transaction, [make_published_check_row(*one) for one in versions], now)


class _Ruling(msgspec.Struct, frozen=True):
    """A published version, and the checks that its exemption rules count for."""

    version: str = ""
    checks: frozenset[str] = frozenset()


_NO_RULING: Final = _Ruling()


class StoredScorecard(StagedDefinition, frozen=True):
    """A stored scorecard."""

    graded_up_to: int | None
    graded_at: int | None
    pending_graded_at: int | None
    ruling: str | None

    @property
    def ruled_checks(self) -> frozenset[str]:
        """Checks whose newest rules were published with the permission for scorecards."""
        ruling = msgspec.json.decode(self.ruling, type=_Ruling) if self.ruling else _NO_RULING
        # An earlier release may have published a newer version without a ruling.
        return ruling.checks if ruling.version == self.newest_version else frozenset()

    @property
    def reached(self) -> int | None:
        return self.graded_up_to


def decide_ruling(before: StoredScorecard, after: StoredScorecard, *, permitted: bool) -> str:
    """The ruling of the scorecard after a publication.

    Without the permission, unchanged rules keep counting for the checks that they were published
    for with the permission.
    """
    newest = after.newest or {}
    checks = frozenset(scorecard.list_named_checks(newest))
    if not permitted:
        is_same = (before.newest or {}).get("exemptions") == newest.get("exemptions")
        checks &= before.ruled_checks if is_same else frozenset()
    made = {"version": after.newest_version, "checks": sorted(checks)}
    return msgspec.json.encode(made).decode()


def store_ruling(transaction: Transaction, scorecard_id: str, ruling: str) -> None:
    """Store the ruling of a scorecard."""
    transaction.run("UPDATE scorecards SET ruling = ? WHERE id = ?", (ruling, scorecard_id))


def list_naming(
    stored: Iterable[StoredScorecard], check_ids: Iterable[str], *, drafts: bool = False
) -> list[str]:
    """The ids of scorecards that name one of the checks, in a published version or a draft."""
    wanted = set(check_ids)
    return [
        one.id
        for one in stored
        for documents in [[one.published, one.pending, *([one.draft] if drafts else [])]]
        if any(wanted & scorecard.list_named_checks(document or {}) for document in documents)
    ]


def begin_grading(transaction: Transaction, stored: StoredScorecard, now: int) -> None:
    """Grade all entities for the scorecard's pending slot, and restart the other pending ones.

    So all pending slots have the same progress. The transaction holds the definitions lock
    exclusively, here and in the functions below.
    """
    slot = stored.pending_slot
    if not slot:
        used = {number for row in transaction.all(_USED_GRADE_SLOTS) for number in row}
        slot = next(number for number in count(1) if number not in used)
    transaction.run(_BEGIN_GRADING, (slot, now, stored.id))
    for sql in _FORGET_PENDING:
        transaction.run(sql)
    transaction.run(_RESTART_GRADING)


def are_levels_used(transaction: Transaction) -> bool:
    """Return true if entities have levels or will get them."""
    return transaction.one(_ANY_GRADE_SLOT) is not None


def read_grading_progress(transaction: Transaction) -> int:
    """The last entity graded for the pending slots, which share their progress."""
    row = transaction.one(_PENDING_GRADES)
    return row[0] if row else 0


def note_grading_progress(transaction: Transaction, graded_up_to: int) -> None:
    """Record the last entity that was graded for all pending slots."""
    transaction.run(_NOTE_GRADING, (graded_up_to,))


def put_grades_into_effect(transaction: Transaction) -> list[str]:
    """Make the pending slots visible to readers; returns the ids of their scorecards."""
    found = transaction.all(_BOTH_SLOTS)
    for _, slot in found:
        _forget_slot_counts(transaction, slot)
    transaction.run(_PUT_GRADES_INTO_EFFECT)
    return [id_ for id_, _ in found]


def forget_card_counts(transaction: Transaction, stored: StoredScorecard) -> None:
    """Delete the counts of a deleted scorecard."""
    for slot in (stored.slot, stored.pending_slot):
        _forget_slot_counts(transaction, slot)


def _forget_slot_counts(transaction: Transaction, slot: int | None) -> None:
    for sql in _FORGET_COUNTS:
        transaction.run(sql, (slot,))


class ScorecardStore(StagedStore[StoredScorecard]):
    """The store of scorecards."""

    most = 200
    decisive = ("appliesTo", "levels", "entries", "minimumCoverage")

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError with every mistake in a document."""
        scorecard.parse_scorecard(
            document, {id_ for (id_,) in transaction.all("SELECT id FROM checks")}
        )

    def publish(
        self,
        transaction: Transaction,
        id_: str,
        actor: str,
        now: int,
        *,
        permitted: bool = False,
    ) -> StoredScorecard:
        """Publish the draft, and record which checks its exemption rules count for.

        Publishing again with the permission makes rules count that had no effect.
        """
        publications.lock_definitions(transaction)
        before = self.existing_within(transaction, id_)
        after = super().publish(transaction, id_, actor, now, permitted=permitted)
        if after.newest is None:
            return after
        ruling = decide_ruling(before, after, permitted=permitted)
        if ruling == after.ruling:
            return after
        store_ruling(transaction, id_, ruling)
        return self._again(transaction, id_)

    def begin(self, transaction: Transaction, stored: StoredScorecard, now: int) -> None:
        """Grade all entities for a pending slot, or restart at the first entity."""
        begin_grading(transaction, self.existing_within(transaction, stored.id), now)

    def naming(self, transaction: Transaction, check_id: str) -> list[str]:
        """The ids of scorecards that name a check, published or in a draft."""
        return list_naming(self.all_within(transaction), [check_id], drafts=True)

    def grade_again(self, transaction: Transaction, check_ids: Iterable[str], now: int) -> None:
        """Regrade all entities for the published scorecards that name one of the checks.

        The transaction holds the definitions lock exclusively.
        """
        stored = self.all_within(transaction)
        found = list_naming(stored, check_ids)
        for one in stored:
            if one.id in found:
                begin_grading(transaction, one, now)
        if found:
            self.raise_revision(transaction)

    def forget(self, transaction: Transaction, stored: StoredScorecard) -> None:
        """Delete the counts, daily figures and exemptions of a scorecard."""
        super().forget(transaction, stored)
        forget_card_counts(transaction, stored)
        transaction.run("DELETE FROM scorecard_days WHERE scorecard_id = ?", (stored.id,))


scorecard_store: Final = ScorecardStore(
    "scorecard",
    DefinitionTables("scorecards", "scorecard_versions", "scorecard_id"),
    StoredScorecard,
)


class StoredCheck(StagedDefinition, frozen=True):
    """A stored check."""

    evaluated_up_to: int | None
    in_effect_at: int | None

    @property
    def reached(self) -> int | None:
        if self.evaluated_up_to is None:
            return None
        return publications.find_last_id(self.evaluated_up_to)


class CheckStore(StagedStore[StoredCheck]):
    """The store of checks."""

    most = 2_000
    decisive = ("appliesTo", "applicableWhen", "rule", "onUnknown")

    def verify(self, transaction: Transaction, document: Document) -> None:
        """Raise InvalidItemsError if a check reads a missing check, or itself indirectly."""
        rows = transaction.all(_NEWEST)
        check_definition.check_references(document, _index_readers(rows), {id_ for id_, _ in rows})

    def verify_publication(self, transaction: Transaction, document: Document) -> None:
        """Raise the same errors against published documents, whose drafts may read other checks."""
        rows = transaction.all(_PUBLISHED)
        drafts = {id_ for id_, _, has_draft in rows if has_draft}
        others = _index_readers(row[:2] for row in rows)
        check_definition.check_references(document, others, {id_ for id_, _, _ in rows}, drafts)

    def begin(self, transaction: Transaction, stored: StoredCheck, now: int) -> None:
        """Evaluate a version in its own slot, or restart a pending one.

        Checks that read this check's state are evaluated again too: all come into effect together.
        """
        place = publications.find_first_place(transaction, self.progress(transaction).values())
        for id_ in (stored.id, *check_definition.list_readers(transaction, stored.id)):
            found = self.existing_within(transaction, id_)
            slot = found.pending_slot or publications.find_free_slot(transaction)
            transaction.run(_BEGIN, (slot, place, id_))

    def ready(self, transaction: Transaction) -> list[StoredCheck]:
        """The pending versions that are evaluated for every entity.

        Every pending check that they read, or that reads them, is evaluated too, whether the
        reference is in its pending or its published version.
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
        unready = {one.id for one in pending if one.evaluated_up_to != publications.LAST_PLACE}
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
        """Publish pending versions, and retire the slots of the versions that they replace.

        Scorecards with these checks are graded again. The transaction holds the definitions lock
        exclusively.
        """
        ids: list[str] = []
        for one in stored:
            if one.slot is not None:
                publications.retire_slot(transaction, one.slot)
            transaction.run(_PUT_INTO_EFFECT, (now, one.id))
            ids.append(one.id)
        scorecard_store.grade_again(transaction, ids, now)
        self.raise_revision(transaction)

    def forget(self, transaction: Transaction, stored: StoredCheck) -> None:
        """Delete results and history; raises ConflictError if other definitions use the check."""
        id_ = stored.id
        readers = check_definition.list_readers(transaction, id_, drafts=True)
        if readers:
            raise _make_used_error(id_, ", ".join(readers), f"{len(readers)} others", "read")
        named = scorecard_store.naming(transaction, id_)
        if named:
            told, untold = f"The scorecards {', '.join(named)}", f"{len(named)} scorecards"
            raise _make_used_error(id_, told, untold, "have")
        super().forget(transaction, stored)
        for slot in (stored.slot, stored.pending_slot):
            if slot is not None:
                publications.retire_slot(transaction, slot)
        transaction.run("DELETE FROM check_changes WHERE check_id = ?", (id_,))
        transaction.run("DELETE FROM check_days WHERE check_id = ?", (id_,))

    def progress(self, transaction: Transaction) -> dict[str, int]:
        """The place up to which each pending version is evaluated, by check id."""
        return dict(transaction.all(_PLACES))

    def note_progress(self, transaction: Transaction, ids: list[str], evaluated_up_to: int) -> None:
        """Record the place up to which pending versions are evaluated."""
        transaction.run(_NOTE_EVALUATION, (evaluated_up_to, ids))

    def _publish_text(
        self, transaction: Transaction, before: StoredCheck, version: DefinitionVersion
    ) -> None:
        super()._publish_text(transaction, before, version)
        now = version.published_at
        append_published(transaction, [(before.id, version.version)], now)
        if not are_alike(before.published or {}, before.draft or {}, _COUNTED_MEMBERS):
            scorecard_store.grade_again(transaction, [before.id], now)


def _index_readers(rows: Iterable[Row]) -> dict[str, Document]:
    """The documents that may read checks, by id, from rows of both."""
    return {id_: msgspec.json.decode(text) for id_, text in rows if text and '"checks"' in text}


def _make_used_error(check_id: str, told: str, untold: str, verb: str) -> ConflictError:
    first, second = (
        ConflictError(f"{by} {verb} the check {check_id}; change them first.")
        for by in (told, untold)
    )
    return first.unless_read(second)


check_store: Final = CheckStore(
    "check", DefinitionTables("checks", "check_versions", "check_id"), StoredCheck
)


_PUBLISH_PENDING: Final = """
UPDATE {definitions} SET draft = NULL, pending = ?, pending_version = ?, published_at = ?,
    published_by = ?
WHERE id = ?
"""

_ANY_GRADE_SLOT: Final = (
    "SELECT 1 FROM scorecards WHERE COALESCE(slot, pending_slot) IS NOT NULL LIMIT 1"
)

_USED_GRADE_SLOTS: Final = "SELECT slot, pending_slot FROM scorecards"

_PENDING_GRADES: Final = (
    "SELECT graded_up_to FROM scorecards WHERE pending_slot IS NOT NULL LIMIT 1"
)

_BOTH_SLOTS: Final = "SELECT id, slot FROM scorecards WHERE pending_slot IS NOT NULL ORDER BY id"

_BEGIN_GRADING: Final = """
UPDATE scorecards SET pending_slot = ?, pending_graded_at = ?,
    pending = COALESCE(pending, published), pending_version = COALESCE(pending_version, version)
WHERE id = ?
"""

_RESTART_GRADING: Final = "UPDATE scorecards SET graded_up_to = 0 WHERE pending_slot IS NOT NULL"

_NOTE_GRADING: Final = "UPDATE scorecards SET graded_up_to = ? WHERE pending_slot IS NOT NULL"

_PUT_GRADES_INTO_EFFECT: Final = """
UPDATE scorecards SET published = pending, version = pending_version, slot = pending_slot,
    graded_at = pending_graded_at, pending = NULL, pending_version = NULL, pending_slot = NULL,
    pending_graded_at = NULL, graded_up_to = NULL
WHERE pending_slot IS NOT NULL
"""

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

_NOTE_EVALUATION: Final = "UPDATE checks SET evaluated_up_to = ? WHERE id IN LIST(?)"

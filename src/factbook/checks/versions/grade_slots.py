"""Slots of scorecards: the places of their levels among those of an entity.

A grading of all entities fills a pending slot from the first entity on, and what another scorecard
left in it is never read. At its end all pending slots come into effect together.
"""

from collections.abc import Iterable
from itertools import count
from typing import Final

import msgspec

from factbook.checks.definitions import scorecard
from factbook.checks.versions.staged_store import StagedDefinition
from factbook.storage import Transaction

# Held alone by a batch of the grading of all entities, and shared by whoever grades some: an entity
# whose transaction is open is not seen by the batch, and has to see how far that has got.
PROGRESS: Final = "scorecard progress"


class _Ruling(msgspec.Struct, frozen=True):
    """A published version with the checks for which its exemption rules count."""

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
        """Checks for which the newest rules were published with the permission for scorecards."""
        ruling = msgspec.json.decode(self.ruling, type=_Ruling) if self.ruling else _NO_RULING
        # An earlier release may have published another version without a ruling.
        return ruling.checks if ruling.version == self.newest_version else frozenset()

    @property
    def reached(self) -> int | None:
        return self.graded_up_to


def ruling_after(before: StoredScorecard, after: StoredScorecard, *, permitted: bool) -> str:
    """The ruling of the scorecard after a publication.

    Without the permission, rules that stay the same keep counting for the checks that they were
    published for with it.
    """
    newest = after.newest or {}
    checks = frozenset(scorecard.checks_of(newest))
    if not permitted:
        is_same = (before.newest or {}).get("exemptions") == newest.get("exemptions")
        checks &= before.ruled_checks if is_same else frozenset()
    made = {"version": after.newest_version, "checks": sorted(checks)}
    return msgspec.json.encode(made).decode()


def store_ruling(transaction: Transaction, scorecard_id: str, ruling: str) -> None:
    """Store the ruling of a scorecard."""
    transaction.run("UPDATE scorecards SET ruling = ? WHERE id = ?", (ruling, scorecard_id))


def naming(
    stored: Iterable[StoredScorecard], check_ids: Iterable[str], *, drafts: bool = False
) -> list[str]:
    """The ids of the scorecards with one of the checks in a published version, or a draft."""
    wanted = set(check_ids)
    return [
        one.id
        for one in stored
        for documents in [[one.published, one.pending, *([one.draft] if drafts else [])]]
        if any(wanted & scorecard.checks_of(document or {}) for document in documents)
    ]


def begin(transaction: Transaction, stored: StoredScorecard, now: int) -> None:
    """Grade all entities for a pending slot, and again for those that are pending already.

    So all of them get equally far. The transaction holds the lock of the definitions alone, here
    and below.
    """
    transaction.run(_BEGIN, (stored.pending_slot or _free(transaction), now, stored.id))
    for sql in _FORGET_PENDING:
        transaction.run(sql)
    transaction.run(_RESTART)


def any_used(transaction: Transaction) -> bool:
    """Return true if entities have levels, or are about to."""
    return transaction.one(_ANY) is not None


def progress(transaction: Transaction) -> int:
    """The last entity that was graded for the pending slots: all of them have got that far."""
    row = transaction.one(_PENDING)
    return row[0] if row else 0


def note_progress(transaction: Transaction, graded_up_to: int) -> None:
    """Record the last entity that was graded for all pending slots."""
    transaction.run(_PROGRESS, (graded_up_to,))


def put_into_effect(transaction: Transaction) -> list[str]:
    """Make pending slots those that readers see; returns the ids of their scorecards."""
    found = transaction.all(_BOTH_SLOTS)
    for _, slot in found:
        _forget(transaction, slot)
    transaction.run(_PUT_INTO_EFFECT)
    return [id_ for id_, _ in found]


def release(transaction: Transaction, stored: StoredScorecard) -> None:
    """Forget the counts of a scorecard that is deleted."""
    for slot in (stored.slot, stored.pending_slot):
        _forget(transaction, slot)


def _forget(transaction: Transaction, slot: int | None) -> None:
    for sql in _FORGET_COUNTS:
        transaction.run(sql, (slot,))


def _free(transaction: Transaction) -> int:
    used = {slot for slots in transaction.all(_USED) for slot in slots}
    return next(slot for slot in count(1) if slot not in used)


_ANY: Final = "SELECT 1 FROM scorecards WHERE COALESCE(slot, pending_slot) IS NOT NULL LIMIT 1"

_USED: Final = "SELECT slot, pending_slot FROM scorecards"

_PENDING: Final = "SELECT graded_up_to FROM scorecards WHERE pending_slot IS NOT NULL LIMIT 1"

_BOTH_SLOTS: Final = "SELECT id, slot FROM scorecards WHERE pending_slot IS NOT NULL ORDER BY id"

_BEGIN: Final = """
UPDATE scorecards SET pending_slot = ?, pending_graded_at = ?,
    pending = COALESCE(pending, published), pending_version = COALESCE(pending_version, version)
WHERE id = ?
"""

_RESTART: Final = "UPDATE scorecards SET graded_up_to = 0 WHERE pending_slot IS NOT NULL"

_PROGRESS: Final = "UPDATE scorecards SET graded_up_to = ? WHERE pending_slot IS NOT NULL"


_PUT_INTO_EFFECT: Final = """
UPDATE scorecards SET published = pending, version = pending_version, slot = pending_slot,
    graded_at = pending_graded_at, pending = NULL, pending_version = NULL, pending_slot = NULL,
    pending_graded_at = NULL, graded_up_to = NULL
WHERE pending_slot IS NOT NULL
"""

_FORGET_COUNTS: Final = (
    "DELETE FROM scorecard_counts WHERE slot = ?",
    "DELETE FROM scorecard_label_counts WHERE slot = ?",
)

_FORGET_PENDING: Final = [
    sql.replace("= ?", "IN (SELECT pending_slot FROM scorecards WHERE pending_slot IS NOT NULL)")
    for sql in _FORGET_COUNTS
]

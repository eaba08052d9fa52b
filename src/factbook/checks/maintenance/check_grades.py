"""The grading that goes with a set of checks: since when each version in effect counts."""

from factbook.checks.levels.grades import CountedCheck, Grading
from factbook.checks.maintenance.check_set import CheckSet
from factbook.checks.rules.check_definition import Check
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.storage import Transaction

_ADVISORY = "advisory"


def grading_of(transaction: Transaction, known: CheckSet) -> Grading:
    """The grading of the revision of a set; the transaction holds the lock of the definitions."""
    found = known.grading
    if found is None:
        checks = {
            one.id: CountedCheck(one.slot, _counts_from(one.compiled.check))
            for one in known.checks
            if not one.is_pending
        }
        found = known.grading = Grading(scorecard_store.all_within(transaction), checks)
    return found


def _counts_from(check: Check) -> int | None:
    if check.severity == _ADVISORY:
        return None
    return check.effective_from or 0

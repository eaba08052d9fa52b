"""Filling of the slot of one pending check, for entities whose other states stay as they are.

Most publications are of one check. Of each entity that is a byte, which the database puts in its
place: the other states are neither read nor sent.
"""

from collections.abc import Sequence

from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption_store import NOT_EXEMPT
from factbook.checks.maintenance import subjects
from factbook.checks.maintenance.check_set import CheckSelection, CheckSet
from factbook.checks.maintenance.state_update import ActiveExemptions, evaluate
from factbook.checks.states import state_store
from factbook.storage import Transaction


def fits(selection: CheckSelection) -> bool:
    """Return true for one pending check that reads nothing but facts, whatever the time is."""
    if len(selection.checks) != 1 or selection.reads_entity:
        return False
    [check] = selection.checks
    return check.is_pending and not check.is_timed and not check.compiled.checks


def fill(
    transaction: Transaction,
    known: CheckSet,
    selection: CheckSelection,
    entity_ids: Sequence[int],
    now: int,
) -> list[int]:
    """Evaluate the check for entities that have states, which are locked; returns the others."""
    [check] = selection.checks
    stored = state_store.existing(transaction, entity_ids)
    found = subjects.meeting_filters(transaction, selection, dict.fromkeys(stored))
    exemptions = exemption_store.holding(transaction, stored, now)
    nothing, by_state = bytearray(known.width + 1), dict[int, list[int]]()
    for id_, subject in found.items():
        exempt = ActiveExemptions(exemptions.get(id_, NOT_EXEMPT).checks, None)
        given = evaluate(known, selection, subject, nothing, now, exempt)
        by_state.setdefault(given.states[check.slot], []).append(id_)
    for state, ids in by_state.items():
        state_store.put(transaction, check.slot, state, ids)
    return [id_ for id_ in entity_ids if id_ not in found]

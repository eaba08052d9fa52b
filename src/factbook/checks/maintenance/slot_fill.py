"""Filling of the slot of one pending check, for entities whose other states stay as they are.

Most publications are of one check. Of each entity that is a byte, which the database puts in its
place: the other states are neither read nor sent.
"""

from collections.abc import Iterator, Sequence

from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption_store import NOT_EXEMPT
from factbook.checks.maintenance import latest_facts, state_update, subjects
from factbook.checks.maintenance.check_set import CheckSelection, EvaluatedCheck
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.state import EXEMPT, OUT
from factbook.checks.states import state_store
from factbook.storage import Transaction


def fits(selection: CheckSelection) -> bool:
    """Return true for one pending check that reads nothing but facts, whatever the time is."""
    if len(selection.checks) != 1:
        return False
    [check] = selection.checks
    return check.is_pending and not check.is_timed and check.compiled.reads_values_only


def fill(
    transaction: Transaction, check: EvaluatedCheck, entity_ids: Sequence[int], now: int
) -> None:
    """Evaluate the check for entities that have states, which are locked."""
    by_state = dict[int, list[int]]()
    for id_, state in _states(transaction, check, list(entity_ids), now):
        by_state.setdefault(state, []).append(id_)
    for state, ids in by_state.items():
        state_store.put(transaction, check.slot, state, ids)


def _states(
    transaction: Transaction, check: EvaluatedCheck, entity_ids: list[int], now: int
) -> Iterator[tuple[int, int]]:
    """(id, state) of the entities."""
    compiled = check.compiled
    inside = subjects.meeting(transaction, compiled.check.applies_to, entity_ids)
    values = latest_facts.values_among(transaction, sorted(compiled.sources), entity_ids)
    exemptions = exemption_store.holding(transaction, entity_ids, now)
    for id_ in entity_ids:
        if id_ not in inside:
            yield id_, OUT
            continue
        entity = CheckedEntity.of_values(values.get(id_, {}))
        state = state_update.outcome(check.id, compiled, entity, now).state
        if check.id in exemptions.get(id_, NOT_EXEMPT).checks and state in state_update.EXEMPTED:
            state |= EXEMPT
        yield id_, state

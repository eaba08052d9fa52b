"""Events of checks: results that change, and versions that come into effect.

What a publication changes is told by the one event of its version, and results that flap are
silent until they are quiet again.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.states import change_store
from factbook.checks.states.change_store import ChangeRow
from factbook.checks.states.flaps import is_flapping, looks_back_to
from factbook.events import event
from factbook.events import store as events
from factbook.storage import Transaction

# Results that a row of events tells of.
_IN_A_ROW: Final = 1_000


def tell_changes(transaction: Transaction, changes: Sequence[ChangeRow], now: int) -> None:
    """Tell of results that changed now, which are stored already."""
    # Without the flag of an exemption a state may be another one and look the same.
    shown = [one for one in changes if state.name_state(one[2]) != state.name_state(one[3])]
    if not shown:
        return
    ids = {one[1] for one in shown}
    refs = collectable.refs_of(transaction, ids)
    times = change_store.times_within(transaction, sorted(ids), looks_back_to(now))
    told: dict[str, list[tuple[str, str, str, msgspec.Raw]]] = {}
    for check_id, entity_id, before, after, why in shown:
        if entity_id in refs and not is_flapping(times.get((entity_id, check_id), []), now):
            words = state.name_state(before), state.name_state(after)
            told.setdefault(check_id, []).append((refs[entity_id], *words, msgspec.Raw(why)))
    rows = [
        event.of_check(check_id, found[start : start + _IN_A_ROW])
        for check_id, found in sorted(told.items())
        for start in range(0, len(found), _IN_A_ROW)
    ]
    events.append(transaction, rows, now)


def tell_published(transaction: Transaction, versions: Iterable[tuple[str, str]], now: int) -> None:
    """Tell of versions that came into effect, by the id of the check."""
    events.append(transaction, [event.of_published_check(*one) for one in versions], now)

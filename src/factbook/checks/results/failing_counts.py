"""Numbers of checks that fail and are unknown, for the entities of a page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.checks import state
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.states import state_store
from factbook.checks.versions.check_store import check_store
from factbook.storage import Database

_READS: Final = 3  # of states whose slots were moved meanwhile


class FailingCounts(NamedTuple):
    """The numbers of checks of an entity that pass, fail and are unknown."""

    passing: int
    failing: int
    unknown: int


async def of_entities(database: Database, entity_ids: Sequence[int]) -> dict[int, FailingCounts]:
    """The numbers for those of the entities that have states of checks."""
    cache = database.remembered.of(CheckCache)
    found: dict[int, FailingCounts] = {}
    for _ in range(_READS):
        known = await cache.loaded(database)
        if known.is_empty:
            return {}
        states = await state_store.of_entities(database, entity_ids)
        slots = tuple(known.slots.values())
        found = {id_: _counted(one.padded(known.width), slots) for id_, one in states.items()}
        if await check_store.revision(database) == known.revision:
            break
    return found


def _counted(states: bytearray, slots: Sequence[int]) -> FailingCounts:
    own = bytes(states[slot] for slot in slots)
    passing, failing, unknown = map(own.count, (state.PASS, state.FAIL, state.UNKNOWN))
    return FailingCounts(passing, failing, unknown)

"""Counts of checks and scorecards, compared with what they count, and repaired where they differ.

Counts change in the transactions of what they count. So in one snapshot, which is one statement,
the difference between the two is a fault, whoever writes meanwhile; to add it is the repair.
"""

from collections.abc import Sequence

import structlog

from factbook.checks import count_store, level_store
from factbook.checks.count_store import CountDeltas
from factbook.checks.definition_lock import LOCK
from factbook.checks.level_store import LevelDeltas
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.checks")


async def owners(database: Database) -> list[str]:
    """The owners with anything to count."""
    return [owner for (owner,) in await database.search(_OWNERS)]


async def repair(database: Database, owners: Sequence[str]) -> bool:
    """Repair the counts of these owners; returns false, and writes nothing, if they are right."""
    # A definition may change between statements: what is found here is only suspected.
    slots, level_slots = await database.all(_SLOTS), await database.all(_LEVEL_SLOTS)
    states = await database.search(count_store.COMPARISON, (list(owners), list(owners)))
    levels = await database.search(level_store.COMPARISON, (list(owners), list(owners)))
    found = (
        count_store.missing(states, _numbers(slots)),
        level_store.missing(levels, _numbers(level_slots)),
    )
    if not any(found):
        return False
    return await database.write(lambda transaction: _repair(transaction, owners))


def _repair(transaction: Transaction, owners: Sequence[str]) -> bool:
    transaction.lock(LOCK, shared=True)
    states = transaction.all(count_store.COMPARISON, (list(owners), list(owners)))
    levels = transaction.all(level_store.COMPARISON, (list(owners), list(owners)))
    deltas: tuple[CountDeltas, LevelDeltas] = (
        count_store.missing(states, _numbers(transaction.all(_SLOTS))),
        level_store.missing(levels, _numbers(transaction.all(_LEVEL_SLOTS))),
    )
    for one in deltas:
        one.write(transaction)
    is_repaired = any(deltas)
    if is_repaired:
        log.warning("checks.recounted", first=owners[0], last=owners[-1])
    return is_repaired


def _numbers(rows: Sequence[tuple[int, ...]]) -> list[int]:
    return [slot for (slot,) in rows]


_SLOTS = "SELECT slot FROM checks WHERE slot IS NOT NULL"
_LEVEL_SLOTS = "SELECT slot FROM scorecards WHERE slot IS NOT NULL"

_OWNERS = """
SELECT owner FROM check_states UNION SELECT owner FROM check_counts
UNION SELECT owner FROM scorecard_levels UNION SELECT owner FROM scorecard_counts
"""

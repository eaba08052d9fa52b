"""Counts of checks and scorecards, compared with what they count, and repaired where they differ.

Counts change in the transactions of what they count. So in one snapshot, which is one statement,
the difference between the two is a fault, whoever writes meanwhile; to add it is the repair.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

import structlog

from factbook.checks.definitions import definition_lock
from factbook.checks.levels import label_store, level_store
from factbook.checks.levels.level_store import LevelDeltas
from factbook.checks.states import count_store
from factbook.checks.states.count_store import CountDeltas
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.checks")


Repair = Callable[[Database], Awaitable[bool]]

# Owners whose counts are compared at once.
_AT_ONCE: Final = 50


async def repairs(database: Database) -> list[Repair]:
    """The pieces of a comparison of all counts; each returns true if it had to repair some."""
    owners = [owner for (owner,) in await database.search(_OWNERS)]
    found: list[Repair] = [
        partial(repair, owners=owners[start : start + _AT_ONCE])
        for start in range(0, len(owners), _AT_ONCE)
    ]
    return found + [
        partial(repair_labels, block=block) for block in await label_store.blocks(database)
    ]


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
    definition_lock.share(transaction)
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


async def repair_labels(database: Database, block: int) -> bool:
    """Repair the counts by label of a block of entities; see `repair`."""
    slots = _numbers(await database.all(_LEVEL_SLOTS))
    rows = await database.search(label_store.COMPARISON, label_store.comparison(block))
    if not label_store.missing(rows, block, slots):
        return False
    return await database.write(partial(_repair_labels, block=block))


def _repair_labels(transaction: Transaction, block: int) -> bool:
    definition_lock.share(transaction)
    rows = transaction.all(label_store.COMPARISON, label_store.comparison(block))
    slots = _numbers(transaction.all(_LEVEL_SLOTS))
    deltas = label_store.missing(rows, block, slots)
    deltas.write(transaction)
    if deltas:
        log.warning("checks.recounted", block=block)
    return bool(deltas)


def _numbers(rows: Sequence[tuple[int, ...]]) -> list[int]:
    return [slot for (slot,) in rows]


_SLOTS = "SELECT slot FROM checks WHERE slot IS NOT NULL"
_LEVEL_SLOTS = "SELECT slot FROM scorecards WHERE slot IS NOT NULL"

_OWNERS = """
SELECT owner FROM check_states UNION SELECT owner FROM check_counts
UNION SELECT owner FROM scorecard_levels UNION SELECT owner FROM scorecard_counts
"""

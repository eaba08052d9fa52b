"""States that change as time passes: evaluated when they are due, though nothing is written."""

from functools import partial
from typing import Final

from factbook.checks import definition_lock, incremental, state_store
from factbook.checks.check_set import CheckCache
from factbook.clock import Clock
from factbook.storage import Database, Transaction

# Entities of one transaction, so that no other write waits long.
_AT_ONCE: Final = 500
# Held by the process that does this, for one transaction.
_LOCK: Final = {"checks due": False}


async def work(database: Database, clock: Clock) -> int:
    """Evaluate what is due; returns the number of entities."""
    cache, count, found = database.remembered.of(CheckCache), 0, _AT_ONCE
    while found == _AT_ONCE:
        found = await database.write(partial(_evaluate, cache=cache, now=clock()))
        count += found
    return count


def _evaluate(transaction: Transaction, cache: CheckCache, now: int) -> int:
    if not transaction.try_lock_each(_LOCK):
        return 0
    transaction.lock(definition_lock.LOCK, shared=True)
    ids = state_store.due(transaction, now, _AT_ONCE)
    if ids:
        known = cache.current(transaction)
        incremental.update(transaction, known, [incremental.time_task(known, ids)], now)
    return len(ids)

"""States that change as time passes: evaluated when they are due, though nothing is written."""

import time
from functools import partial
from typing import Final

from factbook.checks.background.batch_size import BatchSize, DueBatchSize
from factbook.checks.definitions import definition_lock
from factbook.checks.maintenance import incremental
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.states import state_store
from factbook.clock import Clock
from factbook.storage import Database, Transaction

# Held by the process that does this, for one transaction.
_LOCK: Final = {"checks due": False}


async def work(database: Database, clock: Clock) -> int:
    """Evaluate what is due, in batches; returns the number of entities."""
    cache, paced = database.remembered.of(CheckCache), database.remembered.of(DueBatchSize)
    count, has_more = 0, True
    while has_more:
        size = paced.entities
        batch = partial(_evaluate, cache=cache, paced=paced, size=size, now=clock())
        found, has_more = await database.write(batch)
        count += found
    return count


def _evaluate(
    transaction: Transaction, cache: CheckCache, paced: BatchSize, size: int, now: int
) -> tuple[int, bool]:
    """Evaluate the entities due first; returns their number, and true if more are due."""
    if not transaction.try_lock_each(_LOCK):
        return 0, False
    definition_lock.share(transaction)
    began = time.monotonic()
    ids = state_store.due(transaction, now, size)
    leaves_some = False
    if ids:
        known = cache.current(transaction)
        task = incremental.time_task(known, ids)
        leaves_some = incremental.update(transaction, known, [task], now).leaves_some
    if len(ids) == size:
        paced.note(size, time.monotonic() - began)
    return len(ids), leaves_some or len(ids) == size

"""Sweeps: evaluation of every entity anew, in portions beside writes.

A release that does not evaluate, as one before an upgrade or after going back, writes facts and
entities whose states stay as they were. A sweep finds them; where nothing differs it writes
nothing but how far it has got. A portion and its progress are committed together, so another
process goes on where one was killed.
"""

from collections.abc import Sequence
from functools import partial
from heapq import merge
from itertools import groupby, islice
from typing import Final

import msgspec
import structlog

from factbook.catalog.store import collectable
from factbook.checks.background import recount
from factbook.checks.background.recount import Repair
from factbook.checks.definitions import definition_lock
from factbook.checks.levels import level_store
from factbook.checks.maintenance import incremental, subjects
from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.maintenance.incremental import Task
from factbook.checks.states import state_store
from factbook.clock import DAY, MINUTE, Clock
from factbook.storage import Database, Transaction, counters

log = structlog.get_logger("factbook.checks")

_BEGUN: Final = "check sweep"
_POSITION: Final = "checks swept up to"
# Held by the process that does a portion, for one transaction.
_LOCK: Final = {"check sweep": False}
# Evaluations and entities of a portion, so that no other write waits long.
_EVALUATIONS: Final = 20_000
_LEAST: Final = 20
_MOST: Final = 500
# By then a process of the release before has ended whose place this one takes.
_AFTER_START: Final = MINUTE
# The last entity, of a sweep that has reached all.
_ALL: Final = 2**63 - 1
# In place of a position, if no sweep is under way.
_NOTHING: Final = -1
_BY_SWEEP: Final = msgspec.json.encode({"sweep": True}).decode()


class StateSweep:
    """The sweeps of a process: it begins one soon after its start, and whoever is first each day.

    A call of `tick` does one portion: how often it is called is the pace.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._started_at: int | None = None
        self._has_begun = False
        self._looked_at: int | None = None  # when there was nothing to do
        self._repairs: list[Repair] = []  # of counts that are left to be compared

    async def tick(self) -> bool:
        """Do the next portion; returns false if there is none to do here."""
        if self._repairs:
            await self._repairs.pop()(self._database)
            return True
        now = self._clock()
        if self._started_at is None:
            self._started_at = now
        begins = not self._has_begun and not 0 <= now - self._started_at < _AFTER_START
        if not begins and self._looked_at is not None and 0 <= now - self._looked_at < MINUTE:
            return False
        cache = self._database.remembered.of(CheckCache)
        position = await self._database.write(
            partial(_portion, cache=cache, now=now, begins=begins)
        )
        if position is None:
            return False
        self._has_begun = self._has_begun or begins
        if position == _ALL:
            self._repairs = await recount.repairs(self._database)
        self._looked_at = now if position == _NOTHING else None
        return position != _NOTHING

    async def finish(self) -> None:
        """Do all portions of the sweep that is under way or due."""
        while await self.tick():
            pass


def _portion(transaction: Transaction, cache: CheckCache, now: int, *, begins: bool) -> int | None:
    """Evaluate the next entities; returns the last of them, None if another process does that."""
    if not transaction.try_lock_each(_LOCK):
        return None
    definition_lock.share(transaction)
    after = counters.value_within(transaction, _POSITION)
    if begins or not 0 <= now - counters.value_within(transaction, _BEGUN) < DAY:
        after = 0
        counters.put(transaction, _BEGUN, now)
    if after == _ALL:
        return _NOTHING
    known = cache.current(transaction)
    size = max(_LEAST, min(_MOST, _EVALUATIONS // max(1, len(known.checks))))
    ids = [] if known.is_empty else _ids_after(transaction, after, size)
    changed = _evaluate(transaction, known, ids, now)
    if changed:
        log.info("checks.swept", entities=changed, first=ids[0], last=ids[-1])
    reached = ids[-1] if len(ids) == size else _ALL
    counters.put(transaction, _POSITION, reached)
    return reached


def _ids_after(transaction: Transaction, after: int, size: int) -> list[int]:
    """The next ids of entities, and of those that are gone and have states or levels still."""
    found = merge(
        collectable.ids_after(transaction, after, size),
        state_store.ids_after(transaction, after, size),
        level_store.ids_after(transaction, after, size),
    )
    return [id_ for id_, _ in islice(groupby(found), size)]


def _evaluate(transaction: Transaction, known: CheckSet, ids: Sequence[int], now: int) -> int:
    reads = subjects.with_documents
    task = Task(known.everything, ids, _BY_SWEEP, reads=reads, has_dues=True)
    return incremental.update(transaction, known, [task], now).changed

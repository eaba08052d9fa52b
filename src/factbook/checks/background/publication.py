"""Publications under way: evaluation of pending versions for every entity, in batches.

Several publications share their batches. Readers see the versions before until all entities are
evaluated; then the pending ones come into effect in one transaction. A batch and its progress are
committed together, so another process goes on where one was killed. Whoever writes meanwhile
evaluates what is pending, too: an entity is either read by a batch, or was written after the
publication was known.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
import structlog

from factbook.catalog.store import collectable
from factbook.checks.background.batch_size import CostlyBatchSize, EvaluationBatchSize
from factbook.checks.definitions import definition_lock
from factbook.checks.maintenance import incremental, slot_fill, subjects
from factbook.checks.maintenance.check_set import CheckCache, CheckSelection
from factbook.checks.maintenance.incremental import Task
from factbook.checks.states import (
    batch_order,
    change_events,
    change_store,
    count_store,
    state_store,
)
from factbook.checks.states.batch_order import ALL, IdReads
from factbook.checks.states.change_store import ChangeRow
from factbook.checks.states.count_store import CountRow
from factbook.checks.states.state_columns import StatePair, by_owner
from factbook.checks.states.state_store import EntityStates
from factbook.checks.versions import slots
from factbook.checks.versions.check_store import StoredCheck, check_store
from factbook.clock import Clock
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.checks")

# Held by the process that does a piece of the work, for one transaction.
_LOCK: Final = {"check publication": False}
# Evaluations in a batch, so that no other write waits long.
_EVALUATIONS: Final = 100_000
_LEAST: Final = 200
# With more filters than that, reading the documents is quicker than asking for each filter.
_FEW_FILTERS: Final = 4
# That many are picked from the states of an entity sooner than all of them are read.
_FEW_SLOTS: Final = 8
_CLEARED: Final = 5_000
_PAGE: Final = 5_000
_ENTITIES: Final = IdReads(collectable.ids_after, collectable.ids_among)
_STATES: Final = IdReads(state_store.ids_after, state_store.ids_among)


async def work(database: Database, clock: Clock) -> bool:
    """Do a piece of the work that is left; returns false if there is none to do here."""
    if await database.write(partial(_batch, database=database, clock=clock)):
        return True
    if await database.write(partial(_put_into_effect, clock=clock)):
        return True
    return await database.write(partial(_clear, cache=database.remembered.of(CheckCache)))


async def finish(database: Database, clock: Clock) -> None:
    """Do all the work that is left and that no other process does."""
    while await work(database, clock):
        pass


async def is_settled(database: Database) -> bool:
    """Return true if no publication is under way, nor anything to clear."""
    return await database.one(_UNSETTLED) is None


def _batch(transaction: Transaction, database: Database, clock: Clock) -> bool:
    """Evaluate what is pending for the next entities; returns false if nothing is left."""
    if not transaction.try_lock_each(_LOCK):
        return False
    definition_lock.share(transaction)
    began = time.monotonic()
    places = check_store.progress(transaction)
    begun = {id_: place for id_, place in places.items() if place < ALL}
    if not begun:
        return False
    known = database.remembered.of(CheckCache).current(transaction)
    after = min(begun.values())
    chosen = frozenset(id_ for id_, place in begun.items() if place == after)
    # Those that are further on go along from where they are.
    end = min((place for place in begun.values() if place > after), default=ALL)
    selection = known.pending_of(chosen)
    is_costly = any(one.compiled.is_costly for one in selection.checks)
    paced = database.remembered.of(CostlyBatchSize if is_costly else EvaluationBatchSize)
    size = min(paced.entities, max(_LEAST, _EVALUATIONS // max(1, len(selection.checks))))
    some = batch_order.portion(transaction, _ENTITIES, after, size, end)
    fills = slot_fill.fits(selection)
    task = Task(selection, some.ids, "", reads=_reads(selection), fills=fills)
    incremental.update(transaction, known, [task], clock(), may_leave=False)
    check_store.note_progress(transaction, sorted(chosen), some.place)
    if len(some.ids) == size:
        paced.note(size, time.monotonic() - began)
    return True


def _reads(selection: CheckSelection) -> subjects.Read:
    if selection.reads_entity or len(selection.filters) > _FEW_FILTERS:
        return subjects.with_documents
    return subjects.by_filters


def _put_into_effect(transaction: Transaction, clock: Clock) -> bool:
    """Put what is evaluated for every entity into effect; returns false if nothing is."""
    if not transaction.try_lock_each(_LOCK):
        return False
    if ALL not in check_store.progress(transaction).values():
        return False
    definition_lock.take(transaction)
    ready = check_store.ready(transaction)
    now = clock()
    _take_stock(transaction, ready, now)
    check_store.put_into_effect(transaction, ready, now)
    versions = [(one.id, one.newest_version) for one in ready]
    change_events.tell_published(transaction, versions, now)
    log.info("check.published", checks=[one.id for one in ready])
    return bool(ready)


def _take_stock(transaction: Transaction, ready: Sequence[StoredCheck], now: int) -> None:
    """Count the states of versions that come into effect, and tell what they change."""
    pairs = [StatePair(one.id, one.slot, one.pending_slot or 0) for one in ready]
    whys = {one.id: msgspec.json.encode({"version": one.pending_version}).decode() for one in ready}
    slots = _slots(pairs)
    if not slots:
        return
    for group in by_owner(_pages(transaction, slots), slots):
        counts, changes = list[CountRow](), list[ChangeRow]()
        for pair in pairs:
            counts += group.counts(pair)
            changes += group.changes(pair, whys[pair.check_id])
        count_store.add(transaction, counts)
        change_store.append(transaction, changes, now)


def _slots(pairs: Iterable[StatePair]) -> Sequence[int]:
    """The slots to read: those of the pairs, or with many also all between them."""
    found = sorted({slot for pair in pairs for slot in (pair.before, pair.after) if slot})
    return found if len(found) <= _FEW_SLOTS else range(1, found[-1] + 1)


def _pages(transaction: Transaction, slots: Sequence[int]) -> Iterator[list[EntityStates]]:
    place = ("", -1)
    while page := state_store.by_owner(transaction, place, _PAGE, slots):
        yield page
        place = page[-1].owner, page[-1].entity_id


def _clear(transaction: Transaction, cache: CheckCache) -> bool:
    """Clear the next bytes of slots that are not used any more; returns false if there are none."""
    if not transaction.try_lock_each(_LOCK):
        return False
    places = slots.retired(transaction)
    if not places:
        return False
    definition_lock.share(transaction)
    after, retired = min(places.values()), list(places)
    some = batch_order.portion(transaction, _STATES, after, _CLEARED, ALL)
    if not state_store.lock_stored(transaction, some.ids):
        state_store.lock(transaction, some.ids)
    known = cache.current(transaction)
    if known.checks or known.counted:
        state_store.clear(transaction, some.ids, retired)
    else:
        state_store.remove(transaction, some.ids)
    if some.is_last:
        slots.release(transaction, retired)
        check_store.raise_revision(transaction)
    else:
        slots.note_cleared(transaction, retired, some.place)
    return True


_UNSETTLED = """
SELECT 1 FROM checks WHERE pending_slot IS NOT NULL UNION ALL SELECT 1 FROM retired_slots LIMIT 1
"""

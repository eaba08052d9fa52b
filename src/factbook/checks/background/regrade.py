"""Grading of all entities for pending slots of scorecards, in batches beside writes.

A batch and its progress are committed together, so another process goes on where one was killed.
Whoever writes meanwhile grades what the batches have reached already.
"""

import time
from functools import partial
from typing import Final

import structlog

from factbook.catalog.store import collectable
from factbook.checks.background.batch_size import BatchSize, GradingBatchSize
from factbook.checks.definitions import definition_lock
from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption_store import NOT_EXEMPT
from factbook.checks.levels.entity_place import place_of
from factbook.checks.levels.grades import GradedEntity
from factbook.checks.levels.level_store import LevelDeltas
from factbook.checks.maintenance.check_grades import grading_of
from factbook.checks.maintenance.check_set import CheckCache
from factbook.checks.states import state_store
from factbook.checks.states.state_store import EntityStates
from factbook.checks.versions import grade_slots
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import Clock
from factbook.facts.entity_filter import Matcher
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.checks")

# Held by the process that does a piece of the work, for one transaction.
_LOCK: Final = {"scorecard grading": False}
# The last entity, once all are graded.
_ALL: Final = 2**63 - 1


async def work(database: Database, clock: Clock) -> bool:
    """Do a piece of the work that is left; returns false if there is none to do here."""
    cache, paced = database.remembered.of(CheckCache), database.remembered.of(GradingBatchSize)
    if await database.write(partial(_batch, cache=cache, paced=paced, now=clock())):
        return True
    return await database.write(_put_into_effect)


async def finish(database: Database, clock: Clock) -> None:
    """Do all the work that is left and that no other process does."""
    while await work(database, clock):
        pass


async def is_settled(database: Database) -> bool:
    """Return true if no scorecard is being graded anew."""
    return await database.one(_UNSETTLED) is None


async def begin_due(database: Database, clock: Clock) -> bool:
    """Begin to grade for the scorecards of which checks count by now; true if there are any."""
    cache = database.remembered.of(CheckCache)
    if not await database.write(partial(_due, cache=cache, now=clock())):
        return False
    return await database.write(partial(_begin_due, cache=cache, now=clock()))


def _batch(transaction: Transaction, cache: CheckCache, paced: BatchSize, now: int) -> bool:
    """Grade the next entities; returns false if nothing is left."""
    if not transaction.try_lock_each(_LOCK):
        return False
    definition_lock.share(transaction)
    known = cache.current(transaction)
    grading = grading_of(transaction, known)
    after = grade_slots.progress(transaction)
    if not grading.has_pending or after == _ALL:
        return False
    transaction.lock(grade_slots.PROGRESS)
    began, size = time.monotonic(), paced.entities
    ids = collectable.ids_after(transaction, after, size)
    reached = ids[-1] if len(ids) == size else _ALL
    if ids:
        state_store.lock(transaction, ids)
    deltas = LevelDeltas()
    grading.update(transaction, _entities(transaction, ids, now), now, deltas, reached=reached)
    grade_slots.note_progress(transaction, reached)
    deltas.write(transaction)
    # Of entities that were removed until their states were locked, or have no states.
    state_store.remove_empty(transaction, ids)
    if reached != _ALL:
        paced.note(len(ids), time.monotonic() - began)
    return True


def _entities(transaction: Transaction, ids: list[int], now: int) -> list[GradedEntity]:
    """The entities as they are, with the states of their checks."""
    if not ids:
        return []
    states = state_store.read(transaction, ids)
    exempt = exemption_store.holding(transaction, ids, now)
    rows = transaction.all(*collectable.among(collectable.EVERYTHING, ids))
    return [
        GradedEntity(
            id_,
            states.get(id_, EntityStates(id_, "", b"", None)).states,
            place_of(ref, document, Matcher(document)),
            exempt.get(id_, NOT_EXEMPT).scorecards,
        )
        for id_, ref, document in collectable.read(rows)
    ]


def _put_into_effect(transaction: Transaction) -> bool:
    """Put what is graded for every entity into effect; returns false if nothing is."""
    if not transaction.try_lock_each(_LOCK) or grade_slots.progress(transaction) != _ALL:
        return False
    definition_lock.take(transaction)
    if grade_slots.progress(transaction) != _ALL:
        return False  # begun again meanwhile
    graded = grade_slots.put_into_effect(transaction)
    scorecard_store.raise_revision(transaction)
    log.info("scorecard.graded", scorecards=graded)
    return True


def _due(transaction: Transaction, cache: CheckCache, now: int) -> list[str]:
    definition_lock.share(transaction)
    return grading_of(transaction, cache.current(transaction)).due(now)


def _begin_due(transaction: Transaction, cache: CheckCache, now: int) -> bool:
    definition_lock.take(transaction)
    due = _due(transaction, cache, now)  # another process may have begun meanwhile
    if due:
        scorecard_store.grade_again(transaction, due, now)
    return bool(due)


_UNSETTLED: Final = "SELECT 1 FROM scorecards WHERE pending_slot IS NOT NULL LIMIT 1"

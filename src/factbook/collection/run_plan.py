"""The plan of a run: entities to targets, targets to batches."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import structlog

from factbook.catalog.store import collectable
from factbook.catalog.store.conditions import SQL
from factbook.clock import MINUTE
from factbook.facts import entity_filter, removal, store
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.store import Last, Observation
from factbook.integrations.integration import CollectionSubject, Integration
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import run_queue
from factbook.scheduling.gaps import RunGap
from factbook.scheduling.run_queue import Begun, Queue, RunOrder
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.collecting")

_PORTION = 500
_TIMEOUT = 20 * MINUTE

# Entities by what is asked for: those that point to the same share one answer.
Targets = dict[str, list[int]]


class RunPlan(NamedTuple):
    """The batches of a run, and new reasons for entities without a place in one."""

    works: list[str]
    entities: int
    missing: list[Observation]
    skipped: int = 0
    failed: int = 0
    gaps: Mapping[RunGap, int] = MappingProxyType({})


async def plan(database: Database, integration: Integration) -> RunPlan:
    """The plan for every entity that the source is about; those never collected come first."""
    last = await store.last(database, integration.source.id)
    targets, missing = Targets(), list[Observation]()
    async for portion in _every(database, integration.source):
        # What users define may take its time to say what an entity points to.
        await asyncio.to_thread(_sort, integration, portion, targets, missing)
    return _planned(integration, targets, missing, last)


def plan_some(transaction: Transaction, integration: Integration, ids: list[int]) -> RunPlan:
    """The plan for the given entities that the source is about."""
    rows = transaction.all(*collectable.among(_where(integration.source), ids))
    targets, missing = Targets(), list[Observation]()
    _sort(
        integration, [CollectionSubject(*row) for row in collectable.read(rows)], targets, missing
    )
    return _planned(integration, targets, missing, {})


def enqueue(
    transaction: Transaction,
    integration: Integration,
    plan: RunPlan,
    now: int,
    *,
    whole: bool = False,
    reason: str = "asked",
    since: int = run_queue.NEVER,
) -> Begun | None:
    """Create a run of the plan; None if a run of all entities precludes it."""
    source = integration.source
    order = RunOrder(
        source.id,
        Queue(integration.credential, integration.at_once),
        plan.works,
        reason,
        whole,
        now + (milliseconds(source.timeout) if source.timeout else _TIMEOUT),
        plan.entities,
        skipped=plan.skipped,
        failed=plan.failed,
        gaps=plan.gaps,
    )
    begun = run_queue.enqueue(transaction, order, now, since=since)
    if begun is not None:
        store.record_many(transaction, source, plan.missing, now)
        if whole:
            removal.drop_untracked(transaction, source)
    return begun


def enqueue_failed(
    transaction: Transaction, *, integration: Integration, now: int, since: int
) -> Begun | None:
    """Record a failed run that could not be planned."""
    queue = Queue(integration.credential, integration.at_once)
    error = "upstream-error: the run could not be planned; the log has more"
    order = RunOrder(integration.source.id, queue, (), "cadence", True, now, 0, error=error)
    return run_queue.enqueue(transaction, order, now, since=since)


def targets_of(work: str) -> Targets:
    """The targets of a batch, with the entities that point to each."""
    return dict(msgspec.json.decode(work, type=list[tuple[str, list[int]]]))


def work_of(targets: Iterable[str], entities: Mapping[str, list[int]]) -> str:
    """The stored form of a batch."""
    return msgspec.json.encode([(target, entities[target]) for target in targets]).decode()


async def _every(database: Database, source: DataSource) -> AsyncIterator[list[CollectionSubject]]:
    after = 0
    while rows := await database.all(*collectable.page(_where(source), after, _PORTION)):
        yield [CollectionSubject(*row) for row in collectable.read(rows)]
        after = rows[-1][0]


def _where(source: DataSource) -> SQL:
    if source.entity_filter is None:
        return collectable.EVERYTHING
    return entity_filter.where(source.entity_filter)


def _sort(
    integration: Integration,
    portion: Iterable[CollectionSubject],
    targets: Targets,
    missing: list[Observation],
) -> None:
    for subject in portion:
        found = _target(integration, subject.entity)
        if isinstance(found, str):
            targets.setdefault(found, []).append(subject.entity_id)
        else:
            passing = frozenset({""}) if found.passing else frozenset[str]()
            missing.append(Observation(subject.entity_id, {}, {"": found.reason}, passing))


def _target(integration: Integration, entity: Mapping[str, Any]) -> str | Missing:
    try:
        return integration.target(entity)
    except Exception as error:
        log.error("target.failed", source=integration.source.id, exc_info=error)
        return Missing(Outcome.TRANSIENT, "the entity's annotations could not be read")


def _planned(
    integration: Integration,
    targets: Targets,
    missing: list[Observation],
    last: Mapping[int, Last],
) -> RunPlan:
    def oldest(target: str) -> int:
        return min(last[id_].written_at if id_ in last else 0 for id_ in targets[target])

    batches = integration.batches(sorted(targets, key=oldest)) if targets else []
    works = [work_of(batch, targets) for batch in batches]
    new = [one for one in missing if one.passing or not _is_known(one, last)]
    failed = sum(bool(one.passing) for one in missing)
    count = sum(map(len, targets.values()))
    gaps = Counter(_gap(one) for one in missing)
    return RunPlan(works, count, new, len(missing) - failed, failed, gaps)


def _gap(one: Observation) -> RunGap:
    return RunGap("", one.reasons[""], "passing" if one.passing else "skipped")


def _is_known(one: Observation, last: Mapping[int, Last]) -> bool:
    return one.entity_id in last and last[one.entity_id].reasons == one.reasons

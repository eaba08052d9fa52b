"""Start of a run: its plan, from entities to targets to batches, and its place in the queue."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
import structlog

from factbook.catalog.store import collectable
from factbook.catalog.store.conditions import SQL
from factbook.clock import MINUTE
from factbook.errors import UnavailableError
from factbook.facts import entity_filter, retention, store
from factbook.facts.datasource import DataSource, duration_milliseconds
from factbook.facts.freshness import Observation
from factbook.facts.store import Last
from factbook.integrations.integration import CollectionSubject, Integration
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import run_queue, runs
from factbook.scheduling.run_queue import Begun, Queue, RunOrder
from factbook.scheduling.runs import RunGap
from factbook.storage import Database, Transaction, Write
from factbook.telemetry.spans import NO_TRACER, Tracer, Work

log = structlog.get_logger("factbook.collecting")

_PORTION = 500
_TIMEOUT = 20 * MINUTE
_NOT_PLANNED = "upstream-error: the run could not be planned; the log has more"

# Entities by what is asked for: those that point to the same share one answer.
Targets = dict[str, list[int]]


class RunPlan(NamedTuple):
    """The batches of a run, and new reasons for entities without a place in one.

    With an `error` the run fails at once.
    """

    works: list[str]
    entities: int
    missing: list[Observation]
    skipped: int = 0
    failed: int = 0
    gaps: Mapping[RunGap, int] = MappingProxyType({})
    error: str | None = None


class NothingToCollectError(Exception):
    """Error for an entity that the source is not about."""


class UnderWayError(Exception):
    """Error while a run of every entity is in progress."""


async def begin(
    database: Database,
    integration: Integration,
    now: int,
    *,
    entity_id: int | None = None,
    since: int | None = None,
    write: Write | None = None,
    tracer: Tracer = NO_TRACER,
) -> Begun:
    """Begin a run of every entity that the source is about, or of one, in a transaction of `write`.

    With `since` the run is one by cadence: another that started at or after that time precludes it,
    and if it cannot be planned, it is recorded as failed. Raises UnderWayError if a run of every
    entity precludes it, and NothingToCollectError if the source is not about the one.
    """
    if entity_id is None:
        make = await _planned(database, integration, now, since)
    else:
        make = partial(_of_one, integration=integration, entity_id=entity_id, now=now)
    begun = await (write or database.write)(make)
    tracer.asked_for(trace_of(integration.source.id, begun.run_id, begun.deadline))
    return begun


async def begin_or_join(
    database: Database, integration: Integration, now: int, entity_id: int | None, write: Write
) -> int:
    """The id of a run that `begin` begins, or of the run of every entity that precludes it."""
    while True:
        try:
            begun = await begin(database, integration, now, entity_id=entity_id, write=write)
            return begun.run_id
        except UnderWayError:
            under_way = partial(runs.find_current_run, source_id=integration.source.id)
            run_id = await database.write(under_way)
            if run_id is not None:  # else it has ended meanwhile
                return run_id


def begin_some(
    transaction: Transaction,
    integration: Integration,
    ids: list[int],
    now: int,
    *,
    is_asked_for: bool = True,
) -> Begun | None:
    """Begin a run of those among these entities that the source is about; None if it has none.

    Unless it is asked for, a run that cannot be planned is recorded as failed.
    """
    rows = transaction.all(*collectable.among(_where(integration.source), ids))
    if not rows:
        return None
    try:
        targets, missing = Targets(), list[Observation]()
        subjects = [CollectionSubject(*row) for row in collectable.read(rows)]
        _sort(integration, subjects, targets, missing)
        plan = _plan_of(integration, targets, missing, {})
    except Exception as error:
        if is_asked_for:
            raise
        plan = _failed_plan(integration, error)
    return _enqueue(transaction, integration, plan, now, whole=False)


async def _planned(
    database: Database, integration: Integration, now: int, since: int | None
) -> Callable[[Transaction], Begun]:
    """A function that makes the run of every entity; raises UnderWayError."""
    try:
        planned = await _plan(database, integration)
    except UnavailableError:
        raise
    except Exception as error:
        if since is None:
            raise
        planned = _failed_plan(integration, error)
    return partial(_enqueue, integration=integration, plan=planned, now=now, since=since)


def _of_one(
    transaction: Transaction, *, integration: Integration, entity_id: int, now: int
) -> Begun:
    begun = begin_some(transaction, integration, [entity_id], now)
    if begun is None:
        raise NothingToCollectError
    return begun


def _enqueue(
    transaction: Transaction,
    integration: Integration,
    plan: RunPlan,
    now: int,
    *,
    whole: bool = True,
    since: int | None = None,
) -> Begun:
    """Create a run of the plan; raises UnderWayError if a run of every entity precludes it."""
    source = integration.source
    order = RunOrder(
        source.id,
        Queue(integration.credential, integration.at_once),
        plan.works,
        "asked" if since is None else "cadence",
        whole,
        now + (duration_milliseconds(source.timeout) if source.timeout else _TIMEOUT),
        plan.entities,
        skipped=plan.skipped,
        failed=plan.failed,
        error=plan.error,
        gaps=plan.gaps,
    )
    latest = run_queue.NEVER if since is None else since
    begun = run_queue.enqueue_run(transaction, order, now, since=latest)
    if begun is None:
        raise UnderWayError
    store.record_facts(transaction, source, plan.missing, now)
    if whole and plan.error is None:
        retention.drop_untracked(transaction, source)
    return begun


async def _plan(database: Database, integration: Integration) -> RunPlan:
    """The plan for every entity that the source is about; those never collected come first."""
    last = await store.find_last_collections(database, integration.source.id)
    targets, missing = Targets(), list[Observation]()
    async for portion in _every(database, integration.source):
        # What users define may take its time to say what an entity points to.
        await asyncio.to_thread(_sort, integration, portion, targets, missing)
    return _plan_of(integration, targets, missing, last)


def _failed_plan(integration: Integration, error: Exception) -> RunPlan:
    log.error("plan.failed", source=integration.source.id, exc_info=error)
    return RunPlan([], 0, [], error=_NOT_PLANNED)


def trace_of(source_id: str, run_id: int, deadline: int) -> Work:
    """A run in traces; run ids repeat between databases, but their deadlines do not."""
    return Work("run", f"{source_id} {run_id} {deadline}")


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
    if source.selection is None:
        return collectable.EVERYTHING
    return entity_filter.filter_condition(source.selection)


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


def _plan_of(
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

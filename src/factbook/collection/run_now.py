"""Runs of data sources on request, for every interface.

They begin by the clock that all processes share, as those that collect go by it.
"""

from collections.abc import Sequence
from functools import partial

import structlog

from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref, collectable
from factbook.clock import Clock
from factbook.collection import run_start
from factbook.collection.run_start import NothingToCollectError, UnderWayError
from factbook.datasources import catalog_samples
from factbook.datasources.registry import Registry, SourceSnapshot
from factbook.errors import ConflictError, no_such
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.integrations.integration import Integration
from factbook.scheduling import lease, runs
from factbook.scheduling.run_queue import Begun
from factbook.scheduling.runs import RunRecord
from factbook.storage import Database, Transaction, Write
from factbook.telemetry.spans import NO_TRACER, Tracer

log = structlog.get_logger("factbook.data_sources")

# Refresh requests that are taken in one transaction.
_AT_ONCE = 1_000


async def run(
    database: Database,
    registry: Registry,
    source_id: str,
    entity: str | None,
    *,
    actor: str,
    clock: Clock,
    write: Write,
    tracer: Tracer = NO_TRACER,
) -> RunRecord:
    """Begin to collect a source now, for every entity or for the one with this reference.

    `write` is as in `define`. Raises InputError, NotFoundError, and ConflictError if the source
    is not collected, is not about the entity, or is already being collected as a whole.
    """
    known = await registry.latest()
    if source_id not in known.sources:
        raise no_such("data source", source_id, known.sources)
    ref = None if entity is None else str(refs.parse(entity))
    id_ = None if ref is None else await entity_id(database, ref)
    now = await lease.fetch_shared_time(database, clock)
    integration = known.integrations.get(source_id)
    if integration is None:
        raise _not_collected(source_id, known)
    try:
        begun = await run_start.begin(
            database, integration, now, entity_id=id_, write=write, tracer=tracer
        )
    except NothingToCollectError:
        left_out = integration.source.left_out(ref or "")
        raise ConflictError(f"{left_out[:1].upper()}{left_out[1:]}.") from None
    except UnderWayError:
        raise _under_way(source_id) from None
    found = await runs.fetch_run(database, begun.run_id)
    if found is None:
        raise _under_way(source_id)
    log.info("data_source.run", source=source_id, run=found.id, actor=actor)
    return found


async def retry(
    database: Database,
    registry: Registry,
    source_id: str,
    *,
    actor: str,
    clock: Clock,
    write: Write,
    tracer: Tracer = NO_TRACER,
) -> int:
    """Begin a run of the entities of a source's batches that were given up; returns its id.

    `write` is as in `define`. Raises ConflictError if there are none, or the source is not
    collected any more.
    """
    integration = (await registry.latest()).integrations.get(source_id)
    now = await lease.fetch_shared_time(database, clock)

    def begin(transaction: Transaction) -> Begun:
        works = map(run_start.targets_of, runs.take_given_up_work(transaction, source_id))
        ids = {id_ for targets in works for found in targets.values() for id_ in found}
        begun = None
        if integration is not None:
            begun = run_start.begin_some(transaction, integration, sorted(ids), now)
        if begun is None:
            raise ConflictError(f"Nothing of {source_id} that was given up can be collected.")
        return begun

    begun = await write(begin)
    tracer.asked_for(run_start.trace_of(source_id, begun.run_id, begun.deadline))
    log.info("data_source.run", source=source_id, run=begun.run_id, actor=actor)
    return begun.run_id


async def collect_requested(
    database: Database,
    sources: Sequence[DataSource],
    clock: Clock,
    integrations: Sequence[Integration] = (),
) -> int:
    """Sample the catalog's facts of requested entities; returns the number of requests.

    For facts of integrations, runs are queued in the transaction that takes the requests.
    """
    done = 0
    while await store.has_refresh_requests(database):
        now = await lease.fetch_shared_time(database, clock)
        work = partial(_take, sources=sources, integrations=integrations, now=now)
        done += await database.write(work)
    return done


async def entity_id(database: Database, ref: str) -> int:
    """The id of the entity with this reference; raises NotFoundError."""
    found = await collectable.id_of(database, ref)
    if found is None:
        raise await by_ref.unknown(database, ref)
    return found


def _take(
    transaction: Transaction,
    *,
    sources: Sequence[DataSource],
    integrations: Sequence[Integration],
    now: int,
) -> int:
    ids = store.take_refresh_requests(transaction, _AT_ONCE)
    catalog_samples.sample_some(transaction, sources, ids, now)
    for integration in integrations:
        run_start.begin_some(transaction, integration, ids, now)
    return len(ids)


def _under_way(source_id: str) -> ConflictError:
    return ConflictError(f"A full run of {source_id} is already in progress.")


def _not_collected(source_id: str, known: SourceSnapshot) -> ConflictError:
    if source_id in known.problems:
        unread = ConflictError(f"{source_id} cannot be collected on this server.")
        text = f"{source_id} cannot be collected: {known.problems[source_id]}"
        return ConflictError(text).unless_read(unread)
    if source_id in known.definitions:
        return ConflictError(f"{source_id} is not collected: its facts are pushed.")
    return ConflictError(f"{source_id} is read from the catalog on request.")

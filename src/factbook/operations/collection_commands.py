"""Commands that collect without a server: workers, single runs, and the state of sources."""

import asyncio
import math
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from factbook import process, shutdown
from factbook.backend import Backend
from factbook.catalog import ref as refs
from factbook.clock import Clock, now
from factbook.collection import run_start
from factbook.collection.run_start import NothingToCollectError
from factbook.errors import InputError, NotFoundError
from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.integrations.integration import Integration
from factbook.operations.commands import recorded_write
from factbook.scheduling import runs
from factbook.scheduling.lease import Leadership, Role
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.storage import Database

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector


log = structlog.get_logger("factbook.worker")

# Told again and again how far a run has come.
ShowRun = Callable[[RunRecord], None]
_SHOWN_EVERY = 0.5
MOST_FAILED: Final = 1_000
_KEPT_FOR_A_WHILE: Final = "nothing new came; older values are kept for a while"


class SourceDetail(NamedTuple):
    """A source, its condition, its last run with gaps, and entities for which it failed."""

    source: DataSource
    condition: freshness.Condition
    run: RunRecord | None
    gaps: list[runs.CountedGap]
    failed: list[tuple[str, str]]


class SourceStatus(NamedTuple):
    """A collected source: its health at a given time (None: it never ran) and its next run."""

    source: DataSource
    health: SourceHealth | None
    next_run: int | None
    at: int


async def run_collector(backend: Backend, sharing: "type[LaneCollector] | None" = None) -> None:
    """Collect due sources and do the housekeeping until told to stop; hand over unfinished work.

    On PostgreSQL with other workers, if `sharing` is given.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    working = asyncio.create_task(_collect_until_stopped(backend, sharing))
    working.add_done_callback(lambda _: told.set())
    await told.wait()
    bound = shutdown.exit_within()
    await shutdown.cancel([working], math.inf)
    with suppress(asyncio.CancelledError):
        working.result()
    log.info("worker.stopped")
    # Threads of DBOS rest for up to a minute before they ask again for a database that is away.
    shutdown.exit_in_order(bound)


async def _collect_until_stopped(backend: Backend, sharing: "type[LaneCollector] | None") -> None:
    async with backend.opened() as database:
        process.settle_memory()
        registry = backend.registry(database)
        sources = sorted((await registry.current()).integrations)
        log.info("worker.started", database=database.dialect, sources=sources)
        if database.dialect == "sqlite":
            sharing = None
        elif sharing is None:
            missing = "Install factbook[workers] for workers that share the work."
            log.warning("worker.shares_nothing", advice=missing)
        role: Role = "worker" if sharing is None else "sharing"
        await backend.worker(database, registry, role, sharing).run()


async def collect_now(
    backend: Backend, source_id: str, ref: str | None, show: ShowRun, clock: Clock = now
) -> RunRecord:
    """Collect one source now, for one entity or for all, and return how the run ended.

    Follows the run of all entities that is under way, if there is one, and leaves the work to the
    process that collects, if there is one. Raises InputError for an unknown source, NotFoundError
    for an unknown entity or one that the source does not cover.
    """
    async with backend.opened() as database:
        integration = await _find_integration(backend, database, source_id)
        leadership = Leadership(database, process.holder(), "server", clock)
        collector = backend.collector(database, [integration], clock=leadership.clock)
        try:
            await leadership.held()
            run_id = await _begin_run(database, integration, ref, leadership.clock())
            while (run := await _ended_run(database, run_id)).finished_at is None:
                show(run)
                if await leadership.held():
                    await collector.work()
                else:
                    await collector.let_go()
                    await asyncio.sleep(_SHOWN_EVERY)
        finally:
            await collector.stop()
            await leadership.release()
        show(run)
        return run


async def list_statuses(backend: Backend, clock: Clock = now) -> list[SourceStatus]:
    """List every collected source with its health."""
    async with backend.opened() as database:
        known = await runs.fetch_health(database)
        collected = (await backend.registry(database).current()).integrations
    at, sources = clock(), [one.source for one in collected.values()]
    found = [(source, known.get(source.id)) for source in sources]
    return [SourceStatus(*each, freshness.next_run_time(*each, at), at) for each in found]


async def find_detail(backend: Backend, id_: str, *, failed: bool) -> SourceDetail:
    """Details of the source with this id; raises InputError for one that is not collected."""
    async with backend.opened() as database:
        source = (await _find_integration(backend, database, id_)).source
        return await read_source_detail(database, source, now(), failed=failed)


async def read_source_detail(
    database: Database, source: DataSource, now: int, *, failed: bool
) -> SourceDetail:
    """The details of a source; `failed` adds up to `MOST_FAILED` entities, each with a reason."""
    found = await runs.fetch_source_health(database, source.id)
    last = found.last if found else None
    return SourceDetail(
        source,
        freshness.source_condition(source, found, now),
        last,
        await runs.list_gaps(database, last.id) if last else [],
        await _failed_entities(database, last) if last and failed else [],
    )


async def _failed_entities(database: Database, last: RunRecord) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after: int | None = 0
    while after is not None and len(found) < MOST_FAILED:
        page = await store.page_failures(
            database, last.source_id, last.started_at, after, MOST_FAILED
        )
        found += [
            (one.ref, next(iter(one.reasons.values()), _KEPT_FOR_A_WHILE)) for one in page.failures
        ]
        after = page.more
    return found[:MOST_FAILED]


async def _find_integration(backend: Backend, database: Database, source_id: str) -> Integration:
    collected = (await backend.registry(database).current()).integrations
    found = collected.get(source_id)
    if found is None:
        known = ", ".join(collected) or "none"
        raise InputError(f'No source "{source_id}" is collected. Those that are: {known}.')
    return found


async def _begin_run(
    database: Database, integration: Integration, ref: str | None, now: int
) -> int:
    """Queue a run, or join the one under way, and return its id."""
    source_id = integration.source.id
    entity_id = None
    if ref is not None:
        entity_id = await run_start.find_entity_id(
            database, str(refs.parse_ref(ref, kind="component"))
        )
    write = recorded_write(database, audit.make_run_entry(source_id, ref), now)
    try:
        return await run_start.begin_or_join_run(database, integration, now, entity_id, write)
    except NothingToCollectError:
        text = f"{source_id} is not about {ref}: its entityFilter says so."
        raise NotFoundError(text) from None


async def _ended_run(database: Database, run_id: int) -> RunRecord:
    found = await runs.fetch_run(database, run_id)
    assert found is not None
    return found

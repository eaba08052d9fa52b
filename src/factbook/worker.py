"""Background work beside requests: housekeeping, collection, imports and evaluation of checks.

Among the processes on a database, the holder of one lease does the housekeeping, and the holder of
another collects and imports.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import structlog

from factbook import shutdown
from factbook.audit.trail import MONTHLY_AUDIT, delete_old_records
from factbook.auth import invitations, sessions, tokens
from factbook.auth.oauth import clients, consents
from factbook.catalog.store import browse, index_rows, stored_sets
from factbook.checks import scorecard_figures
from factbook.checks.results import state_store
from factbook.checks.results.evaluator import Evaluation
from factbook.clock import DAY, MINUTE, SECOND, Clock, Throttle, iso
from factbook.collection import run_start
from factbook.collection.collector import Collector
from factbook.collection.run_start import Arrivals
from factbook.datasources import clients as source_clients
from factbook.datasources.registry import Registry, SourceSnapshot
from factbook.errors import OutdatedError, UnavailableError
from factbook.events.store import delete_old_events
from factbook.facts import retention
from factbook.facts.datasource import DataSource
from factbook.importers import records
from factbook.importers.runner import ImportRunner
from factbook.importers.snapshot import PREFIX
from factbook.integrations.integration import Integration
from factbook.scheduling import housekeeping, lease, runs
from factbook.scheduling.housekeeping import RetentionClock
from factbook.scheduling.lease import Leadership
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from factbook.storage.migrations import check_migrations
from factbook.storage.partitions import extend_partitions
from factbook.telemetry.logs import redact_text
from factbook.webhooks import store
from factbook.webhooks.digests import DigestSender
from factbook.webhooks.sender import WebhookSender

log = structlog.get_logger("factbook.worker")

_LEASE = "housekeeping"
# The longest delay before a requested collection starts, and before a worker that is older than the
# schema stops.
_SOON = SECOND


class Round(NamedTuple):
    """One round of the housekeeping; `time` is the reference for retention."""

    database: Database
    settings: Settings
    sources: tuple[DataSource, ...]
    time: int
    now: int
    pace: Throttle

    def before(self, days: int) -> int:
        """Cut-off time for data that is kept for this many days."""
        return self.time - days * DAY


Part = Callable[[Round], Awaitable[object]]


class Worker:
    """Periodic background work, until cancelled."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        registry: Registry,
        clock: Clock,
        holder: str,
        collector: Collector | None = None,
        courier: WebhookSender | None = None,
        runner: ImportRunner | None = None,
        digests: DigestSender | None = None,
        *,
        leadership: Leadership | None = None,
        throttle: Callable[[], Throttle] = Throttle,
    ) -> None:
        """Collect and import while this process has the `leadership`; always if that is None.

        `throttle` makes the throttle of each housekeeping round.
        """
        self._database = database
        self._settings = settings
        self._registry = registry
        self._clock = clock
        self._holder = holder
        self._collector = collector
        self._arrivals = Arrivals(database, clock)
        self._courier = courier
        self._runner = runner
        self._digests = digests
        self._leadership = leadership
        self._throttle = throttle
        self._evaluation = Evaluation(database, clock)
        self._retention: RetentionClock | None = None
        self._failing: set[str] = set()  # parts of the housekeeping

    async def run(self) -> None:
        """Work until cancelled; a failure is logged and retried in the next round.

        Raises OutdatedError when the schema is newer than this release, which then stops writing.
        """
        # No TaskGroup: it forwards a cancellation only once, and waits forever if that gets lost.
        tasks = [asyncio.create_task(loop) for loop in self._loops()]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        except OutdatedError as error:
            log.error("worker.outdated", reason=str(error))
            raise
        finally:
            await shutdown.uninterrupted(self._stop(tasks))

    def _loops(self) -> Iterator[Coroutine[None, None, None]]:
        yield self._repeat("schema", self._check, _SOON)
        yield self._repeat("housekeeping", self.work, housekeeping.HOUSEKEEPING_INTERVAL)
        yield self._repeat("requests", self.collect, _SOON)
        yield self._repeat("checks", self.evaluate, _SOON)
        if self._collector is not None:
            yield self._repeat("collecting", self.tick, 0)
            yield self._repeat("arrivals", self.collect_new, _SOON)
            # A round with much to plan takes longer than the lease lasts.
            yield self._repeat("leading", self._is_leading, _SOON)
        if self._runner is not None:
            yield self._repeat("importing", self.import_, _SOON)
        if self._courier is not None:
            yield self._repeat("webhooks", self._courier.tick, _SOON)
        if self._digests is not None:
            yield self._repeat("digests", self._digests.tick, MINUTE)

    async def _check(self) -> None:
        # Notices a missing file, or new space on a full disk, before the next write.
        await self._database.check()
        await check_migrations(self._database)

    async def _stop(self, tasks: list["asyncio.Task[None]"]) -> None:
        await shutdown.cancel(tasks)
        if self._runner is not None:
            await self._runner.let_go()
        if self._collector is not None:
            await self._collector.stop()
        if self._courier is not None:
            await self._courier.stop()
        if self._digests is not None:
            await self._digests.stop()
        if self._leadership is not None:
            # If this fails, the lease lapses.
            with suppress(UnavailableError, TimeoutError):
                async with asyncio.timeout(shutdown.RELEASE_SECONDS):
                    await self._leadership.release()

    async def collect(self) -> int:
        """Serve the refresh requests; returns their number."""
        known = await self._registry.current()
        sources = tuple(known.sources.values())
        live = _live(known) if self._collector else ()
        return await run_start.collect_requested(self._database, sources, self._clock, live)

    async def collect_new(self) -> int:
        """Start collecting new entities if this process is the one that collects."""
        if not await self._is_leading():
            return 0
        return await self._arrivals.collect(_live(await self._registry.current()))

    async def tick(self) -> None:
        """Do one round of collecting if this process is the one that collects."""
        if self._collector is None:
            return
        if not (await self._registry.current()).integrations:
            await asyncio.sleep(_SOON / SECOND)
            return
        if await self._is_leading():
            await self._collector.tick()
        else:
            await self._collector.stand_by()

    async def evaluate(self) -> None:
        """Evaluate checks that are being published or are due."""
        await self._evaluation.tick()

    async def import_(self) -> None:
        """Start the imports that are due if this process is the one that collects."""
        if self._runner is None:
            return
        if await self._is_leading():
            await self._runner.tick()
        else:
            await self._runner.let_go()

    async def _is_leading(self) -> bool:
        return self._leadership is None or await self._leadership.held()

    async def work(self) -> bool:
        """Do one round if no other process holds the lease; returns true if it was done.

        If a part fails, the others still run; the failure is logged, and recorded for the doctor.
        """
        # With a wrong clock, this process would abandon runs of others, or delete data too early.
        now = await lease.fetch_shared_time(self._database, self._clock)
        if not await lease.claim_lease(
            self._database, _LEASE, self._holder, now, 2 * housekeeping.HOUSEKEEPING_INTERVAL
        ):
            return False
        sources = tuple((await self._registry.current()).sources.values())
        time = await self._retention_time(now)
        round_ = Round(self._database, self._settings, sources, time, now, self._throttle())
        for name, part in PARTS.items():
            error = await self._error(name, part, round_)
            ended_at = await lease.fetch_shared_time(self._database, self._clock)
            note = partial(housekeeping.record_task_end, part=name, error=error, now=ended_at)
            await self._database.write(note)
        await self._database.write(partial(housekeeping.delete_other_tasks, parts=PARTS))
        return True

    async def _retention_time(self, now: int) -> int:
        last = self._retention.trusted_at if self._retention else None
        time, clock = await housekeeping.advance_retention_clock(self._database, now, last)
        if clock.refused_at is not None and not (self._retention and self._retention.refused_at):
            log.error("worker.clock_not_believed", clock=iso(now), trusted=iso(clock.trusted_at))
        self._retention = clock
        return time

    async def _error(self, name: str, part: Part, round_: Round) -> str | None:
        """Run a part of a round; returns its error message, or None if it succeeded."""
        try:
            await part(round_)
        except OutdatedError:
            raise
        except Exception as error:
            if name not in self._failing:
                trace = None if isinstance(error, UnavailableError) else error
                log.error("worker.part_failed", part=name, error=str(error), exc_info=trace)
            self._failing.add(name)
            return redact_text(f"{type(error).__name__}: {error}")
        if name in self._failing:
            log.info("worker.part_recovered", part=name)
        self._failing.discard(name)
        return None

    async def _repeat(
        self, name: str, work: Callable[[], Awaitable[object]], interval: int
    ) -> None:
        failing = False
        while True:
            try:
                await work()
            except OutdatedError:
                raise
            except UnavailableError as error:
                if not failing:
                    log.warning("worker.unavailable", work=name, cause=error.cause)
                failing = True
            except Exception as error:
                if not failing:
                    log.error("worker.failed", work=name, exc_info=error)
                failing = True
            else:
                if failing:
                    log.info("worker.recovered", work=name)
                failing = False
            await asyncio.sleep(max(interval, _SOON if failing else 0) / SECOND)


def _live(known: SourceSnapshot) -> list[Integration]:
    """List the integrations that are collected on a schedule: all except drafts."""
    return [one for one in known.integrations.values() if not one.source.draft]


async def sweep(
    database: Database, settings: Settings, sources: tuple[DataSource, ...], now: int
) -> None:
    """Delete data past the retention of the settings and of each source's lifecycle."""
    for part in SWEEPS.values():
        await part(Round(database, settings, sources, now, now, Throttle()))


async def _sweep_entities(round_: Round) -> None:
    def forget(transaction: Transaction) -> list[int]:
        gone = stored_sets.sweep_history(
            transaction,
            kept=round_.settings.revisions_kept,
            revisions_before=round_.before(round_.settings.revision_days),
            removed_before=round_.before(round_.settings.removed_days),
        )
        if gone:
            retention.delete_facts(transaction, gone)
        transaction.evaluate_checks()
        return gone

    if gone := await round_.database.write(forget):
        log.info("worker.swept", entities=len(gone))
    await round_.pace.rest()


async def _sweep_search_keys(round_: Round) -> None:
    if gone := await index_rows.sweep_search_keys(round_.database, round_.pace):
        log.info("worker.swept", search_keys=gone)


async def _sweep_sessions(round_: Round) -> None:
    def forget(transaction: Transaction) -> None:
        sessions.delete_ended_sessions(transaction, round_.time)
        invitations.delete_ended_invitations(transaction, round_.time)
        tokens.delete_token_usage(transaction, round_.before(tokens.USAGE_DAYS) // DAY)
        consents.delete_ended_consents(transaction, round_.time)
        clients.delete_unused_registrations(transaction, round_.time)

    await round_.database.write(forget)
    await round_.pace.rest()


async def _sweep_audit(round_: Round) -> None:
    await extend_partitions(round_.database, MONTHLY_AUDIT, round_.now)
    if days := round_.settings.audit_days:
        await delete_old_records(round_.database, round_.before(days), round_.pace)


async def _sweep_history(round_: Round) -> None:
    await extend_partitions(round_.database, retention.MONTHLY_HISTORY, round_.now)
    await retention.drop_months(round_.database, round_.sources, round_.time)
    gone = await retention.sweep_history(round_.database, round_.sources, round_.time, round_.pace)
    if gone:
        log.info("worker.swept", history_rows=gone)


async def _expire_values(round_: Round) -> None:
    if gone := await retention.sweep_expired(
        round_.database, round_.sources, round_.now, round_.pace
    ):
        log.info("worker.expired", entities=gone)


async def _sweep_runs(round_: Round) -> None:
    await runs.sweep_runs(round_.database, round_.time)
    await round_.pace.rest()


async def _sweep_memories(round_: Round) -> None:
    # Importers don't rewrite what they remember about things that never change.
    imported = await records.list_importers_run_since(
        round_.database, round_.before(source_clients.MEMORY_DAYS)
    )
    ids = [source.id for source in round_.sources] + [f"{PREFIX}{id_}" for id_ in imported]
    await source_clients.sweep_memories(round_.database, ids, round_.time)
    await round_.pace.rest()


async def _sweep_events(round_: Round) -> None:
    if gone := await sweep_events(
        round_.database, round_.before(round_.settings.event_days), round_.pace
    ):
        log.info("worker.swept", events=gone)


async def sweep_events(database: Database, before: int, pace: Throttle) -> int:
    """Delete events, and abandoned messages, from before a time."""
    gone = await delete_old_events(database, before, pace)
    await database.write(lambda transaction: store.delete_given_up(transaction, before))
    return gone


async def _sweep_checks(round_: Round) -> None:
    before = round_.before(round_.settings.check_days)
    gone = await state_store.sweep_changes(round_.database, before, round_.pace)
    gone += await state_store.sweep_days(round_.database, before, round_.pace)
    gone += await round_.database.write(
        lambda transaction: scorecard_figures.trim_trends(transaction, before)
    )
    if gone:
        log.info("worker.swept", check_rows=gone)


async def _record_checks(round_: Round) -> None:
    await state_store.record_days(round_.database, round_.now, round_.pace)
    await round_.database.write(
        lambda transaction: scorecard_figures.record_trends(transaction, round_.now)
    )
    await round_.pace.rest()


async def _build_trigrams(round_: Round) -> None:
    if built := await browse.build_trigram_indexes(round_.database):
        log.info("worker.built", indexes=built)


SWEEPS: Mapping[str, Part] = {
    "entities": _sweep_entities,
    "search_keys": _sweep_search_keys,
    "sessions": _sweep_sessions,
    "audit": _sweep_audit,
    "history": _sweep_history,
    "runs": _sweep_runs,
    "memories": _sweep_memories,
    "events": _sweep_events,
    "checks": _sweep_checks,
}
PARTS: Mapping[str, Part] = {
    **SWEEPS,
    "trigrams": _build_trigrams,
    "samples": lambda round_: run_start.sample_catalog(round_.database, round_.sources, round_.now),
    "values": _expire_values,
    "days": _record_checks,
}

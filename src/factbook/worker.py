"""Background work beside requests: retention, collection, imports and evaluation of checks.

Among the processes on a database, the holder of one lease does the housekeeping, and the holder of
another collects and imports.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial

import structlog

from factbook import shutdown
from factbook.checks.results.evaluator import Evaluation
from factbook.clock import MINUTE, SECOND, Clock, Throttle, iso
from factbook.collection import run_start
from factbook.collection.collector import Collector
from factbook.collection.run_start import Arrivals
from factbook.datasources.registry import Registry, SourceSnapshot
from factbook.errors import OutdatedError, UnavailableError
from factbook.importers.runner import ImportRunner
from factbook.integrations.integration import Integration
from factbook.scheduling import housekeeping, lease
from factbook.scheduling.housekeeping import RetentionClock
from factbook.scheduling.lease import Leadership
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.migrations import check_migrations
from factbook.sweeps import PARTS, Part, Round
from factbook.telemetry.logs import redact_text
from factbook.webhooks.digests import DigestSender
from factbook.webhooks.sender import WebhookSender

log = structlog.get_logger("factbook.worker")

_LEASE = "housekeeping"
# The longest delay before a requested collection starts, and before a worker that is older than the
# schema stops.
_SOON = SECOND


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
        given = Round(self._database, self._settings, sources, time, now, self._throttle())
        for name, part in PARTS.items():
            error = await self._error(name, part, given)
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

    async def _error(self, name: str, part: Part, given: Round) -> str | None:
        """Run a part of a round; returns its error message, or None if it succeeded."""
        try:
            await part(given)
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

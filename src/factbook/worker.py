"""Background work beside requests: retention and collection.

Of all processes on a database, the one that holds the lease does the housekeeping for all. Of the
serving processes one also collects; processes started as workers collect beside it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

import structlog

from factbook import collection
from factbook.audit import trail as audit
from factbook.auth import invitations, sessions
from factbook.catalog.store import stored_sets as pushing
from factbook.clock import DAY, HOUR, MINUTE, SECOND, Clock, Pace
from factbook.collection import Collector, Registry
from factbook.errors import OutdatedError, UnavailableError
from factbook.events import store as events
from factbook.facts import retention as trimming
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.scheduling import lease, run_queue, runs
from factbook.settings import Settings
from factbook.storage import Database, Transaction, migrations
from factbook.webhooks import WebhookSender
from factbook.webhooks import store as webhooks

log = structlog.get_logger("factbook.worker")

_LEASE = "housekeeping"
_COLLECTOR = "collector"
_EVERY = 10 * MINUTE
# How long somebody who asked for a collection waits for its begin, and how long a worker that the
# schema has left behind goes on.
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
        *,
        alone: bool = False,
    ) -> None:
        """With `alone` the collector works only while no other such process has a working one."""
        self._database = database
        self._settings = settings
        self._registry = registry
        self._clock = clock
        self._holder = holder
        self._collector = collector
        self._courier = courier
        self._alone = alone
        self._leased_until = 0
        self._trimmed_at: int | None = None
        self._leads = False

    async def run(self) -> None:
        """Work until cancelled; a failure is logged and tried again the next time.

        Raises OutdatedError when the schema has left this release behind: it writes no more.
        """
        outdated: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as tasks:
                schema = partial(migrations.check, self._database)
                tasks.create_task(self._repeat("schema", schema, _SOON))
                tasks.create_task(self._repeat("housekeeping", self.work, _EVERY))
                tasks.create_task(self._repeat("requests", self.collect, _SOON))
                if self._collector is not None:
                    tasks.create_task(self._repeat("collecting", self.tick, 0))
                if self._courier is not None:
                    tasks.create_task(self._repeat("webhooks", self._courier.tick, _SOON))
        except* OutdatedError as errors:
            outdated = errors.exceptions[0]
            log.error("worker.outdated", reason=str(outdated))
        finally:
            await self._stop()
        if outdated is not None:
            raise outdated

    async def _stop(self) -> None:
        """End the loops and release unfinished work at once."""
        if self._collector is not None:
            await self._collector.stop()
        if self._courier is not None:
            await self._courier.stop()
        if self._leads:
            # Without it the lease lapses.
            with suppress(UnavailableError):
                await lease.release(self._database, _COLLECTOR, self._holder)

    async def collect(self) -> int:
        """Serve the refresh requests; returns their number."""
        known = await self._registry.current()
        live = [one for one in known.integrations.values() if not one.source.draft]
        sources = tuple(known.sources.values())
        return await collection.collect_requested(
            self._database, sources, self._clock(), live if self._collector else ()
        )

    async def tick(self) -> None:
        """Do one round of collecting if this process is the one that collects."""
        if self._collector is None:
            return
        if not (await self._registry.current()).integrations:
            await asyncio.sleep(_SOON / SECOND)
            return
        if self._alone and not await self._is_leading():
            # What it still has goes on, and nothing new is begun.
            await self._collector.renew()
            await asyncio.sleep(_SOON / SECOND)
        else:
            await self._collector.tick()

    async def _is_leading(self) -> bool:
        """True if this is the one process of its kind that collects; renewed now and then."""
        now = self._clock()
        claimed_at = self._leased_until - run_queue.HELD
        if not 0 <= now - claimed_at < run_queue.RENEWED_EVERY:
            self._leads = await lease.claim(
                self._database, _COLLECTOR, self._holder, now, run_queue.HELD
            )
            self._leased_until = now + run_queue.HELD
        return self._leads

    async def work(self) -> bool:
        """One round, if no other process holds the lease; whether it was done."""
        now = self._clock()
        if not await lease.claim(self._database, _LEASE, self._holder, now, 2 * _EVERY):
            return False
        sources = tuple((await self._registry.current()).sources.values())
        await sweep(self._database, self._settings, sources, self._trimming_time(now))
        await collection.sample_catalog(self._database, sources, now)
        return True

    def _trimming_time(self, now: int) -> int:
        """The time that decides what was kept for long enough.

        A clock that leaps ahead would take with it what it was not to be set back for: it goes by
        an hour from one round to the next at most.
        """
        if self._trimmed_at is not None:
            now = min(now, self._trimmed_at + HOUR)
        self._trimmed_at = now
        return now

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


async def sweep(
    database: Database, settings: Settings, sources: tuple[DataSource, ...], now: int
) -> None:
    """Forget what was kept for as long as the settings and each source's lifecycle say."""

    def forget(transaction: Transaction) -> list[int]:
        gone = pushing.sweep(
            transaction,
            kept=settings.revisions_kept,
            revisions_before=now - settings.revision_days * DAY,
            removed_before=now - settings.removed_days * DAY,
        )
        if gone:
            store.forget(transaction, gone)
        return gone

    def forget_ended(transaction: Transaction) -> None:
        sessions.forget_ended(transaction, now)
        invitations.forget_ended(transaction, now)

    pace = Pace()
    gone = await database.write(forget)
    await database.write(forget_ended)
    await pace.rest()
    if settings.audit_days:
        await audit.sweep(database, now - settings.audit_days * DAY, pace)
    trimmed = await trimming.sweep(database, sources, now, pace)
    await runs.sweep(database, now)
    await pace.rest()
    await collection.sweep_memories(database, [source.id for source in sources], now)
    await pace.rest()
    told = await sweep_events(database, now - settings.event_days * DAY, pace)
    if gone or trimmed or told:
        log.info("worker.swept", entities=len(gone), history_rows=trimmed, events=told)


async def sweep_events(database: Database, before: int, pace: Pace) -> int:
    """Forget events from before a time, and the messages of that time that were given up."""
    gone = await events.sweep(database, before, pace)
    await database.write(lambda transaction: webhooks.forget(transaction, before))
    return gone

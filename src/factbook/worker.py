"""The work that goes on beside requests: trimming what has been kept long enough, and collecting.

Of all processes on a database one holds the lease and does the housekeeping for all.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from factbook import collecting
from factbook.catalog.store import pushing
from factbook.clock import DAY, MINUTE, SECOND, Clock
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.scheduling import lease
from factbook.settings import Settings
from factbook.storage import Database, Transaction

log = structlog.get_logger("factbook.worker")

_LEASE = "housekeeping"
_EVERY = 10 * MINUTE
# How long somebody who asked for a collection waits for its begin.
_SOON = SECOND


class Worker:
    """Does what is due, once in a while, until it is cancelled."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        sources: tuple[DataSource, ...],
        clock: Clock,
        holder: str,
    ) -> None:
        self._database = database
        self._settings = settings
        self._sources = sources
        self._clock = clock
        self._holder = holder

    async def run(self) -> None:
        """Work until cancelled; a failure is logged and tried again the next time."""
        await asyncio.gather(
            self._repeat("housekeeping", self.work, _EVERY),
            self._repeat("collecting", self.collect, _SOON),
        )

    async def collect(self) -> int:
        """Do what was asked for; the number of requests."""
        return await collecting.collect_requested(self._database, self._sources, self._clock())

    async def work(self) -> bool:
        """One round, if no other process holds the lease; whether it was done."""
        now = self._clock()
        if not await lease.claim(self._database, _LEASE, self._holder, now, 2 * _EVERY):
            return False
        await sweep(self._database, self._settings, self._sources, now)
        await collecting.sample_catalog(self._database, self._sources, now)
        return True

    async def _repeat(
        self, name: str, work: Callable[[], Awaitable[object]], interval: int
    ) -> None:
        failing = False
        while True:
            try:
                await work()
            except Exception as error:
                if not failing:
                    log.error("worker.failed", work=name, exc_info=error)
                failing = True
            else:
                if failing:
                    log.info("worker.recovered", work=name)
                failing = False
            await asyncio.sleep(interval / SECOND)


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

    gone = await database.write(forget)
    trimmed = 0
    for source in sources:
        trimmed += await store.sweep(database, source, now)
    if gone or trimmed:
        log.info("worker.swept", entities=len(gone), history_rows=trimmed)

"""Both kinds of dispatchers, inside a test that says what time it is.

Which batches are due, wait or are late goes by the test's clock; DBOS hands lanes on by its own.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from factbook.clock import Clock
from factbook.collection.collector import Collector
from factbook.collection.lanes import LaneCollector
from factbook.datasources.clients import Connect
from factbook.integrations.integration import Integration
from factbook.scheduling import run_queue
from factbook.scheduling.lease import Leadership
from tests.collection.tools import Dispatcher
from tests.service import Service

ALONE_AND_SHARING = pytest.mark.parametrize(
    ("database_url", "sharing"),
    [("sqlite", False), ("postgresql", False), ("postgresql", True)],
    indirect=["database_url"],
    ids=["sqlite", "postgresql", "postgresql, sharing"],
)


# For simulated days: each database and each dispatcher once.
ALONE_OR_SHARING = pytest.mark.parametrize(
    ("database_url", "sharing"),
    [("sqlite", False), ("postgresql", True)],
    indirect=["database_url"],
    ids=["sqlite", "postgresql, sharing"],
)


class SharingWorker:
    """The worker that leads; others on the same database take lanes from it."""

    def __init__(
        self, service: Service, integrations: Sequence[Integration], connect: Connect
    ) -> None:
        self._clock: Clock = service.time
        self._database = service.state.database
        self._sources = [one.source.id for one in integrations]
        self._leadership = Leadership(self._database, "sharing", "sharing", self._clock)
        self._collector = LaneCollector(
            self._database,
            integrations,
            connect,
            self._clock,
            "sharing",
            leadership=self._leadership,
            url=service.database_url,
        )

    async def drain(self) -> None:
        await self._turn()
        while await self._left():
            await self._turn()

    async def _turn(self) -> None:
        assert await self._leadership.held()
        await self._collector.tick()

    async def _left(self) -> bool:
        """Whether a batch is ready, or one has been begun and has not ended."""
        now = self._clock()
        found = await run_queue.measure_backlog(self._database, now)
        return bool(
            found.under_way or await run_queue.list_ready_lanes(self._database, self._sources, now)
        )

    async def stop(self) -> None:
        """Leave the work to others, and end DBOS."""
        await self._collector.stop()
        await self._leadership.release()


@asynccontextmanager
async def dispatcher(
    service: Service, integrations: Sequence[Integration], connect: Connect, *, shares: bool
) -> AsyncIterator[Dispatcher]:
    """What collects until the end of the block: a process alone, or a worker that shares."""
    if not shares:
        yield Collector(service.state.database, integrations, connect, service.time, "alone")
        return
    worker = SharingWorker(service, integrations, connect)
    try:
        yield worker
    finally:
        await worker.stop()

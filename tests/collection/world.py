"""A service, a made-up vendor, and the collector between them, for tests of runs."""

from functools import partial
from typing import Any

from factbook.collection.collector import Collector
from factbook.facts import store
from factbook.facts.freshness import Latest
from factbook.scheduling import run_queue, runs
from factbook.scheduling.run_queue import Lane
from factbook.scheduling.runs import RunRecord
from factbook.scheduling.schedule import find_next_start
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.service import Service

OPEN, CLOSED, LATEST = "codehost.issues.open", "codehost.issues.closed", "codehost.latest"


class World:
    """A service, a vendor, and a collector between them that a test tells when to work."""

    def __init__(self, service: Service, **options: Any) -> None:
        self.service = service
        self.database = service.state.database
        self.vendor = Vendor()
        self.integration = integration(self.vendor, **options)
        self.collector = self.another("a")

    def another(self, holder: str) -> Collector:
        pair = (self.vendor, self.integration)
        return collector(self.database, pair, clock=self.service.time, holder=holder)

    async def lose(self, most: int) -> list[str]:
        """Begin so many batches, one after another, as processes that end in them; their work."""
        lane, taken = Lane("vendor token", 1, 0), list[str]()
        for number in range(most):
            batch = await self.database.write(
                partial(
                    run_queue.take_batch,
                    holder=f"dead-{number}",
                    source_ids=["vendor"],
                    lane=lane,
                    now=self.service.time(),
                )
            )
            taken += [batch.work] if batch else []
        return taken

    async def push(self, *names: str) -> None:
        assert (await self.service.push("all", *map(repository, names))).status_code == 200

    async def next_run(self) -> int:
        """Go on to the source's next start, and do what is due."""
        time = self.service.time
        time.now = find_next_start("vendor", "0 * * * *", time.now)
        await self.collector.drain()
        return time.now

    async def facts(self, name: str, source: str = "vendor") -> Latest | None:
        row = await self.database.one(
            "SELECT id FROM entities WHERE ref = ?", (f"component:default/{name}",)
        )
        assert row is not None
        return await store.find_latest(self.database, source, row[0])

    async def values(self, name: str) -> dict[str, Any]:
        found = await self.facts(name)
        return {} if found is None else found.facts

    async def reasons(self, name: str) -> dict[str, str]:
        found = await self.facts(name)
        return {} if found is None else found.reasons

    async def health(self) -> runs.SourceHealth:
        return (await runs.fetch_health(self.database))["vendor"]

    async def last(self) -> RunRecord:
        found = (await self.health()).last
        assert found is not None
        return found

    async def count(self, table: str) -> int:
        row = await self.database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - own words
        assert row is not None
        return int(row[0])

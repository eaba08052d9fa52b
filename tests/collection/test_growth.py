"""Repositories in which nothing happens: asked every minute, stored once."""

from dataclasses import replace

import pytest

from factbook.clock import HOUR, MINUTE
from factbook.facts import history
from factbook.facts.datasource import Lifecycle
from factbook.integrations.integration import Collected
from factbook.storage import Database
from factbook.worker import Worker
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.no_rest import NoRest
from tests.service import NOON, Service, registry

REPOSITORIES = 50
TREE = ",".join(f"src/package_{number % 40}/module_{number}.py" for number in range(200))


class Repositories(Vendor):
    """A vendor that says the files of a repository, and the number of its issues."""

    async def _answer(self, target: str) -> Collected:
        found = await super()._answer(target)
        return replace(found, values=found.values | {"codehost.latest": f"{target}: {TREE}"})


async def size(database: Database) -> int:
    """Bytes of the file; on PostgreSQL, of the history with its indexes."""
    [row] = await database.all(
        "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        if database.dialect == "sqlite"
        else "SELECT pg_total_relation_size('facts_history')"
    )
    return int(row[0])


@pytest.mark.slow
async def test_an_hour_of_runs_that_find_nothing_new_takes_no_space(service: Service) -> None:
    names = [f"part-{number}" for number in range(REPOSITORIES)]
    await service.push("all", *map(repository, names))
    vendor, database = Repositories(), service.state.database
    source = integration(
        vendor, cadence="* * * * *", size=10, lifecycle=Lifecycle(time_to_live={"days": 90})
    )
    runs = collector(database, (vendor, source), clock=service.time)
    known = registry(service, (), [source])
    housekeeping = Worker(
        database, service.state.settings, known, service.time, "a", runs, throttle=NoRest
    )
    sizes = list[int]()
    for _ in range(HOUR // MINUTE):
        await runs.drain()
        await housekeeping.work()
        service.time.advance(MINUTE)
        sizes.append(await size(database))
    assert min(vendor.asked.values()) >= 59
    assert await database.one("SELECT COUNT(*) FROM facts_history") == (REPOSITORIES,)
    assert sizes[-1] == sizes[4]
    [row] = await history.page_history(database, ["vendor"], 1, None, None, None, 9)
    assert row.written_at < NOON + MINUTE
    assert row.confirmed_at is not None
    assert row.confirmed_at > NOON + 58 * MINUTE

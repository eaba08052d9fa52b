"""Runs that a server with a wrong clock begins, while another process collects."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from factbook import clock
from factbook.app import Application
from factbook.clock import HOUR
from factbook.integrations.integration import Integration
from factbook.scheduling import lease, runs
from factbook.settings import Settings
from tests.api.defining import SOURCES
from tests.collection.madeup import Vendor, collector, integration, repository
from tests.conftest import TOKEN_KEY
from tests.service import Service, Time

# Processes on a file have the clock of one machine.
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@asynccontextmanager
async def serving(database_url: str, integration: Integration) -> AsyncIterator[Service]:
    """A server that leaves the collecting to others."""
    settings = Settings(database_url=database_url, token_key=TOKEN_KEY, collect=False)
    application = Application(settings, integrations=(integration,))
    async with application.running() as state:
        service = Service(application, state, Time())
        service.time.now = clock.now()
        async with service.client(await service.token()) as http:
            service.http = http
            yield service


@pytest.mark.slow
@ON_POSTGRESQL
@pytest.mark.parametrize("entity", [None, "component:default/web"], ids=["everything", "one"])
@pytest.mark.parametrize("wrong", [-HOUR, HOUR], ids=["behind", "ahead"])
async def test_a_run_that_a_server_with_a_wrong_clock_begins_is_collected_at_once(
    database_url: str, monkeypatch: pytest.MonkeyPatch, wrong: int, entity: str | None
) -> None:
    vendor, right = Vendor(), time.time_ns
    made = integration(vendor, cadence=None)
    monkeypatch.setattr(time, "time_ns", lambda: right() + wrong * 1_000_000)
    async with serving(database_url, made) as service:
        database = service.state.database
        assert (await service.push("all", repository("web"))).status_code == 200
        before = await lease.fetch_shared_time(database)
        answer = await service.http.post(f"{SOURCES}/vendor/run", json={"entity": entity})
        assert answer.status_code == 202, answer.text
        monkeypatch.undo()
        await collector(database, (vendor, made)).drain()
        [run] = await runs.list_recent_runs(database, "vendor", 10)
        assert (run.state, run.covered) == ("done", 1)
        assert before <= run.started_at <= await lease.fetch_shared_time(database)

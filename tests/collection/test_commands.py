"""The processes and commands that collect: which of them work, and what they say."""

import asyncio
import json
from pathlib import Path

import pytest
from typer.testing import Result

from factbook.app import Application
from factbook.cli import sources
from factbook.clock import HOUR
from factbook.errors import InputError, NotFoundError
from factbook.operations.commands import collect_now, list_statuses
from factbook.scheduling.lease import Role
from factbook.scheduling.runs import RunRecord
from factbook.settings import Settings
from factbook.worker import Worker
from tests import commands
from tests.collection.madeup import DOWN, Vendor, integration, repository
from tests.conftest import TOKEN_KEY
from tests.processes import clean_environment
from tests.service import Service, Time, component


def application(service: Service, *vendors: Vendor, collect: bool = True) -> Application:
    """Another process's application on the same database, with these vendors."""
    settings = Settings(database_url=service.database_url, token_key=TOKEN_KEY, collect=collect)
    pairs = {f"vendor-{number}": vendor for number, vendor in enumerate(vendors)}
    return Application(
        settings,
        clock=service.time,
        integrations=tuple(integration(vendor, id_) for id_, vendor in pairs.items()),
        connect=lambda one: pairs[one.source.id].client,
    )


def worker(app: Application, service: Service, role: Role = "server") -> Worker:
    database = service.state.database
    return app.worker(database, app.registry(database), role)


async def hour_ago(service: Service, change: str) -> None:
    """Make the times that this changes an hour older: the database's clock is not for tests."""
    await service.state.database.write(lambda tx: tx.run(f"UPDATE {change}", (HOUR,)))


# Which process collects


async def test_a_worker_collects_by_itself_until_it_is_stopped(service: Service) -> None:
    await service.push("all", repository("web"))
    vendor, asked = Vendor(), asyncio.Event()

    async def note() -> None:
        asked.set()

    vendor.faults[""] = note
    task = asyncio.create_task(worker(application(service, vendor), service).run())
    async with asyncio.timeout(60):
        await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.both_databases
async def test_of_the_processes_of_servers_one_collects_until_it_falls_silent(
    service: Service,
) -> None:
    await service.push("all", repository("web"))
    first, second = Vendor(), Vendor()
    one, two = (worker(application(service, vendor), service) for vendor in (first, second))
    await one.tick()
    await two.tick()
    assert (first.asked.total(), second.asked.total()) == (1, 0)
    await hour_ago(service, "runs SET started_at = started_at - ?")
    service.time.advance(HOUR)
    await two.tick()  # whose clock decides nothing
    assert not second.asked
    await hour_ago(service, "leases SET held_until = held_until - ?")
    again = worker(application(service, second), service)
    await again.tick()
    assert second.asked.total() == 1


@pytest.mark.both_databases
async def test_a_server_leaves_the_collecting_to_a_worker_while_there_is_one(
    service: Service,
) -> None:
    await service.push("all", repository("web"))
    first, second = Vendor(), Vendor()
    server = worker(application(service, first), service)
    other = worker(application(service, second), service, "worker")
    await other.tick()
    await server.tick()
    assert (first.asked.total(), second.asked.total()) == (0, 1)
    task = asyncio.create_task(other.run())
    await asyncio.sleep(0)
    task.cancel()  # in order, so that others need not wait
    with pytest.raises(asyncio.CancelledError):
        await task
    await hour_ago(service, "runs SET started_at = started_at - ?")
    await worker(application(service, first), service).tick()
    assert first.asked.total() == 1


async def test_a_server_that_is_told_not_to_collect_leaves_it_to_workers(
    service: Service,
) -> None:
    await service.push("all", repository("web"))
    vendor = Vendor()
    app = application(service, vendor, collect=False)
    await worker(app, service).tick()
    assert not vendor.asked
    await worker(app, service, "worker").tick()
    assert vendor.asked.total() == 1


# factbook collect


async def collect(
    app: Application, time: Time, ref: str | None = None
) -> tuple[RunRecord, list[int]]:
    shown: list[int] = []
    run = await collect_now(app, "vendor-0", ref, lambda run: shown.append(run.covered), clock=time)
    return run, shown


async def test_collect_collects_everything_now_and_shows_how_far_it_is(service: Service) -> None:
    await service.push("all", *(repository(f"part-{number}") for number in range(9)))
    vendor = Vendor()
    run, shown = await collect(application(service, vendor), service.time)
    assert (run.state, run.reason, run.covered, run.entities) == ("done", "asked", 9, 9)
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0, 9)


async def test_collect_of_one_entity_asks_for_no_other(service: Service) -> None:
    await service.push("all", repository("web"), repository("shop"))
    vendor = Vendor()
    run, _ = await collect(application(service, vendor), service.time, "web")
    assert (run.covered, run.whole) == (1, False)
    assert vendor.asked == {"acme/web": 1}


@pytest.mark.both_databases
async def test_collect_follows_the_run_that_is_under_way(service: Service) -> None:
    await service.push("all", repository("web"))
    vendor = Vendor()
    app = application(service, vendor)
    await app.collector(service.state.database, app.integrations).begin_due()
    run, _ = await collect(app, service.time)
    assert (run.reason, run.covered) == ("cadence", 1)


async def test_collect_says_what_it_cannot_do(service: Service) -> None:
    await service.push("all", component("unmapped"))
    app, time = application(service, Vendor()), service.time
    with pytest.raises(InputError, match=r'No source "techdocs" is collected.*vendor-0'):
        await collect_now(app, "techdocs", None, print, clock=time)
    with pytest.raises(NotFoundError, match="no entity component:default/nobody"):
        await collect(app, time, "nobody")
    with pytest.raises(NotFoundError, match="vendor-0 is not about unmapped"):
        await collect(app, time, "unmapped")


# factbook sources


async def test_sources_are_listed_with_how_they_are_doing(service: Service) -> None:
    await service.push("all", repository("web"))
    good, bad, new = Vendor(), Vendor(), Vendor()
    bad.faults[""] = DOWN
    app = application(service, good, bad, new)
    for one in app.integrations[:2]:
        collector = app.collector(service.state.database, [one])
        await collector.drain()
        for pause in (30_000, 60_000):
            service.time.advance(pause)
            await collector.drain()
    statuses = await list_statuses(app, service.time)
    rows = {str(row[0]): row for row in sources.tabulate_sources(statuses).rows}
    assert rows["vendor-0"][1:8] == ("up", "3 minutes ago", 1, 0, 0, 0, 1)
    assert rows["vendor-1"][1:6] == ("down", None, 0, 1, 0)
    assert rows["vendor-1"][-1] == "upstream-error: vendor.test: answered 502"
    assert rows["vendor-2"][1:3] == ("new", None)
    shown = {one["id"]: one["health"] for one in map(sources.source_json, statuses)}
    assert shown["vendor-0"]["lastRun"]["covered"] == 1
    assert shown["vendor-1"]["downSince"] == "2026-11-21T12:03:00.000+00:00"
    assert shown["vendor-2"]["state"] == "new"
    json.dumps(shown)


def run(tmp_path: Path, *arguments: str) -> Result:
    """A command on a database of its own, without any integration."""
    url = {"FACTBOOK_DATABASE_URL": f"sqlite:///{tmp_path}/facts.db"}
    return commands.invoke(tmp_path, clean_environment() | url, *arguments)


def test_without_integrations_the_commands_say_so(tmp_path: Path) -> None:
    run(tmp_path, "migrate")
    listed = run(tmp_path, "sources", "--json")
    assert (listed.exit_code, json.loads(listed.stdout)) == (0, [])
    assert run(tmp_path, "sources").exit_code == 0
    refused = run(tmp_path, "collect", "github")
    assert refused.exit_code == 2
    assert 'No source "github" is collected. Those that are: none.' in refused.stderr

"""The service starts with a clock that is ahead: nothing is deleted until somebody confirms it."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime

import httpx2
import psycopg
import pytest
import structlog

from factbook.clock import DAY, HOUR, MINUTE, SECOND
from factbook.errors import InputError
from factbook.operations import commands
from factbook.operations.doctor.examination import examine
from factbook.scheduling import housekeeping
from factbook.storage import Database
from factbook.storage.migrations import introspect_schema
from factbook.worker import Worker
from tests.conftest import StartService
from tests.operations.doctor.conftest import nobody
from tests.service import NOON, Service, component
from tests.storage.snapshots import Snapshot, all_snapshots, load

FAR = 400 * DAY
BELIEVED = "factbook_housekeeping_clock_believed"
POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
# `start` needs an address of its own, which these tests replace by that of the empty database.
REPLACED = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# Of the tables, those in which rows are replaced all the time, or deleted for another reason.
OTHERS = {"leases", "housekeeping", "retention_clock", "search_keys", "schema_migrations"}
[NEWEST] = [one for one in all_snapshots() if one.schema == 10]
[EARLY] = [one for one in all_snapshots() if one.made_by == "018aeb9"]


def worker(service: Service) -> Worker:
    """The worker of a process that has just been started."""
    return service.application.worker(service.state.database, service.state.registry, "server")


async def a_round(service: Service) -> None:
    """What the first round of a process does."""
    service.time.advance(HOUR)  # the lease of the process before has lapsed
    assert await worker(service).work()


async def kept(database: Database) -> dict[str, int]:
    """How many rows every table has."""
    found = await introspect_schema(database)
    tables = {name.split()[1].partition(".")[0] for name in found if name.startswith("column ")}
    counts = {}
    for table in sorted(tables - OTHERS):
        row = await database.one(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a table of ours
        assert row is not None
        counts[table] = row[0]
    return counts


def less(before: dict[str, int], after: dict[str, int]) -> set[str]:
    """The tables from which rows have gone."""
    return {table for table, count in before.items() if after[table] < count}


def today(service: Service) -> date:
    return datetime.fromtimestamp(service.time() / SECOND, UTC).date()


async def confirm(service: Service) -> int:
    return await commands.confirm_retention_clock(service.application, today(service), service.time)


async def believed(service: Service) -> str:
    """The metric."""
    text = (await service.http.get("/metrics")).text
    [value] = re.findall(rf"^{BELIEVED} (\S+)$", text, re.MULTILINE)
    return str(value)


async def doctor(service: Service) -> list[tuple[str, str]]:
    """What the doctor finds of the housekeeping."""
    settings = service.state.settings
    flags = {"database_url": settings.database_url, "token_key": settings.token_key}
    found = examine(
        flags,
        lambda _: None,
        quick=True,
        clock=service.time,
        transport=httpx2.MockTransport(nobody),
    )
    return [(one.state, one.what) async for one in found if one.topic == "housekeeping"]


@pytest.fixture
async def filled(start: StartService, empty_database_url: str) -> Service:
    """A service on a database with rows in every table that is trimmed, after its first round."""
    return await on_snapshot(start, empty_database_url, NEWEST)


async def on_snapshot(start: StartService, url: str, snapshot: Snapshot) -> Service:
    await load(snapshot, url)
    service = await start(database_url=url)
    service.time.now = snapshot.time
    for number in range(3):
        await service.push("services", component(f"more-{number}"))
    await a_round(service)
    return service


@pytest.mark.slow
@REPLACED
@pytest.mark.spec("housekeeping.a-leap-deletes-nothing")
async def test_a_start_with_a_clock_that_is_ahead_deletes_nothing_until_it_is_confirmed(
    filled: Service,
) -> None:
    database = filled.state.database
    before = await kept(database)
    filled.time.advance(FAR)
    for _ in range(3):
        await a_round(filled)
    assert less(before, await kept(database)) == set()
    await confirm(filled)
    await a_round(filled)
    after = await kept(database)
    trimmed = {"revisions", "revision_changes", "removed_entities", "events", "audit", "sessions"}
    assert less(before, after) >= trimmed | {"invitations", "facts_history"}
    assert after["removed_entities"] == 0


@pytest.mark.slow
@pytest.mark.spec("housekeeping.a-leap-deletes-nothing")
async def test_the_refusal_is_logged_once_and_told_by_the_metric_and_the_doctor(
    start: StartService,
) -> None:
    service = await start()
    await a_round(service)
    assert await believed(service) == "1.0"
    assert [state for state, _ in await doctor(service)] == ["ok", "ok"]
    service.time.advance(FAR)
    one = worker(service)
    with structlog.testing.capture_logs() as told:
        for _ in range(3):
            service.time.advance(10 * MINUTE)
            assert await one.work()
    assert [each["event"] for each in told].count("worker.clock_not_believed") == 1
    assert await believed(service) == "0.0"
    assert (await service.http.get("/readyz")).status_code == 200
    found = await doctor(service)
    assert [state for state, _ in found] == ["ok", "warning"]
    assert "the clock isn't trusted" in found[1][1]
    await confirm(service)
    assert await believed(service) == "1.0"
    assert [state for state, _ in await doctor(service)] == ["ok", "ok"]


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 3, 14, 20])
async def test_a_service_that_was_away_for_up_to_three_weeks_deletes_as_ever(
    start: StartService, days: int
) -> None:
    service = await start(removed_days=0)
    await service.push("all", component("web"))
    await service.push("all")
    await a_round(service)
    await service.push("all", component("api"))
    await service.push("all")
    service.time.advance(days * DAY)
    await a_round(service)
    assert (await kept(service.state.database))["removed_entities"] == 0


@pytest.mark.slow
@REPLACED
async def test_a_database_of_an_early_release_is_not_emptied_by_its_upgrade(
    start: StartService, empty_database_url: str
) -> None:
    await load(EARLY, empty_database_url)
    service = await start(database_url=empty_database_url)
    service.time.now = EARLY.time + FAR
    before = await kept(service.state.database)
    await a_round(service)
    assert less(before, await kept(service.state.database)) == set()
    assert await believed(service) == "0.0"


@pytest.mark.slow
async def test_a_database_where_nobody_kept_house_is_not_emptied(start: StartService) -> None:
    service = await start()
    await service.push("all", component("web"))
    await service.push("all")
    service.time.advance(FAR)
    await a_round(service)
    assert (await kept(service.state.database))["removed_entities"] == 1


@pytest.mark.slow
async def test_a_clock_that_was_ahead_and_confirmed_deletes_nothing_once_it_is_set_back(
    start: StartService,
) -> None:
    service = await start()
    await a_round(service)
    service.time.advance(FAR)
    await confirm(service)
    await a_round(service)
    service.time.advance(-FAR)
    for version in range(3):
        await service.push("all", component("web", version=version))
    await service.push("all")
    before = await kept(service.state.database)
    await a_round(service)
    assert less(before, await kept(service.state.database)) == set()
    found = await doctor(service)
    assert "which is still to come" in found[1][1]
    # What grows too old by the earlier time goes.
    service.time.advance(8 * DAY)
    await a_round(service)
    assert less(before, await kept(service.state.database)) == {"removed_entities"}
    await confirm(service)
    service.time.advance(FAR)
    before = await kept(service.state.database)
    await a_round(service)
    assert less(before, await kept(service.state.database)) == set()


async def test_a_day_that_the_clock_does_not_show_confirms_nothing(start: StartService) -> None:
    service = await start()
    await a_round(service)
    right = today(service)
    service.time.advance(FAR)
    with pytest.raises(InputError, match="The clock of this machine shows 2027-12-26"):
        await commands.confirm_retention_clock(service.application, right, service.time)
    assert (
        await housekeeping.read_retention_clock(service.state.database)
    ).trusted_at < service.time() - FAR + 1


# A PostgreSQL on another machine


def elsewhere(database_url: str, now: int | None, address: str = "192.0.2.7") -> None:
    """Let the server say what one at that address with that time would."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET search_path = public, pg_catalog")
        for function, type_, value in (
            ("inet_server_addr", "inet", f"inet '{address}'"),
            ("inet_client_addr", "inet", "inet '192.0.2.1'"),
            ("clock_timestamp", "timestamptz", f"to_timestamp({(now or 0) / SECOND})"),
        ):
            connection.execute(
                f"CREATE FUNCTION public.{function}() RETURNS {type_} LANGUAGE sql "
                f"AS $$ SELECT {value} $$".encode()
            )


def same(now: int) -> int:
    return now


def other(now: int) -> int:
    return now - FAR


@pytest.mark.slow
@POSTGRESQL
@pytest.mark.parametrize(
    ("shown", "address", "removed"),
    [(same, "192.0.2.7", 0), (other, "192.0.2.7", 1), (same, "192.0.2.1", 1)],
    ids=["agrees", "differs", "on the same machine"],
)
async def test_a_server_on_another_machine_can_confirm_the_clock(
    start: StartService,
    database_url: str,
    shown: Callable[[int], int],
    address: str,
    removed: int,
) -> None:
    elsewhere(database_url, shown(NOON + FAR + HOUR), address)
    service = await start()
    await service.push("all", component("web"))
    await service.push("all")
    service.time.advance(FAR)
    await a_round(service)
    assert (await kept(service.state.database))["removed_entities"] == removed

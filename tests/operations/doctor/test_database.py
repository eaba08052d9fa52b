"""What the doctor says of the database, its schema, its key and what the service did there."""

import os
import re
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path

import httpx2
import psycopg
import pytest

from factbook import clock
from factbook.clock import DAY, HOUR
from factbook.integrations.integration import Integration
from factbook.operations.doctor import database
from factbook.outbound.client import HttpClient
from factbook.outbound.network import Sender
from factbook.scheduling import runs
from factbook.scheduling.runs import GivenUpBatch
from factbook.storage import Database
from tests.conftest import StartService
from tests.operations.doctor.conftest import Look, is_well, nobody, of, only
from tests.service import NOON, component
from tests.sqlite_log import empty_log
from tests.storage import first_schema

pytestmark = pytest.mark.both_databases

SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
EVERY_ADDRESS = str(IPv4Address(0))
ENTITIES = [component(f"web-{number}", tags=["a", "B"]) for number in range(300)]


def file_of(database_url: str) -> Path:
    return Path(database_url.removeprefix("sqlite:///"))


def remove(file: Path) -> None:
    file.unlink()


def tear(file: Path, page: int) -> None:
    """Overwrite a page."""
    with file.open("r+b") as content:
        content.seek((page - 1) * 4096)
        content.write(b"\xff" * 4096)


@pytest.mark.slow
async def test_a_service_with_entities_is_well(start: StartService, look: Look) -> None:
    service = await start()
    await service.push("one", *ENTITIES)
    found = await look(answer=lambda _: httpx2.Response(200))
    topics = {one.topic for one in found}
    assert {"configuration", "key", "database", "migrations", "search", "sources"} <= topics
    assert [one for one in found if one.state == "problem"] == []
    for topic in ("database", "migrations", "search", "webhooks", "address", "key"):
        assert is_well(found, topic), topic


@SQLITE
async def test_nothing_is_made_where_there_is_no_database(
    look: Look, tmp_path: Path, database_url: str
) -> None:
    remove(file_of(database_url))
    before = os.listdir(tmp_path)  # noqa: PTH208 - as in an async function
    found = await look(token_key=None)
    assert only(found, "database").state == "warning"
    assert os.listdir(tmp_path) == before  # noqa: PTH208 - as above


@POSTGRESQL
async def test_a_server_that_does_not_answer_is_a_problem(look: Look) -> None:
    found = await look(database_url="postgresql://me:s3cret@127.0.0.1:1/x")
    assert only(found, "database").state == "problem"
    assert "s3cret" not in str(found)


@SQLITE  # Each look is at `empty_database_url` instead.
async def test_an_empty_database_and_an_old_schema_are_to_be_migrated(
    empty_database_url: str, look: Look
) -> None:
    if not empty_database_url.startswith("sqlite"):
        found = await look(database_url=empty_database_url)
        assert only(found, "migrations").what == "The database is empty."
    await first_schema.make(empty_database_url)
    found = await look(database_url=empty_database_url)
    assert "0002_catalog_queries.sql" in only(found, "migrations").what
    assert "factbook migrate" in only(found, "migrations").advice


async def test_what_a_newer_version_has_applied_is_told(database: Database, look: Look) -> None:
    await database.write(
        lambda tx: tx.run(
            "INSERT INTO schema_migrations (name, applied_at) VALUES ('0999_later.sql', 1)"
        )
    )
    assert "0999_later.sql" in only(await look(), "migrations").what


@SQLITE
async def test_a_damaged_file_is_found_unless_quick_is_asked_for(
    start: StartService, look: Look, database_url: str
) -> None:
    service = await start()
    await service.push("one", *ENTITIES)
    file = file_of(database_url)
    empty_log(file)
    with closing(sqlite3.connect(file)) as database:
        [[page]] = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'entities_by_name'"
        )
    assert is_well(await look(), "database")
    tear(file, page)
    found = only(await look(), "database")
    assert (found.state, "is damaged" in found.what) == ("problem", True)
    assert found.what.endswith("Every row of every table can be read.")
    assert "factbook restore" in found.advice
    assert is_well(await look(quick=True), "database")


@SQLITE
async def test_rows_that_refer_to_nothing_are_found(look: Look, database_url: str) -> None:
    with closing(sqlite3.connect(database_url.removeprefix("sqlite:///"))) as database, database:
        database.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        database.execute("CREATE TABLE children (parent INTEGER REFERENCES parents (id))")
        database.execute("INSERT INTO children VALUES (7)")
    assert "refer to rows of parents" in only(await look(), "database").what


async def test_a_key_that_does_not_open_what_is_sealed_is_a_problem(
    start: StartService, look: Look
) -> None:
    service = await start()
    hook = {"url": "https://receiver.example/", "types": []}
    assert (await service.http.post("/api/events/webhooks", json=hook)).status_code == 201
    assert is_well(await look(), "key")
    found = only(await look(token_key="another key of tests, long enough"), "key")
    assert (found.state, "Sealed under another key: webhook" in found.what) == ("problem", True)


async def test_a_webhook_that_is_disabled_is_a_problem(start: StartService, look: Look) -> None:
    service = await start()
    hook = {"url": "https://receiver.example:8443/hooks/T0/s3cret?key=s3cret", "types": []}
    answer = await service.http.post("/api/events/webhooks", json=hook)
    assert is_well(await look(), "webhooks")
    sql = "UPDATE webhook_endpoints SET disabled_at = ?, error = 'answered 500'"
    await service.state.database.write(lambda tx: tx.run(sql, (NOON,)))
    found = only(await look(), "webhooks")
    assert (found.state, "answered 500" in found.what) == ("problem", True)
    assert f"webhook {answer.json()['id']} (https://receiver.example:8443/…)" in found.what
    assert "s3cret" not in str(found)


async def test_a_process_has_to_keep_house(database: Database, look: Look) -> None:
    assert only(await look(), "worker").what == "No process ever kept house here."
    sql = "INSERT INTO leases (name, holder, held_until) VALUES ('housekeeping', 'a', ?)"
    await database.write(lambda tx: tx.run(sql, (NOON,)))
    assert is_well(await look(), "worker")
    assert "since" in only(await look(now=NOON + HOUR), "worker").what


@pytest.mark.parametrize(
    ("status", "state"), [(200, "ok"), (404, "ok"), (502, "warning"), (503, "warning")]
)
@SQLITE
async def test_the_address_that_clients_use_is_asked(look: Look, status: int, state: str) -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        assert str(request.url) == "https://factbook.example.com/healthz"
        return httpx2.Response(status)

    found = await look(answer=answer, public_url="https://factbook.example.com")
    assert [state for state, _ in of(found, "address")] == [state]


@SQLITE
@pytest.mark.parametrize(
    ("host", "asked"),
    [
        ("127.0.0.1", "127.0.0.1"),
        (EVERY_ADDRESS, "127.0.0.1"),
        ("::", "[::1]"),
        ("a.test", "a.test"),
    ],
)
async def test_an_address_where_nobody_answers_is_told(look: Look, host: str, asked: str) -> None:
    found = await look(port=8123, host=host, allowed_hosts=["factbook.test"])
    assert f"Nothing answers at http://{asked}:8123" in only(found, "address").what


@POSTGRESQL
async def test_too_few_connections_are_a_problem(look: Look) -> None:
    assert is_well(await look(), "database")
    found = only(await look(workers=200), "database")
    assert (found.state, "max_connections" in found.advice) == ("problem", True)


@POSTGRESQL
async def test_the_clock_of_the_server_is_compared_with_the_one_here(look: Look) -> None:
    assert is_well(await look(now=clock.now()), "clock")
    found = only(await look(now=clock.now() - 60_000), "clock")
    # The question takes a while on a loaded machine.
    told = re.fullmatch(r"The clock of PostgreSQL is (\d+) s ahead of this one\.", found.what)
    assert told is not None
    assert int(told[1]) >= 60


@POSTGRESQL
async def test_a_database_that_is_read_only_is_a_problem(look: Look, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "replica, or read-only" in only(await look(), "database").what


@pytest.mark.slow
@POSTGRESQL
async def test_processes_that_wait_for_a_lock_are_told(look: Look, database_url: str) -> None:
    def wait() -> None:
        with psycopg.connect(database_url) as waiter:
            waiter.execute("LOCK TABLE facts_history")

    with psycopg.connect(database_url) as holder, ThreadPoolExecutor(1) as thread:
        holder.execute("LOCK TABLE facts_history")
        waiting = thread.submit(wait)
        found: list[str] = []
        while not (found or waiting.done()):
            waits = of(await look(), "database")
            found = [what for _, what in waits if "wait for the lock" in what]
        holder.rollback()
    assert found == ["1 processes wait for the lock of another."]


@POSTGRESQL
async def test_a_transaction_that_stays_open_is_told(
    look: Look, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody wants to wait until one is as old as the doctor thinks long.
    monkeypatch.setattr(database, "_LONG_SECONDS", 0)
    with psycopg.connect(database_url) as connection:
        connection.execute("SELECT 1")
        pid = connection.info.backend_pid
        found = of(await look(), "database")
    [state] = [state for state, what in found if what.startswith(f"Process {pid} (")]
    assert state == "warning"


@POSTGRESQL
async def test_an_encoding_that_cannot_hold_every_text_is_a_problem(
    look: Look, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        name = f"{connection.info.dbname}_ascii"
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' "
            "TEMPLATE template0"
        )
        try:
            url = database_url.replace(connection.info.dbname, name)
            found = only(await look(database_url=url), "database")
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    assert (found.state, "encoding SQL_ASCII" in found.what) == ("problem", True)


async def test_a_source_that_is_down_late_or_about_to_lose_its_credential_is_told(
    database: Database, look: Look
) -> None:
    settings = {"integrations": {"snyk": {"default": _SNYK}}, "outgoing_networks": []}

    async def state(**columns: int | None) -> str:
        row = {"succeeded_at": NOON, "down_since": None, "credential_expires_at": None} | columns
        started = row.pop("started_at", NOON)
        await database.write(lambda tx: tx.run("DELETE FROM source_health"))
        await database.write(lambda tx: tx.run("DELETE FROM runs"))
        await database.write(lambda tx: tx.run(_RUN, (started, started, started)))
        await database.write(
            lambda tx: tx.run("INSERT INTO source_health VALUES ('snyk', ?, ?, ?)", [*row.values()])
        )
        found = of(await look(quick=True, connect=_refuse, **settings), "sources")
        return found[0][1]

    assert await state() == "1 of 1 collected sources are well."
    assert "snyk is down. Nothing since" in await state(down_since=NOON - HOUR)
    assert "credential of snyk ends" in await state(credential_expires_at=NOON + DAY)
    assert "did not begin" in await state(started_at=NOON - 2 * DAY)


async def test_batches_that_were_given_up_are_told(database: Database, look: Look) -> None:
    row = GivenUpBatch(1, 0, "snyk", "[]", 6, NOON)
    await database.write(lambda tx: runs.record_given_up_batch(tx, row))
    found = of(await look(quick=True, connect=_refuse), "sources")
    [(state, what)] = [each for each in found if "given up" in each[1]]
    assert (state, "1 batches of snyk were given up" in what) == ("problem", True)


def _refuse(integration: Integration) -> HttpClient:
    return HttpClient(integration.base_url, Sender(httpx2.MockTransport(nobody), seconds=5))


_SNYK = {"token": "t", "organizations": ["00000000-0000-4000-8000-000000000001"]}
_RUN = """
INSERT INTO runs (id, source_id, whole, reason, started_at, deadline, finished_at, batches,
    entities, covered, failed, skipped, calls)
VALUES (1, 'snyk', 1, 'cadence', ?, ?, ?, 1, 1, 1, 0, 0, 1)
"""

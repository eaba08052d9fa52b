"""`factbook distribute`, on a PostgreSQL with a fake of what it uses of Citus (fakes/citus.sql).

Citus itself is run where FACTBOOK_TEST_CITUS_URL names a coordinator (tests/citus.py).
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest

from factbook.errors import ConflictError, InputError
from factbook.facts.retention import MONTHLY_HISTORY as HISTORY
from factbook.operations import layout
from factbook.operations.layout import DISTRIBUTED, REPLICATED, DistributionStep
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.partitions import partition_table
from tests.citus import CitusCoordinator
from tests.facts.test_changes import WEB, record
from tests.facts.test_store import NOW, add_entities
from tests.postgresql import PostgreSQLServer
from tests.storage.test_table_owners import OWNERS
from tests.storage.waiting_locks import WAITING
from tests.waiting import soon

FAKE = Path(__file__).parent.parent / "fakes" / "citus.sql"


@pytest.fixture
def url(postgresql_server: PostgreSQLServer, migrated_name: str) -> Iterator[str]:
    with postgresql_server.database(f"test_{secrets.token_hex(8)}", like=migrated_name) as url:
        yield url


@pytest.fixture
def cluster(url: str) -> str:
    """A coordinator with two workers."""
    run(url, FAKE.read_text())
    run(url, "INSERT INTO pg_dist_node VALUES ('a', true, true), ('b', true, true)")
    return url


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    database = await open_database(url, connections=6)
    yield database
    await database.close()


def run(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(sql.encode())
        return cursor.fetchall() if cursor.description else []


def calls(url: str) -> list[object]:
    return [call for (call,) in run(url, "SELECT call FROM citus_calls ORDER BY number")]


async def fill(database: Database) -> None:
    await add_entities(database, WEB)
    for hour in range(3):
        await record(database, hour, 1, {"lines": hour})


def ignore(_: DistributionStep) -> None:
    """Show nothing."""


LAID_OUT = [
    *(f"{name} everywhere" for name in REPLICATED),
    *(f"{name} entity_id" for name in DISTRIBUTED),
]


async def test_facts_are_spread_by_entity_and_the_catalog_is_everywhere(
    cluster: str, database: Database
) -> None:
    shown: list[str] = []
    planned = [str(step) for step in await layout.plan_distribution(database)]
    assert calls(cluster) == []
    await layout.run_distribution(database, lambda step: shown.append(str(step)))
    assert calls(cluster)[: len(LAID_OUT)] == LAID_OUT
    assert shown[: len(LAID_OUT)] == planned[: len(LAID_OUT)]
    assert await layout.run_distribution(database, ignore) == 0


async def test_rows_that_are_there_go_along_and_leave_the_coordinator(
    cluster: str, database: Database
) -> None:
    await fill(database)
    before = {name: run(cluster, f"TABLE {name}") for name in (*REPLICATED, *DISTRIBUTED)}
    assert len(before["facts_history"]) == 3
    await layout.run_distribution(database, ignore)
    assert {name: run(cluster, f"TABLE shards.{name}") for name in before} == before
    assert not any(run(cluster, f"TABLE {name}") for name in before)


async def test_a_command_that_was_ended_at_any_step_goes_on_there(
    cluster: str, database: Database
) -> None:
    await fill(database)
    ended = 0

    def end_after_one(step: DistributionStep) -> None:
        steps.append(step)
        if len(steps) > 1:
            raise KeyboardInterrupt

    while len(await layout.plan_distribution(database)) > 1:
        steps: list[DistributionStep] = []
        with pytest.raises(KeyboardInterrupt):
            await layout.run_distribution(database, end_after_one)
        ended += 1
        assert len(calls(cluster)) == ended
    assert await layout.run_distribution(database, ignore) == 1
    assert calls(cluster)[: len(LAID_OUT)] == LAID_OUT
    assert len(calls(cluster)) == len(set(calls(cluster)))


async def test_two_at_once_do_each_step_once(cluster: str, url: str, database: Database) -> None:
    other = await open_database(url, connections=3)
    try:
        await asyncio.gather(*(layout.run_distribution(one, ignore) for one in (database, other)))
    finally:
        await other.close()
    assert calls(cluster) == LAID_OUT


async def test_a_postgresql_without_citus_is_refused(database: Database) -> None:
    with pytest.raises(InputError, match="has no Citus"):
        await layout.run_distribution(database, ignore)


async def test_a_coordinator_without_workers_is_refused(cluster: str, database: Database) -> None:
    run(cluster, "UPDATE pg_dist_node SET isactive = false")
    with pytest.raises(InputError, match="citus_add_node"):
        await layout.run_distribution(database, ignore)
    assert calls(cluster) == []


async def test_a_table_that_somebody_laid_out_otherwise_is_refused(
    cluster: str, database: Database
) -> None:
    run(cluster, "SELECT create_reference_table('facts_latest')")
    with pytest.raises(ConflictError, match="facts_latest is replicated and not distributed"):
        await layout.run_distribution(database, ignore)
    assert len(calls(cluster)) == 1


async def test_a_partitioned_history_is_refused(cluster: str, database: Database) -> None:
    await partition_table(database, HISTORY, NOW, lambda _: None)
    with pytest.raises(ConflictError, match="partitioned by month"):
        await layout.run_distribution(database, ignore)
    assert calls(cluster) == []


async def test_a_distributed_history_is_not_partitioned(cluster: str, database: Database) -> None:
    await layout.run_distribution(database, ignore)
    with pytest.raises(ConflictError, match="is distributed"):
        await partition_table(database, HISTORY, NOW, lambda _: None)


async def test_a_table_in_use_is_waited_for(cluster: str, database: Database) -> None:
    with psycopg.connect(cluster) as other:
        other.execute("LOCK TABLE sets IN ROW EXCLUSIVE MODE")
        working = asyncio.create_task(layout.run_distribution(database, ignore))
        await soon(lambda: database.one(WAITING_FOR_SETS))
        assert calls(cluster) == []
    await working
    assert calls(cluster) == LAID_OUT


@pytest.fixture
def empty_cluster(postgresql_server: PostgreSQLServer) -> Iterator[str]:
    """A coordinator without a schema."""
    with postgresql_server.database(f"test_{secrets.token_hex(8)}") as url:
        run(url, FAKE.read_text())
        run(url, "INSERT INTO pg_dist_node VALUES ('a', true, true)")
        yield url


def test_tests_have_schemas_of_their_own_on_a_coordinator(empty_cluster: str) -> None:
    cluster = empty_cluster
    coordinator = CitusCoordinator(cluster)
    with coordinator.database("test_one", like="any") as one:
        assert calls(cluster) == LAID_OUT
        assert run(one, "SELECT current_schema(), count(*) FROM sets") == [("test_one", 0)]
        with coordinator.database("test_two") as two:
            assert run(two, "SELECT to_regclass('test_two.sets')") == [(None,)]
    assert run(cluster, "SELECT to_regnamespace('test_one')") == [(None,)]


WAITING_FOR_SETS = f"{WAITING} AND relation = 'sets'::regclass"


def test_every_table_of_the_catalog_is_on_every_machine() -> None:
    assert set(REPLICATED) == set(OWNERS["catalog"].split())
    assert set(DISTRIBUTED) < set(OWNERS["facts"].split())

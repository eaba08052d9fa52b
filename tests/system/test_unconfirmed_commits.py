"""PostgreSQL whose replica confirms no commit: nobody waits for ever, or hears that it is done."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx2
import pytest

from factbook.storage import Transaction
from factbook.storage.postgresql import PostgreSQL
from tests.processes import serving
from tests.service import PUSH, component
from tests.system.postgresql_server import Cluster
from tests.waiting import until

pytestmark = pytest.mark.system

WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
END_THE_WAIT = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.running() as cluster:
        cluster.run("CREATE TABLE noted (name TEXT)")
        yield cluster


@pytest.fixture
def alone(cluster: Cluster) -> Iterator[Cluster]:
    """A server whose only replica is away, when `leave` was called."""
    yield cluster
    leave(cluster, "''")


def leave(cluster: Cluster, names: str = "'away'") -> None:
    """Let every commit wait for replicas of these names."""
    cluster.run(f"ALTER SYSTEM SET synchronous_standby_names = {names}")
    cluster.run("SELECT pg_reload_conf()")
    until(lambda: cluster.run("SHOW synchronous_standby_names") == [(names.strip("'"),)])


def pushed(client: httpx2.Client, version: int) -> httpx2.Response:
    return client.put(f"{PUSH}/sets/one", json={"items": [component("a", version=version)]})


@pytest.mark.spec("faults.failover")
def test_a_push_whose_wait_for_a_replica_was_ended_is_not_said_to_be_done(
    alone: Cluster, tmp_path: Path
) -> None:
    with (
        serving(alone.url(), tmp_path) as server,
        server.client(server.token()) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        assert pushed(client, 1).status_code == 200
        leave(alone)
        pushing = thread.submit(pushed, client, 2)
        until(lambda: bool(alone.run(WAITING)))
        alone.run(END_THE_WAIT)
        answer = pushing.result(60)
        assert answer.status_code == 503, answer.text
        assert "No replica" in answer.json()["error"]["message"]
        leave(alone, "''")
        assert pushed(client, 2).status_code == 200


@pytest.mark.spec("faults.failover")
async def test_a_commit_that_no_replica_confirms_is_not_waited_for_without_an_end(
    alone: Cluster,
) -> None:
    database = await PostgreSQL.open(alone.url(), 3, longest_commit=0.2)
    leave(alone)
    # The first has the lock that the next three wait for, and the last ones find no writer.
    writes = [database.write(partial(note, name=f"name-{number}")) for number in range(6)]
    answers = await asyncio.gather(*writes, return_exceptions=True)
    assert [str(one) for one in answers if "may be written or not" not in str(one)] == []
    assert await database.one("SELECT COUNT(*) FROM noted") == (0,)
    await database.close()
    written = alone.run("SELECT name FROM noted ORDER BY name")
    assert ("name-0",) in written
    assert ("name-5",) not in written


def note(transaction: Transaction, name: str) -> None:
    transaction.lock("noted")
    transaction.run("INSERT INTO noted VALUES (?)", [name])

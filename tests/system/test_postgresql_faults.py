"""PostgreSQL that refuses: no connection left, locks of others, deadlocks, killed sessions, a
replica in the place of the primary."""

import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg
import pytest

from tests.processes import serving
from tests.service import PUSH, component
from tests.soak import SOAK
from tests.system.postgresql_server import Cluster
from tests.system.test_postgresql_restarts import check_nothing_is_lost, unavailable
from tests.system.traffic import Traffic, bugs
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

# Beside the service's own connections, those that PostgreSQL keeps for its operator.
MOST_CONNECTIONS = 16
DEADLOCK_SECONDS = 1
DEADLOCKS = 5
KILLS = 500 if SOAK else 40
# What lets writers of the catalog in one by one, held by the one that waits.
THE_OTHERS_LOCK = """
SELECT pg_advisory_xact_lock(classid::int, objid::int) FROM pg_locks
WHERE locktype = 'advisory' AND granted
    AND pid IN (SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock')
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster.running(
        max_connections=str(MOST_CONNECTIONS), deadlock_timeout=f"{DEADLOCK_SECONDS}s"
    ) as cluster:
        yield cluster


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    """The address of a database of this test's own."""
    name = f"test_{random.getrandbits(40):x}"
    cluster.run(f"CREATE DATABASE {name}")
    yield cluster.url(name)
    cluster.run(f"DROP DATABASE {name} WITH (FORCE)")


def name_in(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def pushed(client: httpx2.Client, name: str, version: int = 1, size: int = 1) -> httpx2.Response:
    items = [component(f"{name}-{each}", version=version) for each in range(size)]
    return client.put(f"{PUSH}/sets/{name}", json={"items": items})


def refusal(answer: httpx2.Response) -> str:
    """What is said by an answer that the service cannot do it now."""
    assert answer.status_code == 503, answer.text
    assert answer.headers["retry-after"] == "5"
    error: dict[str, str] = answer.json()["error"]
    assert error["name"] == "ServiceUnavailableError"
    return error["message"]


def end_sessions(operator: "psycopg.Connection[tuple[Any, ...]]", most: int = 1_000) -> int:
    """End some of the service's sessions, at random; how many."""
    sql = (
        "SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity "
        "WHERE application_name = 'factbook' ORDER BY random() LIMIT %s"
    )
    return len(operator.execute(sql, (most,)).fetchall())


@contextmanager
def every_connection(cluster: Cluster, url: str) -> Iterator[None]:
    """Within the block another client has every connection that is to be had."""
    with ExitStack() as taken, cluster.connect("postgres") as operator:

        def has_all() -> bool:
            # What was the service's is free for a moment, and both are after it.
            ended = end_sessions(operator)
            with suppress(psycopg.OperationalError):
                while True:
                    taken.enter_context(psycopg.connect(url))
            return ended == 0

        until(has_all)
        yield


@pytest.mark.spec("faults.postgresql-refuses")
def test_without_a_free_connection_calls_are_refused_and_go_on_when_there_is_one(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    # Those of a superuser are never all taken.
    cluster.run("CREATE ROLE clerk LOGIN")
    cluster.run(f"ALTER DATABASE {name_in(url)} OWNER TO clerk")
    url = url.replace("postgres@", "clerk@")
    with serving(url, tmp_path) as server, server.client(server.token()) as client:
        assert pushed(client, "one").status_code == 200
        with every_connection(cluster, url):
            refusal(client.get(f"{PUSH}/sets/one"))
            refusal(pushed(client, "one", 2))
            assert client.get("/healthz").status_code == 200
        until(lambda: client.get("/readyz").status_code == 200)
        assert pushed(client, "one", 3).json()["revision"] == 2
        causes = {line["cause"] for line in unavailable(server)}
        assert any("connection slots" in cause for cause in causes), causes
        assert bugs(server) == []


@contextmanager
def foreign_lock(url: str, statement: str) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
    """Somebody's open transaction that holds what the statement locks."""
    with psycopg.connect(url) as other:
        other.execute(statement.encode())
        yield other
        other.rollback()


def test_a_lock_that_a_person_left_open_refuses_writes_after_a_while_and_reads_go_on(
    url: str, tmp_path: Path
) -> None:
    limited = f"{url}options=-c%20lock_timeout%3D1s"
    with serving(limited, tmp_path) as server, server.client(server.token()) as client:
        assert pushed(client, "one").status_code == 200
        with foreign_lock(url, "SELECT * FROM sets FOR UPDATE"):
            assert "Others hold" in refusal(pushed(client, "one", 2))
            assert client.get(f"{PUSH}/sets/one").status_code == 200
        with foreign_lock(url, "LOCK TABLE entities"):
            assert "Others hold" in refusal(client.get(f"{PUSH}/sets/one"))
            assert client.get("/readyz").status_code == 200
        assert pushed(client, "one", 2).json()["revision"] == 2
        assert {line["cause"].partition(":")[0] for line in unavailable(server)} == {
            "LockNotAvailable"
        }


@pytest.mark.spec("faults.deadlocks-are-run-again")
def test_a_push_that_is_the_victim_of_a_deadlock_is_done_all_the_same(
    url: str, tmp_path: Path
) -> None:
    with (
        serving(url, tmp_path) as server,
        server.client(server.token()) as client,
        ThreadPoolExecutor(1) as thread,
    ):
        assert pushed(client, "one", 0).status_code == 200
        for version in range(1, DEADLOCKS + 1):
            # It has the set and then wants the lock; a push takes them the other way round.
            with foreign_lock(url, "SELECT * FROM sets FOR UPDATE") as other:
                # The one that finds the deadlock is its victim: ours.
                other.execute("SET LOCAL deadlock_timeout = '60s'")
                pushing = thread.submit(pushed, client, "one", version)
                until(lambda: waits(url))
                other.execute(THE_OTHERS_LOCK)
            answer = pushing.result(60)
            assert answer.status_code == 200, answer.text
            assert answer.json()["revision"] == version + 1
        assert server.log.read_text().count('"write.again"') >= DEADLOCKS
        assert bugs(server) == []


def waits(url: str) -> bool:
    """Whether a session waits for a lock."""
    with psycopg.connect(url) as connection:
        sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        return connection.execute(sql).fetchone() is not None


def test_sessions_that_are_killed_at_random_lose_nothing(url: str, tmp_path: Path) -> None:
    chance, killed = random.Random(7), 0
    with serving(url, tmp_path) as server:
        traffic = Traffic(server, server.token())
        traffic.set_up()
        with traffic.flowing(), psycopg.connect(url, autocommit=True) as operator:
            while killed < KILLS:
                assert server.is_running, server.log.read_text()
                killed += end_sessions(operator, 1)
                time.sleep(chance.uniform(0.02, 0.2))  # the moment of the next death
            traffic.wait_for_success()
        assert traffic.wrong == []
        check_nothing_is_lost(traffic)


def test_a_service_that_knows_both_servers_follows_the_primary(
    cluster: Cluster, tmp_path: Path
) -> None:
    with Cluster.running() as primary, primary.replica() as standby:
        primary.configure(synchronous_standby_names="'*'")
        primary.restart()
        both = f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/factbook"
        with serving(both, tmp_path) as server:
            traffic = Traffic(server, server.token())
            traffic.set_up()
            with traffic.flowing():
                traffic.wait_for_success()
                primary.stop("immediate")
                standby.promote()
                traffic.wait_for_success()
            assert traffic.wrong == []
            check_nothing_is_lost(traffic)


def test_a_primary_that_takes_no_writes_refuses_them_until_it_does(
    cluster: Cluster, url: str, tmp_path: Path
) -> None:
    with serving(url, tmp_path) as server, server.client(server.token()) as client:
        assert pushed(client, "one").status_code == 200
        name = name_in(url)
        with cluster.connect("postgres") as operator:
            cluster.run(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            end_sessions(operator)
        assert "takes no writes" in refusal(pushed(client, "one", 2))
        assert client.get(f"{PUSH}/sets/one").json()["revision"] == 1
        # The database is changed; sessions that are open do not notice.
        cluster.run(f"ALTER DATABASE {name} RESET default_transaction_read_only")
        assert pushed(client, "one", 2).json()["revision"] == 2
        assert bugs(server) == []

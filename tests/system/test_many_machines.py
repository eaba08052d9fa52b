"""Several machines on one PostgreSQL: processes that serve, and processes that collect and send."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
import psycopg
import pytest

from tests.api.defining import SOURCES, of_entities
from tests.processes import ServerProcess, serving
from tests.service import PUSH, component
from tests.system.test_postgresql_restarts import working
from tests.system.test_webhook_crash import feed
from tests.system.traffic import Traffic, bugs
from tests.waiting import until
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(2000),
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]

ENTITIES = 400
LARGE = 4_000
SOON_SECONDS = 60
BETWEEN_STATEMENTS = """
SELECT 1 FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid
WHERE a.state = 'idle in transaction' AND l.mode LIKE 'Row%'
    AND l.relation = to_regclass('entities') AND a.datname = current_database()
"""


@pytest.fixture
def machines(database_url: str, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Two processes that serve; others collect."""
    with ExitStack() as running:
        settings = {
            "FACTBOOK_COLLECT": "false",
            "FACTBOOK_OUTGOING_NETWORKS": NETWORKS[0],
        }
        folders = [tmp_path / name for name in ("one", "two")]
        for folder in folders:
            folder.mkdir()
        yield [running.enter_context(serving(database_url, one, **settings)) for one in folders]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.mark.spec("machines.work-is-done-once")
def test_two_that_serve_and_two_that_work_do_everything_once(
    machines: list[ServerProcess], receiver: Receiver
) -> None:
    one, two = machines
    token = one.token()
    with one.client(token) as a, two.client(token) as b, working(one), working(two):
        assert a.post("/api/events/webhooks", json={"url": receiver.url}).status_code == 201
        items = [component(f"c{number}") for number in range(ENTITIES)]
        assert b.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
        assert a.put(f"{SOURCES}/owners", json=of_entities(cadence=None)).status_code == 200
        assert b.post(f"{SOURCES}/owners/publish").status_code == 200
        begun = a.post(f"{SOURCES}/owners/run")
        assert begun.status_code == 202, begun.text
        assert b.post(f"{SOURCES}/owners/run").status_code == 409

        def runs() -> list[tuple[str, int]]:
            found = b.get(f"{SOURCES}/owners/runs").json()["runs"]
            return [(run["state"], run["covered"]) for run in found]

        until(lambda: runs() == [("done", ENTITIES)])
        told = {event["id"] for event in feed(two, token)}
        assert len(told) == ENTITIES + 1  # of the set, too
        until(lambda: len(receiver.ids) == len(told))
        assert set(receiver.ids) == told
        assert set(receiver.ids.values()) == {1}
    assert bugs(one) + bugs(two) == []


def test_what_one_machine_revokes_and_replaces_the_other_never_shows_again(
    machines: list[ServerProcess],
) -> None:
    one, two = machines
    token = one.token()
    traffic = [
        Traffic(machine, token, prefix=name) for machine, name in zip(machines, "ab", strict=True)
    ]
    for each in traffic:
        each.set_up()
    with traffic[0].flowing(), traffic[1].flowing(), one.client(token) as a, two.client(token) as b:
        for version in range(10):
            items = [component("shared", version=version)]
            writer, reader = (a, b) if version % 2 else (b, a)
            assert writer.put(f"{PUSH}/sets/shared", json={"items": items}).status_code == 200
            [item] = reader.get(f"{PUSH}/sets/shared").json()["items"]
            assert item["entity"]["spec"]["version"] == version
            brief = writer.post("/api/access/v1/tokens", json={"name": "brief"}).json()
            with two.client(brief["value"]) as other:
                assert other.get("/api/catalog/entities?limit=1").status_code == 200
                assert a.delete(f"/api/access/v1/tokens/{brief['id']}").status_code == 204
                assert other.get("/api/catalog/entities?limit=1").status_code == 401
    assert traffic[0].wrong + traffic[1].wrong == []
    assert bugs(one) + bugs(two) == []


def test_a_machine_that_stands_still_in_a_push_keeps_no_other_waiting_for_long(
    database_url: str, tmp_path: Path
) -> None:
    impatient = f"{database_url}&options=-c%20idle_in_transaction_session_timeout%3D2s"
    with (
        serving(impatient, tmp_path) as one,
        serving(database_url, tmp_path) as two,
        ThreadPoolExecutor(1) as thread,
    ):
        token = one.token()
        pushing = thread.submit(push, one, token, "large", LARGE)
        until(lambda: stands_still(one, database_url))
        try:
            assert push(two, token, "small", 1).status_code == 200
            assert push(two, token, "large", 1).status_code == 200
        finally:
            os.kill(one.pid, signal.SIGCONT)
        refused = pushing.result(SOON_SECONDS)
        assert refused.status_code == 503, refused.text
        with two.client(token) as client:
            assert len(client.get(f"{PUSH}/sets/large").json()["items"]) == 1
        assert push(one, token, "large", LARGE).status_code == 200
        assert bugs(one) == []


def push(server: ServerProcess, token: str, name: str, size: int) -> httpx2.Response:
    items = [component(f"{name}-{number}") for number in range(size)]
    with server.client(token) as client:
        return client.put(f"{PUSH}/sets/{name}", json={"items": items})


def stands_still(server: ServerProcess, url: str) -> bool:
    """Stop the process, if it is then between two statements of a push; else let it go on."""
    os.kill(server.pid, signal.SIGSTOP)
    with psycopg.connect(url) as connection:
        if connection.execute(BETWEEN_STATEMENTS).fetchone() is not None:
            return True
    os.kill(server.pid, signal.SIGCONT)
    return False

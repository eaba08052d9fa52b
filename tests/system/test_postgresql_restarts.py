"""PostgreSQL restarted, gone for a while and silent, while clients push, read and collect."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.defining import SOURCES
from tests.postgresql_programs import Mode
from tests.processes import FACTBOOK, ServerProcess, serving
from tests.service import PUSH, component
from tests.system.postgresql_server import Cluster
from tests.system.test_webhook_crash import feed
from tests.system.traffic import ENTITIES, OWNERS, Traffic, bugs
from tests.waiting import TAKEN_OVER, until
from tests.webhooks.receiver import NETWORKS, Receiver, receiving

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

SOAK = bool(os.environ.get("FACTBOOK_SOAK"))
MODES: list[Mode] = ["fast", "immediate"]
RESTARTS = MODES * (10 if SOAK else 3)
# What waits for a connection, and asks once more, is refused by then.
AWAY_SECONDS = 60 if SOAK else 12

SHARING = [str(FACTBOOK), "worker"]
# As where the extra is not installed.
_WITHOUT = "import sys; sys.modules['dbos'] = None; from factbook.cli import main; main()"
ALONE = [sys.executable, "-c", _WITHOUT, "worker"]


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster.running() as cluster:
        yield cluster


@pytest.fixture
def server(cluster: Cluster, tmp_path: Path) -> Iterator[ServerProcess]:
    with serving(cluster.url(), tmp_path, FACTBOOK_OUTGOING_NETWORKS=NETWORKS[0]) as server:
        yield server


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@contextmanager
def working(
    server: ServerProcess, command: Sequence[str] = SHARING
) -> Iterator["subprocess.Popen[bytes]"]:
    """A `factbook worker` beside the server, which is stopped at the end of the block."""
    with server.log.with_name("worker.log").open("ab") as log:
        process = subprocess.Popen(
            command, env=server.environment, cwd=server.folder, stdout=log, stderr=log
        )
    try:
        # One that is still on its way to the database ends without it.
        until(lambda: "worker.started" in Path(log.name).read_text())
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def unavailable(server: ServerProcess) -> list[dict[str, Any]]:
    """What the log says of requests that could not be answered."""
    lines = [json.loads(line) for line in server.log.read_text().splitlines() if line[:1] == "{"]
    return [line for line in lines if line["event"] == "request.unavailable"]


def stored(server: ServerProcess, token: str) -> dict[str, set[int]]:
    """The versions of the entities in each set."""
    with server.client(token) as client:
        names = [one["id"] for one in client.get(f"{PUSH}/sets").json()["sets"]]
        sets = {name: client.get(f"{PUSH}/sets/{name}").json()["items"] for name in names}
    assert {len(items) for items in sets.values()} == {ENTITIES}
    return {
        name: {item["entity"]["spec"]["version"] for item in items} for name, items in sets.items()
    }


def runs(server: ServerProcess, token: str) -> list[dict[str, Any]]:
    """The runs of the source, when all have ended."""
    found: list[dict[str, Any]] = []
    with server.client(token) as client:

        def have_ended() -> bool:
            found[:] = client.get(f"{SOURCES}/{OWNERS}/runs").json()["runs"]
            return all(run["finishedAt"] for run in found)

        until(have_ended, TAKEN_OVER, told=lambda: found, pause=0.1)
    return found


def check_nothing_is_lost(traffic: Traffic) -> None:
    """Each set is whole, and of the last version that was acknowledged or was tried since."""
    for name, versions in stored(traffic.server, traffic.token).items():
        [version] = versions
        assert traffic.done[name] <= version <= traffic.tried[name]
    ended = runs(traffic.server, traffic.token)
    size = len(traffic.tried) * ENTITIES
    ends = {(run["state"], run["covered"], run["failed"], run["error"]) for run in ended}
    assert ends == {("done", size, 0, None)}
    assert bugs(traffic.server) == []


@pytest.mark.spec("faults.postgresql-away-is-503")
def test_clients_see_whole_answers_or_503_while_postgresql_is_restarted(
    cluster: Cluster, server: ServerProcess
) -> None:
    traffic = Traffic(server, server.token())
    traffic.set_up()
    with traffic.flowing():
        for mode in RESTARTS:
            traffic.wait_for_success()
            cluster.restart(mode)
            traffic.wait_for_success()
    assert traffic.wrong == []
    check_nothing_is_lost(traffic)


def status(server: ServerProcess, path: str) -> int:
    return httpx2.get(f"{server.url}{path}", timeout=30).status_code


@pytest.mark.spec("faults.postgresql-away-is-503")
def test_a_postgresql_that_is_gone_for_a_while_is_waited_for_and_nothing_is_lost(
    cluster: Cluster, server: ServerProcess, receiver: Receiver
) -> None:
    traffic = Traffic(server, server.token())
    with server.client(traffic.token) as client:
        made = client.post("/api/events/webhooks", json={"url": receiver.url})
        assert made.status_code == 201, made.text
    traffic.set_up()
    with traffic.flowing():
        traffic.wait_for_success()
        with cluster.away():
            gone_until = time.monotonic() + AWAY_SECONDS

            def is_time_to_return() -> bool:
                assert status(server, "/readyz") == 503
                assert status(server, "/healthz") == 200
                return time.monotonic() > gone_until

            until(is_time_to_return, pause=0.5)
        traffic.wait_for_success()
        assert status(server, "/readyz") == 200
    assert traffic.wrong == []
    assert traffic.count("push", 503) > 0
    check_nothing_is_lost(traffic)
    assert any("Connection refused" in line["cause"] for line in unavailable(server))
    told = len(feed(server, traffic.token))
    until(lambda: len(receiver.ids) == told)
    assert set(receiver.ids) == {event["id"] for event in feed(server, traffic.token)}
    assert server.stop() in (0, -signal.SIGTERM)


@pytest.mark.parametrize("command", [SHARING, ALONE], ids=["sharing", "alone"])
def test_a_worker_goes_on_when_postgresql_is_back(
    cluster: Cluster, tmp_path: Path, command: Sequence[str]
) -> None:
    with (
        serving(cluster.url(), tmp_path, FACTBOOK_COLLECT="false") as server,
        working(server, command) as worker,
    ):
        traffic = Traffic(server, server.token())
        # A worker begins no run of its own: one may precede the one that is asked for.
        traffic.set_up(cadence=None)
        for _ in range(2):
            with server.client(traffic.token) as client:
                begun = client.post(f"{SOURCES}/{OWNERS}/run")
                assert begun.status_code == 202, begun.text
            cluster.restart("immediate")
            until(lambda: status(server, "/readyz") == 200)
            assert {run["state"] for run in runs(server, traffic.token)} == {"done"}
        with cluster.away():
            # One that is told to stop meanwhile does so, too.
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=60) == 0
    assert bugs(server) == []


def test_a_postgresql_that_is_silent_is_unavailable_until_it_speaks_again(
    cluster: Cluster, server: ServerProcess
) -> None:
    with server.client(server.token()) as client:
        assert client.put(f"{PUSH}/sets/one", json={"items": [component("web")]}).status_code == 200
        with cluster.silent():
            assert status(server, "/readyz") == 503
            assert status(server, "/healthz") == 200
        until(lambda: status(server, "/readyz") == 200)
        assert client.get(f"{PUSH}/sets/one").status_code == 200


def test_a_start_without_postgresql_ends_with_what_is_wrong(
    cluster: Cluster, tmp_path: Path
) -> None:
    server = ServerProcess(cluster.url(), tmp_path)
    with cluster.away():
        for command in (["serve", "--port", str(server.port)], ["worker"], ["migrate"]):
            done = subprocess.run(
                [FACTBOOK, *command],
                env=server.environment,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 1, done.stderr
            last = [line for line in done.stderr.splitlines() if not line.startswith("{")]
            assert "Error: PostgreSQL cannot be used" in "".join(last), done.stderr
            assert f"port {cluster.port} failed" in "".join(last)
            assert "Traceback" not in done.stderr
    server.start()
    server.stop()

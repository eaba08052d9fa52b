"""Workers that share, told to stop while PostgreSQL is away in the middle of their lanes."""

import signal
from pathlib import Path

import pytest

from tests.collection.madeup import repository
from tests.processes import serving
from tests.service import PUSH
from tests.system.postgresql_server import Cluster
from tests.system.test_collecting_crash import counted, worker
from tests.waiting import until

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

ENTITIES = 200
# A lane has ended, which DBOS writes down as soon as it has a connection.
ENDED = "lane.unavailable"


def test_a_worker_that_shares_stops_in_order_while_dbos_waits_for_postgresql(
    tmp_path: Path,
) -> None:
    asked = tmp_path / "asked"
    log = asked.with_suffix(".log")
    with Cluster.running() as cluster:
        with serving(cluster.url(), tmp_path, FACTBOOK_COLLECT="false") as server:
            items = [repository(f"part-{number}") for number in range(ENTITIES)]
            with server.client(server.token()) as client:
                assert client.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
        with worker(cluster.url(), asked, at_once=4, latency=0.5, sharing=True) as process:
            until(lambda: counted(asked).total() > ENTITIES / 4)
            with cluster.away("immediate"):
                until(lambda: ENDED in log.read_text())
                process.send_signal(signal.SIGTERM)
                assert process.wait(timeout=60) == 0
    assert "process.stuck" not in log.read_text()
    assert "worker.stopped" in log.read_text()

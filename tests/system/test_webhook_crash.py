"""A process that is killed while it sends: every event still arrives, and none is made up."""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ServerProcess
from tests.service import PUSH, component
from tests.waiting import TAKEN_OVER, until
from tests.webhooks.receiver import NETWORKS, Receiver, receiving, verified

pytestmark = [pytest.mark.system, pytest.mark.timeout(2000)]

KILLS = 20 if os.environ.get("FACTBOOK_SOAK") else 3
ENTITIES = 150
# What a killed process had is free again after 40 seconds.


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def until_arrived(receiver: Receiver, count: int) -> None:
    until(lambda: len(receiver.ids) >= count, TAKEN_OVER, told=lambda: len(receiver.ids))


def feed(server: ServerProcess, token: str) -> list[dict[str, Any]]:
    """Every event, page by page."""
    found: list[dict[str, Any]] = []
    query = {"limit": "1000"}
    with server.client(token) as client:
        while True:
            page = client.get("/api/events", params=query).json()
            found += page["events"]
            if not page["more"]:
                return found
            query["after"] = page["nextCursor"]


def test_every_event_arrives_though_processes_are_killed_while_they_send(
    database_url: str, tmp_path: Path, receiver: Receiver
) -> None:
    chance = random.Random(7)
    server = ServerProcess(database_url, tmp_path, FACTBOOK_OUTGOING_NETWORKS=NETWORKS[0]).start()
    token = server.token()
    with server.client(token) as client:
        made = client.post("/api/events/webhooks", json={"url": receiver.url})
        assert made.status_code == 201, made.text
    for version in range(1, KILLS + 1):
        items = [component(f"c{number}", version=version) for number in range(ENTITIES)]
        with server.client(token) as client:
            answer = client.put(f"{PUSH}/sets/all", json={"items": items})
            assert answer.status_code == 200, answer.text
        until_arrived(receiver, len(receiver.ids) + 1)
        time.sleep(chance.uniform(0, 0.3))  # the moment of the death
        server.stop(signal.SIGKILL)
        server.start()
        until_arrived(receiver, version * (ENTITIES + 1))
    told = {event["id"]: event for event in feed(server, token)}
    server.stop()
    assert set(receiver.ids) == told.keys()
    assert len(told) == KILLS * (ENTITIES + 1)
    now = int(time.time())
    assert all(verified(one, made.json()["secret"], now) for one in receiver.messages[-50:])
    for message in receiver.messages:
        assert message.content["data"] == told[message.id]["data"]
    # Of each round that was under way at a death some messages came twice.
    assert max(receiver.ids.values()) <= KILLS + 1

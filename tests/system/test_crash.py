"""A server that is killed in the middle of a push leaves the old set or the new one, whole."""

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.processes import ServerProcess
from tests.service import PUSH, component

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

KILLS = 100 if os.environ.get("FACTBOOK_SOAK") else 10
ENTITIES = 2_000


def content(version: int) -> list[dict[str, Any]]:
    """A set of which every entity changes with the version, a third of them by name."""
    names = [f"service-{i}" if i % 3 else f"service-{i}-v{version}" for i in range(ENTITIES)]
    return [component(name, owner=f"team-{version % 7}", version=version) for name in names]


def versions(items: list[dict[str, Any]]) -> set[int]:
    return {item["entity"]["spec"]["version"] for item in items}


def push(server: ServerProcess, token: str, version: int) -> bool:
    """Push one version; whether the server said that it did."""
    with server.client(token) as client:
        try:
            answer = client.put(f"{PUSH}/sets/crash", json={"items": content(version)})
        except httpx2.TransportError:
            return False
        return answer.status_code == 200


def killed_push(server: ServerProcess, token: str, version: int, seconds: float) -> bool:
    """Push one version and kill the server after so many seconds; whether it had answered."""
    answered: list[bool] = []
    thread = threading.Thread(target=lambda: answered.append(push(server, token, version)))
    thread.start()
    thread.join(seconds)
    server.stop(signal.SIGKILL)
    thread.join()
    return answered == [True]


@pytest.mark.spec("push.one-transaction")
def test_a_killed_server_leaves_the_old_set_or_the_new_one_whole(
    database_url: str, tmp_path: Path
) -> None:
    chance = random.Random(7)
    server = ServerProcess(database_url, tmp_path).start()
    token = server.token()
    assert push(server, token, 0)
    last = 0
    for version in range(1, KILLS + 1):
        answered = killed_push(server, token, version, chance.uniform(0.02, 0.8))
        server.start()
        with server.client(token) as client:
            items = client.get(f"{PUSH}/sets/crash").json()["items"]
            listed = client.get("/api/catalog/entities", params={"filter": "kind=component"})
            owned = client.get(
                "/api/catalog/entities", params={"filter": "spec.version", "fields": "kind"}
            )
        found = versions(items)
        assert found == {version} if answered else found in ({last}, {version})
        assert len(items) == len(listed.json()) == len(owned.json()) == ENTITIES
        [last] = found
    server.stop()

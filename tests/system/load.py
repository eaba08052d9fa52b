"""Clients that load a service whatever befalls it, and remember what was acknowledged."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import httpx2

from tests.processes import ServerProcess
from tests.service import PUSH, TOOLS, call, component

SETS = ("one", "two", "three")
ENTITIES = 120
Step = Callable[[httpx2.Client], object]
SOURCE_RUN = "/api/tech-insights/v1/data-sources/vendor/run"


def content(set_id: str, version: int) -> list[dict[str, Any]]:
    """A set of which every entity changes with the version, a third of them by name."""
    names = [f"{set_id}-{n}" if n % 3 else f"{set_id}-{n}-v{version}" for n in range(ENTITIES)]
    return [component(name, version=f"{set_id}-{version}") for name in names]


class Pusher:
    """Pushes ever newer versions of one set: which were sent, and the last acknowledged one."""

    def __init__(self, set_id: str) -> None:
        self.set_id = set_id
        self.sent = 0
        self.acknowledged = 0
        self.revision = 0

    def step(self, http: httpx2.Client) -> None:
        """Push the next version."""
        self.sent += 1
        answer = http.put(
            f"{PUSH}/sets/{self.set_id}", json={"items": content(self.set_id, self.sent)}
        )
        assert answer.status_code == 200, answer.text
        self.acknowledged, self.revision = self.sent, answer.json()["revision"]


class Follower:
    """Reads the feed of events from where it was: what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._cursor: str | None = None

    def step(self, http: httpx2.Client) -> bool:
        """Read a page; whether there are more."""
        query = {"limit": "500"} | ({"after": self._cursor} if self._cursor else {})
        answer = http.get("/api/events", params=query)
        assert answer.status_code == 200, answer.text
        page = answer.json()
        self.told += page["events"]
        self._cursor = page["nextCursor"]
        return bool(page["more"])


def ask(http: httpx2.Client) -> None:
    """Call a tool, and ask for a collection."""
    answer = http.post(TOOLS, json=call("get-data-source-discovery", {}))
    assert answer.status_code == 200, answer.text
    assert http.post(SOURCE_RUN).status_code in (202, 409)


def load(server: ServerProcess, token: str, steps: Sequence[Step]) -> list[threading.Thread]:
    """Start a client for each of the steps, which does it again and again until the server dies."""

    def run(step: Step) -> None:
        with server.client(token) as http:
            try:
                while True:
                    step(http)
                    time.sleep(0.002)  # so that no client has a core to itself
            except httpx2.TransportError:
                return

    threads = [threading.Thread(target=run, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    return threads

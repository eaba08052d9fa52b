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
_PAUSE_SECONDS = 0.1
_BETWEEN_SECONDS = 0.02
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
        self.count = 0  # of acknowledged pushes

    def step(self, http: httpx2.Client) -> None:
        """Push the next version."""
        self.sent += 1
        answer = http.put(
            f"{PUSH}/sets/{self.set_id}", json={"items": content(self.set_id, self.sent)}
        )
        if is_refused(answer):
            return
        assert answer.status_code == 200, answer.text
        self.acknowledged, self.revision = self.sent, answer.json()["revision"]
        self.count += 1


class Follower:
    """Reads the feed of events from where it was: what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._cursor: str | None = None

    def step(self, http: httpx2.Client) -> bool:
        """Read a page; whether there are more."""
        query = {"limit": "500"} | ({"after": self._cursor} if self._cursor else {})
        answer = http.get("/api/events", params=query)
        if is_refused(answer):
            return True
        assert answer.status_code == 200, answer.text
        page = answer.json()
        self.told += page["events"]
        self._cursor = page["nextCursor"]
        return bool(page["more"])


def is_refused(answer: httpx2.Response) -> bool:
    """Whether the service says that it cannot answer now; what was asked for may be done or not."""
    if answer.status_code != 503:
        return False
    assert answer.headers["retry-after"].isdigit()
    time.sleep(_PAUSE_SECONDS)  # as clients do
    return True


def ask(http: httpx2.Client) -> None:
    """Call a tool, and ask for a collection."""
    answer = http.post(TOOLS, json=call("get-data-source-discovery", {}))
    if is_refused(answer):
        return
    assert answer.status_code == 200, answer.text
    answer = http.post(SOURCE_RUN)
    assert is_refused(answer) or answer.status_code in (202, 409), answer.text


class Load:
    """Clients that do their steps again and again until they are told to stop.

    `wrong` is what none of them may ever see: an answer that is neither whole nor a refusal.
    """

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def begin(self, server: ServerProcess, token: str, steps: Sequence[Step]) -> None:
        """Start a client of this server for each of the steps."""
        for step in steps:
            thread = threading.Thread(target=self._run, args=(server, token, step))
            self._threads.append(thread)
            thread.start()

    def end(self) -> None:
        """Return when every client has stopped."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, server: ServerProcess, token: str, step: Step) -> None:
        with server.client(token) as http:
            while not self._stop.is_set():
                try:
                    step(http)
                    self._stop.wait(_BETWEEN_SECONDS)  # so that no client has a core to itself
                except httpx2.TransportError:
                    self._stop.wait(_PAUSE_SECONDS)  # until the process is there again
                except Exception as error:  # noqa: BLE001 - whatever it is, the test tells
                    self.wrong.append(f"{type(error).__name__}: {error}")

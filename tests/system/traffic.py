"""Clients that push, read, ask tools and begin runs while something befalls the database.

What each sees is looked at at once: a whole answer, or a refusal with 503 that says so.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.api.defining import SOURCES, of_entities
from tests.processes import ServerProcess
from tests.service import PUSH, TOOLS, call, component
from tests.waiting import until

ENTITIES = 200
OWNERS = "owners"
_AGAIN = "The service cannot answer right now; try again."


class Traffic:
    """`wrong` is what nobody may ever see; `longest` is in seconds."""

    def __init__(
        self, server: ServerProcess, token: str, *, sets: int = 2, prefix: str = "set"
    ) -> None:
        self.server = server
        self.token = token
        self.wrong: list[str] = []
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.tried = dict.fromkeys((f"{prefix}-{number}" for number in range(sets)), 0)
        self.done = dict(self.tried)
        self._stop = threading.Event()
        self._lock = threading.Lock()

    def set_up(self, **more: Any) -> None:
        """Every set in its first version, and a source that is collected, with more said of it."""
        with self.server.client(self.token) as client:
            for name in self.tried:
                self._push(client, name)
            source = of_entities(OWNERS, **more)
            assert client.put(f"{SOURCES}/{OWNERS}", json=source).status_code == 200
            assert client.post(f"{SOURCES}/{OWNERS}/publish").status_code == 200
        assert set(self.done.values()) == {1}, self.wrong

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """All of them at work until the end of the block."""
        works: list[Callable[[httpx2.Client], None]] = [self._run, self._ask]
        for name in self.tried:
            works += [self._of(self._push, name), self._of(self._read, name)]
        threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()
            self._stop.clear()

    def count(self, what: str, status: int) -> int:
        """How often a kind of call had this status."""
        with self._lock:
            return self.statuses[what, status]

    def wait_for_success(self) -> None:
        """Return when every kind of call has succeeded once more."""
        # A run that lost its database asks again after 30 seconds: until then there is one already.
        wanted = {"push": [200], "read": [200], "tool": [200], "run": [202, 409]}
        before = {kind: self._succeeded(kind, good) for kind, good in wanted.items()}
        until(
            lambda: all(
                self._succeeded(kind, good) > before[kind] for kind, good in wanted.items()
            ),
            told=lambda: (self.statuses, self.wrong),
        )

    def _succeeded(self, kind: str, good: list[int]) -> int:
        return sum(self.count(kind, status) for status in good)

    def _of(
        self, work: Callable[[httpx2.Client, str], None], name: str
    ) -> Callable[[httpx2.Client], None]:
        return lambda client: work(client, name)

    def _repeat(self, work: Callable[[httpx2.Client], None]) -> None:
        with self.server.client(self.token) as client:
            while not self._stop.is_set():
                try:
                    work(client)
                except Exception as error:  # noqa: BLE001 - whatever it is, the test tells
                    self._tell(f"{type(error).__name__}: {error}")

    def _push(self, client: httpx2.Client, name: str) -> None:
        self.tried[name] += 1
        version = self.tried[name]
        items = [component(f"{name}-{each}", version=version) for each in range(ENTITIES)]
        answer = self._sent(client, "push", "PUT", f"{PUSH}/sets/{name}", {"items": items})
        if answer is not None:
            self.done[name] = version
            if len(answer.json()["items"]) != ENTITIES:
                self._tell(f"a push was answered in part: {answer.text[:200]}")

    def _read(self, client: httpx2.Client, name: str) -> None:
        least = self.done[name]
        answer = self._sent(client, "read", "GET", f"{PUSH}/sets/{name}")
        if answer is not None:
            found = answer.json()["items"]
            versions = {item["entity"]["spec"]["version"] for item in found}
            if len(found) != ENTITIES or len(versions) != 1:
                self._tell(f"{name} was read in part: {len(found)} items of {versions}")
            elif not least <= min(versions) <= self.tried[name]:
                self._tell(f"{name} is of version {versions}, but {least} was there before")

    def _ask(self, client: httpx2.Client) -> None:
        name = f"{next(iter(self.tried))}-0"
        about = {"name": name, "dataSourceId": OWNERS}
        answer = self._sent(client, "tool", "POST", TOOLS, call("get-entity-facts", about))
        if answer is None:
            return
        result = answer.json()["result"]
        text = result["content"][0]["text"]
        if result["isError"] and _AGAIN not in text:
            self._tell(f"a tool said {text}")
            return
        found = result.get("structuredContent", {}).get("entityRef")
        if not result["isError"] and found != f"component:default/{name}":
            self._tell(f"a tool answered {text}")

    def _run(self, client: httpx2.Client) -> None:
        self._sent(client, "run", "POST", f"{SOURCES}/{OWNERS}/run")
        self._stop.wait(0.1)

    def _sent(
        self, client: httpx2.Client, what: str, method: str, path: str, body: Any = None
    ) -> httpx2.Response | None:
        """An answer that succeeded; None for one that refused as it should."""
        answer = client.request(method, path, json=body)
        with self._lock:
            self.statuses[what, answer.status_code] += 1
        if answer.status_code in (200, 202):
            return answer
        if answer.status_code == 503:
            self._check_refusal(what, answer)
            self._stop.wait(0.1)  # as clients do
        elif (what, answer.status_code) != ("run", 409):  # one is under way already
            self._tell(f"{what}: {answer.status_code} {answer.text[:200]}")
        return None

    def _check_refusal(self, what: str, answer: httpx2.Response) -> None:
        error = answer.json()["error"]
        if what == "tool":
            good = answer.json()["jsonrpc"] == "2.0" and error["code"] == -32603
        else:
            good = error["name"] == "ServiceUnavailableError"
        if not good or not error["message"] or not answer.headers["retry-after"].isdigit():
            self._tell(f"{what} was refused with {answer.headers} {answer.text[:200]}")

    def _tell(self, text: str) -> None:
        with self._lock:
            self.wrong.append(text)


def bugs(server: ServerProcess) -> list[str]:
    """The lines of a server's log that tell of bugs."""
    events = ("request.failed", "tool.failed", "task.failed", "worker.failed", "Traceback")
    lines = server.log.read_text().splitlines()
    return [line for line in lines if any(f"{event}" in line for event in events)]

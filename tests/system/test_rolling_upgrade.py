"""A release takes over from the one before while clients read, push and call tools all the time."""

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from factbook.storage.database_url import open_database
from factbook.storage.migrations import find_pending_migrations
from tests.processes import ServerProcess
from tests.service import PUSH, TOOLS, call, component
from tests.system.next_release import NEXT
from tests.waiting import until

pytestmark = pytest.mark.system

ENTITIES = 2_000
# Answers that each client has had before and after each step.
ROUNDS = 20


class NextRelease(ServerProcess):
    """The next release."""

    def program(self) -> list[str | Path]:
        return [sys.executable, "-m", "tests.system.next_release"]


class Clients:
    """Clients that ask whom the proxy in front of the machines would ask."""

    def __init__(self, server: ServerProcess, token: str) -> None:
        self.server = server
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self._token = token
        self._stopped = threading.Event()

    def run(self, name: str, ask: Callable[[httpx2.Client, int], httpx2.Response]) -> None:
        """Ask again and again until told to stop."""
        while not self._stopped.is_set():
            with self.server.client(self._token) as client:
                for _ in range(5):
                    answer = ask(client, self.answers[name])
                    if answer.status_code == 200:
                        self.answers[name] += 1
                    else:
                        self.failures.append(f"{name}: {answer.status_code} {answer.text}")

    def wait(self) -> None:
        """Return when each has had more answers."""
        before = dict(self.answers)
        until(
            lambda: all(self.answers[name] >= before.get(name, 0) + ROUNDS for name in ASKED),
            told=lambda: (before, self.answers, self.failures),
        )

    def stop(self) -> None:
        self._stopped.set()


def read(client: httpx2.Client, number: int) -> httpx2.Response:
    query = {"filter": "spec.type=service", "limit": "20"}
    return client.get("/api/catalog/entities/by-query", params=query)


def push(client: httpx2.Client, number: int) -> httpx2.Response:
    return client.put(f"{PUSH}/sets/pushed", json={"items": [component(f"pushed-{number}")]})


def ask(client: httpx2.Client, number: int) -> httpx2.Response:
    asked = {"dataSourceId": "entity-metadata", "name": f"c{number % ENTITIES}"}
    return client.post(TOOLS, json=call("get-entity-facts", asked))


ASKED = {"reads": read, "pushes": push, "tool calls": ask}


async def still_pending(database_url: str) -> list[str]:
    database = await open_database(database_url, connections=3)
    try:
        return await find_pending_migrations(database, NEXT)
    finally:
        await database.close()


def test_nothing_fails_and_nothing_is_lost_while_one_release_takes_over_from_another(
    database_url: str, tmp_path: Path
) -> None:
    old = ServerProcess(database_url, tmp_path).start()
    new = NextRelease(database_url, tmp_path, PYTHONPATH=str(Path.cwd()))
    clients = Clients(old, old.token())
    with ThreadPoolExecutor(len(ASKED)) as threads:
        try:
            with old.client(old.token()) as client:
                items = [component(f"c{number}") for number in range(ENTITIES)]
                assert client.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
            running = [threads.submit(clients.run, *each) for each in ASKED.items()]
            clients.wait()
            assert asyncio.run(still_pending(database_url)) == ["9000_more.sql", "9001_index.sql"]
            new.start()
            assert asyncio.run(still_pending(database_url)) == []
            clients.wait()  # the old release on the schema of the new one
            assert old.is_running
            clients.server = new
            clients.wait()
            old.stop()
            clients.wait()
            clients.stop()
            for each in running:
                each.result()
            with new.client(new.token()) as client:
                revision = client.get(f"{PUSH}/sets/pushed").json()["revision"]
            assert clients.failures == []
            assert revision == clients.answers["pushes"]
        finally:
            clients.stop()
            for server in (old, new):
                if server.is_running:
                    server.stop()

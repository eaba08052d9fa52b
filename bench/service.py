"""Factbook as it is measured: a real `factbook serve`, with a token and a client of its own.

Authentication, permissions and the rate limit are on; the limit's figures are so high that it
counts every call and refuses none.
"""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from bench.databases import Database
from bench.load import Call, Load, Plan
from bench.processes import Server, free_port, serving

TOOLS = "/api/mcp/v1/tech-insights-facts"
PUSH = "/api/catalog/factbook-entities"
CATALOG = "/api/catalog/entities"
READY = b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"
COMMAND = Path(sys.executable).with_name("factbook")
_TIMEOUT = 600
_HEAD_BYTES = 4096
_PIECE = 1 << 20
# Sooner than the server hangs up on a connection that nobody uses.
_IDLE_SECONDS = 2


class Answer(NamedTuple):
    """How an answer begins, the number of its bytes, and the seconds until it was complete."""

    status: int
    head: bytes
    length: int
    seconds: float


class Cost(NamedTuple):
    """CPU milliseconds of a request, and what the load saw."""

    cpu: float
    per_second: float
    busy: float

    def __str__(self) -> str:
        return f"{self.cpu:.3f} ms, {self.per_second:,.0f}/s"


class Client:
    """One connection with a token."""

    def __init__(self, port: int, token: str) -> None:
        self.headers = {
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT)
        self._used = time.monotonic()

    def get(self, path: str, *, fresh: bool = False) -> Any:
        """The decoded JSON at a path; `fresh`: not from what the server keeps."""
        headers = {"cache-control": "no-cache"} if fresh else {}
        return msgspec.json.decode(self._send("GET", path, headers=headers))

    def ask(self, tool: str, **arguments: Any) -> bytes:
        """The answer to a bare tools/call."""
        return self._send("POST", TOOLS, tool_call(tool, arguments).encode())

    def put(self, set_id: str, body: bytes) -> Answer:
        """PUT a set, and read the answer to its end without keeping it."""
        return self._drain("PUT", f"{PUSH}/sets/{set_id}", body)

    def post(self, path: str, body: bytes) -> float:
        """POST to a path; the seconds until the answer was complete."""
        began = time.perf_counter()
        self._send("POST", path, body)
        return time.perf_counter() - began

    def call(self, method: str, path: str, body: bytes) -> bytes:
        """The answer to any other request; raises unless it succeeded."""
        return self._send(method, path, body)

    def status(self, method: str, path: str, body: bytes) -> int:
        """The status of the answer to any request; the answer is read to its end and not kept."""
        return self._drain(method, path, body).status

    def drain(self, path: str) -> Answer:
        """GET a path, and read the answer to its end without keeping it."""
        return self._drain("GET", path)

    def _drain(self, method: str, path: str, body: bytes | None = None) -> Answer:
        began = time.perf_counter()
        response = self._request(method, path, body)
        head, length = b"", 0
        while piece := response.read(_PIECE):
            head += piece[: _HEAD_BYTES - len(head)]
            length += len(piece)
        self._used = time.monotonic()
        return Answer(response.status, head, length, time.perf_counter() - began)

    def close(self) -> None:
        """Hang up; the next request connects again."""
        self._connection.close()

    def _send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> bytes:
        response = self._request(method, path, body, headers)
        found = response.read()
        self._used = time.monotonic()
        if not 200 <= response.status < 300:
            raise RuntimeError(f"{method} {path}: {response.status} {found[:300]!r}")
        return found

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> http.client.HTTPResponse:
        if time.monotonic() - self._used > _IDLE_SECONDS:
            self.close()
        self._connection.request(method, path, body, {**self.headers, **headers})
        return self._connection.getresponse()


class Factbook:
    """A server on a database, and a client of it."""

    def __init__(self, server: Server, token: str, database: Database) -> None:
        self.server = server
        self.token = token
        self.database = database
        self.client = Client(server.port, token)

    def another_client(self) -> Client:
        """A client with a connection of its own."""
        return Client(self.server.port, self.token)

    def push(self, set_id: str, body: bytes, **changes: int) -> float:
        """Make a set this; the seconds that it took. Raises unless the changes are those named."""
        answer = self.client.put(set_id, body)
        head = answer.head.decode("utf-8", "replace")
        missing = [f for f in (f'"{k}":{v}' for k, v in changes.items()) if f not in head]
        if answer.status != 200 or missing:
            raise RuntimeError(f"PUT: {answer.status}, without {missing}: {head[:500]}")
        return answer.seconds

    def cost(self, calls: list[Call], seconds: float, *, seed: int, expect: str = "") -> Cost:
        """The CPU time of random calls on 16 connections."""
        return cost(self.server, calls, seconds, self.client.headers, seed=seed, expect=expect)


def tool_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """The message of a bare tools/call."""
    parameters = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": parameters}
    return msgspec.json.encode(message).decode()


def cost(
    server: Server,
    calls: list[Call],
    seconds: float,
    headers: dict[str, str],
    *,
    seed: int,
    expect: str = "",
) -> Cost:
    """The CPU time of random calls on 16 connections; raises if one fails."""
    plan = Plan(
        port=server.port, calls=calls, seconds=seconds, headers=headers, expect=expect, seed=seed
    )
    with Load(plan) as load:
        before = server.cpu_seconds()
        load.go()
        result = load.result()
        spent = server.cpu_seconds() - before
    if result.failures:
        raise RuntimeError(f"{result.failures} of {result.requests} requests failed.")
    return Cost(1000 * spent / result.requests, result.per_second, result.busy)


def environment(settings: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """The variables of this process, with these settings of the service and no others."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FACTBOOK_")}
    return kept | {f"FACTBOOK_{name}": value for name, value in settings.items()}


def settings(database: Database) -> dict[str, str]:
    """The environment of a service on this database."""
    return environment(
        {
            "DATABASE_URL": database.url,
            "TOKEN_KEY": "a key that only benchmarks ever use",
            "TOKEN_RATE": "1000000",
            "TOKEN_BURST": "1000000",
        }
    )


def make_token(database: Database, folder: Path, command: Path = COMMAND) -> str:
    """A token with every permission; migrates the database first."""
    # The first releases have no such option: their tokens have every permission.
    usage = _said(database, folder, "token", "create", "--help", command=command)
    every = ["--all"] if "--all" in usage else []
    return _said(database, folder, "token", "create", "bench", *every, command=command)


def people_link(database: Database, folder: Path) -> str:
    """The link that makes an administrator."""
    return _said(database, folder, "people", "invite", "--role", "administrator")


def _said(database: Database, folder: Path, *arguments: str, command: Path = COMMAND) -> str:
    """What a command prints."""
    answer = subprocess.run(
        [command, *arguments],
        cwd=folder,
        env=settings(database),
        check=True,
        capture_output=True,
        timeout=_TIMEOUT,
    )
    return answer.stdout.decode().strip()


@contextmanager
def factbook(
    database: Database,
    folder: Path,
    core: int,
    token: str | None = None,
    further: Mapping[str, str] = MappingProxyType({}),
    command: Path = COMMAND,
) -> Iterator[Factbook]:
    """A `factbook serve` on a database, with a new token unless one is given.

    `further` are variables beside those that every service has here; `command` may be that of
    another release.
    """
    token = token or make_token(database, folder, command)
    port = free_port()
    with serving(
        [str(command), "serve", "--port", str(port)],
        port,
        core=core,
        ready=READY,
        folder=folder,
        environment=settings(database) | dict(further),
        others=database.processes,
    ) as server:
        service = Factbook(server, token, database)
        yield service
        service.client.close()

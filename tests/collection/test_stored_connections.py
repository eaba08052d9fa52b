"""Connections that are made while the service runs: sources ask them, in every process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from factbook.clock import MINUTE, SECOND
from factbook.collection.collector import Collector
from factbook.storage import Transaction
from tests.collection.test_connecting import proof
from tests.conftest import StartService
from tests.service import Service, component

API = "/api/tech-insights/v1"
LOOPBACK = ["127.0.0.0/8"]
ONE, TWO = "Bearer the-first-secret", "Bearer the-second-secret"
SOURCE: dict[str, Any] = {
    "id": "builds",
    "title": "Builds",
    "cadence": "*/10 * * * *",
    "handlerDefinition": {
        "type": "http",
        "config": {"id": "builds", "connection": "ci", "path": "/x"},
    },
    "schema": {"ok": {"type": "boolean", "extract": {"jmespath": "ok"}}},
}


class Host:
    """A host that keeps what it was asked, and its connections open as long as they are."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.asked = asyncio.Semaphore(0)
        self.url = ""
        self.hung_up = asyncio.Event()
        self.held: asyncio.Event | None = None

    @property
    def proofs(self) -> list[str | None]:
        return [proof(head) for head in self.heads]

    def answer(self, head: str) -> bytes:
        """The answer to a request with this head."""
        return b'HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{"ok":true}'

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            self.heads.append(head.decode().lower())
            self.asked.release()
            if self.held is not None:
                await self.held.wait()
            writer.write(self.answer(self.heads[-1]))
            await writer.drain()
        writer.close()
        self.hung_up.set()


@asynccontextmanager
async def hosting(kind: type[Host] = Host) -> AsyncIterator[Host]:
    host = kind()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0)
    host.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield host
    finally:
        server.close()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with hosting() as host:
        yield host


@pytest.fixture
async def asking(start: StartService) -> Service:
    """A service that may call the host, and has an entity."""
    service = await start(outgoing_networks=LOOPBACK)
    assert (await service.push("all", component("web"))).status_code == 200
    return service


async def connect(service: Service, host: Host, secret: str | None, **options: Any) -> None:
    body = {"baseUrl": host.url, "headers": {"authorization": secret}, **options}
    answer = await service.http.put(f"{API}/connections/ci", json=body)
    assert answer.status_code == 200, answer.text


async def publish(service: Service) -> None:
    path = f"{API}/data-sources/builds"
    assert (await service.http.put(path, json=SOURCE)).status_code == 200
    assert (await service.http.post(f"{path}/publish")).status_code == 200


async def tried(service: Service) -> dict[str, Any]:
    answer = await service.http.post(f"{API}/data-sources/builds/test", json={"entity": "web"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["facts"]
    return found


async def problem(service: Service) -> str | None:
    shown = (await service.http.get(f"{API}/data-sources/builds")).json()
    found: str | None = shown.get("problem")
    return found


def contents(folder: Path) -> list[bytes]:
    """What is in the files of a SQLite database, if there are any."""
    return [path.read_bytes() for path in folder.glob("factbook.db*")]


def collector_of(service: Service) -> Collector:
    """What collects in the process of a service."""
    return service.application.collector(service.state.database, [], service.state.registry.custom)


@pytest.mark.spec("sources.credential-stays-with-its-host")
async def test_the_next_call_carries_the_secret_that_was_put_last(
    asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    assert await tried(asking) == {"ok": True}
    await connect(asking, host, TWO)
    assert await tried(asking) == {"ok": True}
    assert host.proofs == [ONE.lower(), TWO.lower()]


async def test_another_process_asks_with_the_new_secret_a_second_later(
    start: StartService, asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    elsewhere = await start(outgoing_networks=LOOPBACK)
    collector = collector_of(elsewhere)

    async def after(milliseconds: int) -> list[str | None]:
        elsewhere.time.advance(milliseconds)
        await collector.drain()
        return host.proofs

    assert await after(0) == [ONE.lower()]
    await connect(asking, host, TWO)
    before = (await elsewhere.state.registry.current()).integrations["builds"]
    elsewhere.time.advance(SECOND)
    assert (await elsewhere.state.registry.current()).integrations["builds"] is not before
    assert await after(10 * MINUTE) == [ONE.lower(), TWO.lower()]
    await collector.stop()


async def test_connections_opened_with_an_old_secret_are_closed_after_the_calls_under_way(
    asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    host.held = asyncio.Event()
    slow = asyncio.create_task(tried(asking))
    await host.asked.acquire()
    await connect(asking, host, TWO)
    quick = asyncio.create_task(tried(asking))
    await host.asked.acquire()
    assert not host.hung_up.is_set()
    host.held.set()
    assert await slow == await quick == {"ok": True}
    await asyncio.wait_for(host.hung_up.wait(), 60)
    host.hung_up.clear()
    assert await tried(asking) == {"ok": True}
    assert not host.hung_up.is_set()
    assert host.proofs == [ONE.lower(), TWO.lower(), TWO.lower()]


async def test_a_source_that_did_not_change_keeps_its_client_when_another_connection_does(
    asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    before = (await asking.state.registry.current()).integrations["builds"]
    body = {"baseUrl": host.url, "headers": {"x-other": TWO}}
    assert (await asking.http.put(f"{API}/connections/other", json=body)).status_code == 200
    assert (await asking.state.registry.current()).integrations["builds"] is before


async def test_a_source_can_be_collected_once_its_connection_is_made(
    asking: Service, host: Host
) -> None:
    await publish(asking)
    assert "no connection 'ci'" in str(await problem(asking))
    await connect(asking, host, ONE)
    assert await problem(asking) is None
    await connect(asking, host, ONE, methods=["POST"])
    assert "does not allow GET" in str(await problem(asking))


async def test_a_secret_of_another_key_is_told_and_can_be_given_again(
    start: StartService, asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    other = await start(outgoing_networks=LOOPBACK, token_key="another key, as long as the first")
    told = str(await problem(other))
    assert "'ci' cannot be opened" in told
    assert "another token key" in told
    assert "Give their values again." in told
    assert (await other.state.registry.current()).integrations.keys() == set()
    [shown] = (await other.http.get(f"{API}/connections")).json()["connections"]
    assert shown["problem"] == told
    trial = await other.http.post(f"{API}/data-sources/builds/test", json={"entity": "web"})
    assert (trial.status_code, trial.json()["error"]["message"]) == (400, told)
    run = await other.http.post(f"{API}/data-sources/builds/run")
    assert (run.status_code, told in run.json()["error"]["message"]) == (409, True)
    body = {"baseUrl": host.url, "headers": {"authorization": None}}
    kept = await other.http.put(f"{API}/connections/ci", json=body)
    assert (kept.status_code, kept.json()["error"]["message"]) == (409, told)
    assert host.heads == []
    await connect(other, host, TWO)
    assert await tried(other) == {"ok": True}
    assert host.proofs == [TWO.lower()]


async def test_an_address_changed_in_the_database_is_sent_no_secret(
    asking: Service, host: Host
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)

    async with hosting() as theirs:

        def move(transaction: Transaction) -> None:
            transaction.run(
                "UPDATE connections SET options = REPLACE(options, ?, ?)", (host.url, theirs.url)
            )
            transaction.run("UPDATE counters SET value = value + 1 WHERE name = 'data_source'")

        await asking.state.database.write(move)
        asking.time.advance(SECOND)
        assert "cannot be opened" in str(await problem(asking))
        await collector_of(asking).drain()
        assert theirs.heads == []


async def test_the_address_guard_holds_for_connections_that_are_made_later(
    start: StartService, host: Host
) -> None:
    guarded = await start()
    assert (await guarded.push("all", component("web"))).status_code == 200
    await connect(guarded, host, ONE)
    await publish(guarded)
    answer = await guarded.http.post(f"{API}/data-sources/builds/test", json={"entity": "web"})
    assert "outgoing_networks" in answer.text
    assert host.heads == []


async def test_the_database_holds_no_secret_in_the_clear(
    asking: Service, host: Host, tmp_path: Path
) -> None:
    await connect(asking, host, ONE)
    await publish(asking)
    await tried(asking)
    secret = ONE.removeprefix("Bearer ")
    [row] = await asking.state.database.all("SELECT * FROM connections")
    assert row[2]
    assert secret not in repr(row)
    files = contents(tmp_path)
    assert all(secret.encode() not in content for content in files)
    assert bool(files) == asking.database_url.startswith("sqlite")

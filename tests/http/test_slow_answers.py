"""Long answers to slow clients: which are sent to their ends, and how the others end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import structlog
from h11 import CLIENT, Connection, Data, EndOfMessage, RemoteProtocolError
from h11 import Request as AskedFor

from factbook.api.endpoint import Endpoint, Route
from factbook.app import Application
from factbook.errors import UnavailableError
from factbook.http.context import State
from factbook.http.pipeline import IncompleteAnswers
from factbook.http.requests import Reply, Request
from factbook.observability import scrape
from factbook.observability.metrics import Metrics
from factbook.settings import Settings
from tests.http import slow_reader
from tests.http.slow_reader import SlowReader
from tests.service import Service

MEBIBYTE = 1024 * 1024
LENGTH = 16 * MEBIBYTE


async def large_pieces() -> AsyncIterator[bytes]:
    for _ in range(LENGTH // (4 * MEBIBYTE)):
        yield b"x" * 4 * MEBIBYTE


async def small_pieces() -> AsyncIterator[bytes]:
    for _ in range(LENGTH // 8192):
        yield b"x" * 8192


BODIES = {
    "whole": lambda: b"x" * LENGTH,
    "list": lambda: [b"x" * MEBIBYTE] * (LENGTH // MEBIBYTE),
    "large pieces": large_pieces,
    "small pieces": small_pieces,
}


def is_complete(received: bytes) -> bool:
    """Whether a client takes what came for a whole answer of the length that was sent."""
    client = Connection(CLIENT)
    client.send(AskedFor(method="GET", target="/", headers=[("host", "a")]))
    client.send(EndOfMessage())
    client.receive_data(received)
    client.receive_data(b"")
    length = 0
    try:
        while not isinstance(event := client.next_event(), EndOfMessage):
            length += len(event.data) if isinstance(event, Data) else 0
    except RemoteProtocolError:
        return False
    assert length == LENGTH
    return True


def taken(tmp_path: Any, body: Any, rate: int, *, counts: bool = True) -> tuple[bytes, str]:
    """Receive an answer at so many bytes a second; what came of it, and the metrics then."""

    async def handler(_request: Request, _state: State) -> Reply:
        return Reply(body())

    async def answered() -> tuple[bytes, str]:
        application = Application(Settings(database_url=f"sqlite:///{tmp_path / 'factbook.db'}"))
        async with application.running() as state:
            endpoint = Endpoint({"GET": Route("GET", "/large", handler, None)}, state)
            shared = {"incomplete": getattr(state, "incomplete", None)}
            client = SlowReader(endpoint, shared, rate, counts=counts)
            client.ask("/large")
            await client.ended.wait()
            return bytes(client.received), scrape.render_metrics(state.metrics).decode()

    return slow_reader.run(answered())


@pytest.mark.slow
@pytest.mark.spec("security.slow-clients-get-long-answers")
@pytest.mark.parametrize(
    ("body", "rate"), [(body, 40_000) for body in BODIES] + [("large pieces", 550)]
)
def test_a_client_that_is_slow_and_steady_gets_all_of_a_long_answer(
    tmp_path: Any, body: str, rate: int
) -> None:
    received, metrics = taken(tmp_path, BODIES[body], rate)
    assert is_complete(received)
    assert 'factbook_answers_incomplete_total{reason="slow"} 0.0' in metrics


def test_it_does_so_where_the_system_does_not_count_what_arrived(tmp_path: Any) -> None:
    received, _ = taken(tmp_path, large_pieces, 40_000, counts=False)
    assert is_complete(received)


@pytest.mark.slow
@pytest.mark.spec("security.slow-clients-get-long-answers")
@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("body", BODIES)
def test_what_is_given_up_is_counted_logged_and_not_taken_for_complete(
    tmp_path: Any, body: str, counts: bool
) -> None:
    with structlog.testing.capture_logs() as logged:
        received, metrics = taken(tmp_path, BODIES[body], 450, counts=counts)
    assert not is_complete(received)
    assert 'factbook_answers_incomplete_total{reason="slow"} 1.0' in metrics
    [line] = [each for each in logged if each["event"] == "answer.incomplete"]
    assert line["reason"] == "slow"


async def until_the_database_goes() -> AsyncIterator[bytes]:
    yield b"x" * MEBIBYTE
    raise UnavailableError("timeout")


async def until_a_bug() -> AsyncIterator[bytes]:
    yield b"x" * MEBIBYTE
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("body", "reason"), [(until_the_database_goes, "unavailable"), (until_a_bug, "failed")]
)
def test_an_answer_that_cannot_be_finished_is_counted_and_not_taken_for_complete(
    tmp_path: Any, body: Any, reason: str
) -> None:
    received, metrics = taken(tmp_path, body, 1_000_000)
    assert len(received) > MEBIBYTE
    assert not is_complete(received)
    assert f'factbook_answers_incomplete_total{{reason="{reason}"}} 1.0' in metrics


def test_many_incomplete_answers_take_one_line_of_the_log_in_ten_seconds() -> None:
    now = 0.0
    incomplete = IncompleteAnswers(Metrics(), lambda: now)
    with structlog.testing.capture_logs() as logged:
        for _ in range(50):
            incomplete.add("slow")
            incomplete.add("unavailable", "timeout")
            now += 0.5
    slow = [line["answers"] for line in logged if line["reason"] == "slow"]
    assert slow == [1, 20, 20]
    assert len(logged) == 6


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_connections_are_given_what_counts_by_the_application(service: Service) -> None:
    """As the server does it: over the state of the lifespan, which every connection has."""
    shared: dict[str, Any] = {}
    ready, stop = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        if ready.is_set():
            await stop.wait()
            return {"type": "lifespan.shutdown"}
        return {"type": "lifespan.startup"}

    async def send(_message: Any) -> None:
        ready.set()

    application = Application(service.state.settings)
    lifespan = asyncio.create_task(
        application({"type": "lifespan", "state": shared}, receive, send)
    )
    await ready.wait()
    shared["incomplete"].add("slow")
    transport = httpx2.ASGITransport(application)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as http:
        text = (await http.get("/metrics")).text
    stop.set()
    await lifespan
    assert 'factbook_answers_incomplete_total{reason="slow"} 1.0' in text

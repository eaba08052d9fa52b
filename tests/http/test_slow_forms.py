"""Forms that arrive slowly, from people of whom nothing is known yet."""

import asyncio

import pytest
from starlette.types import Message

from tests.conftest import StartService
from tests.service import Service

HTML = {"accept": "text/html"}
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def half_sent(service: Service, reading: asyncio.Event) -> None:
    """A form to sign in, of which the second half never comes; says when it is waited for."""

    async def receive() -> Message:
        reading.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/sign-in",
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"),
            (b"content-type", b"application/x-www-form-urlencoded"),
        ],
        "client": ("192.0.2.7", 1),
    }
    await service.application(scope, receive, send)


@ON_SQLITE
async def test_forms_that_do_not_arrive_keep_nobody_else_out(start: StartService) -> None:
    service = await start(max_requests=2)
    waiting = [asyncio.Event() for _ in range(5)]
    tasks = [asyncio.create_task(half_sent(service, reading)) for reading in waiting]
    for reading in waiting:
        await asyncio.wait_for(reading.wait(), 60)
    answer = await service.http.get("/sign-in", headers=HTML)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert answer.status_code == 200

"""The command line in a thread of this process, the service in its loop, and sources for both."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import yaml
from typer.testing import CliRunner, Result

from factbook.cli.commands import app
from tests.service import Service

SOURCES = "/api/tech-insights/v1/data-sources"

Run = Callable[..., Awaitable[Result]]
"""Runs `factbook` with these arguments; `input` is its standard input, `color` a terminal."""


def commands(service: Service) -> Run:
    """What runs commands that talk to this service."""
    transport = Bridge(service)

    async def run(*arguments: str, input: str | None = None, color: bool = False) -> Result:
        return await asyncio.to_thread(
            CliRunner().invoke, app, arguments, input=input, obj=transport, color=color
        )

    return run


class Bridge(httpx2.BaseTransport):
    """Takes the requests of a command to the service."""

    def __init__(self, service: Service) -> None:
        self._asgi = httpx2.ASGITransport(service.application, client=("127.0.0.1", 40_000))
        self._loop = asyncio.get_running_loop()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        return asyncio.run_coroutine_threadsafe(self._handle(request), self._loop).result(60)

    async def _handle(self, request: httpx2.Request) -> httpx2.Response:
        answer = await self._asgi.handle_async_request(request)
        return httpx2.Response(
            answer.status_code, headers=answer.headers, content=await answer.aread()
        )


def definition(id_: str = "coverage", **changes: Any) -> dict[str, Any]:
    """A source whose facts are pushed."""
    return {
        "id": id_,
        "title": "Coverage",
        "handlerDefinition": {"type": "push", "config": {"id": id_}},
        "schema": {
            "coverage": {"type": "float", "unit": "percent"},
            "branches": {"type": "set"},
            "passed": {"type": "boolean"},
            "tool": {"type": "string"},
        },
        **changes,
    }


def write(name: str, *documents: dict[str, Any]) -> str:
    """A file with these definitions; its name."""
    Path(name).write_text(yaml.safe_dump_all(documents, sort_keys=False))
    return name


async def one(service: Service, id_: str = "coverage") -> dict[str, Any]:
    """A source as the service shows it."""
    answer = await service.http.get(f"{SOURCES}/{id_}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def custom_ids(service: Service) -> list[str]:
    """The ids of all sources that were defined on the service."""
    found = (await service.http.get(SOURCES)).json()["dataSources"]
    return [source["id"] for source in found if source["origin"] == "custom"]

"""`factbook sources test` of a source that asks another system, from end to end."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.cli.bridge import commands
from tests.conftest import StartService
from tests.service import component

BUILD = {"result": "success", "minutes": 2}
BUILDS = {
    "id": "builds",
    "title": "Builds",
    "handlerDefinition": {
        "type": "http",
        "config": {
            "id": "builds",
            "connection": "ci",
            "path": "/jobs/{{ metadata.name }}",
            "query": {"owner": "{{ spec.owner }}"},
            "headers": {"x-tier": "hunter2"},
        },
    },
    "schema": {
        "passed": {"type": "boolean", "extract": {"jmespath": "result == 'success'"}},
        "minutes": {"type": "integer", "extract": {"regex": '"minutes":\\s*(\\d+)'}},
    },
}


@pytest.fixture
async def ci() -> AsyncIterator[tuple[str, list[str]]]:
    """The address of a system that knows one build, and what it was asked."""
    heads: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        body = json.dumps(BUILD).encode()
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heads


async def test_a_source_is_asked_once_and_replayed_without_secrets(
    start: StartService,
    ci: tuple[str, list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    address, heads = ci
    connection = {"base_url": address, "headers": {"authorization": "Bearer sesame"}}
    service = await start(connections={"ci": connection}, outgoing_networks=["127.0.0.0/8"])
    await service.push("all", component("a web"))
    monkeypatch.chdir(tmp_path)
    token = await service.token()
    factbook = commands(service)
    file = tmp_path / "builds.json"
    file.write_text(json.dumps(BUILDS))
    arguments = ["sources", "test", file.name, "--entity", "a web", "--recorded", "kept"]
    with capture_logs():
        first = await factbook(*arguments, "--token", token)
        again = await factbook(*arguments)
    assert first.exit_code == 0, first.output
    assert "Request: GET /jobs/a%20web?owner=team-a" in first.stdout
    assert (again.exit_code, again.stdout) == (0, first.stdout)
    (head,) = heads
    assert "bearer sesame" in head
    kept = (tmp_path / "kept" / "builds" / "component.default.a%20web.recording.json").read_text()
    shown: Any = json.loads(kept)["answer"]["body"]
    assert json.loads(shown) == BUILD
    for secret in ("sesame", "hunter2", token):
        assert secret not in first.output + again.output + kept

"""The command line in this process, and the server that it talks to."""

import os
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs
from typer.main import get_command
from typer.testing import CliRunner, Result

from factbook.cli.commands import app
from tests.cli.bridge import SOURCES, Run, commands
from tests.cli.fake_server import FakeServer, component
from tests.cli.trials import WEB, trial
from tests.service import Service

Command = Callable[..., Result]
"""Runs `factbook` with these arguments; `input` is its standard input."""


@pytest.fixture(scope="session", autouse=True)
def one_parser() -> Iterator[None]:
    """Typer's runner makes the parser of all commands once, and not for each: it takes 20 ms."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def factbook(server: FakeServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:
    for name in [name for name in os.environ if name.startswith("FACTBOOK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    transport = httpx2.MockTransport(server)

    def run(*arguments: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, arguments, input=input, obj=transport)

    return run


@pytest.fixture
def prepared(server: FakeServer) -> FakeServer:
    """A server that tries `builds` on the component web."""
    server.on("POST", f"{SOURCES}/builds/test", trial())
    server.on("GET", WEB, component("web"))
    return server


@pytest.fixture
async def served(
    service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[Run]:
    """Runs `factbook` against a real service; its token carries every permission."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FACTBOOK_TOKEN", await service.token())
    # What the service logs would stand in the output of the command.
    with capture_logs():
        yield commands(service)

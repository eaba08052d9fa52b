"""A fake Git host, and a place of its own for what is temporary."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.git import FakeGit, Hosts, hosted
from tests.integrations.git.asking import TOKEN, Collector

Make = Callable[..., Collector]


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which temporary ones are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def fake(tmp_path: Path) -> FakeGit:
    """A host that lets everybody read."""
    return FakeGit(tmp_path / "repositories")


@pytest.fixture
def guarded(tmp_path: Path) -> FakeGit:
    """A host that wants a token."""
    return FakeGit(tmp_path / "repositories", token=TOKEN)


@pytest.fixture(scope="session")
def hosts() -> Iterator[tuple[Hosts, int]]:
    """Where fakes are served, and the port."""
    hosts = Hosts()
    with hosted(hosts) as port:
        yield hosts, port


@pytest.fixture
async def make(hosts: tuple[Hosts, int]) -> AsyncIterator[Make]:
    """Serves fakes, and makes the integration for each."""
    async with AsyncExitStack() as stack:

        def make(fake: FakeGit, **table: Any) -> Collector:
            path = hosts[0].add(fake)
            collector = Collector(fake, f"http://127.0.0.1:{hosts[1]}{path}", **table)
            stack.push_async_callback(collector.client.aclose)
            return collector

        yield make

"""What every test can ask for: both databases, a running service, clients, a clock to set.

`database_url` runs a test twice, on SQLite and on a real PostgreSQL; so does what is made from it.
"""

import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from factbook.settings import Settings
from factbook.storage import Database, open_database
from factbook.storage.migrations import migrate
from tests.postgresql import PostgreSQLServer
from tests.service import NOON, Service, started

TOKEN_KEY = "a key of tests, long enough to be one"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLServer]:
    """A PostgreSQL of this run's own, or the one that FACTBOOK_TEST_POSTGRES_URL names."""
    with PostgreSQLServer.start(os.environ.get("FACTBOOK_TEST_POSTGRES_URL")) as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of an empty database, once of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'factbook.db'}"
        return
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    with server.database(f"test_{secrets.token_hex(8)}") as url:
        yield url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An open, migrated, empty database."""
    database = await open_database(database_url, connections=6)
    await migrate(database, NOON)
    yield database
    await database.close()


StartService = Callable[..., Awaitable[Service]]


@pytest.fixture
async def start(database_url: str) -> AsyncIterator[StartService]:
    """Starts services, with the settings given, on the test's database."""
    async with AsyncExitStack() as stack:

        async def start_service(**settings: Any) -> Service:
            sources = settings.pop("sources", None)
            given = {"database_url": database_url, "token_key": TOKEN_KEY, **settings}
            return await stack.enter_async_context(started(Settings(**given), sources=sources))

        yield start_service


@pytest.fixture
async def service(start: StartService) -> Service:
    """A running service with the default settings."""
    return await start()


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real input, which FACTBOOK_TEST_DATA names."""
    named = os.environ.get("FACTBOOK_TEST_DATA", "../shared/data")
    path = (Path(__file__).parent.parent / named).resolve()
    assert path.is_dir(), f"FACTBOOK_TEST_DATA has to name a folder; there is none at {named}"
    return path

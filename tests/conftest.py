"""What every test can ask for: both databases, a running service, clients, a clock to set.

`database_url` runs a test twice, on SQLite and on a real PostgreSQL; so does what is made from it.
"""

import asyncio
import gc
import os
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

from factbook.clock import Throttle
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests import memory
from tests.citus import CitusCoordinator
from tests.postgresql import PostgreSQLServer
from tests.service import NOON, Service, started

TOKEN_KEY = "a key of tests, long enough to be one"


def pytest_configure(config: pytest.Config) -> None:
    """Choose where tests write, which examples Hypothesis tries, and how logs show tracebacks.

    Folders of tests are in memory, which spares each test on SQLite about 5 ms of CPU time, but for
    system tests: these use a disk and what only its file system can do.
    Examples are the same in each run, without a deadline by the wall clock; `make soak` tries new
    ones. Tracebacks are plain, since others take seconds to draw.
    """
    folder = memory.folder() if config.getoption("markexpr") == "not system" else None
    if folder is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
    same = not os.environ.get("FACTBOOK_SOAK")
    hypothesis.settings.register_profile("factbook", deadline=None, derandomize=same)
    hypothesis.settings.load_profile("factbook")
    *processors, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, plain])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is imported and found to itself, now and later: no cycle among it ever ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def no_rests() -> Iterator[None]:
    """Housekeeping goes on at once, where it would rest for 19 times as long as it worked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Throttle, "REST", 0.0)
        yield


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[PostgreSQLServer | CitusCoordinator]:
    """A PostgreSQL of this run's own, or the one that FACTBOOK_TEST_POSTGRES_URL names.

    With FACTBOOK_TEST_CITUS_URL it is a cluster, over which facts are distributed.
    """
    if coordinator := os.environ.get("FACTBOOK_TEST_CITUS_URL"):
        yield CitusCoordinator(coordinator)
        return
    with PostgreSQLServer.start(os.environ.get("FACTBOOK_TEST_POSTGRES_URL")) as server:
        yield server


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with the schema and no rows, to copy."""
    file = tmp_path_factory.mktemp("migrated") / "factbook.db"
    asyncio.run(migrated(f"sqlite:///{file}"))
    return file


@pytest.fixture(scope="session")
def migrated_name(postgresql_server: PostgreSQLServer) -> Iterator[str]:
    """A PostgreSQL database with the schema and no rows, to copy."""
    name = f"migrated_{secrets.token_hex(8)}"
    with postgresql_server.database(name) as url:
        asyncio.run(migrated(url))
        yield name


async def migrated(url: str) -> None:
    database = await open_database(url, connections=3)
    await migrate(database, NOON)
    await database.close()


@pytest.fixture
def sqlite_url(migrated_file: Path, tmp_path: Path) -> str:
    """The address of a SQLite file without rows, for tests that one database is enough for."""
    return f"sqlite:///{shutil.copy(migrated_file, tmp_path)}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a database without rows, once of each kind; it need not be migrated."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    like = request.getfixturevalue("migrated_name")
    with server.database(f"test_{secrets.token_hex(8)}", like=like) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without anything, once of each kind."""
    yield from empty_database(request, tmp_path)


def empty_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """What `empty_database_url` gives, for fixtures of the same parameters."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
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


@pytest.fixture
async def base(database: Database, database_url: str) -> AsyncIterator[Database]:
    """The same database, as another process has it open."""
    base = await open_database(database_url, connections=6)
    yield base
    await base.close()


StartService = Callable[..., Awaitable[Service]]


@pytest.fixture
async def start(database_url: str) -> AsyncIterator[StartService]:
    """Starts services, with the settings given, on the test's database."""
    async with AsyncExitStack() as stack:

        async def start_service(**settings: Any) -> Service:
            seams = {
                name: settings.pop(name, None)
                for name in ("sources", "openid", "fetch_document", "company")
            }
            given = {"database_url": database_url, "token_key": TOKEN_KEY, **settings}
            return await stack.enter_async_context(started(Settings(**given), **seams))

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

"""Fixtures for every test: a database, a running service, clients, a clock to set.

Tests with a database run on SQLite. In the rooms of `BOTH_DATABASES`, and with the marker
`both_databases`, they run twice: on SQLite and on a real PostgreSQL. The second is a slow test,
except in the rooms of `STORES`. With FACTBOOK_TEST_DATABASES=both every test runs on both; with
`sqlite` none runs on PostgreSQL.
"""

import asyncio
import gc
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, closing
from pathlib import Path
from typing import Any, Final

import argon2
import hypothesis
import pytest
import structlog

from factbook.auth import passwords
from factbook.clock import Throttle
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database_url import open_database
from factbook.storage.migrations import migrate
from tests import memory
from tests.citus import CitusCoordinator
from tests.postgresql import PostgreSQLServer, started_server
from tests.postgresql_programs import PostgreSQLError
from tests.run_folder import RunFolder
from tests.service import NOON, Service, started
from tests.statements import StatementRecorder, report_statements

TESTS: Final = Path(__file__).parent
_USUAL_DATA: Final = "../shared/data"
TOKEN_KEY = "a key of tests, long enough to be one"
# The rooms of stores, and those of locks, faults and processes. Elsewhere `both_databases` is used.
BOTH_DATABASES: Final = frozenset(
    [
        "auth",
        "catalog",
        "contracts",
        "events",
        "facts",
        "faults",
        "model",
        "scheduling",
        "storage",
        "system",
    ]
)


# Of these, the rooms whose tests on PostgreSQL are not slow tests.
STORES: Final = frozenset(["catalog", "events", "facts", "scheduling", "storage"])

_LIGHT_HASHER: Final = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)

FOLDER = pytest.StashKey[RunFolder]()
POSTGRESQL_URL = pytest.StashKey[str]()
RECORDER = pytest.StashKey[StatementRecorder]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose where tests write, which examples Hypothesis tries, and how logs show tracebacks.

    Examples are the same in each run, without a deadline by the wall clock; `make soak` tries new
    ones. Tracebacks are plain, since others take seconds to draw.
    """
    if os.environ.get("FACTBOOK_TEST_DATABASES") not in (None, "both", "sqlite"):
        raise pytest.UsageError("FACTBOOK_TEST_DATABASES has to be `both` or `sqlite`")
    if _is_worker(config):
        config.stash[POSTGRESQL_URL] = config.workerinput["postgresql_url"]  # type: ignore[attr-defined]
    else:
        _use_one_folder(config)
    config.stash[RECORDER] = StatementRecorder()
    same = not os.environ.get("FACTBOOK_SOAK")
    hypothesis.settings.register_profile("factbook", deadline=None, derandomize=same)
    hypothesis.settings.load_profile("factbook")
    *processors, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, plain])


def _use_one_folder(config: pytest.Config) -> None:
    """Put all temporary files of the run into one folder, in memory if there is enough.

    Memory saves each test on SQLite about 5 ms of CPU time. System tests need the file system of a
    disk.
    """
    in_memory = config.getoption("markexpr") in (
        "not slow and not system",
        "slow and not system",
        "not system",
    )
    memory_folder = memory.folder() if in_memory else None
    parent = os.environ.get("PYTEST_DEBUG_TEMPROOT") or memory_folder or tempfile.gettempdir()
    folder = config.stash[FOLDER] = RunFolder(Path(parent))
    folder.use()
    config.add_cleanup(folder.remove_unless_kept)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start PostgreSQL before the workers that share it."""
    workers = _workers(session.config)
    if workers and not _needs_no_server(session.config):
        _start_postgresql(session.config, workers)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Without workers, start PostgreSQL if a test needs it."""
    config = session.config
    if not (_is_worker(config) or _workers(config) or _needs_no_server(config)) and any(
        map(_needs_postgresql, session.items)
    ):
        _start_postgresql(config, 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give a worker the address of PostgreSQL."""
    node.workerinput["postgresql_url"] = node.config.stash.get(POSTGRESQL_URL, "")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Collect the statements that a worker ran on SQLite."""
    statements = getattr(node, "workeroutput", {}).get("statements", ())
    node.config.stash[RECORDER].statements.update(statements)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Prepare the statements of SQLite on PostgreSQL, and keep the folder if tests failed."""
    config = session.config
    if _is_worker(config):
        config.workeroutput["statements"] = list(config.stash[RECORDER].statements)  # type: ignore[attr-defined]
    elif url := config.stash.get(POSTGRESQL_URL, None):
        statements = config.stash[RECORDER].statements
        with (
            closing(PostgreSQLServer.at_started(url)) as server,
            server.database("statements") as database_url,
        ):
            file = config.stash[FOLDER].path / "statements.db"
            for url in (f"sqlite:///{file}", database_url):
                asyncio.run(migrated(url))
            report_statements(session, file, database_url, statements)
    if exitstatus == pytest.ExitCode.TESTS_FAILED and FOLDER in session.config.stash:
        session.config.stash[FOLDER].keep()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the folder of tests that failed."""
    if config.stash[FOLDER].is_kept:
        path = config.stash[FOLDER].path
        terminalreporter.write_line(f"{path} keeps the files of failed tests until the next run.")


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _workers(config: pytest.Config) -> int:
    """How many workers this process starts."""
    return 0 if _is_worker(config) else len(config.getoption("tx", None) or ())


def _needs_no_server(config: pytest.Config) -> bool:
    named = ("FACTBOOK_TEST_CITUS_URL", "FACTBOOK_TEST_POSTGRES_URL")
    return (
        config.getoption("collectonly")
        or os.environ.get("FACTBOOK_TEST_DATABASES") == "sqlite"
        or any(map(os.environ.get, named))
    )


def _start_postgresql(config: pytest.Config, workers: int) -> None:
    """Start a server that stops with this process. End the run if it doesn't start."""
    stack = ExitStack()
    config.add_cleanup(stack.close)
    server = started_server(Path(tempfile.gettempdir()), workers=workers)
    try:
        config.stash[POSTGRESQL_URL] = stack.enter_context(server)
    except PostgreSQLError as error:
        pytest.exit(
            f"The tests need PostgreSQL, but it doesn't start: {error}\n"
            "Fix this, or set FACTBOOK_TEST_POSTGRES_URL to a server on which tests may create "
            "databases and roles.",
            returncode=pytest.ExitCode.USAGE_ERROR,
        )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what is imported and found to itself, now and later: no cycle among it ever ends."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the databases of a test that doesn't choose them itself."""
    markers = metafunc.definition.iter_markers("parametrize")
    chosen = {name.strip() for marker in markers for name in _names(marker.args[0])}
    for fixture in ("database_url", "empty_database_url"):
        if fixture in metafunc.fixturenames and fixture not in chosen:
            metafunc.parametrize(fixture, _databases(metafunc), indirect=True)


def _names(argument: str | Sequence[str]) -> Sequence[str]:
    return argument.split(",") if isinstance(argument, str) else argument


def _databases(metafunc: pytest.Metafunc) -> list[Any]:
    room = metafunc.definition.path.relative_to(TESTS).parts[0]
    both = (
        room in BOTH_DATABASES
        or metafunc.definition.get_closest_marker("both_databases") is not None
        or os.environ.get("FACTBOOK_TEST_DATABASES") == "both"
    )
    if not both:
        return ["sqlite"]
    marks = () if room in STORES else (pytest.mark.slow,)
    return ["sqlite", pytest.param("postgresql", marks=marks)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests on PostgreSQL if FACTBOOK_TEST_DATABASES is `sqlite`."""
    if os.environ.get("FACTBOOK_TEST_DATABASES") != "sqlite":
        return
    on_postgresql = [item for item in items if _needs_postgresql(item)]
    config.hook.pytest_deselected(items=on_postgresql)
    items[:] = [item for item in items if not _needs_postgresql(item)]


def _needs_postgresql(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    databases = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "postgresql" in databases or "postgresql_server" in item.fixturenames


@pytest.fixture(scope="module", autouse=True)
def light_passwords() -> Iterator[None]:
    """Hash passwords quickly. `tests/auth/test_passwords.py` checks the real parameters."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _LIGHT_HASHER)
        patch.setattr(passwords, "_NOBODY", f"$argon2id$v=19$m=8,t=1,p=1${'A' * 22}${'A' * 43}")
        yield


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
def postgresql_server(
    request: pytest.FixtureRequest,
) -> Iterator[PostgreSQLServer | CitusCoordinator]:
    """A PostgreSQL of this run's own, or the one that FACTBOOK_TEST_POSTGRES_URL names.

    With FACTBOOK_TEST_CITUS_URL it is a cluster, over which facts are distributed.
    """
    if coordinator := os.environ.get("FACTBOOK_TEST_CITUS_URL"):
        yield CitusCoordinator(coordinator)
        return
    if url := os.environ.get("FACTBOOK_TEST_POSTGRES_URL"):
        server = PostgreSQLServer(url)
    else:
        server = PostgreSQLServer.at_started(request.config.stash[POSTGRESQL_URL])
    with closing(server):
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


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a database without rows; it need not be migrated."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    like = request.getfixturevalue("migrated_name")
    with server.database(f"test_{secrets.token_hex(8)}", like=like) as url:
        yield url


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without anything."""
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
            # People whom a test pushes have the rights of their groups, unless it says otherwise.
            usual = {"database_url": database_url, "token_key": TOKEN_KEY, "people_sets": ["*"]}
            given = {**usual, **settings}
            return await stack.enter_async_context(started(Settings(**given), **seams))

        yield start_service


@pytest.fixture
async def service(start: StartService) -> Service:
    """A running service with the default settings."""
    return await start()


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder of real input, from FACTBOOK_TEST_DATA; without it the test is skipped."""
    named = os.environ.get("FACTBOOK_TEST_DATA")
    path = (Path(__file__).parent.parent / (named or _USUAL_DATA)).resolve()
    if not named and not path.is_dir():
        pytest.skip(
            f"Needs real input: FACTBOOK_TEST_DATA isn't set, and {_USUAL_DATA} isn't there"
        )
    assert path.is_dir(), f"FACTBOOK_TEST_DATA has to name a folder; there is none at {named}"
    return path

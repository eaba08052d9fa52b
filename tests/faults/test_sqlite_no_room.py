"""The service starts where files cannot grow: it reads, and writes again when they can."""

import resource
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from structlog.testing import capture_logs

from factbook.app import Application
from factbook.auth import encryption
from factbook.errors import UnavailableError
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from factbook.storage.database_url import open_database
from factbook.storage.migrations import get_migration_texts, migrate
from tests.conftest import TOKEN_KEY
from tests.service import NOON, Service, Time, component, started

ENTITIES = "/api/catalog/entities"
FULL = "The disk that holds the database is full, so nothing can be written to it."
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
# Less than the index of SQLite's log takes.
_LITTLE = 16 * 1024


@contextmanager
def full_disk() -> Iterator[None]:
    """Within the block no file of this process can grow, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LITTLE, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def file(migrated_file: Path, tmp_path: Path) -> Path:
    """A migrated database."""
    found = tmp_path / "factbook.db"
    shutil.copy(migrated_file, found)
    return found


@pytest.fixture
def disk() -> Iterator[ExitStack]:
    """A disk that is full until this is closed."""
    with ExitStack() as stack:
        stack.enter_context(full_disk())
        yield stack


@pytest.fixture
async def filled(file: Path, disk: ExitStack) -> AsyncIterator[Database]:
    """A database that was opened on a full disk."""
    database = await open_database(f"sqlite:///{file}")
    yield database
    await database.close()


def note_elsewhere(file: Path) -> None:
    """Let another process write."""
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])"
    insert = "INSERT INTO leases VALUES ('theirs', 'b', 1)"
    subprocess.run([sys.executable, "-c", program, file, insert], check=True)


def note(transaction: Transaction) -> None:
    transaction.run("INSERT INTO leases VALUES ('a', 'b', 1)")


@pytest.mark.spec("faults.sqlite-start-on-a-full-disk")
@ON_SQLITE
async def test_a_service_that_starts_on_a_full_disk_reads_until_there_is_room(
    database_url: str,
) -> None:
    settings = Settings(database_url=database_url, token_key=TOKEN_KEY)
    async with started(settings) as before:
        token = await before.token()
        assert (await before.push("a", component("web"))).status_code == 200
    application = Application(settings)
    with capture_logs() as logs, ExitStack() as disk:
        disk.enter_context(full_disk())
        async with application.running() as state:
            service = Service(application, state, Time())
            async with service.client(token) as service.http:
                for _ in range(2):
                    assert await names(service) == ["web"]
                    refused = await service.push("b", component("new"))
                    assert (refused.status_code, message(refused)) == (503, FULL)
                    assert await ready(service) == {"status": "ready", "writes": FULL}
                disk.close()
                assert (await service.push("b", component("new"))).status_code == 200
                assert sorted(await names(service)) == ["new", "web"]
                assert await ready(service) == {"status": "ready"}
    told = [one for one in logs if one["event"].startswith("database.")]
    assert [one["event"] for one in told] == ["database.unwritable", "database.writable"]
    assert told[0]["reason"] == FULL
    assert told[0]["advice"].startswith("Free some room on the disk of ")


async def names(service: Service) -> list[str]:
    found = (await service.http.get(ENTITIES)).json()
    return [entity["metadata"]["name"] for entity in found]


async def ready(service: Service) -> dict[str, str]:
    answer = await service.http.get("/readyz")
    assert answer.status_code == 200
    found: dict[str, str] = answer.json()
    return found


def message(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["message"])


async def test_a_look_at_the_database_is_enough_to_notice_that_there_is_room(
    filled: Database, disk: ExitStack
) -> None:
    await filled.check()
    assert filled.trouble() == FULL
    disk.close()
    await filled.check()
    assert filled.trouble() is None
    await filled.write(note)


async def test_what_another_process_writes_meanwhile_is_read(
    filled: Database, disk: ExitStack, file: Path
) -> None:
    disk.close()
    note_elsewhere(file)
    assert await filled.all("SELECT name FROM leases") == [("theirs",)]
    await filled.write(note)
    assert await filled.all("SELECT name FROM leases ORDER BY name") == [("a",), ("theirs",)]


async def test_a_long_answer_that_is_under_way_ends_when_there_is_room(
    filled: Database, disk: ExitStack
) -> None:
    pages = filled.pages("SELECT name FROM schema_migrations ORDER BY name", size=1)
    await anext(pages)
    async with filled.moment() as moment:
        disk.close()
        await filled.write(note)
        with pytest.raises(UnavailableError, match="Try again"):
            await anext(pages)
        with pytest.raises(UnavailableError, match="Try again"):
            await moment.columns("SELECT json_group_array(name) FROM leases")
    assert await filled.all("SELECT name FROM leases") == [("a",)]
    assert [row async for [row] in filled.pages("SELECT name FROM leases")] == [("a",)]


async def test_a_new_database_is_not_made_on_a_full_disk(disk: ExitStack, tmp_path: Path) -> None:
    database = await open_database(f"sqlite:///{tmp_path}/new.db")
    with pytest.raises(UnavailableError, match=FULL) as raised:
        await migrate(database, NOON)
    assert "Free some room" in " ".join(raised.value.__notes__)
    await database.close()


async def test_a_migration_is_refused_on_a_full_disk_by_its_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/factbook.db"
    [first, second, *_] = get_migration_texts().items()
    before = await open_database(url)
    await migrate(before, NOON, known=dict([first]))
    await before.close()
    with full_disk():
        database = await open_database(url)
        with pytest.raises(UnavailableError) as raised:
            await migrate(database, NOON)
        await database.close()
    assert raised.value.message == FULL
    assert f"before {second[0]} is applied" in " ".join(raised.value.__notes__)


def test_a_key_that_finds_no_room_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))
    try:
        with pytest.raises(UnavailableError, match="The disk is full, so the key file"):
            encryption.make_token_key(None, tmp_path / "factbook.db.key")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []

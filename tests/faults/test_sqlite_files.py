"""The SQLite file is damaged, no database, removed or replaced: it is told, and nothing is lost."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from factbook.errors import OutdatedError, UnavailableError
from factbook.settings import Settings
from factbook.storage import Transaction
from factbook.storage.database_url import open_database
from tests.conftest import TOKEN_KEY, StartService
from tests.service import Service, component, started
from tests.sqlite_log import empty_log

ENTITIES = "/api/catalog/entities"
WEB = f"{ENTITIES}/by-name/component/default/web"
PAGE = 4096
DAMAGED = "The database is damaged."
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def overwritten(file: Path, start: int, size: int) -> None:
    """Put other bytes in the place of some."""
    with file.open("r+b") as opened:
        opened.seek(start)
        opened.write(b"\xa5" * size)


def header(file: Path) -> None:
    overwritten(file, 0, 100)


def schema(file: Path) -> None:
    overwritten(file, 100, PAGE - 100)


def cut_off(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(3 * PAGE)


def no_database(file: Path) -> None:
    file.write_text("name: a file of another kind\n" * 500)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def log_of_garbage(file: Path) -> None:
    file.with_name(f"{file.name}-wal").write_bytes(b"\xa5" * 3 * PAGE)


@pytest.mark.spec("faults.sqlite-damaged")
@pytest.mark.parametrize(
    ("fault", "reason", "advice"),
    [
        (header, "file is not a database", "factbook restore"),
        (schema, "database disk image is malformed", "factbook restore"),
        (cut_off, "database disk image is malformed", "factbook restore"),
        (no_database, "file is not a database", "factbook restore"),
        (folder, "unable to open database file", "has to be able to write to"),
        (log_of_garbage, "factbook.db-wal is damaged", "It holds the last writes"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
async def test_a_file_that_cannot_be_used_is_refused_with_advice(
    migrated_file: Path, tmp_path: Path, fault: Callable[[Path], None], reason: str, advice: str
) -> None:
    file = tmp_path / "factbook.db"
    shutil.copy(migrated_file, file)
    fault(file)
    before = None if file.is_dir() else file.read_bytes()
    with pytest.raises(UnavailableError) as raised:
        await open_database(f"sqlite:///{file}")
    assert raised.value.message == f"The database {file} cannot be opened: {reason}."
    [told] = raised.value.__notes__
    assert advice in told
    assert before is None or file.read_bytes() == before


def linked(tmp_path: Path) -> tuple[Path, Path]:
    """A link, and the file in another folder that it leads to; there is none yet."""
    link, file = tmp_path / "link.db", tmp_path / "elsewhere" / "real.db"
    link.symlink_to(file)
    return link, file


async def test_a_damaged_log_is_found_beside_the_file_that_a_link_leads_to(
    migrated_file: Path, tmp_path: Path
) -> None:
    link, file = linked(tmp_path)
    file.parent.mkdir()
    shutil.copy(migrated_file, file)
    log_of_garbage(file)
    with pytest.raises(
        UnavailableError, match=r"link\.db cannot be opened: real\.db-wal is damaged"
    ):
        await open_database(f"sqlite:///{link}")


async def test_a_new_file_that_a_link_leads_to_is_for_its_user_alone(tmp_path: Path) -> None:
    link, file = linked(tmp_path)
    database = await open_database(f"sqlite:///{link}")
    await database.close()
    assert file.stat().st_mode & 0o777 == 0o600


async def test_a_link_that_leads_to_itself_is_told(tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(link)
    with pytest.raises(UnavailableError, match=r"link\.db cannot be opened"):
        await open_database(f"sqlite:///{link}")


@pytest.mark.parametrize(
    "part",
    ["link.db", "elsewhere/real.db", "elsewhere/real.db-wal", "elsewhere/real.db-shm"],
)
async def test_nothing_is_written_to_a_file_behind_a_link_when_a_part_is_removed(
    tmp_path: Path, part: str
) -> None:
    link, _ = linked(tmp_path)
    database = await open_database(f"sqlite:///{link}")
    await database.write(lambda tx: tx.run("CREATE TABLE notes (text TEXT)"))
    (tmp_path / part).rename(tmp_path / "aside")
    with pytest.raises(UnavailableError, match="removed or replaced"):
        await database.write(lambda tx: tx.run("INSERT INTO notes VALUES ('lost')"))
    with pytest.raises(UnavailableError, match="removed or replaced"):
        await database.check()
    (tmp_path / "aside").rename(tmp_path / part)
    await database.write(lambda tx: tx.run("INSERT INTO notes VALUES ('kept')"))
    assert await database.all("SELECT text FROM notes") == [("kept",)]
    await database.close()


async def test_what_a_write_itself_refuses_is_no_trouble_of_the_database(tmp_path: Path) -> None:
    def refuse(transaction: Transaction) -> None:
        raise OutdatedError

    database = await open_database(f"sqlite:///{tmp_path}/factbook.db")
    with capture_logs() as logs:
        with pytest.raises(OutdatedError):
            await database.write(refuse)
        assert (database.trouble(), logs) == (None, [])
    await database.close()


@pytest.mark.spec("faults.sqlite-damaged")
@ON_SQLITE
async def test_a_page_that_is_damaged_is_told_and_no_write_makes_it_worse(
    database_url: str, tmp_path: Path
) -> None:
    settings = Settings(database_url=database_url, token_key=TOKEN_KEY)
    async with started(settings) as service:
        await service.push("a", component("web", description="x" * 20_000), component("other"))
    file = tmp_path / "factbook.db"
    damage_entities(file)
    async with started(settings) as service:
        with capture_logs() as logs:
            answer = await service.http.get(ENTITIES)
        assert answer.status_code == 503
        assert answer.json()["error"]["message"] == DAMAGED
        [event] = [one for one in logs if one["event"] == "database.damaged"]
        assert (event["log_level"], event["cause"]) == ("error", "database disk image is malformed")
        assert f"factbook doctor` says what can still be read of {file}" in event["advice"]
        assert (await service.http.get("/readyz")).status_code == 503
        assert (await service.http.get("/healthz")).status_code == 200
        before = changes(file)
        refused = await service.push("b", component("new"))
        assert (refused.status_code, refused.json()["error"]["message"]) == (503, DAMAGED)
        assert changes(file) == before


def damage_entities(file: Path) -> None:
    """Overwrite the first page of the entities."""
    empty_log(file)
    with closing(sqlite3.connect(file)) as database:
        [root] = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'entities'"
        ).fetchone()
    overwritten(file, (root - 1) * PAGE, PAGE)


def changes(file: Path) -> bytes:
    return file.with_name(f"{file.name}-wal").read_bytes()


@pytest.mark.spec("faults.sqlite-damaged")
@ON_SQLITE
@pytest.mark.parametrize("part", ["factbook.db", "factbook.db-wal", "factbook.db-shm"])
async def test_no_push_is_acknowledged_into_a_file_that_was_removed(
    service: Service, tmp_path: Path, part: str
) -> None:
    assert (await service.push("a", component("web"))).status_code == 200
    file, aside = tmp_path / part, tmp_path / "aside"
    file.rename(aside)
    refused = await service.push("b", component("lost"))
    assert refused.status_code == 503
    assert "removed or replaced" in refused.json()["error"]["message"]
    await service.http.get(ENTITIES)
    assert (await service.http.get("/readyz")).status_code == 503
    assert not file.exists()  # another one in its place would be taken for it
    aside.rename(file)
    assert (await service.http.get("/readyz")).status_code == 200
    assert (await service.push("b", component("kept"))).status_code == 200
    assert (await service.http.get(WEB)).status_code == 200


NOTE = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    database.execute("INSERT INTO notes VALUES (?)", (sys.argv[2],))
database.close()
"""
NOTES = """
import sqlite3, sys
for (text,) in sqlite3.connect(sys.argv[1]).execute("SELECT text FROM notes ORDER BY rowid"):
    print(text)
"""


def other_process(program: str, *arguments: str | Path) -> list[str]:
    """Lines that a process prints which shares nothing with this one but the files."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.spec("faults.sqlite-damaged")
async def test_nothing_acknowledged_is_lost_when_the_index_of_the_log_is_removed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "factbook.db"
    database = await open_database(f"sqlite:///{file}")
    await database.write(lambda tx: tx.run("CREATE TABLE notes (text TEXT)"))
    acknowledged = []

    async def note(text: str) -> None:
        with suppress(UnavailableError):
            await database.write(lambda tx: tx.run("INSERT INTO notes VALUES (?)", (text,)))
            acknowledged.append(text)

    await note("before")
    (tmp_path / "factbook.db-shm").unlink()
    for number in range(3):
        await note(f"ours-{number}")
        # It finds no index, makes another, and knows nothing of our locks and writes.
        other_process(NOTE, file, f"theirs-{number}")
        acknowledged.append(f"theirs-{number}")
        await note(f"ours-again-{number}")
    with pytest.raises(UnavailableError, match="removed or replaced"):
        await database.all("SELECT text FROM notes")
    await database.close()
    assert other_process(NOTES, file) == acknowledged


async def test_an_index_that_is_removed_during_a_write_lets_nobody_take_it_for_done(
    tmp_path: Path,
) -> None:
    index = tmp_path / "factbook.db-shm"

    def work(transaction: Transaction) -> None:
        transaction.run("INSERT INTO notes VALUES ('lost')")
        index.rename(tmp_path / "aside")

    database = await open_database(f"sqlite:///{tmp_path}/factbook.db")
    await database.write(lambda tx: tx.run("CREATE TABLE notes (text TEXT)"))
    with pytest.raises(UnavailableError, match="removed or replaced"):
        await database.write(work)
    (tmp_path / "aside").rename(index)
    await database.check()
    assert await database.all("SELECT text FROM notes") == []
    await database.close()


@ON_SQLITE
async def test_a_file_that_was_put_in_the_place_of_the_open_one_is_not_mixed_up_with_it(
    service: Service, migrated_file: Path, tmp_path: Path
) -> None:
    assert (await service.push("a", component("web"))).status_code == 200
    other = tmp_path / "other.db"
    shutil.copy(migrated_file, other)
    before = other.read_bytes()
    file = tmp_path / "factbook.db"
    other.replace(file)
    refused = await service.push("b", component("lost"))
    assert refused.status_code == 503
    assert (await service.http.get(ENTITIES)).json() != []
    assert (await service.http.get("/readyz")).status_code == 503
    assert file.read_bytes() == before


@ON_SQLITE
async def test_two_services_on_one_file_see_each_others_writes_at_once(
    start: StartService,
) -> None:
    one, two = await start(), await start()
    for number in range(5):
        pusher, reader = (one, two) if number % 2 else (two, one)
        assert (await pusher.push(f"s{number}", component(f"c{number}"))).status_code == 200
        assert len((await reader.http.get(ENTITIES)).json()) == number + 1

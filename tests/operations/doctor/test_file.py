"""What the doctor says of a SQLite file that it cannot, or may not, look into."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from factbook.operations.doctor import database
from tests.conftest import StartService
from tests.operations.doctor.conftest import Look, is_well, only
from tests.service import component

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def file_of(database_url: str) -> Path:
    return Path(database_url.removeprefix("sqlite:///"))


@pytest.mark.parametrize("linked", [False, True])
async def test_a_damaged_log_is_told_and_stays_as_it_is(
    start: StartService, look: Look, database_url: str, tmp_path: Path, linked: bool
) -> None:
    service = await start()
    await service.push("one", component("web"))
    # As a killed service leaves it.
    folder = tmp_path / "left"
    folder.mkdir()
    file, log = folder / "factbook.db", folder / "factbook.db-wal"
    shutil.copy(file_of(database_url), file)
    shutil.copy(f"{file_of(database_url)}-wal", log)
    named = tmp_path / "link.db" if linked else file
    if linked:
        named.symlink_to(file)
    with log.open("r+b") as opened:
        opened.write(b"\xa5" * 8)
    before = log.read_bytes()
    for quick in (False, True):
        found = only(await look(database_url=f"sqlite:///{named}", quick=quick), "database")
        assert (found.state, found.what) == ("problem", "factbook.db-wal is damaged.")
        assert found.advice.startswith("It holds the last writes.")
        assert log.read_bytes() == before


async def test_what_cannot_be_opened_is_not_called_damaged(look: Look, tmp_path: Path) -> None:
    folder = tmp_path / "folder.db"
    folder.mkdir()
    found = await look(database_url=f"sqlite:///{folder}")
    told = [one for one in found if one.topic == "database" and one.state == "problem"]
    assert told[0].what.startswith("The database cannot be opened (unable to open database file)")
    assert "has to be able to write to" in told[0].advice
    assert "damaged" not in str(told)


def test_what_another_process_keeps_locked_is_not_called_damaged(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody wants to wait for as long as the doctor does.
    monkeypatch.setattr(database, "_WAIT_SECONDS", 0.05)
    file = file_of(database_url)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        [found] = database.check_soundness(file, lambda: None)
    assert found.state == "problem"
    assert "locked" in found.what
    assert found.what.endswith("so it is not known whether it is sound.")
    assert f"Find out which process has {file} open" in found.advice


async def test_a_file_or_folder_that_cannot_be_written_to_is_a_problem(
    look: Look, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_well(await look(quick=True), "disk")
    file = file_of(database_url)
    for place in (file, file.parent):
        # Permissions do not hold back the user that tests may run as.
        monkeypatch.setattr("os.access", lambda path, mode, place=place: path != place)
        found = only(list(database.check_disk(file)), "disk")
        assert (found.state, found.what) == ("problem", f"This user cannot write to {place}.")

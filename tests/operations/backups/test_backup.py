"""`factbook backup`: a whole copy of a database that is in use, or none."""

import asyncio
import fcntl
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from factbook.clock import HOUR, SECOND
from factbook.errors import ConflictError, InputError, UnavailableError
from factbook.operations import backups
from factbook.settings import Settings
from tests.operations.backups.conftest import Installation, rows
from tests.service import NOON, Service, component

SETS, SIZE, BACKUPS = 4, 40, 6

_ITEMS = """
SELECT s.name, e.name, e.head || e.body FROM set_items i
JOIN sets s ON s.id = i.set_id JOIN entities e ON e.id = i.entity_id ORDER BY 1, i.position
"""


class Pushes:
    """Replaces a set again and again; the versions that were answered and begun last."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._name = name
        self.answered = self.begun = 0

    async def push(self) -> None:
        self.begun += 1
        names = [f"{self._name}-{number}" for number in range(SIZE)]
        items = [component(name, version=self.begun) for name in names]
        assert (await self._service.push(self._name, *items)).status_code == 200
        self.answered = self.begun

    async def go_on(self) -> None:
        while True:
            await self.push()


def versions(file: Path) -> dict[str, tuple[int, set[int]]]:
    """By set, how many items a copy holds and of which versions they are."""
    found: dict[str, tuple[int, set[int]]] = {}
    for set_name, _, text in rows(file, _ITEMS):
        version = int(text.partition('"version":')[2].split("}")[0].split(",")[0])
        count, seen = found.get(set_name, (0, set()))
        found[set_name] = (count + 1, seen | {version})
    return found


@pytest.mark.slow
@pytest.mark.spec("backups.whole-while-pushed")
async def test_a_backup_while_four_clients_push_holds_each_set_whole(
    installation: Installation,
) -> None:
    async with installation.running() as service:
        pushes = [Pushes(service, f"set-{number}") for number in range(SETS)]
        for one in pushes:
            await one.push()
        going = [asyncio.create_task(one.go_on()) for one in pushes]
        for number in range(BACKUPS):
            before = [one.answered for one in pushes]
            made = await installation.backup(now=NOON + number * SECOND)
            after = [one.begun for one in pushes]
            found = versions(made)
            for i, (answered, begun) in enumerate(zip(before, after, strict=True)):
                count, seen = found[f"set-{i}"]
                assert count == SIZE
                assert len(seen) == 1
                assert answered <= max(seen) <= begun
        assert all(one.answered > 1 for one in pushes)
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)


async def test_a_backup_is_one_private_file_with_the_key_in_it(installation: Installation) -> None:
    async with installation.running() as service:
        await service.push("one", component("web"))
        made = await installation.backup()
    assert made.name == "factbook-20261121T120000Z.db"
    assert made.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in installation.out.iterdir()] == [made.name]
    assert rows(made, "PRAGMA integrity_check") == [("ok",)]
    note = backups.note_in(made)
    assert note is not None
    assert (note.key, note.made_at) == (installation.key.read_text(), NOON)


async def test_a_key_of_the_settings_is_not_in_a_backup(tmp_path: Path) -> None:
    installation = Installation(tmp_path, token_key="a secret of the settings, long enough")
    async with installation.running():
        made = await installation.backup()
    assert b"a secret of the settings" not in made.read_bytes()
    assert installation.key.exists() is False


async def test_the_newest_backups_of_a_folder_are_kept_and_other_files_stay(
    installation: Installation,
) -> None:
    other = installation.out / "notes.db"
    other.touch()
    async with installation.running():
        for number in range(4):
            await installation.backup(now=NOON + number * SECOND, keep=2)
    assert sorted(one.name for one in installation.out.iterdir()) == [
        "factbook-20261121T120002Z.db",
        "factbook-20261121T120003Z.db",
        "notes.db",
    ]


async def test_the_backup_just_made_is_kept_when_the_clock_was_ahead_before(
    installation: Installation,
) -> None:
    async with installation.running():
        for hours in (48, 49, 50):
            await installation.backup(now=NOON + hours * HOUR)
        made = await installation.backup(keep=2)
    assert sorted(one.name for one in installation.out.iterdir()) == [
        made.name,
        "factbook-20261123T140000Z.db",
    ]


async def test_a_file_that_is_there_is_replaced_only_when_that_is_wanted(
    installation: Installation,
) -> None:
    file = installation.out / "mine.db"
    file.write_text("mine")
    async with installation.running():
        with pytest.raises(ConflictError, match="--force replaces it"):
            await installation.backup(file)
        assert file.read_text() == "mine"
        await installation.backup(file, replace=True)
        with pytest.raises(InputError, match="is the database itself"):
            await installation.backup(installation.file, replace=True)
    assert rows(file, "SELECT COUNT(*) FROM entities") == [(0,)]


async def test_a_second_backup_into_a_folder_waits_for_nobody_and_says_so(
    installation: Installation,
) -> None:
    unfinished = installation.out / ".factbook-backup.unfinished"
    async with installation.running():
        with unfinished.open("w") as other:
            fcntl.flock(other, fcntl.LOCK_EX)
            with pytest.raises(ConflictError, match="Another process is writing"):
                await installation.backup()
            assert unfinished.exists()
        # What a process that was killed left is no hindrance, and nobody else may read it.
        unfinished.write_bytes(b"half of a backup")
        unfinished.chmod(0o644)
        made = await installation.backup()
    assert unfinished.exists() is False
    assert made.stat().st_mode & 0o777 == 0o600


def test_a_draft_that_another_process_has_begun_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    unfinished = tmp_path / "unfinished"
    with ExitStack() as other:
        with backups.unfinished_file(unfinished):
            unfinished.rename(tmp_path / "whole")
            other.enter_context(backups.unfinished_file(unfinished))
            journal = tmp_path / "unfinished-journal"
            journal.touch()
        assert unfinished.exists()
        assert journal.exists()
    assert [one.name for one in tmp_path.iterdir()] == ["whole"]


async def test_a_link_in_the_place_of_the_unfinished_backup_is_not_followed(
    installation: Installation,
) -> None:
    other = installation.folder / "other"
    other.write_text("mine")
    (installation.out / ".factbook-backup.unfinished").symlink_to(other)
    async with installation.running():
        with pytest.raises(UnavailableError, match=r"factbook-backup\.unfinished"):
            await installation.backup()
    assert other.read_text() == "mine"


async def test_a_backup_that_has_no_room_is_not_begun(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with installation.running():
        # The one thing of the machine that a test cannot bring about.
        free = type("Usage", (), {"free": 4096})
        monkeypatch.setattr("shutil.disk_usage", lambda folder: free)
        with pytest.raises(UnavailableError, match="Free some, or name another folder"):
            await installation.backup()
    assert list(installation.out.iterdir()) == []


async def test_a_damaged_database_makes_no_backup(installation: Installation) -> None:
    async with installation.running() as service:
        await service.push("one", *(component(f"web-{number}") for number in range(300)))
    with closing(sqlite3.connect(installation.file)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    with installation.file.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\xff" * 8 * 4096)
    with pytest.raises(InputError, match=r"factbook\.db is damaged"):
        await installation.backup()
    assert list(installation.out.iterdir()) == []


@pytest.mark.parametrize("name", ["nowhere/backup.db", "backups"])
async def test_without_a_database_or_a_folder_there_is_nothing_to_do(
    installation: Installation, name: str
) -> None:
    with pytest.raises(InputError, match=r"There is no (folder|database)"):
        await installation.backup(installation.folder / name)


def test_postgresql_is_told_about_its_own_tools() -> None:
    settings = Settings(database_url="postgresql://h/d", token_key="k" * 32)
    with pytest.raises(InputError, match="pg_dump"):
        backups.make_backup(settings, Path(), show=lambda done, total: None)

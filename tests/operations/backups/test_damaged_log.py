"""A write-ahead log that SQLite would take for empty: what is in it is not lost by looking."""

import shutil
from collections.abc import Awaitable
from pathlib import Path

import pytest

from factbook.errors import FactbookError, UnavailableError
from factbook.storage.sqlite import advise_on_error
from tests.operations.backups.conftest import Installation, backed_up
from tests.service import component


async def left_behind(installation: Installation, to: Path) -> Path:
    """A database as a killed service leaves it, of whose log the head is damaged; the log."""
    async with installation.running() as service:
        await service.push("one", component("web"))
        log = to.with_name(f"{to.name}-wal")
        shutil.copy(installation.file, to)
        shutil.copy(installation.file.with_name("factbook.db-wal"), log)
    with log.open("r+b") as file:
        file.write(b"\xa5" * 8)
    return log


async def refused(work: Awaitable[object]) -> FactbookError:
    with pytest.raises(UnavailableError, match="-wal is damaged") as raised:
        await work
    return raised.value


async def test_a_backup_of_a_database_with_a_damaged_log_is_refused_and_the_log_stays(
    installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = Installation(tmp_path / "other")
    log = await left_behind(installation, other.file)
    before = log.read_bytes()
    told = await refused(other.backup())
    assert "It holds the last writes" in advise_on_error(told)
    assert log.read_bytes() == before
    assert list(other.out.iterdir()) == []


async def test_a_backup_with_a_damaged_log_beside_it_is_not_put_back(
    installation: Installation, tmp_path: Path
) -> None:
    log = await left_behind(installation, tmp_path / "copy.db")
    before = log.read_bytes()
    await refused(installation.restore(tmp_path / "copy.db"))
    assert log.read_bytes() == before


async def test_a_damaged_log_of_what_was_there_is_put_aside_as_it_is(
    installation: Installation, tmp_path: Path
) -> None:
    made, _, _ = await backed_up(installation)
    (tmp_path / "other").mkdir()
    other = Installation(tmp_path / "other")
    log = await left_behind(installation, other.file)
    before = log.read_bytes()
    done = await other.restore(made)
    assert done.aside is not None
    assert done.aside.with_name(f"{done.aside.name}-wal").read_bytes() == before
    assert log.exists() is False

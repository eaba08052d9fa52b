"""`factbook restore` of what is no backup, or none for this version: nothing is changed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from factbook.errors import InputError
from tests.operations.backups.conftest import Installation, answers, backed_up


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute(
            "INSERT INTO schema_migrations (name, applied_at) VALUES ('0999_later.sql', 1)"
        )


def torn(file: Path) -> None:
    with file.open("r+b") as content:
        content.seek(20 * 4096)
        content.write(b"\xff" * 8 * 4096)


def halved(file: Path) -> None:
    with file.open("r+b") as content:
        content.truncate(file.stat().st_size // 2)


def something_else(file: Path) -> None:
    file.write_text("This is a letter.")


def another_database(file: Path) -> None:
    file.unlink()
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE letters (text)")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (newer, "of a newer version, which has 0999_later.sql"),
        (torn, "is damaged"),
        (halved, "is damaged"),
        (something_else, "is damaged, or not a database"),
        (another_database, "not a database of Factbook"),
        (Path.unlink, "There is no backup"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_a_wrong_file_changes_nothing(
    installation: Installation, spoil: Any, told: str
) -> None:
    made, token, _ = await backed_up(installation)
    async with installation.running() as service:
        before = await answers(service, token)
    spoil(made)
    left = [name for name in installation.left() if name != made.name]
    with pytest.raises(InputError, match=told):
        await installation.restore(made)
    assert [name for name in installation.left() if name != made.name] == left
    async with installation.running() as service:
        assert await answers(service, token) == before

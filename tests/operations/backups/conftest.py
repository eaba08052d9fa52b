"""Backups of a SQLite file, made and put back as the commands do it."""

import asyncio
import sqlite3
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from factbook.operations import backups
from factbook.operations.backups import Restored
from factbook.settings import Settings
from tests.service import NOON, Service, component, started

HOUR_LATER = NOON + 3_600_000
READS = ("/api/catalog/entities", "/api/catalog/factbook-entities/sets")


class Installation:
    """A SQLite file with its key file, and the commands on it; `out` is a folder for backups."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.file = folder / "factbook.db"
        self.key = folder / "factbook.db.key"
        self.out = folder / "backups"
        self.out.mkdir(parents=True, exist_ok=True)
        self.settings = Settings(database_url=f"sqlite:///{self.file}", **settings)

    def running(self) -> AbstractAsyncContextManager[Service]:
        return started(self.settings)

    async def backup(self, to: Path | None = None, *, now: int = NOON, **options: Any) -> Path:
        given = {"show": lambda done, total: None, "clock": lambda: now} | options
        made, _ = await asyncio.to_thread(
            backups.make_backup, self.settings, to or self.out, **given
        )
        return made

    async def restore(self, file: Path, *, replace: bool = True, now: int = HOUR_LATER) -> Restored:
        done, _ = await self.restored(file, replace=replace, now=now)
        return done

    async def restored(
        self, file: Path, *, replace: bool = True, now: int = HOUR_LATER
    ) -> tuple[Restored, bool]:
        """What was done, and whether the key in force is the one of the backup."""
        return await asyncio.to_thread(
            backups.restore_backup,
            self.settings,
            file,
            show=lambda done, total: None,
            replace=replace,
            clock=lambda: now,
        )

    def left(self) -> list[str]:
        """The names in the folders of the database and of the backups."""
        found = [*self.folder.iterdir(), *self.out.iterdir()]
        return sorted(one.name for one in found if one.is_file())


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def rows(file: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a statement finds in a file."""
    with closing(sqlite3.connect(file)) as database:
        return database.execute(sql).fetchall()


async def answers(service: Service, token: str) -> list[Any]:
    """What the service says about everything, to somebody with a token from before."""
    async with service.client(token) as http:
        return [(await http.get(path)).json() for path in READS]


async def backed_up(installation: Installation) -> tuple[Path, str, list[Any]]:
    """A backup, a token that it knows, and what the service answered; afterwards more happened."""
    async with installation.running() as service:
        token = await service.token()
        await service.push("one", component("web"), component("api"))
        before = await answers(service, token)
        made = await installation.backup()
        await service.push("one", component("other"))
        await service.push("two", component("new"))
        assert await answers(service, token) != before
    return made, token, before

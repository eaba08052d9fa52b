"""Backups and restores of the database that the settings name."""

from pathlib import Path
from typing import Final

from factbook.auth import encryption
from factbook.backend import Backend
from factbook.clock import Clock, now
from factbook.errors import InputError
from factbook.operations.backups import files, restoration
from factbook.operations.backups.database_copy import Show
from factbook.operations.backups.restoration import Restored, settled
from factbook.settings import Settings
from factbook.storage.database_url import sqlite_path

_WITH_POSTGRESQL: Final = (
    "PostgreSQL has its own tools: make backups with pg_dump or with its archive of the log, and "
    "keep token_key beside them. After pg_restore run `factbook restore --already-restored`."
)


def backup(
    settings: Settings,
    to: Path,
    *,
    show: Show,
    replace: bool = False,
    keep: int | None = None,
    clock: Clock = now,
) -> tuple[Path, bool]:
    """Make a backup; returns its file and whether the key is in it, raises as `files.backup`."""
    database = _sqlite(settings)
    key, check = _key(settings)
    made = files.backup(
        database, to, key=key, key_check=check, now=clock(), show=show, replace=replace, keep=keep
    )
    return made, key is not None


def restore(
    settings: Settings, file: Path, *, show: Show, replace: bool = False, clock: Clock = now
) -> tuple[Restored, bool]:
    """Restore a backup; returns the result, and whether the key in force is the backup's.

    That counts as true where the backup says nothing of its key. Raises what `restoration.restore`
    does.
    """
    database = _sqlite(settings)
    done = restoration.restore(
        file, database, _key_file(settings), now=clock(), show=show, replace=replace
    )
    _, check = _key(settings)
    return done, done.note is None or check == done.note.key_check


async def settle(backend: Backend, clock: Clock = now) -> int:
    """Settle a database that was restored by other means; returns the feed's first place."""
    at = clock()
    async with backend.opened() as database:
        return await database.write(lambda tx: settled(tx, at, what="already restored"))


def _sqlite(settings: Settings) -> Path:
    """The database file itself, resolving a link in the settings: a link is to stay one."""
    if not settings.database_url.startswith("sqlite:"):
        raise InputError(_WITH_POSTGRESQL)
    return sqlite_path(settings.database_url).resolve()


def _key_file(settings: Settings) -> Path:
    """Path of the key file, existing or not; it is beside the path in the settings."""
    named = sqlite_path(settings.database_url)
    return named.with_name(f"{named.name}.key").resolve()


def _key(settings: Settings) -> tuple[str | None, str | None]:
    """Content of the key file, None where the settings hold the key; and its check value."""
    if settings.token_key is not None:
        return None, files.key_check(encryption.make_token_key(settings.token_key, None))
    file = _key_file(settings)
    if not file.exists():
        return None, None
    return file.read_text().strip(), files.key_check(encryption.make_token_key(None, file))

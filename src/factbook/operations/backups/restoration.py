"""Replacement of a database by a backup; the old database is put aside."""

import asyncio
import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from factbook.audit import trail
from factbook.audit.trail import COMMAND_LINE, AuditEntry, Caller
from factbook.auth import invitations, sessions
from factbook.auth.oauth import consents
from factbook.backend import migrate
from factbook.clock import SECOND
from factbook.errors import ConflictError, InputError, UnavailableError
from factbook.events import store as events
from factbook.operations.backups import database_copy, files
from factbook.operations.backups.database_copy import Show
from factbook.operations.backups.files import Note
from factbook.storage import Transaction, counters
from factbook.storage.database_url import open_database
from factbook.storage.migrations import names
from factbook.webhooks import store

# What every connection to a SQLite file holds a lock on while it is open in WAL mode.
# Source: https://www.sqlite.org/fileformat2.html, 1.6 the lock-byte page, and os_unix.c.
_SHARED: Final = 0x40000002
_SHARED_BYTES: Final = 510


class Restored(NamedTuple):
    """Result of a restore: the place of the old database, and what else is to be known.

    `unrecognized` describes what the schema has and Factbook didn't create, or lacks.
    """

    note: Note | None
    aside: Path | None
    migrations: list[str]
    key_restored: bool
    unrecognized: list[str]


def restore(
    file: Path, database: Path, key: Path, *, now: int, show: Show, replace: bool = False
) -> Restored:
    """Put the content of a backup in the place of a database, with its key; see `settled`.

    `key` is the key file, existing or not. The old database is put aside as a whole. Nothing is
    changed until everything is checked. Raises InputError for a file that is no sound backup or is
    of a newer version, ConflictError when a database exists that is not to be replaced, or is open
    in another process, UnavailableError.
    """
    if not file.is_file():
        raise InputError(f"There is no backup {file}.")
    if database.exists():
        if file.samefile(database):
            raise InputError(f"{file} is the database itself.")
        if not replace:
            raise ConflictError(f"There is already a database {database}; --force moves it aside.")
    database_copy.check(file, whole=True)
    _check_schema(file)
    note = files.note_of(file)
    if note is not None:
        files.check_checksum(file, note)
    with database_copy.told(database.parent):
        database.parent.mkdir(parents=True, exist_ok=True)
    above = _last_place(database)
    unfinished = database.with_name(f".{database.name}.restoring")
    with files.draft(unfinished), _alone(database):
        database_copy.copy(file, unfinished, show)
        files.forget_note(unfinished)
        url = f"sqlite:///{unfinished.resolve()}"
        applied = asyncio.run(_made_current(url, now, above, file.name))
        unrecognized = _unrecognized(unfinished, now)
        database_copy.make_whole(unfinished)
        database_copy.check(unfinished)
        files.remove_journals(unfinished)
        with database_copy.told(database):
            aside, key_restored = _switch(unfinished, database, key, note, now)
    return Restored(note, aside, applied, key_restored, unrecognized)


def _check_schema(file: Path) -> None:
    with database_copy.told(file), closing(database_copy.reading(file)) as found:
        known = found.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"
        ).fetchone()
        if not known:
            raise InputError(f"{file} is not a database of Factbook.")
        applied = {name for (name,) in found.execute("SELECT name FROM schema_migrations")}
    if newer := sorted(applied - set(names())):
        raise InputError(
            f"{file} is of a newer version, which has {', '.join(newer)}. Install that version, "
            "or a later one, and restore with it."
        )


def _unrecognized(file: Path, now: int) -> list[str]:
    """Differences to the schema of a new database: triggers, views, tables and indexes."""
    new = file.with_name(f"{file.name}.new")
    with files.draft(new):
        asyncio.run(_created(f"sqlite:///{new.resolve()}", now))
        expected = _schema(new)
    found = _schema(file)
    return [
        *(f"{what} was not created by Factbook" for what in sorted(found.keys() - expected.keys())),
        *(f"{what} is missing" for what in sorted(expected.keys() - found.keys())),
        *(
            f"{what} was changed"
            for what in sorted(found.keys() & expected.keys())
            # Of tables the text depends on the releases that they went through.
            if what.startswith(("trigger ", "view ")) and found[what] != expected[what]
        ),
    ]


async def _created(url: str, now: int) -> None:
    opened = await open_database(url)
    try:
        await migrate(opened, now)
    finally:
        await opened.close()


def _schema(file: Path) -> dict[str, str]:
    """The statement by which each part of a schema was created, by its kind and name."""
    with database_copy.told(file), closing(database_copy.reading(file)) as database:
        rows = database.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        ).fetchall()
    return {
        f"{kind} {name}" + ("" if table == name else f" on {table}"): " ".join(sql.split())
        for kind, name, table, sql in rows
    }


async def _made_current(url: str, now: int, above: int, what: str) -> list[str]:
    """Bring a copy's schema up to date and settle it; returns the applied migrations."""
    opened = await open_database(url)
    try:
        applied = await migrate(opened, now)
        await opened.write(lambda tx: settled(tx, now, above=above, what=what))
    finally:
        await opened.close()
    return applied


def settled(transaction: Transaction, now: int, *, above: int = 0, what: str = "") -> int:
    """Restart the feed of events, end sessions, invitations and consents of OAuth.

    Returns the feed's first place.

    The places of events go on from `now`, in milliseconds, or from `above` where that is higher: no
    event gets the id of an earlier one, as long as fewer than a thousand rows a second were
    recorded. Readers with an older cursor get 410. Webhooks go on with the events from here on.
    Sign-outs and used invitations since the backup are not undone.
    """
    place = events.restart(transaction, max(now, above))
    store.reset_webhooks(transaction, place)
    sessions.delete_all_sessions(transaction)
    invitations.delete_all_invitations(transaction)
    consents.delete_all_consents(transaction)
    trail.append(
        transaction,
        trail.record(Caller(COMMAND_LINE, now), AuditEntry("database.restore", what, {})),
    )
    return place.position


def _last_place(database: Path) -> int:
    """Highest place of an event that the database has given; 0 where that cannot be read.

    Closing the last connection checkpoints the log beside the file, too. A damaged log stays as it
    is.
    """
    if not database.exists():
        return 0
    with (
        suppress(sqlite3.Error, UnavailableError),
        closing(database_copy.reading(database)) as found,
    ):
        row = found.execute(counters.VALUE, (events.COUNTER,)).fetchone()
        # A schema from before there were events has none.
        return int(row[0]) + 1 if row else 0
    return 0


@contextmanager
def _alone(database: Path) -> Iterator[None]:
    """Keep others from opening the database; raises ConflictError when one has it open."""
    if not database.exists():
        yield
        return
    with database_copy.told(database):
        descriptor = os.open(database, os.O_RDWR)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_BYTES, _SHARED)
        except OSError:
            raise ConflictError(
                f"{database} is open in another process. Stop the service and its workers first."
            ) from None
        yield
    finally:
        os.close(descriptor)


def _switch(
    unfinished: Path, database: Path, key: Path, note: Note | None, now: int
) -> tuple[Path | None, bool]:
    """Give the new file its name; returns the old one's place and whether the key changed."""
    folder = database.parent
    _own_as(unfinished, database if database.exists() else folder)
    database_copy.to_disk(unfinished)
    new_key = key.with_name(f".{key.name}.restoring") if _brings_another(note, key) else None
    if new_key is not None and note is not None:
        _write_private(new_key, note.key or "")
        _own_as(new_key, database if database.exists() else folder)
    aside = _put_aside(database, key, now) if database.exists() else None
    if new_key is not None:
        new_key.replace(key)
    unfinished.replace(database)
    for place in {folder, key.parent}:
        database_copy.to_disk(place)
    return aside, new_key is not None


def _put_aside(database: Path, key: Path, now: int) -> Path:
    """Rename the database and its key to names beside their own; returns the database's."""
    moment = datetime.fromtimestamp(now // SECOND, UTC)
    aside = database.with_name(f"{database.name}.before-{moment:%Y%m%dT%H%M%SZ}")
    if aside.exists():
        raise UnavailableError(f"{aside} already exists. Try again in a second.")
    aside.hardlink_to(database)
    if key.exists():
        key.with_name(f"{aside.name}.key").hardlink_to(key)
    # Only of a database that cannot be read is there any, and never may another one find it.
    for end in ("-wal", "-shm"):
        beside = database.with_name(f"{database.name}{end}")
        if beside.exists():
            beside.replace(aside.with_name(f"{aside.name}{end}"))
    return aside


def _brings_another(note: Note | None, key: Path) -> bool:
    if note is None or note.key is None:
        return False
    return not key.exists() or key.read_text().strip() != note.key.strip()


def _write_private(file: Path, text: str) -> None:
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(text)
    database_copy.to_disk(file)


def _own_as(file: Path, other: Path) -> None:
    """Give the file the other's owner, so that the service can use it whoever restores."""
    if os.geteuid() == 0:
        found = other.stat()
        shutil.chown(file, found.st_uid, found.st_gid)

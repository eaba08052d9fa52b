"""Back up a SQLite database online, and restore backups.

A backup is one SQLite file: the database as of one moment and, in a separate table, the key of its
tokens and secrets, which a restored service needs.
"""

import asyncio
import fcntl
import hashlib
import mmap
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from factbook import __version__
from factbook.audit.trail import COMMAND_LINE, AuditEntry, Caller, append_record, make_record
from factbook.auth import encryption, invitations, sessions
from factbook.auth.oauth import consents
from factbook.backend import Backend, migrate
from factbook.clock import SECOND, Clock, now
from factbook.errors import ConflictError, InputError, UnavailableError
from factbook.events.store import EVENT_COUNTER, restart_feed
from factbook.settings import Settings
from factbook.storage import Transaction
from factbook.storage.database import COUNTER_VALUE
from factbook.storage.database_url import open_database, sqlite_path
from factbook.storage.migrations import list_migrations
from factbook.storage.sqlite import DatabaseFile
from factbook.webhooks import store

# Called repeatedly with the amount done and the total.
ShowProgress = Callable[[int, int], None]

# Pages per step, 8 MiB; progress is shown after each step.
_STEP: Final = 2048

_PATTERN: Final = re.compile(r"factbook-\d{8}T\d{6}Z\.db")
_TABLE: Final = "factbook_backup"
_UNFINISHED: Final = ".factbook-backup.unfinished"
_PRIVATE: Final = 0o600
_DIGEST: Final = 64
_PIECE: Final = 2**20

# Bytes that every open connection to a SQLite file locks in WAL mode.
# Source: https://www.sqlite.org/fileformat2.html, 1.6 the lock-byte page, and os_unix.c.
_SHARED: Final = 0x40000002
_SHARED_BYTES: Final = 510

_WITH_POSTGRESQL: Final = (
    "PostgreSQL has its own tools: make backups with pg_dump or with its archive of the log, and "
    "keep token_key beside them. After pg_restore run `factbook restore --already-restored`."
)


def copy_database(source: Path, target: Path, show: ShowProgress) -> None:
    """Copy the source, as of the start of the copy, into the target, which is an empty file.

    Writers of the source neither wait nor restart the copy, as one transaction reads everything.
    The target is one file without a journal. Raises UnavailableError, and InputError for a source
    that isn't a database.
    """
    with readable_errors(source), closing(open_to_read(source)) as live:
        live.execute("BEGIN")
        live.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with closing(sqlite3.connect(target, isolation_level=None)) as copied:
            # The copy is useless until complete, and is synced to disk then.
            copied.execute("PRAGMA journal_mode = OFF")
            copied.execute("PRAGMA synchronous = OFF")
            live.backup(
                copied,
                pages=_STEP,
                progress=lambda _, left, total: show(total - left, total),
            )
        with closing(sqlite3.connect(target, isolation_level=None)) as copied:
            copied.execute("PRAGMA journal_mode = DELETE")


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open a connection without creating a missing file.

    Raises UnavailableError for a damaged write-ahead log: SQLite would treat the log as empty, and
    remove it when the connection closes.
    """
    file = path.resolve()
    DatabaseFile(file).verify_log()
    url = f"file:{quote(str(file))}?mode=rw"
    return sqlite3.connect(url, uri=True, isolation_level=None, timeout=60)


def check_structure(path: Path, *, whole: bool = False, copy_of: Path | None = None) -> None:
    """Raise InputError unless the structure of the database is sound.

    `whole` also compares indexes with their tables. The error names `copy_of` in place of a copy.
    """
    with readable_errors(path), closing(open_to_read(path)) as database:
        found = database.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)").fetchone()
    if found != ("ok",):
        named = copy_of or path
        raise InputError(f"{named} is damaged: {found[0] if found else 'nothing was found'}.")


def copy_size(path: Path) -> int:
    """Size that a copy of the database would have, in bytes."""
    with readable_errors(path), closing(open_to_read(path)) as database:
        [pages] = database.execute("PRAGMA page_count").fetchone()
        [page] = database.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page)


def make_whole(path: Path) -> None:
    """Checkpoint the log of a database that only this process uses into its file.

    Raises UnavailableError if that fails.
    """
    with readable_errors(path), closing(open_to_read(path)) as connection:
        # No other process may have the file open, so there is no lock to wait for.
        connection.execute("PRAGMA busy_timeout = 0")
        [busy, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise UnavailableError(
            f"{path} is open in another process, so it could not be finished. Nothing was "
            "changed: find out which process that is, and try again."
        )


def to_disk(path: Path) -> None:
    """Sync the content of a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Translate errors of SQLite or the system into errors with a readable message."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise InputError(f"{path} is damaged, or not a database: {error}.") from error
        raise UnavailableError(f"{path} could not be copied: {error}.") from error
    except OSError as error:
        raise UnavailableError(f"{path} could not be copied: {error}.") from error


class Note(NamedTuple):
    """Metadata stored in a backup: its time, the version that made it, and its key.

    `key` is the content of the key file, or None if the settings had the key. `key_check` shows
    whether another key is the same. `checksum` is a random text and the SHA-256 of the file with
    zeros in place of that digest; None in backups of earlier releases.
    """

    made_at: int
    version: str
    key: str | None
    key_check: str | None
    checksum: str | None = None


def write_backup(
    database: Path,
    to: Path,
    *,
    key: str | None,
    key_check: str | None,
    now: int,
    show: ShowProgress,
    replace: bool = False,
    keep: int | None = None,
) -> Path:
    """Copy a database that is in use; returns the backup's path.

    `to` is a file or a folder; in a folder, the file is named after the time, and the newest `keep`
    are kept. Only its owner can read the file, which was verified in full and synced to disk.
    Raises InputError, ConflictError for a file that exists without `replace`, and UnavailableError
    if there is no room or something fails; nothing is left behind then.
    """
    if not database.exists():
        raise InputError(f"There is no database {database}.")
    folder, file = to.parent, to
    if to.is_dir():
        made_at = datetime.fromtimestamp(now // SECOND, UTC)
        folder, file = to, to / f"factbook-{made_at:%Y%m%dT%H%M%SZ}.db"
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    if keep is not None and folder is not to:
        raise InputError("--keep needs a folder.")
    _check_target(database, file, replace=replace)
    _check_room(database, folder)
    unfinished = folder / _UNFINISHED
    with unfinished_file(unfinished):
        copy_database(database, unfinished, show)
        # `_seal_backup` fills in the digest; the random part makes the text unique in the file.
        checksum = f"sha256:{secrets.token_hex(16)}:{'0' * _DIGEST}"
        note = Note(now, __version__, key, key_check, checksum)
        with (
            readable_errors(unfinished),
            closing(sqlite3.connect(unfinished, isolation_level=None)) as copied,
        ):
            copied.execute(
                f"CREATE TABLE {_TABLE} (made_at INTEGER, version TEXT, key TEXT, key_check, "
                "checksum)"
            )
            copied.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?)", note)  # noqa: S608
        check_structure(unfinished, copy_of=database)
        with readable_errors(unfinished):
            _seal_backup(unfinished)
            to_disk(unfinished)
            unfinished.replace(file)
            to_disk(folder)
    if keep is not None:
        _delete_older(folder, keep - 1, made=file)
    return file


def note_in(file: Path) -> Note | None:
    """Read the metadata of a backup; None for a copy made by other means."""
    with readable_errors(file), closing(open_to_read(file)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchone():
            return None
        columns = {name for _, name, *_ in database.execute(f"PRAGMA table_info({_TABLE})")}
        named = ", ".join(name for name in Note._fields if name in columns)
        row = database.execute(f"SELECT {named} FROM {_TABLE}").fetchone()  # noqa: S608
    return None if row is None else Note(*row)


def check_checksum(file: Path, note: Note) -> None:
    """Raise InputError if a backup has changed since it was made."""
    if note.checksum is None:
        return
    with readable_errors(file):
        place = _digest_place(file, note.checksum)
        whole = place is not None and _digest_file(file, place) == note.checksum[-_DIGEST:]
    if not whole:
        raise InputError(
            f"{file} is damaged: its content doesn't fit its checksum. Restore another backup."
        )


def forget_note(database: Path) -> None:
    """Remove the note, with its key, from a copy that a service will use."""
    with readable_errors(database), closing(open_to_read(database)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")


def key_check_value(key: bytes) -> str:
    """Fingerprint that doesn't reveal the key."""
    return hashlib.blake2b(b"factbook backup", key=key, digest_size=16).hexdigest()


@contextmanager
def unfinished_file(unfinished: Path) -> Iterator[None]:
    """Create an empty private file, for the block to rename once complete; removed otherwise.

    Raises ConflictError while another process has the file open. Reuses a file that a killed
    process left.
    """
    with readable_errors(unfinished):
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, _PRIVATE)
    try:
        _lock_file(descriptor, unfinished)
        try:
            with readable_errors(unfinished):
                os.fchmod(descriptor, _PRIVATE)
                os.ftruncate(descriptor, 0)
                remove_journals(unfinished)
            yield
        finally:
            # After the rename, another process may have created its own unfinished file here.
            if _is_still_at(descriptor, unfinished):
                unfinished.unlink()
                remove_journals(unfinished)
    finally:
        os.close(descriptor)


def _lock_file(descriptor: int, unfinished: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The previous owner may have renamed the file meanwhile.
        if _is_still_at(descriptor, unfinished):
            return
    except BlockingIOError:
        pass
    raise ConflictError(f"Another process is writing to {unfinished.parent}.")


def _is_still_at(descriptor: int, path: Path) -> bool:
    """True if the path still leads to the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_journals(database: Path) -> None:
    """Remove the journal files that SQLite keeps beside an open database."""
    for end in ("-journal", "-wal", "-shm"):
        database.with_name(f"{database.name}{end}").unlink(missing_ok=True)


def _seal_backup(file: Path) -> None:
    note = note_in(file)
    assert note is not None
    assert note.checksum is not None
    place = _digest_place(file, note.checksum)
    if place is None:
        raise UnavailableError(f"{file} has no checksum to fill in.")
    digest = _digest_file(file, place).encode()
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(digest)


def _digest_place(file: Path, checksum: str) -> int | None:
    """Find the offset of this checksum's digest in the file."""
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        found = content.rfind(checksum.encode())
    return None if found < 0 else found + len(checksum) - _DIGEST


def _digest_file(file: Path, place: int) -> str:
    """Compute the SHA-256 of the file, with zeros in place of the digest it contains."""
    total = hashlib.sha256()
    with file.open("rb") as opened:
        left = place
        while left and (piece := opened.read(min(left, _PIECE))):
            total.update(piece)
            left -= len(piece)
        total.update(b"0" * len(opened.read(_DIGEST)))
        while piece := opened.read(_PIECE):
            total.update(piece)
    return total.hexdigest()


def _check_target(database: Path, file: Path, *, replace: bool) -> None:
    if not file.exists():
        return
    if file.samefile(database):
        raise InputError(f"{file} is the database itself.")
    if not replace:
        raise ConflictError(f"{file} already exists; --force replaces it.")


def _check_room(database: Path, folder: Path) -> None:
    needed, free = copy_size(database), shutil.disk_usage(folder).free
    if free < needed:
        raise UnavailableError(
            f"A backup takes {needed / 2**20:,.0f} MiB, and {folder} has room for "
            f"{free / 2**20:,.0f} MiB. Free some, or name another folder."
        )


def _delete_older(folder: Path, keep: int, *, made: Path) -> None:
    """Remove backups from a folder, except the newest and the one just made; keep other files.

    If the clock was ahead, older backups may have later names than the one just made.
    """
    names = sorted(file.name for file in folder.iterdir() if _PATTERN.fullmatch(file.name))
    others = [name for name in names if name != made.name]
    for name in others[: max(0, len(others) - keep)]:
        (folder / name).unlink()


class Restored(NamedTuple):
    """Result of a restore: the path of the old database, and facts worth reporting.

    `unrecognized` lists schema parts that Factbook didn't create, and missing ones.
    """

    note: Note | None
    aside: Path | None
    migrations: list[str]
    key_restored: bool
    unrecognized: list[str]


def replace_database(
    file: Path, database: Path, key: Path, *, now: int, show: ShowProgress, replace: bool = False
) -> Restored:
    """Replace a database and its key with a backup; see `settle_database`.

    `key` is the key file, existing or not. The old database is moved aside, with its key. Nothing
    changes until everything is checked. Raises InputError for a file that isn't a sound backup or
    is from a newer version, ConflictError if a database exists without `replace` or is open in
    another process, and UnavailableError.
    """
    if not file.is_file():
        raise InputError(f"There is no backup {file}.")
    if database.exists():
        if file.samefile(database):
            raise InputError(f"{file} is the database itself.")
        if not replace:
            raise ConflictError(f"There is already a database {database}; --force moves it aside.")
    check_structure(file, whole=True)
    _check_schema(file)
    note = note_in(file)
    if note is not None:
        check_checksum(file, note)
    with readable_errors(database.parent):
        database.parent.mkdir(parents=True, exist_ok=True)
    above = _last_place(database)
    unfinished = database.with_name(f".{database.name}.restoring")
    with unfinished_file(unfinished), _locked_alone(database):
        copy_database(file, unfinished, show)
        forget_note(unfinished)
        url = f"sqlite:///{unfinished.resolve()}"
        applied = asyncio.run(_made_current(url, now, above, file.name))
        unrecognized = _unrecognized(unfinished, now)
        make_whole(unfinished)
        check_structure(unfinished)
        remove_journals(unfinished)
        with readable_errors(database):
            aside, key_restored = _switch_files(unfinished, database, key, note, now)
    return Restored(note, aside, applied, key_restored, unrecognized)


def _check_schema(file: Path) -> None:
    with readable_errors(file), closing(open_to_read(file)) as found:
        known = found.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'schema_migrations'"
        ).fetchone()
        if not known:
            raise InputError(f"{file} is not a database of Factbook.")
        applied = {name for (name,) in found.execute("SELECT name FROM schema_migrations")}
    if newer := sorted(applied - set(list_migrations())):
        raise InputError(
            f"{file} is of a newer version, which has {', '.join(newer)}. Install that version, "
            "or a later one, and restore with it."
        )


def _unrecognized(file: Path, now: int) -> list[str]:
    """List differences from a new database's schema: triggers, views, tables and indexes."""
    new = file.with_name(f"{file.name}.new")
    with unfinished_file(new):
        asyncio.run(_create_schema(f"sqlite:///{new.resolve()}", now))
        expected = _read_schema(new)
    found = _read_schema(file)
    return [
        *(f"{what} was not created by Factbook" for what in sorted(found.keys() - expected.keys())),
        *(f"{what} is missing" for what in sorted(expected.keys() - found.keys())),
        *(
            f"{what} was changed"
            for what in sorted(found.keys() & expected.keys())
            # The text of a table depends on which releases have altered it.
            if what.startswith(("trigger ", "view ")) and found[what] != expected[what]
        ),
    ]


async def _create_schema(url: str, now: int) -> None:
    opened = await open_database(url)
    try:
        await migrate(opened, now)
    finally:
        await opened.close()


def _read_schema(file: Path) -> dict[str, str]:
    """Read the statement that created each part of a schema, by kind and name."""
    with readable_errors(file), closing(open_to_read(file)) as database:
        rows = database.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL "
            "AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        ).fetchall()
    return {
        f"{kind} {name}" + ("" if table == name else f" on {table}"): " ".join(sql.split())
        for kind, name, table, sql in rows
    }


async def _made_current(url: str, now: int, above: int, what: str) -> list[str]:
    """Migrate a copy and call `settle_database` on it; returns the applied migrations."""
    opened = await open_database(url)
    try:
        applied = await migrate(opened, now)
        await opened.write(lambda tx: settle_database(tx, now, above=above, what=what))
    finally:
        await opened.close()
    return applied


def settle_database(transaction: Transaction, now: int, *, above: int = 0, what: str = "") -> int:
    """Restart the event feed; end sessions, invitations and OAuth consents.

    Returns the feed's first position.

    Event positions continue from `now`, in milliseconds, or from `above` if that is higher: ids
    don't repeat as long as fewer than a thousand rows a second were recorded. Readers with an older
    cursor get 410. Webhooks continue with the events from here on. Sign-outs and used invitations
    since the backup are not undone.
    """
    place = restart_feed(transaction, max(now, above))
    store.reset_webhooks(transaction, place)
    sessions.delete_all_sessions(transaction)
    invitations.delete_all_invitations(transaction)
    consents.delete_all_consents(transaction)
    append_record(
        transaction,
        make_record(Caller(COMMAND_LINE, now), AuditEntry("database.restore", what, {})),
    )
    return place.position


def _last_place(database: Path) -> int:
    """Position after the database's newest event; 0 if that can't be read.

    Closing the last connection also checkpoints the log into the file. A damaged log stays
    unchanged.
    """
    if not database.exists():
        return 0
    with (
        suppress(sqlite3.Error, UnavailableError),
        closing(open_to_read(database)) as found,
    ):
        row = found.execute(COUNTER_VALUE, (EVENT_COUNTER,)).fetchone()
        # Schemas from before the event feed have no such row.
        return int(row[0]) + 1 if row else 0
    return 0


@contextmanager
def _locked_alone(database: Path) -> Iterator[None]:
    """Lock other processes out of the database; raises ConflictError if one has it open."""
    if not database.exists():
        yield
        return
    with readable_errors(database):
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


def _switch_files(
    unfinished: Path, database: Path, key: Path, note: Note | None, now: int
) -> tuple[Path | None, bool]:
    """Rename the new file into place; returns the old file's path and whether the key changed."""
    folder = database.parent
    _own_as(unfinished, database if database.exists() else folder)
    to_disk(unfinished)
    new_key: Path | None = None
    backup_key = None if note is None else note.key
    if backup_key is not None and (
        not key.exists() or key.read_text().strip() != backup_key.strip()
    ):
        new_key = key.with_name(f".{key.name}.restoring")
        new_key.unlink(missing_ok=True)
        new_key.touch(mode=_PRIVATE)
        new_key.write_text(backup_key)
        to_disk(new_key)
        _own_as(new_key, database if database.exists() else folder)
    aside = _put_aside(database, key, now) if database.exists() else None
    if new_key is not None:
        new_key.replace(key)
    unfinished.replace(database)
    for place in {folder, key.parent}:
        to_disk(place)
    return aside, new_key is not None


def _put_aside(database: Path, key: Path, now: int) -> Path:
    """Move the database and its key to names beside their own; returns the database's path."""
    moment = datetime.fromtimestamp(now // SECOND, UTC)
    aside = database.with_name(f"{database.name}.before-{moment:%Y%m%dT%H%M%SZ}")
    if aside.exists():
        raise UnavailableError(f"{aside} already exists. Try again in a second.")
    aside.hardlink_to(database)
    if key.exists():
        key.with_name(f"{aside.name}.key").hardlink_to(key)
    # Only an unreadable database still has such files, and the new database must never find them.
    for end in ("-wal", "-shm"):
        beside = database.with_name(f"{database.name}{end}")
        if beside.exists():
            beside.replace(aside.with_name(f"{aside.name}{end}"))
    return aside


def _own_as(file: Path, other: Path) -> None:
    """Copy the owner from another file: the service can use the file even if root restores it."""
    if os.geteuid() == 0:
        found = other.stat()
        shutil.chown(file, found.st_uid, found.st_gid)


def make_backup(
    settings: Settings,
    to: Path,
    *,
    show: ShowProgress,
    replace: bool = False,
    keep: int | None = None,
    clock: Clock = now,
) -> tuple[Path, bool]:
    """Make a backup; returns its path and whether the key is in it; raises as `write_backup`."""
    database = _sqlite_file(settings)
    key, check = _key_and_check(settings)
    made = write_backup(
        database, to, key=key, key_check=check, now=clock(), show=show, replace=replace, keep=keep
    )
    return made, key is not None


def restore_backup(
    settings: Settings, file: Path, *, show: ShowProgress, replace: bool = False, clock: Clock = now
) -> tuple[Restored, bool]:
    """Restore a backup; returns the result, and whether the key in use is the backup's.

    That is true if the backup has no information about its key. Raises the errors of
    `replace_database`.
    """
    database = _sqlite_file(settings)
    done = replace_database(
        file, database, _key_file(settings), now=clock(), show=show, replace=replace
    )
    _, check = _key_and_check(settings)
    return done, done.note is None or check == done.note.key_check


async def settle_restored(backend: Backend, clock: Clock = now) -> int:
    """Call `settle_database` after a restore by other means; returns the feed's first position."""
    at = clock()
    async with backend.opened() as database:
        return await database.write(lambda tx: settle_database(tx, at, what="already restored"))


def _sqlite_file(settings: Settings) -> Path:
    """Path of the database file, with links resolved: replacing it keeps a link in the settings."""
    if not settings.database_url.startswith("sqlite:"):
        raise InputError(_WITH_POSTGRESQL)
    return sqlite_path(settings.database_url).resolve()


def _key_file(settings: Settings) -> Path:
    """Path of the key file, which may not exist; it is beside the path in the settings."""
    named = sqlite_path(settings.database_url)
    return named.with_name(f"{named.name}.key").resolve()


def _key_and_check(settings: Settings) -> tuple[str | None, str | None]:
    """Content of the key file, or None if the settings have the key; and the key's check value."""
    if settings.token_key is not None:
        return None, key_check_value(encryption.make_token_key(settings.token_key, None))
    file = _key_file(settings)
    if not file.exists():
        return None, None
    return file.read_text().strip(), key_check_value(encryption.make_token_key(None, file))

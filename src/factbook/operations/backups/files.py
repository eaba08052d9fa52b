"""Creation of backups, each of which is one file, complete or absent."""

import fcntl
import hashlib
import mmap
import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from factbook import __version__
from factbook.clock import SECOND
from factbook.errors import ConflictError, InputError, UnavailableError
from factbook.operations.backups import database_copy
from factbook.operations.backups.database_copy import Show

_PATTERN: Final = re.compile(r"factbook-\d{8}T\d{6}Z\.db")
_TABLE: Final = "factbook_backup"
_UNFINISHED: Final = ".factbook-backup.unfinished"
_PRIVATE: Final = 0o600
_DIGEST: Final = 64
_PIECE: Final = 2**20


class Note(NamedTuple):
    """Metadata stored in a backup: its time, the version that made it, and its key.

    `key` is the content of the key file, None where the settings had the key. `key_check` tells
    whether another key is the same one. `checksum` is a random text and the SHA-256 of the file
    with zeros in the place of that digest; None in backups of earlier releases.
    """

    made_at: int
    version: str
    key: str | None
    key_check: str | None
    checksum: str | None = None


def backup(
    database: Path,
    to: Path,
    *,
    key: str | None,
    key_check: str | None,
    now: int,
    show: Show,
    replace: bool = False,
    keep: int | None = None,
) -> Path:
    """Copy a database that is in use; returns the file that was made.

    `to` is a file, or a folder, in which the file is named after the time and the newest `keep` are
    kept. The file is readable for its owner alone, was read once to its end, and is on the disk.
    Raises InputError, ConflictError for a file that exists and is not to be replaced,
    UnavailableError when there is no room or something fails: then nothing is left behind.
    """
    if not database.exists():
        raise InputError(f"There is no database {database}.")
    folder, file = (to, to / _name(now)) if to.is_dir() else (to.parent, to)
    if not folder.is_dir():
        raise InputError(f"There is no folder {folder}.")
    if keep is not None and folder is not to:
        raise InputError("--keep needs a folder.")
    _check_target(database, file, replace=replace)
    _check_room(database, folder)
    unfinished = folder / _UNFINISHED
    with draft(unfinished):
        database_copy.copy(database, unfinished, show)
        with database_copy.told(unfinished):
            _describe(unfinished, Note(now, __version__, key, key_check, _unsealed()))
        database_copy.check(unfinished, copy_of=database)
        with database_copy.told(unfinished):
            _seal(unfinished)
            database_copy.to_disk(unfinished)
            unfinished.replace(file)
            database_copy.to_disk(folder)
    if keep is not None:
        _rotate(folder, keep - 1, made=file)
    return file


def note_of(file: Path) -> Note | None:
    """Metadata of a backup; None for a copy that was made by other means."""
    with database_copy.told(file), closing(database_copy.reading(file)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (_TABLE,)).fetchone():
            return None
        columns = {name for _, name, *_ in database.execute(f"PRAGMA table_info({_TABLE})")}
        named = ", ".join(name for name in Note._fields if name in columns)
        row = database.execute(f"SELECT {named} FROM {_TABLE}").fetchone()  # noqa: S608
    return None if row is None else Note(*row)


def check_checksum(file: Path, note: Note) -> None:
    """Raise InputError if a backup isn't what it was when it was made."""
    if note.checksum is None:
        return
    with database_copy.told(file):
        place = _place_of(file, note.checksum)
        whole = place is not None and _digest(file, place) == note.checksum[-_DIGEST:]
    if not whole:
        raise InputError(
            f"{file} is damaged: its content doesn't fit its checksum. Restore another backup."
        )


def forget_note(database: Path) -> None:
    """Remove the key from a copy that is to be used."""
    with database_copy.told(database), closing(database_copy.reading(database)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute(f"DROP TABLE IF EXISTS {_TABLE}")


def key_check(key: bytes) -> str:
    """Fingerprint of a key that does not reveal it."""
    return hashlib.blake2b(b"factbook backup", key=key, digest_size=16).hexdigest()


@contextmanager
def draft(unfinished: Path) -> Iterator[None]:
    """An empty private file, to be renamed when it is complete and removed otherwise.

    Raises ConflictError while another process has it. The leftover of a killed process is taken
    over.
    """
    with database_copy.told(unfinished):
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, _PRIVATE)
    try:
        _take(descriptor, unfinished)
        try:
            with database_copy.told(unfinished):
                os.fchmod(descriptor, _PRIVATE)
                os.ftruncate(descriptor, 0)
                remove_journals(unfinished)
            yield
        finally:
            # Once it has its name, another process may have a draft of its own here.
            if _is_at(descriptor, unfinished):
                unfinished.unlink()
                remove_journals(unfinished)
    finally:
        os.close(descriptor)


def _take(descriptor: int, unfinished: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever had it may have given it its name meanwhile.
        if _is_at(descriptor, unfinished):
            return
    except BlockingIOError:
        pass
    raise ConflictError(f"Another process is writing to {unfinished.parent}.")


def _is_at(descriptor: int, path: Path) -> bool:
    """True if the open file is the one at this path."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_journals(database: Path) -> None:
    """Remove the files that SQLite keeps beside an open database."""
    for end in ("-journal", "-wal", "-shm"):
        database.with_name(f"{database.name}{end}").unlink(missing_ok=True)


def _describe(file: Path, note: Note) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as copied:
        copied.execute(
            f"CREATE TABLE {_TABLE} (made_at INTEGER, version TEXT, key TEXT, key_check, checksum)"
        )
        copied.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?, ?, ?)", note)  # noqa: S608


def _unsealed() -> str:
    """A checksum without its digest. The random part keeps it apart from all other content."""
    return f"sha256:{secrets.token_hex(16)}:{'0' * _DIGEST}"


def _seal(file: Path) -> None:
    """Put the digest of the file into its note."""
    note = note_of(file)
    assert note is not None
    assert note.checksum is not None
    place = _place_of(file, note.checksum)
    if place is None:
        raise UnavailableError(f"{file} has no checksum to fill in.")
    digest = _digest(file, place).encode()
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(digest)


def _place_of(file: Path, checksum: str) -> int | None:
    """The place of this checksum's digest in the file."""
    with (
        file.open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        found = content.rfind(checksum.encode())
    return None if found < 0 else found + len(checksum) - _DIGEST


def _digest(file: Path, place: int) -> str:
    """SHA-256 of the file, with zeros where its own digest is."""
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
    needed, free = database_copy.size(database), shutil.disk_usage(folder).free
    if free < needed:
        raise UnavailableError(
            f"A backup takes {needed / 2**20:,.0f} MiB, and {folder} has room for "
            f"{free / 2**20:,.0f} MiB. Free some, or name another folder."
        )


def _rotate(folder: Path, keep: int, *, made: Path) -> None:
    """Remove all but the newest backups of a folder and the one just made; keep other files.

    A clock that was ahead may have given other backups later names than that of the one just made.
    """
    names = sorted(file.name for file in folder.iterdir() if _PATTERN.fullmatch(file.name))
    others = [name for name in names if name != made.name]
    for name in others[: max(0, len(others) - keep)]:
        (folder / name).unlink()


def _name(now: int) -> str:
    return f"factbook-{datetime.fromtimestamp(now // SECOND, UTC):%Y%m%dT%H%M%SZ}.db"

"""State of a SQLite file: its identity since opening, damage, and problems of the disk.

A problem is reported as a sentence for clients, which names no path, and as advice for the
operator. SQLite treats a write-ahead log with an invalid header as empty, which would silently
discard every commit that is not yet in the database file, so the header is checked. Source:
SQLite's file format, "4.1. WAL File Format" and "4.2. Checksum Algorithm".
"""

import os
import sqlite3
import struct
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile
from typing import Final, NoReturn

import structlog

from factbook.errors import UnavailableError

_HEAD: Final = 32
_SUMMED: Final = 24
# The number that a log begins with tells in which order of bytes its checksums were made.
_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}


def path_of(database: Path) -> Path:
    """Path of a database's log; `database` must be resolved, as the log is beside the real file."""
    return database.with_name(f"{database.name}-wal")


def index_of(database: Path) -> Path:
    """Path of the index of the log, which all processes share along with its locks.

    If it is deleted, the next process that opens the database creates another one: processes with
    different indexes do not see each other and overwrite each other's commits.
    """
    return database.with_name(f"{database.name}-shm")


def is_damaged(database: Path) -> bool:
    """Return true if there is a log whose header was not written by SQLite.

    An empty log, or one of zeros as after a power failure, holds no commits.
    """
    try:
        with path_of(database).open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return False
    if len(head) < _HEAD or not any(head):
        return False
    order = _ORDERS.get(struct.unpack_from(">I", head)[0])
    return order is None or _sums(head, order) != struct.unpack_from(">II", head, _SUMMED)


def _sums(head: bytes, order: str) -> tuple[int, int]:
    first = second = 0
    words = struct.unpack_from(f"{order}6I", head)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


log = structlog.get_logger("factbook.storage")

# Of the codes of failures, those that SQL or its parameters bring about.
_BUGS: Final = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_MISUSE,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
}

_FULL: Final = "The disk that holds the database is full, so nothing can be written to it."
_DAMAGED: Final = "The database is damaged."
_GONE: Final = "The file of the database was removed or replaced while the service runs."
_OTHERWISE: Final = "The database cannot do that now."
_SENTENCES: Final = {
    sqlite3.SQLITE_BUSY: "Another process keeps the database locked; try again later.",
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: "The database is read-only, so nothing can be written to it.",
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_IOERR: "The disk that holds the database failed.",
    sqlite3.SQLITE_CANTOPEN: "The database cannot be opened.",
}
_SOME_ROOM: Final = 1024 * 1024
# The file through which connections see each other has no room to grow.
_NO_ROOM: Final = {sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}
_PERMISSIONS: Final = (
    "The user of this process has to be able to write to {} and to the folder that it is in."
)
_ADVICE: Final = {
    sqlite3.SQLITE_BUSY: "Find out which process has {} open: only Factbook's should.",
    sqlite3.SQLITE_FULL: "Free some room on the disk of {}; a service that runs needs no restart.",
    sqlite3.SQLITE_READONLY: _PERMISSIONS,
    sqlite3.SQLITE_CANTOPEN: _PERMISSIONS,
    sqlite3.SQLITE_IOERR: "The system's log says what is wrong with the disk of {}.",
    sqlite3.SQLITE_CORRUPT: "`factbook doctor` says what can still be read of {}. Stop the service "
    "and restore a backup with `factbook restore`.",
}
_LOG_ADVICE: Final = (
    "It holds the last writes. Restore a backup with `factbook restore`, or move it away and lose "
    "them."
)
# Codes that mean the same to whoever is told.
_SAME: Final = {
    sqlite3.SQLITE_NOTADB: sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_LOCKED: sqlite3.SQLITE_BUSY,
}

Identity = tuple[int, int] | None


class SQLiteError(UnavailableError):
    """Failure of the SQLite file or of its disk."""


class DatabaseFile:
    """A SQLite file and the problems detected by its connections.

    `target` is `path` with symbolic links resolved once: all connections use it. `trouble` is the
    reason why the last write failed, None if it succeeded. `read_only` is set while connections
    must not need disk space, because the disk was full when the file was opened. `is_divided` is
    set by `verify` while other processes may use a different index of the log.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.target = Path(os.path.realpath(path))
        self.trouble: str | None = None
        self.read_only = False
        self._damaged = False
        self._index = index_of(self.target)
        self._parts = (path, path_of(self.target), self._index)
        self.is_divided = False
        self._opened: tuple[Identity, ...] | None = None

    def remember(self) -> None:
        """Record the identity of the current files for `verify`."""
        self._opened = self._identities()

    def verify(self) -> None:
        """Raise UnavailableError if the file is damaged, or not the one that was opened.

        A deleted file that is open can still be read and written, and all of that would be lost.
        """
        if self._damaged:
            raise self._advised(SQLiteError(_DAMAGED), sqlite3.SQLITE_CORRUPT)
        if self._opened is None:
            return
        found = self._identities()
        self.is_divided = found[-1] != self._opened[-1]
        if found != self._opened:
            raise self.gone(found)

    def gone(self, found: tuple[Identity, ...] | None = None) -> SQLiteError:
        """The error for files that are not those that were opened."""
        found = found or self._identities()
        pairs = zip(self._parts, found, self._opened or found, strict=True)
        missing = ", ".join(part.name for part, now, then in pairs if now != then)
        told = SQLiteError(_GONE)
        told.add_note(f"Missing in {self.target.parent}: {missing}. Start the service again.")
        return told

    def verify_log(self) -> None:
        """Raise UnavailableError for a write-ahead log that SQLite would ignore."""
        if is_damaged(self.target):
            told = SQLiteError(f"{path_of(self.target).name} is damaged")
            told.add_note(_LOG_ADVICE)
            raise told

    def verify_writable(self) -> None:
        """Raise UnavailableError for a read-only file or directory."""
        for place in (self.target.parent, self.target):
            if place.exists() and not os.access(place, os.W_OK):
                told = SQLiteError(f"{place} is read-only")
                raise self._advised(told, sqlite3.SQLITE_READONLY)

    def verify_room(self) -> None:
        """Raise UnavailableError while the file is open for reads only."""
        if self.read_only:
            raise self._advised(SQLiteError(_FULL), sqlite3.SQLITE_FULL)

    def has_room(self) -> bool:
        """Return true if a small write succeeds; only trying detects an exceeded quota."""
        folder = self.target.parent
        if disk_usage(folder).free < _SOME_ROOM:
            return False
        with suppress(OSError), TemporaryFile(dir=folder) as file:
            file.write(b"\0" * _SOME_ROOM)
            file.flush()
            return True
        return False

    def tell(self, error: sqlite3.Error) -> NoReturn:
        """Raise the error as UnavailableError if it is operational; bugs are raised unchanged."""
        kind = _kind(error)
        if kind in _BUGS:
            raise error
        if kind == sqlite3.SQLITE_CORRUPT:
            self._note_damage(error)
        told = SQLiteError(_SENTENCES.get(kind, _OTHERWISE))
        raise self._advised(told, kind) from error

    def note_write(self, error: SQLiteError | None) -> None:
        """Record the result of a write, and log it if it has changed."""
        trouble = None if error is None else error.message
        if trouble == self.trouble or (trouble is None and self._is_full()):
            return
        self.trouble = trouble
        if trouble is None:
            log.info("database.writable")
        else:
            log.error("database.unwritable", reason=trouble, advice=advice_of(error))

    def _is_full(self) -> bool:
        """Return true if the disk was full and still lacks space for a small write."""
        return self.trouble == _FULL and disk_usage(self.target.parent).free < _SOME_ROOM

    def _note_damage(self, error: sqlite3.Error) -> None:
        # Who opens it is told.
        if self._damaged or self._opened is None:
            return
        self._damaged = True
        log.error("database.damaged", cause=str(error), advice=self._advice(sqlite3.SQLITE_CORRUPT))

    def _advised(self, error: SQLiteError, kind: int) -> SQLiteError:
        error.add_note(self._advice(kind))
        return error

    def _advice(self, kind: int) -> str:
        return _ADVICE.get(kind, "The file is {}.").format(self.path)

    def _identities(self) -> tuple[Identity, ...]:
        return tuple(_identity(part) for part in self._parts)


def is_full(error: SQLiteError) -> bool:
    """Return true if the error means that the disk was full."""
    return error.message == _FULL


def advice_of(error: BaseException | None) -> str:
    """Advice for the operator about an error; empty if there is none."""
    return " ".join(getattr(error, "__notes__", ()))


def _kind(error: sqlite3.Error) -> int:
    """The key of the error's sentence and advice."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    if code in _NO_ROOM:
        return sqlite3.SQLITE_FULL
    return _SAME.get(code & 0xFF, code & 0xFF)


def _identity(path: Path) -> Identity:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time, at every write
    except OSError:
        return None
    return found.st_dev, found.st_ino

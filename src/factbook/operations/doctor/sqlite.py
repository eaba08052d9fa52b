"""A SQLite file: sound, writable, and on a local disk with room."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from factbook.errors import UnavailableError
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage.sqlite_file import DatabaseFile, advice_of

TOPIC: Final = "database"
DISK: Final = "disk"
# What UPDATE ... FROM, RETURNING and DROP COLUMN need.
_OLDEST: Final = (3, 35, 0)
# Two locks of SQLite do not work on these, or only sometimes.
_NETWORK: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs"}
)
_WAIT_SECONDS: Final = 10.0
# Of the codes of failures, those of a file whose content is wrong.
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_MOST_SHOWN: Final = 5
_LEAST_INODES: Final = 100

# Told now and then that something goes on; None for going on.
Tick = Callable[[], None]


def version() -> Finding:
    """Check that SQLite itself is recent enough."""
    if sqlite3.sqlite_version_info < _OLDEST:
        oldest = ".".join(map(str, _OLDEST))
        what = f"SQLite is {sqlite3.sqlite_version}; {oldest} is needed."
        return problem(TOPIC, what, "Install a newer SQLite, or a Python that comes with one.")
    return ok(TOPIC, f"SQLite {sqlite3.sqlite_version}.")


def damaged_log(path: Path) -> Finding | None:
    """Finding on a damaged write-ahead log beside the file; None when nothing is wrong.

    SQLite removes such a log when it closes the file, so check this before anybody opens it.
    """
    try:
        DatabaseFile(path.resolve()).verify_log()
    except UnavailableError as error:
        return problem(TOPIC, f"{error.message}.", advice_of(error))
    except OSError as error:
        return _unread(path, error)
    return None


def sound(path: Path, tick: Tick) -> Iterator[Finding]:
    """Check the structure of the file and the references between its rows.

    Takes about a second for a gigabyte and reads all of it; others write meanwhile.
    """
    if damaged := damaged_log(path):
        yield damaged
        return
    try:
        with closing(_reading(path)) as database:
            database.set_progress_handler(tick, 100_000)
            found = [row[0] for row in database.execute("PRAGMA quick_check(20)")]
            loose = database.execute("PRAGMA foreign_key_check").fetchmany(1)
            lost = [] if found == ["ok"] else list(_unreadable(database))
    except sqlite3.Error as error:
        if not _is_damage(error):
            yield _failed(path, error)
            return
        found, loose, lost = [str(error)], [], ["none"]
    if found != ["ok"]:
        yield problem(
            TOPIC,
            f"The file is damaged: {'; '.join(found[:_MOST_SHOWN])}. {_left(lost)}",
            "Stop the service and restore a backup with `factbook restore`.",
        )
    elif loose:
        yield problem(
            TOPIC,
            f"Rows of {loose[0][0]} refer to rows of {loose[0][2]} that are not there.",
            "Something else has written to the file. Restore a backup.",
        )
    else:
        yield ok(TOPIC, "The file is sound.")


def _unreadable(database: sqlite3.Connection) -> Iterator[str]:
    """Tables with unreadable rows."""
    tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in tables:
        try:
            for _ in database.execute(f'SELECT * FROM "{name}" NOT INDEXED'):
                pass
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise
            yield name


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _failed(path: Path, error: sqlite3.Error) -> Finding:
    """Finding on an error that kept SQLite from reading the file, whatever its content."""
    try:
        DatabaseFile(path).tell(error)
    except UnavailableError as told:
        what = f"{told.message.rstrip('.')} ({error}), so it is not known whether it is sound."
        return problem(TOPIC, what, advice_of(told))
    except sqlite3.Error:
        advice = "Run the doctor again; if it stays, report it: that is a bug."
        return problem(TOPIC, f"{path} could not be looked at: {error}.", advice)


def _unread(path: Path, error: OSError) -> Finding:
    what = f"{error.filename or path} cannot be read: {error.strerror}."
    return problem(TOPIC, what, "Run the doctor as the user of the service.")


def _left(lost: list[str]) -> str:
    if lost == ["none"]:
        return "Nothing of it can be read."
    return f"Not whole: {', '.join(lost)}." if lost else "Every row of every table can be read."


def disk(path: Path) -> Iterator[Finding]:
    """Check for free space at the file, and that it can be written to."""
    folder = path.resolve().parent
    yield from _writable(path, folder)
    size = sum(part.stat().st_size for part in _parts(path) if part.exists())
    free = shutil.disk_usage(folder).free
    what = f"{_mib(free)} are free; the database has {_mib(size)}."
    if free < size // 10 + 64 * 2**20:
        yield problem(DISK, what, "Free some room: without it nothing can be written.")
    elif free < size:
        advice = "Free some room: a migration or a backup may need as much as there is now."
        yield warning(DISK, what, advice)
    else:
        yield ok(DISK, what)
    inodes = os.statvfs(folder)
    if inodes.f_files and inodes.f_favail < _LEAST_INODES:
        yield warning(
            DISK,
            f"Only {inodes.f_favail} more files can be made on the file system.",
            "Remove files that are not needed.",
        )
    kind = file_system(folder)
    if kind in _NETWORK:
        yield warning(
            DISK,
            f"The file is on a network share ({kind}), whose locks SQLite cannot rely on.",
            "Move it to a disk of the machine, or use PostgreSQL.",
        )


def file_system(folder: Path, mounts: Path = Path("/proc/mounts")) -> str:
    """File system type of a folder; empty if the system does not report it."""
    if not mounts.exists():
        return ""
    longest, found = -1, ""
    for line in mounts.read_text("utf-8").splitlines():
        _, place, kind, *_ = line.split(" ")
        point = Path(place.replace("\\040", " "))
        if folder.is_relative_to(point) and len(point.parts) >= longest:
            longest, found = len(point.parts), kind
    return found


def _writable(path: Path, folder: Path) -> Iterator[Finding]:
    for one in (folder, *(part for part in _parts(path) if part.exists())):
        if not os.access(one, os.W_OK):
            yield problem(
                DISK,
                f"This user cannot write to {one}.",
                "Give it to the user of the service: SQLite writes to the file and its folder.",
            )


def _parts(path: Path) -> list[Path]:
    return [path, *(path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm"))]


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(str(path.resolve()))}?mode=rw", uri=True, timeout=_WAIT_SECONDS
    )


def _mib(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"

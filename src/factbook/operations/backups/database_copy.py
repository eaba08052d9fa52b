"""Copy of a SQLite database as of one moment, while it is written to."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

from factbook.errors import InputError, UnavailableError
from factbook.storage.sqlite_file import DatabaseFile

# Told again and again how much is done, and of how much.
Show = Callable[[int, int], None]

# Pages of a step, 8 MiB: so often progress is told.
_STEP: Final = 2048


def copy(source: Path, target: Path, show: Show) -> None:
    """Fill the target, an empty file, with the content of the source as of the start of the copy.

    Writers of the source neither wait nor restart the copy: all of it is read in one transaction.
    The target is one file without a journal. Raises UnavailableError, InputError for a source that
    is no database.
    """
    with told(source), closing(reading(source)) as live:
        live.execute("BEGIN")
        live.execute("SELECT count(*) FROM sqlite_master").fetchone()
        with closing(sqlite3.connect(target, isolation_level=None)) as copied:
            # The copy is of no use before it is whole, and then it is brought to the disk.
            copied.execute("PRAGMA journal_mode = OFF")
            copied.execute("PRAGMA synchronous = OFF")
            live.backup(
                copied,
                pages=_STEP,
                progress=lambda _, left, total: show(total - left, total),
            )
        with closing(sqlite3.connect(target, isolation_level=None)) as copied:
            copied.execute("PRAGMA journal_mode = DELETE")


def reading(path: Path) -> sqlite3.Connection:
    """A connection that does not create a missing file.

    Raises UnavailableError for a write-ahead log that is damaged: SQLite would take it for empty,
    and remove it when the connection is closed.
    """
    file = path.resolve()
    DatabaseFile(file).verify_log()
    url = f"file:{quote(str(file))}?mode=rw"
    return sqlite3.connect(url, uri=True, isolation_level=None, timeout=60)


def check(path: Path, *, whole: bool = False, copy_of: Path | None = None) -> None:
    """Raise InputError unless the structure of the database is sound.

    `whole` compares indexes with their tables, too. A defect of a copy is a defect of its source.
    """
    with told(path), closing(reading(path)) as database:
        found = database.execute(f"PRAGMA {'integrity' if whole else 'quick'}_check(1)").fetchone()
    if found != ("ok",):
        named = copy_of or path
        raise InputError(f"{named} is damaged: {found[0] if found else 'nothing was found'}.")


def size(path: Path) -> int:
    """Size of a copy of the database in bytes."""
    with told(path), closing(reading(path)) as database:
        [pages] = database.execute("PRAGMA page_count").fetchone()
        [page] = database.execute("PRAGMA page_size").fetchone()
    return int(pages) * int(page)


def make_whole(path: Path) -> None:
    """Checkpoint the log beside a file of our own into it.

    Raises UnavailableError where that fails.
    """
    with told(path), closing(reading(path)) as connection:
        # Nobody else may have it open, so there is nobody to wait for.
        connection.execute("PRAGMA busy_timeout = 0")
        [busy, _, _] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    if busy:
        raise UnavailableError(
            f"{path} is open in another process, so it could not be finished. Nothing was "
            "changed: find out which process that is, and try again."
        )


def to_disk(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def told(path: Path) -> Iterator[None]:
    """Translate errors of SQLite or the system into errors with a message for people."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise InputError(f"{path} is damaged, or not a database: {error}.") from error
        raise UnavailableError(f"{path} could not be copied: {error}.") from error
    except OSError as error:
        raise UnavailableError(f"{path} could not be copied: {error}.") from error

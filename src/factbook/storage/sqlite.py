"""SQLite: reads on the event loop's own connection; writes one after another on a thread.

A point read takes about 5 µs, less than handing it to a thread would. Write-ahead logging lets
reads continue during a write, in this process or in another.

The first part is about the file: its identity since opening, damage, and disk problems. A problem
is reported as a sentence for clients, without any path, and as advice for the operator. SQLite
treats a write-ahead log with an invalid header as empty, which would silently discard every commit
that is not yet in the database file, so the header is checked. Source: SQLite's file format,
"4.1. WAL File Format" and "4.2. Checksum Algorithm".
"""

import asyncio
import ctypes
import os
import sqlite3
import struct
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from itertools import chain
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryFile
from typing import Any, Final, NoReturn, Self, TypeVar
from urllib.parse import quote

import msgspec
import structlog

from factbook.errors import UnavailableError
from factbook.storage.database import (
    BUSY_SECONDS,
    LONGEST_SEARCH,
    ChecksPort,
    Dialect,
    EvaluateChecks,
    Parameters,
    Reads,
    ReadSnapshot,
    Remembered,
    Row,
    Touching,
    Transaction,
    limit_time,
    translate_find,
    translate_to_sqlite,
)

_HEAD: Final = 32
_SUMMED: Final = 24
# The first number of a log determines the byte order of its checksums.
_ORDERS: Final = {0x377F0682: "<", 0x377F0683: ">"}


def name_log(database: Path) -> Path:
    """Path of a database's log; `database` must be resolved, as the log is beside the real file."""
    return database.with_name(f"{database.name}-wal")


def name_log_index(database: Path) -> Path:
    """Path of the log's index, which also holds the locks that all processes share.

    If the index is deleted, the next process to open the database creates a new one: processes with
    different indexes do not see each other and overwrite each other's commits.
    """
    return database.with_name(f"{database.name}-shm")


def is_log_damaged(database: Path) -> bool:
    """Return true if there is a log whose header was not written by SQLite.

    An empty log, or one of zeros as after a power failure, holds no commits.
    """
    try:
        with name_log(database).open("rb") as file:
            head = file.read(_HEAD)
    except FileNotFoundError:
        return False
    if len(head) < _HEAD or not any(head):
        return False
    order = _ORDERS.get(struct.unpack_from(">I", head)[0])
    return order is None or _sum_frame_head(head, order) != struct.unpack_from(">II", head, _SUMMED)


def _sum_frame_head(head: bytes, order: str) -> tuple[int, int]:
    first = second = 0
    words = struct.unpack_from(f"{order}6I", head)
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return first, second


log = structlog.get_logger("factbook.storage")

# Error codes caused by SQL or its parameters.
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
# The index of the log has no room to grow.
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
# Codes that mean the same to users.
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
        self._index = name_log_index(self.target)
        self._parts = (path, name_log(self.target), self._index)
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
        """The error for files other than those that were opened."""
        found = found or self._identities()
        pairs = zip(self._parts, found, self._opened or found, strict=True)
        missing = ", ".join(part.name for part, now, then in pairs if now != then)
        told = SQLiteError(_GONE)
        told.add_note(f"Missing in {self.target.parent}: {missing}. Start the service again.")
        return told

    def verify_log(self) -> None:
        """Raise UnavailableError for a write-ahead log that SQLite would ignore."""
        if is_log_damaged(self.target):
            told = SQLiteError(f"{name_log(self.target).name} is damaged")
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
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        same = _SAME.get(code & 0xFF, code & 0xFF)
        kind = sqlite3.SQLITE_FULL if code in _NO_ROOM else same
        if kind in _BUGS:
            raise error
        # While opening, the error itself is reported.
        if kind == sqlite3.SQLITE_CORRUPT and self._opened is not None and not self._damaged:
            self._damaged = True
            log.error("database.damaged", cause=str(error), advice=self._advice(kind))
        told = SQLiteError(_SENTENCES.get(kind, _OTHERWISE))
        raise self._advised(told, kind) from error

    def note_write(self, error: SQLiteError | None) -> None:
        """Record the result of a write, and log it if it has changed."""
        trouble = None if error is None else error.message
        if trouble == self.trouble:
            return
        # The disk was full, and still lacks space for a small write.
        if (
            trouble is None
            and self.trouble == _FULL
            and disk_usage(self.target.parent).free < _SOME_ROOM
        ):
            return
        self.trouble = trouble
        if trouble is None:
            log.info("database.writable")
        else:
            log.error("database.unwritable", reason=trouble, advice=advise_on_error(error))

    def _advised(self, error: SQLiteError, kind: int) -> SQLiteError:
        error.add_note(self._advice(kind))
        return error

    def _advice(self, kind: int) -> str:
        return _ADVICE.get(kind, "The file is {}.").format(self.path)

    def _identities(self) -> tuple[Identity, ...]:
        return tuple(_identify_file(part) for part in self._parts)


def is_disk_full(error: SQLiteError) -> bool:
    """Return true if the error means that the disk was full."""
    return error.message == _FULL


def advise_on_error(error: BaseException | None) -> str:
    """Advice for the operator about an error; empty if there is none."""
    return " ".join(getattr(error, "__notes__", ()))


def _identify_file(path: Path) -> Identity:
    try:
        found = os.stat(path)  # noqa: PTH116 - half the time, at every write
    except OSError:
        return None
    return found.st_dev, found.st_ino


# A connection's page cache, in KiB.
READER_CACHE = 16384
# Reads only wait while another process recovers the file; the event loop blocks meanwhile.
READ_SECONDS: Final = 2.0
_INTERRUPT_SECONDS: Final = 0.1
_REOPENED: Final = "The database was opened for writes again. Try again."
# Options for reading without disk space for the log's index, which is then kept in memory. Writes
# of other processes are still visible.
_READ_ONLY: Final = "ro&readonly_shm=1"


class SQLiteConnection(sqlite3.Connection):
    """A connection with a reference to its file; its own methods raise UnavailableError."""

    file: DatabaseFile
    is_closed = False
    _open: sqlite3.Cursor | None = None  # of a statement whose rows are fetched in portions

    def close(self) -> None:
        """Close the connection, even if in use: later statements on it raise UnavailableError."""
        if self._open is not None and not self.is_closed:
            self._open.close()  # or SQLite would keep the file open
        self.is_closed = True
        super().close()

    def verify(self) -> None:
        """Raise UnavailableError if the connection can no longer read.

        Once the index of the log is known to be missing, other processes' writes may overwrite the
        data being read. The check costs a read almost nothing.
        """
        if self.is_closed:
            raise UnavailableError(_REOPENED)
        if self.file.is_divided:
            raise self.file.gone()

    def run(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        """The cursor of a started statement."""
        try:
            return self._run(sql, parameters)
        except sqlite3.Error as error:
            self.file.tell(error)

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row of a statement, or None."""
        try:
            row: Row | None = self._run(sql, parameters).fetchone()
        except sqlite3.Error as error:
            self.file.tell(error)
        return row

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """Every row of a statement."""
        try:
            return self._run(sql, parameters).fetchall()
        except sqlite3.Error as error:
            self.file.tell(error)

    async def all_apart(self, sql: str, parameters: Parameters) -> list[Row]:
        """Every row, read on a thread; cancellation waits for the statement to end."""
        work = asyncio.ensure_future(asyncio.to_thread(self.all, sql, parameters))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # Interrupting has no effect on a statement still waiting for a thread, so repeat. The
            # connection must not be reused before the statement ends, even if cancelled again.
            while not work.done():
                self.interrupt()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([work], timeout=_INTERRUPT_SECONDS)
            work.exception()  # marks the interruption as retrieved
            raise

    @contextmanager
    def begun(self, sql: str, parameters: Parameters) -> Iterator[sqlite3.Cursor]:
        """A started statement, closed at the end of the block."""
        self._open = cursor = self.run(sql, parameters)
        try:
            yield cursor
        finally:
            if not self.is_closed:
                cursor.close()

    def some(self, cursor: sqlite3.Cursor, size: int) -> list[Row]:
        """The next rows of a started statement; empty at its end."""
        self.verify()
        try:
            return cursor.fetchmany(size)
        except sqlite3.Error as error:
            self.file.tell(error)

    def roll_back(self) -> bool:
        """Roll back the transaction; returns false if that required closing the connection."""
        if not self.in_transaction:
            return True  # SQLite has already rolled back
        try:
            self.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
            return False
        return True

    def _run(self, sql: str, parameters: Parameters) -> sqlite3.Cursor:
        self.verify()
        text, listed = translate_to_sqlite(sql)
        if listed:
            parameters = [
                msgspec.json.encode(value).decode() if isinstance(value, list) else value
                for value in parameters
            ]
        return self.execute(text, parameters)


def connect_sqlite(
    file: DatabaseFile,
    *,
    cache: int = READER_CACHE,
    mapped: bool = False,
    wait: float = READ_SECONDS,
    durable: bool = False,
    new: bool = False,
) -> SQLiteConnection:
    """Open a connection; if `durable`, a commit is on disk before it returns.

    Statements wait `wait` seconds for locks. If `new`, create a missing file. Raises
    UnavailableError.
    """
    try:
        return _open_connection(file, cache, mapped, wait, durable, new)
    except sqlite3.Error as error:
        file.tell(error)


def _open_connection(
    file: DatabaseFile, cache: int, mapped: bool, wait: float, durable: bool, new: bool
) -> SQLiteConnection:
    mode = _READ_ONLY if file.read_only else "rwc" if new else "rw"
    # Threads never share a connection at the same time, so SQLite's own check is off.
    connection = sqlite3.connect(
        f"file:{quote(str(file.target))}?mode={mode}",
        uri=True,
        isolation_level=None,
        timeout=wait,
        check_same_thread=False,
        factory=SQLiteConnection,
    )
    connection.file = file
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = {-cache}")
        if mapped:  # saves a system call for each page outside the cache
            connection.execute("PRAGMA mmap_size = 268435456")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def keep_connection_open(connection: SQLiteConnection) -> None:
    """Keep a connection open for the life of the process, without closing it on exit.

    When the last connection closes, SQLite checkpoints the log into the database and deletes it; a
    connection that has lost the index would delete commits of other processes that way.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


class SQLiteSnapshot:
    """Several reads within the connection's current transaction."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        await asyncio.sleep(0)  # let other requests run between two reads
        row = self._connection.one(sql, parameters)
        return [msgspec.json.decode(text) for text in row or ()]


class SQLiteTransaction(Touching):
    """The current transaction of the write connection."""

    is_alone = True

    def __init__(self, connection: SQLiteConnection, evaluation: EvaluateChecks | None) -> None:
        super().__init__(evaluation)
        self._connection = connection
        self.one, self.all = connection.one, connection.all

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.run(sql, parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        places = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        key, *others = columns
        values = ", ".join(f"{column} = ?" for column in others)
        self.many(
            f"UPDATE {table} SET {values} WHERE {key} = ?", ((*row[1:], row[0]) for row in rows)
        )

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        where = " AND ".join(f"{column} = ?" for column in columns)
        self.many(f"DELETE FROM {table} WHERE {where}", rows)

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Do nothing: a write transaction of SQLite is already exclusive."""

    def lock_patiently(self, name: str) -> None:
        """Do nothing, as `lock` does."""

    def lock_each(self, names: Mapping[str, bool]) -> None:
        """Do nothing, as `lock` does."""

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        """Return true: there are no other writers."""
        return True

    def outwait(self, names: Mapping[str, bool]) -> None:
        """Do nothing, as `lock` does."""

    def aside(self) -> AbstractContextManager[Transaction]:
        """This transaction, since SQLite has no row locks."""
        return nullcontext(self)

    def relax(self) -> None:
        """Do nothing: SQLite sets durability by connection, not by transaction."""


# Searches are CPU-bound, so more at once would only slow all of them down; long reads mostly wait
# for the client.
_MOST_SEARCHES: Final = 2
_MOST_LONG: Final = 32
# KiB of page cache: a long read is a fifth faster with a smaller one.
_LONG_CACHE: Final = 4096
# Idle connections kept for reuse.
_MOST_IDLE = 4
_WAIT_SECONDS = 10


class Readers:
    """Connections for reads that run concurrently.

    Each keeps reading its initial snapshot, which the event loop's own connection must not do.
    """

    def __init__(self, file: DatabaseFile, most: int, *, cache: int, mapped: bool) -> None:
        self.most = most
        self._file = file
        self._cache = cache
        self._mapped = mapped
        self._free = asyncio.Semaphore(most)
        self.taken = 0
        self.waiting = 0
        self._idle: list[SQLiteConnection] = []
        self._taken: set[SQLiteConnection] = set()

    @classmethod
    def for_searches(cls, file: DatabaseFile) -> Self:
        """Connections for searches."""
        return cls(file, _MOST_SEARCHES, cache=READER_CACHE, mapped=True)

    @classmethod
    def for_long_reads(cls, file: DatabaseFile) -> Self:
        """Connections for long reads, with a small cache and without mapping the file."""
        return cls(file, _MOST_LONG, cache=_LONG_CACHE, mapped=False)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[SQLiteConnection]:
        """An exclusive connection; raises UnavailableError if too many are in use."""
        self.waiting += 1
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError as error:
            raise UnavailableError("Too many long answers are in progress.") from error
        finally:
            self.waiting -= 1
        self.taken += 1
        try:
            connection = self._idle.pop() if self._idle else self._connect()
            self._taken.add(connection)
            try:
                yield connection
            finally:
                self._taken.discard(connection)
                self._put_back(connection)
        finally:
            self.taken -= 1
            self._free.release()

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.pop().close()

    def close_all(self) -> None:
        """Close all connections, even those in use: their reads fail with UnavailableError."""
        self.close()
        for connection in self._taken:
            connection.close()

    def _connect(self) -> SQLiteConnection:
        # A different file at the path would return wrong data.
        self._file.verify()
        return connect_sqlite(self._file, cache=self._cache, mapped=self._mapped)

    def _put_back(self, connection: SQLiteConnection) -> None:
        if connection.is_closed:
            return
        if len(self._idle) < _MOST_IDLE:
            self._idle.append(connection)
        else:
            connection.close()


T = TypeVar("T")

_MOST_KEPT = 20_000
_WRITER_CACHE = 65536  # KiB of pages
# Rows of a long text joined at a time: few enough to stay in the CPU cache.
_TEXT_ROWS = 100
# A write that was queued while another one timed out on the lock waits at least this much longer.
_LEAST_SECONDS = 0.1


class SQLite:
    """A SQLite file, created if it does not exist."""

    dialect: Dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        longest_search: float = LONGEST_SEARCH,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        """Open the file; raises UnavailableError, with advice as notes, on failure.

        A write waits `busy_seconds` for writes of other processes.
        """
        self._file = DatabaseFile(path)
        self.remembered = Remembered()
        self._checks = self.remembered.of(ChecksPort)
        self._longest_search = longest_search
        self._busy_seconds = busy_seconds
        self._writer: SQLiteConnection | None = None
        self._in_vain_until = 0.0  # when a write last timed out on the lock
        self._reader = self._made()
        self._finder = self._reader.cursor()
        self._version = 0
        self._is_fresh = False  # the version was read in this turn of the event loop
        self._kept: dict[tuple[str, str], Row] = {}  # small rows of this version
        self._searches = Readers.for_searches(self._file)
        self._long_reads = Readers.for_long_reads(self._file)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite-writer")

    def _made(self) -> SQLiteConnection:
        """The first connection to the file, which is created if missing."""
        self._file.target.parent.mkdir(parents=True, exist_ok=True)
        # Other users of the server must not read data that requires a permission here.
        with suppress(OSError):
            self._file.target.touch(mode=0o600, exist_ok=False)
        self._file.verify_writable()
        self._file.verify_log()
        return self._first_connection(self._busy_seconds)

    def _first_connection(self, wait: float, *, again: bool = False) -> SQLiteConnection:
        """Connect, read-only if the disk is full; with `again`, read-only after any error."""
        try:
            return self._connected(wait)
        except SQLiteError as error:
            if not (again or is_disk_full(error)):
                raise
            self._file.read_only = True
            with suppress(SQLiteError):
                connection = self._connected(wait)
                self._file.note_write(error)
                return connection
            raise

    def _connected(self, wait: float) -> SQLiteConnection:
        """Connect and read once, to detect a file that cannot be read at all."""
        with ExitStack() as stack:
            connection = connect_sqlite(self._file, mapped=True, wait=wait, new=True)
            stack.callback(connection.close)
            connection.one("SELECT count(*) FROM sqlite_master")
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * READ_SECONDS)}")
            stack.pop_all()
        self._file.remember()
        return connection

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return self._reader.one(sql, parameters)

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return self._reader.all(sql, parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        async with self._searches.one() as connection, limit_time(self._longest_search):
            return await connection.all_apart(sql, parameters)

    def refresh(self) -> None:
        # Everything handled in one turn of the loop arrived before it, so one check is enough.
        if self._is_fresh:
            return
        try:
            [version] = self._finder.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            self._file.tell(error)
        if version != self._version:
            self._version = version
            self._kept.clear()
        self._is_fresh = True
        asyncio.get_running_loop().call_soon(setattr, self, "_is_fresh", False)

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        self._reader.verify()
        if small and (kept := self._kept.get((sql, key))) is not None:
            return kept
        try:
            # Fetching the only row ends the statement, which releases its read snapshot.
            row: Row | None = self._finder.execute(translate_find(sql), (key,)).fetchone()
        except sqlite3.Error as error:
            self._file.tell(error)
        if small and row is not None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[sql, key] = row
        return row

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        async with self._long_reads.one() as connection:
            with connection.begun(sql, parameters) as cursor:
                while rows := connection.some(cursor, size):
                    yield rows
                    await asyncio.sleep(0)

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        async with self._long_reads.one() as connection:
            connection.text_factory = bytes
            try:
                with connection.begun(sql, parameters) as cursor:
                    while rows := connection.some(cursor, _TEXT_ROWS):
                        yield b"".join(chain.from_iterable(rows))
                        await asyncio.sleep(0)
            finally:
                connection.text_factory = str

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._long_reads.one() as connection:
            connection.run("BEGIN")
            try:
                yield SQLiteSnapshot(connection)
            finally:
                if not connection.is_closed:
                    connection.run("COMMIT")

    def _reopen(self) -> None:
        """Reopen a file for writes that was opened on a full disk, once there is room.

        SQLite switches only if the process has no other connection to the file, so searches on
        threads are awaited.
        """
        if not self._file.read_only or self._searches.taken or not self._file.has_room():
            return
        self._file.verify()  # or a new file would be created in its place
        self._searches.close_all()
        self._long_reads.close_all()
        self._reader.close()
        self._file.read_only = False
        self._reader = self._first_connection(READ_SECONDS, again=True)
        self._finder = self._reader.cursor()
        self._version = 0
        self._kept.clear()
        if not self._file.read_only:
            self._file.note_write(None)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        self._reopen()
        loop, now = asyncio.get_running_loop(), time.monotonic()
        work = loop.run_in_executor(self._thread, self._noted_write, function, now)
        # Shielded: a client that disconnects must not leave a transaction half done.
        return await asyncio.shield(work)

    def _noted_write(self, function: Callable[[Transaction], T], asked_at: float) -> T:
        try:
            return self._write(function, asked_at)
        except SQLiteError as error:
            self._file.note_write(error)
            raise

    def _write(self, function: Callable[[Transaction], T], asked_at: float) -> T:
        self._file.verify()
        self._file.verify_room()
        if self._writer is None:
            self._writer = connect_sqlite(self._file, cache=_WRITER_CACHE, durable=True)
        connection = self._writer
        self._begin(connection, asked_at)
        changes = connection.total_changes
        try:
            transaction = SQLiteTransaction(connection, self._checks.evaluation)
            result = function(transaction)
            transaction.verify_evaluated()
            # A write to a different file would be lost.
            self._file.verify()
            connection.execute("COMMIT")
            # An acknowledged write must be in the file that the next process opens.
            self._file.verify()
        except BaseException as error:
            if not connection.roll_back():
                self._writer = None
            if isinstance(error, sqlite3.Error):
                self._file.tell(error)
            raise
        if connection.total_changes > changes:
            self._file.note_write(None)
        return result

    def _begin(self, connection: SQLiteConnection, asked_at: float) -> None:
        """Wait for the lock of the file, then begin a transaction."""
        seconds = self._busy_seconds
        if asked_at < self._in_vain_until:
            seconds = max(_LEAST_SECONDS, asked_at + seconds - time.monotonic())
        try:
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * seconds)}")
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            self._in_vain_until = time.monotonic()
            self._file.tell(error)

    async def apart(self, lock: str, statements: Sequence[str], *, unless: str) -> bool:
        def work(transaction: Transaction) -> bool:
            if transaction.one(unless) is not None:
                return False
            for statement in statements:
                transaction.run(statement)
            return True

        return await self.write(work)  # SQLite has one writer anyway

    def reads(self) -> Reads:
        return Reads(
            self._searches.taken + self._long_reads.taken,
            self._searches.waiting + self._long_reads.waiting,
            self._searches.most + self._long_reads.most,
        )

    async def check(self) -> None:
        self._reopen()
        self._file.verify()
        await self.one("SELECT count(*) FROM sqlite_master")

    def replica(self) -> None:
        return None

    def trouble(self) -> str | None:
        return self._file.trouble

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
        if self._writer is not None:
            self._writer.close()
        with suppress(UnavailableError):
            self._file.verify()
        if self._file.is_divided:
            keep_connection_open(self._reader)
        else:
            self._reader.close()
        self._searches.close()
        self._long_reads.close()

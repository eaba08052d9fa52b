"""Connections to a SQLite file, with their statements and transactions; errors are translated."""

import asyncio
import ctypes
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final
from urllib.parse import quote

import msgspec

from factbook.errors import UnavailableError
from factbook.storage import dialects
from factbook.storage.database import Parameters, Row, Transaction
from factbook.storage.sqlite_file import DatabaseFile
from factbook.storage.touches import Touching

# KiB of pages that a connection keeps.
CACHE = 16384
# Reads wait for nothing but a file that another process just puts in order, and all others wait
# with them.
READ_SECONDS: Final = 2.0
_INTERRUPT_SECONDS: Final = 0.1
_REOPENED: Final = "The database was opened for writes again. Try again."
# What reads without room on the disk for the index of the log, which it then has in memory. Another
# process may write meanwhile, and is seen.
_READ_ONLY: Final = "ro&readonly_shm=1"


class SQLiteConnection(sqlite3.Connection):
    """A connection with a reference to its file; its own methods raise UnavailableError."""

    file: DatabaseFile
    is_closed = False
    _open: sqlite3.Cursor | None = None  # of a statement whose rows are fetched bit by bit

    def close(self) -> None:
        """Close the connection, even if in use: later statements on it raise UnavailableError."""
        if self._open is not None and not self.is_closed:
            self._open.close()  # or SQLite would keep the file open for it
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
        """The same on a thread; cancellation takes effect only once the statement has ended."""
        work = asyncio.ensure_future(asyncio.to_thread(self.all, sql, parameters))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # An interruption does nothing to a statement that waits for a thread yet. The
            # connection goes to somebody else only when it is over, however often it is cancelled.
            while not work.done():
                self.interrupt()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([work], timeout=_INTERRUPT_SECONDS)
            work.exception()  # is the interruption itself, and looked at
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
        """Roll the transaction back; returns false if the connection had to be closed for that."""
        if not self.in_transaction:
            return True  # SQLite has done it
        try:
            self.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()
            return False
        return True

    def _run(self, sql: str, parameters: Parameters) -> sqlite3.Cursor:
        self.verify()
        text, listed = dialects.sqlite(sql)
        if listed:
            parameters = [
                _json(value) if isinstance(value, list) else value for value in parameters
            ]
        return self.execute(text, parameters)


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()


def connect(
    file: DatabaseFile,
    *,
    cache: int = CACHE,
    mapped: bool = False,
    wait: float = READ_SECONDS,
    durable: bool = False,
    new: bool = False,
) -> SQLiteConnection:
    """Open a connection; if `durable`, a commit is on disk before it returns.

    It waits `wait` seconds for locks. If `new`, a missing file is created. Raises UnavailableError.
    """
    try:
        return _connected(file, cache, mapped, wait, durable, new)
    except sqlite3.Error as error:
        file.tell(error)


def _connected(
    file: DatabaseFile, cache: int, mapped: bool, wait: float, durable: bool, new: bool
) -> SQLiteConnection:
    mode = _READ_ONLY if file.read_only else "rwc" if new else "rw"
    # The threads take turns: one connection is the loop's, the other the writer's.
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
        if mapped:  # which spares a system call for a page outside the cache
            connection.execute("PRAGMA mmap_size = 268435456")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def keep_open(connection: SQLiteConnection) -> None:
    """Keep a connection open for the life of the process, without closing it on exit.

    SQLite makes the last connection checkpoint the log into the database and delete it; a
    connection that has lost the index would omit commits of other processes and delete those.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


class SQLiteSnapshot:
    """Several reads within the connection's current transaction."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        await asyncio.sleep(0)  # others are answered between two of these
        row = self._connection.one(sql, parameters)
        return [msgspec.json.decode(text) for text in row or ()]


class SQLiteTransaction(Touching):
    """The one transaction of the connection for writes."""

    is_alone = True

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection
        self.touched = {}
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
        """Return true: nobody else writes."""
        return True

    def outwait(self, names: Mapping[str, bool]) -> None:
        """Do nothing, as `lock` does."""

    def aside(self) -> AbstractContextManager[Transaction]:
        """This transaction, as nobody waits for its rows."""
        return nullcontext(self)

    def relax(self) -> None:
        """Do nothing: SQLite sets durability by connection, not by transaction."""

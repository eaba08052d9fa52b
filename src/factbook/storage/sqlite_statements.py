"""Statements and transactions on a connection to a SQLite file, which translates the errors."""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Final

import msgspec

from factbook.storage import dialects
from factbook.storage.database import Parameters, Row, Transaction
from factbook.storage.sqlite_connections import SQLiteConnection

_INTERRUPT_SECONDS: Final = 0.1


def execute(connection: SQLiteConnection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    """The cursor of a started statement."""
    try:
        return _begun(connection, sql, parameters)
    except sqlite3.Error as error:
        connection.file.tell(error)


@contextmanager
def begun(
    connection: SQLiteConnection, sql: str, parameters: Parameters
) -> Iterator[sqlite3.Cursor]:
    """A started statement, closed at the end of the block."""
    connection.begun = cursor = execute(connection, sql, parameters)
    try:
        yield cursor
    finally:
        if not connection.is_closed:
            cursor.close()


def one(connection: SQLiteConnection, sql: str, parameters: Parameters) -> Row | None:
    """The first row of a statement, or None."""
    try:
        row: Row | None = _begun(connection, sql, parameters).fetchone()
    except sqlite3.Error as error:
        connection.file.tell(error)
    return row


def all_rows(connection: SQLiteConnection, sql: str, parameters: Parameters) -> list[Row]:
    """Every row of a statement."""
    try:
        return _begun(connection, sql, parameters).fetchall()
    except sqlite3.Error as error:
        connection.file.tell(error)


async def all_rows_apart(
    connection: SQLiteConnection, sql: str, parameters: Parameters
) -> list[Row]:
    """The same on a thread; cancellation takes effect only once the statement has ended."""
    work = asyncio.ensure_future(asyncio.to_thread(all_rows, connection, sql, parameters))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        # An interruption does nothing to a statement that waits for a thread yet. The connection
        # goes to somebody else only when this is over, however often it is cancelled.
        while not work.done():
            connection.interrupt()
            with suppress(asyncio.CancelledError):
                await asyncio.wait([work], timeout=_INTERRUPT_SECONDS)
        work.exception()  # is the interruption itself, and looked at
        raise


def some(connection: SQLiteConnection, cursor: sqlite3.Cursor, size: int) -> list[Row]:
    """The next rows of a started statement; empty at its end."""
    connection.verify()
    try:
        return cursor.fetchmany(size)
    except sqlite3.Error as error:
        connection.file.tell(error)


def roll_back(connection: SQLiteConnection) -> bool:
    """Roll the transaction back; returns false if the connection had to be closed for that."""
    if not connection.in_transaction:
        return True  # SQLite has done it
    try:
        connection.execute("ROLLBACK")
    except sqlite3.Error:
        connection.close()
        return False
    return True


class SQLiteSnapshot:
    """Several reads within the connection's current transaction."""

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        await asyncio.sleep(0)  # others are answered between two of these
        row = one(self._connection, sql, parameters)
        return [msgspec.json.decode(text) for text in row or ()]


class SQLiteTransaction:
    """The one transaction of the connection for writes."""

    is_alone = True

    def __init__(self, connection: SQLiteConnection) -> None:
        self._connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return one(self._connection, sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        return all_rows(self._connection, sql, parameters)

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return execute(self._connection, sql, parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        self._connection.executemany(sql, rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        places = ", ".join("?" * len(columns))
        self.many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", rows)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        where = " AND ".join(f"{column} = ?" for column in columns)
        self.many(f"DELETE FROM {table} WHERE {where}", rows)

    def lock(self, name: str, *, shared: bool = False) -> None:
        """Do nothing: a write transaction of SQLite is already exclusive."""

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


def _begun(connection: SQLiteConnection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    connection.verify()
    text, listed = dialects.sqlite(sql)
    if listed:
        parameters = [_json(value) if isinstance(value, list) else value for value in parameters]
    return connection.execute(text, parameters)


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()

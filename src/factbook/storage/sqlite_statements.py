"""Statements and transactions on a connection to a SQLite file, which translates the errors."""

import asyncio
import sqlite3
from contextlib import suppress
from typing import Any, Final

import msgspec

from factbook.storage import dialects
from factbook.storage.database import Parameters, Row
from factbook.storage.sqlite_connections import Connection

_INTERRUPT_SECONDS: Final = 0.1


def execute(connection: Connection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    """The cursor of a started statement."""
    try:
        return _begun(connection, sql, parameters)
    except sqlite3.Error as error:
        connection.file.tell(error)


def one(connection: Connection, sql: str, parameters: Parameters) -> Row | None:
    """The first row of a statement, or None."""
    try:
        row: Row | None = _begun(connection, sql, parameters).fetchone()
    except sqlite3.Error as error:
        connection.file.tell(error)
    return row


def all_rows(connection: Connection, sql: str, parameters: Parameters) -> list[Row]:
    """Every row of a statement."""
    try:
        return _begun(connection, sql, parameters).fetchall()
    except sqlite3.Error as error:
        connection.file.tell(error)


async def all_rows_apart(connection: Connection, sql: str, parameters: Parameters) -> list[Row]:
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


def some(connection: Connection, cursor: sqlite3.Cursor, size: int) -> list[Row]:
    """The next rows of a started statement; empty at its end."""
    try:
        return cursor.fetchmany(size)
    except sqlite3.Error as error:
        connection.file.tell(error)


def _begun(connection: Connection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    text, listed = dialects.sqlite(sql)
    if listed:
        parameters = [_json(value) if isinstance(value, list) else value for value in parameters]
    return connection.execute(text, parameters)


def _json(values: list[Any]) -> str:
    return msgspec.json.encode(values).decode()

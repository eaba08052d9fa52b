"""Statements on a connection to a SQLite file; what goes wrong is told by the file."""

import sqlite3
from typing import Any

import msgspec

from factbook.storage import dialects
from factbook.storage.database import Parameters, Row
from factbook.storage.sqlite_connections import Connection


def execute(connection: Connection, sql: str, parameters: Parameters) -> sqlite3.Cursor:
    """The cursor of a statement that has begun."""
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


def some(connection: Connection, cursor: sqlite3.Cursor, size: int) -> list[Row]:
    """The next rows of a statement that has begun; none at its end."""
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

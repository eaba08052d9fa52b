"""Work within a transaction on a connection to PostgreSQL."""

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

import psycopg

from factbook.storage import dialects
from factbook.storage.database import Parameters, Row

_LOCK_SPACE: Final = 0x0FAC
_PIECE: Final = 10_000  # rows that are made at once


class PostgreSQLTransaction:
    """The one transaction of a connection for writes."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        return self._connection.execute(dialects.postgresql(sql), parameters).fetchone()

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        cursor = self._connection.execute(dialects.postgresql(sql), parameters)
        rows: list[Row] = []
        # Other threads run between two calls of the driver, not while it makes rows.
        while piece := cursor.fetchmany(_PIECE):
            rows += piece
        return rows

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        return self._connection.execute(dialects.postgresql(sql), parameters).rowcount

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(dialects.postgresql(sql), rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        if not rows:
            return
        types = ["bigint[]" if isinstance(value, int) else "text[]" for value in rows[0]]
        arrays = ", ".join(f"%s::{type_}" for type_ in types)
        gone = ", ".join(f"gone.{column}" for column in columns)
        kept = ", ".join(f"{table}.{column}" for column in columns)
        self._connection.execute(
            f"DELETE FROM {table} USING unnest({arrays}) AS gone ({', '.join(columns)}) "
            f"WHERE ({kept}) = ({gone})",
            [list(column) for column in zip(*rows, strict=True)],
        )

    def lock(self, name: str) -> None:
        self._connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", lock_key(name))

    def relax(self) -> None:
        self._connection.execute("SET LOCAL synchronous_commit TO off")


def lock_key(name: str) -> tuple[int, int]:
    """The key of the advisory lock with this name, in this product's key space."""
    return _LOCK_SPACE, zlib.crc32(name.encode()) & 0x7FFFFFFF

"""Work within a transaction on a connection to PostgreSQL."""

import hashlib
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import psycopg
from psycopg import errors

from factbook.storage import dialects
from factbook.storage.database import EvaluateChecks, Parameters, Row, Touching, Transaction
from factbook.storage.short_locks import PAUSE_SECONDS, TIMEOUT

_LOCK_SPACE: Final = 0x0FAC
_PIECE: Final = 10_000  # rows that are made at once
# Until a lock that is tried patiently is given up.
_PATIENCE_SECONDS: Final = 120.0

Spare = Callable[[], AbstractContextManager[psycopg.Connection[Row]]]


class PostgreSQLTransaction(Touching):
    """The one transaction of a connection for writes; `spare` lends another connection."""

    is_alone = False

    def __init__(
        self,
        connection: psycopg.Connection[Row],
        spare: Spare,
        evaluation: EvaluateChecks | None = None,
    ) -> None:
        super().__init__(evaluation)
        self._connection = connection
        self._spare = spare

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

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        key, *others = columns
        values = ", ".join(f"{column} = new.{column}" for column in others)
        for start in range(0, len(rows), _PIECE):
            given = [list(column) for column in zip(*rows[start : start + _PIECE], strict=True)]
            arrays = ", ".join(map(_array, given))
            self._connection.execute(
                f"UPDATE {table} SET {values} FROM unnest({arrays}) AS new ({', '.join(columns)}) "
                f"WHERE {table}.{key} = new.{key}",
                given,
            )

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

    def lock(self, name: str, *, shared: bool = False) -> None:
        mode = "_shared" if shared else ""
        self._connection.execute(f"SELECT pg_advisory_xact_lock{mode}(%s, %s)", lock_key(name))

    def lock_patiently(self, name: str) -> None:
        # One after the other: together, those who try would keep others waiting all the time.
        self.lock(f"{name} alone")
        end = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                with self._connection.transaction():
                    self._connection.execute(f"SET LOCAL {TIMEOUT}")
                    self.lock(name)
                    self._connection.execute("SET LOCAL lock_timeout TO DEFAULT")
                return
            except errors.LockNotAvailable:
                if time.monotonic() > end:
                    raise
            time.sleep(PAUSE_SECONDS)

    def lock_each(self, names: Mapping[str, bool]) -> None:
        if names:
            self._connection.execute(_LOCK_EACH, _lock_keys(names))

    def try_lock_each(self, names: Mapping[str, bool]) -> bool:
        rows = self._connection.execute(_TRY_LOCK_EACH, _lock_keys(names)).fetchall()
        return all(taken for (taken,) in rows)

    def outwait(self, names: Mapping[str, bool]) -> None:
        # Going back to a savepoint gives back the locks that were taken since.
        with self._connection.transaction(force_rollback=True):
            self.lock_each(names)

    @contextmanager
    def aside(self) -> Iterator[Transaction]:
        with self._spare() as connection, connection.transaction():
            aside = PostgreSQLTransaction(connection, self._spare)
            # Its own commit takes no locks that this transaction, on the same thread, may hold.
            aside.touched = self.touched
            yield aside

    def relax(self) -> None:
        self._connection.execute("SET LOCAL synchronous_commit TO off")


def _array(values: Iterable[object]) -> str:
    """The place of an array of values, some of which may be missing."""
    known = next((value for value in values if value is not None), 0)
    # As text bytes would be twice as long, and escaped.
    return {int: "%s::bigint[]", bytes: "%b::bytea[]"}.get(type(known), "%s::text[]")


def lock_key(name: str) -> tuple[int, int]:
    """The key of the advisory lock with this name, in this product's key space."""
    return _LOCK_SPACE, zlib.crc32(name.encode()) & 0x7FFFFFFF


def _lock_keys(names: Mapping[str, bool]) -> tuple[list[int], list[bool]]:
    """Keys in ascending order, and whether each is shared.

    Keys of 64 bits are another space than those of two numbers, and practically never collide.
    """
    keys: dict[int, bool] = {}
    for name, shared in names.items():
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        key = int.from_bytes(digest, signed=True)
        keys[key] = keys.get(key, True) and shared
    found = sorted(keys.items())
    return [key for key, _ in found], [shared for _, shared in found]


# Rows come, and functions are called, in the order of the arrays.
_LOCK_EACH: Final = """
SELECT CASE WHEN shared THEN pg_advisory_xact_lock_shared(key)::text
    ELSE pg_advisory_xact_lock(key)::text END
FROM unnest(%s::bigint[], %s::boolean[]) AS wanted (key, shared)
"""

_TRY_LOCK_EACH: Final = """
SELECT CASE WHEN shared THEN pg_try_advisory_xact_lock_shared(key)
    ELSE pg_try_advisory_xact_lock(key) END
FROM unnest(%s::bigint[], %s::boolean[]) AS wanted (key, shared)
"""

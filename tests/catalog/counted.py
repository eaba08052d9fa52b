"""A write that counts: rows that a transaction reads and writes, and the most in one call."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from factbook.storage import Database, Row, Transaction
from factbook.storage.database import Parameters

T = TypeVar("T")

_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+(\w+)")


class CountedWrite:
    """Runs functions in transactions of a database, as its own `write` does."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.read = 0
        self.written: Counter[str] = Counter()  # rows by table
        self.most: Counter[str] = Counter()  # rows that one call hands over, by table

    async def __call__(self, function: Callable[[Transaction], T], /) -> T:
        self.read, self.written, self.most = 0, Counter(), Counter()
        return await self._database.write(
            lambda transaction: function(_CountedTransaction(transaction, self))
        )

    def count(self, table: str, rows: int) -> None:
        """Rows of a table that one call writes or deletes."""
        self.written[table] += rows
        self.most[table] = max(self.most[table], rows)


def _table(sql: str) -> str:
    found = _TABLE.search(sql)
    return found[1] if found else ""


class _CountedTransaction:
    def __init__(self, inner: Transaction, counts: CountedWrite) -> None:
        self._inner = inner
        self._counts = counts
        self.lock, self.relax = inner.lock, inner.relax
        self.lock_patiently = inner.lock_patiently
        self.lock_each, self.try_lock_each = inner.lock_each, inner.try_lock_each
        self.outwait, self.is_alone = inner.outwait, inner.is_alone
        self.touch, self.touched = inner.touch, inner.touched
        self.evaluation, self.evaluate_checks = inner.evaluation, inner.evaluate_checks

    @contextmanager
    def aside(self) -> Iterator[Transaction]:
        with self._inner.aside() as aside:
            yield _CountedTransaction(aside, self._counts)

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        row = self._inner.one(sql, parameters)
        self._counts.read += row is not None
        return row

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        rows = self._inner.all(sql, parameters)
        self._counts.read += len(rows)
        return rows

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        touched = self._inner.run(sql, parameters)
        self._counts.written[_table(sql)] += touched
        return touched

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        given = list(rows)
        self._counts.count(_table(sql), len(given))
        self._inner.many(sql, given)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        given = list(rows)
        self._counts.count(table, len(given))
        self._inner.insert(table, columns, given)

    def update(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        self._counts.count(table, len(rows))
        self._inner.update(table, columns, rows)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        self._counts.count(table, len(rows))
        self._inner.delete(table, columns, rows)

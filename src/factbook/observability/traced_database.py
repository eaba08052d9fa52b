"""A span for each statement within a trace, by OpenTelemetry's conventions for databases.

A statement outside any trace gets none: polling for work once a second would drown the rest.
Neither the text of a statement nor a parameter is recorded, only the operation and the table.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import lru_cache
from typing import Any, Final, TypeVar

from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span

from factbook.observability.otel_spans import around, ending
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import Dialect, Parameters, ReadSnapshot

T = TypeVar("T")

# Of a transaction; a large push has thousands.
MOST_STATEMENTS: Final = 100

_VERB = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+([a-z_][a-z_0-9]*)")


@lru_cache(maxsize=1024)
def about(sql: str, table: str = "") -> dict[str, str]:
    """Span attributes of a statement: its first operation and the table."""
    verb, named = _VERB.search(sql), _TABLE.search(sql)
    found = {"db.operation.name": verb[1] if verb else "OTHER"}
    if table := table or (named[1] if named else ""):
        found["db.collection.name"] = table
    return found | {"db.query.summary": " ".join(found.values())}


class _Spans:
    """Makes the spans of statements."""

    def __init__(self, tracer: Tracer, system: str) -> None:
        self.tracer = tracer
        self._system = {"db.system.name": system}

    def begun(self, name: str, attributes: dict[str, str]) -> Span:
        """Start a span as a child of the open one."""
        given = self._system | attributes
        return self.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=given)

    @contextmanager
    def of(self, sql: str, table: str = "") -> Iterator[None]:
        """A span around a statement. It is not made current: it has no children."""
        if not get_current_span().is_recording():
            yield
            return
        attributes = about(sql, table)
        span = self.begun(attributes["db.query.summary"], attributes)
        with ending(span):
            yield


class TracedDatabase:
    """Database wrapper that makes spans."""

    def __init__(self, inner: Database, tracer: Tracer) -> None:
        self.dialect: Dialect = inner.dialect
        self.remembered = inner.remembered
        self._inner = inner
        self._spans = _Spans(tracer, inner.dialect)
        self.refresh = inner.refresh
        self.close = inner.close
        self.check = inner.check
        self.apart = inner.apart
        self.trouble = inner.trouble
        self.reads = inner.reads

    async def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        with self._spans.of(sql):
            return await self._inner.one(sql, parameters)

    async def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._spans.of(sql):
            return await self._inner.all(sql, parameters)

    async def search(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._spans.of(sql):
            return await self._inner.search(sql, parameters)

    async def find(self, sql: str, key: str, *, small: bool = False) -> Row | None:
        with self._spans.of(sql):
            return await self._inner.find(sql, key, small=small)

    async def pages(
        self, sql: str, parameters: Parameters = (), size: int = 1000
    ) -> AsyncIterator[list[Row]]:
        with self._spans.of(sql):
            async for rows in self._inner.pages(sql, parameters, size):
                yield rows

    async def text(self, sql: str, parameters: Parameters = ()) -> AsyncIterator[bytes]:
        with self._spans.of(sql):
            async for piece in self._inner.text(sql, parameters):
                yield piece

    @asynccontextmanager
    async def moment(self) -> AsyncIterator[ReadSnapshot]:
        async with self._inner.moment() as moment:
            yield _TracedMoment(moment, self._spans)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        if not get_current_span().is_recording():
            return await self._inner.write(function)
        span = self._spans.begun("transaction", {"db.operation.name": "transaction"})
        with around(span):
            waiting = self._spans.tracer.start_span("wait for a writer")
            context = copy_context()

            def work(transaction: Transaction) -> T:
                if waiting.is_recording():
                    waiting.end()
                traced = _TracedTransaction(transaction, self._spans)
                try:
                    return function(traced)
                finally:
                    span.set_attribute("factbook.db.statements", traced.count)

            try:
                # The threads of writers know nothing of who asks.
                return await self._inner.write(lambda tx: context.copy().run(work, tx))
            finally:
                if waiting.is_recording():  # it was never its turn
                    waiting.end()


class _TracedMoment:
    def __init__(self, inner: ReadSnapshot, spans: _Spans) -> None:
        self._inner = inner
        self._spans = spans

    async def columns(self, sql: str, parameters: Parameters = ()) -> list[list[Any]]:
        with self._spans.of(sql):
            return await self._inner.columns(sql, parameters)


class _TracedTransaction:
    """Transaction wrapper that makes spans for its first statements."""

    def __init__(self, inner: Transaction, spans: _Spans) -> None:
        self._inner = inner
        self._spans = spans
        self.count = 0
        self.relax = inner.relax

    @contextmanager
    def _of(self, sql: str, table: str = "") -> Iterator[None]:
        self.count += 1
        if self.count > MOST_STATEMENTS:
            yield
            return
        with self._spans.of(sql, table):
            yield

    def one(self, sql: str, parameters: Parameters = ()) -> Row | None:
        with self._of(sql):
            return self._inner.one(sql, parameters)

    def all(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        with self._of(sql):
            return self._inner.all(sql, parameters)

    def run(self, sql: str, parameters: Parameters = ()) -> int:
        with self._of(sql):
            return self._inner.run(sql, parameters)

    def many(self, sql: str, rows: Iterable[Parameters]) -> None:
        with self._of(sql):
            self._inner.many(sql, rows)

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Parameters]) -> None:
        with self._of("INSERT", table):
            self._inner.insert(table, columns, rows)

    def delete(self, table: str, columns: Sequence[str], rows: Sequence[Parameters]) -> None:
        with self._of("DELETE", table):
            self._inner.delete(table, columns, rows)

    def lock(self, name: str) -> None:
        with self._of("LOCK"):
            self._inner.lock(name)

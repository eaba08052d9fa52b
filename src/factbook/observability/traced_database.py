"""A span for each statement within a trace, by OpenTelemetry's conventions for databases.

A statement outside any trace gets none: polling for work once a second would drown the rest.
Neither the text of a statement nor a parameter is recorded, only the operation and the table.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import copy_context
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span

from factbook.observability.otel_spans import around, ending
from factbook.storage import Database, Transaction
from factbook.storage.database import Dialect, ReadSnapshot

T = TypeVar("T")
Call = TypeVar("Call", bound=Callable[..., Any])

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

    def awaited(self, call: Call) -> Call:
        """The same call of a database, with a span around its statement."""

        async def traced(sql: str, *arguments: Any, **named: Any) -> Any:
            with self.of(sql):
                return await call(sql, *arguments, **named)

        return cast(Call, traced)

    def streamed(self, call: Call) -> Call:
        """The same for a call whose rows come in portions: the span ends with the last."""

        async def traced(sql: str, *arguments: Any, **named: Any) -> AsyncIterator[Any]:
            with self.of(sql):
                async for portion in call(sql, *arguments, **named):
                    yield portion

        return cast(Call, traced)


class TracedDatabase:
    """Database wrapper that makes spans."""

    def __init__(self, inner: Database, tracer: Tracer) -> None:
        self.dialect: Dialect = inner.dialect
        self.remembered = inner.remembered
        self._inner = inner
        self._spans = spans = _Spans(tracer, inner.dialect)
        self.one, self.all = spans.awaited(inner.one), spans.awaited(inner.all)
        self.search, self.find = spans.awaited(inner.search), spans.awaited(inner.find)
        self.pages, self.text = spans.streamed(inner.pages), spans.streamed(inner.text)
        self.refresh, self.close, self.check = inner.refresh, inner.close, inner.check
        self.apart, self.trouble, self.reads = inner.apart, inner.trouble, inner.reads

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
        self.columns = spans.awaited(inner.columns)


class _TracedTransaction:
    """Transaction wrapper that makes spans for its first statements."""

    def __init__(self, inner: Transaction, spans: _Spans) -> None:
        self._inner = inner
        self._spans = spans
        self.count = 0
        self.relax = inner.relax
        self.one, self.all = self._counted(inner.one), self._counted(inner.all)
        self.run, self.many = self._counted(inner.run), self._counted(inner.many)
        self.insert = self._counted(inner.insert, "INSERT")
        self.delete = self._counted(inner.delete, "DELETE")

    def lock(self, name: str) -> None:
        with self._of("LOCK"):
            self._inner.lock(name)

    def _counted(self, call: Call, verb: str = "") -> Call:
        """The same call with a span; of those with a verb the first argument names the table."""

        def traced(first: str, *arguments: Any, **named: Any) -> Any:
            with self._of(verb, first) if verb else self._of(first):
                return call(first, *arguments, **named)

        return cast(Call, traced)

    @contextmanager
    def _of(self, sql: str, table: str = "") -> Iterator[None]:
        self.count += 1
        if self.count > MOST_STATEMENTS:
            yield
            return
        with self._spans.of(sql, table):
            yield

"""A span for each statement within a trace, by OpenTelemetry's conventions for databases.

A statement outside any trace gets none: polling for work once a second would drown the rest.
Neither the text of a statement nor a parameter is recorded, only the operation and the table.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Final

from opentelemetry.trace import Span, SpanKind, Tracer, get_current_span, use_span

from factbook.observability.otel_spans import around, ending
from factbook.storage.observation import Around, Running

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


class StatementSpans:
    """Observer of a database that makes spans."""

    def __init__(self, tracer: Tracer, system: str) -> None:
        self._tracer = tracer
        self._system = {"db.system.name": system}

    @contextmanager
    def statement(self, sql: str, table: str = "") -> Iterator[None]:
        """A span around a statement. It is not made current: it has no children."""
        if not get_current_span().is_recording():
            yield
            return
        attributes = about(sql, table)
        with ending(self._begun(attributes["db.query.summary"], attributes)):
            yield

    @contextmanager
    def write(self) -> Iterator[Running]:
        """A span around a transaction, with one for its wait for a writer."""
        if not get_current_span().is_recording():
            yield nullcontext
            return
        span = self._begun("transaction", {"db.operation.name": "transaction"})
        with around(span):
            waiting = self._tracer.start_span("wait for a writer")
            try:
                yield lambda: self._running(span, waiting)
            finally:
                if waiting.is_recording():  # it was never its turn
                    waiting.end()

    @contextmanager
    def _running(self, span: Span, waiting: Span) -> Iterator[Around]:
        """Counts the statements of a transaction, and makes spans for the first of them."""
        if waiting.is_recording():
            waiting.end()
        count = 0

        def counted(sql: str, table: str) -> AbstractContextManager[None]:
            nonlocal count
            count += 1
            return nullcontext() if count > MOST_STATEMENTS else self.statement(sql, table)

        try:
            # The threads of writers know nothing of who asks.
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield counted
        finally:
            span.set_attribute("factbook.db.statements", count)

    def _begun(self, name: str, attributes: dict[str, str]) -> Span:
        """Start a span as a child of the open one."""
        given = self._system | attributes
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=given)

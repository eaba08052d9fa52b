"""Tracing with OpenTelemetry: makes spans, and wraps parts of the application in them."""

import asyncio
import logging
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from typing import Any, Final, NamedTuple

import structlog
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from factbook.asgi import ASGIApp, Message, Receive, Scope, Send
from factbook.errors import ConfigurationError
from factbook.observability.traces import Tracing
from factbook.storage import Database
from factbook.storage.database import Around, Running, observe_database
from factbook.telemetry.spans import NO_ATTRIBUTES, Attributes, Work
from factbook.tools import Context as ToolContext
from factbook.tools import Tool

_MILLISECOND: Final = 1_000_000
# Statement spans per transaction; a large push has thousands of statements.
MOST_STATEMENTS: Final = 100
_VERB = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE)\b")
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE)\s+([a-z_][a-z_0-9]*)")
# Machines request these all the time.
UNTRACED_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics", "/static/{name}"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_PROPAGATOR = TraceContextTextMapPropagator()
log = structlog.get_logger("factbook.traces")
CLOSE_SECONDS: Final = 3.0


class _Ids(NamedTuple):
    trace: int
    span: int


class WorkIds(RandomIdGenerator):
    """Generator of random ids; ids of a work's spans derive from its key, in every process."""

    def __init__(self) -> None:
        self._given: ContextVar[_Ids | None] = ContextVar("ids", default=None)

    def generate_trace_id(self) -> int:
        given = self._given.get()
        return super().generate_trace_id() if given is None else given.trace

    def generate_span_id(self) -> int:
        given = self._given.get()
        return super().generate_span_id() if given is None else given.span

    @contextmanager
    def of(self, work: Work) -> Iterator[None]:
        """Give spans made inside the block the ids of the work."""
        token = self._given.set(work_ids(work))
        try:
            yield
        finally:
            self._given.reset(token)


def work_ids(work: Work) -> _Ids:
    """Derive the ids of the work's trace and of the span that covers the whole work."""
    digest = sha256(f"{work.name} {work.key}".encode()).digest()
    return _Ids(int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]))


class OpenSpan:
    """An open span, in the form that the rooms below use."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._span.set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Mark the span as failed."""
        mark_failed(self._span, kind)


class SpanMaker:
    """Makes spans, implementing `factbook.telemetry.spans.Tracer`."""

    def __init__(self, provider: TracerProvider, ids: WorkIds) -> None:
        self._provider = provider
        self._ids = ids
        self.tracer = provider.get_tracer("factbook")

    @contextmanager
    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> Iterator[OpenSpan]:
        """Make a span around a block: a child of the open span, or in the trace of `within`."""
        context: Context | None = None
        if within is not None:
            context = set_span_in_context(NonRecordingSpan(self._span_context(within)), Context())
        span = self.tracer.start_span(
            name,
            context,
            SpanKind.CLIENT if outgoing else SpanKind.INTERNAL,
            attributes,
        )
        with enter_span(span):
            yield OpenSpan(span)

    def asked_for(self, work: Work) -> None:
        """Link the open span, if any, to the trace of the work."""
        get_current_span().add_link(self._span_context(work))

    def ended(
        self, work: Work, attributes: Attributes, began: int, end: int, failure: str | None
    ) -> None:
        """Record the span of the whole work."""
        with self._ids.of(work):
            span = self.tracer.start_span(
                work.name, Context(), attributes=attributes, start_time=began * _MILLISECOND
            )
        if failure is not None:
            mark_failed(span, failure)
        span.end(end * _MILLISECOND)

    def _span_context(self, work: Work) -> SpanContext:
        """Context of the work's root span, which is recorded when the work ends.

        The sampler decides from the trace id alone, so all processes agree on whether to record it.
        """
        trace, span = work_ids(work)
        result = self._provider.sampler.should_sample(None, trace, work.name)
        sampled = result.decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        return SpanContext(trace, span, is_remote=True, trace_flags=flags)


@contextmanager
def enter_span(span: Span) -> Iterator[None]:
    """Make the span current inside the block, and end it after; errors mark it as failed.

    Error messages aren't recorded, as they may contain text from a client.
    """
    with close_span(span), use_span(span, record_exception=False, set_status_on_exception=False):
        yield


@contextmanager
def close_span(span: Span) -> Iterator[None]:
    """End the span after the block, without making it current; errors mark it as failed."""
    try:
        yield
    except BaseException as error:
        mark_failed(span, type(error).__name__)
        raise
    finally:
        span.end()


def mark_failed(span: Span, kind: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def find_open_ids() -> Mapping[str, str]:
    """Ids of the open span, formatted for log lines."""
    found = get_current_span().get_span_context()
    if not found.is_valid:
        return {}
    return {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"}


@lru_cache(maxsize=1024)
def describe_statement(sql: str, table: str = "") -> dict[str, str]:
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
        """Make a span around a statement; it has no children, so it doesn't become current."""
        if not get_current_span().is_recording():
            yield
            return
        attributes = describe_statement(sql, table)
        with close_span(self._begun(attributes["db.query.summary"], attributes)):
            yield

    @contextmanager
    def write(self) -> Iterator[Running]:
        """Make a span around a transaction, and one around its wait for a writer."""
        if not get_current_span().is_recording():
            yield nullcontext
            return
        span = self._begun("transaction", {"db.operation.name": "transaction"})
        with enter_span(span):
            waiting = self._tracer.start_span("wait for a writer")
            try:
                yield lambda: self._running(span, waiting)
            finally:
                if waiting.is_recording():  # the write never got its turn
                    waiting.end()

    @contextmanager
    def _running(self, span: Span, waiting: Span) -> Iterator[Around]:
        """Count the statements of a transaction, and make spans for the first ones."""
        if waiting.is_recording():
            waiting.end()
        count = 0

        def counted(sql: str, table: str) -> AbstractContextManager[None]:
            nonlocal count
            count += 1
            return nullcontext() if count > MOST_STATEMENTS else self.statement(sql, table)

        try:
            # Writer threads don't share the caller's context.
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield counted
        finally:
            span.set_attribute("factbook.db.statements", count)

    def _begun(self, name: str, attributes: dict[str, str]) -> Span:
        given = self._system | attributes
        return self._tracer.start_span(name, kind=SpanKind.CLIENT, attributes=given)


class Traced:
    """Application of a route, with a span for each request; None stands for unknown routes."""

    def __init__(self, application: ASGIApp, route: str | None, tracer: Tracer) -> None:
        self._application = application
        self._route = "" if route is None else f" {route}"
        self._attributes = {} if route is None else {"http.route": route}
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        span = self._tracer.start_span(
            f"{'HTTP' if method == '_OTHER' else method}{self._route}",
            _parent_context(scope),
            SpanKind.SERVER,
            {"http.request.method": method, **self._attributes, **_describe_request(scope)},
        )

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                span.set_attribute("http.response.status_code", message["status"])
                if message["status"] >= 500:
                    mark_failed(span, str(message["status"]))
            await send(message)

        with enter_span(span):
            await self._application(scope, receive, sent)


def trace_tool(tool: Tool, maker: SpanMaker) -> Tool:
    """Wrap a tool so that each call with valid arguments has a span."""
    attributes: Attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": tool.name}

    async def run(arguments: Any, context: ToolContext) -> str:
        span = maker.tracer.start_span(f"tools/call {tool.name}", attributes=attributes)
        with enter_span(span):
            return await tool.run(arguments, context)

    return replace(tool, run=run)


def _parent_context(scope: Scope) -> Context | None:
    """Parent context from the client's `traceparent`; the client's other trace data is ignored.

    None without that header: a request of the service to itself is a child of the open span.
    """
    given = [text for name, text in scope["headers"] if name == b"traceparent"]
    if len(given) != 1:
        return None
    return _PROPAGATOR.extract({"traceparent": given[0].decode("latin-1")}) or None


def _describe_request(scope: Scope) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
    }
    if server := scope.get("server"):
        host, port = server
        found |= {"server.address": host} | ({"server.port": port} if port else {})
    return found


class OpenTelemetry(Tracing):
    """Wraps the parts of the application in spans."""

    def __init__(self) -> None:
        """Raises ConfigurationError for an unusable OpenTelemetry variable."""
        ids = WorkIds()
        self._provider = _build_provider(ids)
        self.tracer = self._maker = SpanMaker(self._provider, ids)

    def database(self, database: Database) -> Database:
        return observe_database(database, StatementSpans(self._maker.tracer, database.dialect))

    def endpoints(self, endpoints: Mapping[str, ASGIApp]) -> Mapping[str, ASGIApp]:
        return {
            path: one if path in UNTRACED_PATHS else Traced(one, path, self._maker.tracer)
            for path, one in endpoints.items()
        }

    def nowhere(self, application: ASGIApp) -> ASGIApp:
        return Traced(application, None, self._maker.tracer)

    def tools(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        return {name: trace_tool(tool, self._maker) for name, tool in tools.items()}

    def ids(self) -> Mapping[str, str]:
        return find_open_ids()

    async def close(self) -> None:
        """Send what is queued, for a few seconds at most."""
        # `shutdown` may wait much longer for a collector that doesn't answer.
        thread = threading.Thread(target=self._provider.shutdown, name="traces-close", daemon=True)
        thread.start()
        await asyncio.to_thread(thread.join, CLOSE_SECONDS)


def _build_provider(ids: IdGenerator) -> TracerProvider:
    """Build a tracer provider from OpenTelemetry's environment variables.

    Raises ConfigurationError for a value that OpenTelemetry does not accept.
    """
    # OpenTelemetry would log a line for every batch that can't be sent and every dropped span.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    about = Resource({"service.name": "factbook", "service.version": version("factbook")})
    try:
        made = TracerProvider(
            resource=Resource.create().merge(about).merge(OTELResourceDetector().detect()),
            id_generator=ids,
            shutdown_on_exit=False,
        )
        made.add_span_processor(BatchSpanProcessor(_ReportingExporter(OTLPSpanExporter())))
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"A variable OTEL_… cannot be used: {error}.") from None
    return made


class _ReportingExporter(SpanExporter):
    """Exporter that logs when spans start to be lost and when they arrive again, not each batch."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._losing = False
        self._lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            if self._losing:
                log.info("traces.sent", lost=self._lost)
            self._losing, self._lost = False, 0
        else:
            self._lost += len(spans)
            if not self._losing:
                log.warning("traces.lost", reason="the collector does not take them")
            self._losing = True
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

"""Tracing with OpenTelemetry: wraps the parts of the application when traces are on.

Spans are exported in batches, on a thread, so that an unreachable collector slows nothing.
"""

import asyncio
import logging
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from starlette.types import ASGIApp

from factbook.errors import ConfigurationError
from factbook.observability import otel_spans, traced_requests
from factbook.observability.statement_spans import StatementSpans
from factbook.observability.traces import Tracing
from factbook.storage import Database
from factbook.storage.observation import observed
from factbook.tools import Tool

log = structlog.get_logger("factbook.traces")

CLOSE_SECONDS: Final = 3.0


class OpenTelemetry(Tracing):
    """Wraps the parts of the application in spans."""

    def __init__(self) -> None:
        """Raises ConfigurationError for a variable of OpenTelemetry that cannot be used."""
        ids = otel_spans.WorkIds()
        self._provider = _provider(ids)
        self.tracer = self._maker = otel_spans.SpanMaker(self._provider, ids)

    def database(self, database: Database) -> Database:
        return observed(database, StatementSpans(self._maker.tracer, database.dialect))

    def endpoints(self, endpoints: Mapping[str, ASGIApp]) -> Mapping[str, ASGIApp]:
        return {
            path: one
            if path in traced_requests.UNTRACED
            else traced_requests.Traced(one, path, self._maker.tracer)
            for path, one in endpoints.items()
        }

    def nowhere(self, application: ASGIApp) -> ASGIApp:
        return traced_requests.Traced(application, None, self._maker.tracer)

    def tools(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        return {
            name: traced_requests.traced_tool(tool, self._maker) for name, tool in tools.items()
        }

    def ids(self) -> Mapping[str, str]:
        return otel_spans.open_ids()

    async def close(self) -> None:
        """Send what is queued, for a few seconds at most."""
        await asyncio.to_thread(_close, self._provider)


def _provider(ids: IdGenerator) -> TracerProvider:
    """Tracer provider that exports as OpenTelemetry's environment variables say.

    Raises ConfigurationError for a value that OpenTelemetry does not accept.
    """
    # It would write a line for every batch that cannot be sent, and every span that finds no room.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    about = Resource({"service.name": "factbook", "service.version": version("factbook")})
    try:
        made = TracerProvider(
            resource=Resource.create().merge(about).merge(OTELResourceDetector().detect()),
            id_generator=ids,
            shutdown_on_exit=False,
        )
        made.add_span_processor(BatchSpanProcessor(_Telling(OTLPSpanExporter())))
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"A variable OTEL_… cannot be used: {error}.") from None
    return made


def _close(made: TracerProvider) -> None:
    """Send what is queued, and return after a few seconds even if that failed."""
    # It may wait much longer for a collector that does not answer.
    thread = threading.Thread(target=made.shutdown, name="traces-close", daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)


class _Telling(SpanExporter):
    """Exporter that logs when spans begin to be lost and when they arrive again, not each batch."""

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

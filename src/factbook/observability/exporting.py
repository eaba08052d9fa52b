"""Sending spans: in batches, on a thread, so that a collector which is away disturbs nobody."""

import logging
import threading
from collections.abc import Sequence
from importlib.metadata import version
from typing import Final

import structlog
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator

from factbook.errors import ConfigurationError

log = structlog.get_logger("factbook.traces")

CLOSE_SECONDS: Final = 3.0


def provider(ids: IdGenerator) -> TracerProvider:
    """What makes spans and sends them as OpenTelemetry's environment variables say.

    Raises ConfigurationError for a value that OpenTelemetry does not take.
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


def close(made: TracerProvider) -> None:
    """Send what waits, and return after a few seconds whether it was sent or not."""
    # It may wait much longer for a collector that does not answer.
    thread = threading.Thread(target=made.shutdown, name="traces-close", daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)


class _Telling(SpanExporter):
    """Tells when spans begin to be lost, and when they arrive again; not of every batch."""

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

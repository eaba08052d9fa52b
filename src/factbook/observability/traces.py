"""Traces in the form of OpenTelemetry, sent to a collector over OTLP.

When traces are off, nothing of OpenTelemetry is imported and neither requests nor queries are
wrapped. Decision: docs/decisions/operations.md#traces.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from factbook.asgi import ASGIApp
from factbook.errors import ConfigurationError
from factbook.settings import Settings
from factbook.storage import Database
from factbook.telemetry.spans import NO_TRACER, Tracer

if TYPE_CHECKING:
    from factbook.tools import Tool


class Tracing:
    """Wraps the parts of the application in spans; this one leaves them as they are."""

    tracer: Tracer = NO_TRACER  # for the rooms below

    def database(self, database: Database) -> Database:
        """The same database, with a span for each statement within a trace."""
        return database

    def endpoints(self, endpoints: Mapping[str, ASGIApp]) -> Mapping[str, ASGIApp]:
        """The same applications by their paths, with a span for each request."""
        return endpoints

    def nowhere(self, application: ASGIApp) -> ASGIApp:
        """The same application of all other paths, with a span for each request."""
        return application

    def tools(self, tools: Mapping[str, "Tool"]) -> Mapping[str, "Tool"]:
        """The same tools, with a span for each call."""
        return tools

    def ids(self) -> Mapping[str, str]:
        """Ids of the open span for log lines: `trace_id`, `span_id`."""
        return {}

    async def close(self) -> None:
        """Send what is queued, for a few seconds at most."""


TRACING_OFF = Tracing()


def start_tracing(settings: Settings, environ: Mapping[str, str] = os.environ) -> Tracing:
    """Tracing as the settings and the environment variables of OpenTelemetry configure it.

    Raises ConfigurationError when OpenTelemetry is not installed or a value is not supported.
    """
    if not settings.traces or environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return TRACING_OFF
    exporter = environ.get("OTEL_TRACES_EXPORTER", "otlp").strip()
    if exporter == "none":
        return TRACING_OFF
    if exporter not in {"otlp", ""}:
        raise ConfigurationError(
            f"OTEL_TRACES_EXPORTER is {exporter}. Traces are sent over OTLP: otlp, or none."
        )
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if environ.get(name, "http/protobuf").strip() not in {"http/protobuf", ""}:
            raise ConfigurationError(
                f"{name} is {environ[name]}. Traces are sent as http/protobuf, which collectors "
                "take on port 4318."
            )
    try:
        from factbook.observability.opentelemetry import OpenTelemetry  # noqa: PLC0415 - may be missing
    except ImportError as error:
        raise ConfigurationError(
            f"traces is on, and {error.name} is not installed: pip install 'factbook[traces]'."
        ) from None
    return OpenTelemetry()

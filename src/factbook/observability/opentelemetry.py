"""Tracing with OpenTelemetry: wraps the parts of the application when traces are on.

Spans are exported in batches, on a thread, so that an unreachable collector slows nothing.
"""

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp

from factbook.observability import exporting, otel_spans, traced_requests
from factbook.observability.traced_database import TracedDatabase
from factbook.storage import Database
from factbook.telemetry.spans import Tracer
from factbook.tools import Tool


class OpenTelemetry:
    """Wraps the parts of the application in spans."""

    def __init__(self) -> None:
        """Raises ConfigurationError for a variable of OpenTelemetry that cannot be used."""
        ids = otel_spans.WorkIds()
        self._provider = exporting.provider(ids)
        self._maker = otel_spans.SpanMaker(self._provider, ids)

    @property
    def tracer(self) -> Tracer:
        """Makes the spans of the rooms below."""
        return self._maker

    def database(self, database: Database) -> Database:
        """The same database, with a span for each statement within a trace."""
        return TracedDatabase(database, self._maker.tracer)

    def endpoints(self, endpoints: Mapping[str, ASGIApp]) -> Mapping[str, ASGIApp]:
        """The same applications by their paths, with a span for each request."""
        return {
            path: one
            if path in traced_requests.UNTRACED
            else traced_requests.Traced(one, path, self._maker.tracer)
            for path, one in endpoints.items()
        }

    def nowhere(self, application: ASGIApp) -> ASGIApp:
        """The same application of all other paths, with a span for each request."""
        return traced_requests.Traced(application, None, self._maker.tracer)

    def tools(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """The same tools, with a span for each call."""
        return {
            name: traced_requests.traced_tool(tool, self._maker) for name, tool in tools.items()
        }

    def ids(self) -> Mapping[str, str]:
        """What a log line says of the span that is open: `trace_id`, `span_id`."""
        return otel_spans.open_ids()

    async def close(self) -> None:
        """Send what waits, for a few seconds at most."""
        await asyncio.to_thread(exporting.close, self._provider)

"""A span for each request and each tool call, by OpenTelemetry's conventions.

The path is not recorded: on some pages it is a secret, and on many it names an entity. The route is
recorded instead.
"""

from dataclasses import replace
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from factbook.observability.otel_spans import SpanMaker, around, failed
from factbook.telemetry.spans import Attributes
from factbook.tools import Context as ToolContext
from factbook.tools import Tool

# They are asked for all the time, by machines.
UNTRACED: Final = frozenset({"/healthz", "/readyz", "/metrics", "/static/{name}"})

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_PROPAGATOR = TraceContextTextMapPropagator()


class Traced:
    """Application of a route, with a span for each request; a route of None is an unknown one."""

    def __init__(self, application: ASGIApp, route: str | None, tracer: Tracer) -> None:
        self._application = application
        self._route = "" if route is None else f" {route}"
        self._attributes = {} if route is None else {"http.route": route}
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
        span = self._tracer.start_span(
            f"{'HTTP' if method == '_OTHER' else method}{self._route}",
            _asked_by(scope),
            SpanKind.SERVER,
            {"http.request.method": method, **self._attributes, **_about(scope)},
        )

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                _answered(span, message["status"])
            await send(message)

        with around(span):
            await self._application(scope, receive, sent)


def traced_tool(tool: Tool, maker: SpanMaker) -> Tool:
    """Wrap a tool in a span for each call whose arguments are valid."""
    attributes: Attributes = {"mcp.method.name": "tools/call", "gen_ai.tool.name": tool.name}

    async def run(arguments: Any, context: ToolContext) -> str:
        span = maker.tracer.start_span(f"tools/call {tool.name}", attributes=attributes)
        with around(span):
            return await tool.run(arguments, context)

    return replace(tool, run=run)


def _answered(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        failed(span, str(status))


def _asked_by(scope: Scope) -> Context | None:
    """Parent context from the client's `traceparent`; nothing else of a client's is kept.

    None when there is none: a request of the service to itself is a child of the open span.
    """
    given = [text for name, text in scope["headers"] if name == b"traceparent"]
    if len(given) != 1:
        return None
    return _PROPAGATOR.extract({"traceparent": given[0].decode("latin-1")}) or None


def _about(scope: Scope) -> dict[str, str | int]:
    found: dict[str, str | int] = {
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
    }
    if server := scope.get("server"):
        host, port = server
        found |= {"server.address": host} | ({"server.port": port} if port else {})
    return found

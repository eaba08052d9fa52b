"""A collector of OpenTelemetry on loopback: it takes traces over OTLP and decodes them.

Source: the OTLP specification 1.x, "OTLP/HTTP Request"; the messages are those of
opentelemetry-proto.
"""

import gzip
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.fakes.serving import served
from tests.waiting import LONG

_KINDS = {1: "internal", 2: "server", 3: "client"}
_ERROR = 2


class Span(NamedTuple):
    """A span that came; ids in hexadecimal, times in nanoseconds."""

    trace_id: str
    id: str
    parent_id: str
    name: str
    kind: str
    start: int
    end: int
    failed: bool
    message: str
    attributes: dict[str, str | int | bool]
    links: list[tuple[str, str]]
    events: int
    resource: dict[str, str | int | bool]


class Collector:
    """Keeps what comes, decoded and as it came; answers with `status`."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.spans: list[Span] = []
        self.bytes = b""
        self._came = threading.Condition()

    def take(self, body: bytes) -> Response:
        """Keep the spans of a request."""
        message = ExportTraceServiceRequest.FromString(body)
        with self._came:
            self.bytes += body
            self.spans += _spans(message)
            self._came.notify_all()
        answer = ExportTraceServiceResponse().SerializeToString()
        return Response(answer, self.status, media_type="application/x-protobuf")

    def wait_for(self, found: Callable[["Collector"], bool]) -> None:
        """Return when what came is as wanted."""
        with self._came:
            done = self._came.wait_for(lambda: found(self), timeout=LONG)
            assert done, [(span.name, span.attributes) for span in self.spans]

    def one(self, name: str) -> Span:
        """The only span with a name."""
        [found] = self.named(name)
        return found

    def named(self, name: str) -> list[Span]:
        """The spans with a name, in the order in which they began."""
        found = [span for span in self.spans if span.name == name]
        return sorted(found, key=lambda span: span.start)

    def below(self, span: Span) -> list[Span]:
        """The children of a span, in the order in which they began."""
        found = [one for one in self.spans if one.parent_id == span.id]
        return sorted(found, key=lambda one: one.start)


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens until the end of the block."""
    collector = Collector()

    async def receive(request: Request) -> Response:
        body = await request.body()
        if request.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return collector.take(body)

    with served(Starlette(routes=[Route("/v1/traces", receive, methods=["POST"])])) as url:
        collector.url = url
        yield collector


def _spans(message: ExportTraceServiceRequest) -> Iterator[Span]:
    for one in message.resource_spans:
        resource = _attributes(one.resource.attributes)
        for scope in one.scope_spans:
            for span in scope.spans:
                yield _span(span, resource)


def _span(span: SpanMessage, resource: dict[str, str | int | bool]) -> Span:
    return Span(
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.name,
        _KINDS[span.kind],
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        span.status.code == _ERROR,
        span.status.message,
        _attributes(span.attributes),
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        len(span.events),
        resource,
    )


def _attributes(found: Iterable[KeyValue]) -> dict[str, str | int | bool]:
    return {one.key: _value(one.value) for one in found}


def _value(value: AnyValue) -> str | int | bool:
    kind = value.WhichOneof("value")
    found: str | int | bool = getattr(value, str(kind))
    return found

"""OpenTelemetry implementation of `factbook.telemetry.spans`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import Final, NamedTuple

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
    use_span,
)

from factbook.telemetry.spans import NONE, Attributes, Work

_MILLISECOND: Final = 1_000_000


class _Ids(NamedTuple):
    trace: int
    span: int


class WorkIds(RandomIdGenerator):
    """Random ids, except for spans of a work, which derive from its key in every process."""

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
        token = self._given.set(ids_of(work))
        try:
            yield
        finally:
            self._given.reset(token)


def ids_of(work: Work) -> _Ids:
    """Ids of the work's trace and of the span that covers all of it."""
    digest = sha256(f"{work.name} {work.key}".encode()).digest()
    return _Ids(int.from_bytes(digest[:16]), int.from_bytes(digest[16:24]))


class OpenSpan:
    """An open span as the rooms below see it."""

    __slots__ = ("_span",)

    def __init__(self, span: Span) -> None:
        self._span = span

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._span.set_attributes(attributes)

    def fail(self, kind: str) -> None:
        """Mark the span as failed."""
        failed(self._span, kind)


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
        attributes: Attributes = NONE,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> Iterator[OpenSpan]:
        """A span around a block, a child of the open one, or within the trace of the work."""
        span = self.tracer.start_span(
            name,
            None if within is None else self._context(within),
            SpanKind.CLIENT if outgoing else SpanKind.INTERNAL,
            attributes,
        )
        with around(span):
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
            failed(span, failure)
        span.end(end * _MILLISECOND)

    def _context(self, work: Work) -> Context:
        return set_span_in_context(NonRecordingSpan(self._span_context(work)), Context())

    def _span_context(self, work: Work) -> SpanContext:
        """Context of the work's root span, which is recorded when the work is over.

        The sampler decides from the trace id alone, so every process agrees on whether it is
        recorded.
        """
        trace, span = ids_of(work)
        result = self._provider.sampler.should_sample(None, trace, work.name)
        sampled = result.decision is Decision.RECORD_AND_SAMPLE
        flags = TraceFlags(TraceFlags.SAMPLED if sampled else TraceFlags.DEFAULT)
        return SpanContext(trace, span, is_remote=True, trace_flags=flags)


@contextmanager
def around(span: Span) -> Iterator[None]:
    """Make the span the current one inside the block and end it with it; errors mark it failed.

    Not even the message of an error is recorded: it may contain text from a client.
    """
    with ending(span), use_span(span, record_exception=False, set_status_on_exception=False):
        yield


@contextmanager
def ending(span: Span) -> Iterator[None]:
    """End the span with the block without making it the current one; errors mark it failed."""
    try:
        yield
    except BaseException as error:
        failed(span, type(error).__name__)
        raise
    finally:
        span.end()


def failed(span: Span, kind: str) -> None:
    """Mark a span as failed."""
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def open_ids() -> Mapping[str, str]:
    """Ids of the open span as log lines show them."""
    found = get_current_span().get_span_context()
    if not found.is_valid:
        return {}
    return {"trace_id": f"{found.trace_id:032x}", "span_id": f"{found.span_id:016x}"}

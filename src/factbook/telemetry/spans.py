"""Trace spans for rooms that don't depend on how traces are made and sent.

A span covers a piece of work. Its name and attributes are this service's own words and numbers, and
never a secret, text from a client, or the name of an entity or a person.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

Value = str | int | float | bool
Attributes = Mapping[str, Value]

NO_ATTRIBUTES: Final[Attributes] = MappingProxyType({})


class Work(NamedTuple):
    """Work shared by many processes, such as a run; its spans form one trace across them.

    `key` is unique to the work and the same in all processes.
    """

    name: str
    key: str


class Span(Protocol):
    """An open span."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed; `kind` is a word, never a message."""


class Tracer(Protocol):
    """Makes spans."""

    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> AbstractContextManager[Span]:
        """Make a span around a block: a child of the open span, or in the trace of `within`.

        An exception from the block marks the span as failed. `outgoing` marks a call to another
        host.
        """

    def asked_for(self, work: Work) -> None:
        """Link the open span, if any, to the trace of the work."""

    def ended(
        self, work: Work, attributes: Attributes, began: int, end: int, failure: str | None
    ) -> None:
        """Record the span of the whole work; times in milliseconds since the epoch."""


class _NoSpan:
    def note(self, attributes: Attributes) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass


class NoTracer:
    """A tracer that makes no spans."""

    def __init__(self) -> None:
        self._none = nullcontext(_NoSpan())

    def span(
        self,
        name: str,
        attributes: Attributes = NO_ATTRIBUTES,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> AbstractContextManager[Span]:
        """Run the block without a span."""
        return self._none

    def asked_for(self, work: Work) -> None:
        """Do nothing."""

    def ended(
        self, work: Work, attributes: Attributes, began: int, end: int, failure: str | None
    ) -> None:
        """Do nothing."""


NO_TRACER: Final = NoTracer()

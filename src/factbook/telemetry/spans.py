"""Spans of traces, for rooms that do not know how traces are made and sent.

A span covers a piece of work. Its name and attributes are words and numbers of this service: never
a secret, a text that somebody sent, or the name of an entity or a person.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

Value = str | int | float | bool
Attributes = Mapping[str, Value]

NONE: Final[Attributes] = MappingProxyType({})


class Work(NamedTuple):
    """Work that many processes share, such as a run; its spans are one trace, whoever makes them.

    `key` is the same in all of them, and nowhere else.
    """

    name: str
    key: str


class Span(Protocol):
    """A span that is open."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str) -> None:
        """Say that what the span covers went wrong; `kind` is a word, never a message."""


class Tracer(Protocol):
    """Makes spans."""

    def span(
        self,
        name: str,
        attributes: Attributes = NONE,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> AbstractContextManager[Span]:
        """A span around a block, below the one that is open, or within the trace of the work.

        What the block raises makes the span a failed one. `outgoing`: it is a call to another host.
        """

    def asked_for(self, work: Work) -> None:
        """Link the open span, if there is one, to the trace of the work."""

    def ended(
        self, work: Work, attributes: Attributes, began: int, end: int, failure: str | None
    ) -> None:
        """The span of the whole work; times in milliseconds since the epoch."""


class _NoSpan:
    def note(self, attributes: Attributes) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass


class NoTracer:
    """Makes none."""

    def __init__(self) -> None:
        self._none = nullcontext(_NoSpan())

    def span(
        self,
        name: str,
        attributes: Attributes = NONE,
        *,
        outgoing: bool = False,
        within: Work | None = None,
    ) -> AbstractContextManager[Span]:
        """Nothing around the block."""
        return self._none

    def asked_for(self, work: Work) -> None:
        """Nothing to link."""

    def ended(
        self, work: Work, attributes: Attributes, began: int, end: int, failure: str | None
    ) -> None:
        """Nothing to tell."""


NO_TRACER: Final = NoTracer()

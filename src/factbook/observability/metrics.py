"""Counts and durations of this process: its requests, its event loop and its use of the database.

They are plain numbers, counted by the event loop alone, without names of entities, people or
tokens; `scrape` renders them for Prometheus.
"""

import asyncio
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Handlers import the metrics, but need no database observer.
    from factbook.storage.database import Running

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
_BOUNDS: Final = (*(str(bound) for bound in _SECONDS), "+Inf")
_LOOK_SECONDS: Final = 0.5
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Durations:
    """Histogram of durations."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one duration."""
        self.buckets[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """List each bound with the number of durations up to it."""
        count, found = 0, []
        for bound, inside in zip(_BOUNDS, self.buckets, strict=True):
            count += inside
            found.append((bound, float(count)))
        return found


class _Write:
    """A requested write; `begun` is the start of its transaction."""

    __slots__ = ("asked", "begun")

    def __init__(self) -> None:
        self.asked = time.perf_counter()
        self.begun: float | None = None

    def running(self) -> AbstractContextManager[None]:
        """Note the start of the transaction."""
        # A transaction that is retried doesn't wait again.
        self.begun = self.begun or time.perf_counter()
        return nullcontext()


class Load:
    """Database observer that measures waiting and running times in this process."""

    statement: None = None  # only writes are measured

    def __init__(self) -> None:
        self.lag = Durations()
        self.waits = Durations()
        self.writes = Durations()
        self.open: set[_Write] = set()

    @property
    def waiting(self) -> int:
        """Number of writes that wait for their turn."""
        return sum(one.begun is None for one in self.open)

    @contextmanager
    def write(self) -> Iterator["Running"]:
        """Measure a write from the moment it is requested."""
        this = _Write()
        self.open.add(this)
        try:
            yield this.running
        finally:
            self.open.discard(this)
            if this.begun is not None:
                self.waits.add(this.begun - this.asked)
                self.writes.add(time.perf_counter() - this.begun)

    async def watch(self) -> None:
        """Measure the lag of the event loop until cancelled."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_LOOK_SECONDS)
            self.lag.add(max(0.0, time.perf_counter() - before - _LOOK_SECONDS))


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.requests: dict[tuple[str, str, int], Durations] = {}  # by route, method and status
        self.calls: Counter[tuple[str, str]] = Counter()  # by tool and outcome
        self.entities: Counter[str] = Counter()  # by kind of change
        self.refusals_left_out = 0
        self.messages: Counter[str] = Counter()  # by outcome
        self.shed_requests: Counter[str] = Counter()  # by reason
        self.cut_off_answers: Counter[str] = Counter()  # by reason
        self.load = Load()

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        durations = self.requests.get((route, method, status))
        if durations is None:
            # Clients can invent methods, and each would take memory.
            key = (route, method if method in _METHODS else "other", status)
            durations = self.requests.setdefault(key, Durations())
        durations.add(seconds)

    def called(self, tool: str, outcome: str) -> None:
        """Count one tool call."""
        self.calls[tool, outcome] += 1

    def pushed(self, changes: dict[str, int]) -> None:
        """Count the changes of one push."""
        self.entities.update(changes)

    def left_out_of_audit(self, records: int) -> None:
        """Count refused calls that the audit does not record."""
        self.refusals_left_out += records

    def shed(self, reason: str) -> None:
        """Count a request refused because of overload."""
        self.shed_requests[reason] += 1

    def incomplete(self, reason: str) -> None:
        """Count an answer that ended before it was complete."""
        self.cut_off_answers[reason] += 1

    def posted(self, outcome: str) -> None:
        """Count one webhook message."""
        self.messages[outcome] += 1

"""How busy this process is: its event loop, and the database as this process uses it."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from prometheus_client.core import GaugeMetricFamily, Metric

from factbook.observability.durations import Durations
from factbook.storage import Database, Transaction

T = TypeVar("T")

_LOOK_SECONDS: Final = 0.5


class _Write:
    """A write that was asked for; `begun` is when its turn came."""

    __slots__ = ("asked", "begun")

    def __init__(self) -> None:
        self.asked = time.perf_counter()
        self.begun: float | None = None


class Load:
    """Counts how long what this process does has to wait, and takes."""

    def __init__(self) -> None:
        self._lag = Durations()
        self._waits = Durations()
        self._writes = Durations()
        self._open: set[_Write] = set()

    async def watch(self) -> None:
        """Measure, until cancelled, how late the event loop comes to what is due."""
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_LOOK_SECONDS)
            self._lag.add(max(0.0, time.perf_counter() - before - _LOOK_SECONDS))

    async def write(self, database: Database, function: Callable[[Transaction], T]) -> T:
        """What `function` returns, run in a transaction that is counted."""
        this = _Write()

        def work(transaction: Transaction) -> T:
            # One that is run again does not wait again.
            this.begun = this.begun or time.perf_counter()
            return function(transaction)

        self._open.add(this)
        try:
            return await database.write(work)
        finally:
            self._open.discard(this)
            if this.begun is not None:
                self._waits.add(this.begun - this.asked)
                self._writes.add(time.perf_counter() - this.begun)

    def metrics(self, database: Database) -> Iterator[Metric]:
        """What was counted, and how busy the database's connections for reads are now."""
        yield self._lag.family(
            "factbook_event_loop_lag_seconds",
            "Seconds by which the event loop came late to what was due, looked at twice a second.",
        )
        yield self._waits.family(
            "factbook_database_write_wait_seconds", "Seconds that writes waited for their turn."
        )
        yield self._writes.family(
            "factbook_database_write_seconds", "Seconds that writes took, from their turn on."
        )
        waiting = sum(one.begun is None for one in self._open)
        yield GaugeMetricFamily(
            "factbook_database_writes_waiting", "Writes that wait for their turn.", value=waiting
        )
        yield GaugeMetricFamily(
            "factbook_database_writable",
            "0 since a write could not be done (disk full, read-only, locked), else 1.",
            value=float(database.trouble() is None),
        )
        reads = database.reads()
        connections = GaugeMetricFamily(
            "factbook_database_read_connections",
            "Connections for reads that may take a while, by what they do.",
            labels=("state",),
        )
        connections.add_metric(("taken",), reads.taken)
        connections.add_metric(("free",), reads.most - reads.taken)
        yield connections
        yield GaugeMetricFamily(
            "factbook_database_reads_waiting",
            "Reads that wait for a connection.",
            value=reads.waiting,
        )


class CountedDatabase:
    """The database inside; its writes are counted, all else is as direct as before."""

    def __init__(self, inner: Database, load: Load) -> None:
        self._inner = inner
        self._load = load
        self.dialect, self.remembered = inner.dialect, inner.remembered
        self.one, self.all, self.search = inner.one, inner.all, inner.search
        self.find, self.refresh = inner.find, inner.refresh
        self.pages, self.text, self.moment = inner.pages, inner.text, inner.moment
        self.apart, self.check, self.trouble = inner.apart, inner.check, inner.trouble
        self.reads, self.close = inner.reads, inner.close

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """What `function` returns, run in a transaction of its own on a thread for writing."""
        return await self._load.write(self._inner, function)

"""Execution of runs: begins those that are due, and processes waiting batches."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import ClassVar

import structlog

from factbook import shutdown
from factbook.clock import SECOND, Clock
from factbook.collection import run_start
from factbook.collection.attempts import Attempts, Take, tell
from factbook.collection.run_start import UnderWayError
from factbook.datasources.clients import Clients, Connect
from factbook.errors import UnavailableError
from factbook.integrations.integration import Integration
from factbook.scheduling import housekeeping, run_queue, runs, schedule
from factbook.scheduling.run_queue import Batch, Lane
from factbook.storage import Database, Transaction
from factbook.telemetry.spans import NO_TRACER, Tracer

log = structlog.get_logger("factbook.collecting")

# What is collected beside the integrations that were configured, by the id of the source.
Further = Callable[[], Awaitable[Mapping[str, Integration]]]

# Runs that end, and processes that have begun some, may change what is due by then.
_AGAIN = 5 * SECOND
# Lanes that one process works on at a time, whatever their queues allow.
SLOTS = 8
POLL_SECONDS = 1.0
_STORE_SECONDS = 3.0  # at the end, for what has been brought


class Collector:
    """The loop that does the runs of these integrations; of all processes, one at a time has it."""

    # A lane goes on for so many seconds while others may be waiting for its slot.
    TURN: ClassVar = 1.0

    def __init__(
        self,
        database: Database,
        integrations: Sequence[Integration],
        connect: Connect,
        clock: Clock,
        holder: str,
        *,
        slots: int = SLOTS,
        further: Further | None = None,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        self._database = database
        self._configured = {one.source.id: one for one in integrations}
        self._integrations: Mapping[str, Integration] = self._configured
        self._further = further
        self._clock = clock
        self._holder = holder
        self._slots = slots
        self._tracer = tracer
        self._clients = Clients(connect)
        for one in integrations:
            self._clients.of(one)  # whose address may be wrong, which is told before any work
        self._attempts = Attempts(database, self._clients, clock, tracer)
        self._lanes: dict[asyncio.Task[None], Lane] = {}
        self._serving = 0
        self._served_at: dict[Lane, float] = {}
        self._suspects = asyncio.Lock()
        self._held: dict[asyncio.Task[Batch | None], Batch] = {}
        self._looked_at = 0
        self._further_now: Mapping[str, Integration] | None = None
        self._nothing_before = 0
        self._done = asyncio.Event()

    async def tick(self) -> None:
        """Begin due runs, then `work`."""
        now = self._clock()
        if not 0 <= now - self._looked_at < SECOND:
            self._looked_at = now
            if await self._look() or not 0 < self._nothing_before - now <= _AGAIN:
                async for _ in self._begun():
                    await self.take()  # to plan the next takes a while
        await self.work()

    async def work(self) -> None:
        """Do one round: begin lanes in which something waits, and wait briefly for one to end."""
        self._done.clear()
        await self.take()
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await self._done.wait()

    async def drain(self) -> None:
        """Begin due runs, and work until no batch can be processed now."""
        await self.begin_due()
        while await self.take() or self._lanes:
            await asyncio.wait(self._lanes, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Store finished work, leave the rest to others at once, and close connections."""
        try:
            await self.let_go()
        finally:
            await self._clients.aclose()

    async def let_go(self) -> None:
        """Store finished work, and leave the rest to others at once."""
        has_begun = self._serving > 0
        await shutdown.cancel(list(self._lanes))
        held = dict(self._held)
        await shutdown.cancel(task for task in held if held[task] not in self._attempts.finishing)
        if held:
            await asyncio.wait(held, timeout=_STORE_SECONDS)
        if has_begun:
            # Without it each counts an attempt.
            with suppress(UnavailableError, TimeoutError):
                async with asyncio.timeout(shutdown.RELEASE_SECONDS):
                    await self._database.write(
                        lambda tx: run_queue.release_batches(tx, self._holder)
                    )

    async def stand_by(self) -> None:
        """Leave everything to the process that collects."""
        await self.let_go()
        await asyncio.sleep(POLL_SECONDS)

    async def begin_due(self) -> int:
        """Begin a run of every source that is due by its cadence; returns the number of runs."""
        return sum([begun async for begun in self._begun()])

    async def _begun(self) -> AsyncIterator[bool]:
        """Begin one source after another; yields true for each run made."""
        now = self._clock()
        await self._look()
        cadences = {
            id_: one.source.cadence
            for id_, one in self._integrations.items()
            if one.source.cadence and not one.source.draft
        }
        await housekeeping.repair_clock_times(self._database, now)
        last, running = await runs.fetch_starts(self._database, now + housekeeping.LARGEST_LEAD)
        waiting = {id_: cadences[id_] for id_ in cadences.keys() - running}
        nexts = schedule.find_next_starts(waiting, last)
        self._nothing_before = min([now + _AGAIN, *nexts.values()])
        for id_ in schedule.list_due(nexts, now):
            yield await self._begin(self._integrations[id_], last.get(id_), self._clock())

    async def _look(self) -> bool:
        """Reload the sources to collect; returns true if users have changed them."""
        further = None if self._further is None else await self._further()
        if further is None or further is self._further_now:
            return False
        self._further_now = further
        self._integrations = {**further, **self._configured}
        return True

    async def _begin(self, integration: Integration, last: int | None, now: int) -> bool:
        """Begin a run, unless somebody else has."""
        since = 0 if last is None else last + 1
        with (
            self._tracer.span("plan", {"factbook.source.id": integration.source.id}),
            suppress(UnderWayError),
        ):
            begun = await run_start.begin(
                self._database, integration, now, since=since, tracer=self._tracer
            )
            if begun.ended is not None:
                tell(begun.ended, self._tracer)
            return True
        return False

    async def take(self) -> int:
        """Begin lanes in which something waits, up to the capacity; returns their number."""
        free = self._slots - len(self._lanes)
        if free <= 0:
            return 0
        ready = await run_queue.list_ready_lanes(self._database, self._integrations, self._clock())
        new = [lane for lane in ready if lane not in self._lanes.values()]
        # Those that have waited longest.
        new.sort(key=lambda lane: self._served_at.get(lane, 0.0))
        for lane in new[:free]:
            task = asyncio.create_task(self._serve(lane))
            self._lanes[task] = lane
            task.add_done_callback(self._end)
        return len(new[:free])

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._served_at[self._lanes.pop(task)] = time.monotonic()
        self._done.set()

    async def _serve(self, lane: Lane) -> None:
        """Work on the batches of a lane until none is ready, or others wait for their turn."""
        self._serving += 1
        end = time.monotonic() + self.TURN
        try:
            while await self._stretch(lane, end):
                if not self._may_go_on(end):
                    break
        except UnavailableError as error:
            log.warning("lane.unavailable", cause=error.cause)
        finally:
            self._serving -= 1

    async def _stretch(self, lane: Lane, end: float) -> bool:
        """Work on batches of the lane that follow one another; returns false if there is none.

        Of suspects one is begun at a time: of several, one may be what kills the process.
        """
        if batch := await self._begin_next(lane, suspects=False):
            while batch and self._goes_on():
                batch = await self._attempt(batch, partial(self._following, lane, end))
            return True
        async with self._suspects:
            batch = await self._begin_next(lane, suspects=True)
            if batch:
                await self._attempt(batch, lambda: _nothing)
        return batch is not None

    async def _begin_next(self, lane: Lane, *, suspects: bool) -> Batch | None:
        if not self._goes_on():
            return None
        return await self._database.write(self._take(lane, suspects=suspects))

    def _following(self, lane: Lane, end: float) -> Take:
        """Function that begins the next batch of the lane, with the end of the one before."""
        if not self._may_go_on(end):
            return _nothing
        return self._take(lane, suspects=False, alone=False)

    def _take(self, lane: Lane, *, suspects: bool, alone: bool = True) -> Take:
        return partial(
            run_queue.take_batch,
            holder=self._holder,
            source_ids=list(self._integrations),
            lane=lane,
            now=self._clock(),
            suspects=suspects,
            alone=alone,
        )

    async def _attempt(self, batch: Batch, following: Callable[[], Take]) -> Batch | None:
        integration = self._integrations[batch.source_id]
        task = asyncio.create_task(self._attempts.make(batch, integration, following))
        self._held[task] = batch
        task.add_done_callback(self._held.pop)
        await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    def _may_go_on(self, end: float) -> bool:
        """Return true if a lane whose turn is until then may have another batch."""
        return self._goes_on() and (self._serving < self._slots or time.monotonic() <= end)

    def _goes_on(self) -> bool:
        """Return true if this process may begin another batch."""
        return True


def _nothing(transaction: Transaction) -> None:
    """Begin no batch."""

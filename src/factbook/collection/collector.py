"""Execution of runs: begins those that are due, and processes waiting batches."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

import structlog

from factbook import shutdown
from factbook.clock import SECOND, Clock
from factbook.collection import batches, run_start
from factbook.collection.run_start import UnderWayError
from factbook.datasources.clients import Clients, Connect
from factbook.datasources.memory import DatabaseMemory
from factbook.errors import UnavailableError
from factbook.integrations.integration import Integration
from factbook.outbound import AnswerCaches, HttpClient
from factbook.scheduling import clock_repair, run_queue, runs, schedule
from factbook.scheduling.run_queue import Batch, BatchFigures, LostBatchError
from factbook.scheduling.runs import EndedRun
from factbook.storage import Database
from factbook.telemetry.spans import NO_TRACER, Attributes, Span, Tracer

log = structlog.get_logger("factbook.collecting")

# What is collected beside the integrations that were configured, by the id of the source.
Further = Callable[[], Awaitable[Mapping[str, Integration]]]

# Runs that end, and processes that have begun some, may change what is due by then.
_AGAIN = 5 * SECOND
# Batches that one process works on at a time, whatever their queues allow.
SLOTS = 8
_POLL_SECONDS = 1.0
_STORE_SECONDS = 5.0  # at the end, for what has been brought
# After an attempt that failed unexpectedly.
_REST = 40 * SECOND


class Collector:
    """The loop that does the runs of these integrations; of all processes, one at a time has it."""

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
        self._counted: WeakKeyDictionary[HttpClient, int] = WeakKeyDictionary()
        self._caches = AnswerCaches()
        self._held: dict[asyncio.Task[None], Batch] = {}
        self._finishing: set[Batch] = set()
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
        """Do one round: take waiting batches, and wait briefly for one to end."""
        self._done.clear()
        await self.take()
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await self._done.wait()

    async def drain(self) -> None:
        """Begin due runs, and work until no batch can be processed now."""
        await self.begin_due()
        while await self.take() or self._held:
            await asyncio.wait(self._held, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Store finished work, leave the rest to others at once, and close connections."""
        try:
            await self.let_go()
        finally:
            await self._clients.aclose()

    async def let_go(self) -> None:
        """Store finished work, and leave the rest to others at once."""
        held = dict(self._held)
        await shutdown.cancel(task for task in held if held[task] not in self._finishing)
        if held:
            await asyncio.wait(held, timeout=_STORE_SECONDS)
            # Without it each counts an attempt.
            with suppress(UnavailableError):
                await self._database.write(lambda tx: run_queue.release(tx, self._holder))

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
        await clock_repair.repair(self._database, now)
        last, running = await runs.starts(self._database, now + clock_repair.AHEAD)
        waiting = {id_: cadences[id_] for id_ in cadences.keys() - running}
        nexts = schedule.nexts(waiting, last)
        self._nothing_before = min([now + _AGAIN, *nexts.values()])
        for id_ in schedule.due(nexts, now):
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
                _tell(begun.ended, self._tracer)
            return True
        return False

    async def take(self) -> int:
        """Begin to process waiting batches, up to the capacity; returns their number."""
        now, free = self._clock(), self._slots - len(self._held)
        if free <= 0 or not await run_queue.anything(self._database, len(self._held), now):
            return 0
        ids, held = list(self._integrations), list(self._held.values())
        found = await self._database.write(
            lambda tx: run_queue.take(tx, self._holder, ids, held, free, now)
        )
        for batch in found:
            task = asyncio.create_task(self._attempt(batch, self._integrations[batch.source_id]))
            self._held[task] = batch
            task.add_done_callback(self._end)
        return len(found)

    def _end(self, task: "asyncio.Task[None]") -> None:
        self._finishing.discard(self._held.pop(task))
        self._done.set()

    async def _attempt(self, batch: Batch, integration: Integration) -> None:
        """Work on a batch; one whose result cannot be stored is begun again later."""
        try:
            await self._traced(batch, integration)
            return
        except UnavailableError as error:
            log.warning("batch.unavailable", source=batch.source_id, cause=error.cause)
        except Exception as error:
            log.error("batch.failed", source=batch.source_id, exc_info=error)
        with suppress(UnavailableError):
            until = self._clock() + _REST
            await self._database.write(lambda tx: run_queue.postpone(tx, batch, until))

    async def _traced(self, batch: Batch, integration: Integration) -> None:
        trace = run_start.trace_of(batch.source_id, batch.run_id, batch.deadline)
        about: Attributes = {
            "factbook.source.id": batch.source_id,
            "factbook.run.id": batch.run_id,
            "factbook.attempt": batch.attempts,
        }
        with self._tracer.span("batch", about, within=trace) as span:
            await self._work(batch, integration, span)

    async def _work(self, batch: Batch, integration: Integration, span: Span) -> None:
        client, now = self._clients.of(integration), self._clock()
        memory = DatabaseMemory(self._database, batch.source_id, now)
        cache = self._caches.open(batches.key(batch), now)
        result = await batches.collect(integration, batch, client, memory, now, cache)
        figures = self._figures(client, result)
        span.note({"factbook.run.covered": result.covered, "factbook.run.failed": result.failed})
        finish = partial(
            batches.finish,
            integration=integration,
            batch=batch,
            result=result,
            figures=figures,
            memory=memory,
            expires_at=client.health.credential_expires_at,
            now=self._clock(),
        )
        self._finishing.add(batch)
        try:
            ended = await self._database.write(finish)
        except LostBatchError:
            log.warning("batch.lost", source=batch.source_id)
            self._caches.close(batches.key(batch))
            return
        if not result.left:
            self._caches.close(batches.key(batch))
        if ended is not None:
            _tell(ended, self._tracer)

    def _figures(self, client: HttpClient, result: batches.Result) -> BatchFigures:
        health = client.health
        # Of calls made for several batches at once, each is counted with the first to end.
        calls = health.calls - self._counted.get(client, 0)
        self._counted[client] = health.calls
        left = min((one.remaining for one in health.allowances.values()), default=None)
        entities = (result.covered, result.failed, result.incomplete, result.skipped)
        return BatchFigures(*entities, calls, left, result.gaps)


def _tell(ended: EndedRun, tracer: Tracer) -> None:
    """Report the end of a run, and a change of its source to down or up."""
    run, change = ended
    source = {"source": run.source_id, "covered": run.covered, "failed": run.failed}
    log.info("run.ended", **source, skipped=run.skipped, calls=run.calls, state=run.state)
    if change == "down":
        log.error("source.down", **source, reason=run.error)
    elif change == "up":
        log.info("source.up", **source)
    figures: Attributes = {
        "factbook.source.id": run.source_id,
        "factbook.run.id": run.id,
        "factbook.run.reason": run.reason,
        "factbook.run.covered": run.covered,
        "factbook.run.failed": run.failed,
        "factbook.run.skipped": run.skipped,
        "factbook.run.calls": run.calls,
    }
    # What follows the first word of an error says more than a trace should.
    failure = (run.error or "failed").partition(":")[0] if run.state == "failed" else None
    trace = run_start.trace_of(run.source_id, run.id, run.deadline)
    tracer.ended(trace, figures, run.started_at, run.finished_at or run.started_at, failure)

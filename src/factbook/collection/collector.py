"""Execution of runs: begins due runs, then collects, stores and retries their batches."""

import asyncio
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from functools import partial
from typing import ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import structlog

from factbook import shutdown
from factbook.catalog import filters
from factbook.catalog.store import stored_entities
from factbook.clock import MINUTE, SECOND, Clock
from factbook.collection import run_start
from factbook.collection.run_start import Targets, UnderWayError, batch_targets, batch_work
from factbook.datasources.clients import Clients, Connect, DatabaseMemory
from factbook.errors import FactbookError, UnavailableError
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import Observation
from factbook.integrations.integration import Collected, Integration
from factbook.outbound.cache import AnswerCache, AnswerCaches, Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome
from factbook.scheduling import housekeeping, run_queue, runs, schedule
from factbook.scheduling.run_queue import Batch, BatchFigures, Lane, LostBatchError
from factbook.scheduling.runs import EndedRun, GivenUpBatch, RunGap
from factbook.storage import Database, Transaction
from factbook.telemetry.spans import NO_TRACER, Attributes, Span, Tracer

log = structlog.get_logger("factbook.collecting")
# A batch begun this often without an end is abandoned.
MOST_ATTEMPTS = 6
# Few, because the client itself retries calls.
_MOST_FAILURES = 3
# A batch of 20 is down to single targets at its third attempt, a batch of 10,000 at its sixth.
_MOST_PARTS = 8
_LONGEST_BATCH = 5 * MINUTE
_FIRST_PAUSE = 30 * SECOND
_LONGEST_PAUSE = 10 * MINUTE
# Begins the next batch, if any, in the transaction that ends the previous one.
Take = Callable[[Transaction], Batch | None]
Finish = Callable[[Transaction], EndedRun | None]
# Pause after an attempt that failed unexpectedly.
_REST_AFTER_FAILURE = 40 * SECOND
# Integrations collected in addition to configured ones, by source id.
Further = Callable[[], Awaitable[Mapping[str, Integration]]]
# By then, ended runs or runs begun by other processes may change the due sources.
_RETRY_PAUSE = 5 * SECOND
# Lanes that one process works on at a time, whatever their queues allow.
SLOTS = 8
POLL_SECONDS = 1.0
_STORE_SECONDS = 3.0  # at shutdown, to store collected results


class Result(NamedTuple):
    """Result of a batch: facts to store, remaining work with its time and attempts, and figures.

    `covered`, `failed`, `incomplete` and `skipped` count entities; `gaps` are the missing facts.
    """

    observations: list[Observation]
    covered: int
    failed: int
    incomplete: int
    skipped: int
    gaps: Counter[RunGap]
    left: list[str]
    next_at: int
    pause_until: int | None = None
    attempts: int | None = None


async def collect_batch(
    integration: Integration,
    batch: Batch,
    client: HttpClient,
    memory: Memory,
    now: int,
    cache: AnswerCache,
) -> Result:
    """Collect the targets of a batch. Raises nothing: errors are part of the result.

    Calls with responses cached by an earlier attempt are not repeated, until an attempt fails
    without a failed call: then the responses themselves were unusable.
    """
    entities = batch_targets(batch.work)
    targets = [target for target in entities if entities[target] or len(cache)]
    if reason := _reason_to_give_up(batch, now):
        return _batch_result(dict.fromkeys(entities, _failed_answer(reason)), entities)
    answered, failures = len(cache), cache.failures
    seconds = min(_LONGEST_BATCH, batch.deadline - now) / SECOND
    try:
        async with asyncio.timeout(seconds):
            found = await integration.collect(targets, client.caching(cache), memory, cache.now)
    except TimeoutError:
        reason = Missing(Outcome.TRANSIENT, f"no answer within {seconds:.0f} s")
        return _settle_answers(
            batch, dict.fromkeys(entities, _failed_answer(reason)), entities, client, now
        )
    except FactbookError as error:
        reason = Missing(Outcome.TRANSIENT, error.message)
        return _settle_answers(
            batch, dict.fromkeys(entities, _failed_answer(reason)), entities, client, now
        )
    except Exception as error:
        if batch.attempts == 1:
            log.error("collection.failed", source=integration.source.id, exc_info=error)
        return _split_batch(batch, entities, client, now)
    unanswered = _failed_answer(Missing(Outcome.TRANSIENT, "the answer leaves it out"))
    answers = {target: found.get(target, unanswered) for target in targets}
    advanced = 0 < answered < len(cache)
    if cache.failures == failures:
        cache.clear()
    return _settle_answers(batch, answers, entities, client, now, advanced=advanced)


def store_batch(
    transaction: Transaction,
    *,
    integration: Integration,
    batch: Batch,
    result: Result,
    figures: BatchFigures,
    memory: DatabaseMemory,
    expires_at: int | None,
    now: int,
) -> EndedRun | None:
    """Store the facts of the batch and remove it from its queue, in one transaction."""
    ended = run_queue.finish_batch(
        transaction,
        batch,
        figures,
        now,
        left=result.left,
        next_at=result.next_at,
        attempts=result.attempts,
    )
    if batch.attempts > MOST_ATTEMPTS:
        runs.record_given_up_batch(
            transaction, GivenUpBatch(*batch[:3], batch.work, batch.attempts - 1, now)
        )
    if result.pause_until is not None:
        run_queue.pause_queue(transaction, batch.queue, result.pause_until)
    if expires_at is not None:
        runs.record_credential_expiry(transaction, batch.source_id, expires_at)
    memory.flush(transaction)
    there = _observations_in_catalog(transaction, integration.source, result.observations)
    observations = [one for one in result.observations if one.entity_id in there]
    # In one order everywhere, or two that write the same rows could wait for each other.
    observations.sort(key=lambda one: one.entity_id)
    store.record_facts(transaction, integration.source, observations, now)
    return ended


def _observations_in_catalog(
    transaction: Transaction, source: DataSource, observations: Iterable[Observation]
) -> set[int]:
    """The entities that are still in the catalog, and still belong to the source's owner.

    Facts of an entity that was forgotten meanwhile would be stored forever.
    """
    ids = [one.entity_id for one in observations]
    if source.ownership is None:
        return stored_entities.filter_existing_ids(transaction, ids)
    return stored_entities.filter_ids_meeting(
        transaction, filters.make_filter_condition(source.ownership), ids
    )


def batch_key(batch: Batch) -> Hashable:
    """The identity of the batch across its attempts, which have different numbers."""
    return batch.run_id, tuple(batch_targets(batch.work))


def _reason_to_give_up(batch: Batch, now: int) -> Missing | None:
    """The reason to abandon the batch, if any."""
    if now >= batch.deadline:
        if batch.paused:
            return Missing(Outcome.RATE_LIMITED, "until after the end of the run")
        return Missing(Outcome.TRANSIENT, "the run took longer than its timeout")
    if batch.attempts > MOST_ATTEMPTS:
        return Missing(Outcome.TRANSIENT, "the collection ended without a result time and again")
    return None


def _failed_answer(reason: Missing) -> Collected:
    return Collected(missing={"": reason})


def _split_batch(batch: Batch, entities: Targets, client: HttpClient, now: int) -> Result:
    """Split the batch, to keep one bad target from blocking the others."""
    targets = list(entities)
    if len(targets) == 1 or batch.attempts >= MOST_ATTEMPTS:
        reason = Missing(Outcome.TRANSIENT, "the collection failed; the log has more")
        return _settle_answers(
            batch, dict.fromkeys(entities, _failed_answer(reason)), entities, client, now
        )
    size = -(-len(targets) // _MOST_PARTS)
    parts = [targets[start : start + size] for start in range(0, len(targets), size)]
    return _batch_result({}, entities, [batch_work(part, entities) for part in parts], now)


def _settle_answers(
    batch: Batch,
    answers: dict[str, Collected],
    entities: Targets,
    client: HttpClient,
    now: int,
    *,
    advanced: bool = False,
) -> Result:
    """The facts to store, and the targets to retry in this run.

    Known facts of retried targets are stored at once, and their other values become stale. Such
    targets are counted with their last attempt. An attempt that `advanced` further than earlier
    ones and then reached a rate limit does not count as an attempt: these continue until the end
    of the run.
    """
    limited = any(
        missing.outcome is Outcome.RATE_LIMITED
        for answer in answers.values()
        for missing in answer.missing.values()
    )
    until: int | None = None
    if limited:
        until = client.health.resumes_at
        if until is None or until <= now:
            # The client does not know when the limit ends: an increasing guess.
            until = now + 2 * _retry_pause(batch.attempts)
    attempts = 0 if limited and advanced else batch.attempts
    next_at = until or now + _retry_pause(batch.attempts)
    most = MOST_ATTEMPTS if limited else _MOST_FAILURES
    again = [
        target
        for target, answer in answers.items()
        if entities[target] and any(missing.retried for missing in answer.missing.values())
    ]
    if not again or attempts >= most or next_at >= batch.deadline:
        return _batch_result(answers, entities, pause_until=until)
    settled = {target: answers[target] for target in answers if target not in again}
    result = _batch_result(settled, entities, [_work_to_retry(again, entities)], next_at, until)
    partly = {target: answers[target] for target in again}
    observations = result.observations + _list_observations(partly, entities)
    return result._replace(observations=observations, attempts=attempts)


def _work_to_retry(targets: list[str], entities: Targets) -> str:
    """The targets as work; the rest of the batch is included as context, without entities.

    Requests about several targets stay the same, so their responses are found in the cache kept for
    the next attempt.
    """
    waiting = {target: entities[target] for target in targets}
    return batch_work(entities, {target: waiting.get(target, []) for target in entities})


def _list_observations(answers: dict[str, Collected], entities: Targets) -> list[Observation]:
    return [
        Observation(id_, answer.values, answer.reasons, answer.passing)
        for target, answer in answers.items()
        for id_ in entities[target]
    ]


def _batch_result(
    answers: dict[str, Collected],
    entities: Targets,
    left: list[str] | None = None,
    next_at: int = 0,
    pause_until: int | None = None,
) -> Result:
    observations = _list_observations(answers, entities)
    nothing = {target: one for target, one in answers.items() if one.missing and not one.values}
    # Entities that turned out not to identify a target.
    untargeted = [
        target
        for target, answer in nothing.items()
        if all(missing.outcome is Outcome.NO_ANNOTATION for missing in answer.missing.values())
    ]
    skipped = _count_entities(entities, untargeted)
    failed = _count_entities(entities, nothing) - skipped
    incomplete = _count_entities(
        entities, (t for t, one in answers.items() if one.values and one.passing)
    )
    gaps = Counter[RunGap]()
    for target, answer in answers.items():
        for place, missing in answer.missing.items():
            if missing.outcome is Outcome.NO_ANNOTATION:
                gap = RunGap(place, missing.reason, "skipped")
            else:
                gap = RunGap(place, missing.reason, "passing" if missing.passing else "final")
            gaps[gap] += len(entities[target])
    covered = len(observations) - failed - skipped
    counts = covered, failed, incomplete, skipped
    return Result(observations, *counts, +gaps, left or [], next_at, pause_until)


def _count_entities(entities: Targets, targets: Iterable[str]) -> int:
    return sum(len(entities[target]) for target in targets)


def _retry_pause(attempts: int) -> int:
    return int(min(_FIRST_PAUSE * 2 ** (attempts - 1), _LONGEST_PAUSE))


class Attempts:
    """Attempts of one process, and the state kept between them."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, tracer: Tracer) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._tracer = tracer
        self._counted: WeakKeyDictionary[HttpClient, int] = WeakKeyDictionary()
        self._caches = AnswerCaches()
        # Batches whose results are being stored.
        self.finishing: set[Batch] = set()

    async def make(
        self, batch: Batch, integration: Integration, following: Callable[[], Take]
    ) -> Batch | None:
        """Work on a batch; returns the next batch, begun in the same transaction as its end.

        A batch whose result cannot be stored is begun again later.
        """
        try:
            return await self._traced(batch, integration, following)
        except UnavailableError as error:
            log.warning("batch.unavailable", source=batch.source_id, cause=error.cause)
        except Exception as error:
            log.error("batch.failed", source=batch.source_id, exc_info=error)
        with suppress(UnavailableError):
            until = self._clock() + _REST_AFTER_FAILURE
            await self._database.write(lambda tx: run_queue.postpone_batch(tx, batch, until))
        return None

    async def _traced(
        self, batch: Batch, integration: Integration, following: Callable[[], Take]
    ) -> Batch | None:
        trace = run_start.run_trace(batch.source_id, batch.run_id, batch.deadline)
        about: Attributes = {
            "factbook.source.id": batch.source_id,
            "factbook.run.id": batch.run_id,
            "factbook.attempt": batch.attempts,
        }
        with self._tracer.span("batch", about, within=trace) as span:
            return await self._work(batch, integration, span, following)

    async def _work(
        self, batch: Batch, integration: Integration, span: Span, following: Callable[[], Take]
    ) -> Batch | None:
        client, now = self._clients.of(integration), self._clock()
        memory = DatabaseMemory(self._database, batch.source_id, now)
        cache = self._caches.open(batch_key(batch), now)
        result = await collect_batch(integration, batch, client, memory, now, cache)
        figures = self._figures(client, result)
        span.note({"factbook.run.covered": result.covered, "factbook.run.failed": result.failed})
        finish = partial(
            store_batch,
            integration=integration,
            batch=batch,
            result=result,
            figures=figures,
            memory=memory,
            expires_at=client.health.credential_expires_at,
            now=self._clock(),
        )
        ended, next_batch = await self._end(batch, finish, following())
        if not result.left:
            self._caches.close(batch_key(batch))
        if ended is not None:
            report_end(ended, self._tracer)
        return next_batch

    async def _end(
        self, batch: Batch, finish: Finish, take: Take
    ) -> tuple[EndedRun | None, Batch | None]:
        """Store the result, and begin the next batch with it."""

        def work(transaction: Transaction) -> tuple[EndedRun | None, Batch | None]:
            ended, following = finish(transaction), take(transaction)
            transaction.evaluate_checks()
            return ended, following

        self.finishing.add(batch)
        try:
            return await self._database.write(work)
        except LostBatchError:
            log.warning("batch.lost", source=batch.source_id)
            self._caches.close(batch_key(batch))
            return None, None
        finally:
            self.finishing.discard(batch)

    def _figures(self, client: HttpClient, result: Result) -> BatchFigures:
        health = client.health
        # Calls shared by several batches are counted with the first batch to end.
        calls = health.calls - self._counted.get(client, 0)
        self._counted[client] = health.calls
        left = min((one.remaining for one in health.allowances.values()), default=None)
        entities = (result.covered, result.failed, result.incomplete, result.skipped)
        return BatchFigures(*entities, calls, left, result.gaps)


def report_end(ended: EndedRun, tracer: Tracer) -> None:
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
    # The rest of an error has more detail than a trace should.
    failure = (run.error or "failed").partition(":")[0] if run.state == "failed" else None
    trace = run_start.run_trace(run.source_id, run.id, run.deadline)
    tracer.ended(trace, figures, run.started_at, run.finished_at or run.started_at, failure)


class Collector:
    """The loop that collects from these integrations, in the leading process."""

    # Seconds that a lane may keep its slot while others may be waiting.
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
            self._clients.of(one)  # fails early for a wrong address
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
            if await self._look() or not 0 < self._nothing_before - now <= _RETRY_PAUSE:
                async for _ in self._begun():
                    await self.take()  # planning the next takes a while
        await self.work()

    async def work(self) -> None:
        """Do one round: begin lanes with ready batches, and wait briefly for one to end."""
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
            # If not released, each batch counts an attempt.
            with suppress(UnavailableError, TimeoutError):
                async with asyncio.timeout(shutdown.RELEASE_SECONDS):
                    await self._database.write(
                        lambda tx: run_queue.release_batches(tx, self._holder)
                    )

    async def stand_by(self) -> None:
        """Leave everything to the collecting process."""
        await self.let_go()
        await asyncio.sleep(POLL_SECONDS)

    async def begin_due(self) -> int:
        """Begin a run of every due source; returns the number of runs."""
        return sum([begun async for begun in self._begun()])

    async def _begun(self) -> AsyncIterator[bool]:
        """Begin due sources one after another; yields true for each run begun."""
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
        self._nothing_before = min([now + _RETRY_PAUSE, *nexts.values()])
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
        """Begin a run, unless another process has."""
        since = 0 if last is None else last + 1
        with (
            self._tracer.span("plan", {"factbook.source.id": integration.source.id}),
            suppress(UnderWayError),
        ):
            begun = await run_start.begin_run(
                self._database, integration, now, since=since, tracer=self._tracer
            )
            if begun.ended is not None:
                report_end(begun.ended, self._tracer)
            return True
        return False

    async def take(self) -> int:
        """Begin lanes with ready batches, up to the capacity; returns their number."""
        free = self._slots - len(self._lanes)
        if free <= 0:
            return 0
        ready = await run_queue.list_ready_lanes(self._database, self._integrations, self._clock())
        new = [lane for lane in ready if lane not in self._lanes.values()]
        # Longest waiting first.
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
        """Work on the batches of a lane until none is ready, or other lanes wait for a slot."""
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
        """Work on consecutive batches of the lane; returns false if none is ready.

        Only one suspect is begun at a time, as any of them may kill the process.
        """
        if batch := await self._begin_next(lane, suspects=False):
            while batch and self._goes_on():
                batch = await self._attempt(batch, partial(self._following, lane, end))
            return True
        async with self._suspects:
            batch = await self._begin_next(lane, suspects=True)
            if batch:
                await self._attempt(batch, lambda: _take_nothing)
        return batch is not None

    async def _begin_next(self, lane: Lane, *, suspects: bool) -> Batch | None:
        if not self._goes_on():
            return None
        return await self._database.write(self._take(lane, suspects=suspects))

    def _following(self, lane: Lane, end: float) -> Take:
        """Function that begins the lane's next batch when the previous one ends."""
        if not self._may_go_on(end):
            return _take_nothing
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
        """Return true if a lane whose turn ends then may begin another batch."""
        return self._goes_on() and (self._serving < self._slots or time.monotonic() <= end)

    def _goes_on(self) -> bool:
        """Return true if this process may begin another batch."""
        return True


def _take_nothing(transaction: Transaction) -> None:
    """Begin no batch."""

"""Attempts at batches: each is collected, and stored with its end; runs that end are told."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

import structlog

from factbook.clock import SECOND, Clock
from factbook.collection import batches, run_start
from factbook.datasources.clients import Clients
from factbook.datasources.memory import DatabaseMemory
from factbook.errors import UnavailableError
from factbook.integrations.integration import Integration
from factbook.outbound.cache import AnswerCaches
from factbook.outbound.client import HttpClient
from factbook.scheduling import run_queue
from factbook.scheduling.run_queue import Batch, BatchFigures, LostBatchError
from factbook.scheduling.runs import EndedRun
from factbook.storage import Database, Transaction
from factbook.telemetry.spans import Attributes, Span, Tracer

log = structlog.get_logger("factbook.collecting")

# Begins another batch, if there is one, in the transaction that ends one.
Take = Callable[[Transaction], Batch | None]
Finish = Callable[[Transaction], EndedRun | None]

# After an attempt that failed unexpectedly.
_REST = 40 * SECOND


class Attempts:
    """Attempts of one process, with what it keeps between them."""

    def __init__(self, database: Database, clients: Clients, clock: Clock, tracer: Tracer) -> None:
        self._database = database
        self._clients = clients
        self._clock = clock
        self._tracer = tracer
        self._counted: WeakKeyDictionary[HttpClient, int] = WeakKeyDictionary()
        self._caches = AnswerCaches()
        # Whose results are being stored.
        self.finishing: set[Batch] = set()

    async def make(
        self, batch: Batch, integration: Integration, following: Callable[[], Take]
    ) -> Batch | None:
        """Work on a batch; returns the one that was begun with its end.

        A batch whose result cannot be stored is begun again later.
        """
        try:
            return await self._traced(batch, integration, following)
        except UnavailableError as error:
            log.warning("batch.unavailable", source=batch.source_id, cause=error.cause)
        except Exception as error:
            log.error("batch.failed", source=batch.source_id, exc_info=error)
        with suppress(UnavailableError):
            until = self._clock() + _REST
            await self._database.write(lambda tx: run_queue.postpone_batch(tx, batch, until))
        return None

    async def _traced(
        self, batch: Batch, integration: Integration, following: Callable[[], Take]
    ) -> Batch | None:
        trace = run_start.trace_of(batch.source_id, batch.run_id, batch.deadline)
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
        ended, next_batch = await self._end(batch, finish, following())
        if not result.left:
            self._caches.close(batches.key(batch))
        if ended is not None:
            tell(ended, self._tracer)
        return next_batch

    async def _end(
        self, batch: Batch, finish: Finish, take: Take
    ) -> tuple[EndedRun | None, Batch | None]:
        """Store the result, and begin the next batch with it."""
        self.finishing.add(batch)
        try:
            return await self._database.write(lambda tx: (finish(tx), take(tx)))
        except LostBatchError:
            log.warning("batch.lost", source=batch.source_id)
            self._caches.close(batches.key(batch))
            return None, None
        finally:
            self.finishing.discard(batch)

    def _figures(self, client: HttpClient, result: batches.Result) -> BatchFigures:
        health = client.health
        # Of calls made for several batches at once, each is counted with the first to end.
        calls = health.calls - self._counted.get(client, 0)
        self._counted[client] = health.calls
        left = min((one.remaining for one in health.allowances.values()), default=None)
        entities = (result.covered, result.failed, result.incomplete, result.skipped)
        return BatchFigures(*entities, calls, left, result.gaps)


def tell(ended: EndedRun, tracer: Tracer) -> None:
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

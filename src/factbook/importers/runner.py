"""Runs of importers when they are due or asked for, by the process that collects."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from factbook import shutdown
from factbook.audit import trail
from factbook.audit.trail import AuditEntry, Caller, audited
from factbook.catalog.push_rules import PushRules
from factbook.catalog.store.stored_sets import PushResult
from factbook.clock import HOUR, SECOND, Clock
from factbook.datasources.clients import Connect
from factbook.errors import FactbookError, UnavailableError
from factbook.importers import cadence, hint_store, hints, run_store, single_import
from factbook.importers.hints import DueHints, HintedReading
from factbook.importers.importer import Importer
from factbook.importers.run_store import ImportRun, LostRunError, RunOutcome
from factbook.importers.single_import import ImportReport
from factbook.importers.writer import ImportTarget, actor
from factbook.outbound import HttpClient
from factbook.scheduling import lease
from factbook.settings import Settings
from factbook.storage import Database, Transaction, Write
from factbook.telemetry.spans import NO_TRACER, Attributes, Tracer

log = structlog.get_logger("factbook.importing")

T = TypeVar("T")

# Importers that one process runs at a time.
SLOTS: Final = 2
# A run that was begun so often without an end is given up.
MOST_ATTEMPTS: Final = 4
_LONGEST: Final = 2 * HOUR
# After an end that could not be stored.
_REST: Final = 40 * SECOND
_ENDLESS: Final = "the process ended time and again while this was imported"
_UNEXPECTED: Final = "the import failed unexpectedly; the log has more"

# The importers by id: the same ones until one of them changes.
Importers = Callable[[], Awaitable[Mapping[str, Importer]]]


class ImportRunner:
    """The loop that runs importers; of all processes, one at a time has it."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        importers: Importers,
        connect: Connect,
        clock: Clock,
        holder: str,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        self._database = database
        self._rules = PushRules.of(settings)
        self._kept = settings.revisions_kept
        self._importers = importers
        self._connect = connect
        self._clock = clock
        self._holder = holder
        self._tracer = tracer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, int] = {}

    async def tick(self) -> None:
        """Begin the runs that are due or asked for, as far as there is room."""
        importers = await self._importers()
        if not importers or len(self._tasks) >= SLOTS:
            return
        known, now = await run_store.latest(self._database), self._clock()
        await self._follow(importers, known, now)
        free = max(SLOTS - len(self._tasks), 0)
        ready = [
            (due, id_)
            for id_, one in importers.items()
            if id_ not in self._tasks and (due := self._due(one, known.get(id_), now)) <= now
        ]
        for _, id_ in sorted(ready)[:free]:
            await self._begin(importers[id_], known.get(id_), now)

    async def drain(self) -> None:
        """Begin what is ready, and wait until nothing is under way."""
        await self.tick()
        while self._tasks:
            await asyncio.wait(self._tasks.values())
            await self.tick()

    async def let_go(self) -> None:
        """End what is under way, and leave it to others at once."""
        if not self._tasks:
            return
        await shutdown.cancel(list(self._tasks.values()))
        # Without it each counts an attempt.
        with suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(shutdown.RELEASE_SECONDS):
                await self._database.write(lambda tx: run_store.release(tx, self._holder))

    def _due(self, importer: Importer, last: ImportRun | None, now: int) -> int:
        """The time from which a run may begin; what was asked for, and what is left, comes first.

        Where nothing runs by itself it is in the future.
        """
        if last is not None and last.ended_at is None:
            until = self._resting.get(importer.id, 0)
            if last.holder not in ("", self._holder):
                # One that just lost the lease may not know it yet.
                until = (last.started_at or 0) + lease.LEADERSHIP_HELD
            return until if until - now <= _REST else 0
        due = cadence.next_start(importer.every, last, now)
        return now + 1 if due is None else due

    async def _follow(
        self, importers: Mapping[str, Importer], known: Mapping[str, ImportRun], now: int
    ) -> None:
        """Begin to read again what events were about, of importers that do not run meanwhile."""
        for due in await hints.due(self._database, importers, now):
            run = known.get(due.importer)
            is_under_way = run is not None and run.ended_at is None
            if is_under_way or due.importer in self._tasks or len(self._tasks) >= SLOTS:
                continue
            self._keep(due.importer, self._reread(importers[due.importer], due, now))

    async def _reread(self, importer: Importer, due: DueHints, at: int) -> None:
        """Read again what hints are about; what cannot be read is tried again later."""
        caller = Caller(actor(importer.id, at).ref, at)
        write = trail.writing(self._database, caller, written)
        target = ImportTarget(self._database, self._rules, self._kept, write)
        try:
            reading = await hints.follow(importer, due, self._connect, target, at)
        except FactbookError as error:
            log.warning("import.hints_failed", importer=importer.id, reason=error.message)
            reading = hints.UNREAD
        except Exception as error:
            log.error("import.hints_failed", importer=importer.id, exc_info=error)
            reading = hints.UNREAD
        now = self._clock()
        # Without it they are followed once more.
        with suppress(UnavailableError):
            await self._database.write(lambda transaction: _settle(transaction, due, reading, now))

    def _keep(self, id_: str, work: Coroutine[None, None, None]) -> None:
        """Do the work of an importer, which does no other meanwhile."""
        task = asyncio.create_task(work)
        self._tasks[id_] = task
        task.add_done_callback(lambda _: self._tasks.pop(id_))

    async def _begin(self, importer: Importer, seen: ImportRun | None, now: int) -> None:
        run = await self._database.write(
            lambda tx: run_store.begin(tx, importer.id, seen, self._holder, now)
        )
        if run is None:
            return
        self._keep(importer.id, self._make(importer, run))

    async def _make(self, importer: Importer, run: ImportRun) -> None:
        """One attempt at a run; one whose end cannot be stored is begun again later."""
        try:
            outcome = await self._outcome(importer, run)
            now = self._clock()
            ended = await self._database.write(lambda tx: run_store.end(tx, run, outcome, now))
        except LostRunError:
            log.warning("import.lost", importer=importer.id)
        except UnavailableError as error:
            log.warning("import.unavailable", importer=importer.id, cause=error.cause)
            self._resting[importer.id] = self._clock() + _REST
        else:
            tell(ended)

    async def _outcome(self, importer: Importer, run: ImportRun) -> RunOutcome:
        if run.attempts > MOST_ATTEMPTS:
            return RunOutcome("failed", _ENDLESS)
        about: Attributes = {
            "factbook.importer.kind": importer.kind,
            "factbook.attempt": run.attempts,
        }
        with self._tracer.span("import", about) as span:
            outcome = await self._attempt(importer, run)
            span.note({"factbook.import.calls": outcome.calls})
            if outcome.state == "failed":
                span.fail("failed")
            return outcome

    async def _attempt(self, importer: Importer, run: ImportRun) -> RunOutcome:
        """Import; whatever fails but the database is the outcome."""
        at, calls = run.started_at or self._clock(), 0
        client: HttpClient | None = None
        try:
            client = self._connect(importer.integration)
            calls = client.health.calls
            target = ImportTarget(self._database, self._rules, self._kept, self._writing(run, at))
            async with asyncio.timeout(_LONGEST / SECOND):
                report = await single_import.run(importer, client, target, at)
            return outcome_of(report, client, self._clock())
        except UnavailableError:
            raise
        except TimeoutError:
            reason = f"it took longer than {_LONGEST // HOUR} hours"
        except FactbookError as error:
            reason = error.message
        except LostRunError:
            raise
        except Exception as error:
            log.error("import.failed", importer=importer.id, exc_info=error)
            reason = _UNEXPECTED
        made = client.health.calls - calls if client else 0
        return RunOutcome("failed", reason, made)

    def _writing(self, run: ImportRun, at: int) -> Write:
        """Runner of transactions that write only while this attempt has its run."""
        caller = Caller(actor(run.importer, at).ref, at)

        async def write(function: Callable[[Transaction], T], /) -> T:
            def work(transaction: Transaction) -> T:
                run_store.check(transaction, run)
                return function(transaction)

            return await self._database.write(audited(work, caller, written))

        return write


def _settle(transaction: Transaction, due: DueHints, reading: HintedReading, now: int) -> None:
    """End the following of hints; the guards of a run decide about what was not found."""
    after = hint_store.followed if reading.whole else hint_store.postpone
    after(transaction, due.hints, now)
    if reading.undecided:
        run_store.ask(transaction, due.importer, now)


def written(outcome: object) -> AuditEntry | None:
    """The record of a part; None for a reading that changed nothing."""
    if not (isinstance(outcome, PushResult) and outcome.plan.set):
        return None
    return AuditEntry("import.write", outcome.plan.set.name, outcome.plan.changes)


def outcome_of(report: ImportReport, client: HttpClient, now: int) -> RunOutcome:
    """The outcome of a run that ended with a report."""
    partial = [one.record for one in report.parts if one.record.state == "partial"]
    held = any(one.record.state == "held" for one in report.parts)
    error, state = "", "held" if held else "complete"
    if partial:
        # Of an importer that found nothing at all, the reason is its credential or its host.
        nothing = len(partial) == len(report.parts) and not any(
            part.items for part in report.snapshot.parts
        )
        state = "failed" if nothing else "partial"
        error = next((str(p) for one in partial for p in one.problems), "something is missing")
    resumes_at = client.health.resumes_at
    pause = resumes_at if resumes_at is not None and resumes_at > now else None
    return RunOutcome(state, error, report.calls, report.left, pause)


def tell(run: ImportRun) -> None:
    """Report the end of a run."""
    about = {"importer": run.importer, "state": run.state, "calls": run.calls}
    if run.state in ("failed", "partial"):
        log.warning("import.ended", **about, reason=run.error, failures=run.failures)
    else:
        log.info("import.ended", **about)

"""Due and requested importer runs, in the collecting process.

Between runs, hints from events are followed: the things named by events are read again and merged
into the stored set.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final, NamedTuple, TypeVar

import msgspec
import structlog

from factbook import shutdown
from factbook.audit.trail import AuditEntry, Caller, audit_work, audit_writes
from factbook.catalog.sets import PushRules
from factbook.catalog.store import stored_sets
from factbook.catalog.store.stored_sets import PushResult
from factbook.clock import HOUR, SECOND, Clock
from factbook.datasources.clients import Connect, DatabaseMemory
from factbook.errors import FactbookError, UnavailableError
from factbook.importers import records
from factbook.importers.importer import Importer, Show
from factbook.importers.records import GivenHint, ImportRun, LostRunError, RunOutcome
from factbook.importers.registry import ImporterRegistry
from factbook.importers.snapshot import NAMESPACES, Snapshot, name_set
from factbook.importers.writer import ImportTarget, PartResult, make_import_actor, write_snapshot
from factbook.outbound.client import ClientHealth, HttpClient
from factbook.scheduling import lease
from factbook.settings import Settings
from factbook.storage import Database, Transaction, Write
from factbook.telemetry.spans import NO_TRACER, Attributes, Tracer

log = structlog.get_logger("factbook.importing")

# Most hints followed at a time.
_MOST_HINTS: Final = 100

T = TypeVar("T")

# Importers that one process runs at a time.
SLOTS: Final = 2
# A run begun this often without an end is abandoned.
MOST_ATTEMPTS: Final = 4
_LONGEST_RUN: Final = 2 * HOUR
# Pause after an end that could not be stored.
_REST: Final = 40 * SECOND
_ENDLESS: Final = "the process ended repeatedly during this import"
_UNEXPECTED: Final = "the import failed unexpectedly; the log has more"


class ImportReport(NamedTuple):
    """Result of an import: the parts, what settings leave out, and the calls that it took.

    `left` is what is left of the vendor's limit, None if that is not known.
    """

    importer: str
    snapshot: Snapshot
    parts: Sequence[PartResult]
    calls: int
    left: int | None


async def run_import(
    importer: Importer,
    client: HttpClient,
    target: ImportTarget,
    now: int,
    *,
    plan: bool = False,
    show: Show = lambda text: None,
) -> ImportReport:
    """Read a system and write what it holds, or plan that.

    The importer's memory is stored together with the written sets.
    """
    memory, before = await open_importer_memory(importer, target.database, now), client.health.calls
    snapshot = await importer.read(client, memory, now, show)
    show("Comparing" if plan else "Writing")
    parts = await write_snapshot(target, importer.id, snapshot, now, dry_run=plan)
    if not plan:
        await target.write(memory.flush)
    health = client.health
    return ImportReport(
        importer.id, snapshot, parts, health.calls - before, count_calls_left(health)
    )


async def open_importer_memory(importer: Importer, database: Database, now: int) -> DatabaseMemory:
    """The memory of an importer, which knows the namespaces that its parts had at first."""
    memory = DatabaseMemory(database, importer.memory, now)
    if await memory.get(NAMESPACES) is None:
        prefix = name_set(importer.id, "")
        found = await stored_sets.list_namespaces(database, prefix)
        parts = {name.removeprefix(prefix): namespaces for name, namespaces in found.items()}
        await memory.put(NAMESPACES, msgspec.json.encode(parts))
    return memory


def count_calls_left(health: ClientHealth) -> int | None:
    """Calls that are left of the scarcest limit; None if none is known."""
    return min((one.remaining for one in health.allowances.values()), default=None)


class DueHints(NamedTuple):
    """Hints of one importer whose time has come."""

    importer: str
    hints: Sequence[GivenHint]


class HintedReading(NamedTuple):
    """Reading of what hints were about; not `whole` if something could not be read.

    `undecided`: something was not found, and a run must determine whether it is gone.
    """

    whole: bool
    undecided: bool


UNREAD: Final = HintedReading(whole=False, undecided=False)


async def list_due_hints(
    database: Database, importers: Mapping[str, Importer], now: int
) -> list[DueHints]:
    """The hints that are due, by importer; those of others than take events are not read."""
    taking = [id_ for id_, one in importers.items() if one.events]
    if not taking:
        return []
    found = await records.get_due_hints(database, taking, now)
    by_importer = groupby(found, lambda hint: hint.importer)
    return [DueHints(id_, list(hints)[:_MOST_HINTS]) for id_, hints in by_importer]


async def follow_hints(
    importer: Importer, due: DueHints, connect: Connect, target: ImportTarget, now: int
) -> HintedReading:
    """Read and write what hints are about."""
    assert importer.reread is not None, "what an importer that takes events has"
    # Users wait for this, while a full collection may take an hour.
    client = connect(importer.integration).urgent()
    calls = client.health.calls
    memory = await open_importer_memory(importer, target.database, now)
    snapshot = await importer.reread(client, memory, now, [one.hint for one in due.hints])
    # Before the first reading of everything there is nothing to merge it into.
    known = {one.part for one in await records.list_part_records(target.database, importer.id)}
    parts = tuple(part for part in snapshot.parts if part.key in known)
    results = await write_snapshot(target, importer.id, Snapshot(parts), now)
    await target.write(memory.flush)
    made = client.health.calls - calls
    log.info("import.hints_followed", importer=importer.id, hints=len(due.hints), calls=made)
    return HintedReading(
        whole=all(part.complete and not part.unread for part in parts),
        undecided=any(one.undecided for one in results),
    )


class ImportRunner:
    """The loop that runs importers, in one process at a time."""

    def __init__(
        self,
        database: Database,
        settings: Settings,
        registry: ImporterRegistry,
        connect: Connect,
        clock: Clock,
        holder: str,
        tracer: Tracer = NO_TRACER,
    ) -> None:
        self._database = database
        self._rules = PushRules.of(settings)
        self._kept = settings.revisions_kept
        self._registry = registry
        self._connect = connect
        self._clock = clock
        self._holder = holder
        self._tracer = tracer
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._resting: dict[str, int] = {}

    async def tick(self) -> None:
        """Begin the runs that are due or asked for, as far as there is room."""
        importers = await self._registry.current()
        if not importers or len(self._tasks) >= SLOTS:
            return
        known, now = await records.get_latest_runs(self._database), self._clock()
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
        """Begin ready runs, and wait until all work has ended."""
        await self.tick()
        while self._tasks:
            await asyncio.wait(self._tasks.values())
            await self.tick()

    async def let_go(self) -> None:
        """Cancel work in progress, and release it to others at once."""
        if not self._tasks:
            return
        await shutdown.cancel(list(self._tasks.values()))
        # If not released, each run counts an attempt.
        with suppress(UnavailableError, TimeoutError):
            async with asyncio.timeout(shutdown.RELEASE_SECONDS):
                await self._database.write(lambda tx: records.release_runs(tx, self._holder))

    def _due(self, importer: Importer, last: ImportRun | None, now: int) -> int:
        """The earliest start of a run; requested and interrupted runs come first.

        In the future if no run is scheduled.
        """
        if last is not None and last.ended_at is None:
            until = self._resting.get(importer.id, 0)
            if last.holder not in ("", self._holder):
                # A process that just lost the lease may not know yet.
                until = (last.started_at or 0) + lease.LEADERSHIP_HELD
            return until if until - now <= _REST else 0
        due = records.compute_next_start(importer.every, last, now)
        return now + 1 if due is None else due

    async def _follow(
        self, importers: Mapping[str, Importer], known: Mapping[str, ImportRun], now: int
    ) -> None:
        """Begin to read again what events were about, of importers that do not run meanwhile."""
        for due in await list_due_hints(self._database, importers, now):
            run = known.get(due.importer)
            is_under_way = run is not None and run.ended_at is None
            if is_under_way or due.importer in self._tasks or len(self._tasks) >= SLOTS:
                continue
            self._keep(due.importer, self._reread(importers[due.importer], due, now))

    async def _reread(self, importer: Importer, due: DueHints, at: int) -> None:
        """Read again what hints are about; what cannot be read is tried again later."""
        caller = Caller(make_import_actor(importer.id, at).ref, at)
        write = audit_writes(self._database, caller, audit_written_set)
        target = ImportTarget(self._database, self._rules, self._kept, write)
        try:
            reading = await follow_hints(importer, due, self._connect, target, at)
        except FactbookError as error:
            log.warning("import.hints_failed", importer=importer.id, reason=error.message)
            reading = UNREAD
        except Exception as error:
            log.error("import.hints_failed", importer=importer.id, exc_info=error)
            reading = UNREAD
        now = self._clock()
        # If this fails, the hints are followed once more.
        with suppress(UnavailableError):
            await self._database.write(
                lambda transaction: _settle_hints(transaction, due, reading, now)
            )

    def _keep(self, id_: str, work: Coroutine[None, None, None]) -> None:
        """Do the work of an importer, which does no other meanwhile."""
        task = asyncio.create_task(work)
        self._tasks[id_] = task
        task.add_done_callback(lambda _: self._tasks.pop(id_))

    async def _begin(self, importer: Importer, seen: ImportRun | None, now: int) -> None:
        run = await self._database.write(
            lambda tx: records.begin_import_run(tx, importer.id, seen, self._holder, now)
        )
        if run is None:
            return
        # People request a run after fixing an importer: the run must not use cached answers.
        latest = (await self._registry.latest()).get(importer.id)
        if latest is not None:
            self._keep(importer.id, self._make(latest, run))

    async def _make(self, importer: Importer, run: ImportRun) -> None:
        """One attempt at a run; one whose end cannot be stored is begun again later."""
        try:
            outcome = await self._outcome(importer, run)
            now = self._clock()
            ended = await self._database.write(
                lambda tx: records.end_import_run(tx, run, outcome, now)
            )
        except LostRunError:
            log.warning("import.lost", importer=importer.id)
        except UnavailableError as error:
            log.warning("import.unavailable", importer=importer.id, cause=error.cause)
            self._resting[importer.id] = self._clock() + _REST
        else:
            log_run(ended)

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
            async with asyncio.timeout(_LONGEST_RUN / SECOND):
                report = await run_import(importer, client, target, at)
            return make_outcome(report, client, self._clock())
        except UnavailableError:
            raise
        except TimeoutError:
            reason = f"it took longer than {_LONGEST_RUN // HOUR} hours"
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
        caller = Caller(make_import_actor(run.importer, at).ref, at)

        async def write(function: Callable[[Transaction], T], /) -> T:
            def work(transaction: Transaction) -> T:
                records.check_run(transaction, run)
                return function(transaction)

            return await self._database.write(audit_work(work, caller, audit_written_set))

        return write


def _settle_hints(
    transaction: Transaction, due: DueHints, reading: HintedReading, now: int
) -> None:
    """End the following of hints; the guards of a run decide about what was not found."""
    after = records.forget_followed_hints if reading.whole else records.postpone_hints
    after(transaction, due.hints, now)
    if reading.undecided:
        records.request_run(transaction, due.importer, now)


def audit_written_set(outcome: object) -> AuditEntry | None:
    """The record of a part; None for a reading that changed nothing."""
    if not (isinstance(outcome, PushResult) and outcome.plan.set):
        return None
    return AuditEntry("import.write", outcome.plan.set.name, outcome.plan.changes)


def make_outcome(report: ImportReport, client: HttpClient, now: int) -> RunOutcome:
    """The outcome of a run that ended with a report."""
    partial = [one.record for one in report.parts if one.record.state == "partial"]
    held = any(one.record.state == "held" for one in report.parts)
    error, state = "", "held" if held else "complete"
    if partial:
        # If nothing at all was found, the cause is the credential or the host.
        nothing = len(partial) == len(report.parts) and not any(
            part.items for part in report.snapshot.parts
        )
        state = "failed" if nothing else "partial"
        error = next((str(p) for one in partial for p in one.problems), "something is missing")
    resumes_at = client.health.resumes_at
    pause = resumes_at if resumes_at is not None and resumes_at > now else None
    return RunOutcome(state, error, report.calls, report.left, pause)


def log_run(run: ImportRun) -> None:
    """Report the end of a run."""
    about = {"importer": run.importer, "state": run.state, "calls": run.calls}
    if run.state in ("failed", "partial"):
        log.warning("import.ended", **about, reason=run.error, failures=run.failures)
    else:
        log.info("import.ended", **about)

"""The store of runs of importers: asked for, begun, ended; at most one of each is under way.

A run that was begun is taken over when its process has gone, and begins again. Whoever took it
first, another process that still believes to have it writes nothing more (`check`).
"""

from typing import Final, Literal, NamedTuple

from factbook.storage import Database, Transaction, counters

# Runs of each importer that are kept.
KEPT: Final = 50
_LONGEST_ERROR: Final = 1_000

Reason = Literal["cadence", "asked", "command"]


class LostRunError(Exception):
    """The run was taken over or ended by somebody else: nothing of it may be written."""


class ImportRun(NamedTuple):
    """Run of an importer.

    `state` is waiting, running, complete, partial, held or failed. `started_at` is the begin of the
    last of its `attempts`. `failures` are the runs in a row, this one included, that were not
    whole; `error` says why this one was not. No call is made before `resumes_at`.
    """

    id: int
    importer: str
    reason: str
    asked_at: int
    started_at: int | None
    ended_at: int | None
    state: str
    holder: str
    attempts: int
    failures: int = 0
    calls: int = 0
    calls_left: int | None = None
    resumes_at: int | None = None
    error: str = ""


class RunOutcome(NamedTuple):
    """End of a run."""

    state: str
    error: str = ""
    calls: int = 0
    calls_left: int | None = None
    resumes_at: int | None = None

    @property
    def whole(self) -> bool:
        """True if everything was read."""
        return self.state not in ("partial", "failed")


async def latest(database: Database) -> dict[str, ImportRun]:
    """The last run of each importer, by its id."""
    rows = await database.all(_LATEST)
    return {run.importer: run for run in map(ImportRun._make, rows)}


async def latest_ended(database: Database) -> dict[str, ImportRun]:
    """The last run of each importer that has ended, by its id."""
    rows = await database.all(_LATEST_ENDED)
    return {run.importer: run for run in map(ImportRun._make, rows)}


async def begun_since(database: Database, time: int) -> list[str]:
    """The importers of which a run was begun since then."""
    rows = await database.all(_BEGUN_SINCE, (time,))
    return [importer for (importer,) in rows]


async def recent(database: Database, importer: str, limit: int = KEPT) -> list[ImportRun]:
    """The last runs of an importer, newest first."""
    return [ImportRun._make(row) for row in await database.all(_RECENT, (importer, limit))]


def ask(transaction: Transaction, importer: str, now: int) -> ImportRun:
    """Ask for a run; returns the one that waits or is under way, if there is one."""
    before = _newest(transaction, importer)
    if before is not None and before.ended_at is None:
        return before
    return _add(transaction, importer, "asked", now, before)


def begin(
    transaction: Transaction, importer: str, seen: ImportRun | None, holder: str, now: int
) -> ImportRun | None:
    """Begin an attempt at the run under way, or else at a new one by the cadence.

    `seen` is the last run as it was known. None if another process came first.
    """
    run = _newest(transaction, importer)
    if run != seen:
        return None
    if run is None or run.ended_at is not None:
        run = _add(transaction, importer, "cadence", now, run)
    return _begin(transaction, run, holder, now)


def check(transaction: Transaction, run: ImportRun) -> None:
    """Raise LostRunError unless the attempt still has its run, which nobody takes meanwhile."""
    if not transaction.run(_CHECK, (run.id, run.holder, run.attempts)):
        raise LostRunError


def end(transaction: Transaction, run: ImportRun, outcome: RunOutcome, now: int) -> ImportRun:
    """End a run; raises LostRunError if the attempt does not have it any more."""
    check(transaction, run)
    failures = 0 if outcome.whole else run.failures + 1
    ended = run._replace(
        ended_at=now,
        state=outcome.state,
        holder="",
        failures=failures,
        calls=outcome.calls,
        calls_left=outcome.calls_left,
        resumes_at=outcome.resumes_at,
        error=outcome.error[:_LONGEST_ERROR],
    )
    transaction.run(_END, (*ended[5:8], *ended[9:], run.id))
    transaction.run(_FORGET, (run.importer, run.importer, KEPT))
    return ended


def add_ended(
    transaction: Transaction, importer: str, started_at: int, outcome: RunOutcome, now: int
) -> None:
    """Add a run of a command that has ended, unless another is under way."""
    before = _newest(transaction, importer)
    if before is not None and before.ended_at is None:
        return
    run = _add(transaction, importer, "command", started_at, before)
    end(transaction, _begin(transaction, run, "command", started_at), outcome, now)


def release(transaction: Transaction, holder: str) -> None:
    """Leave the runs of a process to others, as if they had not been begun."""
    transaction.run(_RELEASE, (holder,))


def forget(transaction: Transaction, importer: str) -> None:
    """Delete every run of an importer."""
    transaction.run("DELETE FROM import_runs WHERE importer = ?", (importer,))


def _newest(transaction: Transaction, importer: str) -> ImportRun | None:
    # A lock, since there may be no row to lock.
    transaction.lock(f"import run {importer}")
    row = transaction.one(_RECENT, (importer, 1))
    return None if row is None else ImportRun._make(row)


def _add(
    transaction: Transaction, importer: str, reason: Reason, now: int, before: ImportRun | None
) -> ImportRun:
    [id_] = counters.take(transaction, "import run")
    failures = before.failures if before else 0
    run = ImportRun(id_, importer, reason, now, None, None, "waiting", "", 0, failures)
    transaction.insert("import_runs", ImportRun._fields, [run])
    return run


def _begin(transaction: Transaction, run: ImportRun, holder: str, now: int) -> ImportRun:
    transaction.run(_BEGIN, (now, holder, run.id))
    attempts = run.attempts + 1
    return run._replace(started_at=now, holder=holder, state="running", attempts=attempts)


_LATEST: Final = """
SELECT id, importer, reason, asked_at, started_at, ended_at, state, holder, attempts, failures,
    calls, calls_left, resumes_at, error
FROM import_runs WHERE id IN (SELECT MAX(id) FROM import_runs GROUP BY importer)
"""

_LATEST_ENDED: Final = _LATEST.replace("GROUP BY", "WHERE ended_at IS NOT NULL GROUP BY")

_BEGUN_SINCE: Final = "SELECT DISTINCT importer FROM import_runs WHERE started_at >= ?"

_RECENT: Final = """
SELECT id, importer, reason, asked_at, started_at, ended_at, state, holder, attempts, failures,
    calls, calls_left, resumes_at, error
FROM import_runs WHERE importer = ? ORDER BY id DESC LIMIT ?
"""

_BEGIN: Final = """
UPDATE import_runs SET started_at = ?, holder = ?, state = 'running', attempts = attempts + 1
WHERE id = ?
"""

# It changes nothing, and holds the row until the transaction ends.
_CHECK: Final = """
UPDATE import_runs SET holder = holder
WHERE id = ? AND holder = ? AND attempts = ? AND ended_at IS NULL
"""

_END: Final = """
UPDATE import_runs SET ended_at = ?, state = ?, holder = ?, failures = ?, calls = ?,
    calls_left = ?, resumes_at = ?, error = ?
WHERE id = ?
"""

_FORGET: Final = """
DELETE FROM import_runs WHERE importer = ? AND id <= (
    SELECT id FROM import_runs WHERE importer = ? ORDER BY id DESC LIMIT 1 OFFSET ?
)
"""

_RELEASE: Final = """
UPDATE import_runs SET holder = '', state = 'waiting', attempts = attempts - 1
WHERE holder = ? AND ended_at IS NULL
"""

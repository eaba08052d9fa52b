"""Records of imports: runs and when the next one is due, parts as last read, hints of events.

Each importer has at most one run in progress. If a run's process dies, another process takes the
run and starts it again. `check_run` keeps the previous process from writing anything more.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

from factbook.clock import DAY, MINUTE, SECOND
from factbook.errors import PreconditionFailedError
from factbook.events.store import append_events, make_held_row
from factbook.importers.merge import Doubt
from factbook.importers.snapshot import ReadingProblem, name_set
from factbook.storage import Database, Row, Transaction
from factbook.storage.database import take_numbers

# Runs kept per importer.
RUNS_KEPT: Final = 50
_LONGEST_ERROR: Final = 1_000

RunReason = Literal["cadence", "asked", "command"]

# Pause after the first incomplete run; doubles with each further one.
FIRST_PAUSE: Final = 5 * MINUTE
_MOST_DOUBLINGS: Final = 10
# The longest pause for a rate limit.
_LONGEST_PAUSE: Final = DAY
# Tolerated difference between the clocks of machines.
_CLOCK_DIFFERENCE: Final = MINUTE

# More are counted, and not kept.
_MOST_PROBLEMS: Final = 1_000

_READ_MEANWHILE: Final = "The part {}/{} was read or decided on meanwhile; nothing was written."

# Events within this time share one reading.
COALESCED: Final = 5 * SECOND
# How long delivery ids are remembered, to recognize repeats.
_REMEMBERED: Final = DAY
# How long overdue hints stay, for instance those of a removed importer.
_ABANDONED: Final = 7 * DAY
_MOST_HINT_ATTEMPTS: Final = 5


class LostRunError(Exception):
    """Another process took or ended the run: its results must not be written."""


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


async def get_latest_runs(database: Database) -> dict[str, ImportRun]:
    """The last run of each importer, by its id."""
    rows = await database.all(_LATEST_RUNS)
    return {run.importer: run for run in map(ImportRun._make, rows)}


async def get_latest_ended_runs(database: Database) -> dict[str, ImportRun]:
    """The last run of each importer that has ended, by its id."""
    rows = await database.all(_LATEST_ENDED_RUNS)
    return {run.importer: run for run in map(ImportRun._make, rows)}


async def list_importers_run_since(database: Database, time: int) -> list[str]:
    """The importers of which a run was begun since then."""
    rows = await database.all(_BEGUN_SINCE, (time,))
    return [importer for (importer,) in rows]


async def list_recent_import_runs(
    database: Database, importer: str, limit: int = RUNS_KEPT
) -> list[ImportRun]:
    """The last runs of an importer, newest first."""
    return [ImportRun._make(row) for row in await database.all(_RECENT_RUNS, (importer, limit))]


def request_run(transaction: Transaction, importer: str, now: int) -> ImportRun:
    """Ask for a run; returns the one that waits or is under way, if there is one."""
    before = _lock_newest_run(transaction, importer)
    if before is not None and before.ended_at is None:
        return before
    return _add_run(transaction, importer, "asked", now, before)


def begin_import_run(
    transaction: Transaction, importer: str, seen: ImportRun | None, holder: str, now: int
) -> ImportRun | None:
    """Begin an attempt at the run under way, or else at a new one by the cadence.

    `seen` is the last run as it was known. None if another process came first.
    """
    run = _lock_newest_run(transaction, importer)
    if run != seen:
        return None
    if run is None or run.ended_at is not None:
        run = _add_run(transaction, importer, "cadence", now, run)
    return _begin_attempt(transaction, run, holder, now)


def check_run(transaction: Transaction, run: ImportRun) -> None:
    """Raise LostRunError unless the attempt still has its run; locks the run."""
    if not transaction.run(_CHECK_RUN, (run.id, run.holder, run.attempts)):
        raise LostRunError


def end_import_run(
    transaction: Transaction, run: ImportRun, outcome: RunOutcome, now: int
) -> ImportRun:
    """End a run; raises LostRunError if the attempt no longer holds it."""
    check_run(transaction, run)
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
    transaction.run(_END_RUN, (*ended[5:8], *ended[9:], run.id))
    transaction.run(_FORGET_RUNS, (run.importer, run.importer, RUNS_KEPT))
    return ended


def add_ended_run(
    transaction: Transaction, importer: str, started_at: int, outcome: RunOutcome, now: int
) -> None:
    """Add a run of a command that has ended, unless another is under way."""
    before = _lock_newest_run(transaction, importer)
    if before is not None and before.ended_at is None:
        return
    run = _add_run(transaction, importer, "command", started_at, before)
    end_import_run(
        transaction, _begin_attempt(transaction, run, "command", started_at), outcome, now
    )


def release_runs(transaction: Transaction, holder: str) -> None:
    """Release the runs of a process to others, as if never begun."""
    transaction.run(_RELEASE_RUNS, (holder,))


def forget_runs(transaction: Transaction, importer: str) -> None:
    """Delete every run of an importer."""
    transaction.run("DELETE FROM import_runs WHERE importer = ?", (importer,))


def _lock_newest_run(transaction: Transaction, importer: str) -> ImportRun | None:
    # A lock, since there may be no row to lock.
    transaction.lock(f"import run {importer}")
    row = transaction.one(_RECENT_RUNS, (importer, 1))
    return None if row is None else ImportRun._make(row)


def _add_run(
    transaction: Transaction, importer: str, reason: RunReason, now: int, before: ImportRun | None
) -> ImportRun:
    [id_] = take_numbers(transaction, "import run")
    failures = before.failures if before else 0
    run = ImportRun(id_, importer, reason, now, None, None, "waiting", "", 0, failures)
    transaction.insert("import_runs", ImportRun._fields, [run])
    return run


def _begin_attempt(transaction: Transaction, run: ImportRun, holder: str, now: int) -> ImportRun:
    transaction.run(_BEGIN_ATTEMPT, (now, holder, run.id))
    attempts = run.attempts + 1
    return run._replace(started_at=now, holder=holder, state="running", attempts=attempts)


def compute_next_start(every: int | None, last: ImportRun | None, now: int) -> int | None:
    """The time of the next run by itself; None if there is none, or one is under way.

    A time in the past is due.
    """
    if every is None:
        return None
    if last is None or last.started_at is None:
        return now
    if last.ended_at is None:
        return None
    if last.started_at > now + _CLOCK_DIFFERENCE:
        # By a clock that was set back since.
        return now
    due = last.started_at + every
    if last.failures:
        pause = FIRST_PAUSE << min(last.failures - 1, _MOST_DOUBLINGS)
        due = min(due, last.ended_at + pause)
    if last.resumes_at is not None:
        due = max(due, min(last.resumes_at, last.ended_at + _LONGEST_PAUSE))
    return due


class ImportPartRecord(NamedTuple):
    """A part after its last reading.

    `state` is complete, partial or held; `complete_at` is the time of the last complete reading,
    None if there was none. `rights` are those of the last trusted reading, `seen_rights` those of
    the last one.
    """

    importer: str
    part: str
    state: str
    read_at: int
    complete_at: int | None
    items: int
    problem_count: int
    problems: Sequence[ReadingProblem] = ()
    held: Sequence[str] = ()
    reason: str = ""
    spared: Sequence[str] = ()
    rights: Sequence[str] = ()
    seen_rights: Sequence[str] = ()

    @property
    def tag(self) -> str:
        """Tag that differs after each reading of everything, and when less is held."""
        return f"{self.read_at}-{len(self.held)}"

    @property
    def doubt(self) -> Doubt:
        """Knowledge of this part for the guards of the next reading."""
        return Doubt(frozenset(self.rights), frozenset(self.spared))


async def list_part_records(
    database: Database, importer: str | None = None
) -> list[ImportPartRecord]:
    """Every part, or those of one importer, in order."""
    where, given = ("", ()) if importer is None else (" WHERE importer = ?", (importer,))
    rows = await database.all(f"{_READ_PARTS}{where} ORDER BY importer, part", given)
    return [_parse_part_record(row) for row in rows]


async def get_part_record(database: Database, importer: str, part: str) -> ImportPartRecord | None:
    """A part; None before its first reading."""
    row = await database.one(f"{_READ_PARTS} WHERE importer = ? AND part = ?", (importer, part))
    return None if row is None else _parse_part_record(row)


def save_part_record(
    transaction: Transaction, record: ImportPartRecord, before: ImportPartRecord | None
) -> None:
    """Store a part after a reading or a decision that began with `before`.

    Removals that are held now, and were not before, are an event.
    Raises PreconditionFailedError if another reading or decision came meanwhile.
    """
    which = (record.importer, record.part)
    # A lock, since a part that was never read has no row to lock.
    transaction.lock("import {}/{}".format(*which))
    row = transaction.one(f"{_READ_PARTS} WHERE importer = ? AND part = ?", which)
    if (None if row is None else _parse_part_record(row)) != before:
        raise PreconditionFailedError(_READ_MEANWHILE.format(*which))
    replace_part_record(transaction, record)
    if record.held and (before is None or set(record.held) - set(before.held)):
        told = make_held_row(name_set(*which), len(record.held), record.reason)
        append_events(transaction, [told], record.read_at)


def replace_part_record(transaction: Transaction, record: ImportPartRecord) -> None:
    """Store a part, whatever was known of it."""
    lists = (record.held, record.spared, record.rights, record.seen_rights)
    held, spared, rights, seen = (_encode_list(sorted(one)) for one in lists)
    problems = _encode_list(record.problems[:_MOST_PROBLEMS])
    transaction.run(
        _SAVE_PART, (*record[:7], problems, held, record.reason, spared, rights, seen)
    )  # fmt: skip


def _parse_part_record(row: Row) -> ImportPartRecord:
    plain, (problems, held, reason, *lists) = row[:7], row[7:]
    found = msgspec.json.decode(problems, type=list[ReadingProblem])
    spared, rights, seen_rights = map(_decode_text_list, lists)
    values = (*plain, found, _decode_text_list(held), reason, spared, rights, seen_rights)
    return ImportPartRecord._make(values)


def _decode_text_list(text: str) -> list[str]:
    return msgspec.json.decode(text, type=list[str])


def _encode_list(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()


class GivenHint(NamedTuple):
    """Hint of an importer; `given` counts how often it was given, also while it was followed."""

    importer: str
    hint: str
    due_at: int
    given: int
    attempts: int


def remember_delivery(transaction: Transaction, importer: str, delivery: str, now: int) -> bool:
    """Remember a delivery; returns false for one that was seen before."""
    transaction.run("DELETE FROM import_deliveries WHERE received_at <= ?", (now - _REMEMBERED,))
    transaction.run("DELETE FROM import_hints WHERE due_at <= ?", (now - _ABANDONED,))
    return bool(transaction.run(_ADD_DELIVERY, (importer, delivery, now)))


def give_hints(transaction: Transaction, importer: str, hints: Iterable[str], now: int) -> None:
    """Give hints; one that waits keeps its time."""
    for hint in sorted(hints):
        transaction.run(_GIVE_HINT, (importer, hint, now + COALESCED))


async def get_due_hints(database: Database, importers: Iterable[str], now: int) -> list[GivenHint]:
    """The hints of these importers whose time has come."""
    rows = await database.all(_DUE_HINTS, (list(importers), now))
    return [GivenHint(*row) for row in rows]


async def count_waiting_hints(database: Database) -> tuple[int, int | None]:
    """The number of hints that wait, counted up to 10,000, and the time of the earliest."""
    row = await database.one(_WAITING_HINTS)
    return (row[0], row[1]) if row else (0, None)


def forget_followed_hints(transaction: Transaction, hints: Sequence[GivenHint], now: int) -> None:
    """Delete followed hints, except those given again meanwhile."""
    for hint in hints:
        which = (hint.importer, hint.hint)
        transaction.run(_FORGET_FOLLOWED, (*which, hint.given))
        transaction.run(_FOLLOW_AGAIN, (now + COALESCED, *which))


def postpone_hints(transaction: Transaction, hints: Sequence[GivenHint], now: int) -> None:
    """Follow hints later; a hint tried too often is left to the next full reading."""
    for hint in hints:
        which = (hint.importer, hint.hint)
        if hint.attempts + 1 >= _MOST_HINT_ATTEMPTS:
            transaction.run(_FORGET_FOLLOWED, (*which, hint.given))
        else:
            pause = MINUTE << hint.attempts
            transaction.run(_POSTPONE_HINT, (now + pause, *which))


def forget_hints(transaction: Transaction, importer: str) -> None:
    """Delete every hint and delivery of an importer."""
    transaction.run("DELETE FROM import_hints WHERE importer = ?", (importer,))
    transaction.run("DELETE FROM import_deliveries WHERE importer = ?", (importer,))


_LATEST_RUNS: Final = """
SELECT id, importer, reason, asked_at, started_at, ended_at, state, holder, attempts, failures,
    calls, calls_left, resumes_at, error
FROM import_runs WHERE id IN (SELECT MAX(id) FROM import_runs GROUP BY importer)
"""

_LATEST_ENDED_RUNS: Final = _LATEST_RUNS.replace("GROUP BY", "WHERE ended_at IS NOT NULL GROUP BY")

_BEGUN_SINCE: Final = "SELECT DISTINCT importer FROM import_runs WHERE started_at >= ?"

_RECENT_RUNS: Final = """
SELECT id, importer, reason, asked_at, started_at, ended_at, state, holder, attempts, failures,
    calls, calls_left, resumes_at, error
FROM import_runs WHERE importer = ? ORDER BY id DESC LIMIT ?
"""

_BEGIN_ATTEMPT: Final = """
UPDATE import_runs SET started_at = ?, holder = ?, state = 'running', attempts = attempts + 1
WHERE id = ?
"""

# It changes nothing, and holds the row until the transaction ends.
_CHECK_RUN: Final = """
UPDATE import_runs SET holder = holder
WHERE id = ? AND holder = ? AND attempts = ? AND ended_at IS NULL
"""

_END_RUN: Final = """
UPDATE import_runs SET ended_at = ?, state = ?, holder = ?, failures = ?, calls = ?,
    calls_left = ?, resumes_at = ?, error = ?
WHERE id = ?
"""

_FORGET_RUNS: Final = """
DELETE FROM import_runs WHERE importer = ? AND id <= (
    SELECT id FROM import_runs WHERE importer = ? ORDER BY id DESC LIMIT 1 OFFSET ?
)
"""

_RELEASE_RUNS: Final = """
UPDATE import_runs SET holder = '', state = 'waiting', attempts = attempts - 1
WHERE holder = ? AND ended_at IS NULL
"""

_READ_PARTS: Final = """
SELECT importer, part, state, read_at, complete_at, items, problem_count, problems, held, reason,
    spared, rights, seen_rights FROM import_parts
"""

_SAVE_PART: Final = """
INSERT INTO import_parts (importer, part, state, read_at, complete_at, items, problem_count,
    problems, held, reason, spared, rights, seen_rights)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (importer, part) DO UPDATE SET state = excluded.state, read_at = excluded.read_at,
    complete_at = excluded.complete_at, items = excluded.items,
    problem_count = excluded.problem_count, problems = excluded.problems, held = excluded.held,
    reason = excluded.reason, spared = excluded.spared, rights = excluded.rights,
    seen_rights = excluded.seen_rights
"""

_ADD_DELIVERY: Final = """
INSERT INTO import_deliveries (importer, delivery, received_at) VALUES (?, ?, ?)
ON CONFLICT DO NOTHING
"""

_GIVE_HINT: Final = """
INSERT INTO import_hints (importer, hint, due_at, given, attempts) VALUES (?, ?, ?, 1, 0)
ON CONFLICT (importer, hint) DO UPDATE SET given = import_hints.given + 1, attempts = 0,
    due_at = CASE WHEN excluded.due_at < import_hints.due_at
        THEN excluded.due_at ELSE import_hints.due_at END
"""

_DUE_HINTS: Final = """
SELECT importer, hint, due_at, given, attempts FROM import_hints
WHERE importer IN LIST(?) AND due_at <= ? ORDER BY importer, hint
"""

_WAITING_HINTS: Final = """
SELECT COUNT(*), MIN(due_at)
FROM (SELECT due_at FROM import_hints ORDER BY due_at LIMIT 10000) AS earliest
"""

_FORGET_FOLLOWED: Final = "DELETE FROM import_hints WHERE importer = ? AND hint = ? AND given = ?"

_FOLLOW_AGAIN: Final = "UPDATE import_hints SET due_at = ? WHERE importer = ? AND hint = ?"

_POSTPONE_HINT: Final = """
UPDATE import_hints SET due_at = ?, attempts = attempts + 1 WHERE importer = ? AND hint = ?
"""

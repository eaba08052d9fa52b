"""Run records: figures, gaps, abandoned batches, the health of each source, and old-run sweeps."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from factbook.clock import HOUR, iso
from factbook.events.store import append_events, make_source_row
from factbook.storage import Database, Row, Transaction

# Reasons may name times and addresses; beyond this number per run, only the first word is kept.
MOST_GAPS: Final = 200
# Runs kept per source; full and requested runs are counted separately.
RUNS_KEPT = 50
# A run that no worker takes, for instance because its source is no longer configured.
_ABANDONED_AFTER = HOUR


class RunGap(NamedTuple):
    """Missing facts at a place, with the reason; the place "" is everything about an entity.

    `passing`: they could not be requested, so the last values are kept for a while. `final`:
    according to the vendor they do not exist, or may not be read. `skipped`: the entity does not
    identify a target.
    """

    place: str
    reason: str
    kind: Literal["passing", "final", "skipped"]


class CountedGap(NamedTuple):
    """A gap with the number of entities that have it."""

    place: str
    reason: str
    kind: str
    entities: int


def add_gaps(transaction: Transaction, run_id: int, gaps: Mapping[RunGap, int]) -> None:
    """Add to the counts of a run's gaps."""
    if not gaps:
        return
    row = transaction.one("SELECT COUNT(*) FROM run_gaps WHERE run_id = ?", (run_id,))
    is_full = row is not None and row[0] + len(gaps) > MOST_GAPS
    folded: dict[RunGap, int] = {}
    for gap, count in gaps.items():
        short = gap._replace(reason=gap.reason.partition(":")[0]) if is_full else gap
        folded[short] = folded.get(short, 0) + count
    # In a fixed order: two writers of the same rows could deadlock.
    transaction.many(_ADD_GAP, [(run_id, *gap, folded[gap]) for gap in sorted(folded)])


def select_gaps(transaction: Transaction, run_id: int) -> list[CountedGap]:
    """The gaps of a run, most frequent first."""
    return [CountedGap(*row) for row in transaction.all(_GAPS_OF_RUN, (run_id,))]


async def list_gaps(database: Database, run_id: int) -> list[CountedGap]:
    """The gaps of a run, most frequent first."""
    return [CountedGap(*row) for row in await database.all(_GAPS_OF_RUN, (run_id,))]


def delete_gaps(transaction: Transaction, run_ids: list[int]) -> None:
    """Delete the gaps of these runs."""
    transaction.run("DELETE FROM run_gaps WHERE run_id IN LIST(?)", (run_ids,))


def find_main_gap(gaps: Iterable[CountedGap], asked: int) -> str | None:
    """The main reason for the gaps of a run over `asked` entities; None if there is none.

    Facts that could not be requested come first, then rights that the credential lacks for every
    entity, then entities that the vendor refused entirely.
    """
    every = list(gaps)
    final = [gap for gap in every if gap.kind == "final"]
    refused_to_all = [
        gap for gap in final if gap.entities >= asked and gap.reason.startswith("forbidden")
    ]
    first = [gap for gap in every if gap.kind == "passing"] + refused_to_all
    whole = [gap for gap in final if not gap.place]
    worst = max(first or whole, key=lambda gap: (gap.entities, gap.reason), default=None)
    return None if worst is None else worst.reason


class GivenUpBatch(NamedTuple):
    """A batch, how often it was begun, and when it was given up."""

    run_id: int
    number: int
    source_id: str
    work: str
    attempts: int
    given_up_at: int


def record_given_up_batch(transaction: Transaction, batch: GivenUpBatch) -> None:
    """List the batch."""
    transaction.insert("given_up_batches", GivenUpBatch._fields, [batch])


async def list_given_up_batches(
    database: Database, source_id: str | None = None
) -> list[GivenUpBatch]:
    """The batches of a source that were given up, or of all, newest first."""
    rows = await database.all(_GIVEN_UP_BATCHES, (source_id, source_id))
    return [GivenUpBatch(*row) for row in rows]


def take_given_up_work(transaction: Transaction, source_id: str) -> list[str]:
    """Take the batches of a source off the list; returns their work."""
    return [work for (work,) in transaction.all(_TAKE_GIVEN_UP, (source_id,))]


def delete_given_up_batches(transaction: Transaction, source_id: str, before: int) -> None:
    """Delete the batches of a source's runs before this one."""
    transaction.run(_DELETE_GIVEN_UP, (source_id, before))


class RunRecord(NamedTuple):
    """A run and its figures; `covered`, `failed`, `skipped` and `incomplete` count entities.

    An `incomplete` entity is also covered, but some of its facts could not be requested. While it
    runs, a rate limit lets it resume at `resumes_at`, which may be past.
    """

    id: int
    source_id: str
    whole: bool
    reason: str
    started_at: int
    deadline: int
    finished_at: int | None
    entities: int
    covered: int
    failed: int
    skipped: int
    calls: int
    rate_limit_left: int | None
    error: str | None
    incomplete: int = 0
    resumes_at: int | None = None

    @property
    def left(self) -> int:
        """The number of remaining entities."""
        return max(0, self.entities - self.covered - self.failed)

    def wait(self, now: int) -> str:
        """A phrase about the rate-limit wait and the remaining entities; empty without a wait."""
        if self.resumes_at is None or self.resumes_at <= now:
            return ""
        day, time = iso(self.resumes_at).split("T")
        moment = time[:5] if iso(now).startswith(day) else f"{day} {time[:5]}"
        left = f"{self.left:,} of {self.entities:,} entities left"
        return f"waiting for the rate limit until {moment} UTC, {left}"

    @property
    def state(self) -> Literal["running", "done", "partial", "failed"]:
        """`failed`: nothing was collected; `partial`: something could not be requested."""
        if self.finished_at is None:
            return "running"
        if self.error is None and not self.failed and not self.incomplete:
            return "done"
        return "partial" if self.covered else "failed"

    @property
    def duration(self) -> int | None:
        """Milliseconds from start to end."""
        return None if self.finished_at is None else self.finished_at - self.started_at


class EndedRun(NamedTuple):
    """A run that has just ended, and the change of its source to down or up, if any."""

    run: RunRecord
    change: Literal["down", "up"] | None


class SourceHealth(NamedTuple):
    """The health of a source: its current run, the last completed one, and its recent record."""

    running: RunRecord | None
    last: RunRecord | None
    succeeded_at: int | None
    down_since: int | None
    credential_expires_at: int | None


class EndedStart(NamedTuple):
    """The start of the last run of a source that ended, and its last success, if any."""

    started_at: int
    succeeded_at: int | None


class Starts(NamedTuple):
    """The last start of each source, and the sources with a run in progress."""

    last: dict[str, int]
    running: frozenset[str]


def end_run(transaction: Transaction, run_id: int, now: int) -> EndedRun | None:
    """End the run if none of its batches is left; None otherwise."""
    row = transaction.one(_END_RUN, (now, run_id, run_id))
    if row is None:
        return None
    run = _parse_run(row)
    if reason := find_main_gap(select_gaps(transaction, run_id), run.covered + run.failed):
        run = run._replace(error=reason)
        transaction.run("UPDATE runs SET error = ? WHERE id = ?", (reason, run_id))
    if not run.whole:
        return EndedRun(run, None)
    delete_given_up_batches(transaction, run.source_id, run.id)
    return EndedRun(run, _record_source_state(transaction, run, now))


async def fetch_starts(database: Database, until: int) -> Starts:
    """The state that determines the next starts of all sources.

    Starts after `until` come from a clock that was set back since, and are ignored.
    """
    rows = await database.all(_STARTS, (until,))
    running = await database.all(_CURRENT_RUNS)
    return Starts(dict(rows), frozenset(source_id for (source_id,) in running))


async def fetch_ended_starts(database: Database) -> dict[str, EndedStart]:
    """The last ended full run, by source id."""
    return {id_: EndedStart(*rest) for id_, *rest in await database.all(_ENDED_STARTS)}


async def fetch_run(database: Database, run_id: int) -> RunRecord | None:
    """The run with this id."""
    row = await database.one(f"SELECT {RUN_COLUMNS} FROM runs WHERE id = ?", (run_id,))
    return _parse_run(row) if row else None


async def list_recent_runs(database: Database, source_id: str, limit: int) -> list[RunRecord]:
    """The last runs of a source, newest first."""
    return [_parse_run(row) for row in await database.all(_RECENT_RUNS, (source_id, limit))]


def find_current_run(transaction: Transaction, source_id: str) -> int | None:
    """The id of the source's full run in progress."""
    row = transaction.one(_CURRENT_RUN, (source_id,))
    return row[0] if row else None


async def fetch_health(database: Database) -> dict[str, SourceHealth]:
    """The health of every source that ever ran, by source id."""
    states = {row[0]: row[1:] for row in await database.all(_SOURCE_STATES)}
    newest: dict[str, list[RunRecord]] = {}
    for row in await database.all(_NEWEST_RUNS):
        newest.setdefault(row[1], []).append(_parse_run(row))
    return {
        source_id: _build_health(found, states.get(source_id))
        for source_id, found in newest.items()
    }


async def fetch_source_health(database: Database, source_id: str) -> SourceHealth | None:
    """The health of one source; None if it never ran."""
    found = [_parse_run(row) for row in await database.all(_NEWEST_RUNS_OF_SOURCE, (source_id,))]
    state = await database.one(f"{_SOURCE_STATES} WHERE source_id = ?", (source_id,))
    if not found and state is None:
        return None
    return _build_health(found, state and state[1:])


async def fetch_outages(database: Database, source_ids: Sequence[str]) -> dict[str, int]:
    """The start of the outage of each of these sources that is down."""
    return dict(await database.all(_OUTAGES, (list(source_ids),)))


def record_credential_expiry(transaction: Transaction, source_id: str, expires_at: int) -> None:
    """Record the expiry time of a source's credential."""
    transaction.run(_RECORD_EXPIRY, (source_id, expires_at))


async def sweep_runs(database: Database, now: int) -> int:
    """Delete old runs, and end abandoned ones; returns the number of both."""
    # Read outside the transaction, to keep writers from waiting.
    given_up = await database.search(_WITHOUT_WORKER, (now - _ABANDONED_AFTER,))
    old = await database.search(_OLD_RUNS, (RUNS_KEPT,))
    old_ids = [id_ for (id_,) in old]

    def end_and_delete(transaction: Transaction) -> None:
        if given_up:
            ids = [id_ for (id_,) in given_up]
            transaction.run(_GIVE_UP_RUNS, ("no worker took it", now, ids))
            transaction.run(_DELETE_ENDED_BATCHES)
        transaction.run("DELETE FROM runs WHERE id IN LIST(?)", (old_ids,))
        delete_gaps(transaction, old_ids)

    if given_up or old:
        await database.write(end_and_delete)
    return len(given_up) + len(old)


def delete_source_runs(transaction: Transaction, source_id: str) -> None:
    """Delete every run of a source, its batches and its health."""
    transaction.run(_DELETE_SOURCE_BATCHES, (source_id,))
    transaction.run("DELETE FROM runs WHERE source_id = ?", (source_id,))
    transaction.run("DELETE FROM source_health WHERE source_id = ?", (source_id,))
    take_given_up_work(transaction, source_id)


def _record_source_state(
    transaction: Transaction, ended: RunRecord, now: int
) -> Literal["down", "up"] | None:
    """Record the state of the source; returns its change, if any."""
    row = transaction.one(
        "SELECT down_since FROM source_health WHERE source_id = ?", (ended.source_id,)
    )
    was_down = row is not None and row[0] is not None
    if ended.state == "failed":
        transaction.run(_MARK_DOWN, (ended.source_id, now))
        change: Literal["down", "up"] | None = None if was_down else "down"
    else:
        transaction.run(_MARK_UP, (ended.source_id, now))
        change = "up" if was_down else None
    if change is not None:
        reason = ended.error if change == "down" else None
        append_events(transaction, [make_source_row(ended.source_id, change, reason)], now)
    return change


def _build_health(newest: Sequence[RunRecord], state: Row | None) -> SourceHealth:
    """The health of a source with these runs, the newest first."""
    running = next((one for one in newest if one.finished_at is None), None)
    last = next((one for one in newest if one.finished_at is not None), None)
    return SourceHealth(running, last, *(state or (None, None, None)))


def _parse_run(row: tuple[object, ...]) -> RunRecord:
    found = RunRecord(*row)  # type: ignore[arg-type]
    return found._replace(whole=bool(found.whole))


async def list_followed_runs(database: Database, limit: int) -> dict[int, RunRecord]:
    """Full runs in progress, and the last `limit` that were begun, by id."""
    found = [RunRecord(*row) for row in await database.all(_FOLLOWED_RUNS, (limit,))]
    return {run.id: run._replace(whole=bool(run.whole)) for run in found}


_ADD_GAP = """
INSERT INTO run_gaps (run_id, place, reason, kind, entities) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (run_id, place, reason, kind) DO UPDATE SET
    entities = run_gaps.entities + excluded.entities
"""

_GAPS_OF_RUN = """
SELECT place, reason, kind, entities FROM run_gaps WHERE run_id = ?
ORDER BY entities DESC, reason, place
"""


_GIVEN_UP_BATCHES = """
SELECT run_id, number, source_id, work, attempts, given_up_at FROM given_up_batches
WHERE CAST(? AS TEXT) IS NULL OR source_id = ? ORDER BY run_id DESC, number
"""

_TAKE_GIVEN_UP = "DELETE FROM given_up_batches WHERE source_id = ? RETURNING work"

_DELETE_GIVEN_UP = "DELETE FROM given_up_batches WHERE source_id = ? AND run_id < ?"


_STORED_COLUMNS = ", ".join(RunRecord._fields[:-1])

# The columns of a RunRecord of the table `runs`.
RUN_COLUMNS = f"""
{_STORED_COLUMNS}, CASE WHEN finished_at IS NULL THEN (
    SELECT MIN(q.not_before) FROM batches b JOIN queues q ON q.name = b.queue
    WHERE b.run_id = runs.id AND q.not_before > 0
) END AS resumes_at
"""

_END_RUN = f"""
UPDATE runs SET finished_at = ? WHERE id = ? AND finished_at IS NULL
AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = ?) RETURNING {_STORED_COLUMNS}
"""

_RECENT_RUNS = f"SELECT {RUN_COLUMNS} FROM runs WHERE source_id = ? ORDER BY id DESC LIMIT ?"

_CURRENT_RUN = "SELECT id FROM runs WHERE source_id = ? AND whole = 1 AND finished_at IS NULL"

# Jumps from source to source in the index: reading all runs would be many rows.
_SOURCES = """
WITH RECURSIVE sources (id) AS (
    SELECT MIN(source_id) FROM runs
    UNION ALL
    SELECT (SELECT MIN(r.source_id) FROM runs r WHERE r.source_id > s.id) FROM sources s
    WHERE s.id IS NOT NULL
)"""

_STARTS = f"""
{_SOURCES}, last (id, started_at) AS (
    SELECT s.id, (
        SELECT r.started_at FROM runs r
        WHERE r.source_id = s.id AND r.whole = 1 AND r.started_at <= ?
        ORDER BY r.id DESC LIMIT 1
    ) FROM sources s WHERE s.id IS NOT NULL
)
SELECT id, started_at FROM last WHERE started_at IS NOT NULL
"""

_ENDED_STARTS = f"""
{_SOURCES}, last (id, started_at) AS (
    SELECT s.id, (
        SELECT r.started_at FROM runs r
        WHERE r.source_id = s.id AND r.whole = 1 AND r.finished_at IS NOT NULL
        ORDER BY r.id DESC LIMIT 1
    ) FROM sources s WHERE s.id IS NOT NULL
)
SELECT last.id, last.started_at, h.succeeded_at
FROM last LEFT JOIN source_health h ON h.source_id = last.id WHERE last.started_at IS NOT NULL
"""

_CURRENT_RUNS = "SELECT source_id FROM runs WHERE whole = 1 AND finished_at IS NULL"

_SOURCE_STATES = (
    "SELECT source_id, succeeded_at, down_since, credential_expires_at FROM source_health"
)

# The run in progress, if any, and the run before it.
_NEWEST_RUNS = f"""
SELECT {", ".join(RunRecord._fields)} FROM (
    SELECT {RUN_COLUMNS}, ROW_NUMBER() OVER (PARTITION BY source_id ORDER BY id DESC) AS place
    FROM runs WHERE whole = 1
) placed WHERE place <= 2 ORDER BY id DESC
"""

_NEWEST_RUNS_OF_SOURCE = f"""
SELECT {RUN_COLUMNS} FROM runs WHERE source_id = ? AND whole = 1 ORDER BY id DESC LIMIT 2
"""

_MARK_DOWN = """
INSERT INTO source_health (source_id, down_since) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET
    down_since = COALESCE(source_health.down_since, excluded.down_since)
"""

_OUTAGES = """
SELECT source_id, down_since FROM source_health
WHERE source_id IN LIST(?) AND down_since IS NOT NULL
"""

_MARK_UP = """
INSERT INTO source_health (source_id, succeeded_at) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET succeeded_at = excluded.succeeded_at, down_since = NULL
"""

_RECORD_EXPIRY = """
INSERT INTO source_health (source_id, credential_expires_at) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET credential_expires_at = excluded.credential_expires_at
"""

_WITHOUT_WORKER = "SELECT id FROM runs WHERE finished_at IS NULL AND deadline < ?"

_GIVE_UP_RUNS = """
UPDATE runs SET error = ?, failed = entities - covered, finished_at = ?
WHERE finished_at IS NULL AND id IN LIST(?)
"""

_DELETE_SOURCE_BATCHES = """
DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE source_id = ?)
"""

_DELETE_ENDED_BATCHES = """
DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE finished_at IS NOT NULL)
"""

_OLD_RUNS = f"""
{_SOURCES}, kinds (whole) AS (VALUES (0), (1)), newest (source_id, whole, id) AS (
    SELECT s.id, k.whole, (
        SELECT r.id FROM runs r WHERE r.source_id = s.id AND r.whole = k.whole
        ORDER BY r.id DESC LIMIT 1 OFFSET ?
    ) FROM sources s CROSS JOIN kinds k WHERE s.id IS NOT NULL
)
SELECT r.id FROM newest n CROSS JOIN runs r
WHERE r.source_id = n.source_id AND r.whole = n.whole AND r.id <= n.id
    AND r.finished_at IS NOT NULL
"""


_FOLLOWED_RUNS: Final = """
SELECT {read} FROM runs WHERE whole = 1 AND finished_at IS NULL
UNION SELECT {fields} FROM (SELECT {read} FROM runs ORDER BY id DESC LIMIT ?) newest
""".replace("{read}", RUN_COLUMNS).replace("{fields}", ", ".join(RunRecord._fields))

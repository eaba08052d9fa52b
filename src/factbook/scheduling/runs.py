"""Past runs: their figures, the health of each source, and the deletion of old runs."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from factbook.clock import HOUR, iso
from factbook.events import event
from factbook.events import store as events
from factbook.scheduling import gaps, given_up
from factbook.storage import Database, Row, Transaction

# Runs of each source that are kept, of everything and asked for, counted apart.
KEPT = 50
# A run that no worker takes, for instance because its source is not configured any more.
_ABANDONED = HOUR


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
        """The number of entities that are not done."""
        return max(0, self.entities - self.covered - self.failed)

    def wait(self, now: int) -> str:
        """The wait for a rate limit, with what is left, as words of a sentence; empty if none."""
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


def end(transaction: Transaction, run_id: int, now: int) -> EndedRun | None:
    """End the run if none of its batches is left; None otherwise."""
    row = transaction.one(_END, (now, run_id, run_id))
    if row is None:
        return None
    run = _run(row)
    if reason := gaps.commonest(gaps.of_run(transaction, run_id), run.covered + run.failed):
        run = run._replace(error=reason)
        transaction.run("UPDATE runs SET error = ? WHERE id = ?", (reason, run_id))
    if not run.whole:
        return EndedRun(run, None)
    given_up.forget(transaction, run.source_id, run.id)
    return EndedRun(run, _change(transaction, run, now))


async def starts(database: Database, until: int) -> Starts:
    """The state that determines the next starts of all sources.

    Starts after `until` were recorded by a clock that was set back since.
    """
    rows = await database.all(_STARTS, (until,))
    running = await database.all(_ALL_UNDER_WAY)
    return Starts(dict(rows), frozenset(source_id for (source_id,) in running))


async def ended_starts(database: Database) -> dict[str, EndedStart]:
    """The last run of everything that has ended, by source id."""
    return {id_: EndedStart(*rest) for id_, *rest in await database.all(_ENDED_STARTS)}


async def run(database: Database, run_id: int) -> RunRecord | None:
    """The run with this id."""
    row = await database.one(f"SELECT {READ} FROM runs WHERE id = ?", (run_id,))
    return _run(row) if row else None


async def recent(database: Database, source_id: str, limit: int) -> list[RunRecord]:
    """The last runs of a source, newest first."""
    return [_run(row) for row in await database.all(_RECENT, (source_id, limit))]


def under_way(transaction: Transaction, source_id: str) -> int | None:
    """The id of the source's run of everything that is in progress."""
    row = transaction.one(_UNDER_WAY, (source_id,))
    return row[0] if row else None


async def health(database: Database) -> dict[str, SourceHealth]:
    """The health of every source that ever ran, by source id."""
    states = {row[0]: row[1:] for row in await database.all(_STATES)}
    newest: dict[str, list[RunRecord]] = {}
    for row in await database.all(_NEWEST):
        newest.setdefault(row[1], []).append(_run(row))
    return {source_id: _health(found, states.get(source_id)) for source_id, found in newest.items()}


async def health_of(database: Database, source_id: str) -> SourceHealth | None:
    """The health of one source; None if it never ran."""
    found = [_run(row) for row in await database.all(_NEWEST_OF_ONE, (source_id,))]
    state = await database.one(f"{_STATES} WHERE source_id = ?", (source_id,))
    if not found and state is None:
        return None
    return _health(found, state and state[1:])


async def down_since(database: Database, source_ids: Sequence[str]) -> dict[str, int]:
    """The start of the outage of each of these sources that is down."""
    return dict(await database.all(_ARE_DOWN, (list(source_ids),)))


def note_expiry(transaction: Transaction, source_id: str, expires_at: int) -> None:
    """Record the expiry time of a source's credential."""
    transaction.run(_EXPIRES, (source_id, expires_at))


async def sweep(database: Database, now: int) -> int:
    """Delete old runs, and give up abandoned ones; returns the number of both."""
    # Looked for before, as others write meanwhile.
    given_up = await database.search(_WITHOUT_WORKER, (now - _ABANDONED,))
    old = await database.search(_OLD, (KEPT,))
    if given_up or old:
        ids = [id_ for (id_,) in given_up], [id_ for (id_,) in old]
        await database.write(lambda transaction: _sweep(transaction, *ids, now))
    return len(given_up) + len(old)


def forget_source(transaction: Transaction, source_id: str) -> None:
    """Delete every run of a source, its batches and its health."""
    transaction.run(_FORGET_BATCHES, (source_id,))
    transaction.run("DELETE FROM runs WHERE source_id = ?", (source_id,))
    transaction.run("DELETE FROM source_health WHERE source_id = ?", (source_id,))
    given_up.take(transaction, source_id)


def _sweep(transaction: Transaction, given_up: list[int], old: list[int], now: int) -> None:
    if given_up:
        transaction.run(_GIVE_UP, ("no worker took it", now, given_up))
        transaction.run(_DROP_BATCHES)
    transaction.run("DELETE FROM runs WHERE id IN LIST(?)", (old,))
    gaps.forget(transaction, old)


def _change(transaction: Transaction, ended: RunRecord, now: int) -> Literal["down", "up"] | None:
    """Record the state of the source; returns its change, if any."""
    row = transaction.one(
        "SELECT down_since FROM source_health WHERE source_id = ?", (ended.source_id,)
    )
    was_down = row is not None and row[0] is not None
    if ended.state == "failed":
        transaction.run(_DOWN, (ended.source_id, now))
        change: Literal["down", "up"] | None = None if was_down else "down"
    else:
        transaction.run(_UP, (ended.source_id, now))
        change = "up" if was_down else None
    if change is not None:
        reason = ended.error if change == "down" else None
        events.append(transaction, [event.of_source(ended.source_id, change, reason)], now)
    return change


def _health(newest: Sequence[RunRecord], state: Row | None) -> SourceHealth:
    """The health of a source with these runs, the newest first."""
    running = next((one for one in newest if one.finished_at is None), None)
    last = next((one for one in newest if one.finished_at is not None), None)
    return SourceHealth(running, last, *(state or (None, None, None)))


def _run(row: tuple[object, ...]) -> RunRecord:
    found = RunRecord(*row)  # type: ignore[arg-type]
    return found._replace(whole=bool(found.whole))


_COLUMNS = ", ".join(RunRecord._fields[:-1])

# The columns of a RunRecord of the table `runs`.
READ = f"""
{_COLUMNS}, CASE WHEN finished_at IS NULL THEN (
    SELECT MIN(q.not_before) FROM batches b JOIN queues q ON q.name = b.queue
    WHERE b.run_id = runs.id AND q.not_before > 0
) END AS resumes_at
"""

_END = f"""
UPDATE runs SET finished_at = ? WHERE id = ? AND finished_at IS NULL
AND NOT EXISTS (SELECT 1 FROM batches WHERE run_id = ?) RETURNING {_COLUMNS}
"""

_RECENT = f"SELECT {READ} FROM runs WHERE source_id = ? ORDER BY id DESC LIMIT ?"

_UNDER_WAY = "SELECT id FROM runs WHERE source_id = ? AND whole = 1 AND finished_at IS NULL"

# From source to source by the index: with their numbers of runs, all of them are many rows.
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

_ALL_UNDER_WAY = "SELECT source_id FROM runs WHERE whole = 1 AND finished_at IS NULL"

_STATES = "SELECT source_id, succeeded_at, down_since, credential_expires_at FROM source_health"

# The run under way, if there is one, and the one before it.
_NEWEST = f"""
SELECT {", ".join(RunRecord._fields)} FROM (
    SELECT {READ}, ROW_NUMBER() OVER (PARTITION BY source_id ORDER BY id DESC) AS place
    FROM runs WHERE whole = 1
) placed WHERE place <= 2 ORDER BY id DESC
"""

_NEWEST_OF_ONE = f"""
SELECT {READ} FROM runs WHERE source_id = ? AND whole = 1 ORDER BY id DESC LIMIT 2
"""

_DOWN = """
INSERT INTO source_health (source_id, down_since) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET
    down_since = COALESCE(source_health.down_since, excluded.down_since)
"""

_ARE_DOWN = """
SELECT source_id, down_since FROM source_health
WHERE source_id IN LIST(?) AND down_since IS NOT NULL
"""

_UP = """
INSERT INTO source_health (source_id, succeeded_at) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET succeeded_at = excluded.succeeded_at, down_since = NULL
"""

_EXPIRES = """
INSERT INTO source_health (source_id, credential_expires_at) VALUES (?, ?)
ON CONFLICT (source_id) DO UPDATE SET credential_expires_at = excluded.credential_expires_at
"""

_WITHOUT_WORKER = "SELECT id FROM runs WHERE finished_at IS NULL AND deadline < ?"

_GIVE_UP = """
UPDATE runs SET error = ?, failed = entities - covered, finished_at = ?
WHERE finished_at IS NULL AND id IN LIST(?)
"""

_FORGET_BATCHES = """
DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE source_id = ?)
"""

_DROP_BATCHES = """
DELETE FROM batches WHERE run_id IN (SELECT id FROM runs WHERE finished_at IS NOT NULL)
"""

_OLD = f"""
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

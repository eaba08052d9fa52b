"""The condition of a source: one word and a sentence, the same for every interface."""

from typing import Any, Final, Literal, NamedTuple

from factbook.clock import DAY, HOUR, SECOND, iso, iso_or_none
from factbook.facts.datasource import DataSource
from factbook.scheduling.housekeeping import LARGEST_LEAD
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.scheduling.schedule import find_next_start

State = Literal["new", "up", "partial", "late", "down", "draft"]

STATES: Final[dict[State, str]] = {
    "new": "nothing was brought yet",
    "up": "the last run brought everything that was asked for",
    "partial": "the last run could not ask for some facts, or failed for some entities",
    "late": "no run began, or no push came, when one was due",
    "down": "the last run brought nothing",
    "draft": "collected on demand only",
}
"""Every state, with its meaning."""

# A run that has not begun so long after its start: no process collects.
LATE: Final = HOUR
# A source without a cadence that is pushed to counts as silent after that.
SILENT: Final = 7 * DAY


class Condition(NamedTuple):
    """The condition of a source, with an explanation for users.

    It is empty if the source is up, unless a run waits for a rate limit.
    """

    state: State
    reason: str = ""


def condition(
    source: DataSource, health: SourceHealth | None, now: int, *, pushed_at: int | None = None
) -> Condition:
    """The condition of a source that is collected (`health`) or pushed to (`pushed_at`)."""
    if source.draft:
        return Condition("draft")
    if pushed_at is not None:
        return _of_push(source, pushed_at, now)
    if health is None:
        return Condition("new")
    found = _of_runs(source, health, now)
    wait = health.running.wait(now) if health.running else ""
    if not wait:
        return found
    reasons = [found.reason, f"{wait[:1].upper()}{wait[1:]}"]
    return found._replace(reason=". ".join(filter(None, reasons)))


def _of_runs(source: DataSource, health: SourceHealth, now: int) -> Condition:
    if health.down_since is not None:
        error = health.last.error if health.last else None
        return Condition("down", f"Nothing since {iso(health.down_since)}: {error or 'no reason'}")
    due = next_run(source, health, now)
    if health.running is None and due is not None and due < now - LATE:
        return Condition("late", f"A run was due at {iso(due)} and did not begin")
    if health.last is not None and health.last.state == "partial":
        return Condition("partial", _shortfall(health.last))
    return Condition("new" if health.succeeded_at is None else "up")


def _of_push(source: DataSource, pushed_at: int, now: int) -> Condition:
    due = pushed_at + SILENT
    if source.cadence is not None:
        start = find_next_start(source.id, source.cadence, pushed_at)
        due = find_next_start(source.id, source.cadence, start)
    if due < now - LATE:
        return Condition("late", f"The last push came at {iso(pushed_at)}")
    return Condition("up")


def _shortfall(run: RunRecord) -> str:
    counts = [(run.failed, "failed"), (run.incomplete, "lack some facts")]
    parts = [f"{count:,} {words}" for count, words in counts if count]
    whole = run.covered + run.failed
    said = f"Of {whole:,} entities {' and '.join(parts)}" if parts else "Some facts are missing"
    return f"{said}: {run.error}" if run.error else said


def render(
    source: DataSource, health: SourceHealth | None, now: int, *, pushed_at: int | None = None
) -> dict[str, Any]:
    """The health of a source in camel case, omitting unknown members; times in ISO 8601.

    `lastRun` with its figures is the last completed collection of all entities.
    """
    state, reason = condition(source, health, now, pushed_at=pushed_at)
    shown: dict[str, Any] = {
        "state": state,
        "reason": reason or None,
        "lastPush": iso_or_none(pushed_at),
    }
    if health is not None:
        shown |= {
            "lastRun": health.last and _of_run(health.last),
            "running": health.running is not None,
            "wait": health.running and _wait(health.running, now),
            "lastSuccess": iso_or_none(health.succeeded_at),
            "downSince": iso_or_none(health.down_since),
            "credentialExpires": iso_or_none(health.credential_expires_at),
            "nextRun": iso_or_none(next_run(source, health, now)),
        }
    return _known(shown)


def _wait(run: RunRecord, now: int) -> dict[str, Any] | None:
    if not run.wait(now):
        return None
    return {
        "until": iso_or_none(run.resumes_at),
        "entities": run.entities,
        "left": run.left,
        "rateLimitLeft": run.rate_limit_left,
    }


def _of_run(last: RunRecord) -> dict[str, Any]:
    return {
        "state": last.state,
        "reason": last.reason,
        "startedAt": iso(last.started_at),
        "durationSeconds": (last.duration or 0) / SECOND,
        "covered": last.covered,
        "failed": last.failed,
        "incomplete": last.incomplete,
        "skipped": last.skipped,
        "calls": last.calls,
        "rateLimitLeft": last.rate_limit_left,
        "error": last.error,
    }


def next_run(source: DataSource, health: SourceHealth | None, now: int) -> int | None:
    """The next start of a collection, possibly past; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    runs = [run.started_at for run in (health.running, health.last) if run] if health else []
    last = max(runs, default=0)
    return (
        find_next_start(source.id, source.cadence, last) if 0 < last <= now + LARGEST_LEAD else now
    )


def interval(source: DataSource, now: int) -> int | None:
    """Milliseconds between the next two starts; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    start = find_next_start(source.id, source.cadence, now)
    return find_next_start(source.id, source.cadence, start) - start


def _known(shown: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _known(value) if isinstance(value, dict) else value
        for key, value in shown.items()
        if value is not None
    }

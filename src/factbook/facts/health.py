"""The condition of a source: one word and a sentence, the same for every interface."""

from typing import Any

from factbook.clock import SECOND, iso
from factbook.facts.datasource import DataSource
from factbook.scheduling.clock_repair import AHEAD
from factbook.scheduling.runs import SourceHealth
from factbook.scheduling.schedule import next_start


def render(source: DataSource, health: SourceHealth, now: int) -> dict[str, Any]:
    """The health of a source in camel case, without what is not known; times in ISO 8601.

    `lastRun` with its figures is the last collection of everything that ended.
    """
    last = health.last
    shown = {
        "state": state(health),
        "lastRun": last
        and {
            "state": last.state,
            "reason": last.reason,
            "startedAt": iso(last.started_at),
            "durationSeconds": (last.duration or 0) / SECOND,
            "covered": last.covered,
            "failed": last.failed,
            "skipped": last.skipped,
            "calls": last.calls,
            "rateLimitLeft": last.rate_limit_left,
            "error": last.error,
        },
        "running": health.running is not None,
        "lastSuccess": _time(health.succeeded_at),
        "downSince": _time(health.down_since),
        "credentialExpires": _time(health.credential_expires_at),
        "nextRun": _time(next_run(source, health, now)),
    }
    return _known(shown)


def state(health: SourceHealth) -> str:
    """`up`, `down` since a run brought nothing, or `new` before the first has ended."""
    if health.down_since is not None:
        return "down"
    return "up" if health.succeeded_at is not None else "new"


def next_run(source: DataSource, health: SourceHealth | None, now: int) -> int | None:
    """The next start of a collection, possibly past; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    runs = [run.started_at for run in (health.running, health.last) if run] if health else []
    last = max(runs, default=0)
    return next_start(source.id, source.cadence, last) if 0 < last <= now + AHEAD else now


def interval(source: DataSource, now: int) -> int | None:
    """Milliseconds between the next two starts; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    start = next_start(source.id, source.cadence, now)
    return next_start(source.id, source.cadence, start) - start


def _time(moment: int | None) -> str | None:
    return None if moment is None else iso(moment)


def _known(shown: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _known(value) if isinstance(value, dict) else value
        for key, value in shown.items()
        if value is not None
    }

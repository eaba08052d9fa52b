"""The condition of sources, and the freshness of their latest facts."""

from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

from factbook.clock import DAY, HOUR, SECOND, iso, iso_or_none
from factbook.facts.datasource import DataSource, duration_milliseconds
from factbook.facts.schema import EXPIRED, PASSING, reason_word
from factbook.scheduling import runs
from factbook.scheduling.housekeeping import LARGEST_LEAD
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.scheduling.schedule import find_next_start
from factbook.storage import Database

State = Literal["new", "up", "partial", "late", "down", "draft"]
# Every state, with its meaning.
SOURCE_STATES: Final[dict[State, str]] = {
    "new": "nothing was brought yet",
    "up": "the last run brought everything that was asked for",
    "partial": "the last run could not ask for some facts, or failed for some entities",
    "late": "no run began, or no push came, when one was due",
    "down": "the last run brought nothing",
    "draft": "collected on demand only",
}
# If a run has not begun this long after its start, no process collects.
LATE_AFTER: Final = HOUR
# A pushed source without a cadence counts as silent after this time.
SILENT_AFTER: Final = 7 * DAY
# A source without a cadence keeps values for this long.
_LIFETIME_WITHOUT_CADENCE = 3 * DAY
_NO_FACTS: Mapping[str, Any] = {}
_NO_NAMES: frozenset[str] = frozenset()


class Condition(NamedTuple):
    """The condition of a source, with an explanation for users.

    The explanation is empty if the source is up, unless a run waits for a rate limit.
    """

    state: State
    reason: str = ""


def source_condition(
    source: DataSource, health: SourceHealth | None, now: int, *, pushed_at: int | None = None
) -> Condition:
    """The condition of a source that is collected (`health`) or pushed to (`pushed_at`)."""
    if source.draft:
        return Condition("draft")
    if pushed_at is not None:
        return _condition_of_push(source, pushed_at, now)
    if health is None:
        return Condition("new")
    found = _condition_of_runs(source, health, now)
    wait = health.running.wait(now) if health.running else ""
    if not wait:
        return found
    reasons = [found.reason, f"{wait[:1].upper()}{wait[1:]}"]
    return found._replace(reason=". ".join(filter(None, reasons)))


def _condition_of_runs(source: DataSource, health: SourceHealth, now: int) -> Condition:
    if health.down_since is not None:
        error = health.last.error if health.last else None
        return Condition("down", f"Nothing since {iso(health.down_since)}: {error or 'no reason'}")
    due = next_run_time(source, health, now)
    if health.running is None and due is not None and due < now - LATE_AFTER:
        return Condition("late", f"A run was due at {iso(due)} and did not begin")
    if health.last is not None and health.last.state == "partial":
        counts = [(health.last.failed, "failed"), (health.last.incomplete, "lack some facts")]
        parts = [f"{count:,} {words}" for count, words in counts if count]
        whole = health.last.covered + health.last.failed
        said = f"Of {whole:,} entities {' and '.join(parts)}" if parts else "Some facts are missing"
        return Condition("partial", f"{said}: {health.last.error}" if health.last.error else said)
    return Condition("new" if health.succeeded_at is None else "up")


def _condition_of_push(source: DataSource, pushed_at: int, now: int) -> Condition:
    due = pushed_at + SILENT_AFTER
    if source.cadence is not None:
        start = find_next_start(source.id, source.cadence, pushed_at)
        due = find_next_start(source.id, source.cadence, start)
    if due < now - LATE_AFTER:
        return Condition("late", f"The last push came at {iso(pushed_at)}")
    return Condition("up")


def render_health(
    source: DataSource, health: SourceHealth | None, now: int, *, pushed_at: int | None = None
) -> dict[str, Any]:
    """The health of a source in camel case, omitting unknown members; times in ISO 8601.

    `lastRun` with its figures is the last completed collection of all entities.
    """
    state, reason = source_condition(source, health, now, pushed_at=pushed_at)
    shown: dict[str, Any] = {
        "state": state,
        "reason": reason or None,
        "lastPush": iso_or_none(pushed_at),
    }
    if health is not None:
        shown |= {
            "lastRun": health.last and _render_run(health.last),
            "running": health.running is not None,
            "wait": health.running and _describe_wait(health.running, now),
            "lastSuccess": iso_or_none(health.succeeded_at),
            "downSince": iso_or_none(health.down_since),
            "credentialExpires": iso_or_none(health.credential_expires_at),
            "nextRun": iso_or_none(next_run_time(source, health, now)),
        }
    return _known_members(shown)


def _describe_wait(run: RunRecord, now: int) -> dict[str, Any] | None:
    if not run.wait(now):
        return None
    return {
        "until": iso_or_none(run.resumes_at),
        "entities": run.entities,
        "left": run.left,
        "rateLimitLeft": run.rate_limit_left,
    }


def _render_run(last: RunRecord) -> dict[str, Any]:
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


def next_run_time(source: DataSource, health: SourceHealth | None, now: int) -> int | None:
    """The next start of a collection, possibly past; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    runs = [run.started_at for run in (health.running, health.last) if run] if health else []
    last = max(runs, default=0)
    return (
        find_next_start(source.id, source.cadence, last) if 0 < last <= now + LARGEST_LEAD else now
    )


def run_interval(source: DataSource, now: int) -> int | None:
    """Milliseconds between the next two starts; None if the source runs only on demand."""
    if source.cadence is None or source.draft:
        return None
    start = find_next_start(source.id, source.cadence, now)
    return find_next_start(source.id, source.cadence, start) - start


def _known_members(shown: dict[str, Any]) -> dict[str, Any]:
    return {
        key: _known_members(value) if isinstance(value, dict) else value
        for key, value in shown.items()
        if value is not None
    }


class Observation(NamedTuple):
    """Result of one collection for one entity: values by fact, and reasons for missing ones.

    A reason applies to a fact, to all facts below a place (`codehost.issues`), or to everything
    (""), and the longest match wins. Reasons of the places in `passing` are transient and say
    nothing about the values.
    """

    entity_id: int
    values: Mapping[str, object]
    reasons: Mapping[str, str] = _NO_FACTS
    passing: frozenset[str] = _NO_NAMES


class Latest(NamedTuple):
    """The latest facts of one source about one entity; times in milliseconds since the epoch.

    `kept` has the times of older values by fact: those that the last collection could not renew,
    which are stale, and of a pushed source those that the last item left out.
    `written_at` is 0 if no collection has succeeded yet.
    """

    facts: dict[str, Any]
    reasons: dict[str, str]
    version: str
    written_at: int
    kept: Mapping[str, int] = _NO_FACTS

    @property
    def brought_at(self) -> int | None:
        """The time of the newest value; None if there is no value."""
        if not self.facts:
            return None
        if self.facts.keys() <= self.kept.keys():
            return max(self.kept[name] for name in self.facts)
        return self.written_at

    def stale_before(self, moment: int, *, is_pushed: bool = False) -> "Latest":
        """The facts with stale values marked as kept: all from before the moment.

        A pushed source has no other stale values.
        """
        kept = self.kept
        if is_pushed and kept:
            kept = {name: kept[name] for name in kept if kept[name] < moment}
        if self.written_at < moment and self.facts:
            kept = {**dict.fromkeys(self.facts, self.written_at), **kept}
        return self if kept is self.kept else self._replace(kept=kept)


class MergeResult(NamedTuple):
    """Result of a merge: the new latest facts, and true if the observation was conclusive."""

    latest: Latest
    is_news: bool


def merge_observation(
    source: DataSource, observation: Observation, before: Latest | None, now: int
) -> MergeResult:
    """The latest facts after the observation; `before` matters only for transient failures."""
    checked = source.check(observation.values)
    reasons = checked.reasons | dict(observation.reasons)
    passing = observation.passing & reasons.keys()
    if not passing:
        return MergeResult(Latest(checked.stored, reasons, source.version, now), is_news=True)
    is_news = bool(checked.stored) or len(passing) < len(reasons)
    before = before or Latest({}, {}, source.version, 0)
    facts, kept = dict(checked.stored), dict[str, int]()
    missing = {place: reasons.pop(place) for place in passing}
    for place, paths in _facts_by_place(source, facts, reasons, missing).items():
        found = {
            path: _reason_for_none(source, path, before, missing[place], now) for path in paths
        }
        facts |= {path: before.facts[path] for path, reason in found.items() if reason is None}
        kept |= {p: before.kept.get(p, before.written_at) for p in found if found[p] is None}
        reasons |= _compact_reasons(place, found, missing[place])
    written_at = now if is_news else before.written_at
    in_order = {fact.name: facts[fact.name] for fact in source.schema if fact.name in facts}
    return MergeResult(Latest(in_order, reasons, source.version, written_at, kept), is_news)


def find_reason(path: str, reasons: Mapping[str, str]) -> str | None:
    """The reason of a fact: its own, or that of the nearest place above it."""
    place = _nearest_place(path, reasons)
    return None if place is None else reasons[place]


def _facts_by_place(
    source: DataSource,
    facts: Mapping[str, object],
    settled: Mapping[str, str],
    missing: Mapping[str, str],
) -> dict[str, list[str]]:
    """The facts without a value that each transient reason applies to."""
    places = {**settled, **missing}
    found: dict[str, list[str]] = {place: [] for place in missing}
    for fact in source.schema:
        if fact.name not in facts and (place := _nearest_place(fact.name, places)) in found:
            found[place].append(fact.name)
    return found


def _nearest_place(path: str, places: Mapping[str, str]) -> str | None:
    while path and path not in places:
        path = path.rpartition(".")[0]
    return path if path in places else None


def _reason_for_none(
    source: DataSource, path: str, before: Latest, reason: str, now: int
) -> str | None:
    """None to keep the last value, else the reason for a missing value."""
    if path in before.facts:
        time = before.kept.get(path, before.written_at)
        # A time far in the future comes from a clock that was set back, and would never expire.
        lasts = time <= now + DAY and now <= expiry_time(source, time)
        return None if lasts else f"{EXPIRED}: {reason}"
    earlier = find_reason(path, before.reasons)
    if earlier is not None and reason_word(earlier) == EXPIRED:
        return f"{EXPIRED}: {reason}"
    # A failed attempt does not change the stored reason.
    return reason if earlier is None or reason_word(earlier) in PASSING else earlier


def _compact_reasons(place: str, found: Mapping[str, str | None], reason: str) -> dict[str, str]:
    """The reasons by fact, or a single one for the place if all are equal."""
    different = set(found.values())
    if len(different) <= 1:
        [one] = different or {reason}
        return {} if one is None else {place: one}
    return {path: one for path, one in found.items() if one is not None}


def expiry_time(source: DataSource, time: int) -> int:
    """The time after which a value of this time is too old to rely on.

    Three cadences, and at least an hour.
    """
    return _expiry_by_cadence(source.id, source.cadence, time)


@lru_cache(maxsize=4096)
def _expiry_by_cadence(source_id: str, cadence: str | None, time: int) -> int:
    if cadence is None:
        return time + _LIFETIME_WITHOUT_CADENCE
    first = find_next_start(source_id, cadence, time)
    second = find_next_start(source_id, cadence, first)
    third = find_next_start(source_id, cadence, second)
    # A run takes a while: its values are newer than its start.
    late_by = max(0, min(second - first, third - second) - (first - time))
    return max(time + HOUR, third + late_by)


# A change is seen within this time.
_RELOAD_INTERVAL = 10 * SECOND
# Later than any time, in milliseconds.
_NEVER_STALE = 2**53


class Freshness:
    """The freshness of every source as last read; `freshness_of` needs no query."""

    def __init__(self) -> None:
        self._moments: Mapping[str, int] = {}
        self._pushed: Set[str] = frozenset()
        self._succeeded: Mapping[str, int] = {}
        self._read_at: int | None = None
        self._known = 0

    def stale_before(self, source_id: str) -> int:
        """Values of the source from before this time are stale."""
        return self._moments.get(source_id, 0)

    def kept_before(self, source_id: str) -> int:
        """Values older than others in the same row are stale if from before this time."""
        return self.stale_before(source_id) if source_id in self._pushed else _NEVER_STALE

    def marked(self, source_id: str, latest: Latest) -> Latest:
        """The latest facts of the source, with stale values among the kept ones."""
        is_pushed = source_id in self._pushed
        return latest.stale_before(self._moments.get(source_id, 0), is_pushed=is_pushed)

    def not_renewed_since(self, source_id: str) -> int | None:
        """The last success of a source that is down or overdue; None for any other."""
        at = self._succeeded.get(source_id)
        return at if at is not None and at < self.stale_before(source_id) else None

    async def refresh(self, database: Database, sources: Iterable[DataSource], now: int) -> None:
        """Read freshness again, unless read seconds ago for the same number of sources."""
        sources = list(sources)
        is_recent = self._read_at is not None and 0 <= now - self._read_at < _RELOAD_INTERVAL
        if is_recent and len(sources) == self._known:
            return
        starts, self._known = await runs.fetch_ended_starts(database), len(sources)
        self._pushed = frozenset(one.id for one in sources if _is_pushed_source(one))
        self._succeeded = {
            id_: at for id_, (_, at) in starts.items() if at is not None and id_ not in self._pushed
        }
        found = {one.id: _stale_before(one, starts.get(one.id), now) for one in sources}
        self._moments = {id_: moment for id_, moment in found.items() if moment}
        self._read_at = now


def freshness_of(database: Database) -> Freshness:
    """The freshness that this process knows."""
    return database.remembered.of(Freshness)


def find_stale(facts: Collection[str], stale: Collection[str]) -> list[str]:
    """The names of the stale facts among these, if others of them are current."""
    found = [name for name in facts if name in stale]
    return found if len(found) < len(facts) else []


def _is_pushed_source(source: DataSource) -> bool:
    return source.handler is not None and source.handler.type == "push"


def _stale_before(source: DataSource, ended: runs.EndedStart | None, now: int) -> int:
    """The time before which values are stale; `ended` is the last ended run."""
    if _is_pushed_source(source):
        lifetime = source.lifecycle.time_to_live if source.lifecycle else None
        return 0 if lifetime is None else now - duration_milliseconds(lifetime)
    if ended is None or ended.started_at > now:
        return 0
    started_at = ended.started_at
    length = run_interval(source, now)
    if source.cadence is None or length is None:
        return started_at
    due = find_next_start(source.id, source.cadence, started_at)
    # Values of single entities may be newer than the last full run.
    return max(due, now - length - LATE_AFTER) if due < now - LATE_AFTER else started_at

"""Latest facts: observations merged into them, and their freshness.

An observation is merged into the latest facts. A definite statement of the vendor (there is no such
thing, nobody may read it) applies at once: the value is unknown. A transient failure (a rate limit,
an error) keeps the last value and its time, for three cadences of the source and at least an hour.
A later failure drops the value; its reason is `expired`, followed by the reason of the failure.

A failed collection marks the values of each entity itself. Freshness covers anything that no
collection reached: a run without a plan or without a worker, and a run that never began.
"""

from collections.abc import Collection, Iterable, Mapping, Set
from functools import lru_cache
from typing import Any, NamedTuple

from factbook.clock import DAY, HOUR, SECOND
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.health import LATE, interval
from factbook.facts.reasons import EXPIRED, PASSING, word
from factbook.scheduling import runs
from factbook.scheduling.schedule import find_next_start
from factbook.storage import Database

# A source without a cadence keeps values for so long.
_WITHOUT_CADENCE = 3 * DAY
_NOTHING: Mapping[str, Any] = {}
_NONE: frozenset[str] = frozenset()


class Observation(NamedTuple):
    """Result of one collection for one entity: values by fact, and reasons for missing ones.

    A reason applies to a fact, to all facts below a place (`codehost.issues`), or to everything
    (""), and the longest match wins. Reasons of the places in `passing` are transient and say
    nothing about the values.
    """

    entity_id: int
    values: Mapping[str, object]
    reasons: Mapping[str, str] = _NOTHING
    passing: frozenset[str] = _NONE


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
    kept: Mapping[str, int] = _NOTHING

    @property
    def brought_at(self) -> int | None:
        """The time of the newest value; None if there is no value."""
        if not self.facts:
            return None
        if self.facts.keys() <= self.kept.keys():
            return max(self.kept[name] for name in self.facts)
        return self.written_at

    def stale_before(self, moment: int, *, is_pushed: bool = False) -> "Latest":
        """The same facts, with stale values among the kept ones: all from before the moment.

        Of a pushed source these alone are stale.
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


def merge(
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
    for place, paths in _by_place(source, facts, reasons, missing).items():
        found = {path: _last(source, path, before, missing[place], now) for path in paths}
        facts |= {path: before.facts[path] for path, reason in found.items() if reason is None}
        kept |= {p: before.kept.get(p, before.written_at) for p in found if found[p] is None}
        reasons |= _compact(place, found, missing[place])
    written_at = now if is_news else before.written_at
    in_order = {fact.name: facts[fact.name] for fact in source.schema if fact.name in facts}
    return MergeResult(Latest(in_order, reasons, source.version, written_at, kept), is_news)


def reason_of(path: str, reasons: Mapping[str, str]) -> str | None:
    """The reason of a fact: its own, or that of the nearest place above it."""
    place = _place(path, reasons)
    return None if place is None else reasons[place]


def _by_place(
    source: DataSource,
    facts: Mapping[str, object],
    settled: Mapping[str, str],
    missing: Mapping[str, str],
) -> dict[str, list[str]]:
    """The facts without a value that each transient reason applies to."""
    places = {**settled, **missing}
    found: dict[str, list[str]] = {place: [] for place in missing}
    for fact in source.schema:
        if fact.name not in facts and (place := _place(fact.name, places)) in found:
            found[place].append(fact.name)
    return found


def _place(path: str, places: Mapping[str, str]) -> str | None:
    while path and path not in places:
        path = path.rpartition(".")[0]
    return path if path in places else None


def _last(source: DataSource, path: str, before: Latest, reason: str, now: int) -> str | None:
    """None to keep the last value, else the reason for having none."""
    if path in before.facts:
        time = before.kept.get(path, before.written_at)
        # A time far ahead was given by a clock that was set back since, and would never expire.
        lasts = time <= now + DAY and now <= expiry(source, time)
        return None if lasts else f"{EXPIRED}: {reason}"
    earlier = reason_of(path, before.reasons)
    if earlier is not None and word(earlier) == EXPIRED:
        return f"{EXPIRED}: {reason}"
    # A failed attempt does not change the stored reason.
    return reason if earlier is None or word(earlier) in PASSING else earlier


def _compact(place: str, found: Mapping[str, str | None], reason: str) -> dict[str, str]:
    """The reasons by fact, or a single one for the place if all are equal."""
    different = set(found.values())
    if len(different) <= 1:
        [one] = different or {reason}
        return {} if one is None else {place: one}
    return {path: one for path, one in found.items() if one is not None}


def expiry(source: DataSource, time: int) -> int:
    """The time after which a value of this time is too old to rely on.

    Three cadences, and at least an hour.
    """
    return _expiry(source.id, source.cadence, time)


@lru_cache(maxsize=4096)
def _expiry(source_id: str, cadence: str | None, time: int) -> int:
    if cadence is None:
        return time + _WITHOUT_CADENCE
    first = find_next_start(source_id, cadence, time)
    second = find_next_start(source_id, cadence, first)
    third = find_next_start(source_id, cadence, second)
    # A run takes a while, so a value is younger than the start of its run.
    late_by = max(0, min(second - first, third - second) - (first - time))
    return max(time + HOUR, third + late_by)


# A change is seen within this time.
_EVERY = 10 * SECOND
# Milliseconds that no time reaches.
_EVER = 2**53


class Freshness:
    """The freshness of every source as last read; `of` a database costs nothing."""

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
        """Values that are older than others of the same row are stale if from before this time."""
        return self.stale_before(source_id) if source_id in self._pushed else _EVER

    def marked(self, source_id: str, latest: Latest) -> Latest:
        """The latest facts of the source, with stale values among the kept ones."""
        is_pushed = source_id in self._pushed
        return latest.stale_before(self._moments.get(source_id, 0), is_pushed=is_pushed)

    def not_renewed_since(self, source_id: str) -> int | None:
        """The last success of a source that is down or overdue; None for any other."""
        at = self._succeeded.get(source_id)
        return at if at is not None and at < self.stale_before(source_id) else None

    async def refresh(self, database: Database, sources: Iterable[DataSource], now: int) -> None:
        """Read it again, unless that was a few seconds ago and of as many sources."""
        sources = list(sources)
        is_recent = self._read_at is not None and 0 <= now - self._read_at < _EVERY
        if is_recent and len(sources) == self._known:
            return
        starts, self._known = await runs.fetch_ended_starts(database), len(sources)
        self._pushed = frozenset(one.id for one in sources if _is_pushed(one))
        self._succeeded = {
            id_: at for id_, (_, at) in starts.items() if at is not None and id_ not in self._pushed
        }
        found = {one.id: _stale_before(one, starts.get(one.id), now) for one in sources}
        self._moments = {id_: moment for id_, moment in found.items() if moment}
        self._read_at = now


def of(database: Database) -> Freshness:
    """The freshness that this process knows."""
    return database.remembered.of(Freshness)


def some(facts: Collection[str], stale: Collection[str]) -> list[str]:
    """The names of stale facts, where others of these facts are current."""
    found = [name for name in facts if name in stale]
    return found if len(found) < len(facts) else []


def _is_pushed(source: DataSource) -> bool:
    return source.handler is not None and source.handler.type == "push"


def _stale_before(source: DataSource, ended: runs.EndedStart | None, now: int) -> int:
    """The time before which values are stale; `ended` is the last run that did."""
    if _is_pushed(source):
        lifetime = source.lifecycle.time_to_live if source.lifecycle else None
        return 0 if lifetime is None else now - milliseconds(lifetime)
    if ended is None or ended.started_at > now:
        return 0
    started_at = ended.started_at
    length = interval(source, now)
    if source.cadence is None or length is None:
        return started_at
    due = find_next_start(source.id, source.cadence, started_at)
    # Values of single entities may be newer than the last run of everything.
    return max(due, now - length - LATE) if due < now - LATE else started_at

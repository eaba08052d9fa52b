"""Sources whose values are stale: the last run did not renew them, or a run is overdue.

A failed collection marks the values of each entity itself (facts.merge). This covers what no
collection reached: a run without a plan or without a worker, and a run that never began.
"""

from collections.abc import Collection, Iterable, Mapping, Set

from factbook.clock import SECOND
from factbook.facts.datasource import DataSource, milliseconds
from factbook.facts.health import LATE, interval
from factbook.facts.merge import Latest
from factbook.scheduling import runs
from factbook.scheduling.schedule import next_start
from factbook.storage import Database

# A change is seen within this time.
_EVERY = 10 * SECOND
# Milliseconds that no time reaches.
_EVER = 2**53


class Freshness:
    """The freshness of every source as last read; `of` a database costs nothing."""

    def __init__(self) -> None:
        self._moments: Mapping[str, int] = {}
        self._pushed: Set[str] = frozenset()
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

    async def refresh(self, database: Database, sources: Iterable[DataSource], now: int) -> None:
        """Read it again, unless that was a few seconds ago and of as many sources."""
        sources = list(sources)
        is_recent = self._read_at is not None and 0 <= now - self._read_at < _EVERY
        if is_recent and len(sources) == self._known:
            return
        starts, self._known = await runs.ended_starts(database), len(sources)
        self._pushed = frozenset(one.id for one in sources if _is_pushed(one))
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


def _stale_before(source: DataSource, started_at: int | None, now: int) -> int:
    """The time before which values are stale; `started_at` is that of the last run that ended."""
    if _is_pushed(source):
        lifetime = source.lifecycle.time_to_live if source.lifecycle else None
        return 0 if lifetime is None else now - milliseconds(lifetime)
    if started_at is None or started_at > now:
        return 0
    length = interval(source, now)
    if source.cadence is None or length is None:
        return started_at
    due = next_start(source.id, source.cadence, started_at)
    # Values of single entities may be newer than the last run of everything.
    return max(due, now - length - LATE) if due < now - LATE else started_at

"""Age of figures that sum up results: counts, levels and scores.

Figures change with the facts that they rest on, in the same transaction. They are old only where
the passing of time changes a state that isn't evaluated again yet, and where a source is down, so
that its last values still count.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from factbook.checks.maintenance.check_set import CheckCache, CheckSet
from factbook.checks.states import state_store
from factbook.clock import iso
from factbook.facts import freshness
from factbook.storage import Database


class ResultAge(NamedTuple):
    """The time as of which figures are right; `stale_sources` are down or overdue."""

    as_of: int
    stale_sources: list[str]

    def render(self) -> dict[str, Any]:
        """The age as shown."""
        shown: dict[str, Any] = {"asOf": iso(self.as_of)}
        return shown | ({"staleSources": self.stale_sources} if self.stale_sources else {})


class ResultAges(NamedTuple):
    """The ages of figures of any checks, all as of one read."""

    evaluated_at: int
    known: CheckSet
    database: Database

    def of(self, check_ids: Iterable[str] | None = None) -> ResultAge:
        """The age of figures of these checks, or of every check."""
        return self.of_sources(self.known.sources_of(check_ids))

    def of_sources(self, sources: Iterable[str]) -> ResultAge:
        """The age of results that rest on these sources."""
        return of_facts(self.database, sources, self.evaluated_at)


def of_facts(database: Database, sources: Iterable[str], now: int) -> ResultAge:
    """The age of figures of the facts of these sources; reads nothing."""
    since = freshness.of(database).not_renewed_since
    times = {source: at for source in sources if (at := since(source)) is not None}
    return ResultAge(min([now, *times.values()]), sorted(times))


async def current(database: Database, now: int) -> ResultAges:
    """The ages now; reads one row of an index."""
    known = await database.remembered.of(CheckCache).last_loaded(database)
    due_at = await state_store.oldest_due(database, now)
    return ResultAges(now if due_at is None else due_at, known, database)


async def of_checks(database: Database, check_ids: Iterable[str] | None, now: int) -> ResultAge:
    """The age of figures of these checks, or of every check."""
    return (await current(database, now)).of(check_ids)

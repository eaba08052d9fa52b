"""Looks at what has changed since the one before: in the feed of events, and runs of all kinds.

A run does not tell in the feed how far it is, nor that it has ended, if all is as before.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from factbook.events import store as feed
from factbook.importers import run_store
from factbook.importers.run_store import ImportRun
from factbook.scheduling import followed_runs
from factbook.scheduling.runs import RunRecord
from factbook.storage import Database
from factbook.web.live import topics

# Rows of the feed in one look; the rest is for the next one. The first look goes back by fewer, for
# what changed while a page was on its way.
_MOST: Final = 1_000
_BACK: Final = 100
# Runs beside those of all entities that are under way.
_RUNS: Final = 100


class Look(NamedTuple):
    """The last row of the feed that was seen, and every run as it was."""

    position: int
    runs: Mapping[int, RunRecord]
    imports: Mapping[str, ImportRun]


class TopicChanges:
    """Topics that changed, each with the time of the last change."""

    def __init__(self, now: int, *, is_first: bool) -> None:
        self.times: dict[str, int] = {}
        self._now = now
        self._is_first = is_first

    def note(self, topics: Iterable[str], at: int | None) -> None:
        """Note a change, at a time that counts in the first look alone.

        What is under way has none: nobody knows what it was when the page was made.
        """
        time = at if self._is_first and at is not None else self._now
        for topic in topics:
            self.times[topic] = max(time, self.times.get(topic, 0))


async def look(
    database: Database, before: Look | None, watched: Collection[str], now: int
) -> tuple[Look, dict[str, int]]:
    """Look at what has changed, since the look before; of entities, at those that are `watched`."""
    changes = TopicChanges(now, is_first=before is None)
    found = Look(
        await _read_feed(database, before, watched, changes),
        await followed_runs.latest(database, _RUNS),
        await run_store.latest(database),
    )
    _compare(found, before or Look(0, {}, {}), changes)
    return found, changes.times


async def _read_feed(
    database: Database, before: Look | None, watched: Collection[str], changes: TopicChanges
) -> int:
    """Note what the feed tells; returns the position of its last row."""
    if before is None:
        position = max(0, (await feed.newest(database)).position - _BACK)
    else:
        position = before.position
    marks = await feed.marks(database, position, _MOST)
    for mark in marks:
        changes.note(topics.of_mark(mark), mark.at)
    if not marks:
        return position
    last = marks[-1].position
    if wanted := set(topics.entities(watched)):
        for ref in wanted & await feed.subjects(database, position, last):
            changes.note([topics.of_entity(ref)], marks[-1].at)
    return last


def _compare(found: Look, before: Look, changes: TopicChanges) -> None:
    for run in found.runs.values():
        known = before.runs.get(run.id)
        if run != known:
            changes.note(topics.of_run(run), run.finished_at)
        if known is None or run.finished_at != known.finished_at:
            changes.note([topics.SOURCES], run.finished_at or run.started_at)
    for run in before.runs.values():
        # One that was long under way, and is not among the last that were begun.
        if run.id not in found.runs and run.finished_at is None:
            changes.note((*topics.of_run(run), topics.SOURCES), None)
    for import_run in found.imports.values():
        if import_run != before.imports.get(import_run.importer):
            changes.note(topics.of_import(import_run), import_run.ended_at)

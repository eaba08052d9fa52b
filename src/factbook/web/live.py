"""Live pages: a stream that makes a page reload its content.

A topic is a word such as `sources`, or one with an id: `source/github`, `entity/component:a/b`.
While there are listeners, each server process looks for changes once for all pages: in the event
feed, and in runs, which the feed does not report until they end. It wakes the pages whose topics
changed. An event says no more than "look again", so a stream reveals nothing that the person may
not read. The stream ends when the person signs out or loses a permission.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from factbook.auth import sessions
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.clock import MINUTE, SECOND, Clock
from factbook.errors import InputError, TooManyRequestsError, UnavailableError
from factbook.events.store import (
    EventMark,
    fetch_newest_event,
    list_event_marks,
    list_event_subjects,
)
from factbook.http.requests import Reply
from factbook.importers import records
from factbook.importers.records import ImportRun
from factbook.importers.snapshot import PREFIX
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from factbook.storage import Database
from factbook.web.pages import PageContext, PageRoute

# Topics per page, and characters per topic; no page or entity exceeds them.
_MOST_TOPICS: Final = 8
_LONGEST: Final = 400

SOURCES: Final = "sources"
_ENTITY: Final = "entity/"

_ALONE: Final[Mapping[str, tuple[str, ...]]] = {
    SOURCES: (SOURCE_READ,),
    "importers": (CATALOG_READ,),
    "exemptions": (CHECK_READ,),
}
_WITH_ID: Final[Mapping[str, tuple[str, ...]]] = {
    "source": (SOURCE_READ,),
    "run": (SOURCE_READ,),
    "importer": (CATALOG_READ,),
    "check": (CHECK_READ,),
    "scorecard": (CHECK_READ,),
    "entity": (CATALOG_READ, SOURCE_READ),
}


def check_topics(named: Iterable[str]) -> frozenset[str]:
    """Validate the topics of a request; raises InputError for unknown topics or too many."""
    found = frozenset(named)
    if not found or len(found) > _MOST_TOPICS:
        raise InputError(f"A page watches between 1 and {_MOST_TOPICS} topics.")
    for topic in found:
        word, slash, id_ = topic.partition("/")
        is_known = (word in _WITH_ID and bool(id_)) if slash else word in _ALONE
        if not is_known or len(topic) > _LONGEST:
            raise InputError("There is no such topic.")
    return found


def list_topic_permissions(topics: Iterable[str]) -> tuple[str, ...]:
    """The permissions needed to watch all these topics."""
    found: dict[str, None] = {}
    for topic in topics:
        word, slash, _ = topic.partition("/")
        found |= dict.fromkeys((_WITH_ID if slash else _ALONE)[word])
    return tuple(found)


def list_watched_entities(topics: Iterable[str]) -> Iterator[str]:
    """The references of the entities among the topics."""
    return (topic.removeprefix(_ENTITY) for topic in topics if topic.startswith(_ENTITY))


def name_entity_topic(ref: str) -> str:
    """The topic of an entity."""
    return f"{_ENTITY}{ref}"


def list_mark_topics(mark: EventMark) -> Iterator[str]:
    """The topics of a feed row, except its entities."""
    match mark.topic:
        case "source":
            yield from (SOURCES, f"source/{mark.about}")
        case "fact":
            yield f"source/{mark.about}"
        case "check":
            yield f"check/{mark.about}"
        case "level":
            yield f"scorecard/{mark.about}"
        case "exemption":
            yield "exemptions"
        case "set" if mark.about.startswith(PREFIX):
            yield from ("importers", f"importer/{mark.about.split('/')[1]}")


def list_run_topics(run: RunRecord) -> Iterator[str]:
    """The topics of a run whose figures changed."""
    yield from (f"run/{run.id}", f"source/{run.source_id}")


def list_import_topics(run: ImportRun) -> Iterator[str]:
    """The topics of an import run that made progress."""
    yield from ("importers", f"importer/{run.importer}")


# Feed rows per look; the next look reads the rest. The first look goes back by `_BACK` rows, for
# changes made while a page was loading.
_MOST_CHANGES: Final = 1_000
_BACK: Final = 100
# Latest runs to follow, besides all runs in progress that cover all entities.
_RUNS: Final = 100


class Look(NamedTuple):
    """The position of the last feed row seen, and the state of every run at that time."""

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
        """Note a change; its time `at` counts only in the first look.

        Runs in progress have no time: they may have changed since the page was rendered.
        """
        time = at if self._is_first and at is not None else self._now
        for topic in topics:
            self.times[topic] = max(time, self.times.get(topic, 0))


async def look_for_changes(
    database: Database, before: Look | None, watched: Collection[str], now: int
) -> tuple[Look, dict[str, int]]:
    """Look for changes since the previous look; of entities, only those that are `watched`."""
    changes = TopicChanges(now, is_first=before is None)
    found = Look(
        await _read_feed_changes(database, before, watched, changes),
        await runs.list_followed_runs(database, _RUNS),
        await records.get_latest_runs(database),
    )
    _compare_runs(found, before or Look(0, {}, {}), changes)
    return found, changes.times


async def _read_feed_changes(
    database: Database, before: Look | None, watched: Collection[str], changes: TopicChanges
) -> int:
    """Note the changes in the feed; returns the position of its last row."""
    if before is None:
        position = max(0, (await fetch_newest_event(database)).position - _BACK)
    else:
        position = before.position
    marks = await list_event_marks(database, position, _MOST_CHANGES)
    for mark in marks:
        changes.note(list_mark_topics(mark), mark.at)
    if not marks:
        return position
    last = marks[-1].position
    if wanted := set(list_watched_entities(watched)):
        for ref in wanted & await list_event_subjects(database, position, last):
            changes.note([name_entity_topic(ref)], marks[-1].at)
    return last


def _compare_runs(found: Look, before: Look, changes: TopicChanges) -> None:
    for run in found.runs.values():
        known = before.runs.get(run.id)
        if run != known:
            changes.note(list_run_topics(run), run.finished_at)
        if known is None or run.finished_at != known.finished_at:
            changes.note([SOURCES], run.finished_at or run.started_at)
    for run in before.runs.values():
        # A long run that has ended, and is not among the latest ones.
        if run.id not in found.runs and run.finished_at is None:
            changes.note((*list_run_topics(run), SOURCES), None)
    for import_run in found.imports.values():
        if import_run != before.imports.get(import_run.importer):
            changes.note(list_import_topics(import_run), import_run.ended_at)


# Seconds between two looks.
_EVERY: Final = 0.5
# Clocks of processes differ slightly.
_SLACK: Final = SECOND
# How long changes are remembered, for pages that were loading meanwhile.
_KEPT: Final = 5 * MINUTE
# Open and visible pages, per person and in total.
_OF_ONE: Final = 12
_OF_ALL: Final = 1_000
_LATER_SECONDS: Final = 60


class Listener:
    """A page that listens: the topics that it watches, and the time of its current content."""

    def __init__(self, person: str, topics: frozenset[str], since: int) -> None:
        self.person = person
        self.topics = topics
        self.is_over = False
        self._since = since - _SLACK
        self._has_news = False
        self._woken = asyncio.Event()

    def hear(self, times: Mapping[str, int]) -> None:
        """Wake up if a watched topic has changed."""
        if any(times.get(topic, 0) >= self._since for topic in self.topics):
            self._has_news = True
            self.wake()

    def wake(self) -> None:
        """End the wait."""
        self._woken.set()

    def end(self) -> None:
        """End this wait and all later ones, because the process no longer looks for changes."""
        self.is_over = True
        self.wake()

    async def wait(self, seconds: float) -> bool:
        """Wait until woken or timed out; returns true if there is news since the last wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        news, self._has_news = self._has_news, False
        return news


class ChangeTail:
    """The listeners of a process, and the task that looks for changes."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        stopping: asyncio.Event,
        spawn: Callable[[Coroutine[Any, Any, object]], None],
    ) -> None:
        self._stopping = stopping
        self._database = database
        self._clock = clock
        self._spawn = spawn
        self._listeners: set[Listener] = set()
        self._is_looking = False
        self._times: dict[str, int] = {}

    def check_room(self, person: str) -> None:
        """Raise TooManyRequestsError if the person or all people have too many open pages."""
        theirs = sum(each.person == person for each in self._listeners)
        if theirs >= _OF_ONE or len(self._listeners) >= _OF_ALL:
            message = "Too many pages listen to changes at once."
            raise TooManyRequestsError(message, retry_after=_LATER_SECONDS)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Look for changes until the end of the block; raises like `check_room`."""
        self.check_room(listener.person)
        self._listeners.add(listener)
        listener.hear(self._times)
        if not self._is_looking:
            self._is_looking = True
            self._spawn(self._follow())
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def _follow(self) -> None:
        """Look for changes while there are listeners and the server is not stopping."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            seen: Look | None = None
            while self._listeners and not stopping.done():
                # Try again later if the database is unavailable.
                with suppress(UnavailableError):
                    seen = await self._look(seen)
                await asyncio.wait([stopping], timeout=_EVERY)
        finally:
            stopping.cancel()
            self._is_looking = False
            self._times.clear()
            for each in self._listeners:
                each.end()

    async def _look(self, seen: Look | None) -> Look:
        now = self._clock()
        watched = {topic for each in self._listeners for topic in each.topics}
        found, times = await look_for_changes(self._database, seen, watched, now)
        for each in self._listeners:
            each.hear(times)
        fresh = {topic: at for topic, at in self._times.items() if at > now - _KEPT}
        self._times = fresh | times
        return found


LIVE_PATH: Final = "/live"
# Proxies close connections that are idle for a minute.
_BEAT_SECONDS: Final = 20.0
# Changes in quick succession are sent once.
_PAUSE_SECONDS: Final = 1.0
_OPENED: Final = b"event: opened\ndata:\n\n"
_CHANGED: Final = b"event: changed\ndata:\n\n"
_BEAT: Final = b":\n\n"

# Keeps proxies from buffering or transforming the stream.
_HEADERS: Final = {"cache-control": "no-store, no-transform", "x-accel-buffering": "no"}


async def stream_changes(visit: PageContext) -> Reply:
    """Stream changes of the topics in the query since the page was rendered."""
    watched = check_topics(visit.request.all("topic"))
    visit.require(*list_topic_permissions(watched))
    since = visit.query_number("since", visit.now)
    visit.site.tail.check_room(visit.person.ref)
    listener = Listener(visit.person.ref, watched, since)
    return Reply(
        _stream_events(visit, listener), headers=_HEADERS, content_type=b"text/event-stream"
    )


async def _stream_events(visit: PageContext, listener: Listener) -> AsyncIterator[bytes]:
    gone = asyncio.ensure_future(visit.request.gone())
    gone.add_done_callback(lambda _: listener.wake())
    try:
        with visit.site.tail.listening(listener):
            yield _OPENED
            while True:
                has_news = await listener.wait(_BEAT_SECONDS)
                if gone.done() or listener.is_over or not await _may_still_listen(visit, listener):
                    return
                yield _CHANGED if has_news else _BEAT
                if has_news:
                    await asyncio.wait([gone], timeout=_PAUSE_SECONDS)
    finally:
        gone.cancel()


async def _may_still_listen(visit: PageContext, listener: Listener) -> bool:
    """True if the session is still valid and may read the topics."""
    database = visit.state.database
    database.refresh()
    found = await sessions.find_session(database, visit.person.hash)
    needs = list_topic_permissions(listener.topics)
    return found is not None and found.counts(visit.now) and found.permissions.issuperset(needs)


LIVE: Sequence[PageRoute] = (PageRoute("GET", LIVE_PATH, stream_changes),)

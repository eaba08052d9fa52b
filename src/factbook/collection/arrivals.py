"""First collection of entities that have come into the catalog, soon after the events tell of them.

However they came: by a push, an import or an identity provider. A source collects those that it
knows nothing of yet, and no other, so that entities that come and go are not collected each time.
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Final

from factbook.catalog.store import collectable
from factbook.clock import SECOND, Clock
from factbook.collection import run_start
from factbook.errors import GoneError
from factbook.events import store as events
from factbook.events.event import FeedPosition
from factbook.events.store import EventFilter, FeedPage
from factbook.facts import store
from factbook.integrations.integration import Integration
from factbook.scheduling import housekeeping, lease, run_queue, runs
from factbook.storage import Database, Transaction, counters

# Counter of the first position in the feed that was not looked at.
_PLACE: Final = "collected_event"
_LOCK: Final = "arrivals"
_ADDED: Final = EventFilter(types=("entity.added",))
# Entities of one look: more than a row of the feed tells of.
_AT_ONCE: Final = 2_000
# Between two looks of which the first began runs: entities that come one by one share them.
PAUSE: Final = 10 * SECOND


class Arrivals:
    """The follower of the feed; of all processes, one at a time has it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._place = 0
        self._begun_at: int | None = None

    async def collect(self, integrations: Sequence[Integration]) -> int:
        """Begin runs of entities that are new; returns how many were looked at.

        Sources without a cadence are only collected when they are asked.
        """
        if self._begun_at is not None and 0 <= self._clock() - self._begun_at < PAUSE:
            return 0
        wanted = [one for one in integrations if one.source.cadence]
        stored = await counters.value(self._database, _PLACE)
        place = max(stored, self._place)
        end = await events.end(self._database)
        while place < end.position:
            refs, place = await self._page(place, end)
            if refs:
                return await self._begin(wanted, refs, stored, place)
            # Kept in memory alone: most events are of facts, and would each be a write.
            self._place = place
        return 0

    async def _page(self, place: int, end: FeedPosition) -> tuple[list[str], int]:
        """The references of new entities in the next rows, and the place behind these."""
        try:
            page = await events.page(self._database, FeedPosition(place, 0), _ADDED, _AT_ONCE)
        except GoneError:
            # Forgotten, or of a backup: the sources' next runs find what is new.
            return [], end.position
        return _whole(page), page.next.position

    async def _begin(
        self, integrations: Sequence[Integration], refs: list[str], stored: int, place: int
    ) -> int:
        now = await lease.fetch_shared_time(self._database, self._clock)
        begun = (await runs.fetch_starts(self._database, now + housekeeping.LARGEST_LEAD)).last
        if any(one.source.id not in begun for one in integrations):
            # Its first run begins at once, and plans for what is there.
            return 0

        found = await self._database.write(partial(collectable.ids_of, refs=refs))
        ids = set(found.values())
        # Each in a write of its own: others write in between, however many sources there are.
        for one in integrations:
            begin = partial(_begin_one, integration=one, ids=ids, stored=stored, now=now)
            if not await self._database.write(begin):
                return 0
        if not await self._database.write(partial(_end, stored=stored, place=place)):
            return 0
        self._place, self._begun_at = place, self._clock()
        return len(ids)


def _begin_one(
    transaction: Transaction, *, integration: Integration, ids: set[int], stored: int, now: int
) -> bool:
    """Begin a run of what a source does not know; false if another process looked at them.

    A source that cannot plan it does not keep others from theirs: its next run finds the entities.
    """
    if not _is_next(transaction, stored):
        return False
    new = sorted(ids - _known(transaction, integration.source.id, ids))
    run_start.begin_some(transaction, integration, new, now, is_asked_for=False)
    return True


def _end(transaction: Transaction, *, stored: int, place: int) -> bool:
    """Go on behind these entities; false if another process did."""
    if not _is_next(transaction, stored):
        return False
    counters.put(transaction, _PLACE, place)
    return True


def _is_next(transaction: Transaction, stored: int) -> bool:
    """Keep other processes from the place; false if it is another by now."""
    transaction.lock(_LOCK)
    return counters.value_within(transaction, _PLACE) == stored


def _known(transaction: Transaction, source_id: str, ids: set[int]) -> set[int]:
    """Those of these entities that a source knows something of, or is about to."""
    works = run_queue.list_unfinished_work(transaction, source_id)
    targets = (found for work in works for found in run_start.targets_of(work).values())
    # Looked at last: what is stored meanwhile was in a batch before.
    return set(chain.from_iterable(targets)) | store.select_collected(
        transaction, source_id, sorted(ids)
    )


def _whole(page: FeedPage) -> list[str]:
    """The references of a page without those of a row that goes on behind it."""
    cut = page.next.position if page.next.item else None
    return [event.subject for event in page.events if event.place.position != cut]

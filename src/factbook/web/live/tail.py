"""The tail of a server process: looks at what changes, for all pages that listen to it.

It looks only while somebody listens, once for all of them, and wakes those whose topics changed.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from factbook.clock import MINUTE, SECOND, Clock
from factbook.errors import TooManyRequestsError, UnavailableError
from factbook.storage import Database
from factbook.web.live.look import Look, look

# Seconds between two looks.
_EVERY: Final = 0.5
# Clocks of processes differ by a little.
_SLACK: Final = SECOND
# Changes that are remembered, for pages that were on their way meanwhile.
_KEPT: Final = 5 * MINUTE
# Pages that one person and that all have open and in view.
_OF_ONE: Final = 12
_OF_ALL: Final = 1_000
_LATER_SECONDS: Final = 60


class Listener:
    """A page that listens: the topics that it watches, and since when it has not heard of them."""

    def __init__(self, person: str, topics: frozenset[str], since: int) -> None:
        self.person = person
        self.topics = topics
        self.is_over = False
        self._since = since - _SLACK
        self._has_news = False
        self._woken = asyncio.Event()

    def hear(self, times: Mapping[str, int]) -> None:
        """Be told when topics changed."""
        if any(times.get(topic, 0) >= self._since for topic in self.topics):
            self._has_news = True
            self.wake()

    def wake(self) -> None:
        """End the wait."""
        self._woken.set()

    def end(self) -> None:
        """End the wait and all others: nobody looks any more."""
        self.is_over = True
        self.wake()

    async def wait(self, seconds: float) -> bool:
        """Wait until woken, for so long at most; returns true if there is news since the last."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        self._woken.clear()
        news, self._has_news = self._has_news, False
        return news


class ChangeTail:
    """The listeners of a process, and the task that looks for them."""

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
        """Raise TooManyRequestsError if the person, or everybody, has too many pages open."""
        theirs = sum(each.person == person for each in self._listeners)
        if theirs >= _OF_ONE or len(self._listeners) >= _OF_ALL:
            message = "Too many pages listen to changes at once."
            raise TooManyRequestsError(message, retry_after=_LATER_SECONDS)

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Look for it until the end of the block; raises as `check_room` does."""
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
        """Look again and again while somebody listens and the server is not stopping."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            seen: Look | None = None
            while self._listeners and not stopping.done():
                # A database that is away changes nothing.
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
        found, times = await look(self._database, seen, watched, now)
        for each in self._listeners:
            each.hear(times)
        fresh = {topic: at for topic, at in self._times.items() if at > now - _KEPT}
        self._times = fresh | times
        return found

"""Places for requests under way, and the line of those that wait for one."""

import asyncio
from collections import deque


class Line:
    """So many places; who finds none free waits, in the order of coming.

    Whoever gave a place back for a while gets one again before those that never had one.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._back: deque[asyncio.Future[None]] = deque()
        self._new: deque[tuple[float, asyncio.Future[None]]] = deque()
        self.let_in = 0  # since somebody set it to 0

    @property
    def is_open(self) -> bool:
        """Whether there is a place for who comes now, and nobody who came before waits for it."""
        return self._free > 0 and not self._new and not self._back

    @property
    def is_waited_in(self) -> bool:
        """Whether somebody waits to be let in."""
        return bool(self._new)

    def take(self) -> None:
        """Take a place while the line is open."""
        self._free -= 1
        self.let_in += 1

    async def wait(self, now: float) -> None:
        """Return with a place; raises what somebody sets as the end of the waiting."""
        future = asyncio.get_running_loop().create_future()
        self._new.append((now, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release()
            raise

    async def acquire(self) -> None:
        """Return with a place again, after `release`; who is cancelled meanwhile has it, too."""
        if self._free > 0 and not self._back:
            self._free -= 1
            return
        future = asyncio.get_running_loop().create_future()
        self._back.append(future)
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._free -= 1
            raise

    def release(self) -> None:
        """Give a place back, to whoever waits."""
        self._free += 1
        self.give()

    def give(self) -> None:
        """Give the places that are free to those that wait."""
        while self._free > 0 and self._back:
            if _grant(self._back.popleft()):
                self._free -= 1
        while self._free > 0 and self._new:
            _, future = self._new.popleft()
            if _grant(future):
                self.take()

    def overdue(self, before: float, most: int) -> list[asyncio.Future[None]]:
        """Who has waited since before then, the longest first, and waits no more."""
        found: list[asyncio.Future[None]] = []
        while self._new and self._new[0][0] < before and len(found) < most:
            _, future = self._new.popleft()
            if not future.done():
                found.append(future)
        return found


def _grant(future: asyncio.Future[None]) -> bool:
    """Whether somebody is still there to use what is given."""
    if future.done():
        return False
    future.set_result(None)
    return True

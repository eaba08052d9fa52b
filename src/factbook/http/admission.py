"""Admission control: limits concurrent requests when the service is overloaded.

Admitted requests stay fast. Others wait in a queue, which keeps their clients from retrying, and
get a 503 after two seconds, before the service spends any work on them. Three resources are
protected:

- The event loop: if an iteration takes long, late requests wait for the next iteration.
- The database: slow queries hardly use the loop, so requests are counted. Reads and writes are
  counted separately, because one write can block all others.
- Memory: large bodies that don't fit together are read one after another.

Rate limits bound each token and each address.
"""

import asyncio
import ipaddress
import math
import re
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final, Literal
from urllib.parse import urlsplit

import structlog

from factbook.clock import SECOND, Clock
from factbook.errors import (
    MisdirectedRequestError,
    NotAllowedError,
    OverloadedError,
)
from factbook.http.requests import Request
from factbook.observability.metrics import Metrics
from factbook.settings import Settings

log = structlog.get_logger("factbook.api")

Reason = Literal["under_way", "body"]

# Seconds into a turn of the event loop after which no more requests are admitted.
_LONGEST_TURN: Final = 0.25
# Requests admitted in every turn, however long the first of them takes.
_ALWAYS: Final = 16
# Seconds that a request may wait in the queue, and seconds between checks for overdue requests.
_PATIENCE: Final = 2.0
_LOOK: Final = 0.05
# Answers per refusal between two checks; `_ALWAYS_REFUSED` may be refused in any case. A refusal
# costs nearly as much as an answer, and refused clients retry.
_ANSWERS: Final = 4
_ALWAYS_REFUSED: Final = 20
# Bodies up to this many bytes are not counted.
_SMALL: Final = 1024 * 1024
# Bytes for all bodies sent without a token, and the size up to which such a body isn't counted.
# Their budget is separate, so clients without a token can't use up the budget of the others.
_UNPROVED: Final = 32 * 1024 * 1024
_UNPROVED_SMALL: Final = 64 * 1024
# Seconds that a large body may wait for memory.
_LONGEST_WAIT: Final = 30.0
# Seconds between two log lines about refusals.
_LOGGED_EVERY: Final = 10.0
# Keys that a rate limit remembers. Beyond that, keys with their full allowance are forgotten.
_REMEMBERED: Final = 10_000


class Admission:
    """Admits up to `most` reads, `most` writes, and `room` bytes of large bodies at once."""

    def __init__(self, most: int, room: int, metrics: Metrics) -> None:
        self._reads = WaitQueue(most)
        self._writes = WaitQueue(most)
        self._room = _Room(room)
        self._unproved = _Room(_UNPROVED)
        self._metrics = metrics
        self._turn: float | None = None  # arrival of the turn's first request
        self._admitted = 0  # in this turn
        self._next_look: asyncio.TimerHandle | None = None
        self._unsaid = 0  # refusals since the last log line
        self._said: float | None = None

    async def enter(self, request: Request, now: float, *, writes: bool) -> None:
        """Admit a request that arrived at `now` (`time.perf_counter`); raises OverloadedError.

        The request keeps a read or write slot until `leave`.
        """
        request.gate = line = self._writes if writes else self._reads
        if self._turn is None:
            self._turn = now
            # Runs in the loop's next turn, before requests that arrive in the meantime.
            asyncio.get_running_loop().call_soon(self._turn_over)
        is_late = now - self._turn > _LONGEST_TURN and self._admitted >= _ALWAYS
        if is_late or not line.is_open:
            self._look_later()
            await line.wait(now)
        else:
            line.take()
        self._admitted += 1

    def leave(self, request: Request) -> None:
        """Release the slot of an admitted request."""
        assert request.gate is not None
        request.gate.release()

    @asynccontextmanager
    async def room_for_body(
        self, request: Request, limit: int, *, proved: bool = True
    ) -> AsyncIterator[None]:
        """Reserve memory to read and process the body; raises OverloadedError.

        Don't read the body before: until then it takes no memory here. A body of unknown length
        counts as `limit`. Pass `proved=False` if the sender can only be verified after reading.
        """
        room, small = (self._room, _SMALL) if proved else (self._unproved, _UNPROVED_SMALL)
        length = request.headers.get(b"content-length", b"")
        size = min(int(length), limit) if length.isdigit() else limit
        if size <= small:
            yield
            return
        try:
            async with request.aside(), asyncio.timeout(_LONGEST_WAIT):
                await room.take(size)
        except TimeoutError:
            raise self._refusal("body") from None
        try:
            yield
        finally:
            room.give_back(size)

    def _turn_over(self) -> None:
        self._turn, self._admitted = None, 0
        self._reads.give()
        self._writes.give()

    def _look_later(self) -> None:
        if self._next_look is None:
            self._next_look = asyncio.get_running_loop().call_later(_LOOK, self._look)

    def _look(self) -> None:
        self._next_look = None
        for line in (self._reads, self._writes):
            most = max(_ALWAYS_REFUSED, line.let_in // _ANSWERS)
            for one in line.overdue(time.perf_counter() - _PATIENCE, most):
                one.set_exception(self._refusal("under_way"))
            line.let_in = 0
            if line.is_waited_in:
                self._look_later()

    def _refusal(self, reason: Reason) -> OverloadedError:
        self._metrics.shed(reason)
        self._unsaid += 1
        now = time.monotonic()
        if self._said is None or now - self._said >= _LOGGED_EVERY:
            log.warning("requests.shed", requests=self._unsaid, reason=reason)
            self._said, self._unsaid = now, 0
        return OverloadedError()


class _Room:
    """Budget of bytes; requests that don't fit wait in FIFO order."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._free = size
        self._first = asyncio.Lock()
        self._given_back = asyncio.Event()

    async def take(self, size: int) -> None:
        size = min(size, self._size)
        async with self._first:
            while self._free < size:
                self._given_back.clear()
                await self._given_back.wait()
            self._free -= size

    def give_back(self, size: int) -> None:
        self._free += min(size, self._size)
        self._given_back.set()


class WaitQueue:
    """FIFO queue for a fixed number of slots.

    Requests that released their slot temporarily come before new requests.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._back: deque[asyncio.Future[None]] = deque()
        self._new: deque[tuple[float, asyncio.Future[None]]] = deque()
        self.let_in = 0  # since the last reset by `Admission`

    @property
    def is_open(self) -> bool:
        """True if a slot is free and no earlier request waits for it."""
        return self._free > 0 and not self._new and not self._back

    @property
    def is_waited_in(self) -> bool:
        """True if new requests are waiting."""
        return bool(self._new)

    def take(self) -> None:
        """Take a slot while the queue is open."""
        self._free -= 1
        self.let_in += 1

    async def wait(self, now: float) -> None:
        """Wait for a slot; raises OverloadedError if `Admission` gives up on the request."""
        future = asyncio.get_running_loop().create_future()
        self._new.append((now, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release()
            raise

    async def acquire(self) -> None:
        """Wait for a slot after `release`. The caller has the slot even if the wait is canceled."""
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
        """Release a slot; the next waiter, if any, gets it."""
        self._free += 1
        self.give()

    def give(self) -> None:
        """Hand the free slots to waiters."""
        while self._free > 0 and self._back:
            if _grant(self._back.popleft()):
                self._free -= 1
        while self._free > 0 and self._new:
            _, future = self._new.popleft()
            if _grant(future):
                self.take()

    def overdue(self, before: float, most: int) -> list[asyncio.Future[None]]:
        """Remove and return waiters that arrived before that time, longest wait first."""
        found: list[asyncio.Future[None]] = []
        while self._new and self._new[0][0] < before and len(found) < most:
            _, future = self._new.popleft()
            if not future.done():
                found.append(future)
        return found


def _grant(future: asyncio.Future[None]) -> bool:
    if future.done():
        return False
    future.set_result(None)
    return True


class RateLimit:
    """Rate limit per key: `burst` at once and `rate` a second sustained.

    Keeps one time per key: when its allowance is full again (the generic cell rate algorithm, which
    is equivalent to a token bucket).
    """

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        self._interval = SECOND / rate
        self._tolerance = self._interval * (burst - 1)
        self._clock = clock
        self._full_at: dict[str, float] = {}

    def take(self, key: str) -> int:
        """Count a call and return 0 if the limit allows it, else the seconds to wait."""
        now = self._clock()
        full_at = self._full(key, now)
        if seconds := self._seconds(full_at - now):
            return seconds
        self._full_at[key] = full_at + self._interval
        if len(self._full_at) > _REMEMBERED:
            self._full_at = {key: time for key, time in self._full_at.items() if time > now}
        return 0

    def waits(self, key: str) -> int:
        """Seconds until the next allowed call, 0 if allowed now; doesn't count a call."""
        now = self._clock()
        return self._seconds(self._full(key, now) - now)

    def _full(self, key: str, now: int) -> float:
        full_at = max(self._full_at.get(key, now), now)
        # The clock was set back: no allowance can be this far off.
        return now if full_at - now > self._tolerance + self._interval else full_at

    def _seconds(self, lacking: float) -> int:
        excess = lacking - self._tolerance
        return max(1, math.ceil(excess / SECOND)) if excess > 0 else 0


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
# A host with or without a port; IPv6 addresses are in brackets.
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:]*))(?::[0-9]*)?", re.ASCII)


class Hosts:
    """Hosts that this server answers for, and browser origins that may call it.

    Another site can point its own host name at this server (DNS rebinding); browsers then treat
    both as the same origin. That doesn't work with a foreign name or a bare address. So only names
    in the settings are accepted, plus addresses if the settings list no names: health checks and
    people trying the service use them. Configured origins may read answers (CORS).
    """

    def __init__(self, settings: Settings) -> None:
        self.shared_with = frozenset(origin.rstrip("/") for origin in settings.allowed_origins)
        origins = set(self.shared_with)
        names = {name.lower() for name in settings.allowed_hosts}
        self._addresses = not names and settings.host not in _LOOPBACK
        if not names:
            names |= _LOOPBACK
        if settings.public_url:
            own = urlsplit(settings.public_url)
            origins.add(f"{own.scheme}://{own.netloc}")
            names.add(own.hostname or "")
        self._origins = frozenset(origins)
        self._names = frozenset(names | {name.strip("[]") for name in names})
        # Clients choose the names, so the cache is bounded.
        self._allows = lru_cache(maxsize=256)(self._is_allowed)

    def check(self, host: bytes | None, origin: bytes | None, *, probe: bool = False) -> None:
        """Raise MisdirectedRequestError or NotAllowedError, naming the setting to change.

        A `probe` may use any address, because health checks don't know a name.
        """
        if not self._allows(host, probe or self._addresses):
            raise MisdirectedRequestError(
                "This server does not answer for the host of this request. Set public_url to the "
                "address that clients use, or name the host in allowed_hosts."
            )
        if origin is None:
            return
        address, own = origin.decode("latin-1"), (host or b"").decode("latin-1").lower()
        try:
            is_allowed = address in self._origins or urlsplit(address).netloc.lower() == own
        except ValueError:  # not an address
            is_allowed = False
        if not is_allowed:
            raise NotAllowedError(
                "The origin of this request may not call this server; "
                "the setting allowed_origins names those that may."
            )

    def _is_allowed(self, host: bytes | None, addresses: bool) -> bool:
        if host is None:  # HTTP/1.0 clients; never a browser
            return addresses
        text = host.decode("latin-1").lower()
        parts = _HOST.fullmatch(text)
        name = (parts[1] or parts[2]) if parts else ""
        if {text, name} & self._names:
            return True
        if not addresses:
            return False
        if name == "localhost":
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

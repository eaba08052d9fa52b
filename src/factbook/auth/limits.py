"""Rate limits, held in the memory of one process."""

import math

from factbook.clock import SECOND, Clock

# Keys remembered at once; beyond that, those that are back at their full allowance are forgotten.
_REMEMBERED = 10_000


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
        """Count one and return 0 if it is allowed; else the seconds until it would be."""
        now = self._clock()
        full_at = self._full(key, now)
        if seconds := self._seconds(full_at - now):
            return seconds
        self._full_at[key] = full_at + self._interval
        if len(self._full_at) > _REMEMBERED:
            self._forget(now)
        return 0

    def waits(self, key: str) -> int:
        """Seconds until one would be allowed, 0 for now; counts nothing."""
        now = self._clock()
        return self._seconds(self._full(key, now) - now)

    def _full(self, key: str, now: int) -> float:
        full_at = max(self._full_at.get(key, now), now)
        # A clock that was set back: no allowance is ever as far off.
        return now if full_at - now > self._tolerance + self._interval else full_at

    def _seconds(self, lacking: float) -> int:
        excess = lacking - self._tolerance
        return max(1, math.ceil(excess / SECOND)) if excess > 0 else 0

    def _forget(self, now: int) -> None:
        self._full_at = {key: time for key, time in self._full_at.items() if time > now}

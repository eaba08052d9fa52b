"""How often something may happen, held in the memory of one process."""

import math
from collections import OrderedDict

from factbook.clock import SECOND, Clock

# Addresses and tokens remembered at once; the one unused for longest is forgotten first.
_REMEMBERED = 10_000


class RateLimit:
    """A token bucket for each key: `burst` at once, `rate` a second sustained."""

    def __init__(self, rate: float, burst: float, clock: Clock) -> None:
        self._rate = rate / SECOND
        self._burst = burst
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def wait(self, key: str) -> int:
        """Seconds until one more is allowed; 0 when it is allowed now. Counts nothing."""
        level = self._level(key, self._clock())
        return 0 if level >= 1 else max(1, math.ceil((1 - level) / self._rate / SECOND))

    def take(self, key: str) -> int:
        """Count one if it is allowed; seconds until it would be, 0 when it was."""
        now = self._clock()
        level = self._level(key, now)
        if level < 1:
            return max(1, math.ceil((1 - level) / self._rate / SECOND))
        self._buckets[key] = (level - 1, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > _REMEMBERED:
            self._buckets.popitem(last=False)
        return 0

    def _level(self, key: str, now: int) -> float:
        level, since = self._buckets.get(key, (self._burst, now))
        return min(self._burst, level + max(0, now - since) * self._rate)

"""Durations as Prometheus's histograms, counted in plain numbers."""

from bisect import bisect_left
from typing import Final

from prometheus_client.core import HistogramMetricFamily

_SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
_BOUNDS: Final = (*(str(bound) for bound in _SECONDS), "+Inf")


class Durations:
    """How many of something took how long."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound with the number of those that took no longer."""
        count, found = 0, []
        for bound, inside in zip(_BOUNDS, self.buckets, strict=True):
            count += inside
            found.append((bound, float(count)))
        return found

    def family(self, name: str, about: str) -> HistogramMetricFamily:
        """As a histogram without labels."""
        return HistogramMetricFamily(name, about, buckets=self.cumulative(), sum_value=self.total)

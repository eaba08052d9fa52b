"""What Prometheus can scrape: counts and durations, no name of an entity, person or token.

Requests are counted in plain numbers, by the event loop alone, and put into Prometheus's form when
they are scraped.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_BOUNDS = (*(str(bound) for bound in _SECONDS), "+Inf")


class _Durations:
    """How many requests took how long."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * (len(_SECONDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.buckets[bisect_left(_SECONDS, seconds)] += 1
        self.total += seconds

    def cumulative(self) -> list[tuple[str, float]]:
        """Each bound with the number of requests that took no longer."""
        count, found = 0, []
        for bound, inside in zip(_BOUNDS, self.buckets, strict=True):
            count += inside
            found.append((bound, float(count)))
        return found


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], _Durations] = {}
        self._tools: Counter[tuple[str, str]] = Counter()
        self._entities: Counter[str] = Counter()
        self._registry = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self._registry)
        self._registry.register(self)

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        durations = self._requests.get((route, method, status))
        if durations is None:
            # A client can make up methods, and every one would be remembered.
            key = (route, method if method in _METHODS else "other", status)
            durations = self._requests.setdefault(key, _Durations())
        durations.add(seconds)

    def called(self, tool: str, outcome: str) -> None:
        """Count one tool call."""
        self._tools[tool, outcome] += 1

    def pushed(self, changes: dict[str, int]) -> None:
        """Count what one push changed."""
        self._entities.update(changes)

    def render(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """What was counted, as Prometheus's client library takes it."""
        requests = HistogramMetricFamily(
            "factbook_http_request_seconds",
            "Seconds from a request's first byte to its answer's first.",
            labels=("route", "method", "status"),
        )
        for (route, method, status), durations in self._requests.items():
            labels = (route, method, str(status))
            requests.add_metric(labels, durations.cumulative(), durations.total)
        yield requests
        tools = CounterMetricFamily(
            "factbook_tool_calls", "Tool calls, by tool and outcome.", labels=("tool", "outcome")
        )
        for (tool, outcome), count in self._tools.items():
            tools.add_metric((tool, outcome), count)
        yield tools
        entities = CounterMetricFamily(
            "factbook_pushed_entities",
            "Entities that pushes added, updated, removed or left unchanged.",
            labels=("change",),
        )
        for change, count in self._entities.items():
            entities.add_metric((change,), count)
        yield entities

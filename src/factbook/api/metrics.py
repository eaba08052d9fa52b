"""What Prometheus can scrape: counts and durations, no name of an entity, person or token."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self.registry)
        self._requests = Counter(
            "factbook_http_requests",
            "Requests answered, by route, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "factbook_http_request_seconds",
            "Seconds from a request's first byte to its answer's first.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._tools = Counter(
            "factbook_tool_calls",
            "Tool calls, by tool and outcome.",
            ("tool", "outcome"),
            registry=self.registry,
        )
        self._entities = Counter(
            "factbook_pushed_entities",
            "Entities that pushes added, updated, removed or left unchanged.",
            ("change",),
            registry=self.registry,
        )
        self._answered: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._called: dict[tuple[str, str], Counter] = {}

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        key = (route, method, status)
        metrics = self._answered.get(key)
        if metrics is None:
            metrics = self._answered[key] = (
                self._requests.labels(route, method, str(status)),
                self._seconds.labels(route, method),
            )
        metrics[0].inc()
        metrics[1].observe(seconds)

    def called(self, tool: str, outcome: str) -> None:
        """Count one tool call."""
        key = (tool, outcome)
        counter = self._called.get(key)
        if counter is None:
            counter = self._called[key] = self._tools.labels(tool, outcome)
        counter.inc()

    def pushed(self, changes: dict[str, int]) -> None:
        """Count what one push changed."""
        for change, count in changes.items():
            self._entities.labels(change).inc(count)

    def render(self) -> bytes:
        """The metrics in Prometheus's text format."""
        return generate_latest(self.registry)

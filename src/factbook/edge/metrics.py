"""What Prometheus can scrape: counts and durations, no name of an entity, person or token.

Requests are counted in plain numbers, by the event loop alone, and put into Prometheus's form when
they are scraped. Figures of sources come from the database, whichever process collects.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from factbook.clock import SECOND
from factbook.facts.datasource import DataSource
from factbook.facts.health import next_run
from factbook.scheduling.runs import Health

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
        self._left_out_of_audit = 0
        self._further: Iterable[Metric] = ()
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

    def left_out_of_audit(self, records: int) -> None:
        """Count refused calls that the audit does not hold."""
        self._left_out_of_audit += records

    def render(self, further: Iterable[Metric] = ()) -> bytes:
        """The metrics, and `further` ones, in Prometheus's text format."""
        self._further = further
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
        yield CounterMetricFamily(
            "factbook_audit_dropped",
            "Refused calls that are not in the audit, because there were too many.",
            value=self._left_out_of_audit,
        )
        yield from self._further


def of_sources(
    sources: Mapping[str, DataSource], known: Mapping[str, Health], now: int
) -> Iterator[Metric]:
    """How each source is doing that has been collected. Alerts go by the times."""
    for name, about, value in _SOURCE_GAUGES:
        gauge = GaugeMetricFamily(f"factbook_source_{name}", about, labels=("source",))
        for id_, source in sources.items():
            if id_ in known and (number := value(source, known[id_], now)) is not None:
                gauge.add_metric((id_,), number)
        if gauge.samples:
            yield gauge
    entities = GaugeMetricFamily(
        "factbook_source_entities",
        "Entities that the last run covered, failed or skipped.",
        labels=("source", "outcome"),
    )
    for id_ in sources.keys() & known.keys():
        if last := known[id_].last:
            for outcome in ("covered", "failed", "skipped"):
                entities.add_metric((id_, outcome), getattr(last, outcome))
    if entities.samples:
        yield entities


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND


_Value = Callable[[DataSource, Health, int], float | None]
_SOURCE_GAUGES: tuple[tuple[str, str, _Value], ...] = (
    (
        "up",
        "Whether the last run brought anything.",
        lambda _, health, now: float(health.down_since is None),
    ),
    (
        "last_success_timestamp_seconds",
        "When a run last brought something.",
        lambda _, health, now: _seconds(health.succeeded_at),
    ),
    (
        "last_run_duration_seconds",
        "How long the last run took.",
        lambda _, health, now: _seconds(health.last and health.last.duration),
    ),
    (
        "last_run_calls",
        "Calls that the last run made.",
        lambda _, health, now: health.last and health.last.calls,
    ),
    (
        "rate_limit_remaining",
        "Calls that the vendor's tightest limit still allowed at the end of the last run.",
        lambda _, health, now: health.last and health.last.rate_limit_left,
    ),
    (
        "next_run_timestamp_seconds",
        "When the source is collected next.",
        lambda source, health, now: _seconds(next_run(source, health, now)),
    ),
    (
        "credential_expiry_timestamp_seconds",
        "When the credential expires, where the vendor says so.",
        lambda _, health, now: _seconds(health.credential_expires_at),
    ),
)

"""Counts and durations of this process: its requests, its event loop and its use of the database.

They are plain numbers, counted by the event loop alone, without names of entities, people or
tokens; `prometheus` puts them into Prometheus's form on a scrape.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from factbook import __version__
from factbook.clock import SECOND
from factbook.facts.datasource import DataSource
from factbook.facts.health import interval, next_run
from factbook.observability.durations import Durations
from factbook.observability.load import Load
from factbook.scheduling.runs import SourceHealth

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str, int], Durations] = {}
        self._tools: Counter[tuple[str, str]] = Counter()
        self._entities: Counter[str] = Counter()
        self._left_out_of_audit = 0
        self._messages: Counter[str] = Counter()
        self.load = Load()
        self._shed: Counter[str] = Counter()
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
            durations = self._requests.setdefault(key, Durations())
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

    def shed(self, reason: str) -> None:
        """Count a request that was refused because of too many others."""
        self._shed[reason] += 1

    def posted(self, outcome: str) -> None:
        """Count one message to a webhook."""
        self._messages[outcome] += 1

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
        shed = CounterMetricFamily(
            "factbook_requests_shed",
            "Requests refused because more was asked than could be answered.",
            labels=("reason",),
        )
        for reason in ("under_way", "body"):
            shed.add_metric((reason,), self._shed[reason])
        yield shed
        messages = CounterMetricFamily(
            "factbook_webhook_messages_sent",
            "Messages that this process sent to webhooks, by what came of it.",
            labels=("outcome",),
        )
        for outcome in ("delivered", "failed"):
            messages.add_metric((outcome,), self._messages[outcome])
        yield messages
        yield InfoMetricFamily("factbook_build", "What runs.", value={"version": __version__})
        yield from self._further


def of_sources(
    sources: Mapping[str, DataSource], known: Mapping[str, SourceHealth], now: int
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


_Value = Callable[[DataSource, SourceHealth, int], float | None]
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
        "cadence_seconds",
        "How far apart the moments are at which the source is collected.",
        lambda source, _, now: _seconds(interval(source, now)),
    ),
    (
        "credential_expiry_timestamp_seconds",
        "When the credential expires, where the vendor says so.",
        lambda _, health, now: _seconds(health.credential_expires_at),
    ),
)

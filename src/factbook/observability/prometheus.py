"""Metrics of this process in Prometheus's text format."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import suppress

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
from factbook.errors import UnavailableError
from factbook.observability.metrics import Durations, Load, Metrics
from factbook.storage import Database
from factbook.storage.database import ReplicaUse


def render(metrics: Metrics, further: Iterable[Metric] = ()) -> bytes:
    """The metrics, with `further` ones, in Prometheus's text format."""
    registry = CollectorRegistry()
    for collector in (GCCollector, PlatformCollector, ProcessCollector):
        collector(registry=registry)
    registry.register(_Families(metrics, further))
    return generate_latest(registry)


class _Families:
    """Metric families for Prometheus's client library."""

    def __init__(self, metrics: Metrics, further: Iterable[Metric]) -> None:
        self._metrics = metrics
        self._further = further

    def collect(self) -> Iterator[Metric]:
        """The families of the process's metrics, then the further ones."""
        metrics = self._metrics
        cut_off = metrics.cut_off_answers
        requests = HistogramMetricFamily(
            "factbook_http_request_seconds",
            "Seconds from a request's first byte to its answer's first.",
            labels=("route", "method", "status"),
        )
        for (route, method, status), durations in metrics.requests.items():
            labels = (route, method, str(status))
            requests.add_metric(labels, durations.cumulative(), durations.total)
        yield requests
        tools = CounterMetricFamily(
            "factbook_tool_calls", "Tool calls, by tool and outcome.", labels=("tool", "outcome")
        )
        for (tool, outcome), count in metrics.calls.items():
            tools.add_metric((tool, outcome), count)
        yield tools
        yield _counter(
            "factbook_pushed_entities",
            "Entities that pushes added, updated, removed or left unchanged.",
            "change",
            metrics.entities,
        )
        yield CounterMetricFamily(
            "factbook_audit_dropped",
            "Refused calls that are not in the audit, because there were too many.",
            value=metrics.refusals_left_out,
        )
        yield _counter(
            "factbook_requests_shed",
            "Requests refused because more was asked than could be answered.",
            "reason",
            {reason: metrics.shed_requests[reason] for reason in ("under_way", "body")},
        )
        yield _counter(
            "factbook_answers_incomplete",
            "Answers that were cut off before they were complete.",
            "reason",
            {reason: cut_off[reason] for reason in ("slow", "unavailable", "failed")},
        )
        yield _counter(
            "factbook_webhook_messages_sent",
            "Messages that this process sent to webhooks, by their outcome.",
            "outcome",
            {outcome: metrics.messages[outcome] for outcome in ("delivered", "failed")},
        )
        yield InfoMetricFamily("factbook_build", "What runs.", value={"version": __version__})
        yield from self._further


def _counter(name: str, about: str, label: str, counts: Mapping[str, int]) -> Metric:
    """A counter with one label."""
    found = CounterMetricFamily(name, about, labels=(label,))
    for value, count in counts.items():
        found.add_metric((value,), count)
    return found


def of_load(load: Load, database: Database) -> Iterator[Metric]:
    """Metrics of the measured load, and of the database's read connections in use now."""
    yield _histogram(
        load.lag,
        "factbook_event_loop_lag_seconds",
        "Seconds by which the event loop came late to what was due, looked at twice a second.",
    )
    yield _histogram(
        load.waits,
        "factbook_database_write_wait_seconds",
        "Seconds that writes waited for their turn.",
    )
    yield _histogram(
        load.writes,
        "factbook_database_write_seconds",
        "Seconds that writes took, from their turn on.",
    )
    yield GaugeMetricFamily(
        "factbook_database_writes_waiting", "Writes that wait for their turn.", value=load.waiting
    )
    yield GaugeMetricFamily(
        "factbook_database_writable",
        "0 since a write could not be done (disk full, read-only, locked), else 1.",
        value=float(database.trouble() is None),
    )
    reads = database.reads()
    connections = GaugeMetricFamily(
        "factbook_database_read_connections",
        "Connections for reads that may take a while, by what they do.",
        labels=("state",),
    )
    connections.add_metric(("taken",), reads.taken)
    connections.add_metric(("free",), reads.most - reads.taken)
    yield connections
    yield GaugeMetricFamily(
        "factbook_database_reads_waiting",
        "Reads that wait for a connection.",
        value=reads.waiting,
    )


async def of_replica(use: ReplicaUse | None) -> AsyncIterator[Metric]:
    """Metrics of the read replica, if there is one; of its lag as long as that is known."""
    if use is None:
        return
    counts = {"replica": use.served, "primary": use.refused}
    about = "Reads that a replica may serve, by the server that did."
    yield _counter("factbook_database_replica_reads", about, "server", counts)
    yield GaugeMetricFamily(
        "factbook_database_replica_usable",
        "0 while the primary serves all reads, as the replica lags or fails, else 1.",
        value=float(use.reason is None),
    )
    with suppress(UnavailableError):
        yield GaugeMetricFamily(
            "factbook_database_replica_lag_seconds",
            "Seconds by which the replica is behind at most; 0 if it shows every commit.",
            value=await use.lag(),
        )


def _histogram(durations: Durations, name: str, about: str) -> Metric:
    """A histogram without labels."""
    return HistogramMetricFamily(
        name, about, buckets=durations.cumulative(), sum_value=durations.total
    )

"""Metrics of a process and of stored data, in Prometheus's format."""

import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

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
from factbook.catalog.store import browse
from factbook.clock import SECOND
from factbook.datasources.registry import Registry
from factbook.errors import UnavailableError
from factbook.events.store import fetch_newest_event
from factbook.facts import store as fact_store
from factbook.facts.datasource import DataSource
from factbook.facts.freshness import SOURCE_STATES, next_run_time, run_interval, source_condition
from factbook.importers.registry import ImporterRegistry, ImporterStatus, list_importer_statuses
from factbook.observability.metrics import Durations, Load, Metrics
from factbook.scheduling import housekeeping, run_queue, runs
from factbook.scheduling.housekeeping import PartRecord, RetentionClock
from factbook.scheduling.run_queue import Backlog
from factbook.scheduling.runs import SourceHealth
from factbook.storage import Database
from factbook.storage.database import ReplicaUse
from factbook.storage.database_url import sqlite_path
from factbook.storage.migrations import fetch_schema_version
from factbook.webhooks import digests, store

_ImporterValue = Callable[[ImporterStatus], float | None]
IMPORTER_STATES: Final = ("complete", "partial", "held", "failed")


def collect_importer_metrics(statuses: Sequence[ImporterStatus]) -> Iterator[Metric]:
    """Metrics of each importer's state. Alerts rely on the times."""
    for name, about, value in _IMPORTER_GAUGES:
        gauge = GaugeMetricFamily(f"factbook_importer_{name}", about, labels=("importer",))
        for one in statuses:
            if (number := value(one)) is not None:
                gauge.add_metric((one.importer.id,), number)
        if gauge.samples:
            yield gauge
    states = GaugeMetricFamily(
        "factbook_importer_state",
        "1 for the state in which the last run of the importer ended.",
        labels=("importer", "state"),
    )
    for one in statuses:
        for state in IMPORTER_STATES if one.last else ():
            assert one.last is not None
            states.add_metric((one.importer.id, state), float(state == one.last.state))
    if states.samples:
        yield states


def _to_seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND


async def collect_stored_metrics(database: Database, now: int) -> list[Metric]:
    """Metrics of the amount of stored data and pending work; raises UnavailableError."""
    size = await browse.read_catalog_size(database)
    version = await fetch_schema_version(database)
    newest = await fetch_newest_event(database)
    return [
        _build_gauge("factbook_schema_version", "Number of the newest migration.", version),
        _build_gauge("factbook_sets", "Sets that have items.", size.sets),
        _build_gauge("factbook_entities", "Entities in sets and outside any.", size.entities),
        _build_gauge(
            "factbook_events_last_position",
            "Position of the newest event in the feed.",
            newest.position,
        ),
        _build_time_gauge("factbook_events_last_timestamp_seconds", "When it happened.", newest.at),
        *_webhook_metrics(await store.count_webhooks(database)),
        _build_state_gauge(
            "factbook_digests",
            "Digests, by whether the last message that was due arrived.",
            (await digests.count_digests(database))._asdict(),
        ),
        *_batch_metrics(await run_queue.measure_backlog(database, now)),
        *_housekeeping_metrics(
            await housekeeping.fetch_task_records(database),
            await housekeeping.read_retention_clock(database),
        ),
    ]


def collect_disk_metrics(database_url: str) -> Iterator[Metric]:
    """Metrics of a SQLite database's size and of its disk; none for PostgreSQL."""
    if not database_url.startswith("sqlite:"):
        return
    path = sqlite_path(database_url).resolve()
    with suppress(OSError):
        usage = shutil.disk_usage(path.parent)
        log = path.with_name(f"{path.name}-wal")
        size = sum(file.stat().st_size for file in (path, log) if file.exists())
        yield _build_gauge("factbook_database_bytes", "Size of the SQLite file and its log.", size)
        yield _build_gauge(
            "factbook_disk_free_bytes", "Free room on the disk of the SQLite file.", usage.free
        )
        yield _build_gauge(
            "factbook_disk_bytes", "Size of the disk of the SQLite file.", usage.total
        )


def _webhook_metrics(found: store.WebhookCounts) -> Iterator[Metric]:
    states = {"enabled": found.enabled, "disabled": found.disabled}
    yield _build_state_gauge(
        "factbook_webhooks", "Webhooks, by whether events are sent to them.", states
    )
    messages = {"waiting": found.waiting, "given_up": found.given_up}
    about = "Messages that failed, by whether they are sent again."
    yield _build_state_gauge("factbook_webhook_messages", about, messages)
    yield _build_time_gauge(
        "factbook_webhook_oldest_timestamp_seconds",
        "When that happened which an enabled webhook has not been told for longest.",
        found.oldest_at,
    )


def _batch_metrics(found: Backlog) -> Iterator[Metric]:
    states = found._asdict()
    del states["oldest_at"]
    about = "Batches of collections, by whether they were begun, or given up."
    yield _build_state_gauge("factbook_collection_batches", about, states)
    yield _build_time_gauge(
        "factbook_collection_oldest_timestamp_seconds",
        "Since when the oldest batch waits for a worker.",
        found.oldest_at,
    )


def _housekeeping_metrics(parts: Sequence[PartRecord], clock: RetentionClock) -> Iterator[Metric]:
    gauge = GaugeMetricFamily(
        "factbook_housekeeping_last_success_timestamp_seconds",
        "When each part of the housekeeping last succeeded; 0: never.",
        labels=("part",),
    )
    for one in parts:
        gauge.add_metric((one.part,), (one.succeeded_at or 0) / SECOND)
    yield gauge
    yield _build_gauge(
        "factbook_housekeeping_clock_believed",
        "0 while nothing is deleted for its age because the clock has leapt ahead, else 1.",
        float(clock.refused_at is None),
    )


def _build_gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)


def _build_time_gauge(name: str, about: str, milliseconds: int | None) -> GaugeMetricFamily:
    """Gauge of a time; has no sample if the time is None."""
    return GaugeMetricFamily(name, about, None if milliseconds is None else milliseconds / SECOND)


def _build_state_gauge(name: str, about: str, counts: Mapping[str, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, about, labels=("state",))
    for state, count in counts.items():
        gauge.add_metric((state,), count)
    return gauge


def collect_source_metrics(
    sources: Mapping[str, DataSource],
    known: Mapping[str, SourceHealth],
    pushed: Mapping[str, int],
    now: int,
) -> Iterator[Metric]:
    """Metrics of each source that was collected or pushed to. Alerts rely on the times."""
    for name, about, value in _SOURCE_GAUGES:
        gauge = GaugeMetricFamily(f"factbook_source_{name}", about, labels=("source",))
        for id_, source in sources.items():
            if id_ in known and (number := value(source, known[id_], now)) is not None:
                gauge.add_metric((id_,), number)
        if gauge.samples:
            yield gauge
    entities = GaugeMetricFamily(
        "factbook_source_entities",
        "Entities that the last run covered, failed, left incomplete or skipped.",
        labels=("source", "outcome"),
    )
    for id_ in sources.keys() & known.keys():
        if last := known[id_].last:
            for outcome in ("covered", "failed", "incomplete", "skipped"):
                entities.add_metric((id_, outcome), getattr(last, outcome))
    if entities.samples:
        yield entities
    yield from _build_condition_gauges(sources, known, pushed, now)


def _build_condition_gauges(
    sources: Mapping[str, DataSource],
    known: Mapping[str, SourceHealth],
    pushed: Mapping[str, int],
    now: int,
) -> Iterator[Metric]:
    """Gauges of each source's state, and of whether that state is healthy."""
    up = GaugeMetricFamily(
        "factbook_source_up",
        "Whether the source is up: 0 when it is down, late, or partly failing.",
        labels=("source",),
    )
    states = GaugeMetricFamily(
        "factbook_source_state", "1 for the state of the source.", labels=("source", "state")
    )
    for id_ in sorted(sources.keys() & (known.keys() | pushed.keys())):
        health, pushed_at = known.get(id_), pushed.get(id_)
        current = source_condition(sources[id_], health, now, pushed_at=pushed_at).state
        up.add_metric((id_,), float(current in _HEALTHY))
        for state in SOURCE_STATES:
            states.add_metric((id_, state), float(state == current))
    if states.samples:
        yield up
        yield states


def render_metrics(metrics: Metrics, further: Iterable[Metric] = ()) -> bytes:
    """Render the metrics and the `further` ones in Prometheus's text format."""
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
        for (route, method, code), durations in metrics.requests.items():
            labels = (route, method, str(code))
            requests.add_metric(labels, durations.cumulative(), durations.total)
        yield requests
        tools = CounterMetricFamily(
            "factbook_tool_calls", "Tool calls, by tool and outcome.", labels=("tool", "outcome")
        )
        for (tool, outcome), count in metrics.calls.items():
            tools.add_metric((tool, outcome), count)
        yield tools
        yield _build_counter(
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
        yield _build_counter(
            "factbook_requests_shed",
            "Requests refused because more was asked than could be answered.",
            "reason",
            {reason: metrics.shed_requests[reason] for reason in ("under_way", "body")},
        )
        yield _build_counter(
            "factbook_answers_incomplete",
            "Answers that were cut off before they were complete.",
            "reason",
            {reason: cut_off[reason] for reason in ("slow", "unavailable", "failed")},
        )
        yield _build_counter(
            "factbook_webhook_messages_sent",
            "Messages that this process sent to webhooks, by their outcome.",
            "outcome",
            {outcome: metrics.messages[outcome] for outcome in ("delivered", "failed")},
        )
        yield InfoMetricFamily("factbook_build", "What runs.", value={"version": __version__})
        yield from self._further


def _build_counter(name: str, about: str, label: str, counts: Mapping[str, int]) -> Metric:
    found = CounterMetricFamily(name, about, labels=(label,))
    for value, count in counts.items():
        found.add_metric((value,), count)
    return found


def collect_load_metrics(load: Load, database: Database) -> Iterator[Metric]:
    """Metrics of the measured load, and of the database's read connections in use now."""
    yield _build_histogram(
        load.lag,
        "factbook_event_loop_lag_seconds",
        "Seconds by which the event loop came late to what was due, looked at twice a second.",
    )
    yield _build_histogram(
        load.waits,
        "factbook_database_write_wait_seconds",
        "Seconds that writes waited for their turn.",
    )
    yield _build_histogram(
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


async def collect_replica_metrics(use: ReplicaUse | None) -> AsyncIterator[Metric]:
    """Metrics of the read replica, if there is one; includes its lag while that is known."""
    if use is None:
        return
    counts = {"replica": use.served, "primary": use.refused}
    about = "Reads that a replica may serve, by the server that did."
    yield _build_counter("factbook_database_replica_reads", about, "server", counts)
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


def _build_histogram(durations: Durations, name: str, about: str) -> Metric:
    return HistogramMetricFamily(
        name, about, buckets=durations.cumulative(), sum_value=durations.total
    )


async def render_scrape(
    metrics: Metrics,
    database: Database,
    registry: Registry,
    importers: ImporterRegistry,
    now: int,
    database_url: str,
) -> bytes:
    """Render all metrics in Prometheus's text format, without stored ones if the database fails."""
    known: dict[str, runs.SourceHealth] = {}
    sources = registry.fixed.sources
    kept: list[Metric] = []
    pushed: dict[str, int] = {}
    with suppress(UnavailableError):
        known = await runs.fetch_health(database)
        registered = await registry.current()
        sources = registered.sources
        pushed = await fact_store.find_last_written(database, registered.pushed)
        kept = await collect_stored_metrics(database, now)
        if imported := (await importers.current()).values():
            found = await list_importer_statuses(database, imported, now)
            kept += collect_importer_metrics(found)
    further = [
        *collect_load_metrics(metrics.load, database),
        *[metric async for metric in collect_replica_metrics(database.replica())],
        *collect_source_metrics(sources, known, pushed, now),
        *kept,
        *collect_disk_metrics(database_url),
    ]
    return render_metrics(metrics, further)


_IMPORTER_GAUGES: Final[tuple[tuple[str, str, _ImporterValue], ...]] = (
    (
        "last_complete_timestamp_seconds",
        "When everything was last read; 0: never.",
        lambda one: (one.complete_at or 0) / SECOND if one.last else None,
    ),
    (
        "interval_seconds",
        "How far apart the runs of the importer are.",
        lambda one: _to_seconds(one.importer.every),
    ),
    ("problems", "Problems of the last reading.", lambda one: one.problems if one.last else None),
    (
        "held",
        "Removals that wait for a decision.",
        lambda one: one.held if one.last else None,
    ),
    (
        "failures",
        "Runs in a row, the last one included, that did not read everything.",
        lambda one: one.last and one.last.failures,
    ),
    ("last_run_calls", "Calls that the last run made.", lambda one: one.last and one.last.calls),
    (
        "rate_limit_remaining",
        "Calls that the account's tightest limit still allowed at the end of the last run.",
        lambda one: one.last and one.last.calls_left,
    ),
)


_HEALTHY = frozenset({"up", "draft", "new"})
_SourceValue = Callable[[DataSource, SourceHealth, int], float | None]
_SOURCE_GAUGES: tuple[tuple[str, str, _SourceValue], ...] = (
    (
        "last_success_timestamp_seconds",
        "When a run last brought something.",
        lambda _, health, now: _to_seconds(health.succeeded_at),
    ),
    (
        "last_run_duration_seconds",
        "How long the last run took.",
        lambda _, health, now: _to_seconds(health.last and health.last.duration),
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
        lambda source, health, now: _to_seconds(next_run_time(source, health, now)),
    ),
    (
        "cadence_seconds",
        "How far apart the moments are at which the source is collected.",
        lambda source, _, now: _to_seconds(run_interval(source, now)),
    ),
    (
        "credential_expiry_timestamp_seconds",
        "When the credential expires, where the vendor says so.",
        lambda _, health, now: _to_seconds(health.credential_expires_at),
    ),
)

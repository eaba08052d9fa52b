"""Metrics of the stored data, the same in every process, and of the disk below SQLite."""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric

from factbook.catalog.store import overview
from factbook.clock import SECOND
from factbook.events import store as events
from factbook.facts.datasource import DataSource
from factbook.facts.health import STATES, condition, interval, next_run
from factbook.scheduling import backlog, housekeeping, retention_clock
from factbook.scheduling.backlog import Backlog
from factbook.scheduling.housekeeping import PartRecord
from factbook.scheduling.retention_clock import RetentionClock
from factbook.scheduling.runs import SourceHealth
from factbook.storage import Database, migrations
from factbook.storage.database_url import sqlite_path
from factbook.webhooks import digest_store
from factbook.webhooks import store as webhooks


async def metrics(database: Database, now: int) -> list[Metric]:
    """Metrics of the amount of stored data and pending work; raises UnavailableError."""
    size = await overview.size(database)
    version = await migrations.version(database)
    return [
        _gauge("factbook_schema_version", "Number of the newest migration.", version),
        _gauge("factbook_sets", "Sets that have items.", size.sets),
        _gauge("factbook_entities", "Entities in sets and outside any.", size.entities),
        *_of_events(await events.newest(database)),
        *_of_webhooks(await webhooks.figures(database)),
        _states(
            "factbook_digests",
            "Digests, by whether the last message that was due arrived.",
            (await digest_store.figures(database))._asdict(),
        ),
        *_of_batches(await backlog.measure(database, now)),
        *_of_housekeeping(
            await housekeeping.records(database), await retention_clock.read(database)
        ),
    ]


def of_disk(database_url: str) -> Iterator[Metric]:
    """Metrics of a SQLite database's size and of its disk; none for PostgreSQL."""
    if not database_url.startswith("sqlite:"):
        return
    path = sqlite_path(database_url).resolve()
    with suppress(OSError):
        usage = shutil.disk_usage(path.parent)
        log = path.with_name(f"{path.name}-wal")
        size = sum(file.stat().st_size for file in (path, log) if file.exists())
        yield _gauge("factbook_database_bytes", "Size of the SQLite file and its log.", size)
        yield _gauge(
            "factbook_disk_free_bytes", "Free room on the disk of the SQLite file.", usage.free
        )
        yield _gauge("factbook_disk_bytes", "Size of the disk of the SQLite file.", usage.total)


def _of_events(newest: events.Newest) -> Iterator[Metric]:
    about = "Position of the newest event in the feed."
    yield _gauge("factbook_events_last_position", about, newest.position)
    yield _time("factbook_events_last_timestamp_seconds", "When it happened.", newest.at)


def _of_webhooks(found: webhooks.WebhookCounts) -> Iterator[Metric]:
    states = {"enabled": found.enabled, "disabled": found.disabled}
    yield _states("factbook_webhooks", "Webhooks, by whether events are sent to them.", states)
    messages = {"waiting": found.waiting, "given_up": found.given_up}
    about = "Messages that failed, by whether they are sent again."
    yield _states("factbook_webhook_messages", about, messages)
    yield _time(
        "factbook_webhook_oldest_timestamp_seconds",
        "When that happened which an enabled webhook has not been told for longest.",
        found.oldest_at,
    )


def _of_batches(found: Backlog) -> Iterator[Metric]:
    states = found._asdict()
    del states["oldest_at"]
    about = "Batches of collections, by whether they were begun, or given up."
    yield _states("factbook_collection_batches", about, states)
    yield _time(
        "factbook_collection_oldest_timestamp_seconds",
        "Since when the oldest batch waits for a worker.",
        found.oldest_at,
    )


def _of_housekeeping(parts: Sequence[PartRecord], clock: RetentionClock) -> Iterator[Metric]:
    gauge = GaugeMetricFamily(
        "factbook_housekeeping_last_success_timestamp_seconds",
        "When each part of the housekeeping last succeeded; 0: never.",
        labels=("part",),
    )
    for one in parts:
        gauge.add_metric((one.part,), (one.succeeded_at or 0) / SECOND)
    yield gauge
    yield _gauge(
        "factbook_housekeeping_clock_believed",
        "0 while nothing is deleted for its age because the clock has leapt ahead, else 1.",
        float(clock.refused_at is None),
    )


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)


def _time(name: str, about: str, milliseconds: int | None) -> GaugeMetricFamily:
    """Gauge of a moment, without a sample where there is none."""
    return GaugeMetricFamily(name, about, None if milliseconds is None else milliseconds / SECOND)


def _states(name: str, about: str, counts: Mapping[str, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, about, labels=("state",))
    for state, count in counts.items():
        gauge.add_metric((state,), count)
    return gauge


def of_sources(
    sources: Mapping[str, DataSource],
    known: Mapping[str, SourceHealth],
    pushed: Mapping[str, int],
    now: int,
) -> Iterator[Metric]:
    """State of each source that was collected or pushed to. Alerts rely on the times."""
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
    yield from _conditions(sources, known, pushed, now)


def _conditions(
    sources: Mapping[str, DataSource],
    known: Mapping[str, SourceHealth],
    pushed: Mapping[str, int],
    now: int,
) -> Iterator[Metric]:
    """Gauges of each source's state, and of its being a healthy one."""
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
        current = condition(sources[id_], health, now, pushed_at=pushed_at).state
        up.add_metric((id_,), float(current in _WELL))
        for state in STATES:
            states.add_metric((id_, state), float(state == current))
    if states.samples:
        yield up
        yield states


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / SECOND


_WELL = frozenset({"up", "draft", "new"})
_Value = Callable[[DataSource, SourceHealth, int], float | None]
_SOURCE_GAUGES: tuple[tuple[str, str, _Value], ...] = (
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

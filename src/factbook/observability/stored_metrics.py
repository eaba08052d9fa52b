"""Metrics of the stored data, the same in every process, and of the disk below SQLite."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress

from prometheus_client.core import GaugeMetricFamily, Metric

from factbook.catalog.store import stored_sets
from factbook.clock import SECOND
from factbook.events import store as events
from factbook.scheduling import run_queue
from factbook.storage import Database, migrations
from factbook.storage.database_url import sqlite_path
from factbook.webhooks import store as webhooks


async def metrics(database: Database, now: int) -> list[Metric]:
    """Metrics of the amount of stored data and pending work; raises UnavailableError."""
    size = await stored_sets.size(database)
    version = await migrations.version(database)
    return [
        _gauge("factbook_schema_version", "Number of the newest migration.", version),
        _gauge("factbook_sets", "Sets that have items.", size.sets),
        _gauge("factbook_entities", "Entities in sets and outside any.", size.entities),
        *_of_events(await events.newest(database)),
        *_of_webhooks(await webhooks.figures(database)),
        *_of_batches(await run_queue.backlog(database, now)),
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


def _of_batches(backlog: run_queue.Backlog) -> Iterator[Metric]:
    states = {"under_way": backlog.under_way, "waiting": backlog.waiting}
    about = "Batches of collections, by whether a worker has them."
    yield _states("factbook_collection_batches", about, states)
    yield _time(
        "factbook_collection_oldest_timestamp_seconds",
        "Since when the oldest batch waits for a worker.",
        backlog.oldest_at,
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

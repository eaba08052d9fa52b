"""Metrics of a process and of what is stored, as Prometheus scrapes them."""

from contextlib import suppress

from prometheus_client.core import Metric

from factbook.datasources.registry import Registry
from factbook.errors import UnavailableError
from factbook.facts import source_overview
from factbook.importers import status
from factbook.importers.registry import ImporterRegistry
from factbook.observability import importer_metrics, prometheus, stored_metrics
from factbook.observability.metrics import Metrics
from factbook.scheduling import runs
from factbook.storage import Database


async def rendered(
    metrics: Metrics,
    database: Database,
    registry: Registry,
    importers: ImporterRegistry,
    now: int,
    database_url: str,
) -> bytes:
    """Every metric in Prometheus's text format; of the stored ones what the database answers."""
    known: dict[str, runs.SourceHealth] = {}
    sources = registry.fixed.sources
    kept: list[Metric] = []
    pushed: dict[str, int] = {}
    with suppress(UnavailableError):
        known = await runs.health(database)
        registered = await registry.current()
        sources = registered.sources
        pushed = await source_overview.last_written(database, registered.pushed)
        kept = await stored_metrics.metrics(database, now)
        if imported := (await importers.current()).values():
            found = await status.statuses(database, imported, now)
            kept += importer_metrics.of_importers(found)
    further = [
        *prometheus.of_load(metrics.load, database),
        *[metric async for metric in prometheus.of_replica(database.replica())],
        *stored_metrics.of_sources(sources, known, pushed, now),
        *kept,
        *stored_metrics.of_disk(database_url),
    ]
    return prometheus.render(metrics, further)

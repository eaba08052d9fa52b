"""Status of the service for operators, in parts that are read, and can fail, independently.

Each page view reads everything anew, from indexes or small tables.
"""

import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, NamedTuple

import structlog

from factbook import __version__
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.checks.results import evaluator, state_store
from factbook.clock import SECOND, Clock
from factbook.errors import FactbookError, UnavailableError
from factbook.importers import records
from factbook.observability.metrics import Metrics
from factbook.scheduling import housekeeping, lease, run_queue
from factbook.settings import Settings
from factbook.storage import Database
from factbook.storage.database import limit_time
from factbook.storage.migrations import fetch_schema_version, find_pending_migrations
from factbook.webhooks import store

log = structlog.get_logger("factbook.status")

# A part that takes longer is shown as unknown.
_MOST_SECONDS: Final = 2.0
_MEGABYTE: Final = 1_000_000


class StatusLine(NamedTuple):
    """A status line: a number or text, the time it refers to, and whether it is `bad`."""

    name: str
    value: int | str
    at: int | None = None
    bad: bool = False


class StatusPart(NamedTuple):
    """A part of the status; `unknown` says why it couldn't be read, and is empty otherwise."""

    title: str
    lines: list[StatusLine]
    unknown: str = ""


class Observed(NamedTuple):
    """The running process whose status is shown."""

    database: Database
    metrics: Metrics
    clock: Clock
    settings: Settings


async def read_status(observed: Observed) -> list[StatusPart]:
    """Read the parts of the status one by one, as a page should take only one connection."""
    return [await _read_part(title, reader, observed) for title, reader in _PARTS.items()]


async def _read_part(title: str, reader: "_Reader", observed: Observed) -> StatusPart:
    try:
        async with limit_time(_MOST_SECONDS):
            return StatusPart(title, [line async for line in reader(observed)])
    except FactbookError as error:
        return StatusPart(title, [], error.message)
    except Exception as error:
        # With a damaged schema, a driver's message may quote rows: it only goes to the log.
        log.exception("status.part_failed", part=title)
        return StatusPart(title, [], f"It could not be read: {type(error).__name__}, see the log.")


async def _process_status(observed: Observed) -> AsyncIterator[StatusLine]:
    yield StatusLine("Version", __version__)
    up = int((time.monotonic() - observed.metrics.begun) * SECOND)
    yield StatusLine("Started", "", observed.clock() - up)
    yield StatusLine("Writes that wait for their turn", observed.metrics.load.waiting)


async def _database_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database = observed.database
    if database.dialect == "sqlite":
        yield StatusLine("Kind", f"SQLite {sqlite3.sqlite_version}")
    else:
        row = await database.one("SELECT current_setting('server_version')")
        yield StatusLine("Kind", f"PostgreSQL {row[0] if row else ''}")
    yield StatusLine("Newest migration", f"{await fetch_schema_version(database):04}")
    for name in await find_pending_migrations(database):
        yield StatusLine("Not applied", name, bad=True)
    row = await database.one(_SIZE[database.dialect])
    yield StatusLine("Size", f"{(row[0] if row else 0) / _MEGABYTE:,.1f} MB")
    if trouble := database.trouble():
        yield StatusLine("Writes", trouble, bad=True)
    reads = database.reads()
    yield StatusLine("Read connections in use", f"{reads.taken} of {reads.most}")
    yield StatusLine("Reads that wait for one", reads.waiting)


async def _replica_status(observed: Observed) -> AsyncIterator[StatusLine]:
    use = observed.database.replica()
    if use is None:
        yield StatusLine("Replica", "none is configured")
        return
    yield StatusLine("State", use.reason or "serves reads", bad=use.reason is not None)
    try:
        seconds = math.ceil(await use.lag() * 10) / 10
    except UnavailableError as error:
        yield StatusLine("Lag", f"unknown: {error.message}", bad=True)
    else:
        yield StatusLine("Lag", f"at most {seconds:,.1f} s" if seconds else "0 s")
    yield StatusLine("Reads it served", use.served)
    yield StatusLine("Reads the primary served instead", use.refused)


async def _queue_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database, now = observed.database, observed.clock()
    batches = await run_queue.measure_backlog(database, now)
    yield StatusLine(
        "Batches of collection waiting, the oldest since", batches.waiting, batches.oldest_at
    )
    yield StatusLine("Batches of collection under way", batches.under_way)
    yield StatusLine("Batches of collection given up", batches.given_up, bad=batches.given_up > 0)
    hooks = await store.count_webhooks(database)
    yield StatusLine("Messages of webhooks to be sent again", hooks.waiting)
    yield StatusLine("Messages of webhooks given up", hooks.given_up, bad=hooks.given_up > 0)
    yield StatusLine("Webhooks disabled", hooks.disabled, bad=hooks.disabled > 0)
    if hooks.oldest_at is not None:
        yield StatusLine("Oldest event that a webhook was not told", "", hooks.oldest_at)
    hints = await records.count_waiting_hints(database)
    yield StatusLine("Hints for importers waiting, the oldest since", *hints)


async def _check_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database = observed.database
    settled = await evaluator.are_checks_settled(database)
    yield StatusLine("Publication of checks", "settled" if settled else "under way")
    settled = await evaluator.are_scorecards_settled(database)
    yield StatusLine("Grading of scorecards", "settled" if settled else "under way")
    late = await state_store.find_oldest_due(database, observed.clock())
    yield StatusLine("Oldest state that is due", "none" if late is None else "", late)


async def _housekeeping_status(observed: Observed) -> AsyncIterator[StatusLine]:
    found = await housekeeping.fetch_task_records(observed.database)
    for one in found:
        if one.failed_at is not None:
            yield StatusLine(one.part, f"failed: {one.error}", one.failed_at, bad=True)
        else:
            yield StatusLine(one.part, "succeeded", one.succeeded_at)
    if not found:
        yield StatusLine("Rounds", "none was done yet")
    clock = await housekeeping.read_retention_clock(observed.database)
    if clock.refused_at is not None:
        yield StatusLine("Clock", "not believed: nothing is deleted", clock.refused_at, bad=True)


async def _right_status(observed: Observed) -> AsyncIterator[StatusLine]:
    settings = observed.settings
    trust = PeopleTrust.of(settings)
    lost = await people_trust.find_lost_rights(observed.database, trust, settings.annotation_domain)
    for one in lost:
        yield StatusLine(
            one.person,
            f"not those of {', '.join(one.groups)}: only {one.place} says so. To trust it: "
            f"{one.remedy}",
            bad=settings.people_sets is None,
        )
    if not lost:
        yield StatusLine("Missing", "none")


async def _worker_status(observed: Observed) -> AsyncIterator[StatusLine]:
    found = await lease.list_lease_holders(
        observed.database, ("collector", "housekeeping"), "worker %"
    )
    now = await lease.fetch_shared_time(observed.database, observed.clock)
    for name, holder, held_until in found:
        lapsed = held_until <= now
        yield StatusLine(
            _DUTIES.get(name, "Worker"),
            f"{holder}, {'lapsed' if lapsed else 'held until'}",
            held_until,
            bad=lapsed,
        )
    if not found:
        yield StatusLine("Processes", "none works beside requests yet")


_Reader = Callable[[Observed], AsyncIterator[StatusLine]]
_DUTIES: Final[Mapping[str, str]] = {"collector": "Collects", "housekeeping": "Keeps house"}
_PARTS: Final[Mapping[str, _Reader]] = {
    "Process": _process_status,
    "Database": _database_status,
    "Read replica": _replica_status,
    "Queues": _queue_status,
    "Checks": _check_status,
    "Housekeeping": _housekeeping_status,
    "Workers": _worker_status,
    "Rights of groups": _right_status,
}
_SIZE: Final[Mapping[str, str]] = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}

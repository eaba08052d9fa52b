"""Parts of the housekeeping: one for each kind of data with a retention, and one for samples."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import structlog

from factbook.audit.trail import MONTHLY_AUDIT, delete_old_records
from factbook.auth import invitations, sessions, tokens
from factbook.auth.oauth import clients, consents
from factbook.catalog.store import browse, index_rows, stored_sets
from factbook.checks import scorecard_figures
from factbook.checks.results import state_store
from factbook.clock import DAY, Throttle
from factbook.collection import run_start
from factbook.datasources import clients as source_clients
from factbook.events.store import delete_old_events
from factbook.facts import retention
from factbook.facts.datasource import DataSource
from factbook.importers import records
from factbook.importers.snapshot import PREFIX
from factbook.scheduling import runs
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from factbook.storage.partitions import extend_partitions
from factbook.webhooks import store

log = structlog.get_logger("factbook.worker")


class Round(NamedTuple):
    """One round of the housekeeping; `time` is the reference for retention."""

    database: Database
    settings: Settings
    sources: tuple[DataSource, ...]
    time: int
    now: int
    pace: Throttle

    def before(self, days: int) -> int:
        """Cut-off time for data that is kept for this many days."""
        return self.time - days * DAY


Part = Callable[[Round], Awaitable[object]]


async def sweep(
    database: Database, settings: Settings, sources: tuple[DataSource, ...], now: int
) -> None:
    """Delete data past the retention of the settings and of each source's lifecycle."""
    for part in SWEEPS.values():
        await part(Round(database, settings, sources, now, now, Throttle()))


async def _sweep_entities(given: Round) -> None:
    def forget(transaction: Transaction) -> list[int]:
        gone = stored_sets.sweep_history(
            transaction,
            kept=given.settings.revisions_kept,
            revisions_before=given.before(given.settings.revision_days),
            removed_before=given.before(given.settings.removed_days),
        )
        if gone:
            retention.delete_facts(transaction, gone)
        transaction.evaluate_checks()
        return gone

    if gone := await given.database.write(forget):
        log.info("worker.swept", entities=len(gone))
    await given.pace.rest()


async def _sweep_search_keys(given: Round) -> None:
    if gone := await index_rows.sweep_search_keys(given.database, given.pace):
        log.info("worker.swept", search_keys=gone)


async def _sweep_sessions(given: Round) -> None:
    def forget(transaction: Transaction) -> None:
        sessions.delete_ended_sessions(transaction, given.time)
        invitations.delete_ended_invitations(transaction, given.time)
        tokens.delete_token_usage(transaction, given.before(tokens.USAGE_DAYS) // DAY)
        consents.delete_ended_consents(transaction, given.time)
        clients.delete_unused_registrations(transaction, given.time)

    await given.database.write(forget)
    await given.pace.rest()


async def _sweep_audit(given: Round) -> None:
    await extend_partitions(given.database, MONTHLY_AUDIT, given.now)
    if days := given.settings.audit_days:
        await delete_old_records(given.database, given.before(days), given.pace)


async def _sweep_history(given: Round) -> None:
    await extend_partitions(given.database, retention.MONTHLY_HISTORY, given.now)
    await retention.drop_months(given.database, given.sources, given.time)
    gone = await retention.sweep_history(given.database, given.sources, given.time, given.pace)
    if gone:
        log.info("worker.swept", history_rows=gone)


async def _expire_values(given: Round) -> None:
    if gone := await retention.sweep_expired(given.database, given.sources, given.now, given.pace):
        log.info("worker.expired", entities=gone)


async def _sweep_runs(given: Round) -> None:
    await runs.sweep_runs(given.database, given.time)
    await given.pace.rest()


async def _sweep_memories(given: Round) -> None:
    # Importers don't rewrite what they remember about things that never change.
    imported = await records.list_importers_run_since(
        given.database, given.before(source_clients.MEMORY_DAYS)
    )
    ids = [source.id for source in given.sources] + [f"{PREFIX}{id_}" for id_ in imported]
    await source_clients.sweep_memories(given.database, ids, given.time)
    await given.pace.rest()


async def _sweep_events(given: Round) -> None:
    if gone := await sweep_events(
        given.database, given.before(given.settings.event_days), given.pace
    ):
        log.info("worker.swept", events=gone)


async def sweep_events(database: Database, before: int, pace: Throttle) -> int:
    """Delete events, and abandoned messages, from before a time."""
    gone = await delete_old_events(database, before, pace)
    await database.write(lambda transaction: store.delete_given_up(transaction, before))
    return gone


async def _sweep_checks(given: Round) -> None:
    before = given.before(given.settings.check_days)
    gone = await state_store.sweep_changes(given.database, before, given.pace)
    gone += await state_store.sweep_days(given.database, before, given.pace)
    gone += await given.database.write(
        lambda transaction: scorecard_figures.trim_trends(transaction, before)
    )
    if gone:
        log.info("worker.swept", check_rows=gone)


async def _record_checks(given: Round) -> None:
    await state_store.record_days(given.database, given.now, given.pace)
    await given.database.write(
        lambda transaction: scorecard_figures.record_trends(transaction, given.now)
    )
    await given.pace.rest()


async def _build_trigrams(given: Round) -> None:
    if built := await browse.build_trigram_indexes(given.database):
        log.info("worker.built", indexes=built)


SWEEPS: Mapping[str, Part] = {
    "entities": _sweep_entities,
    "search_keys": _sweep_search_keys,
    "sessions": _sweep_sessions,
    "audit": _sweep_audit,
    "history": _sweep_history,
    "runs": _sweep_runs,
    "memories": _sweep_memories,
    "events": _sweep_events,
    "checks": _sweep_checks,
}
PARTS: Mapping[str, Part] = {
    **SWEEPS,
    "trigrams": _build_trigrams,
    "samples": lambda given: run_start.sample_catalog(given.database, given.sources, given.now),
    "values": _expire_values,
    "days": _record_checks,
}

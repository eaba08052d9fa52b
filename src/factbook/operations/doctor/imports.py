"""State of the importers: runs that fail, readings that are old, and removals that wait."""

from collections.abc import AsyncIterator
from typing import Final

from factbook.clock import ago
from factbook.importers import management
from factbook.importers.management import ImporterStatus
from factbook.importers.registry import ImporterRegistry
from factbook.operations.doctor.findings import Finding, ok, problem, warning
from factbook.storage import Database

TOPIC: Final = "importers"
# Intervals without a complete reading that are not unusual yet.
_LATE: Final = 3


async def importers(
    database: Database, registry: ImporterRegistry, now: int
) -> AsyncIterator[Finding]:
    """Findings on importers that cannot be used, fail, are late, or hold removals."""
    fine, known = 0, (await registry.current()).values()
    for id_, why in sorted(registry.problems.items()):
        yield problem(TOPIC, f"{id_} cannot be used: {why}", "Correct it on the page Imports.")
    for one in await management.list_importer_statuses(database, known, now):
        found = list(_found(one, now))
        fine += not found
        for finding in found:
            yield finding
    if fine:
        yield ok(TOPIC, f"{fine} of {len(known)} importers are well.")


def _found(one: ImporterStatus, now: int) -> list[Finding]:
    id_, found = one.importer.id, []
    if one.last is not None and one.last.state == "failed":
        what = f"{id_} read nothing: {one.last.error}."
        found.append(problem(TOPIC, what, "What was imported stays. Then: factbook import run"))
    elif one.last is not None and one.last.state == "partial":
        what = f"{id_} did not read everything: {one.last.error}."
        found.append(warning(TOPIC, what, f"`factbook import list` names the parts of {id_}."))
    elif _is_late(one, now):
        when = "never read everything" if one.complete_at is None else _since(one.complete_at, now)
        advice = "Look whether `serve` or a worker runs and collects."
        found.append(warning(TOPIC, f"{id_} {when}.", advice))
    if one.held:
        what = f"{id_} holds {one.held:,} removals that wait for a decision."
        found.append(warning(TOPIC, what, "See the page Imports, or `factbook import list`."))
    return found


def _is_late(one: ImporterStatus, now: int) -> bool:
    every, run = one.importer.every, one.last
    if every is None or run is None:
        return False
    return now - (one.complete_at or run.asked_at) > _LATE * every


def _since(complete_at: int, now: int) -> str:
    return f"read everything {ago(complete_at, now)} for the last time"

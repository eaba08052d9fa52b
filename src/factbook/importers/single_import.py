"""One import: a system is read, compared with the catalog, and written or planned."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from factbook.catalog.store import stored_sets
from factbook.datasources.memory import DatabaseMemory
from factbook.importers.importer import Importer, Show
from factbook.importers.snapshot import NAMESPACES, Snapshot, set_name
from factbook.importers.writer import ImportTarget, PartResult, write_snapshot
from factbook.outbound import ClientHealth, HttpClient
from factbook.storage import Database


class ImportReport(NamedTuple):
    """Result of an import: the parts, what settings leave out, and the calls that it took.

    `left` is what is left of the vendor's limit, None if that is not known.
    """

    importer: str
    snapshot: Snapshot
    parts: Sequence[PartResult]
    calls: int
    left: int | None


async def run(
    importer: Importer,
    client: HttpClient,
    target: ImportTarget,
    now: int,
    *,
    plan: bool = False,
    show: Show = lambda text: None,
) -> ImportReport:
    """Read a system and write what it holds, or plan that.

    What is remembered of the reading is kept with what was written.
    """
    memory, before = await memory_of(importer, target.database, now), client.health.calls
    snapshot = await importer.read(client, memory, now, show)
    show("Comparing" if plan else "Writing")
    parts = await write_snapshot(target, importer.id, snapshot, now, dry_run=plan)
    if not plan:
        await target.write(memory.flush)
    health = client.health
    return ImportReport(importer.id, snapshot, parts, health.calls - before, calls_left(health))


async def memory_of(importer: Importer, database: Database, now: int) -> DatabaseMemory:
    """The memory of an importer, which knows the namespaces that its parts had at first."""
    memory = DatabaseMemory(database, importer.memory, now)
    if await memory.get(NAMESPACES) is None:
        prefix = set_name(importer.id, "")
        found = await stored_sets.namespaces(database, prefix)
        parts = {name.removeprefix(prefix): namespaces for name, namespaces in found.items()}
        await memory.put(NAMESPACES, msgspec.json.encode(parts))
    return memory


def calls_left(health: ClientHealth) -> int | None:
    """Calls that are left of the scarcest limit; None if none is known."""
    return min((one.remaining for one in health.allowances.values()), default=None)

"""Following of hints: what events were about is read again, and merged into what is stored."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final, NamedTuple

import structlog

from factbook.datasources.clients import Connect
from factbook.importers import hint_store, part_store
from factbook.importers.hint_store import GivenHint
from factbook.importers.importer import Importer
from factbook.importers.single_import import memory_of
from factbook.importers.snapshot import Snapshot
from factbook.importers.writer import ImportTarget, write_snapshot
from factbook.storage import Database

log = structlog.get_logger("factbook.importing")

# More at a time are followed one after the other.
_MOST: Final = 100


class DueHints(NamedTuple):
    """Hints of one importer whose time has come."""

    importer: str
    hints: Sequence[GivenHint]


class HintedReading(NamedTuple):
    """Reading of what hints were about; not `whole` if something could not be read.

    With `undecided` something was not found, and a run has to tell whether it is gone.
    """

    whole: bool
    undecided: bool


UNREAD: Final = HintedReading(whole=False, undecided=False)


async def due(database: Database, importers: Mapping[str, Importer], now: int) -> list[DueHints]:
    """The hints that are due, by importer; those of others than take events are not read."""
    taking = [id_ for id_, one in importers.items() if one.events]
    if not taking:
        return []
    found = await hint_store.due(database, taking, now)
    by_importer = groupby(found, lambda hint: hint.importer)
    return [DueHints(id_, list(hints)[:_MOST]) for id_, hints in by_importer]


async def follow(
    importer: Importer, due: DueHints, connect: Connect, target: ImportTarget, now: int
) -> HintedReading:
    """Read and write what hints are about."""
    assert importer.reread is not None, "what an importer that takes events has"
    # Somebody waits for it, while a collection of everything may take an hour.
    client = connect(importer.integration).urgent()
    calls = client.health.calls
    memory = await memory_of(importer, target.database, now)
    snapshot = await importer.reread(client, memory, now, [one.hint for one in due.hints])
    # Before the first reading of everything there is nothing to merge it into.
    known = {one.part for one in await part_store.part_records(target.database, importer.id)}
    parts = tuple(part for part in snapshot.parts if part.key in known)
    results = await write_snapshot(target, importer.id, Snapshot(parts), now)
    await target.write(memory.flush)
    made = client.health.calls - calls
    log.info("import.hints_followed", importer=importer.id, hints=len(due.hints), calls=made)
    return HintedReading(
        whole=all(part.complete and not part.unread for part in parts),
        undecided=any(one.undecided for one in results),
    )

"""Status of importers for people: their last run, what it left, and the next one."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from factbook.errors import no_such
from factbook.importers import cadence, part_store, run_store
from factbook.importers.importer import Importer
from factbook.importers.importer_store import StoredImporter
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.registry import ImporterRegistry
from factbook.importers.run_store import ImportRun
from factbook.storage import Database


class ImporterStatus(NamedTuple):
    """An importer with the run that waits or is under way, the last that ended, and its parts.

    The `parts` are those of its last reading, without any that it does not read any more.
    `next_at` is the time of its next run by itself.
    """

    importer: Importer
    under_way: ImportRun | None
    last: ImportRun | None
    parts: Sequence[ImportPartRecord]
    next_at: int | None

    @property
    def state(self) -> str:
        """`new`, waiting, running, or the state in which the last run ended.

        One that held removals is complete when somebody has decided on all of them.
        """
        if self.under_way is not None:
            return self.under_way.state
        state = self.last.state if self.last else "new"
        return "complete" if state == "held" and not self.held else state

    @property
    def complete_at(self) -> int | None:
        """Time of the last complete reading of every part; None if one never was."""
        times = [part.complete_at for part in self.parts]
        return None if None in times else min(filter(None, times), default=None)

    @property
    def problems(self) -> int:
        """Problems of the last reading."""
        return sum(part.problem_count for part in self.parts)

    @property
    def held(self) -> int:
        """Removals that wait for a decision."""
        return sum(len(part.held) for part in self.parts)


class ImporterDetail(NamedTuple):
    """All that is known of an importer: every part that it ever read, and its runs, newest first.

    `status` is None for one that is not there any more or cannot be used, `problem` says why not;
    it is `stored` if people made it.
    """

    id: str
    status: ImporterStatus | None
    stored: StoredImporter | None
    problem: str
    parts: Sequence[ImportPartRecord]
    runs: Sequence[ImportRun]

    @property
    def current(self) -> Sequence[ImportPartRecord]:
        """The parts but those that the last reading had no more."""
        return self.parts if self.status is None else self.status.parts


async def detail(
    database: Database, registry: ImporterRegistry, id_: str, now: int
) -> ImporterDetail:
    """The importer with this id, or what one left behind; raises NotFoundError without either."""
    known = await registry.current()
    importer = known.get(id_)
    stored, problem = registry.stored.get(id_), registry.problems.get(id_, "")
    parts = await part_store.part_records(database, id_)
    runs = await run_store.recent(database, id_)
    if importer is None and stored is None and not parts and not runs:
        raise no_such("importer", id_, known)
    status = None
    if importer is not None:
        ended = next((run for run in runs if run.ended_at is not None), None)
        status = _status(importer, runs[0] if runs else None, ended, parts, now)
    return ImporterDetail(id_, status, stored, problem, parts, runs)


async def statuses(
    database: Database, importers: Iterable[Importer], now: int
) -> list[ImporterStatus]:
    """The status of each of these importers, by id."""
    newest, ended = await run_store.latest(database), await run_store.latest_ended(database)
    parts: dict[str, list[ImportPartRecord]] = {}
    for part in await part_store.part_records(database):
        parts.setdefault(part.importer, []).append(part)
    return [
        _status(one, newest.get(one.id), ended.get(one.id), parts.get(one.id, ()), now)
        for one in sorted(importers, key=lambda one: one.id)
    ]


def _status(
    importer: Importer,
    newest: ImportRun | None,
    ended: ImportRun | None,
    parts: Sequence[ImportPartRecord],
    now: int,
) -> ImporterStatus:
    under_way = newest if newest is not None and newest.ended_at is None else None
    read_at = max((part.read_at for part in parts), default=0)
    current = [part for part in parts if part.read_at == read_at]
    next_at = cadence.next_start(importer.every, newest, now)
    return ImporterStatus(importer, under_way, ended, current, next_at)

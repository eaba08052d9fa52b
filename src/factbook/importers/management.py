"""Importers as people see and manage them while the service runs: status, change, deletion."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import structlog

from factbook.datasources import clients
from factbook.errors import (
    ConfigurationError,
    ConflictError,
    InvalidItemsError,
    NotFoundError,
    no_such,
    problem,
    suggestion,
)
from factbook.importers import importer_store, records, registry
from factbook.importers.importer import NEVER, Importer, ImporterKind
from factbook.importers.importer_store import ImporterInput, StoredImporter
from factbook.importers.records import ImportPartRecord, ImportRun
from factbook.importers.registry import KINDS, ImporterRegistry, KindSummary
from factbook.importers.snapshot import PREFIX
from factbook.storage import Database, Transaction, Write

log = structlog.get_logger("factbook.importing")

_OF_SETTINGS: Final = "The importer {} comes from the settings: change it there."


def list_offered_kinds() -> list[KindSummary]:
    """The kinds that people may make importers of."""
    return [one for one in KINDS if registry.get_kind(one.id).by_people]


def get_offered_kind(id_: str) -> ImporterKind[Any]:
    """The kind with this id, if people may make importers of it; raises NotFoundError."""
    try:
        found = registry.get_kind(id_)
    except ConfigurationError:
        found = None
    if found is None or not found.by_people:
        known = suggestion(id_, (one.id for one in list_offered_kinds()))
        raise NotFoundError(f'There is no importer of the kind "{id_}" to make here.{known}')
    return found


async def put_importer(
    registry: ImporterRegistry,
    wanted: ImporterInput,
    key: bytes,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredImporter:
    """Create or change an importer; its secrets are encrypted with the key of the tokens.

    One that is changed is run soon, unless it only runs when asked.
    Raises NotFoundError for a kind that there is not, InvalidItemsError, which contains no value,
    and ConflictError if it comes from the settings, if a new one is there already, if values to
    keep cannot be decrypted, or if there are too many.
    """
    get_offered_kind(wanted.kind)
    if wanted.id in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(wanted.id))
    stored = registry.stored.get(wanted.id)
    if stored is not None and (stored.kind, stored.name) != (wanted.kind, wanted.name):
        raise InvalidItemsError([problem("name", "is the id of another importer")])
    make = registry.maker(wanted.kind, wanted.name)

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.save_importer(transaction, wanted, key, make, actor, now)
        # One that is new is due by its cadence.
        if not wanted.is_new and wanted.values.get("every") != NEVER:
            records.request_run(transaction, found.id, now)
        return found

    found = await write(work)
    registry.forget()
    log.info("importer.put", importer=found.id, actor=actor)
    return found


async def delete_importer(
    registry: ImporterRegistry, id_: str, *, actor: str, write: Write
) -> None:
    """Delete an importer, its runs, its hints and what it remembers; its entities stay.

    Raises NotFoundError, and ConflictError if it comes from the settings.
    """
    if id_ in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(id_))

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.remove_importer(transaction, id_)
        if found is None:
            raise no_such("importer", id_, registry.stored)
        records.forget_runs(transaction, id_)
        records.forget_hints(transaction, id_)
        clients.delete_source_memories(transaction, f"{PREFIX}{id_}")
        return found

    await write(work)
    registry.forget()
    log.info("importer.deleted", importer=id_, actor=actor)


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


async def get_importer_detail(
    database: Database, registry: ImporterRegistry, id_: str, now: int
) -> ImporterDetail:
    """The importer with this id, or what one left behind; raises NotFoundError without either."""
    known = await registry.current()
    importer = known.get(id_)
    stored, problem = registry.stored.get(id_), registry.problems.get(id_, "")
    parts = await records.list_part_records(database, id_)
    runs = await records.list_recent_import_runs(database, id_)
    if importer is None and stored is None and not parts and not runs:
        raise no_such("importer", id_, known)
    status = None
    if importer is not None:
        ended = next((run for run in runs if run.ended_at is not None), None)
        status = _make_status(importer, runs[0] if runs else None, ended, parts, now)
    return ImporterDetail(id_, status, stored, problem, parts, runs)


async def list_importer_statuses(
    database: Database, importers: Iterable[Importer], now: int
) -> list[ImporterStatus]:
    """The status of each of these importers, by id."""
    newest, ended = (
        await records.get_latest_runs(database),
        await records.get_latest_ended_runs(database),
    )
    parts: dict[str, list[ImportPartRecord]] = {}
    for part in await records.list_part_records(database):
        parts.setdefault(part.importer, []).append(part)
    return [
        _make_status(one, newest.get(one.id), ended.get(one.id), parts.get(one.id, ()), now)
        for one in sorted(importers, key=lambda one: one.id)
    ]


def _make_status(
    importer: Importer,
    newest: ImportRun | None,
    ended: ImportRun | None,
    parts: Sequence[ImportPartRecord],
    now: int,
) -> ImporterStatus:
    under_way = newest if newest is not None and newest.ended_at is None else None
    read_at = max((part.read_at for part in parts), default=0)
    current = [part for part in parts if part.read_at == read_at]
    next_at = records.compute_next_start(importer.every, newest, now)
    return ImporterStatus(importer, under_way, ended, current, next_at)

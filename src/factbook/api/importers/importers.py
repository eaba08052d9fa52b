"""Importers over HTTP: their state, their runs and parts, and runs that are asked for."""

from functools import partial
from typing import Final

from msgspec.structs import asdict

from factbook.api.importers.parts import IMPORTER, shown
from factbook.clock import SECOND, iso, iso_or_none
from factbook.errors import NotFoundError
from factbook.http import audit
from factbook.http.context import ImporterContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.importers import run_store, status
from factbook.importers.importer_store import StoredImporter
from factbook.importers.run_store import ImportRun
from factbook.importers.status import ImporterDetail, ImporterStatus
from factbook.schemas.imports import (
    ImporterAnswer,
    ImporterMaker,
    ImportRunSummary,
    ShownImporter,
    ShownImporters,
)

_LEFT: Final = 'There is no importer "{}" any more. What it read is below /parts.'


async def list_all(request: Request, state: ImporterContext) -> JsonReply[ShownImporters]:
    """Every importer, with its last run and its next one."""
    importers = await state.importers.current()
    found = await status.statuses(state.database, importers.values(), state.clock())
    unusable = [
        _unusable(state.importers.stored[id_], problem)
        for id_, problem in state.importers.problems.items()
    ]
    listed = [*map(_summary, found), *unusable]
    return reply(ShownImporters(sorted(listed, key=lambda one: one.id)))


async def get_one(request: Request, state: ImporterContext) -> JsonReply[ImporterAnswer]:
    """An importer with its runs, and its parts with their problems and what they hold."""
    id_ = IMPORTER.of(request)
    found = await status.detail(state.database, state.importers, id_, state.clock())
    return reply(_answer(found))


async def run(request: Request, state: ImporterContext) -> JsonReply[ShownImporter]:
    """Ask for a run of an importer now; one that waits or is under way is enough."""
    importer = await state.importers.one(IMPORTER.of(request))
    write = audit.writing(request, state, audit.of_import("import.run", importer.id), 202)
    await write(partial(run_store.ask, importer=importer.id, now=state.clock()))
    [found] = await status.statuses(state.database, [importer], state.clock())
    return reply(_summary(found), 202)


def _answer(found: ImporterDetail) -> ImporterAnswer:
    one = found.status
    if one is None:
        if found.stored is None:
            raise NotFoundError(_LEFT.format(found.id))
        summary = _unusable(found.stored, found.problem)
    else:
        summary = _summary(one)
    every = one.importer.every if one else None
    return ImporterAnswer(
        **asdict(summary),
        interval_seconds=None if every is None else every // SECOND,
        made=None if found.stored is None else _made(found.stored),
        runs=[_run(run) for run in found.runs if run.ended_at is not None],
        parts=list(map(shown, found.current)),
    )


def _summary(one: ImporterStatus) -> ShownImporter:
    return ShownImporter(
        id=one.importer.id,
        kind=one.importer.kind,
        title=one.importer.title,
        state=one.state,
        complete_at=iso_or_none(one.complete_at),
        next_run_at=iso_or_none(one.next_at),
        problem_count=one.problems,
        held_count=one.held,
        last_run=None if one.last is None else _run(one.last),
        problem=None,
    )


def _unusable(stored: StoredImporter, problem: str) -> ShownImporter:
    return ShownImporter(
        id=stored.id,
        kind=stored.kind,
        title=stored.id,
        state="unusable",
        complete_at=None,
        next_run_at=None,
        problem_count=0,
        held_count=0,
        last_run=None,
        problem=problem,
    )


def _made(stored: StoredImporter) -> ImporterMaker:
    return ImporterMaker(
        created_at=iso(stored.created_at),
        created_by=stored.created_by,
        updated_at=iso(stored.updated_at),
        updated_by=stored.updated_by,
    )


def _run(run: ImportRun) -> ImportRunSummary:
    return ImportRunSummary(
        id=run.id,
        reason=run.reason,
        state=run.state,
        started_at=iso(run.started_at or run.asked_at),
        ended_at=iso(run.ended_at or run.asked_at),
        calls=run.calls,
        calls_left=run.calls_left,
        error=run.error or None,
    )

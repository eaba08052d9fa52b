"""Importers over HTTP: how each stands, and runs that are asked for."""

from functools import partial

from factbook.api.importers.parts import IMPORTER
from factbook.clock import iso, iso_or_none
from factbook.http import audit
from factbook.http.context import ImporterContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.importers import run_store, status
from factbook.importers.run_store import ImportRun
from factbook.importers.status import ImporterStatus
from factbook.schemas.imports import ImportRunSummary, ShownImporter, ShownImporters


async def list_all(request: Request, state: ImporterContext) -> JsonReply[ShownImporters]:
    """Every importer, with its last run and its next one."""
    importers = await state.importers.current()
    found = await status.statuses(state.database, importers.values(), state.clock())
    return reply(ShownImporters([_shown(one) for one in found]))


async def run(request: Request, state: ImporterContext) -> JsonReply[ShownImporter]:
    """Ask for a run of an importer now; one that waits or is under way is enough."""
    importer = await state.importers.one(IMPORTER.of(request))
    write = audit.writing(request, state, audit.of_import("import.run", importer.id), 202)
    await write(partial(run_store.ask, importer=importer.id, now=state.clock()))
    [found] = await status.statuses(state.database, [importer], state.clock())
    return reply(_shown(found), 202)


def _shown(one: ImporterStatus) -> ShownImporter:
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

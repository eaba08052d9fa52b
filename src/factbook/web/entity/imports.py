"""Imports: importers and the parts that they read, and decisions on held removals."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from factbook.audit import trail
from factbook.auth.permissions import AUDIT_READ, CATALOG_READ, SET_WRITE
from factbook.catalog.store.apply import Actor
from factbook.clock import DAY
from factbook.errors import ConflictError, FactbookError, NotFoundError
from factbook.http import audit
from factbook.http.refusals import REFUSED
from factbook.http.requests import Reply
from factbook.importers import held, part_store, run_store, status
from factbook.importers.file_pages import file_page
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.snapshot import ReadingProblem, set_name
from factbook.importers.writer import ImportTarget
from factbook.web.entity.importers import MAY_MAKE
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_SHOWN = 200
# On the page of an importer, beside all else that it shows.
_FEW = 20
_EVENTS = "/api/importers/v1/importers/{}/events"
_READ_AGAIN = "The part was read again since this page was shown. Look at it once more."


class RefusedEvents(NamedTuple):
    """Events that were refused: the number, counted up to a bound, and the time of the last."""

    path: str
    number: int
    is_more: bool
    last_at: int


async def listed(visit: PageContext) -> Reply:
    """Page of every importer, and of every part that was imported."""
    state = visit.state
    importers = await state.importers.current()
    return visit.page(
        "imports.html",
        importers=await status.statuses(state.database, importers.values(), visit.now),
        parts_read=await part_store.part_records(state.database),
        unusable=sorted(state.importers.problems.items()),
        can_run=visit.may(SET_WRITE),
        can_make=all(map(visit.may, MAY_MAKE)),
    )


async def run(visit: PageContext) -> Reply:
    """Ask for a run of an importer."""
    asked = await visit.state.importers.one(visit.request.parameter("importer"))
    write = visit.writing(audit.of_import("import.run", asked.id))
    await write(partial(run_store.ask, importer=asked.id, now=visit.now))
    return visit.redirect(_importer_path(asked.id), f"{asked.title} is imported now.")


async def importer(visit: PageContext) -> Reply:
    """Page of an importer: its runs, and all that is known of its parts."""
    state = visit.state
    id_ = visit.request.parameter("importer")
    found = await status.detail(state.database, state.importers, id_, visit.now)
    stored = found.stored
    return visit.page(
        "importer.html",
        found=found,
        paths={part.part: _path(part) for part in found.parts},
        problems=_linked([(part, one) for part in found.current for one in part.problems][:_SHOWN]),
        problem_count=sum(part.problem_count for part in found.current),
        most_held=_FEW,
        most_runs=_FEW,
        known=await visit.known([stored.created_by, stored.updated_by] if stored else []),
        can_run=visit.may(SET_WRITE),
        can_decide=visit.may(SET_WRITE),
        can_make=all(map(visit.may, MAY_MAKE)),
        refused=await _refused_events(visit, found.id),
        can_audit=visit.may(AUDIT_READ),
    )


async def part(visit: PageContext, status: int = 200, problem: str | None = None) -> Reply:
    """Page of a part: its last reading, its problems, and what is held."""
    found = await _part(visit)
    return visit.page(
        "import-part.html",
        status,
        part=found,
        set_path=f"/sets/{formats.segment(set_name(found.importer, found.part))}",
        path=_path(found),
        importer_path=_importer_path(found.importer),
        problems=_linked([(found, one) for one in found.problems[:_SHOWN]]),
        held=found.held[:_SHOWN],
        problem=problem,
        can_decide=visit.may(SET_WRITE) and bool(found.held),
    )


async def apply(visit: PageContext) -> Reply:
    """Remove what is held, as it was shown."""
    found = await _part(visit)
    try:
        _check_seen(visit, found)
        target = _target(visit, found, "import.apply")
        actor = Actor(visit.person.ref, visit.now)
        await held.apply(target, found.importer, found.part, actor, found.tag)
    except FactbookError as error:
        return await part(visit, error.status, error.message)
    return visit.redirect(_importer_path(found.importer), f"Removed: {len(found.held):,}.")


async def discard(visit: PageContext) -> Reply:
    """Keep what is held."""
    found = await _part(visit)
    try:
        _check_seen(visit, found)
        target = _target(visit, found, "import.discard")
        await held.discard(target, found.importer, found.part, found.tag)
    except FactbookError as error:
        return await part(visit, error.status, error.message)
    return visit.redirect(_importer_path(found.importer), f"Kept: {len(found.held):,}.")


async def _refused_events(visit: PageContext, id_: str) -> RefusedEvents | None:
    """Events of the last day that were not signed with the importer's secret; None without any."""
    path, since = _EVENTS.format(formats.segment(id_)), visit.now - DAY
    rows, more = await trail.page(
        visit.state.database, action=REFUSED, object=path, since=since, limit=_SHOWN
    )
    return RefusedEvents(path, len(rows), more, rows[0].at) if rows else None


def _check_seen(visit: PageContext, found: ImportPartRecord) -> None:
    """Raise ConflictError if the part was read after the page was shown."""
    if visit.sent.one("seen") != found.tag:
        raise ConflictError(_READ_AGAIN)


def _target(visit: PageContext, found: ImportPartRecord, action: str) -> ImportTarget:
    state, name = visit.state, set_name(found.importer, found.part)
    write = visit.writing(audit.of_import(action, name))
    return ImportTarget(state.database, state.rules, state.settings.revisions_kept, write)


async def _part(visit: PageContext) -> ImportPartRecord:
    importer, name = visit.request.parameter("importer"), visit.request.parameter("part")
    found = await part_store.part_record(visit.state.database, importer, name)
    if found is None:
        raise NotFoundError("No importer has read such a part.")
    return found


def _linked(
    found: Sequence[tuple[ImportPartRecord, ReadingProblem]],
) -> list[tuple[ReadingProblem, str | None]]:
    """Problems of parts, each with the address of its file's page."""
    return [(problem, file_page(part.importer, problem)) for part, problem in found]


def _importer_path(id_: str) -> str:
    return f"/imports/{formats.segment(id_)}"


def _path(found: ImportPartRecord) -> str:
    return f"{_importer_path(found.importer)}/{formats.segment(found.part)}"


IMPORTS: Sequence[PageRoute] = (
    PageRoute("GET", "/imports", listed, (CATALOG_READ,)),
    PageRoute("GET", "/imports/{importer}", importer, (CATALOG_READ,)),
    PageRoute("POST", "/imports/{importer}/run", run, (SET_WRITE,)),
    PageRoute("GET", "/imports/{importer}/{part}", part, (CATALOG_READ,)),
    PageRoute("POST", "/imports/{importer}/{part}/apply", apply, (SET_WRITE,)),
    PageRoute("POST", "/imports/{importer}/{part}/discard", discard, (SET_WRITE,)),
)

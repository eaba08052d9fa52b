"""Parts that importers read: their state, their problems, and removals that wait."""

from typing import Final

from msgspec.structs import asdict

from factbook.api.openapi.parameter_types import AnswerHeader, Header, PathPart
from factbook.audit.trail import About
from factbook.catalog.store.apply import Actor
from factbook.clock import iso, iso_or_none
from factbook.errors import no_such
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.importers import held, part_store
from factbook.importers.file_pages import file_page
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.snapshot import set_name
from factbook.importers.writer import ImportTarget
from factbook.schemas import patterns
from factbook.schemas.imports import ImportPart, ImportParts, ImportPartSummary, ImportProblem

IMPORTER: Final = PathPart(name="importer", description="The importer's id.", example="github")
PART: Final = PathPart(name="part", description="The part's name.", example="acme.repositories")

ETAG: Final = AnswerHeader(
    name="ETag", description="The last reading and what it holds, between quotes."
)
IF_MATCH: Final = Header(
    name="If-Match",
    description="The `ETag` of the part as it was looked at. Refuses with 412 when it was read "
    "again since.",
    pattern=patterns.PART_TAG,
    wrong="has to be the ETag of the part",
)


async def list_parts(request: Request, state: HandlerContext) -> JsonReply[ImportParts]:
    """Every part that was imported, with the state of its last reading."""
    found = await part_store.part_records(state.database)
    return reply(ImportParts([_summary(one) for one in found]))


async def get_part(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """A part with its problems, and the removals that wait for a decision."""
    importer, part = IMPORTER.of(request), PART.of(request)
    found = await part_store.part_record(state.database, importer, part)
    if found is None:
        known = await part_store.part_records(state.database)
        raise no_such("part", f"{importer}/{part}", [f"{one.importer}/{one.part}" for one in known])
    return _answer(found)


async def apply_held(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """Remove the entities whose removal waits for a decision."""
    importer, part = IMPORTER.of(request), PART.of(request)
    target = _target(request, state, audit.of_import("import.apply", set_name(importer, part)))
    actor = Actor(request.actor, state.clock())
    return _answer(await held.apply(target, importer, part, actor, _seen(request)))


async def discard_held(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """Keep the entities whose removal waits, until they are found and are missing once more."""
    importer, part = IMPORTER.of(request), PART.of(request)
    target = _target(request, state, audit.of_import("import.discard", set_name(importer, part)))
    return _answer(await held.discard(target, importer, part, _seen(request)))


def _seen(request: Request) -> str | None:
    """The tag that If-Match names."""
    tag = IF_MATCH.of(request)
    return None if tag is None else tag.removeprefix("W/").strip('"')


def _answer(record: ImportPartRecord) -> JsonReply[ImportPart]:
    return reply(shown(record))._replace(headers={"etag": f'"{record.tag}"'})


def _target(request: Request, state: HandlerContext, about: About) -> ImportTarget:
    write = audit.writing(request, state, about)
    return ImportTarget(state.database, state.rules, state.settings.revisions_kept, write)


def _summary(record: ImportPartRecord) -> ImportPartSummary:
    return ImportPartSummary(
        importer=record.importer,
        part=record.part,
        set=set_name(record.importer, record.part),
        state=record.state,
        read_at=iso(record.read_at),
        complete_at=iso_or_none(record.complete_at),
        entities=record.items,
        problem_count=record.problem_count,
        held_count=len(record.held),
    )


def shown(record: ImportPartRecord) -> ImportPart:
    """A part with its problems and what it holds."""
    problems = [
        ImportProblem(
            one.origin,
            one.message,
            one.file or None,
            one.line or None,
            file_page(record.importer, one),
        )
        for one in record.problems
    ]
    return ImportPart(
        **asdict(_summary(record)),
        problems=problems,
        held=list(record.held),
        reason=record.reason or None,
    )

"""Importers over HTTP: state, runs, parts, held removals, and events from their systems."""

from collections.abc import Sequence
from functools import partial
from http import HTTPStatus
from typing import Final

from msgspec.structs import asdict

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import AnswerHeader, Header, PathPart
from factbook.audit.trail import About
from factbook.auth.permissions import CATALOG_READ, SET_WRITE
from factbook.catalog.store.stored_sets import Actor
from factbook.clock import SECOND, iso, iso_or_none
from factbook.errors import (
    InputError,
    NotAllowedError,
    NotFoundError,
    PreconditionFailedError,
    TooManyRequestsError,
    no_such,
)
from factbook.http import audit
from factbook.http.context import HandlerContext, ImporterContext, State
from factbook.http.requests import (
    JsonReply,
    Reply,
    Request,
    get_client_address,
    reply,
    run_offloaded,
)
from factbook.importers import records, registry, writer
from factbook.importers.importer import EventRules
from factbook.importers.importer_store import StoredImporter
from factbook.importers.records import ImportPartRecord, ImportRun
from factbook.importers.registry import ImporterDetail, ImporterStatus, make_file_page_url
from factbook.importers.snapshot import name_set
from factbook.importers.writer import ImportTarget
from factbook.scheduling import lease
from factbook.schemas import common
from factbook.schemas.catalog import (
    ImporterAnswer,
    ImporterMaker,
    ImportPart,
    ImportParts,
    ImportPartSummary,
    ImportProblem,
    ImportRunSummary,
    ShownImporter,
    ShownImporters,
)
from factbook.storage import Transaction

IMPORTER: Final = PathPart(name="importer", description="The importer's id.", example="github")
PART: Final = PathPart(name="part", description="The part's name.", example="acme.repositories")
ETAG: Final = AnswerHeader(
    name="ETag", description="The last reading and what it holds, between quotes."
)
IF_MATCH: Final = Header(
    name="If-Match",
    description="The `ETag` of the part as it was looked at. Refuses with 412 when it was read "
    "again since.",
    pattern=common.PART_TAG,
    wrong="has to be the ETag of the part",
)
_LEFT: Final = 'The importer "{}" no longer exists. What it read is under /parts.'
# No system sends larger events.
_LARGEST_EVENT: Final = 25_000_000
_LONGEST_DELIVERY_ID: Final = 200
_NO_BODY: Final = b"text/plain"
_READ = (CATALOG_READ,)
# The answer to a decision shows what is stored.
_DECIDE = (SET_WRITE, CATALOG_READ)
_PART_PATH = "/parts/{importer}/{part}"
_PART_PARAMETERS = (IMPORTER, PART)
_DECISION_PARAMETERS = (*_PART_PARAMETERS, IF_MATCH)


async def get_import_parts(request: Request, state: HandlerContext) -> JsonReply[ImportParts]:
    """Every imported part, with the state of its last reading."""
    found = await records.list_part_records(state.database)
    return reply(ImportParts([_render_part_summary(one) for one in found]))


async def get_import_part(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """A part with its problems, and the removals that wait for a decision."""
    importer, part = IMPORTER.of(request), PART.of(request)
    found = await records.get_part_record(state.database, importer, part)
    if found is None:
        known = await records.list_part_records(state.database)
        raise no_such("part", f"{importer}/{part}", [f"{one.importer}/{one.part}" for one in known])
    return _answer_part(found)


async def apply_held_removals(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """Remove the entities whose removal waits for a decision."""
    importer, part = IMPORTER.of(request), PART.of(request)
    target = _build_import_target(
        request, state, audit.make_import_entry("import.apply", name_set(importer, part))
    )
    actor = Actor(request.actor, state.clock())
    return _answer_part(
        await writer.apply_removals(target, importer, part, actor, _parse_part_tag(request))
    )


async def discard_held_removals(request: Request, state: HandlerContext) -> JsonReply[ImportPart]:
    """Keep the entities whose removal waits, until they are found and go missing again."""
    importer, part = IMPORTER.of(request), PART.of(request)
    target = _build_import_target(
        request, state, audit.make_import_entry("import.discard", name_set(importer, part))
    )
    return _answer_part(
        await writer.discard_removals(target, importer, part, _parse_part_tag(request))
    )


def _parse_part_tag(request: Request) -> str | None:
    tag = IF_MATCH.of(request)
    return None if tag is None else tag.removeprefix("W/").strip('"')


def _answer_part(record: ImportPartRecord) -> JsonReply[ImportPart]:
    return reply(render_import_part(record))._replace(headers={"etag": f'"{record.tag}"'})


def _build_import_target(request: Request, state: HandlerContext, about: About) -> ImportTarget:
    write = audit.audit_request_writes(request, state, about)
    return ImportTarget(state.database, state.rules, state.settings.revisions_kept, write)


def _render_part_summary(record: ImportPartRecord) -> ImportPartSummary:
    return ImportPartSummary(
        importer=record.importer,
        part=record.part,
        set=name_set(record.importer, record.part),
        state=record.state,
        read_at=iso(record.read_at),
        complete_at=iso_or_none(record.complete_at),
        entities=record.items,
        problem_count=record.problem_count,
        held_count=len(record.held),
    )


def render_import_part(record: ImportPartRecord) -> ImportPart:
    """Render a part with its problems and held removals."""
    problems = [
        ImportProblem(
            one.origin,
            one.message,
            one.file or None,
            one.line or None,
            make_file_page_url(record.importer, one),
        )
        for one in record.problems
    ]
    return ImportPart(
        **asdict(_render_part_summary(record)),
        problems=problems,
        held=list(record.held),
        reason=record.reason or None,
    )


async def get_importers(request: Request, state: ImporterContext) -> JsonReply[ShownImporters]:
    """Every importer, with its last and its next run."""
    importers = await state.importers.current()
    found = await registry.list_importer_statuses(state.database, importers.values(), state.clock())
    unusable = [
        _render_unusable_importer(state.importers.stored[id_], problem)
        for id_, problem in state.importers.problems.items()
    ]
    listed = [*map(_render_importer_status, found), *unusable]
    return reply(ShownImporters(sorted(listed, key=lambda one: one.id)))


async def get_importer(request: Request, state: ImporterContext) -> JsonReply[ImporterAnswer]:
    """An importer with its runs and its parts, their problems and their held removals."""
    id_ = IMPORTER.of(request)
    found = await registry.get_importer_detail(state.database, state.importers, id_, state.clock())
    return reply(_render_importer(found))


async def post_importer_run(request: Request, state: ImporterContext) -> JsonReply[ShownImporter]:
    """Request a run of an importer now; changes nothing if one waits or is running."""
    importer = await state.importers.one(IMPORTER.of(request))
    write = audit.audit_request_writes(
        request, state, audit.make_import_entry("import.run", importer.id), 202
    )
    await write(partial(records.request_run, importer=importer.id, now=state.clock()))
    [found] = await registry.list_importer_statuses(state.database, [importer], state.clock())
    return reply(_render_importer_status(found), 202)


def _render_importer(found: ImporterDetail) -> ImporterAnswer:
    one = found.status
    if one is None:
        if found.stored is None:
            raise NotFoundError(_LEFT.format(found.id))
        summary = _render_unusable_importer(found.stored, found.problem)
    else:
        summary = _render_importer_status(one)
    every = one.importer.every if one else None
    return ImporterAnswer(
        **asdict(summary),
        interval_seconds=None if every is None else every // SECOND,
        made=None if found.stored is None else _render_importer_maker(found.stored),
        runs=[_render_import_run(run) for run in found.runs if run.ended_at is not None],
        parts=list(map(render_import_part, found.current)),
    )


def _render_importer_status(one: ImporterStatus) -> ShownImporter:
    return ShownImporter(
        id=one.importer.id,
        kind=one.importer.kind,
        title=one.importer.title,
        state=one.state,
        complete_at=iso_or_none(one.complete_at),
        next_run_at=iso_or_none(one.next_at),
        problem_count=one.problems,
        held_count=one.held,
        last_run=None if one.last is None else _render_import_run(one.last),
        problem=None,
    )


def _render_unusable_importer(stored: StoredImporter, problem: str) -> ShownImporter:
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


def _render_importer_maker(stored: StoredImporter) -> ImporterMaker:
    return ImporterMaker(
        created_at=iso(stored.created_at),
        created_by=stored.created_by,
        updated_at=iso(stored.updated_at),
        updated_by=stored.updated_by,
    )


def _render_import_run(run: ImportRun) -> ImportRunSummary:
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


async def receive_import_event(request: Request, state: State) -> Reply:
    """Take an event as a hint that something may have changed; its content isn't trusted.

    An event without an effect and a repeated delivery get the same answer.
    """
    if seconds := state.failures.waits(get_client_address(request.scope, state.proxies)):
        raise _build_slow_down_error(state, seconds)
    importer = (await state.importers.current()).get(IMPORTER.of(request))
    rules = importer.events if importer else None
    # Same answer as for a bad signature: callers must not learn which importers exist.
    if importer is None or rules is None:
        raise _count_unproved_event(request, state)
    async with state.admission.room_for_body(request, _LARGEST_EVENT, proved=False):
        delivery, hints = await _verify_import_event(request, state, rules)
    if not hints:
        return Reply(status=HTTPStatus.NO_CONTENT, content_type=_NO_BODY)
    # The process that follows the hint may have a different clock.
    id_, now = importer.id, await lease.fetch_shared_time(state.database, state.clock)

    def work(transaction: Transaction) -> bool:
        is_new = records.remember_delivery(transaction, id_, delivery, now)
        if is_new:
            records.give_hints(transaction, id_, hints, now)
        return is_new

    is_new = await state.database.write(work)
    status = HTTPStatus.ACCEPTED if is_new else HTTPStatus.NO_CONTENT
    return Reply(status=status, content_type=_NO_BODY)


async def _verify_import_event(
    request: Request, state: State, rules: EventRules
) -> tuple[str, frozenset[str]]:
    """Verify the signature of an event; returns its delivery id and hints."""
    body = await request.body(_LARGEST_EVENT, "the body of an event")
    if not await run_offloaded(rules.is_signed, request.headers, body):
        raise _count_unproved_event(request, state)
    delivery = rules.delivery(request.headers)
    if not 1 <= len(delivery) <= _LONGEST_DELIVERY_ID:
        raise InputError("The event has no id of its delivery.")
    return delivery, await run_offloaded(rules.hints, request.headers, body)


def _count_unproved_event(request: Request, state: State) -> NotAllowedError | TooManyRequestsError:
    """Count an unverified event as a failure, and build its error."""
    if seconds := state.failures.take(get_client_address(request.scope, state.proxies)):
        return _build_slow_down_error(state, seconds)
    return NotAllowedError(
        "The signature is not that of this importer's secret, or it takes no events."
    )


def _build_slow_down_error(state: State, seconds: int) -> TooManyRequestsError:
    return TooManyRequestsError(
        "Too many failed authentications from this address "
        f"(failed_logins is {state.settings.failed_logins} a minute).",
        retry_after=seconds,
    )


IMPORTER_ROUTES: Sequence[Route] = (
    Route("GET", "/importers", get_importers, _READ),
    Route("GET", "/importers/{importer}", get_importer, _READ, (IMPORTER,)),
    Route(
        "POST",
        "/importers/{importer}/run",
        post_importer_run,
        _DECIDE,
        (IMPORTER,),
        status=202,
        reading=_READ,
    ),
    Route(
        "POST",
        "/importers/{importer}/events",
        receive_import_event,
        None,
        (IMPORTER,),
        status=202,
        described=False,
        reading=NOTHING_STORED,
        signed=True,
    ),
    Route("GET", "/parts", get_import_parts, _READ),
    Route("GET", _PART_PATH, get_import_part, _READ, _PART_PARAMETERS, headers=(ETAG,)),
    Route(
        "POST",
        f"{_PART_PATH}/apply",
        apply_held_removals,
        _DECIDE,
        _DECISION_PARAMETERS,
        headers=(ETAG,),
        refusals=(PreconditionFailedError,),
        reading=_READ,
    ),
    Route(
        "POST",
        f"{_PART_PATH}/discard",
        discard_held_removals,
        _DECIDE,
        _DECISION_PARAMETERS,
        headers=(ETAG,),
        refusals=(PreconditionFailedError,),
        reading=_READ,
    ),
)

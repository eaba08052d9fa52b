"""Data sources over HTTP: the builtin ones to read, those of users to define, publish and run."""

import dataclasses
from typing import Any

import msgspec

from factbook.api.openapi.parameters import NUMBER, SOURCE_CURSOR, SOURCE_ID, SOURCE_LIMIT
from factbook.api.tech_insights import owned_writes
from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import OWN_WRITE, SOURCE_RUN, SOURCE_WRITE
from factbook.clock import iso, iso_or_none
from factbook.collection import run_now
from factbook.datasources import define, owned_source
from factbook.datasources.source_store import StoredSource, source_store
from factbook.errors import NotFoundError
from factbook.facts import datasource
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from factbook.schemas.sources import (
    Definition,
    Gap,
    NewRun,
    OneRun,
    OneSource,
    Publish,
    PublishedVersion,
    Run,
    Runs,
    Sources,
    WholeDefinition,
)

_LARGEST = 256 * 1024
_SMALL = 16 * 1024
_PAGE = 100
_MOST_RUNS = 2 * runs.RUNS_KEPT
_MOST_VERSIONS = 50

Document = dict[str, Any]


async def list_all(request: Request, state: SourceContext) -> JsonReply[Sources]:
    """Every data source: the builtin ones, then those that users defined, by their ids."""
    known = await state.registry.latest()
    found = list(known.sources.values())
    cursor, limit = SOURCE_CURSOR.of(request), SOURCE_LIMIT.of(request) or _PAGE
    begin = 0 if cursor is None else _place(found, cursor, state)
    page = found[begin : begin + limit]
    return reply(
        Sources(
            data_sources=[_shown(source, known.problems.get(source.id)) for source in page],
            total_count=len(found),
            next_cursor=page[-1].id if begin + limit < len(found) else None,
        )
    )


async def create(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Define a data source; it is a draft until it is published."""
    document = await _document(request, state)
    actor, now = request.actor, state.clock()
    about = audit.of_source("data-source.create", now)
    write = owned_writes.writing(request, state, document["id"], about, 201)
    stored = await define.create(state.registry, document, actor=actor, now=now, write=write)
    return await _one(request, state, stored, 201, sent=document)


async def get(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """A data source; of a custom one how it is defined, to tokens that may write it."""
    source_id = SOURCE_ID.of(request)
    if source_id in state.sources:
        return reply(_shown(state.sources[source_id]))
    return await _one(request, state, await source_store.existing(state.database, source_id))


async def replace(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Make the body the draft of a data source, which is made when there is none.

    What says the same as what is there changes nothing.
    """
    document = await _document(request, state, SOURCE_ID.of(request))
    actor, now = request.actor, state.clock()
    about = audit.of_source("data-source.replace", now)
    write = owned_writes.writing(request, state, document["id"], about)
    stored = await define.replace(state.registry, document, actor=actor, now=now, write=write)
    return await _one(request, state, stored, sent=document)


async def delete(request: Request, state: SourceContext) -> Reply:
    """Remove a data source with its facts, their history and its runs."""
    source_id = SOURCE_ID.of(request)
    entry = AuditEntry("data-source.delete", source_id)
    await define.delete(
        state.database,
        state.registry,
        source_id,
        actor=request.actor,
        write=owned_writes.writing(request, state, source_id, entry, 204),
        drop=owned_writes.guarding(request, state, source_id),
    )
    return Reply(status=204)


async def publish(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Publish the draft of a data source under its next semantic version.

    A fact that is removed or gets another type is refused with 409, unless forced.
    """
    source_id = SOURCE_ID.of(request)
    wanted: Publish = decode(await request.json_body(_SMALL, "a publication") or b"{}", Publish)
    now = state.clock()
    about = audit.of_source("data-source.publish", now)
    stored = await define.publish(
        state.database,
        state.registry,
        source_id,
        actor=request.actor,
        now=now,
        force=wanted.force,
        write=owned_writes.writing(request, state, source_id, about),
    )
    return await _one(request, state, stored)


async def run(request: Request, state: SourceContext) -> JsonReply[Run]:
    """Begin to collect a data source now, of every entity or of one."""
    source_id = SOURCE_ID.of(request)
    wanted: NewRun = decode(await request.json_body(_SMALL, "a run") or b"{}", NewRun)
    about = audit.of_run(source_id, wanted.entity)
    found = await run_now.run(
        state.database,
        state.registry,
        source_id,
        wanted.entity,
        actor=request.actor,
        clock=state.clock,
        write=owned_writes.writing(request, state, source_id, about, 202, needed=SOURCE_RUN),
        tracer=state.tracer,
    )
    # Whatever went wrong since it began is for those who may read runs.
    shown = found if request.may_read else found._replace(error=None)
    return reply(_run(shown, state.clock()), 202)


async def list_runs(request: Request, state: SourceContext) -> JsonReply[Runs]:
    """The last runs of a data source, newest first, with their figures and errors."""
    source = await define.known(state.registry, SOURCE_ID.of(request))
    found = await runs.list_recent_runs(state.database, source.id, _MOST_RUNS)
    return reply(Runs([_run(each, state.clock()) for each in found]))


async def get_run(request: Request, state: SourceContext) -> JsonReply[OneRun]:
    """A run of a data source, with the facts that it could not bring by place and reason."""
    source, run_id = await define.known(state.registry, SOURCE_ID.of(request)), NUMBER.of(request)
    found = await runs.fetch_run(state.database, run_id)
    if found is None or found.source_id != source.id:
        raise NotFoundError(f"There is no run {run_id} of {source.id}; old ones are forgotten.")
    listed = await runs.list_gaps(state.database, run_id)
    run = msgspec.structs.asdict(_run(found, state.clock()))
    return reply(OneRun(**run, gaps=[Gap(*gap) for gap in listed]))


async def _document(
    request: Request, state: SourceContext, source_id: str | None = None
) -> Document:
    """The document in the body; raises InvalidItemsError with all that is wrong with it."""
    body = await request.json_body(_LARGEST, "a data source")
    depth = state.settings.max_json_depth
    document: Document = decode(body, Document)
    await define.read(document, state.registry, depth, source_id)
    return document


async def _one(
    request: Request,
    state: SourceContext,
    stored: StoredSource,
    status: int = 200,
    sent: Document | None = None,
) -> JsonReply[OneSource]:
    if not request.may_read:
        return reply(_shown(_unread(stored, sent)), status)
    versions = await source_store.versions(state.database, stored.id)
    shown = _shown(stored.shown(), await define.problem(state.registry, stored))
    definition = Definition(
        pending=stored.draft is not None,
        created_by=stored.created_by,
        updated_by=stored.updated_by,
        versions=[
            PublishedVersion(each.version, iso(each.published_at), each.published_by)
            for each in versions[:_MOST_VERSIONS]
        ],
    )
    if await _may_write(request, state, stored):
        about = msgspec.structs.asdict(definition)
        documents = {"draft": stored.draft, "published": stored.published}
        definition = WholeDefinition(**about | documents)
    shown.definition = definition
    return reply(shown, status)


async def _may_write(request: Request, state: SourceContext, stored: StoredSource) -> bool:
    """True if the token may write the source, by the permission or as one of its owners."""
    assert request.token is not None
    held = request.token.permissions
    if SOURCE_WRITE in held or OWN_WRITE not in held:
        return SOURCE_WRITE in held
    return await owned_source.is_own(state.database, stored, request.actor, state.trust)


def _unread(stored: StoredSource, sent: Document | None) -> DataSource:
    """A source for a token that may not read it: its version, and the parts that were sent."""
    nothing = DataSource(id=stored.id, title=stored.id)
    source = nothing if sent is None else datasource.parse(sent)
    return dataclasses.replace(source, draft=stored.published is None, version=stored.version)


def _shown(source: DataSource, problem: str | None = None) -> OneSource:
    kind = source.handler.type if source.handler else ""
    origin = "builtin" if kind == "builtin" else "custom"
    shown = {**source.render(), "origin": origin, "problem": problem}
    return msgspec.convert(shown, OneSource)


def _place(found: list[DataSource], cursor: str, state: SourceContext) -> int:
    """Start of the page after the source with this id, which may be gone."""
    ids = [source.id for source in found]
    if cursor in ids:
        return ids.index(cursor) + 1
    return sum(id_ in state.sources or id_ < cursor for id_ in ids)


def _run(found: RunRecord, now: int) -> Run:
    return Run(
        id=found.id,
        whole=found.whole,
        reason=found.reason,
        state=found.state,
        started_at=iso(found.started_at),
        finished_at=iso_or_none(found.finished_at),
        entities=found.entities,
        covered=found.covered,
        failed=found.failed,
        incomplete=found.incomplete,
        skipped=found.skipped,
        calls=found.calls,
        rate_limit_left=found.rate_limit_left,
        error=found.error,
        waits_until=iso_or_none(found.resumes_at) if found.wait(now) else None,
    )

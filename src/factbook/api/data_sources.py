"""Data sources, their trials and runs, and the connections that they use, over HTTP."""

import dataclasses
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import UNSET

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import (
    CONNECTION,
    NUMBER,
    SOURCE_CURSOR,
    SOURCE_ID,
    SOURCE_LIMIT,
)
from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import (
    CATALOG_READ,
    OWN_WRITE,
    SOURCE_READ,
    SOURCE_RUN,
    SOURCE_WRITE,
    TITLES,
)
from factbook.auth.tokens import SOURCE_REACH
from factbook.clock import iso, iso_or_none
from factbook.collection import run_start
from factbook.datasources import define, trial
from factbook.datasources.define import ConnectionDetail, OwnedSource
from factbook.datasources.stores import ConnectionInput, StoredSource, source_store
from factbook.errors import ConflictError, NotAllowedError, NotFoundError
from factbook.facts import datasource
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord
from factbook.schemas.facts import (
    Answered,
    Connections,
    Definition,
    Gap,
    NewConnection,
    NewDataSource,
    NewRun,
    NewTrial,
    OneRun,
    OneSource,
    Publish,
    PublishedVersion,
    Run,
    Runs,
    ShownConnection,
    ShownHeader,
    Sources,
    Trial,
    WholeDefinition,
)
from factbook.storage import Write

_LARGEST_SOURCE = 256 * 1024
_SMALL = 16 * 1024
_PAGE = 100
_MOST_RUNS = 2 * runs.RUNS_KEPT
_MOST_VERSIONS = 50
Document = dict[str, Any]
_LARGEST_TRIAL = 512 * 1024
_LARGEST_CONNECTION = 256 * 1024


def prepare_recorded_write(
    request: Request,
    state: SourceContext,
    source_id: str,
    about: AuditEntry | About,
    status: int = HTTPStatus.OK,
    *,
    needed: str = SOURCE_WRITE,
) -> Write:
    """Transaction runner that records the request; for owners, it checks the source's owner."""
    if not request.own_only:
        return audit.audit_request_writes(request, state, about, status)
    configured = state.registry.configured
    owned = OwnedSource(source_id, request.actor, state.trust, configured, needed)
    return owned.guarding(audit.audit_request_writes(request, state, owned.told(about), status))


def prepare_guarded_write(request: Request, state: SourceContext, source_id: str) -> Write:
    """Transaction runner that records nothing; for owners, it checks the source's owner."""
    write = state.database.write
    if not request.own_only:
        return write
    owned = OwnedSource(source_id, request.actor, state.trust, state.registry.configured)
    return owned.guarding(write)


async def get_data_sources(request: Request, state: SourceContext) -> JsonReply[Sources]:
    """All data sources: first the builtin ones, then those that users defined, by id."""
    known = await state.registry.latest()
    sources = list(known.sources.values())
    cursor, limit = SOURCE_CURSOR.of(request), SOURCE_LIMIT.of(request) or _PAGE
    begin = 0
    if cursor is not None:
        ids = [source.id for source in sources]
        # The source of the cursor may no longer exist.
        begin = (
            ids.index(cursor) + 1
            if cursor in ids
            else sum(id_ in state.sources or id_ < cursor for id_ in ids)
        )
    page = sources[begin : begin + limit]
    return reply(
        Sources(
            data_sources=[_render_source(source, known.problems.get(source.id)) for source in page],
            total_count=len(sources),
            next_cursor=page[-1].id if begin + limit < len(sources) else None,
        )
    )


async def post_data_source(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Define a data source; it is a draft until it is published."""
    document = await _read_source_document(request, state)
    actor, now = request.actor, state.clock()
    about = audit.make_source_entry("data-source.create", now)
    write = prepare_recorded_write(request, state, document["id"], about, 201)
    stored = await define.create_source(state.registry, document, actor=actor, now=now, write=write)
    return await _answer_source(request, state, stored, 201, sent=document)


async def get_data_source(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """A data source; tokens that may write a custom one also get its definition."""
    source_id = SOURCE_ID.of(request)
    if source_id in state.sources:
        return reply(_render_source(state.sources[source_id]))
    return await _answer_source(
        request, state, await source_store.existing(state.database, source_id)
    )


async def put_data_source(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Save the body as the draft of a data source, which may be new.

    A document equal to the current one changes nothing.
    """
    document = await _read_source_document(request, state, SOURCE_ID.of(request))
    actor, now = request.actor, state.clock()
    about = audit.make_source_entry("data-source.replace", now)
    write = prepare_recorded_write(request, state, document["id"], about)
    stored = await define.replace_source(
        state.registry, document, actor=actor, now=now, write=write
    )
    return await _answer_source(request, state, stored, sent=document)


async def delete_data_source(request: Request, state: SourceContext) -> Reply:
    """Remove a data source with its facts, their history and its runs."""
    source_id = SOURCE_ID.of(request)
    entry = AuditEntry("data-source.delete", source_id)
    await define.delete_source(
        state.database,
        state.registry,
        source_id,
        actor=request.actor,
        write=prepare_recorded_write(request, state, source_id, entry, 204),
        drop=prepare_guarded_write(request, state, source_id),
    )
    return Reply(status=204)


async def publish_data_source(request: Request, state: SourceContext) -> JsonReply[OneSource]:
    """Publish the draft of a data source under its next semantic version.

    Removing a fact or changing its type is refused with 409, unless forced.
    """
    source_id = SOURCE_ID.of(request)
    wanted: Publish = decode(await request.json_body(_SMALL, "a publication") or b"{}", Publish)
    now = state.clock()
    about = audit.make_source_entry("data-source.publish", now)
    stored = await define.publish_source(
        state.database,
        state.registry,
        source_id,
        actor=request.actor,
        now=now,
        force=wanted.force,
        write=prepare_recorded_write(request, state, source_id, about),
    )
    return await _answer_source(request, state, stored)


async def run_data_source(request: Request, state: SourceContext) -> JsonReply[Run]:
    """Start to collect a data source now, for every entity or for one."""
    source_id = SOURCE_ID.of(request)
    wanted: NewRun = decode(await request.json_body(_SMALL, "a run") or b"{}", NewRun)
    about = audit.make_run_entry(source_id, wanted.entity)
    found = await run_start.run_now(
        state.database,
        state.registry,
        source_id,
        wanted.entity,
        actor=request.actor,
        clock=state.clock,
        write=prepare_recorded_write(request, state, source_id, about, 202, needed=SOURCE_RUN),
        tracer=state.tracer,
    )
    # Only tokens that may read runs see errors since the start.
    shown = found if request.may_read else found._replace(error=None)
    return reply(_render_run(shown, state.clock()), 202)


async def get_source_runs(request: Request, state: SourceContext) -> JsonReply[Runs]:
    """The last runs of a data source, newest first, with their counts and errors."""
    source = await define.find_source(state.registry, SOURCE_ID.of(request))
    found = await runs.list_recent_runs(state.database, source.id, _MOST_RUNS)
    return reply(Runs([_render_run(each, state.clock()) for each in found]))


async def get_source_run(request: Request, state: SourceContext) -> JsonReply[OneRun]:
    """A run of a data source, with the facts that it could not get, by place and reason."""
    source, run_id = (
        await define.find_source(state.registry, SOURCE_ID.of(request)),
        NUMBER.of(request),
    )
    found = await runs.fetch_run(state.database, run_id)
    if found is None or found.source_id != source.id:
        raise NotFoundError(f"There is no run {run_id} of {source.id}; old ones are forgotten.")
    listed = await runs.list_gaps(state.database, run_id)
    run = msgspec.structs.asdict(_render_run(found, state.clock()))
    return reply(OneRun(**run, gaps=[Gap(*gap) for gap in listed]))


async def _read_source_document(
    request: Request, state: SourceContext, source_id: str | None = None
) -> Document:
    """Read the document in the body; raises InvalidItemsError with all problems."""
    body = await request.json_body(_LARGEST_SOURCE, "a data source")
    depth = state.settings.max_json_depth
    document: Document = decode(body, Document)
    await define.read_source(document, state.registry, depth, source_id)
    return document


async def _answer_source(
    request: Request,
    state: SourceContext,
    stored: StoredSource,
    status: int = 200,
    sent: Document | None = None,
) -> JsonReply[OneSource]:
    if not request.may_read:
        # Only the version, and the members that the caller sent.
        nothing = DataSource(id=stored.id, title=stored.id)
        source = nothing if sent is None else datasource.parse_source(sent)
        source = dataclasses.replace(source, draft=stored.published is None, version=stored.version)
        return reply(_render_source(source), status)
    versions = await source_store.versions(state.database, stored.id)
    shown = _render_source(stored.shown(), await define.source_problem(state.registry, stored))
    definition = Definition(
        pending=stored.draft is not None,
        created_by=stored.created_by,
        updated_by=stored.updated_by,
        versions=[
            PublishedVersion(each.version, iso(each.published_at), each.published_by)
            for each in versions[:_MOST_VERSIONS]
        ],
    )
    if await _may_write_source(request, state, stored):
        about = msgspec.structs.asdict(definition)
        documents = {"draft": stored.draft, "published": stored.published}
        definition = WholeDefinition(**about | documents)
    shown.definition = definition
    return reply(shown, status)


async def _may_write_source(request: Request, state: SourceContext, stored: StoredSource) -> bool:
    """True if the token may write the source, by permission or through an owning group."""
    assert request.token is not None
    held = request.token.permissions
    if SOURCE_WRITE in held or OWN_WRITE not in held:
        return SOURCE_WRITE in held
    return await define.is_own_source(state.database, stored, request.actor, state.trust)


def _render_source(source: DataSource, problem: str | None = None) -> OneSource:
    kind = source.handler.type if source.handler else ""
    origin = "builtin" if kind == "builtin" else "custom"
    shown = {**source.render(), "origin": origin, "problem": problem}
    return msgspec.convert(shown, OneSource)


def _render_run(found: RunRecord, now: int) -> Run:
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


async def post_source_trial(request: Request, state: SourceContext) -> JsonReply[Trial]:
    """Collect the facts of one entity, and store nothing.

    The other system's answer is shown as received, up to 64 KiB. A token that may not read data
    sources has to send a definition.
    """
    source_id = SOURCE_ID.of(request)
    wanted: NewTrial = decode(await request.json_body(_LARGEST_TRIAL, "a trial"), NewTrial)
    document = None if wanted.definition is UNSET else wanted.definition
    if document is None and not request.may_read:
        raise NotAllowedError(
            "Without a definition in the body a trial shows the stored one, which needs the "
            f'permission "{TITLES[SOURCE_READ]}" ({SOURCE_READ}).',
            missing=(SOURCE_READ,),
        )
    depth = state.settings.max_json_depth
    made = await trial.find_definition_to_try(
        state.database, state.registry, source_id, document, depth
    )
    if request.own_only:
        await define.check_trial_allowed(
            state.database, source_id, made.source.owner, request.actor, state.trust
        )
    ref, found = await trial.try_definition(
        state.database, state.registry, state.connect, made, wanted.entity
    )
    return reply(
        Trial(
            entity=ref,
            request=None if found.request is None else dict(found.request),
            answer=found.answer and Answered(*found.answer),
            facts=dict(found.facts),
            reasons=dict(found.reasons),
        )
    )


async def get_connections(request: Request, state: SourceContext) -> JsonReply[Connections]:
    """Every connection that data sources may use, without its secrets.

    Owners of data sources see those that are shared with their groups.
    """
    found = await _list_usable_connections(request, state)
    return reply(Connections([_render_connection(one, request) for one in found]))


async def get_connection(request: Request, state: SourceContext) -> JsonReply[ShownConnection]:
    """A connection, without its secrets."""
    name = CONNECTION.of(request)
    usable = await _list_usable_connections(request, state)
    for found in usable:
        if found.name == name:
            return reply(_render_connection(found, request))
    raise define.no_such_connection(name, usable)


async def put_connection(request: Request, state: SourceContext) -> JsonReply[ShownConnection]:
    """Create or change a connection.

    Data sources that use it do so with the new values from their next call on.
    """
    name = CONNECTION.of(request)
    body = await request.json_body(_LARGEST_CONNECTION, "a connection")
    given: NewConnection = decode(body, NewConnection)
    wanted = ConnectionInput(
        base_url=given.base_url,
        methods=tuple(given.methods),
        at_once=given.at_once,
        headers=given.headers,
        shared_with=tuple(given.shared_with),
    )
    found = await define.change_connection(
        state.database,
        state.registry,
        state.token_key,
        name,
        wanted,
        actor=request.actor,
        now=state.clock(),
        write=audit.audit_request_writes(request, state, audit.make_connection_entry()),
    )
    return reply(_render_connection(found, request))


async def delete_connection(request: Request, state: SourceContext) -> Reply:
    """Remove a connection that no data source uses."""
    name = CONNECTION.of(request)
    write = audit.audit_request_writes(
        request, state, audit.make_connection_entry(deleted=True), 204
    )
    await define.delete_connection(state.registry, name, actor=request.actor, write=write)
    return Reply(status=204)


async def _list_usable_connections(
    request: Request, state: SourceContext
) -> list[ConnectionDetail]:
    if request.own_only:
        return await define.list_shared_connections(
            state.database, state.registry, request.actor, state.trust
        )
    return await define.list_connections(state.database, state.registry)


def _render_connection(found: ConnectionDetail, request: Request) -> ShownConnection:
    shown = ShownConnection(
        name=found.name,
        base_url=found.base_url,
        methods=list(found.methods),
        at_once=found.at_once,
        headers=[ShownHeader(name, iso_or_none(time)) for name, time in found.headers.items()],
        shared_with=list(found.shared_with),
        origin="settings" if found.stored is None else "stored",
        used_by=list(found.used_by) if request.may_read else [],
        used_by_count=len(found.used_by),
        problem=found.problem,
    )
    if stored := found.stored:
        shown.created_at, shown.created_by = iso(stored.created_at), stored.created_by
        shown.updated_at, shown.updated_by = iso(stored.updated_at), stored.updated_by
    return shown


_READ_SOURCES = (SOURCE_READ,)
_WRITE_SOURCES = (SOURCE_WRITE,)
_SOURCES = "/data-sources"
_SOURCE = f"{_SOURCES}/{{id}}"
_CONNECTIONS = "/connections"
_CONNECTION = f"{_CONNECTIONS}/{{name}}"
_CONFLICT = (ConflictError,)
# Below /api/tech-insights/v1.
SOURCE_ROUTES: Sequence[Route] = (
    Route("GET", _SOURCES, get_data_sources, _READ_SOURCES, (SOURCE_LIMIT, SOURCE_CURSOR)),
    Route(
        "POST",
        _SOURCES,
        post_data_source,
        _WRITE_SOURCES,
        body=NewDataSource,
        status=201,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "GET",
        _SOURCE,
        get_data_source,
        _READ_SOURCES,
        (SOURCE_ID,),
        reach=SOURCE_REACH,
    ),
    Route(
        "PUT",
        _SOURCE,
        put_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        body=NewDataSource,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "DELETE",
        _SOURCE,
        delete_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        status=204,
        refusals=_CONFLICT,
        owned=True,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_SOURCE}/publish",
        publish_data_source,
        _WRITE_SOURCES,
        (SOURCE_ID,),
        body=Publish,
        needs_body=False,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "POST",
        f"{_SOURCE}/test",
        post_source_trial,
        # A trial shows entity data and makes the service call other systems.
        (CATALOG_READ, SOURCE_WRITE),
        (SOURCE_ID,),
        body=NewTrial,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
    ),
    Route(
        "POST",
        f"{_SOURCE}/run",
        run_data_source,
        (SOURCE_RUN,),
        (SOURCE_ID,),
        body=NewRun,
        needs_body=False,
        status=202,
        refusals=_CONFLICT,
        owned=True,
        reading=_READ_SOURCES,
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        f"{_SOURCE}/runs",
        get_source_runs,
        _READ_SOURCES,
        (SOURCE_ID,),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        f"{_SOURCE}/runs/{{number}}",
        get_source_run,
        _READ_SOURCES,
        (SOURCE_ID, NUMBER),
        reach=SOURCE_REACH,
    ),
    Route(
        "GET",
        _CONNECTIONS,
        get_connections,
        _WRITE_SOURCES,
        reading=_READ_SOURCES,
        owned=True,
    ),
    Route(
        "GET",
        _CONNECTION,
        get_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        reading=_READ_SOURCES,
        owned=True,
    ),
    Route(
        "PUT",
        _CONNECTION,
        put_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        body=NewConnection,
        refusals=_CONFLICT,
        reading=_READ_SOURCES,
    ),
    Route(
        "DELETE",
        _CONNECTION,
        delete_connection,
        _WRITE_SOURCES,
        (CONNECTION,),
        status=204,
        refusals=_CONFLICT,
        reading=_READ_SOURCES,
    ),
)

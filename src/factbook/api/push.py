"""The push interface: replacing or trying whole sets of entities, and writing single ones."""

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
import structlog

from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import (
    CHECKS,
    CURSOR,
    DRY_RUN,
    ETAG,
    IF_MATCH,
    LIMIT,
    MAX_REMOVALS,
    NUMBER,
    ON_CONFLICT,
    SET,
    SET_ID,
)
from factbook.auth import tokens
from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SET_WRITE
from factbook.auth.tokens import SET_REACH, SETS
from factbook.catalog import ref as refs
from factbook.catalog import sets
from factbook.catalog.sets import Prepared, PreparedPush
from factbook.catalog.store import stored_entities, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor, PushResult, StoredItem, WriteResult
from factbook.clock import iso
from factbook.errors import (
    ConflictError,
    InputError,
    NotAllowedError,
    NotFoundError,
    PreconditionFailedError,
)
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import (
    JsonReply,
    Reply,
    Request,
    reply,
    run_offloaded,
    splice_document,
    stream_list,
)
from factbook.schemas import catalog
from factbook.schemas import catalog as catalog_schemas

if TYPE_CHECKING:
    # Few pushes are trials.
    from factbook.checks.trials import WriteTrial

_MOST_RESULTS: Final = 500
log = structlog.get_logger("factbook.push")
_PAGE = 1000
_Pushed = catalog.Pushed | catalog.Tried


def prepare_write_trial(request: Request, state: HandlerContext) -> "WriteTrial":
    """Prepare a dry run that evaluates checks; raises NotAllowedError without permission."""
    if not DRY_RUN.of(request):
        raise InputError("checks is for a dry run: give dryRun=true too.")
    assert request.token is not None
    missing = {CATALOG_READ, CHECK_READ} - request.token.permissions
    if missing:
        names = tuple(sorted(missing))
        raise NotAllowedError(f"Results of checks need {' and '.join(names)}.", missing=names)
    return state.write_trial(request.caller)


def answer_dry_run(
    request: Request,
    name: str,
    push: PreparedPush,
    outcome: PushResult,
    made: "WriteTrial | None",
) -> JsonReply[catalog.Tried]:
    """Answer a dry run with the changes that the push would make."""
    plan, sent = outcome.plan, {item.ref for item in push.items}
    return reply(
        catalog.Tried(
            set=name,
            dry_run=True,
            revision=plan.set.revision if plan.set else 0,
            changes=catalog.Changes(**plan.changes),
            difference=[
                one for one in plan.difference() if request.may_read or one.entity_ref in sent
            ],
            warnings=push.warnings,
            checks=None if made is None else _render_tried_checks(made),
        )
    )


def _render_tried_checks(made: "WriteTrial") -> catalog.TriedChecks:
    found = made.differences
    results = [
        catalog.TriedResult(one.check_id, one.ref, one.after, one.before)
        for one in found[:_MOST_RESULTS]
    ]
    return catalog.TriedChecks(len(found), sum(one.after == "fail" for one in found), results)


async def put_set(request: Request, state: HandlerContext) -> JsonReply[_Pushed]:
    """Replace the whole content of a set with the items of the body."""
    name, terms = SET_ID.new(request), (_read_guards(request, state), DRY_RUN.of(request))
    trial = prepare_write_trial(request, state) if CHECKS.of(request) else None
    async with state.admission.room_for_body(request, state.settings.max_body_bytes):
        body = await request.json_body(state.settings.max_body_bytes, "max_body_bytes")
        with state.tracer.span("check push") as span:
            push = await run_offloaded(sets.prepare_body, body, name, state.rules)
            span.note({"factbook.push.items": len(push.items)})
        del body
        return await _replace_set(request, state, name, push, terms, "set.push", trial)


async def delete_set(request: Request, state: HandlerContext) -> JsonReply[_Pushed]:
    """Remove every entity of a set, like replacing its content with nothing."""
    name, terms = SET_ID.of(request), (_read_guards(request, state), DRY_RUN.of(request))
    return await _replace_set(request, state, name, PreparedPush([], []), terms, "set.delete")


async def _replace_set(
    request: Request,
    state: HandlerContext,
    name: str,
    push: PreparedPush,
    terms: tuple[Guards, bool],
    action: str,
    trial: "WriteTrial | None" = None,
) -> JsonReply[_Pushed]:
    guards, dry_run = terms
    write = audit.audit_request_writes(request, state, audit.make_set_entry(action, name))
    outcome = await stored_sets.replace_set(
        state.database,
        name,
        push.items,
        _build_push_actor(request, state),
        guards,
        kept=state.settings.revisions_kept,
        # A trial writes, then rolls back.
        dry_run=dry_run and trial is None,
        write=write if trial is None else trial.write,
    )
    if dry_run:
        return answer_dry_run(request, name, push, outcome, trial)
    return _answer_push(request, state, name, push, outcome)


async def post_set_entity(
    request: Request, state: HandlerContext
) -> JsonReply[catalog.WrittenItem]:
    """Add or update one entity in a set."""
    return await _put_entity(request, state, SET_ID.new(request))


async def post_pushed_entity(
    request: Request, state: HandlerContext
) -> JsonReply[catalog.WrittenItem]:
    """Add or update one entity outside any set."""
    return await _put_entity(request, state, None)


async def get_sets(request: Request, state: HandlerContext) -> JsonReply[catalog.Sets]:
    """Every set that has items; a token that is limited to sets sees only those."""
    narrowing = request.narrowing
    found = [
        catalog.SetSummary(
            item.id, item.item_count, item.revision, item.updated_by, iso(item.updated_at)
        )
        for item in await stored_sets.list_sets(state.database)
        if narrowing is None or narrowing.allows(SETS, item.id)
    ]
    return reply(catalog.Sets(found))


async def get_set(request: Request, state: HandlerContext) -> JsonReply[catalog.SetPage]:
    """A set as in the answer to its last push: whole, or `limit` items from `cursor` on."""
    name = SET_ID.of(request)
    limit, cursor = LIMIT.of(request), CURSOR.of(request)
    if limit is None and cursor is None:
        content = await stored_sets.read_content(state.database, name)
        head = catalog.SetPage(name, content.revision, [])
        return JsonReply(
            stream_list(head, content.portions, _render_pushed_item),
            headers=_build_etag_header(content.revision),
        )
    after = -1 if cursor is None else cursor
    page = await stored_sets.page_content(state.database, name, limit or _PAGE, after)
    next_cursor = None if page.more is None else str(page.more)
    shown = catalog.SetPage(
        name, page.revision, [*map(_render_pushed_item, page.items)], next_cursor
    )
    return reply(shown)._replace(headers=_build_etag_header(page.revision))


async def get_set_revisions(
    request: Request, state: HandlerContext
) -> JsonReply[catalog.Revisions]:
    """Revisions of a set, newest first."""
    found = [
        catalog.Revision(
            revision=item.number,
            created_by=item.created_by,
            created_at=iso(item.created_at),
            changes=catalog.Changes(item.added, item.updated, item.removed, item.unchanged),
            restored=item.restored or None,
        )
        for item in await stored_sets.list_set_revisions(state.database, SET_ID.of(request))
    ]
    return reply(catalog.Revisions(found))


async def restore_set_revision(
    request: Request, state: HandlerContext
) -> JsonReply[catalog.Pushed]:
    """Restore an earlier revision of a set, as a new revision."""
    name, number = SET_ID.of(request), NUMBER.of(request)
    push, outcome = await stored_sets.restore_revision(
        state.database,
        name,
        number,
        _build_push_actor(request, state),
        _read_guards(request, state),
        state.rules,
        kept=state.settings.revisions_kept,
        write=audit.audit_request_writes(request, state, audit.make_restored_entry(name, number)),
    )
    # A restore sends no entities, so without read permission its answer shows none.
    shown = push if request.may_read else PreparedPush([], [])
    return _answer_push(request, state, name, shown, outcome)


async def get_pushed_entities(request: Request, state: HandlerContext) -> JsonReply[catalog.Items]:
    """Pushed entities, of one set or of all."""
    name = SET.of(request)
    tokens.check_narrowed_sets(request.narrowing, [name])
    portions = stored_sets.stream_items(state.database)
    if name is not None:
        try:
            portions = (await stored_sets.read_content(state.database, name)).portions
        except NotFoundError:
            return reply(catalog.Items([]))
    return JsonReply(stream_list(catalog.Items([]), portions, _render_pushed_item))


async def get_pushed_entity(request: Request, state: HandlerContext) -> JsonReply[catalog.Item]:
    """One pushed entity by its id."""
    uid = _read_uid(request)
    item = await stored_sets.read_item_by_uid(state.database, uid)
    if item is None:
        raise NotFoundError(f"There is no pushed entity with the id {uid}.")
    return reply(_render_pushed_item(item))


async def get_pushed_entity_by_ref(
    request: Request, state: HandlerContext
) -> JsonReply[catalog.Item]:
    """One pushed entity by its reference."""
    text = str(refs.parse_ref(request.parameter("ref")))
    item = await stored_sets.read_item_by_ref(state.database, text)
    if item is None:
        raise await stored_entities.make_unknown_error(state.database, text)
    return reply(_render_pushed_item(item))


async def delete_pushed_entity(request: Request, state: HandlerContext) -> Reply:
    """Remove one pushed entity from wherever it is."""
    uid = _read_uid(request)
    if not await stored_sets.remove_entity(
        state.database,
        uid,
        _build_push_actor(request, state),
        kept=state.settings.revisions_kept,
        narrowing=request.narrowing,
        write=audit.audit_request_writes(
            request, state, audit.make_entity_entry("entity.delete"), 204
        ),
    ):
        raise NotFoundError(f"There is no pushed entity with the id {uid}.")
    return Reply(status=204)


async def refuse_set_id(request: Request, state: HandlerContext) -> Reply:
    """A set id with a slash, which no set can have."""
    raise InputError(SET_ID.wrong)


async def _put_entity(
    request: Request, state: HandlerContext, name: str | None
) -> JsonReply[catalog.WrittenItem]:
    async with state.admission.room_for_body(request, state.settings.max_body_bytes):
        body = await request.json_body(state.settings.max_body_bytes, "max_body_bytes")
        push: PreparedPush = await run_offloaded(
            sets.prepare_item, msgspec.Raw(body), name, state.rules
        )
    [item] = push.items
    outcome = await stored_sets.put_entity(
        state.database,
        name,
        item,
        _build_push_actor(request, state),
        _read_guards(request, state),
        state.rules,
        kept=state.settings.revisions_kept,
        write=audit.audit_request_writes(request, state, audit.make_entity_entry("entity.put")),
    )
    written = _note_write(request, state, name, outcome)
    shown = msgspec.structs.asdict(_render_pushed_item(_build_written_item(item, name, written)))
    return reply(catalog.WrittenItem(**shown, warnings=push.warnings or None))


def _build_etag_header(revision: int) -> dict[str, str]:
    return {"etag": f'"{revision}"'}


def _build_push_actor(request: Request, state: HandlerContext) -> Actor:
    return Actor(request.actor, state.clock())


def _read_uid(request: Request) -> str:
    uid = request.parameter("uid")
    if not uid.isprintable():
        raise NotFoundError("There is no pushed entity with this id.")
    return uid


def _answer_push(
    request: Request, state: HandlerContext, name: str, push: PreparedPush, outcome: PushResult
) -> JsonReply[catalog.Pushed]:
    written = _note_write(request, state, name, outcome)
    changes = catalog.Changes(**outcome.plan.changes)
    head = catalog.Pushed(name, written.revision, changes, push.warnings, [])

    async def items() -> AsyncIterator[Iterable[StoredItem]]:
        yield (_build_written_item(item, name, written) for item in push.items)

    return JsonReply(
        stream_list(head, items(), _render_pushed_item),
        headers=_build_etag_header(written.revision),
    )


def _note_write(
    request: Request, state: HandlerContext, name: str | None, outcome: PushResult
) -> WriteResult:
    """Count and log a write, and return it."""
    changes, written = outcome.plan.changes, outcome.written
    assert written is not None
    state.metrics.pushed(changes)
    log.info("set.pushed", set=name, revision=written.revision, actor=request.actor, **changes)
    return written


def _build_written_item(item: Prepared, name: str | None, written: WriteResult) -> StoredItem:
    uid, updated_by, updated_at = written.items[item.ref]
    return StoredItem(uid, item.ref, item.document, name, updated_by, updated_at)


def _render_pushed_item(item: StoredItem) -> catalog.Item:
    uid, ref, document, set_name, updated_by, updated_at = item
    entity = splice_document(document)
    at = iso(updated_at)
    return catalog.Item(uid, entity, ref, entity, set_name, updated_by, "api-entity", at)


def _read_guards(request: Request, state: HandlerContext) -> Guards:
    """Read the guards from the query and If-Match; raises InputError for invalid ones."""
    takes = ON_CONFLICT.of(request) == "take"
    guards = Guards(IF_MATCH.of(request), MAX_REMOVALS.of(request), takes, request.narrowing)
    if not request.own_only:
        return guards
    # Imported here because most callers have the permission and don't need it.
    from factbook.catalog.store.stored_sets import OwnedSet  # noqa: PLC0415

    owned = OwnedSet(SET_ID.of(request), request.actor, state.trust, takes=takes)
    return guards._replace(owned=owned)


_READ = (CATALOG_READ,)
_WRITE = (SET_WRITE,)
_SET = "/sets/{set_id}"
_REVISIONS = f"{_SET}/revisions"
# Errors of every route that writes a set.
_PUSH_REFUSALS = (ConflictError, PreconditionFailedError)
# Below /api/catalog/<word>-entities, for the configured word and its aliases.
PUSH_ROUTES: Sequence[Route] = (
    Route("GET", "/sets", get_sets, _READ, reach=SET_REACH),
    Route(
        "PUT",
        _SET,
        put_set,
        _WRITE,
        (DRY_RUN, CHECKS, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        body=catalog_schemas.NewSet,
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route("GET", _SET, get_set, _READ, (LIMIT, CURSOR), headers=(ETAG,), reach=SET_REACH),
    Route(
        "POST",
        _SET,
        post_set_entity,
        _WRITE,
        (ON_CONFLICT, IF_MATCH),
        body=catalog_schemas.NewEntity,
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route(
        "DELETE",
        _SET,
        delete_set,
        _WRITE,
        (DRY_RUN, ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    Route("GET", _REVISIONS, get_set_revisions, _READ, reach=SET_REACH),
    Route(
        "POST",
        f"{_REVISIONS}/{{number}}/restore",
        restore_set_revision,
        _WRITE,
        (ON_CONFLICT, MAX_REMOVALS, IF_MATCH),
        headers=(ETAG,),
        refusals=_PUSH_REFUSALS,
        reading=_READ,
        reach=SET_REACH,
        owned=True,
    ),
    # Refuses set ids with a slash.
    *(
        Route(
            method,
            "/sets/{set_id:path}",
            refuse_set_id,
            needed,
            described=False,
            reading=NOTHING_STORED,
            owned=True,
        )
        for method, needed in (
            ("GET", _READ),
            ("PUT", _WRITE),
            ("POST", _WRITE),
            ("DELETE", _WRITE),
        )
    ),
    Route("GET", "/entities", get_pushed_entities, _READ, (SET,), reach=SET_REACH),
    Route(
        "POST",
        "/entities",
        post_pushed_entity,
        _WRITE,
        (ON_CONFLICT,),
        body=catalog_schemas.NewEntity,
        refusals=(ConflictError,),
        reading=_READ,
        reach=SET_REACH,
    ),
    Route("GET", "/entities/by-ref/{ref:path}", get_pushed_entity_by_ref, _READ),
    Route("GET", "/entities/{uid}", get_pushed_entity, _READ),
    Route(
        "DELETE",
        "/entities/{uid}",
        delete_pushed_entity,
        _WRITE,
        status=204,
        reading=NOTHING_STORED,
        reach=SET_REACH,
    ),
)

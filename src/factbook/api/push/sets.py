"""The push interface: sets of entities, replaced whole, and pushed entities one by one."""

import msgspec
import structlog

from factbook.api.openapi.parameters import CURSOR, DRY_RUN, LIMIT, NUMBER, SET, SET_ID
from factbook.api.push import wire
from factbook.api.push.wire import guards_of
from factbook.catalog import ref as refs
from factbook.catalog import sets
from factbook.catalog.sets import Prepared, PreparedPush
from factbook.catalog.store import stored_sets
from factbook.catalog.store.apply import Actor, WriteResult
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import PushResult, StoredItem
from factbook.clock import iso
from factbook.errors import InputError, NotFoundError
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request, offloaded, reply

log = structlog.get_logger("factbook.push")

_PAGE = 1000


async def put_set(request: Request, state: HandlerContext) -> Reply:
    """Make the items of the body the whole content of a set."""
    name, terms = SET_ID.new(request), (guards_of(request), DRY_RUN.of(request))
    async with state.admission.room_for_body(request, state.settings.max_body_bytes):
        body = await request.json_body(state.settings.max_body_bytes, "max_body_bytes")
        with state.tracer.span("check push") as span:
            push = await offloaded(_prepare, body, name, state)
            span.note({"factbook.push.items": len(push.items)})
        del body
        return await _replace(request, state, name, push, terms, "set.push")


async def delete_set(request: Request, state: HandlerContext) -> Reply:
    """Remove every entity of a set; the same as replacing it with nothing."""
    name, terms = SET_ID.of(request), (guards_of(request), DRY_RUN.of(request))
    return await _replace(request, state, name, PreparedPush([], []), terms, "set.delete")


async def _replace(
    request: Request,
    state: HandlerContext,
    name: str,
    push: PreparedPush,
    terms: tuple[Guards, bool],
    action: str,
) -> Reply:
    guards, dry_run = terms
    outcome = await stored_sets.replace(
        state.database,
        name,
        push.items,
        _actor(request, state),
        guards,
        kept=state.settings.revisions_kept,
        dry_run=dry_run,
        write=audit.writing(request, state, audit.of_set(action, name)),
    )
    if dry_run:
        return _difference(request, name, push, outcome)
    return _answer(request, state, name, push, outcome)


async def post_to_set(request: Request, state: HandlerContext) -> Reply:
    """Add or update the one entity of the body in a set."""
    return await _put_one(request, state, SET_ID.new(request))


async def post_entity(request: Request, state: HandlerContext) -> Reply:
    """Add or update the one entity of the body outside any set."""
    return await _put_one(request, state, None)


async def list_sets(request: Request, state: HandlerContext) -> Reply:
    """Every set that has items."""
    found = [
        {
            "id": item.id,
            "itemCount": item.item_count,
            "revision": item.revision,
            "updatedBy": item.updated_by,
            "updatedAt": iso(item.updated_at),
        }
        for item in await stored_sets.summaries(state.database)
    ]
    return reply({"sets": found})


async def get_set(request: Request, state: HandlerContext) -> Reply:
    """A set as its last push answered it; whole, or `limit` items from `cursor` on."""
    name = SET_ID.of(request)
    limit, cursor = LIMIT.of(request), CURSOR.of(request)
    if limit is None and cursor is None:
        content = await stored_sets.content(state.database, name)
        head = {"set": name, "revision": content.revision}
        return Reply(wire.whole(head, content.portions), headers=_etag(content.revision))
    after = -1 if cursor is None else cursor
    page = await stored_sets.page(state.database, name, limit or _PAGE, after)
    head = {"set": name, "revision": page.revision}
    if page.more is not None:
        head["nextCursor"] = str(page.more)
    body = b"".join(wire.pieces(head, map(wire.render, page.items)))
    return Reply(body, headers=_etag(page.revision))


async def list_revisions(request: Request, state: HandlerContext) -> Reply:
    """Revisions of a set, newest first."""
    found = [
        {
            "revision": item.number,
            "createdBy": item.created_by,
            "createdAt": iso(item.created_at),
            "changes": {
                "added": item.added,
                "updated": item.updated,
                "removed": item.removed,
                "unchanged": item.unchanged,
            },
        }
        | ({"restored": item.restored} if item.restored else {})
        for item in await stored_sets.set_revisions(state.database, SET_ID.of(request))
    ]
    return reply({"revisions": found})


async def restore_revision(request: Request, state: HandlerContext) -> Reply:
    """Make a set what it was at an earlier revision, as a new one."""
    name, number = SET_ID.of(request), NUMBER.of(request)
    push, outcome = await stored_sets.restore(
        state.database,
        name,
        number,
        _actor(request, state),
        guards_of(request),
        state.rules,
        kept=state.settings.revisions_kept,
        write=audit.writing(request, state, audit.of_restored(name, number)),
    )
    # A restore sends no entity: without the permission to read, its answer shows none.
    shown = push if request.may_read else PreparedPush([], [])
    return _answer(request, state, name, shown, outcome)


async def list_entities(request: Request, state: HandlerContext) -> Reply:
    """Pushed entities, of one set or all."""
    name = SET.of(request)
    if name is None:
        return Reply(wire.whole({}, stored_sets.all_items(state.database)))
    try:
        content = await stored_sets.content(state.database, name)
    except NotFoundError:
        return reply({"items": []})
    return Reply(wire.whole({}, content.portions))


async def get_entity(request: Request, state: HandlerContext) -> Reply:
    """One pushed entity by its id."""
    uid = _uid(request)
    item = await stored_sets.item_by_uid(state.database, uid)
    if item is None:
        raise NotFoundError(f"There is no pushed entity with the id {uid}.")
    return Reply(wire.render(item))


async def get_entity_by_ref(request: Request, state: HandlerContext) -> Reply:
    """One pushed entity by its reference."""
    text = str(refs.parse(request.parameter("ref")))
    item = await stored_sets.item_by_ref(state.database, text)
    if item is None:
        raise NotFoundError(f"There is no pushed entity {text}.")
    return Reply(wire.render(item))


async def delete_entity(request: Request, state: HandlerContext) -> Reply:
    """Remove one pushed entity from wherever it is."""
    uid = _uid(request)
    if not await stored_sets.remove_one(
        state.database,
        uid,
        _actor(request, state),
        kept=state.settings.revisions_kept,
        write=audit.writing(request, state, audit.of_entity("entity.delete"), 204),
    ):
        raise NotFoundError(f"There is no pushed entity with the id {uid}.")
    return Reply(status=204)


async def refuse_set_id(request: Request, state: HandlerContext) -> Reply:
    """A set id that holds a slash, which no set can have."""
    raise InputError(SET_ID.wrong)


async def _put_one(request: Request, state: HandlerContext, name: str | None) -> Reply:
    async with state.admission.room_for_body(request, state.settings.max_body_bytes):
        body = await request.json_body(state.settings.max_body_bytes, "max_body_bytes")
        push: PreparedPush = await offloaded(sets.prepare_one, msgspec.Raw(body), name, state.rules)
    [item] = push.items
    outcome = await stored_sets.put_one(
        state.database,
        name,
        item,
        _actor(request, state),
        guards_of(request),
        state.rules,
        kept=state.settings.revisions_kept,
        write=audit.writing(request, state, audit.of_entity("entity.put")),
    )
    written = _note(request, state, name, outcome)
    shown = _written(item, name, written.items)
    if push.warnings:
        shown = shown[:-1] + b"," + msgspec.json.encode({"warnings": push.warnings})[1:]
    return Reply(shown)


def _etag(revision: int) -> dict[str, str]:
    return {"etag": f'"{revision}"'}


def _prepare(body: bytes | bytearray, name: str, state: HandlerContext) -> PreparedPush:
    return sets.prepare(sets.decode_body(body, state.rules), name, state.rules)


def _actor(request: Request, state: HandlerContext) -> Actor:
    return Actor(request.actor, state.clock())


def _uid(request: Request) -> str:
    uid = request.parameter("uid")
    if not uid.isprintable():
        raise NotFoundError("There is no pushed entity with this id.")
    return uid


def _difference(request: Request, name: str, push: PreparedPush, outcome: PushResult) -> Reply:
    plan = outcome.plan
    difference = plan.difference()
    if not request.may_read:
        sent = {item.ref for item in push.items}
        difference = [one for one in difference if one["entityRef"] in sent]
    return reply(
        {
            "set": name,
            "dryRun": True,
            "revision": plan.set.revision if plan.set else 0,
            "changes": plan.changes,
            "difference": difference,
            "warnings": push.warnings,
        }
    )


def _answer(
    request: Request, state: HandlerContext, name: str, push: PreparedPush, outcome: PushResult
) -> Reply:
    written = _note(request, state, name, outcome)
    head = {
        "set": name,
        "revision": written.revision,
        "changes": outcome.plan.changes,
        "warnings": push.warnings,
    }
    shown = (_written(item, name, written.items) for item in push.items)
    return Reply(wire.streamed(wire.pieces(head, shown)), headers=_etag(written.revision))


def _note(
    request: Request, state: HandlerContext, name: str | None, outcome: PushResult
) -> WriteResult:
    """Count and log a write, and return it."""
    changes, written = outcome.plan.changes, outcome.written
    assert written is not None
    state.metrics.pushed(changes)
    log.info("set.pushed", set=name, revision=written.revision, actor=request.actor, **changes)
    return written


def _written(item: Prepared, name: str | None, written: dict[str, tuple[str, str, int]]) -> bytes:
    uid, updated_by, updated_at = written[item.ref]
    return wire.render(StoredItem(uid, item.ref, item.document, name, updated_by, updated_at))

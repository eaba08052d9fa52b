"""Checks over HTTP: defined, published and read."""

import asyncio
from functools import partial
from typing import Any

import msgspec

from factbook.api.checks import documents
from factbook.api.checks.parameters import CHECK_ID, ID_CURSOR, PAGE_LIMIT, PUBLISH, tags
from factbook.audit.trail import AuditEntry
from factbook.checks import check_documents, check_store, definition_writes, sentence
from factbook.checks.definition import parse
from factbook.checks.stored_check import StoredCheck
from factbook.errors import FactbookError
from factbook.http import audit
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.checks import Checks, DefinitionVersions, ShownCheck

_NOUN = "check"


async def list_all(request: Request, state: HandlerContext) -> JsonReply[Checks]:
    """Every check, by id; one that was never published is a draft."""
    found = await check_store.everything(state.database)
    page, cursor = documents.page(found, ID_CURSOR.of(request), PAGE_LIMIT.of(request))
    shown = await asyncio.to_thread(lambda: [_shown(one) for one in page])
    return reply(Checks(shown, len(found), cursor))


async def create(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Define a check; it is a draft until it is published.

    Every mistake is told at once: operators that do not fit a fact's type, facts that no source
    has, rules that always hold, and checks that would read themselves.
    """
    document = await documents.body(request, "a check")
    await _checked(document, state)
    now = state.clock()
    work = partial(check_store.create, document=document, actor=request.actor, now=now)
    stored = await _written(request, state, "check.create", work, now, 201)
    return await _one(request, state, stored, 201)


async def get(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """A check with its rule in words, its draft, and a publication that is under way."""
    return await _one(request, state, await _existing(request, state))


async def replace(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Make the body the draft of a check, which is made when there is none.

    With `publish` it is published in the same transaction. What says the same changes nothing.
    """
    document = await documents.body(request, "a check")
    await _checked(document, state, CHECK_ID.of(request))
    now, publish = state.clock(), PUBLISH.of(request)
    work = definition_writes.replacement(
        check_store, document, request.actor, now, tags=tags(request), publish=publish
    )
    action = "check.publish" if publish else "check.replace"
    return await _one(request, state, await _written(request, state, action, work, now))


async def delete(request: Request, state: HandlerContext) -> Reply:
    """Remove a check with its results and their history; 409 where another check reads it."""
    id_ = CHECK_ID.of(request)
    work = definition_writes.removal(check_store, id_, _NOUN, tags(request))
    await audit.writing(request, state, AuditEntry("check.delete", id_), 204)(work)
    return Reply(status=204)


async def publish(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """Publish the draft of a check under its next semantic version.

    A version that changes results is evaluated for every entity first: `publication` tells how far
    that is, and results are those of the version before until then.
    """
    id_, now = CHECK_ID.of(request), state.clock()
    await _existing(request, state)
    work = definition_writes.publication(check_store, id_, request.actor, now, tags(request))
    return await _one(request, state, await _written(request, state, "check.publish", work, now))


async def list_versions(request: Request, state: HandlerContext) -> JsonReply[DefinitionVersions]:
    """The versions of a check that were published, newest first."""
    stored = await _existing(request, state)
    return reply(documents.versions(await check_store.versions(state.database, stored.id)))


async def _existing(request: Request, state: HandlerContext) -> StoredCheck:
    id_ = CHECK_ID.of(request)
    return await definition_writes.existing(check_store, state.database, id_, _NOUN)


async def _checked(
    document: dict[str, Any], state: SourceContext, check_id: str | None = None
) -> None:
    depth = state.settings.max_json_depth
    await check_documents.checked(document, state.database, state.registry, depth, check_id)


async def _written(
    request: Request,
    state: HandlerContext,
    action: str,
    work: documents.Work[StoredCheck],
    now: int,
    status: int = 200,
) -> StoredCheck:
    write = audit.writing(request, state, audit.of_definition(action, now), status)
    return await write(work)


async def _one(
    request: Request, state: HandlerContext, stored: StoredCheck, status: int = 200
) -> JsonReply[ShownCheck]:
    if not request.may_read:
        shown = ShownCheck(**documents.unread(stored))
    else:
        shown = _shown(stored)
        shown.publication = await documents.publication(
            state.database, stored, stored.evaluated_up_to
        )
    return reply(shown, status, etag=f'"{definition_writes.tag(stored)}"')


def _shown(stored: StoredCheck) -> ShownCheck:
    return msgspec.convert({**documents.shown(stored), "sentence": _sentence(stored)}, ShownCheck)


def _sentence(stored: StoredCheck) -> str | None:
    try:
        return sentence.of(parse(stored.current).rule)
    except FactbookError:
        return None  # another release took it

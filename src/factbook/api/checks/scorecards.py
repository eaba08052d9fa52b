"""Scorecards over HTTP: defined, published and read."""

from functools import partial
from typing import Any

import msgspec

from factbook.api.checks import documents
from factbook.api.checks.parameters import ID_CURSOR, PAGE_LIMIT, PUBLISH, SCORECARD_ID, tags
from factbook.audit.trail import AuditEntry
from factbook.checks import definition_writes, scorecard_documents, scorecard_store
from factbook.checks.scorecard_store import StoredScorecard
from factbook.http import audit
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.checks import DefinitionVersions
from factbook.schemas.scorecards import Scorecards, ShownScorecard

_NOUN = "scorecard"


async def list_all(request: Request, state: HandlerContext) -> JsonReply[Scorecards]:
    """Every scorecard, by id; one that was never published is a draft."""
    found = await scorecard_store.everything(state.database)
    page, cursor = documents.page(found, ID_CURSOR.of(request), PAGE_LIMIT.of(request))
    return reply(Scorecards([_shown(one) for one in page], len(found), cursor))


async def create(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """Define a scorecard; it is a draft until it is published."""
    document = await documents.body(request, "a scorecard")
    await _checked(document, state)
    now = state.clock()
    work = partial(scorecard_store.create, document=document, actor=request.actor, now=now)
    stored = await _written(request, state, "scorecard.create", work, now, 201)
    return await _one(request, state, stored, 201)


async def get(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """A scorecard with its levels, checks and rules, and a publication that is under way."""
    return await _one(request, state, await _existing(request, state))


async def replace(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """Make the body the draft of a scorecard, which is made when there is none.

    With `publish` it is published in the same transaction. What says the same changes nothing.
    """
    document = await documents.body(request, "a scorecard")
    await _checked(document, state, SCORECARD_ID.of(request))
    now, publish = state.clock(), PUBLISH.of(request)
    work = definition_writes.replacement(
        scorecard_store, document, request.actor, now, tags=tags(request), publish=publish
    )
    action = "scorecard.publish" if publish else "scorecard.replace"
    return await _one(request, state, await _written(request, state, action, work, now))


async def delete(request: Request, state: HandlerContext) -> Reply:
    """Remove a scorecard with its levels, their trend and its exemptions."""
    id_ = SCORECARD_ID.of(request)
    work = definition_writes.removal(scorecard_store, id_, _NOUN, tags(request))
    await audit.writing(request, state, AuditEntry("scorecard.delete", id_), 204)(work)
    return Reply(status=204)


async def publish(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """Publish the draft of a scorecard under its next semantic version.

    One that changes levels grades every entity first: `publication` tells how far that is.
    """
    id_, now = SCORECARD_ID.of(request), state.clock()
    await _existing(request, state)
    work = definition_writes.publication(scorecard_store, id_, request.actor, now, tags(request))
    stored = await _written(request, state, "scorecard.publish", work, now)
    return await _one(request, state, stored)


async def list_versions(request: Request, state: HandlerContext) -> JsonReply[DefinitionVersions]:
    """The versions of a scorecard that were published, newest first."""
    stored = await _existing(request, state)
    return reply(documents.versions(await scorecard_store.versions(state.database, stored.id)))


async def _existing(request: Request, state: HandlerContext) -> StoredScorecard:
    id_ = SCORECARD_ID.of(request)
    return await definition_writes.existing(scorecard_store, state.database, id_, _NOUN)


async def _checked(
    document: dict[str, Any], state: HandlerContext, scorecard_id: str | None = None
) -> None:
    depth = state.settings.max_json_depth
    await scorecard_documents.checked(document, state.database, depth, scorecard_id)


async def _written(
    request: Request,
    state: HandlerContext,
    action: str,
    work: documents.Work[StoredScorecard],
    now: int,
    status: int = 200,
) -> StoredScorecard:
    write = audit.writing(request, state, audit.of_definition(action, now), status)
    return await write(work)


async def _one(
    request: Request, state: HandlerContext, stored: StoredScorecard, status: int = 200
) -> JsonReply[ShownScorecard]:
    if not request.may_read:
        shown = ShownScorecard(**documents.unread(stored))
    else:
        shown = _shown(stored)
        shown.publication = await documents.publication(state.database, stored, stored.graded_up_to)
    return reply(shown, status, etag=f'"{definition_writes.tag(stored)}"')


def _shown(stored: StoredScorecard) -> ShownScorecard:
    return msgspec.convert(documents.shown(stored), ShownScorecard)

"""Definitions over HTTP: what the handlers of checks and those of scorecards have in common."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from factbook.api.checks.parameters import ID_CURSOR, PAGE_LIMIT, PUBLISH, DefinitionId, tags
from factbook.audit.trail import About, AuditEntry
from factbook.catalog.store import totals
from factbook.checks.submissions import definition_writes
from factbook.checks.submissions.owned_staged import OwnedStaged
from factbook.checks.versions.staged_store import StagedDefinition, StagedStore
from factbook.clock import iso, iso_or_none
from factbook.http import audit
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.schemas.checks import CheckPublication, DefinitionVersions, OneDefinitionVersion
from factbook.schemas.common import WireAnswer
from factbook.storage import Database, Transaction

_LARGEST: Final = 256 * 1024
_PAGE: Final = 100
_MOST_VERSIONS: Final = 100

S = TypeVar("S", bound=StagedDefinition)
A = TypeVar("A", bound=WireAnswer)
T = TypeVar("T")
Document = dict[str, Any]
Members = dict[str, Any]


class DefinitionHandlers(Generic[S, A]):
    """Handlers of the definitions in a store.

    `verify` refuses a document that is wrong, or not for who sent it; the text is the id in the
    address.
    """

    def __init__(
        self,
        store: StagedStore[S],
        id_: DefinitionId,
        answer: type[A],
        *,
        verify: Callable[[Request, SourceContext, Document, str | None], Awaitable[object]],
        members: Callable[[S], Members] = lambda _: {},
    ) -> None:
        """`members` are those of an answer that are not of the document."""
        self._store = store
        self._id = id_
        self._answer = answer
        self._verify = verify
        self._members = members

    async def page(
        self, request: Request, state: HandlerContext
    ) -> tuple[list[A], int, str | None]:
        """Those after the cursor, which may be gone, the number of all, and the next cursor."""
        found = await self._store.everything(state.database)
        cursor = ID_CURSOR.of(request)
        rest = [one for one in found if cursor is None or one.id > cursor]
        page = rest[: PAGE_LIMIT.of(request) or _PAGE]
        following = page[-1].id if len(rest) > len(page) else None
        shown = await asyncio.to_thread(lambda: [self._shown(one) for one in page])
        return shown, len(found), following

    async def create(self, request: Request, state: SourceContext) -> JsonReply[A]:
        """Define one, as a draft."""
        document, now = await self._document(request, state), state.clock()
        work = partial(self._store.create, document=document, actor=request.actor, now=now)
        return await self._written(request, state, document["id"], ("create", work), now, 201)

    async def get(self, request: Request, state: HandlerContext) -> JsonReply[A]:
        """One with its draft, and a publication that is under way."""
        return await self._one(request, state, await self._existing(request, state))

    async def replace(self, request: Request, state: SourceContext) -> JsonReply[A]:
        """Make the body the draft of one, and publish it if that is asked for."""
        document = await self._document(request, state, self._id.of(request))
        now, publish = state.clock(), PUBLISH.of(request)
        work = definition_writes.replacement(
            self._store,
            document,
            request.actor,
            now,
            tags=tags(request),
            publish=publish,
            permitted=not request.own_only,
        )
        verb = "publish" if publish else "replace"
        return await self._written(request, state, document["id"], (verb, work), now)

    async def delete(self, request: Request, state: HandlerContext) -> Reply:
        """Remove one."""
        id_ = self._id.of(request)
        work = definition_writes.removal(self._store, id_, tags(request))
        entry = AuditEntry(f"{self._store.noun}.delete", id_)
        await self._recorded(request, state, id_, work, entry, 204)
        return Reply(status=204)

    async def publish(self, request: Request, state: HandlerContext) -> JsonReply[A]:
        """Publish the draft of one."""
        id_, now = (await self._existing(request, state)).id, state.clock()
        work = definition_writes.publication(
            self._store, id_, request.actor, now, tags(request), permitted=not request.own_only
        )
        return await self._written(request, state, id_, ("publish", work), now)

    async def versions(
        self, request: Request, state: HandlerContext
    ) -> JsonReply[DefinitionVersions]:
        """The newest of the versions of one."""
        stored = await self._existing(request, state)
        found = await self._store.versions(state.database, stored.id)
        return reply(
            DefinitionVersions(
                [
                    OneDefinitionVersion(one.version, iso(one.published_at), one.published_by)
                    for one in found[:_MOST_VERSIONS]
                ]
            )
        )

    async def _existing(self, request: Request, state: HandlerContext) -> S:
        return await self._store.existing(state.database, self._id.of(request))

    async def _document(
        self, request: Request, state: SourceContext, id_: str | None = None
    ) -> Document:
        """The document in the body; raises InvalidItemsError with all that is wrong with it."""
        body = await request.json_body(_LARGEST, f"a {self._store.noun}")
        document: Document = decode(body, Document)
        await self._verify(request, state, document, id_)
        return document

    async def _written(
        self,
        request: Request,
        state: HandlerContext,
        id_: str,
        done: tuple[str, Callable[[Transaction], S]],
        now: int,
        status: int = 200,
    ) -> JsonReply[A]:
        verb, work = done
        about = audit.of_definition(f"{self._store.noun}.{verb}", now)
        stored = await self._recorded(request, state, id_, work, about, status)
        return await self._one(request, state, stored, status)

    async def _recorded(
        self,
        request: Request,
        state: HandlerContext,
        id_: str,
        work: Callable[[Transaction], T],
        about: AuditEntry | About,
        status: int,
    ) -> T:
        """Do the work on what the caller may write, which the audit records."""
        if not request.own_only:
            return await audit.writing(request, state, about, status)(work)
        owned = OwnedStaged(self._store, id_, request.actor, state.trust)
        write = owned.guarding(audit.writing(request, state, owned.told(about), status))
        return await write(work)

    async def _one(
        self, request: Request, state: HandlerContext, stored: S, status: int = 200
    ) -> JsonReply[A]:
        if request.may_read:
            publication = await _publication(state.database, stored)
            shown = self._shown(stored, publication=publication)
        else:
            shown = self._answer(**_unread(stored))
        return reply(shown, status, etag=f'"{definition_writes.tag(stored)}"')

    def _shown(self, stored: S, **more: object) -> A:
        members = {**_shown(stored), **self._members(stored), **more}
        given = {name: value for name, value in members.items() if value is not None}
        return msgspec.convert(given, self._answer)


def _unread(stored: StagedDefinition) -> Members:
    """The members of an answer to a token that may not read."""
    return {
        "id": stored.id,
        "title": None,
        "version": stored.version,
        "draft": stored.is_draft,
        "tag": definition_writes.tag(stored),
    }


def _shown(stored: StagedDefinition) -> Members:
    """The members of an answer: the document in effect, its times, and what is not published."""
    return {
        **stored.current,
        **_unread(stored),
        "title": stored.current.get("title"),
        "createdAt": iso(stored.created_at),
        "createdBy": stored.created_by,
        "updatedAt": iso(stored.updated_at),
        "updatedBy": stored.updated_by,
        "publishedAt": iso_or_none(stored.published_at),
        "publishedBy": stored.published_by,
        "unpublished": None if stored.is_draft else stored.draft,
    }


async def _publication(database: Database, stored: StagedDefinition) -> CheckPublication | None:
    """The publication that is under way, with the last entity that it reached."""
    if stored.pending_version is None or stored.reached is None:
        return None
    evaluated, total = await totals.up_to(database, stored.reached)
    return CheckPublication(stored.pending_version, evaluated, total)

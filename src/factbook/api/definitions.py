"""Checks, scorecards and exemptions over HTTP, and the starter scorecard."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from factbook.api.check_parameters import (
    CHECK_ID,
    ETAG,
    EXEMPTION_CHECK,
    EXEMPTION_CURSOR,
    EXEMPTION_ID,
    EXEMPTION_SCORECARD,
    EXEMPTION_STATE,
    EXPAND,
    ID_CURSOR,
    IF_MATCH,
    ONE_ENTITY,
    PAGE_LIMIT,
    PUBLISH,
    SCORECARD_ID,
    DefinitionId,
    parse_if_match_tags,
)
from factbook.api.endpoint import Handler, Route, require_permissions
from factbook.api.parameters import (
    Parameter,
)
from factbook.api.results import post_check_preview
from factbook.audit.trail import About, AuditEntry
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.catalog import ref as refs
from factbook.catalog.store import entity_query
from factbook.checks.definitions import definition_writes, exemption_store, publications
from factbook.checks.definitions.definition_versions import (
    StagedDefinition,
    StagedStore,
    StoredCheck,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import (
    Adoption,
    ExemptionCaller,
    MissingFact,
    OwnedStaged,
)
from factbook.checks.definitions.exemption_store import Decision, Exemption, ExemptionFilter
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.clock import iso, iso_or_none
from factbook.errors import ConflictError, FactbookError, NotFoundError, PreconditionFailedError
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Reply, Request, decode, reply
from factbook.schemas import results as result_schemas
from factbook.schemas.checks import (
    AdoptedStarter,
    CheckPublication,
    Checks,
    DefinitionVersions,
    Exemptions,
    NewCheck,
    NewDecision,
    NewExemption,
    NewScorecard,
    OneDefinitionVersion,
    Scorecards,
    ShownCheck,
    ShownExemption,
    ShownScorecard,
    StarterCheck,
    StarterDocuments,
)
from factbook.schemas.common import Wire, WireAnswer
from factbook.storage import Database, Transaction

_LARGEST_DEFINITION: Final = 256 * 1024
_PAGE: Final = 100
_MOST_VERSIONS: Final = 100
S = TypeVar("S", bound=StagedDefinition)
A = TypeVar("A", bound=WireAnswer)
T = TypeVar("T")
Document = dict[str, Any]
Members = dict[str, Any]


class DefinitionHandlers(Generic[S, A]):
    """Handlers for the checks or scorecards in a store.

    `verify` refuses a document that is invalid or not allowed for the caller; its last argument is
    the id in the path.
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
        """Build the handlers; `members` adds answer members that aren't in the document."""
        self._store = store
        self._id = id_
        self._answer = answer
        self._verify = verify
        self._members = members

    async def page(
        self, request: Request, state: HandlerContext
    ) -> tuple[list[A], int, str | None]:
        """List a page of definitions, the total, and the next cursor."""
        found = await self._store.everything(state.database)
        cursor = ID_CURSOR.of(request)
        rest = [one for one in found if cursor is None or one.id > cursor]
        page = rest[: PAGE_LIMIT.of(request) or _PAGE]
        following = page[-1].id if len(rest) > len(page) else None
        shown = await asyncio.to_thread(lambda: [self._shown(one) for one in page])
        return shown, len(found), following

    async def create(self, request: Request, state: SourceContext) -> JsonReply[A]:
        """Create a definition as a draft."""
        document, now = await self._document(request, state), state.clock()
        work = partial(self._store.create, document=document, actor=request.actor, now=now)
        return await self._written(request, state, document["id"], ("create", work), now, 201)

    async def get(self, request: Request, state: HandlerContext) -> JsonReply[A]:
        """Get a definition with its draft and any running publication."""
        return await self._one(request, state, await self._existing(request, state))

    async def replace(self, request: Request, state: SourceContext) -> JsonReply[A]:
        """Replace the draft with the body, and publish it if requested."""
        document = await self._document(request, state, self._id.of(request))
        now, publish = state.clock(), PUBLISH.of(request)
        work = definition_writes.make_replacement(
            self._store,
            document,
            request.actor,
            now,
            tags=parse_if_match_tags(request),
            publish=publish,
            permitted=not request.own_only,
        )
        verb = "publish" if publish else "replace"
        return await self._written(request, state, document["id"], (verb, work), now)

    async def delete(self, request: Request, state: HandlerContext) -> Reply:
        """Remove a definition."""
        id_ = self._id.of(request)
        work = definition_writes.make_removal(self._store, id_, parse_if_match_tags(request))
        entry = AuditEntry(f"{self._store.noun}.delete", id_)
        await self._recorded(request, state, id_, work, entry, 204)
        return Reply(status=204)

    async def publish(self, request: Request, state: HandlerContext) -> JsonReply[A]:
        """Publish the draft of a definition."""
        id_, now = (await self._existing(request, state)).id, state.clock()
        work = definition_writes.make_publication(
            self._store,
            id_,
            request.actor,
            now,
            parse_if_match_tags(request),
            permitted=not request.own_only,
        )
        return await self._written(request, state, id_, ("publish", work), now)

    async def versions(
        self, request: Request, state: HandlerContext
    ) -> JsonReply[DefinitionVersions]:
        """List the newest versions of a definition."""
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
        """Read the document in the body; raises InvalidItemsError with all problems."""
        body = await request.json_body(_LARGEST_DEFINITION, f"a {self._store.noun}")
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
        about = audit.make_definition_entry(f"{self._store.noun}.{verb}", now)
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
        """Run the write with its audit record, after checking ownership where needed."""
        if not request.own_only:
            return await audit.audit_request_writes(request, state, about, status)(work)
        owned = OwnedStaged(self._store, id_, request.actor, state.trust)
        write = owned.guarding(
            audit.audit_request_writes(request, state, owned.told(about), status)
        )
        return await write(work)

    async def _one(
        self, request: Request, state: HandlerContext, stored: S, status: int = 200
    ) -> JsonReply[A]:
        if request.may_read:
            publication = await _find_publication(state.database, stored)
            shown = self._shown(stored, publication=publication)
        else:
            shown = self._answer(**_render_unread_definition(stored))
        return reply(shown, status, etag=f'"{definition_writes.make_tag(stored)}"')

    def _shown(self, stored: S, **more: object) -> A:
        members = {**_render_definition(stored), **self._members(stored), **more}
        given = {name: value for name, value in members.items() if value is not None}
        return msgspec.convert(given, self._answer)


def _render_unread_definition(stored: StagedDefinition) -> Members:
    """Answer members for a token that may not read definitions."""
    return {
        "id": stored.id,
        "title": None,
        "version": stored.version,
        "draft": stored.is_draft,
        "tag": definition_writes.make_tag(stored),
    }


def _render_definition(stored: StagedDefinition) -> Members:
    """Answer members: the document in effect, its times, and the unpublished draft."""
    return {
        **stored.current,
        **_render_unread_definition(stored),
        "title": stored.current.get("title"),
        "createdAt": iso(stored.created_at),
        "createdBy": stored.created_by,
        "updatedAt": iso(stored.updated_at),
        "updatedBy": stored.updated_by,
        "publishedAt": iso_or_none(stored.published_at),
        "publishedBy": stored.published_by,
        "unpublished": None if stored.is_draft else stored.draft,
    }


async def _find_publication(
    database: Database, stored: StagedDefinition
) -> CheckPublication | None:
    """Find the running publication, with the last entity it reached."""
    if stored.pending_version is None or stored.reached is None:
        return None
    evaluated, total = await entity_query.count_up_to_id(database, stored.reached)
    return CheckPublication(stored.pending_version, evaluated, total)


async def get_checks(request: Request, state: HandlerContext) -> JsonReply[Checks]:
    """Every check, by id; a check that was never published is a draft."""
    return reply(Checks(*await _CHECKS.page(request, state)))


async def post_check(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Define a check; it is a draft until it is published.

    This needs the permissions to read everything that the check reads, because results reveal
    values. The answer has all mistakes at once: operators that don't fit a fact's type, facts that
    no source has, rules that always hold, and checks that read themselves.
    """
    return await _CHECKS.create(request, state)


async def get_check(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """A check with its rule in words, its draft, and its publication if one is running."""
    return await _CHECKS.get(request, state)


async def put_check(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Save the body as the draft of a check, which may be new.

    With `publish`, it is published in the same transaction. A document equal to the current one
    changes nothing. This needs the permissions to read everything that the check reads.
    """
    return await _CHECKS.replace(request, state)


async def delete_check(request: Request, state: HandlerContext) -> Reply:
    """Remove a check with its results and their history; 409 if another check reads it."""
    return await _CHECKS.delete(request, state)


async def publish_check(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """Publish the draft of a check under its next semantic version.

    A version that changes results is first evaluated for every entity: `publication` has the
    progress, and until it ends, results are those of the previous version.
    """
    return await _CHECKS.publish(request, state)


async def get_check_versions(
    request: Request, state: HandlerContext
) -> JsonReply[DefinitionVersions]:
    """The published versions of a check, newest first."""
    return await _CHECKS.versions(request, state)


async def _verify_check(
    request: Request, state: SourceContext, document: dict[str, Any], check_id: str | None
) -> object:
    token, depth = request.token, state.settings.max_json_depth

    def authorized(check: Check) -> None:
        if token is not None:
            require_permissions(token, definition_writes.list_needed_permissions(check))

    return await definition_writes.read_check_document(
        document, state.database, state.registry, depth, check_id, authorized
    )


def _render_sentence(stored: StoredCheck) -> dict[str, Any]:
    try:
        return {"sentence": language.describe_rule(parse_stored_check(stored.current).rule)}
    except FactbookError:
        return {}  # only another release can read it


async def get_scorecards(request: Request, state: HandlerContext) -> JsonReply[Scorecards]:
    """Every scorecard, by id; a scorecard that was never published is a draft."""
    return reply(Scorecards(*await _SCORECARDS.page(request, state)))


async def post_scorecard(request: Request, state: SourceContext) -> JsonReply[ShownScorecard]:
    """Define a scorecard; it is a draft until it is published."""
    return await _SCORECARDS.create(request, state)


async def get_scorecard(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """A scorecard with its levels, checks and rules, and its publication if one is running."""
    return await _SCORECARDS.get(request, state)


async def put_scorecard(request: Request, state: SourceContext) -> JsonReply[ShownScorecard]:
    """Save the body as the draft of a scorecard, which may be new.

    With `publish`, it is published in the same transaction. A document equal to the current one
    changes nothing.
    """
    return await _SCORECARDS.replace(request, state)


async def delete_scorecard(request: Request, state: HandlerContext) -> Reply:
    """Remove a scorecard with its levels, their trend and its exemptions."""
    return await _SCORECARDS.delete(request, state)


async def publish_scorecard(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """Publish the draft of a scorecard under its next semantic version.

    A version that changes levels first grades every entity: `publication` has the progress.
    """
    return await _SCORECARDS.publish(request, state)


async def get_scorecard_versions(
    request: Request, state: HandlerContext
) -> JsonReply[DefinitionVersions]:
    """The published versions of a scorecard, newest first."""
    return await _SCORECARDS.versions(request, state)


async def _verify_scorecard(
    request: Request, state: SourceContext, document: dict[str, Any], scorecard_id: str | None
) -> object:
    depth = state.settings.max_json_depth
    found = await definition_writes.read_scorecard_document(
        document, state.database, depth, scorecard_id
    )
    # The figures count entities that match the filter.
    if request.token is not None and found.applies_to is not None:
        require_permissions(request.token, (CATALOG_READ,))
    return found


async def get_starter_scorecard(
    request: Request, state: SourceContext
) -> JsonReply[StarterDocuments]:
    """The starter's checks and scorecard, for the existing data sources.

    Stores nothing. `missing` lists the checks that are left out because no data source has their
    fact.
    """
    sources = await _list_sources(state)
    found = definition_writes.list_starter_documents(sources)
    checks, scorecards = (
        [one.document for one in found if one.kind == kind] for kind in ("check", "scorecard")
    )
    return reply(
        StarterDocuments(
            checks,
            scorecards,
            _render_missing_checks(definition_writes.list_missing_facts(sources)),
        )
    )


async def adopt_starter_scorecard(
    request: Request, state: SourceContext
) -> JsonReply[AdoptedStarter]:
    """Create drafts of the starter's checks and scorecard, except for ids that exist already.

    They are evaluated once they are published.
    """
    sources, now = await _list_sources(state), state.clock()
    wanted = definition_writes.list_starter_documents(sources)
    [card] = [one.document["id"] for one in wanted if one.kind == "scorecard"]

    def work(transaction: Transaction) -> Adoption:
        publications.lock_definitions(transaction)
        return definition_writes.adopt_starter(transaction, wanted, request.actor, now)

    def about(adopted: Adoption) -> AuditEntry:
        return AuditEntry("scorecard.create", card, {"drafts": list(adopted.made)})

    adopted = await audit.audit_request_writes(request, state, about)(work)
    missing = _render_missing_checks(definition_writes.list_missing_facts(sources))
    return reply(AdoptedStarter(list(adopted.made), list(adopted.kept), missing))


async def _list_sources(state: SourceContext) -> list[DataSource]:
    return list((await state.registry.latest()).sources.values())


def _render_missing_checks(missing: Sequence[MissingFact]) -> list[StarterCheck]:
    return [StarterCheck(*one) for one in missing]


_CHECKS: Final = DefinitionHandlers(
    check_store, CHECK_ID, ShownCheck, verify=_verify_check, members=_render_sentence
)


_SCORECARDS: Final = DefinitionHandlers(
    scorecard_store, SCORECARD_ID, ShownScorecard, verify=_verify_scorecard
)


_LARGEST_EXEMPTION = 16 * 1024
_EXEMPTION_PAGE = 100


async def get_exemptions(request: Request, state: HandlerContext) -> JsonReply[Exemptions]:
    """Exemptions and requests for them, newest first."""
    entity, cursor = ONE_ENTITY.of(request), EXEMPTION_CURSOR.of(request)
    filter_ = ExemptionFilter(
        EXEMPTION_STATE.of(request),
        None if entity is None else str(refs.parse_ref(entity)),
        EXEMPTION_CHECK.of(request),
        EXEMPTION_SCORECARD.of(request),
    )
    limit = PAGE_LIMIT.of(request) or _EXEMPTION_PAGE
    after: tuple[int, str] | None = None
    if cursor is not None:
        requested_at, _, id_ = cursor.partition("-")
        after = int(requested_at), id_
    exemptions = await exemption_store.list_exemptions(state.database, filter_, limit + 1, after)
    page = exemptions[:limit]
    next_cursor = f"{page[-1].requested_at}-{page[-1].id}" if len(exemptions) > limit else None
    return reply(Exemptions([_render_exemption(exemption) for exemption in page], next_cursor))


async def post_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Request an exemption of an entity from a check or a scorecard.

    Members of the group that owns the entity may do so, and tokens with the permission. Once
    approved, the exemption holds from `from` until `until`.
    """
    body: dict[str, Any] = decode(
        await request.json_body(_LARGEST_EXEMPTION, "an exemption"), dict[str, Any]
    )
    now = state.clock()
    wanted = exemption_store.parse_exemption_request(body, now)
    usual = state.settings.exemption_days
    work = partial(
        definition_writes.request_exemption,
        wanted=wanted,
        caller=_build_exemption_caller(request, state),
        now=now,
        usual_days=usual,
    )
    write = audit.audit_request_writes(
        request, state, definition_writes.audit_exemption("exemption.request"), 201
    )
    return reply(_render_exemption(await write(work)), 201)


async def get_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """An exemption."""
    return reply(
        _render_exemption(
            await exemption_store.get_exemption(state.database, EXEMPTION_ID.of(request))
        )
    )


async def approve_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Approve a request; nobody approves their own, unless a setting allows it.

    A request that scorecards with the check no longer allow is refused. If scorecards with the
    check name groups that approve, members of each of them decide.
    """
    return await _decide_exemption(request, state, "approve")


async def deny_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Deny a request."""
    return await _decide_exemption(request, state, "deny")


async def revoke_exemption(request: Request, state: HandlerContext) -> JsonReply[ShownExemption]:
    """Revoke an approved exemption; the check counts again in the same transaction."""
    return await _decide_exemption(request, state, "revoke")


async def _decide_exemption(
    request: Request, state: HandlerContext, decision: Decision
) -> JsonReply[ShownExemption]:
    id_ = EXEMPTION_ID.of(request)
    given: NewDecision = decode(
        await request.json_body(_LARGEST_EXEMPTION, "a decision") or b"{}", NewDecision
    )
    work = partial(
        definition_writes.decide_exemption,
        exemption_id=id_,
        decision=decision,
        caller=_build_exemption_caller(request, state),
        now=state.clock(),
        comment=given.comment,
        own=state.settings.exemption_self_approval,
        usual_days=state.settings.exemption_days,
    )
    write = audit.audit_request_writes(
        request, state, definition_writes.audit_exemption(f"exemption.{decision}")
    )
    return reply(_render_exemption(await write(work)))


def _build_exemption_caller(request: Request, state: HandlerContext) -> ExemptionCaller:
    assert request.token is not None
    return ExemptionCaller(request.actor, request.token.permissions, state.trust)


def _render_exemption(found: Exemption) -> ShownExemption:
    return msgspec.convert(found.render(), ShownExemption)


_READ_CHECKS = (CHECK_READ,)
_CHECKS_PATH = "/checks"
_SCORECARDS_PATH = "/scorecards"
_EXEMPTIONS = "/exemptions"
_STARTER = "/starter-scorecard"
_CHANGED = (ConflictError, PreconditionFailedError)


def _list_definition_routes(
    path: str,
    id_: DefinitionId,
    permission: str,
    body: type[Wire],
    handlers: tuple[Handler, ...],
) -> Sequence[Route]:
    """List the routes for checks or scorecards."""
    list_all, create, get, replace, delete, publish, list_versions = handlers
    one, write = f"{path}/{{id}}", (permission,)

    def writing(method: str, path: str, handler: Handler, *parameters: Parameter[Any]) -> Route:
        route = Route(method, path, handler, write, parameters, headers=(ETAG,))
        return route._replace(refusals=_CHANGED, reading=_READ_CHECKS, owned=True)

    return (
        Route("GET", path, list_all, _READ_CHECKS, (PAGE_LIMIT, ID_CURSOR, EXPAND)),
        writing("POST", path, create)._replace(body=body, status=201, refusals=(ConflictError,)),
        Route("GET", one, get, _READ_CHECKS, (id_, EXPAND), headers=(ETAG,)),
        writing("PUT", one, replace, id_, PUBLISH, IF_MATCH)._replace(body=body),
        writing("DELETE", one, delete, id_, IF_MATCH)._replace(status=204, headers=()),
        writing("POST", f"{one}/publish", publish, id_, IF_MATCH),
        Route("GET", f"{one}/versions", list_versions, _READ_CHECKS, (id_,)),
    )


# Below /api/tech-insights/v1.
CHECK_ROUTES: Sequence[Route] = (
    Route(
        "POST",
        f"{_CHECKS_PATH}/preview",
        post_check_preview,
        # Rules can read any fact of any entity.
        (CATALOG_READ, SOURCE_READ),
        body=result_schemas.NewPreview,
        refusals=(NotFoundError,),
        reading=_READ_CHECKS,
    ),
    *_list_definition_routes(
        _CHECKS_PATH,
        CHECK_ID,
        CHECK_WRITE,
        NewCheck,
        (
            get_checks,
            post_check,
            get_check,
            put_check,
            delete_check,
            publish_check,
            get_check_versions,
        ),
    ),
    *_list_definition_routes(
        _SCORECARDS_PATH,
        SCORECARD_ID,
        SCORECARD_WRITE,
        NewScorecard,
        (
            get_scorecards,
            post_scorecard,
            get_scorecard,
            put_scorecard,
            delete_scorecard,
            publish_scorecard,
            get_scorecard_versions,
        ),
    ),
    Route("GET", _STARTER, get_starter_scorecard, (SOURCE_READ,)),
    Route(
        "POST",
        _STARTER,
        adopt_starter_scorecard,
        # The starter depends on the existing data sources.
        (CHECK_WRITE, SCORECARD_WRITE, SOURCE_READ),
        refusals=(ConflictError,),
        reading=(SOURCE_READ,),
    ),
    Route(
        "GET",
        _EXEMPTIONS,
        get_exemptions,
        _READ_CHECKS,
        (
            EXEMPTION_STATE,
            ONE_ENTITY,
            EXEMPTION_CHECK,
            EXEMPTION_SCORECARD,
            PAGE_LIMIT,
            EXEMPTION_CURSOR,
        ),
    ),
    Route(
        "POST",
        _EXEMPTIONS,
        post_exemption,
        _READ_CHECKS,
        body=NewExemption,
        status=201,
        refusals=(ConflictError, NotFoundError),
        reading=_READ_CHECKS,
        judged=True,
    ),
    Route("GET", f"{_EXEMPTIONS}/{{id}}", get_exemption, _READ_CHECKS, (EXEMPTION_ID,)),
    *(
        Route(
            "POST",
            f"{_EXEMPTIONS}/{{id}}/{decision}",
            handler,
            _READ_CHECKS,
            (EXEMPTION_ID,),
            body=NewDecision,
            needs_body=False,
            refusals=(ConflictError,),
            reading=_READ_CHECKS,
            # Approver groups of scorecards decide without the permission.
            judged=True,
        )
        for decision, handler in (
            ("approve", approve_exemption),
            ("deny", deny_exemption),
            ("revoke", revoke_exemption),
        )
    ),
)

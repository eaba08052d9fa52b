"""Editor for checks and scorecards: write, preview, save a draft, publish.

Each form includes the tag of the version being edited, so it can't overwrite someone else's newer
draft.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple

from factbook.audit.trail import AuditEntry
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    SCORECARD_WRITE,
    SOURCE_READ,
)
from factbook.checks import trials
from factbook.checks.definitions import definition_writes, publications, scorecard
from factbook.checks.definitions.definition_versions import (
    StagedDefinition,
    StagedStore,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import OwnedStaged
from factbook.checks.definitions.scorecard import NO_LEVEL_TITLE, Scorecard
from factbook.checks.results import result_queries
from factbook.checks.results.result_queries import ResultAge
from factbook.checks.rules import check_trial, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.check_trial import CheckTrial
from factbook.checks.trials import TrialRoom
from factbook.datasources.custom import yaml_text
from factbook.errors import FactbookError, PreconditionFailedError, problem
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web import checks, formats, shares
from factbook.web.checks import get_definition_id
from factbook.web.formats import quote_segment
from factbook.web.pages import Handler, PageContext, PageRoute
from factbook.web.shares import Share

CHECK_SKELETON: Final = """\
id: has-owner          # it stays: results are kept under it
title: Owned by a team
description: Everyone needs to know which team to contact.
owner: group:default/platform
appliesTo: {kind: component}
rule:                  # all, any or not, and comparisons of facts
  all:
    - {source: entity, fact: spec.owner, operator: isKnown}
    - {source: entity, fact: spec.owner, operator: startsWith, value: "group:"}
messages: {fail: "No group owns {{ metadata.name }}."}
fix:
  instructions: Set spec.owner to a group in the catalog file.
tests:                 # tried with every preview
  - entity: {kind: Component, spec: {owner: "group:default/shop"}}
    expect: pass
  - entity: {kind: Component, spec: {owner: "user:default/mary"}}
    expect: fail
"""
SCORECARD_SKELETON: Final = """\
id: readiness          # it stays: levels are kept under it
title: Readiness
description: What has to be there before somebody is on call for it.
owner: group:default/platform
appliesTo: {kind: component}
levels: [bronze, silver, gold]   # the lowest first
entries:
  - {check: has-owner, level: bronze}
target: {level: bronze, by: "2027-06-30"}
"""


_MOST_CHANGED: Final = 20
# A rule can read any fact of any entity.
PREVIEW_NEEDS: Final = (CATALOG_READ, SOURCE_READ)


class ChangedEntity(NamedTuple):
    """An entity whose result or level would change, with both states in words."""

    ref: str
    before: str
    after: str


class DefinitionPreview(NamedTuple):
    """The changes a definition would make: counts as bars, changed entities, and test gaps.

    `figures` are (state, count now, count then); `tests` are the test results of a check.
    """

    words: str
    bars: Sequence[Share]
    figures: Sequence[tuple[str, int, int]]
    changed: int
    first: Sequence[ChangedEntity]
    tests: Sequence[CheckTrial]
    gaps: Sequence[tuple[str, str]]
    age: ResultAge
    is_check: bool


async def preview_check_draft(visit: PageContext, check: Check) -> DefinitionPreview:
    """Evaluate a check for every entity, and run its tests."""
    caller = visit.person.ref
    database = visit.state.database
    found = await trials.preview_check(database, check, visit.now, _MOST_CHANGED, caller)
    async with database.remembered.of(TrialRoom).enter(caller) as budget:
        tests = await budget.work(partial(check_trial.try_check, check, visit.now))
    first = [ChangedEntity(one.ref, *one.words) for one in found.first]
    most = sum(found.then)
    return DefinitionPreview(
        language.describe_rule(check.rule),
        [
            Share(word, count, most, None, kind)
            for (word, kind), count in zip(shares.STATE_KINDS.items(), found.then, strict=True)
        ],
        list(zip(shares.STATE_KINDS, found.now, found.then, strict=True)),
        found.changed,
        first,
        tests,
        list(check_trial.list_test_gaps(check)) if check.tests else [],
        found.age,
        is_check=True,
    )


async def preview_scorecard_draft(visit: PageContext, card: Scorecard) -> DefinitionPreview:
    """Grade every entity with a scorecard draft."""
    database, caller = visit.state.database, visit.person.ref
    found = await trials.preview_scorecard(database, card, visit.now, _MOST_CHANGED, caller)
    titles = {level.id: level.title for level in card.levels}
    first = [
        ChangedEntity(
            one.ref,
            _describe_preview_level(titles, one.before),
            _describe_preview_level(titles, one.after),
        )
        for one in found.first
    ]
    bars = [one._replace(path=None) for one in shares.make_level_shares(card, found.then)]
    age = await result_queries.read_age_of_checks(database, card.checks, visit.now)
    words = formats.count_noun(found.then.total, "entity", "entities")
    return DefinitionPreview(
        f"It applies to {words}.", bars, [], found.changed, first, [], [], age, is_check=False
    )


def _describe_preview_level(titles: dict[str, str], level: str | None) -> str:
    if level is None:
        return "not in it"
    return titles.get(level, level) or NO_LEVEL_TITLE


Document = dict[str, Any]


class EditedKind(NamedTuple):
    """A kind of definition: its paths, store, parser and preview."""

    noun: str
    path: str
    needs: str
    store: StagedStore[Any]
    skeleton: str
    read: Callable[[PageContext, Document, str | None], Awaitable[Any]]
    preview: Callable[[PageContext, Any], Awaitable[DefinitionPreview]]


@dataclass
class _DefinitionEditing:
    text: str
    seen: str
    problems: Sequence[dict[str, str]] = ()
    conflict: StagedDefinition | None = None
    preview: DefinitionPreview | None = None
    status: int = 200
    document: Document = field(default_factory=dict)


class DefinitionEditor:
    """The editor pages for one kind of definition."""

    def __init__(self, kind: EditedKind) -> None:
        self._kind = kind

    async def begin(self, visit: PageContext) -> Reply:
        """Show the editor with an example definition."""
        return self._page(visit, None, _DefinitionEditing(self._kind.skeleton, ""))

    async def edit(self, visit: PageContext) -> Reply:
        """Show the editor with the draft, or else the published version."""
        stored = await self._stored(visit)
        text = yaml_text.write_yaml(stored.written)
        return self._page(
            visit, stored, _DefinitionEditing(text, definition_writes.make_tag(stored))
        )

    async def create(self, visit: PageContext) -> Reply:
        """Preview, save or publish a new definition."""
        return await self._answer(visit, None)

    async def save(self, visit: PageContext) -> Reply:
        """Preview, save or publish an existing definition."""
        return await self._answer(visit, await self._stored(visit))

    async def _answer(self, visit: PageContext, stored: StagedDefinition | None) -> Reply:
        sent = visit.sent
        editing = _DefinitionEditing(sent.raw("text"), sent.one("seen"))
        try:
            editing.document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
            found = await self._kind.read(visit, editing.document, stored.id if stored else None)
            if sent.one("do") == "preview":
                visit.require(*PREVIEW_NEEDS)
                editing.preview = await self._kind.preview(visit, found)
                return self._page(visit, stored, editing)
            return await self._save(visit, stored, editing)
        except PreconditionFailedError as error:
            return await self._overtaken(visit, stored, editing, error)
        except FactbookError as error:
            if error.status >= 500:
                raise
            editing.problems, editing.status = error.problem_list, error.status
            return self._page(visit, stored, editing)

    async def _save(
        self, visit: PageContext, stored: StagedDefinition | None, editing: _DefinitionEditing
    ) -> Reply:
        kind, sent, now = self._kind, visit.sent, visit.now
        publish = sent.one("do") == "publish"
        work: Callable[[Transaction], StagedDefinition]
        if stored is None:
            work = _make_creation(visit, kind.store, editing.document, publish=publish)
        else:
            seen = sent.one("over") or editing.seen
            work = definition_writes.make_replacement(
                kind.store,
                editing.document,
                visit.person.ref,
                now,
                tags=[seen],
                publish=publish,
                permitted=not visit.own_only,
            )
        verb = "publish" if publish else "create" if stored is None else "replace"
        about = audit.make_definition_entry(f"{kind.noun}.{verb}", now)
        if visit.own_only:
            owned = OwnedStaged(
                kind.store, editing.document["id"], visit.person.ref, visit.state.trust
            )
            saved = await owned.guarding(visit.writing(owned.told(about)))(work)
        else:
            saved = await visit.writing(about)(work)
        path = f"{kind.path}/{quote_segment(saved.id)}"
        if publish:
            return visit.redirect(path, f"Version {saved.newest_version} is published.")
        if saved.draft is None:
            return visit.redirect(f"{path}/edit", "The draft is the same as the published version.")
        return visit.redirect(
            f"{path}/edit", "The draft is saved. It has no effect until it is published."
        )

    async def _overtaken(
        self,
        visit: PageContext,
        stored: StagedDefinition | None,
        editing: _DefinitionEditing,
        error: PreconditionFailedError,
    ) -> Reply:
        """Show the editor with the submitted text and the conflicting draft."""
        newer = await self._kind.store.one(visit.state.database, stored.id) if stored else None
        editing.status, editing.conflict = error.status, newer
        if newer is None:
            editing.problems = [problem("", "It has been deleted in the meantime.")]
        return self._page(visit, newer, editing)

    def _page(
        self, visit: PageContext, stored: StagedDefinition | None, editing: _DefinitionEditing
    ) -> Reply:
        kind = self._kind
        path = (
            f"{kind.path}/-/new"
            if stored is None
            else f"{kind.path}/{quote_segment(stored.id)}/edit"
        )
        return visit.page(
            "definition-edit.html",
            editing.status,
            noun=kind.noun,
            list_path=kind.path,
            editing=editing,
            stored=stored,
            path=path,
            newer=editing.conflict and definition_writes.make_tag(editing.conflict),
            may_preview=visit.may(*PREVIEW_NEEDS),
        )

    async def _stored(self, visit: PageContext) -> StagedDefinition:
        kind = self._kind
        id_ = checks.get_definition_id(visit, kind.noun)
        found: StagedDefinition = await kind.store.existing(visit.state.database, id_)
        return found

    def routes(self) -> Sequence[PageRoute]:
        """The routes of the editor."""
        new, edit = f"{self._kind.path}/-/new", f"{self._kind.path}/{{id}}/edit"
        rows: Sequence[tuple[str, str, Handler]] = (
            ("GET", new, self.begin),
            ("POST", new, self.create),
            ("GET", edit, self.edit),
            ("POST", edit, self.save),
        )
        needs = (CHECK_READ, self._kind.needs)
        return [PageRoute(*row, needs, owned=True) for row in rows]


def _make_creation(
    visit: PageContext, store: StagedStore[Any], document: Document, *, publish: bool
) -> Callable[[Transaction], StagedDefinition]:
    """Make the transaction that stores a definition; raises ConflictError if the id is taken."""
    actor, now, permitted = visit.person.ref, visit.now, not visit.own_only

    def work(transaction: Transaction) -> StagedDefinition:
        if publish:
            publications.lock_definitions(transaction)
        stored: StagedDefinition = store.create(transaction, document, actor, now)
        if publish:
            stored = store.publish(transaction, stored.id, actor, now, permitted=permitted)
        return stored

    return work


async def _read_check(visit: PageContext, document: Document, check_id: str | None) -> Any:
    state = visit.state
    depth = state.settings.max_json_depth

    def authorized(check: Check) -> None:
        visit.require(*definition_writes.list_needed_permissions(check))

    return await definition_writes.read_check_document(
        document, state.database, state.registry, depth, check_id, authorized
    )


async def _read_scorecard(visit: PageContext, document: Document, id_: str | None) -> Any:
    state = visit.state
    depth = state.settings.max_json_depth
    found = await definition_writes.read_scorecard_document(document, state.database, depth, id_)
    if found.applies_to is not None:
        # Same rule as the API: the results reveal how many entities match the filter.
        visit.require(CATALOG_READ)
    return found


_CHECKS: Final = EditedKind(
    "check",
    "/checks",
    CHECK_WRITE,
    check_store,
    CHECK_SKELETON,
    _read_check,
    preview_check_draft,
)
_SCORECARDS: Final = EditedKind(
    "scorecard",
    "/scorecards",
    SCORECARD_WRITE,
    scorecard_store,
    SCORECARD_SKELETON,
    _read_scorecard,
    preview_scorecard_draft,
)
DEFINITION_EDITORS: Sequence[PageRoute] = (
    *DefinitionEditor(_CHECKS).routes(),
    *DefinitionEditor(_SCORECARDS).routes(),
)


class PublishedTogether(NamedTuple):
    """A published scorecard, and the ids of the checks published with it."""

    stored: StoredScorecard
    checks: list[str]


async def publish_scorecard_with_checks(visit: PageContext) -> Reply:
    """Publish a scorecard draft together with its unpublished checks.

    The form includes the tag of every draft the person saw; PreconditionFailedError if any differ.
    """
    id_, seen = get_definition_id(visit, "scorecard"), visit.sent.one("seen")
    seen_drafts = set(visit.sent.all("draft"))
    actor, now = visit.person.ref, visit.now

    def work(transaction: Transaction) -> PublishedTogether:
        publications.lock_definitions(transaction)
        before = scorecard_store.existing_within(transaction, id_)
        definition_writes.check_tag(before, [seen])
        named = scorecard.list_named_checks(before.written)
        stored_checks = check_store.all_within(transaction)
        drafts = [one for one in stored_checks if one.id in named and one.is_draft]
        if {f"{one.id} {definition_writes.make_tag(one)}" for one in drafts} != seen_drafts:
            raise PreconditionFailedError("Its checks have changed since then; review them again.")
        ids = [one.id for one in drafts]
        for check_id in ids:
            check_store.publish(transaction, check_id, actor, now)
        # The route already requires the permission to write scorecards.
        stored = scorecard_store.publish(transaction, id_, actor, now, permitted=True)
        return PublishedTogether(stored, ids)

    def about(done: PublishedTogether) -> AuditEntry:
        detail = {"version": done.stored.newest_version, "checks": done.checks}
        return AuditEntry("scorecard.publish", id_, detail)

    await visit.writing(about)(work)
    return visit.redirect(
        shares.make_scorecard_path(id_),
        "The scorecard is published. Levels appear as its entities are evaluated.",
    )


PUBLISHING: Sequence[PageRoute] = (
    PageRoute(
        "POST",
        "/scorecards/{id}/publish",
        publish_scorecard_with_checks,
        (CHECK_READ, CHECK_WRITE, SCORECARD_WRITE),
    ),
)

"""Editor of checks and scorecards: write, preview, save a draft, publish.

A form carries the tag of what it was made of, and does not overwrite a newer draft of somebody
else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, CHECK_WRITE, SCORECARD_WRITE
from factbook.checks.definitions import definition_writes, publications
from factbook.checks.definitions.definition_versions import (
    StagedDefinition,
    StagedStore,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import OwnedStaged
from factbook.checks.rules.check_definition import Check
from factbook.datasources.custom import yaml_text
from factbook.errors import FactbookError, PreconditionFailedError, problem
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.storage import Transaction
from factbook.web.checks import check_page, previews, skeletons
from factbook.web.checks.previews import DefinitionPreview
from factbook.web.site.endpoint import Handler, PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

Document = dict[str, Any]


class EditedKind(NamedTuple):
    """A kind of definition: where its pages and its store are, and how it is read and previewed."""

    noun: str
    path: str
    needs: str
    store: StagedStore[Any]
    skeleton: str
    read: Callable[[PageContext, Document, str | None], Awaitable[Any]]
    preview: Callable[[PageContext, Any], Awaitable[DefinitionPreview]]


@dataclass
class _DefinitionEditing:
    """State of the editor: the text, and the result of the last action."""

    text: str
    seen: str
    problems: Sequence[dict[str, str]] = ()
    conflict: StagedDefinition | None = None
    preview: DefinitionPreview | None = None
    status: int = 200
    document: Document = field(default_factory=dict)


class DefinitionEditor:
    """The pages in which definitions of one kind are written."""

    def __init__(self, kind: EditedKind) -> None:
        self._kind = kind

    async def begin(self, visit: PageContext) -> Reply:
        """Editor of a new definition, with an example."""
        return self._page(visit, None, _DefinitionEditing(self._kind.skeleton, ""))

    async def edit(self, visit: PageContext) -> Reply:
        """Editor of a definition, with its draft or what is published."""
        stored = await self._stored(visit)
        text = yaml_text.write_yaml(stored.written)
        return self._page(
            visit, stored, _DefinitionEditing(text, definition_writes.make_tag(stored))
        )

    async def create(self, visit: PageContext) -> Reply:
        """Preview, save or publish a new definition."""
        return await self._answer(visit, None)

    async def save(self, visit: PageContext) -> Reply:
        """Preview, save or publish a definition."""
        return await self._answer(visit, await self._stored(visit))

    async def _answer(self, visit: PageContext, stored: StagedDefinition | None) -> Reply:
        sent = visit.sent
        editing = _DefinitionEditing(sent.raw("text"), sent.one("seen"))
        try:
            editing.document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
            found = await self._kind.read(visit, editing.document, stored.id if stored else None)
            if sent.one("do") == "preview":
                visit.require(*previews.NEEDS)
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
            work = _creation(visit, kind.store, editing.document, publish=publish)
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
        about = audit.definition_entry(f"{kind.noun}.{verb}", now)
        if visit.own_only:
            owned = OwnedStaged(
                kind.store, editing.document["id"], visit.person.ref, visit.state.trust
            )
            saved = await owned.guarding(visit.writing(owned.told(about)))(work)
        else:
            saved = await visit.writing(about)(work)
        path = f"{kind.path}/{segment(saved.id)}"
        if publish:
            return visit.redirect(path, f"Version {saved.newest_version} is published.")
        if saved.draft is None:
            return visit.redirect(f"{path}/edit", "Nothing differs from what is published.")
        return visit.redirect(
            f"{path}/edit", "The draft is saved. It counts nothing until it is published."
        )

    async def _overtaken(
        self,
        visit: PageContext,
        stored: StagedDefinition | None,
        editing: _DefinitionEditing,
        error: PreconditionFailedError,
    ) -> Reply:
        """The editor with the text as sent, and the draft that it would have overwritten."""
        newer = await self._kind.store.one(visit.state.database, stored.id) if stored else None
        editing.status, editing.conflict = error.status, newer
        if newer is None:
            editing.problems = [problem("", "It has been deleted in the meantime.")]
        return self._page(visit, newer, editing)

    def _page(
        self, visit: PageContext, stored: StagedDefinition | None, editing: _DefinitionEditing
    ) -> Reply:
        kind = self._kind
        path = f"{kind.path}/-/new" if stored is None else f"{kind.path}/{segment(stored.id)}/edit"
        return visit.page(
            "definition-edit.html",
            editing.status,
            noun=kind.noun,
            list_path=kind.path,
            editing=editing,
            stored=stored,
            path=path,
            newer=editing.conflict and definition_writes.make_tag(editing.conflict),
            may_preview=visit.may(*previews.NEEDS),
        )

    async def _stored(self, visit: PageContext) -> StagedDefinition:
        kind = self._kind
        id_ = check_page.definition_id(visit, kind.noun)
        found: StagedDefinition = await kind.store.existing(visit.state.database, id_)
        return found

    def routes(self) -> Sequence[PageRoute]:
        """The rows of the table of pages."""
        new, edit = f"{self._kind.path}/-/new", f"{self._kind.path}/{{id}}/edit"
        rows: Sequence[tuple[str, str, Handler]] = (
            ("GET", new, self.begin),
            ("POST", new, self.create),
            ("GET", edit, self.edit),
            ("POST", edit, self.save),
        )
        needs = (CHECK_READ, self._kind.needs)
        return [PageRoute(*row, needs, owned=True) for row in rows]


def _creation(
    visit: PageContext, store: StagedStore[Any], document: Document, *, publish: bool
) -> Callable[[Transaction], StagedDefinition]:
    """The work that stores a new definition; it raises ConflictError if its id is taken."""
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
        # As over HTTP: its figures count the entities that its filter lets through.
        visit.require(CATALOG_READ)
    return found


_CHECKS: Final = EditedKind(
    "check",
    "/checks",
    CHECK_WRITE,
    check_store,
    skeletons.CHECK,
    _read_check,
    previews.of_check,
)
_SCORECARDS: Final = EditedKind(
    "scorecard",
    "/scorecards",
    SCORECARD_WRITE,
    scorecard_store,
    skeletons.SCORECARD,
    _read_scorecard,
    previews.of_scorecard,
)
DEFINITION_EDITORS: Sequence[PageRoute] = (
    *DefinitionEditor(_CHECKS).routes(),
    *DefinitionEditor(_SCORECARDS).routes(),
)

"""Editor for custom data sources: create, save a draft, try it, publish it.

Each form includes the edition of its draft, so it can't overwrite someone else's newer draft.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_WRITE
from factbook.datasources import define, trial
from factbook.datasources.custom import definition, yaml_text
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.stores import StoredSource, source_store
from factbook.datasources.trial import TrialResponse
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    InvalidItemsError,
    NotAllowedError,
    problem,
)
from factbook.facts import schema, store
from factbook.facts.freshness import find_reason
from factbook.facts.schema import Fact
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.storage import Transaction, Write
from factbook.web import data_sources
from factbook.web.data_sources import make_source_path
from factbook.web.pages import PageContext, PageRoute

T = TypeVar("T")


class OvertakenError(ConflictError):
    """Someone else has changed the draft in the meantime."""

    def __init__(self, newer: StoredSource | None) -> None:
        self.newer = newer
        super().__init__(
            "The data source has been deleted in the meantime." if newer is None else None
        )


def refuse_overtaken(write: Write, source_id: str, seen: str) -> Write:
    """Wrap `write` to raise OvertakenError if the draft changed since edition `seen`."""

    def guarded(function: Callable[[Transaction], T]) -> Any:
        def work(transaction: Transaction) -> T:
            there = source_store.read(transaction, source_id)
            if there is None or get_edition(there) != seen:
                raise OvertakenError(there)
            return function(transaction)

        return write(work)

    return guarded


def get_edition(stored: StoredSource) -> str:
    """The edition of a draft: the time of its last update."""
    return str(stored.updated_at)


class FactTrial(NamedTuple):
    """Trial result of one fact: a JSON value, or the reason it is missing and its meaning."""

    fact: Fact
    value: str | None
    reason: str
    meaning: str


class DefinitionTrial(NamedTuple):
    """Result of a trial; `whole` is the reason if every fact is missing."""

    ref: str
    request: Any
    answer: TrialResponse | None
    brought: list[FactTrial]
    whole: str

    @property
    def meaning(self) -> str:
        """Meaning of the reason why every fact is missing."""
        return schema.REASONS[schema.reason_word(self.whole)]

    @property
    def found(self) -> int:
        """Number of facts with a value."""
        return sum(one.value is not None for one in self.brought)


async def run_trial(
    visit: PageContext, definition: CustomSourceDefinition, entity: str
) -> DefinitionTrial:
    """Collect the facts of one entity without storing them.

    Raises InputError for an invalid reference or a connection that doesn't allow the request,
    NotFoundError for an unknown entity.
    """
    if not entity:
        raise InputError("Name an entity to try it on.")
    state = visit.state
    ref, tried = await trial.try_definition(
        state.database, state.registry, state.connect, definition, entity
    )
    facts, reasons = tried.facts, tried.reasons
    fact_trials = list[FactTrial]()
    for fact in definition.source.schema:
        if fact.name in facts:
            value = msgspec.json.encode(facts[fact.name]).decode()
            fact_trials.append(FactTrial(fact, value, "", ""))
        else:
            reason = find_reason(fact.name, reasons) or reasons.get("") or schema.NEVER_COLLECTED
            explanation = schema.REASONS[schema.reason_word(reason)]
            fact_trials.append(FactTrial(fact, None, reason, explanation))
    return DefinitionTrial(ref, tried.request, tried.answer, fact_trials, reasons.get("", ""))


_NEW_SOURCE_PATH: Final = "/data-sources/new"
_EDITED_PATH: Final = "/data-sources/{id}"
_SUGGESTIONS: Final = 8


@dataclass
class _Editing:
    text: str
    seen: str
    definition: CustomSourceDefinition | None = None
    entity: str = ""
    problems: Sequence[dict[str, str]] = ()
    lost: Sequence[dict[str, str]] = ()
    conflict: StoredSource | None = None
    trial: DefinitionTrial | None = None
    trial_problem: str = ""
    status: int = 200


async def begin_source(visit: PageContext) -> Reply:
    """Choose the type of a new source; with a type and id, show a starter definition."""
    type_, source_id = visit.query("type"), visit.query("id")
    if not source_id:
        return _show_types(visit, type_)
    if type_ not in data_sources.list_source_types(visit):
        return _show_types(visit, type_, source_id, "Choose where the facts come from.")
    try:
        owner = (
            min(await data_sources.list_person_groups(visit), default=None)
            if visit.own_only
            else None
        )
        text = definition.write_starter(source_id, type_, owner)  # type: ignore[arg-type]  # valid
        define.check_custom_id(source_id, visit.state.registry)
        _check_source_address(source_id)
    except FactbookError as error:
        return _show_types(visit, type_, source_id, error.message)
    if await source_store.one(visit.state.database, source_id) is not None:
        return _show_types(visit, type_, source_id, _describe_taken(source_id))
    return await _show_editor(visit, None, await _check_quietly(visit, _Editing(text, "")))


async def create_from_form(visit: PageContext) -> Reply:
    """Save, publish or try a new source."""
    return await _answer_form(visit, None)


async def edit_source(visit: PageContext) -> Reply:
    """Show the editor with the draft, or else the published definition."""
    stored = await _find_edited_source(visit)
    editing = _Editing(yaml_text.write_yaml(stored.written), get_edition(stored))
    return await _show_editor(visit, stored, await _check_quietly(visit, editing))


async def save_source(visit: PageContext) -> Reply:
    """Save, publish or try the draft of an existing source."""
    return await _answer_form(visit, await _find_edited_source(visit))


async def publish_draft(visit: PageContext) -> Reply:
    """Publish the stored draft; `force` in the form accepts the loss of facts."""
    stored, sent = await _find_edited_source(visit), visit.sent
    editing = _Editing(yaml_text.write_yaml(stored.written), sent.one("seen"))
    return await _publish_stored(visit, stored, editing, force=sent.one("force") == "yes")


async def _answer_form(visit: PageContext, stored: StoredSource | None) -> Reply:
    sent = visit.sent
    editing = _Editing(sent.raw("text"), sent.one("seen"), entity=sent.one("entity"))
    try:
        document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
        editing.definition = await _check_document(visit, document, stored)
        if stored is None:
            _check_source_address(document["id"])
    except FactbookError as error:
        editing.problems = error.problem_list
        editing.status = error.status
        return await _show_editor(visit, stored, editing)
    if sent.one("do") == "try":
        return await _try_on_entity(visit, stored, editing)
    return await _save_source(visit, stored, editing, document)


async def _save_source(
    visit: PageContext, stored: StoredSource | None, editing: _Editing, document: dict[str, Any]
) -> Reply:
    sent, state = visit.sent, visit.state
    action = "data-source.create" if stored is None else "data-source.replace"
    now = visit.now
    write = data_sources.guard_recorded_write(
        visit, document["id"], audit.make_source_entry(action, now)
    )
    put = define.create_source
    if stored is not None:
        put = define.replace_source
        write = refuse_overtaken(write, stored.id, sent.one("over") or editing.seen)
    try:
        saved = await put(state.registry, document, actor=visit.person.ref, now=now, write=write)
    except OvertakenError as error:
        return await _show_overtaken(visit, stored, editing, error)
    except ConflictError as error:
        taken = await source_store.one(state.database, document["id"]) is not None
        message = _describe_taken(document["id"]) if taken else error.message
        editing.problems, editing.status = [problem("id", message)], error.status
        return await _show_editor(visit, stored, editing)
    except (NotAllowedError, InvalidItemsError) as error:
        editing.problems, editing.status = error.problem_list, error.status
        return await _show_editor(visit, stored, editing)
    if sent.one("do") == "publish":
        editing.seen = get_edition(saved)
        return await _publish_stored(visit, saved, editing, force=False)
    notice = "The draft is saved. It is collected only on demand until it is published."
    if saved.draft is None:
        notice = "The draft is the same as the published version."
    return visit.redirect(f"{make_source_path(saved.id)}/edit", notice)


async def _publish_stored(
    visit: PageContext, stored: StoredSource, editing: _Editing, *, force: bool
) -> Reply:
    state, now = visit.state, visit.now
    write = data_sources.guard_recorded_write(
        visit, stored.id, audit.make_source_entry("data-source.publish", now)
    )
    try:
        found = await define.publish_source(
            state.database,
            state.registry,
            stored.id,
            actor=visit.person.ref,
            now=now,
            force=force,
            write=refuse_overtaken(write, stored.id, editing.seen),
        )
    except OvertakenError as error:
        return await _show_overtaken(visit, stored, editing, error)
    except InvalidItemsError as error:
        editing.problems, editing.status = error.problem_list, error.status
        return await _show_editor(visit, stored, editing)
    except ConflictError as error:
        if "problems" not in error.details:
            raise
        editing.lost, editing.status = error.details["problems"], error.status
        return await _show_editor(visit, stored, editing)
    notice = f"Version {found.version} is published."
    return visit.redirect(make_source_path(stored.id), notice)


async def _show_overtaken(
    visit: PageContext, stored: StoredSource | None, editing: _Editing, error: OvertakenError
) -> Reply:
    """Show the editor with the submitted text and the conflicting draft."""
    editing.status, editing.conflict = error.status, error.newer
    if error.newer is None:
        editing.problems = error.problem_list
    return await _show_editor(visit, error.newer or stored, editing)


async def _try_on_entity(
    visit: PageContext, stored: StoredSource | None, editing: _Editing
) -> Reply:
    visit.require(CATALOG_READ)
    definition = editing.definition
    assert definition is not None
    try:
        if visit.own_only:
            source, actor = definition.source, visit.person.ref
            await define.check_trial_allowed(
                visit.state.database, source.id, source.owner, actor, visit.state.trust
            )
        editing.trial = await run_trial(visit, definition, editing.entity)
    except FactbookError as error:
        if error.status >= 500:
            raise
        editing.trial_problem, editing.status = error.message, error.status
    return await _show_editor(visit, stored, editing)


async def _show_editor(visit: PageContext, stored: StoredSource | None, editing: _Editing) -> Reply:
    state, definition = visit.state, editing.definition
    suggestions = []
    if definition is not None and visit.may(CATALOG_READ):
        suggestions = await store.list_matching(state.database, definition.source, _SUGGESTIONS)
    is_asking = definition is not None and definition.type == "http"
    return visit.page(
        "data-source-edit.html",
        editing.status,
        editing=editing,
        stored=stored,
        path=_NEW_SOURCE_PATH if stored is None else f"{make_source_path(stored.id)}/edit",
        suggestions=suggestions,
        connections=await data_sources.list_usable_connections(visit) if is_asking else [],
        may_connect=visit.may(SOURCE_WRITE),
        newer=editing.conflict and get_edition(editing.conflict),
        may_try=visit.may(CATALOG_READ),
    )


def _show_types(visit: PageContext, type_: str, source_id: str = "", problem: str = "") -> Reply:
    return visit.page(
        "data-source-new.html",
        400 if problem else 200,
        types=(types := data_sources.list_source_types(visit)),
        type=type_ if type_ in types else "entity",
        id=source_id,
        problem=problem,
    )


async def _find_edited_source(visit: PageContext) -> StoredSource:
    """Find the custom source in the URL; NotFoundError, or ConflictError if built-in.

    For people limited to their own sources, raises NotAllowedError for other sources, whose
    definitions stay hidden.
    """
    source_id = visit.request.parameter("id")
    define.check_custom_id(source_id, visit.state.registry)
    stored = await source_store.existing(visit.state.database, source_id)
    if visit.own_only:
        await define.check_own_source(
            visit.state.database, stored, visit.person.ref, visit.state.trust
        )
    return stored


async def _check_document(
    visit: PageContext, document: dict[str, Any], stored: StoredSource | None
) -> CustomSourceDefinition:
    depth, source_id = visit.state.settings.max_json_depth, stored.id if stored else None
    return await define.read_source(document, visit.state.registry, depth, source_id)


async def _check_quietly(visit: PageContext, editing: _Editing) -> _Editing:
    """Parse the text if it is valid; problems appear only after a submit."""
    try:
        document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
        editing.definition = await _check_document(visit, document, None)
    except InputError:
        pass
    return editing


def _check_source_address(source_id: str) -> None:
    """Raise ConflictError if the source page would have the URL of this form."""
    if make_source_path(source_id) == _NEW_SOURCE_PATH:
        raise ConflictError(
            f"The page of {source_id} would have the address of this form; choose another id."
        )


def _describe_taken(source_id: str) -> str:
    return f"There is already a data source {source_id}; choose another id."


SOURCE_EDITOR: Sequence[PageRoute] = tuple(
    PageRoute(method, path, handler, (SOURCE_WRITE,), owned=True)
    for method, path, handler in (
        ("GET", _NEW_SOURCE_PATH, begin_source),
        ("POST", _NEW_SOURCE_PATH, create_from_form),
        ("GET", f"{_EDITED_PATH}/edit", edit_source),
        ("POST", f"{_EDITED_PATH}/edit", save_source),
        ("POST", f"{_EDITED_PATH}/publish", publish_draft),
    )
)

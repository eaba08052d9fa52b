"""Editor of custom data sources: create, save a draft, try it, publish it.

A form carries the edition of its draft, and does not overwrite a newer one of somebody else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from factbook.auth.permissions import CATALOG_READ, SOURCE_WRITE
from factbook.datasources import define
from factbook.datasources.custom import definition, yaml_text
from factbook.datasources.custom.definition import CustomSourceDefinition
from factbook.datasources.stores import StoredSource, source_store
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    InvalidItemsError,
    NotAllowedError,
    problem,
)
from factbook.facts import store
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.web.data_sources import ownership
from factbook.web.data_sources.detail import path_of
from factbook.web.data_sources.drafts import OvertakenError, edition, unless_overtaken
from factbook.web.data_sources.trial import DefinitionTrial, tried
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

_NEW: Final = "/data-sources/new"
_PATH: Final = "/data-sources/{id}"
_SUGGESTIONS: Final = 8


@dataclass
class _Editing:
    """State of the editor beside the source: the text, and the result of the last action."""

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


async def begin(visit: PageContext) -> Reply:
    """Form to choose the type of a new source; with a type and an id, its initial definition."""
    type_, source_id = visit.query("type"), visit.query("id")
    if not source_id:
        return _kinds(visit, type_)
    if type_ not in ownership.types(visit):
        return _kinds(visit, type_, source_id, "Choose where the facts come from.")
    try:
        owner = min(await ownership.groups(visit), default=None) if visit.own_only else None
        text = definition.write_starter(source_id, type_, owner)  # type: ignore[arg-type]  # it is one
        define.check_custom_id(source_id, visit.state.registry)
        _check_address(source_id)
    except FactbookError as error:
        return _kinds(visit, type_, source_id, error.message)
    if await source_store.one(visit.state.database, source_id) is not None:
        return _kinds(visit, type_, source_id, _taken(source_id))
    return await _editor(visit, None, await _read_quietly(visit, _Editing(text, "")))


async def create(visit: PageContext) -> Reply:
    """Save a new source, publish it, or try it."""
    return await _answer(visit, None)


async def edit(visit: PageContext) -> Reply:
    """Editor of a source, with its draft or the published definition."""
    stored = await _stored(visit)
    editing = _Editing(yaml_text.write_yaml(stored.written), edition(stored))
    return await _editor(visit, stored, await _read_quietly(visit, editing))


async def save(visit: PageContext) -> Reply:
    """Save the draft of a source, publish it, or try it."""
    return await _answer(visit, await _stored(visit))


async def publish(visit: PageContext) -> Reply:
    """Publish the stored draft; with the form's consent even if facts are lost."""
    stored, sent = await _stored(visit), visit.sent
    editing = _Editing(yaml_text.write_yaml(stored.written), sent.one("seen"))
    return await _publish(visit, stored, editing, force=sent.one("force") == "yes")


async def _answer(visit: PageContext, stored: StoredSource | None) -> Reply:
    sent = visit.sent
    editing = _Editing(sent.raw("text"), sent.one("seen"), entity=sent.one("entity"))
    try:
        document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
        editing.definition = await _read(visit, document, stored)
        if stored is None:
            _check_address(document["id"])
    except FactbookError as error:
        editing.problems = error.problem_list
        editing.status = error.status
        return await _editor(visit, stored, editing)
    if sent.one("do") == "try":
        return await _try(visit, stored, editing)
    return await _save(visit, stored, editing, document)


async def _save(
    visit: PageContext, stored: StoredSource | None, editing: _Editing, document: dict[str, Any]
) -> Reply:
    sent, state = visit.sent, visit.state
    action = "data-source.create" if stored is None else "data-source.replace"
    now = visit.now
    write = ownership.writing(visit, document["id"], audit.source_entry(action, now))
    put = define.create_source
    if stored is not None:
        put = define.replace_source
        write = unless_overtaken(write, stored.id, sent.one("over") or editing.seen)
    try:
        saved = await put(state.registry, document, actor=visit.person.ref, now=now, write=write)
    except OvertakenError as error:
        return await _overtaken(visit, stored, editing, error)
    except ConflictError as error:
        taken = await source_store.one(state.database, document["id"]) is not None
        message = _taken(document["id"]) if taken else error.message
        editing.problems, editing.status = [problem("id", message)], error.status
        return await _editor(visit, stored, editing)
    except (NotAllowedError, InvalidItemsError) as error:
        editing.problems, editing.status = error.problem_list, error.status
        return await _editor(visit, stored, editing)
    if sent.one("do") == "publish":
        editing.seen = edition(saved)
        return await _publish(visit, saved, editing, force=False)
    return visit.redirect(f"{path_of(saved.id)}/edit", _saved(saved))


async def _publish(
    visit: PageContext, stored: StoredSource, editing: _Editing, *, force: bool
) -> Reply:
    state, now = visit.state, visit.now
    write = ownership.writing(visit, stored.id, audit.source_entry("data-source.publish", now))
    try:
        found = await define.publish_source(
            state.database,
            state.registry,
            stored.id,
            actor=visit.person.ref,
            now=now,
            force=force,
            write=unless_overtaken(write, stored.id, editing.seen),
        )
    except OvertakenError as error:
        return await _overtaken(visit, stored, editing, error)
    except InvalidItemsError as error:
        editing.problems, editing.status = error.problem_list, error.status
        return await _editor(visit, stored, editing)
    except ConflictError as error:
        if "problems" not in error.details:
            raise
        editing.lost, editing.status = error.details["problems"], error.status
        return await _editor(visit, stored, editing)
    notice = f"Version {found.version} is published."
    return visit.redirect(path_of(stored.id), notice)


async def _overtaken(
    visit: PageContext, stored: StoredSource | None, editing: _Editing, error: OvertakenError
) -> Reply:
    """The editor with the text as sent, and the draft that it would have overwritten."""
    editing.status, editing.conflict = error.status, error.newer
    if error.newer is None:
        editing.problems = error.problem_list
    return await _editor(visit, error.newer or stored, editing)


async def _try(visit: PageContext, stored: StoredSource | None, editing: _Editing) -> Reply:
    visit.require(CATALOG_READ)
    definition = editing.definition
    assert definition is not None
    try:
        if visit.own_only:
            source, actor = definition.source, visit.person.ref
            await define.check_trial_allowed(
                visit.state.database, source.id, source.owner, actor, visit.state.trust
            )
        editing.trial = await tried(visit, definition, editing.entity)
    except FactbookError as error:
        if error.status >= 500:
            raise
        editing.trial_problem, editing.status = error.message, error.status
    return await _editor(visit, stored, editing)


async def _editor(visit: PageContext, stored: StoredSource | None, editing: _Editing) -> Reply:
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
        path=_NEW if stored is None else f"{path_of(stored.id)}/edit",
        suggestions=suggestions,
        connections=await ownership.usable(visit) if is_asking else [],
        may_connect=visit.may(SOURCE_WRITE),
        newer=editing.conflict and edition(editing.conflict),
        may_try=visit.may(CATALOG_READ),
    )


def _kinds(visit: PageContext, type_: str, source_id: str = "", problem: str = "") -> Reply:
    return visit.page(
        "data-source-new.html",
        400 if problem else 200,
        types=(types := ownership.types(visit)),
        type=type_ if type_ in types else "entity",
        id=source_id,
        problem=problem,
    )


async def _stored(visit: PageContext) -> StoredSource:
    """Custom source in the address; raises NotFoundError, ConflictError for a builtin one.

    For owners it raises NotAllowedError for one of others, whose definition is not shown either.
    """
    source_id = visit.request.parameter("id")
    define.check_custom_id(source_id, visit.state.registry)
    stored = await source_store.existing(visit.state.database, source_id)
    if visit.own_only:
        await define.check_own_source(
            visit.state.database, stored, visit.person.ref, visit.state.trust
        )
    return stored


async def _read(
    visit: PageContext, document: dict[str, Any], stored: StoredSource | None
) -> CustomSourceDefinition:
    depth, source_id = visit.state.settings.max_json_depth, stored.id if stored else None
    return await define.read_source(document, visit.state.registry, depth, source_id)


async def _read_quietly(visit: PageContext, editing: _Editing) -> _Editing:
    """Parse the text as far as it is valid; problems are not reported before a submit."""
    try:
        document = await asyncio.to_thread(yaml_text.read_yaml, editing.text)
        editing.definition = await _read(visit, document, None)
    except InputError:
        pass
    return editing


def _check_address(source_id: str) -> None:
    """Raise ConflictError for an id whose page would have this page's address."""
    if path_of(source_id) == _NEW:
        raise ConflictError(f"The page of {source_id} would be this one; choose another id.")


def _saved(stored: StoredSource) -> str:
    if stored.draft is None:
        return "Nothing differs from what is published."
    return "The draft is saved. It is collected only on demand until it is published."


def _taken(source_id: str) -> str:
    return f"There is already a data source {source_id}; choose another id."


SOURCE_EDITOR: Sequence[PageRoute] = tuple(
    PageRoute(method, path, handler, (SOURCE_WRITE,), owned=True)
    for method, path, handler in (
        ("GET", _NEW, begin),
        ("POST", _NEW, create),
        ("GET", f"{_PATH}/edit", edit),
        ("POST", f"{_PATH}/edit", save),
        ("POST", f"{_PATH}/publish", publish),
    )
)

"""Sets: their items, their revisions with the changes of each push, and commands to push one."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from factbook.auth.permissions import CATALOG_READ, SET_WRITE, SOURCE_READ
from factbook.catalog.store import revisions as set_history
from factbook.catalog.store import stored_entities, stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.revisions import CHANGE_KINDS, ChangeFilter
from factbook.catalog.store.stored_entities import EntityRevision
from factbook.catalog.store.stored_sets import Actor, OwnedSet, StoredSet
from factbook.errors import ConflictError, InputError, NotFoundError, PreconditionFailedError
from factbook.http import audit
from factbook.http.requests import Reply, run_offloaded
from factbook.storage import Database
from factbook.web.entity import page
from factbook.web.entity.page import EntityView
from factbook.web.site import formats
from factbook.web.site.diff import LineDiff, difference
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import commands, quoted, segment
from factbook.web.site.page_context import PageContext

_ITEMS = 100
_CHANGES = 50
_EMPTIED = 20
_LONGEST_NUMBER = 9


async def listed(visit: PageContext) -> Reply:
    """Page of every set, and emptied ones that can be restored."""
    found = await stored_sets.list_sets(visit.state.database)
    emptied = await stored_sets.list_emptied_sets(visit.state.database, _EMPTIED)
    actors_of = [each.updated_by for each in found] + [each.updated_by for each in emptied]
    return visit.page(
        "sets.html",
        sets=found,
        entities=sum(each.item_count for each in found),
        emptied=emptied,
        known=await visit.known(actors_of),
        example=_push_lines(visit, "services"),
    )


async def items(visit: PageContext) -> Reply:
    """Page of a set's items, in the order of its last push."""
    found, after = await _set(visit), _number(visit.query("after", "-1"), least=-1)
    page = None
    if found.item_count:
        page = await stored_sets.page_content(visit.state.database, found.id, _ITEMS, after)
    shown = page.items if page else []
    more = None if page is None or page.more is None else f"{_path(found.id)}?after={page.more}"
    return visit.page(
        "set-items.html",
        set=found,
        path=_path(found.id),
        items=shown,
        known=await visit.known([found.updated_by, *(each.updated_by for each in shown)]),
        first=f"{_path(found.id)}" if after >= 0 else None,
        more=more,
    )


async def revisions(visit: PageContext) -> Reply:
    """Page of a set's pushes, newest first."""
    found = await _set(visit)
    listed = await stored_sets.list_set_revisions(visit.state.database, found.id)
    made_by = (each.created_by for each in listed)
    return visit.page(
        "set-revisions.html",
        set=found,
        path=_path(found.id),
        revisions=listed,
        known=await visit.known((found.updated_by, *made_by)),
    )


async def revision(visit: PageContext, status: int = 200, problem: str | None = None) -> Reply:
    """Page with the difference of one revision."""
    found, number = await _set(visit), _revision_number(visit)
    wanted, after = _wanted_changes(visit), visit.query("after")
    page = await set_history.page_changes(
        visit.state.database, found.id, number, after, _CHANGES, wanted
    )
    path = f"{_path(found.id)}/revisions/{number}"
    asked = {name: text for name, text in (("change", wanted.kind), ("q", wanted.text)) if text}
    differences = await run_offloaded(
        lambda: [(each, difference(each.before, each.after)) for each in page.items]
    )
    return visit.page(
        "set-revision.html",
        status,
        set=found,
        path=_path(found.id),
        revision=page.revision,
        items=differences,
        known=await visit.known(
            (found.updated_by, page.revision.created_by, *(each.ref for each in page.items)),
        ),
        kinds=[("", "Any"), *((kind, kind.capitalize()) for kind in CHANGE_KINDS)],
        wanted=wanted,
        first=_address(path, asked) if after else None,
        more=_address(path, {**asked, "after": page.more}) if page.more else None,
        problem=problem,
        can_restore=number != found.revision and await _may_restore(visit, found.id),
    )


async def restore(visit: PageContext) -> Reply:
    """Restore the content of a revision as a new revision."""
    found, number = await _set(visit), _revision_number(visit)
    seen = _number(visit.sent.one("seen"), least=0)
    state, takes = visit.state, visit.sent.one("take") == "yes"
    owned = None
    if visit.own_only:
        owned = OwnedSet(found.id, visit.person.ref, state.trust, takes=takes)
    try:
        _, outcome = await stored_sets.restore_revision(
            state.database,
            found.id,
            number,
            Actor(visit.person.ref, visit.now),
            # What was pushed since the page was shown is not undone unseen.
            Guards(if_match=f'"{seen}"', take=takes, owned=owned),
            state.rules,
            kept=state.settings.revisions_kept,
            write=visit.writing(audit.make_restored_entry(found.id, number)),
        )
    except (ConflictError, PreconditionFailedError) as error:
        return await revision(visit, error.status, problem=error.message)
    assert outcome.written is not None
    state.metrics.pushed(outcome.plan.changes)
    notice = f"The set is what it was at revision {number}: {_counted(outcome.plan.changes)}."
    return visit.redirect(f"{_path(found.id)}/revisions", notice)


async def _may_restore(visit: PageContext, name: str) -> bool:
    if not visit.may_own(SET_WRITE):
        return visit.may(SET_WRITE)
    return await stored_sets.is_owned_set(
        visit.state.database, name, visit.person.ref, visit.state.trust
    )


async def push(visit: PageContext) -> Reply:
    """Page with shell commands to push this set."""
    found = await _set(visit)
    return visit.page(
        "set-push.html",
        set=found,
        path=_path(found.id),
        known=await visit.known([found.updated_by]),
        lines=_push_lines(visit, found.id),
    )


def _wanted_changes(visit: PageContext) -> ChangeFilter:
    asked = visit.query("change")
    kind = next((kind for kind in CHANGE_KINDS if kind == asked), None)
    return ChangeFilter(kind, visit.query("q").lower())


def _address(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _counted(changes: dict[str, int]) -> str:
    return ", ".join(f"{changes[kind]:,} {kind}" for kind in ("added", "updated", "removed"))


async def _set(visit: PageContext) -> StoredSet:
    return await stored_sets.read_set(visit.state.database, visit.request.parameter("set_id"))


def _revision_number(visit: PageContext) -> int:
    text = visit.request.parameter("number")
    if not text.isdecimal() or not text.isascii() or len(text) > _LONGEST_NUMBER:
        raise NotFoundError("There is no such revision.")
    return int(text)


def _number(text: str, *, least: int) -> int:
    digits = text.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > _LONGEST_NUMBER:
        raise InputError("The address of this page is incomplete.")
    return max(least, int(text))


def _path(name: str) -> str:
    return f"/sets/{formats.segment(name)}"


def _push_lines(visit: PageContext, name: str) -> dict[str, str]:
    """Commands that push a set, by program."""
    server, word = visit.server, visit.state.settings.push_word
    option = "" if word == "factbook" else f" --push-word {word}"
    shown = quoted(name)
    url = f"{server}/api/catalog/{word}-entities/sets/{quote(name, safe='')}"
    push = f"push {shown} catalog.yaml{option}"
    return commands(server, push, f"-X PUT {quoted(url)}", "--data-binary @catalog.json")


SETS: Sequence[PageRoute] = (
    PageRoute("GET", "/sets", listed, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}", items, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}/revisions", revisions, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}/revisions/{number}", revision, (CATALOG_READ,)),
    PageRoute(
        "POST", "/sets/{set_id}/revisions/{number}/restore", restore, (SET_WRITE,), owned=True
    ),
    PageRoute("GET", "/sets/{set_id}/push", push, (CATALOG_READ,)),
)


_ON_PAGE: Final = 20
_FIELDS: Final = 8  # that are named
_DEPTH: Final = 3
_LONGEST: Final = 200_000  # characters of a document that is compared field by field


class ShownRevision(NamedTuple):
    """A change of an entity: `kind` is added, updated or removed; `more` fields are not named."""

    revision: EntityRevision
    kind: str
    path: str
    fields: list[str]
    more: int


async def latest(database: Database, found: EntityView, most: int) -> list[ShownRevision]:
    """The last changes of an entity; none of one outside any set."""
    if found.shown.set is None:
        return []
    rows = await stored_entities.list_entity_revisions(database, found.shown.set, found.ref, most)
    changes: list[ShownRevision] = await run_offloaded(_shown, found.shown.set, rows)
    return changes


async def show(visit: PageContext, found: EntityView) -> Reply:
    """Page of the history of an entity, with the difference that each revision made."""
    rows = await latest(visit.state.database, found, _ON_PAGE + 1)
    shown = rows[:_ON_PAGE]
    differences: list[LineDiff] = await run_offloaded(_differences, shown)
    return visit.page(
        "entity-history.html",
        **page.frame(found, "History"),
        changes=list(zip(shown, differences, strict=True)),
        more=len(rows) > len(shown),
        known=await visit.known([one.revision.created_by for one in shown]),
    )


def changed_fields(before: Any, after: Any) -> Iterator[str]:
    """The dotted paths of what differs between two documents, as far down as it tells more."""
    return _changed(before, after, "", _DEPTH)


def _changed(before: Any, after: Any, path: str, depth: int) -> Iterator[str]:
    if before == after:
        return
    if not (depth and isinstance(before, Mapping) and isinstance(after, Mapping)):
        yield path
        return
    for name in dict.fromkeys((*before, *after)):
        yield from _changed(
            before.get(name), after.get(name), f"{path}.{name}" if path else name, depth - 1
        )


def _shown(set_name: str, rows: Sequence[EntityRevision]) -> list[ShownRevision]:
    shown = []
    for row in rows:
        fields = list(_fields(row))
        shown.append(
            ShownRevision(
                row,
                "added" if row.before is None else "removed" if row.after is None else "updated",
                f"/sets/{segment(set_name)}/revisions/{row.number}",
                fields[:_FIELDS],
                len(fields[_FIELDS:]),
            )
        )
    return shown


def _fields(row: EntityRevision) -> Iterator[str]:
    if row.before is None or row.after is None or len(row.before) + len(row.after) > _LONGEST:
        return
    yield from changed_fields(msgspec.json.decode(row.before), msgspec.json.decode(row.after))


def _differences(shown: Sequence[ShownRevision]) -> list[LineDiff]:
    return [difference(one.revision.before, one.revision.after) for one in shown]


_NEEDS = (CATALOG_READ, SOURCE_READ)

ENTITY_HISTORY: Sequence[PageRoute] = (
    PageRoute("GET", f"{page.PATH}/history", page.of_entity(show), _NEEDS),
)

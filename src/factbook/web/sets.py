"""Sets: their items, revisions with the changes of each push, push commands, and entity history."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final, Literal, NamedTuple
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
from factbook.web import entity_view, formats
from factbook.web.entity_view import EntityView
from factbook.web.formats import make_commands, quote_segment, quote_shell_word
from factbook.web.pages import PageContext, PageRoute

# Limits of a comparison: lines per document, and lines times edits.
_COMPARED: Final = 2_000
_WORK: Final = 200_000
# Characters: the largest document to lay out, and the longest line to show.
_LAID_OUT: Final = 1_000_000
_LONGEST_LINE: Final = 1_000
# Lines shown per diff, and context lines around each change.
_SHOWN_LINES: Final = 400
_AROUND: Final = 2

LineKind = Literal["added", "removed", "same"]


class DiffLine(NamedTuple):
    """A line: `added`, `removed` or the `same` on both sides."""

    kind: LineKind
    text: str


class LineDiff(NamedTuple):
    """Changed lines with some context; `cut` when there are more."""

    lines: list[DiffLine]
    cut: bool


def compare_documents(before: str | None, after: str | None) -> LineDiff:
    """Diff two JSON documents; None means absent."""
    found = _list_hunks(_lay_out(before), _lay_out(after))
    lines = list(islice(found, _SHOWN_LINES + 1))
    is_cut = len(lines) > _SHOWN_LINES or any(len(line.text) > _LONGEST_LINE for line in lines)
    shortened = [
        line
        if len(line.text) <= _LONGEST_LINE
        else DiffLine(line.kind, f"{line.text[:_LONGEST_LINE]}…")
        for line in lines[:_SHOWN_LINES]
    ]
    return LineDiff(shortened, is_cut)


def _list_hunks(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """Hunks of changed lines, each with the lines around it."""
    stretches = [
        (is_same, list(lines))
        for is_same, lines in groupby(_list_edits(before, after), lambda line: line.kind == "same")
    ]
    for place, (is_same, lines) in enumerate(stretches):
        if not is_same:
            # Removed lines come before added ones.
            yield from _mark_lines(sorted(lines, key=lambda line: line.kind == "added"))
            continue
        is_first, is_last = place == 0, place == len(stretches) - 1
        head = [] if is_first else lines[:_AROUND]
        tail = [] if is_last else lines[len(head) :][-_AROUND:]
        yield from _mark_lines(head)
        if len(head) + len(tail) < len(lines) and not is_first and not is_last:
            yield DiffLine("same", "…")
        yield from _mark_lines(tail)


def _mark_lines(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    marks = {"added": "+ ", "removed": "- ", "same": "  "}
    return (DiffLine(line.kind, marks[line.kind] + line.text) for line in lines)


def _list_edits(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """Every line of both documents in order, as edits from `before` to `after`."""
    head = _count_common(before, after)
    tail = _count_common(before[: head - 1 - len(before) : -1], after[: head - 1 - len(after) : -1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    yield from (DiffLine("same", text) for text in before[:head])
    yield from _find_shortest_script(old, new) or [
        *(DiffLine("removed", text) for text in old),
        *(DiffLine("added", text) for text in new),
    ]
    yield from (DiffLine("same", text) for text in before[len(before) - tail :])


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the common prefix in lines."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _find_shortest_script(old: list[str], new: list[str]) -> list[DiffLine] | None:
    """Shortest edit script; None when it is too long.

    `reached` has, for each diagonal (old lines minus new lines), the most old lines consumed after
    this many edits; `trail` has its value before each edit.
    """
    reached, trail = {1: 0}, list[dict[int, int]]()
    for edits in range(min(len(old) + len(new), _WORK // (len(old) + len(new) + 1)) + 1):
        trail.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            x = _step_diagonal(reached, diagonal, edits)
            while x < len(old) and 0 <= x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reached[diagonal] = x
            if x >= len(old) and x - diagonal >= len(new):
                return _trace_back(old, new, trail)
    return None


def _adds_line(reached: dict[int, int], diagonal: int, edits: int) -> bool:
    """True if the last of the edits on this diagonal adds a line, false if it removes one."""
    if diagonal in (-edits, edits):
        return diagonal == -edits
    return reached[diagonal - 1] < reached[diagonal + 1]


def _step_diagonal(reached: dict[int, int], diagonal: int, edits: int) -> int:
    """The old lines consumed after that edit."""
    if _adds_line(reached, diagonal, edits):
        return reached[diagonal + 1]
    return reached[diagonal - 1] + 1


def _trace_back(old: list[str], new: list[str], trail: list[dict[int, int]]) -> list[DiffLine]:
    """Lines along the path to the end, traced backwards."""
    x, y, found = len(old), len(new), list[DiffLine]()
    for edits in range(len(trail) - 1, -1, -1):
        diagonal, reached = x - y, trail[edits]
        start = _step_diagonal(reached, diagonal, edits)
        while x > start:
            x, y = x - 1, y - 1
            found.append(DiffLine("same", old[x]))
        if not edits:
            break
        if _adds_line(reached, diagonal, edits):
            y -= 1
            found.append(DiffLine("added", new[y]))
        else:
            x -= 1
            found.append(DiffLine("removed", old[x]))
    return found[::-1]


def _lay_out(document: str | None) -> list[str]:
    if document is None:
        return []
    if len(document) > _LAID_OUT:
        return [document]
    return msgspec.json.format(document, indent=2).splitlines()[:_COMPARED]


_ITEMS = 100
_CHANGES = 50
_EMPTIED = 20
_LONGEST_NUMBER = 9


async def show_sets(visit: PageContext) -> Reply:
    """Page of all sets, including emptied ones that can be restored."""
    found = await stored_sets.list_sets(visit.state.database)
    emptied = await stored_sets.list_emptied_sets(visit.state.database, _EMPTIED)
    actors_of = [each.updated_by for each in found] + [each.updated_by for each in emptied]
    return visit.page(
        "sets.html",
        sets=found,
        entities=sum(each.item_count for each in found),
        emptied=emptied,
        known=await visit.known(actors_of),
        example=_make_set_commands(visit, "services"),
    )


async def show_set_items(visit: PageContext) -> Reply:
    """Page of a set's items, in the order of its last push."""
    found, after = await _get_set(visit), _check_place_number(visit.query("after", "-1"), least=-1)
    page = None
    if found.item_count:
        page = await stored_sets.page_content(visit.state.database, found.id, _ITEMS, after)
    shown = page.items if page else []
    more = (
        None
        if page is None or page.more is None
        else f"{_make_set_path(found.id)}?after={page.more}"
    )
    return visit.page(
        "set-items.html",
        set=found,
        path=_make_set_path(found.id),
        items=shown,
        known=await visit.known([found.updated_by, *(each.updated_by for each in shown)]),
        first=f"{_make_set_path(found.id)}" if after >= 0 else None,
        more=more,
    )


async def show_set_revisions(visit: PageContext) -> Reply:
    """Page of a set's pushes, newest first."""
    found = await _get_set(visit)
    listed = await stored_sets.list_set_revisions(visit.state.database, found.id)
    made_by = (each.created_by for each in listed)
    return visit.page(
        "set-revisions.html",
        set=found,
        path=_make_set_path(found.id),
        revisions=listed,
        known=await visit.known((found.updated_by, *made_by)),
    )


async def show_set_revision(
    visit: PageContext, status: int = 200, problem: str | None = None
) -> Reply:
    """Page with the diff of one revision."""
    entity_set, number = await _get_set(visit), _get_revision_number(visit)
    kind = next((kind for kind in CHANGE_KINDS if kind == visit.query("change")), None)
    change_filter, after = ChangeFilter(kind, visit.query("q").lower()), visit.query("after")
    page = await set_history.page_changes(
        visit.state.database, entity_set.id, number, after, _CHANGES, change_filter
    )
    path = f"{_make_set_path(entity_set.id)}/revisions/{number}"
    parameters = (("change", change_filter.kind), ("q", change_filter.text))
    query = {name: text for name, text in parameters if text}
    differences = await run_offloaded(
        lambda: [(each, compare_documents(each.before, each.after)) for each in page.items]
    )
    if number == entity_set.revision:
        can_restore = False
    elif visit.may_own(SET_WRITE):
        can_restore = await stored_sets.is_owned_set(
            visit.state.database, entity_set.id, visit.person.ref, visit.state.trust
        )
    else:
        can_restore = visit.may(SET_WRITE)
    return visit.page(
        "set-revision.html",
        status,
        set=entity_set,
        path=_make_set_path(entity_set.id),
        revision=page.revision,
        items=differences,
        known=await visit.known(
            (entity_set.updated_by, page.revision.created_by, *(each.ref for each in page.items)),
        ),
        kinds=[("", "Any"), *((kind, kind.capitalize()) for kind in CHANGE_KINDS)],
        wanted=change_filter,
        first=_add_query(path, query) if after else None,
        more=_add_query(path, {**query, "after": page.more}) if page.more else None,
        problem=problem,
        can_restore=can_restore,
    )


async def restore_shown_revision(visit: PageContext) -> Reply:
    """Restore the content of a revision as a new revision."""
    found, number = await _get_set(visit), _get_revision_number(visit)
    seen = _check_place_number(visit.sent.one("seen"), least=0)
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
            # Refuse to undo a push made since the page was shown.
            Guards(if_match=f'"{seen}"', take=takes, owned=owned),
            state.rules,
            kept=state.settings.revisions_kept,
            write=visit.writing(audit.make_restored_entry(found.id, number)),
        )
    except (ConflictError, PreconditionFailedError) as error:
        return await show_set_revision(visit, error.status, problem=error.message)
    assert outcome.written is not None
    state.metrics.pushed(outcome.plan.changes)
    changes = outcome.plan.changes
    counts = ", ".join(f"{changes[kind]:,} {kind}" for kind in ("added", "updated", "removed"))
    notice = f"The set was restored to revision {number}: {counts}."
    return visit.redirect(f"{_make_set_path(found.id)}/revisions", notice)


async def show_push_commands(visit: PageContext) -> Reply:
    """Page with shell commands to push this set."""
    found = await _get_set(visit)
    return visit.page(
        "set-push.html",
        set=found,
        path=_make_set_path(found.id),
        known=await visit.known([found.updated_by]),
        lines=_make_set_commands(visit, found.id),
    )


def _add_query(path: str, query: dict[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


async def _get_set(visit: PageContext) -> StoredSet:
    return await stored_sets.read_set(visit.state.database, visit.request.parameter("set_id"))


def _get_revision_number(visit: PageContext) -> int:
    text = visit.request.parameter("number")
    if not text.isdecimal() or not text.isascii() or len(text) > _LONGEST_NUMBER:
        raise NotFoundError("There is no such revision.")
    return int(text)


def _check_place_number(text: str, *, least: int) -> int:
    digits = text.removeprefix("-")
    if not digits.isdecimal() or not digits.isascii() or len(digits) > _LONGEST_NUMBER:
        raise InputError("The address of this page is incomplete.")
    return max(least, int(text))


def _make_set_path(name: str) -> str:
    return f"/sets/{formats.quote_segment(name)}"


def _make_set_commands(visit: PageContext, name: str) -> dict[str, str]:
    server, word = visit.server, visit.state.settings.push_word
    option = "" if word == "factbook" else f" --push-word {word}"
    shown = quote_shell_word(name)
    url = f"{server}/api/catalog/{word}-entities/sets/{quote(name, safe='')}"
    push = f"push {shown} catalog.yaml{option}"
    return make_commands(
        server, push, f"-X PUT {quote_shell_word(url)}", "--data-binary @catalog.json"
    )


SETS: Sequence[PageRoute] = (
    PageRoute("GET", "/sets", show_sets, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}", show_set_items, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}/revisions", show_set_revisions, (CATALOG_READ,)),
    PageRoute("GET", "/sets/{set_id}/revisions/{number}", show_set_revision, (CATALOG_READ,)),
    PageRoute(
        "POST",
        "/sets/{set_id}/revisions/{number}/restore",
        restore_shown_revision,
        (SET_WRITE,),
        owned=True,
    ),
    PageRoute("GET", "/sets/{set_id}/push", show_push_commands, (CATALOG_READ,)),
)


_ON_PAGE: Final = 20
_FIELDS: Final = 8  # named per revision
_DEPTH: Final = 3
_LONGEST: Final = 200_000  # characters of a document that is compared field by field


class ShownRevision(NamedTuple):
    """A change of an entity: `kind` is added, updated or removed; `more` counts unnamed fields."""

    revision: EntityRevision
    kind: str
    path: str
    fields: list[str]
    more: int


async def list_changes_of_entity(
    database: Database, found: EntityView, most: int
) -> list[ShownRevision]:
    """The last changes of an entity; none for entities outside any set."""
    if found.shown.set is None:
        return []
    rows = await stored_entities.list_entity_revisions(database, found.shown.set, found.ref, most)
    changes: list[ShownRevision] = await run_offloaded(_make_shown_revisions, found.shown.set, rows)
    return changes


async def show_entity_history(visit: PageContext, found: EntityView) -> Reply:
    """Page of an entity's history, with the diff of each revision."""
    rows = await list_changes_of_entity(visit.state.database, found, _ON_PAGE + 1)
    shown = rows[:_ON_PAGE]
    differences = await run_offloaded(
        lambda: [compare_documents(row.revision.before, row.revision.after) for row in shown]
    )
    return visit.page(
        "entity-history.html",
        **entity_view.make_entity_frame(found, "History"),
        changes=list(zip(shown, differences, strict=True)),
        more=len(rows) > len(shown),
        known=await visit.known([one.revision.created_by for one in shown]),
    )


def list_changed_fields(before: Any, after: Any) -> Iterator[str]:
    """The dotted paths that differ between two documents, down to a fixed depth."""
    return _list_changed_paths(before, after, "", _DEPTH)


def _list_changed_paths(before: Any, after: Any, path: str, depth: int) -> Iterator[str]:
    if before == after:
        return
    if not (depth and isinstance(before, Mapping) and isinstance(after, Mapping)):
        yield path
        return
    for name in dict.fromkeys((*before, *after)):
        yield from _list_changed_paths(
            before.get(name), after.get(name), f"{path}.{name}" if path else name, depth - 1
        )


def _make_shown_revisions(set_name: str, rows: Sequence[EntityRevision]) -> list[ShownRevision]:
    shown = []
    for row in rows:
        before, after, fields = row.before, row.after, list[str]()
        if before is not None and after is not None and len(before) + len(after) <= _LONGEST:
            fields += list_changed_fields(msgspec.json.decode(before), msgspec.json.decode(after))
        shown.append(
            ShownRevision(
                row,
                "added" if before is None else "removed" if after is None else "updated",
                f"/sets/{quote_segment(set_name)}/revisions/{row.number}",
                fields[:_FIELDS],
                len(fields[_FIELDS:]),
            )
        )
    return shown


_NEEDS = (CATALOG_READ, SOURCE_READ)

ENTITY_HISTORY: Sequence[PageRoute] = (
    PageRoute(
        "GET",
        f"{entity_view.ENTITY_PATH}/history",
        entity_view.handle_entity_page(show_entity_history),
        _NEEDS,
    ),
)

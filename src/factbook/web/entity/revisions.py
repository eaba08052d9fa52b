"""History of an entity itself: what each revision of its set changed in it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.catalog.store import by_ref
from factbook.catalog.store.by_ref import EntityRevision
from factbook.http.requests import Reply, offloaded
from factbook.storage import Database
from factbook.web.entity import page
from factbook.web.entity.page import EntityView
from factbook.web.site.diff import LineDiff, difference
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

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
    rows = await by_ref.revisions(database, found.shown.set, found.ref, most)
    changes: list[ShownRevision] = await offloaded(_shown, found.shown.set, rows)
    return changes


async def show(visit: PageContext, found: EntityView) -> Reply:
    """Page of the history of an entity, with the difference that each revision made."""
    rows = await latest(visit.state.database, found, _ON_PAGE + 1)
    shown = rows[:_ON_PAGE]
    differences: list[LineDiff] = await offloaded(_differences, shown)
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

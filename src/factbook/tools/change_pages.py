"""Changes from data sources and from revisions of sets, as pages in one order of time."""

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

import msgspec

from factbook.catalog import compliance, kinds, ref
from factbook.catalog.store import changes
from factbook.catalog.store.changes import Past, PastChanges, PastPlace, all_since
from factbook.clock import DAY, iso
from factbook.errors import ToolError
from factbook.facts import history_queries
from factbook.facts.history_queries import ChangePosition, FactChange
from factbook.integrations import SOURCES, catalog
from factbook.storage import Database
from factbook.tools.pages import place
from factbook.tools.tool import Context, encode

ID: Final = "catalog"
"""The data source id under which changes of the catalog are reported."""

_MOST_FIELDS = 20
# What the document of an entity does not decide: the bits of these are those of others, too.
_OF_OTHERS: Final = ("ownership.hasRelationships", "ownership.ownerExists")
_OTHERS: Final = frozenset(name.partition(".")[2] for name in _OF_OTHERS)
_PLACE = re.compile(r"(\d{1,16})/(\d{1,18})/(\d{1,18})/([^/]*)", re.ASCII)
_MISTAKEN: Final = "cursor is not the nextCursor of an earlier page. Leave it out to start over."
# Between the two places of a cursor.
_APART = "~"


class ChangeQuery(NamedTuple):
    """A query for changes: the start time, and the data source and kind, if restricted."""

    since: int
    source_id: str | None
    kind: str | None

    @property
    def is_of_catalog(self) -> bool:
        """True if the query includes changes of the catalog."""
        return self.source_id in (None, ID)


class ChangeCursor(NamedTuple):
    """Position of a page: in the writes of data sources, and in the revisions of sets."""

    facts: ChangePosition
    catalog: PastPlace


Found = FactChange | Past


def start(since: int) -> ChangeCursor:
    """The positions before all changes since a time."""
    # Before every id of a source and of an entity, and in the form of these.
    return ChangeCursor(ChangePosition(since, "0", 0), PastPlace(since, 0, 0, ""))


def places_of(text: str) -> ChangeCursor:
    """The positions encoded in a cursor; one of an earlier release has only the first."""
    facts, _, revisions = text.partition(_APART)
    first = ChangePosition(*place(facts, 3))
    start = PastPlace(first.written_at, 0, 0, "")
    return ChangeCursor(first, _place_of(revisions) if revisions else start)


def written(places: ChangeCursor | None, asked: ChangeQuery) -> str:
    """The result member that names the next page; empty if there is none."""
    if places is None:
        return ""
    text = "/".join(map(str, places.facts))
    if asked.is_of_catalog:
        text += _APART + _written_place(places.catalog)
    return f',"nextCursor":{encode(text)}'


async def of_both(
    asked: ChangeQuery, places: ChangeCursor, wanted: int, context: Context
) -> tuple[history_queries.FactChangePage, PastChanges]:
    """Further changes of data sources and of the catalog, as far as they are requested."""
    database, past = context.database, PastChanges([], None)
    changed = await history_queries.changes_page(database, *asked, places.facts, wanted)
    if asked.is_of_catalog:
        past = await all_since(database, places.catalog, asked.kind, wanted)
        own = [
            await _without_told(database, one) if catalog.answers(one.source_id) else one
            for one in changed.changes
        ]
        changed = changed._replace(changes=own)
    return changed, past


def in_order(changed: history_queries.FactChangePage, past: PastChanges) -> list[tuple[int, Found]]:
    """Both kinds of changes, each with its time, oldest first."""
    found: list[tuple[int, Found]] = [(one.written_at, one) for one in changed.changes]
    found += [(one.place.created_at, one) for one in past.changes]
    return sorted(found, key=itemgetter(0))


def entry(past: Past) -> dict[str, Any]:
    """The change in the form shown to clients, with its effect on the catalog's own facts."""
    changed = past.changed
    before, after = _read(changed.before), _read(changed.after)
    found: dict[str, Any] = {
        "timestamp": iso(past.place.created_at),
        "dataSourceId": ID,
        "version": SOURCES[0].version,
        "entityRef": changed.ref,
        "change": changed.kind,
        "set": past.set,
        "revision": past.place.number,
        "by": past.by,
        "facts": {},
    }
    if before is not None and after is not None:
        fields = sorted(_fields(before, after))
        was, now = _facts(changed.ref, before), _facts(changed.ref, after)
        found["fields"] = fields[:_MOST_FIELDS]
        found["facts"] = {
            name: {"from": was[name], "to": now[name]} for name in was if was[name] != now[name]
        }
    return found


async def _without_told(database: Database, change: FactChange) -> FactChange:
    """A change of the catalog's own facts, without those already reported by a revision.

    Samples are taken daily, so the revision is from the day before.
    """
    time = change.written_at
    if not await changes.are_told(database, change.ref, time - DAY, time):
        return change
    kept = change.facts if change.source_id == "entity-ownership" else {}
    return change._replace(facts={name: kept[name] for name in kept if name in _OTHERS})


def _written_place(place: PastPlace) -> str:
    """A position as a part of a cursor."""
    return "/".join([*map(str, place[:3]), quote(place.ref, safe=":")])


def _place_of(text: str) -> PastPlace:
    """The position encoded in a part of a cursor; raises ToolError."""
    match = _PLACE.fullmatch(text)
    if match is None:
        raise ToolError(_MISTAKEN)
    created_at, set_id, number = (int(part) for part in match.groups()[:3])
    return PastPlace(created_at, set_id, number, unquote(match[4]))


def _read(document: str | None) -> dict[str, Any] | None:
    return None if document is None else msgspec.json.decode(document, type=dict[str, Any])


def _facts(entity_ref: str, entity: Mapping[str, Any]) -> dict[str, bool]:
    """The catalog's own facts that are determined by the document."""
    known = ref.parse(entity_ref)
    spec = entity.get("spec") or {}
    edges, _ = kinds.derive_relations(known.kind, known.namespace, spec)
    bits = compliance.of_document(entity["metadata"], spec) | compliance.of_relations(edges)
    return {
        name: value for name, value in catalog.compliance(bits).items() if name not in _OF_OTHERS
    }


def _fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """The fields that differ, with those of metadata and spec listed individually."""
    for name in before.keys() | after.keys():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            parts = old.keys() | new.keys()
            yield from (f"{name}.{part}" for part in parts if old.get(part) != new.get(part))
        else:
            yield name

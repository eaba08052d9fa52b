"""Changes of the catalog: added, updated and removed entities, from the revisions of sets."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from factbook.catalog import compliance, ref, relations
from factbook.catalog.store import changes
from factbook.catalog.store.changes import Past, PastPlace
from factbook.clock import DAY, iso
from factbook.errors import ToolError
from factbook.facts.history_queries import FactChange
from factbook.integrations import SOURCES, catalog
from factbook.storage import Database

ID: Final = "catalog"
"""The data source id under which changes of the catalog are reported."""

_MOST_FIELDS = 20
# What the document of an entity does not decide: the bits of these are those of others, too.
_OF_OTHERS: Final = ("ownership.hasRelationships", "ownership.ownerExists")
_OTHERS: Final = frozenset(name.partition(".")[2] for name in _OF_OTHERS)
_PLACE = re.compile(r"(\d{1,16})/(\d{1,18})/(\d{1,18})/([^/]*)", re.ASCII)
_MISTAKEN: Final = "cursor is not the nextCursor of an earlier page. Leave it out to start over."


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


async def without_told(database: Database, change: FactChange) -> FactChange:
    """A change of the catalog's own facts, without those already reported by a revision.

    Samples are taken daily, so the revision is from the day before.
    """
    time = change.written_at
    if not await changes.are_told(database, change.ref, time - DAY, time):
        return change
    kept = change.facts if change.source_id == "entity-ownership" else {}
    return change._replace(facts={name: kept[name] for name in kept if name in _OTHERS})


def start(since: int) -> PastPlace:
    """The position before every change since a time."""
    return PastPlace(since, 0, 0, "")


def written(place: PastPlace) -> str:
    """A position as a part of a cursor."""
    return "/".join([*map(str, place[:3]), quote(place.ref, safe=":")])


def place_of(text: str) -> PastPlace:
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
    edges, _ = relations.derive(known.kind, known.namespace, spec)
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

"""Texts that people wrote about an entity: without noise, bounded, and apart from what is known.

All of it was pushed. Whoever reads it for a model gets it in one member, `writtenByOthers`, so that
it can be told from what this service says.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from factbook.catalog.kinds import RELATIONS
from factbook.tools.pages import shortened
from factbook.tools.tool import encode

Document = Mapping[str, Any]

LONGEST_DESCRIPTION: Final = 1_000
MOST_ITEMS: Final = 20
MOST_CHARACTERS: Final = 6_000  # of all of it
# What the service itself adds, or what is said beside.
_OWN_ANNOTATIONS: Final = re.compile("backstage.io/managed-by-.*|[^/]+/entity-set")
_TOLD: Final = frozenset({"type", "lifecycle", "owner", "system"})


def written(entity: Document) -> dict[str, Any]:
    """Title, description, tags, labels, annotations, links and what else the spec says."""
    metadata: Document = entity.get("metadata") or {}
    kind = str(entity.get("kind", "")).lower()
    related = {field.name for field in RELATIONS.get(kind, ())}
    spec = {
        name: value
        for name, value in (entity.get("spec") or {}).items()
        if name not in related and name not in _TOLD
    }
    found = {
        "title": _brief(metadata.get("title")),
        "description": _cut(metadata.get("description"), LONGEST_DESCRIPTION),
        "tags": list(metadata.get("tags") or ())[:MOST_ITEMS],
        "labels": _members(metadata.get("labels") or {}),
        "annotations": _members(annotations(entity)),
        "links": links(entity),
        "spec": _members(spec),
    }
    return _fitting({name: value for name, value in found.items() if value})


def _fitting(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts for which there is room, and the names of those for which there is none."""
    kept, left, room = {}, [], MOST_CHARACTERS
    for name, value in parts.items():
        size = len(encode(value))
        if size <= room:
            kept[name] = value
            room -= size
        else:
            left.append(name)
    return {**kept, "leftOut": left} if left else kept


def annotations(entity: Document) -> dict[str, Any]:
    """The annotations that somebody wrote."""
    found = (entity.get("metadata") or {}).get("annotations") or {}
    return {name: text for name, text in found.items() if not _OWN_ANNOTATIONS.fullmatch(name)}


def links(entity: Document) -> list[dict[str, Any]]:
    """The first links, each with its title and type where it has them."""
    found = (entity.get("metadata") or {}).get("links") or ()
    names = ("title", "url", "type")
    return [
        {name: _brief(link[name]) for name in names if link.get(name)}
        for link in list(found)[:MOST_ITEMS]
        if isinstance(link, dict)
    ]


def _members(found: Document) -> dict[str, Any]:
    kept = {_cut(name, 100): _brief(value) for name, value in list(found.items())[:MOST_ITEMS]}
    return kept if len(found) <= MOST_ITEMS else {**kept, "…": f"{len(found) - MOST_ITEMS} more"}


def _brief(value: Any) -> Any:
    """A value, or its beginning with a mark of what is missing."""
    kept, size = shortened(value)
    if size is None:
        return value
    if isinstance(kept, str):
        return f"{kept}… of {size} characters"
    return {"beginning": kept, "of": size}


def _cut(text: Any, most: int) -> Any:
    if isinstance(text, str) and len(text) > most:
        return f"{text[:most]}… of {len(text)} characters"
    return text

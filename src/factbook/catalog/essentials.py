"""The facts that every entity brings itself: owner, type, lifecycle, tags and labels.

They are what the tools show as the data source `entity`, and what a condition reads by the same
names. Whether the owner is in the catalog is known beside the document.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

Document = Mapping[str, Any]

OWNER_EXISTS: Final = "ownerExists"


def _owner(entity: Document) -> Any:
    related = entity.get("relations") or ()
    return min((one["targetRef"] for one in related if one["type"] == "ownedBy"), default=None)


def _at(part: str, name: str) -> Callable[[Document], Any]:
    def value(entity: Document) -> Any:
        found = entity.get(part)
        return found.get(name) if isinstance(found, dict) else None

    return value


# By the name of the fact: its value in an entity in the form that the catalog shows.
READERS: Final[Mapping[str, Callable[[Document], Any]]] = {
    "owner": _owner,
    "type": _at("spec", "type"),
    "lifecycle": _at("spec", "lifecycle"),
    "tags": _at("metadata", "tags"),
    "labels": _at("metadata", "labels"),
}


def values(entity: Document, *, owner_exists: bool) -> dict[str, Any]:
    """The facts of an entity; what it does not say is left out."""
    found = {name: read(entity) for name, read in READERS.items()}
    known = {name: value for name, value in found.items() if value is not None}
    return known if "owner" not in known else {**known, OWNER_EXISTS: owner_exists}

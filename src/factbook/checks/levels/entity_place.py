"""Place of an entity in counts: its owner, system, kind and labels."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from factbook.checks.levels import label_store
from factbook.facts.entity_filter import Matcher

_SYSTEM = "system:"


class EntityPlace(NamedTuple):
    """Owner, system and kind of an entity, '' without one, its labels and what to match."""

    owner: str
    system: str
    kind: str
    labels: str
    matcher: Matcher


def owner_of(document: Mapping[str, Any]) -> str:
    """The first owner of an entity in the form that the catalog shows; '' without one."""
    return next(_targets(document.get("relations", ()), "ownedBy"), "")


def place_of(ref: str, document: Mapping[str, Any], matcher: Matcher) -> EntityPlace:
    """The place of an entity in the form that the catalog shows: its first owner and system."""
    wholes = _targets(document.get("relations", ()), "partOf")
    systems = (one for one in wholes if one.startswith(_SYSTEM))
    kind, labels = ref.partition(":")[0], label_store.counted(document)
    return EntityPlace(owner_of(document), next(systems, ""), kind, labels, matcher)


def _targets(relations: Iterable[Mapping[str, str]], type_: str) -> Iterator[str]:
    return (one["targetRef"] for one in relations if one["type"] == type_)

"""Rules for pushed entities: the annotations that the service adds, and the size of each entity.

An oversized entity would block the catalog's single writer: every value of an entity becomes rows
of the search index, and every reference becomes a relation that is rendered at both ends.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

from msgspec import Struct

from factbook.catalog import kinds, people_trust
from factbook.catalog.validation import Problem
from factbook.settings import Settings

Entity = dict[str, Any]

MANAGED_BY_LOCATION = "backstage.io/managed-by-location"
MANAGED_BY_ORIGIN_LOCATION = "backstage.io/managed-by-origin-location"

# Of a set, where the settings say nothing else.
MOST_ITEMS: Final = 100_000
_PLAIN = re.compile(r"[a-z0-9._/:-]*")
# The parts of `metadata` that have a limit each.
_PARTS = ("labels", "annotations", "tags", "links")


@dataclass(frozen=True)
class Annotator:
    """Writer of the service's annotations, with the configured keys."""

    word: str
    domain: str

    @property
    def base_path(self) -> str:
        """The path of the push interface."""
        return f"/api/catalog/{self.word}-entities"

    def annotate(self, annotations: dict[str, str], ref: str, set_name: str | None) -> None:
        """Add the service's annotations, replacing client values under the same keys."""
        entities = self._entities
        # Taken out first, so that an entity that was read and comes back keeps its order and etag.
        for key in self._keys:
            annotations.pop(key, None)
        if set_name is not None:
            annotations[self._entity_set] = set_name
        annotations[MANAGED_BY_LOCATION] = f"{entities}/by-ref/{path_segment(ref)}"
        annotations[MANAGED_BY_ORIGIN_LOCATION] = entities

    def count(self, annotations: dict[str, str]) -> int:
        """Count the annotations that are the service's own."""
        return len(annotations.keys() & self._keys)

    @cached_property
    def _entities(self) -> str:
        return f"{self.word}-api:{self.base_path}/entities"

    @cached_property
    def _entity_set(self) -> str:
        return f"{self.domain}/entity-set"

    @cached_property
    def _keys(self) -> tuple[str, str, str]:
        return (self._entity_set, MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION)


class EntityLimits(NamedTuple):
    """The limits of one entity, each with its own setting `max_entity_…`."""

    relations: int = 10_000
    labels: int = 1_000
    annotations: int = 1_000
    tags: int = 1_000
    links: int = 1_000
    values: int = 25_000

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits given by the settings."""
        return cls(*(getattr(settings, _setting(name)) for name in cls._fields))

    def problems(self, entity: Entity, size: int, own_annotations: int = 0) -> Iterator[Problem]:
        """Yield each limit that a valid entity of so many bytes exceeds, as (path, message).

        `own_annotations` is the number of annotations added by the service, which are not counted.
        """
        if size <= 2 * min(self):
            return  # whatever is counted takes two bytes, with what separates it from the next
        for part in _PARTS:
            count = len(entity["metadata"].get(part, ()))
            if part == "annotations":
                count -= own_annotations
            yield from self._problems(part, count, f"metadata.{part}")
        counts = _references(entity)
        if counts:
            longest = max(counts, key=lambda field: counts[field])
            yield from self._problems("relations", sum(counts.values()), f"spec.{longest}")
        yield from self._problems("values", _values(entity) - own_annotations, "")

    def _problems(self, name: str, count: int, path: str) -> Iterator[Problem]:
        most = getattr(self, name)
        if count > most:
            default = self._field_defaults[name]
            text = f"{count} {name} are more than one entity may have"
            yield path, f"{text}: {_setting(name)} is {most}, by default {default}"


DEFAULT_LIMITS = EntityLimits()


class AllowedKinds(NamedTuple):
    """The only kinds that sets may hold, by patterns of their names; no pattern: any kind."""

    kinds: Mapping[str, frozenset[str]] = MappingProxyType({})

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The kinds given by the settings."""
        given = settings.allowed_kinds.items()
        return cls({name: frozenset(kind.lower() for kind in kinds) for name, kinds in given})

    def problem(self, set_name: str | None, kind: object) -> str:
        """The reason why a set may not hold this kind; empty if it may."""
        rows = [row for row in self.kinds if people_trust.matches([row], set_name)]
        if not rows or any(str(kind).lower() in self.kinds[row] for row in rows):
            return ""
        place = "outside any set" if set_name is None else f"in the set {set_name}"
        return f"{str(kind)[:80]} isn't allowed {place} by the setting allowed_kinds"


class PushRules(Struct, frozen=True):
    """Settings for checking and annotating pushed entities."""

    annotator: Annotator
    strict_names: bool = False
    max_items: int = MOST_ITEMS
    max_depth: int = 64
    limits: EntityLimits = DEFAULT_LIMITS
    kinds: AllowedKinds = AllowedKinds()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The rules given by the settings."""
        return cls(
            Annotator(settings.push_word, settings.annotation_domain),
            strict_names=settings.entity_names == "strict",
            max_items=settings.max_set_items,
            max_depth=settings.max_json_depth,
            limits=EntityLimits.of(settings),
            kinds=AllowedKinds.of(settings),
        )


def path_segment(ref: str) -> str:
    """Percent-encode the reference as one path segment."""
    if _PLAIN.fullmatch(ref):
        return ref.replace(":", "%3A").replace("/", "%2F")
    return quote(ref, safe="")


def _setting(name: str) -> str:
    return f"max_entity_{name}"


def _references(entity: Entity) -> dict[str, int]:
    """Count the references in each field of the spec."""
    spec = entity.get("spec", {})
    fields = (field.name for field in kinds.RELATIONS.get(entity["kind"].lower(), ()))
    stated = {name: spec[name] for name in fields if spec.get(name) is not None}
    return {name: len(value) if isinstance(value, list) else 1 for name, value in stated.items()}


def _values(entity: Entity) -> int:
    """Count the scalar values in the JSON: everything that is neither an object nor an array."""
    count = 0
    layer: list[Any] = [entity]
    while layer:
        nested: list[Any] = []
        for item in layer:
            children = item.values() if isinstance(item, dict) else item
            inner = [child for child in children if isinstance(child, dict | list)]
            count += len(item) - len(inner)
            nested += inner
        layer = nested
    return count

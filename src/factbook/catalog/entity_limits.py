"""Size limits of one entity; an oversized entity would block the catalog's single writer.

Every value of an entity becomes rows of the search index, and every reference becomes a relation
that is rendered at both ends.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from factbook.catalog import relations
from factbook.catalog.checks import Problem
from factbook.settings import Settings

Entity = dict[str, Any]

# The parts of `metadata` that have a limit each.
_PARTS = ("labels", "annotations", "tags", "links")


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

    def problems(self, entity: Entity, own_annotations: int = 0) -> Iterator[Problem]:
        """Yield each limit that a valid entity exceeds, as (path, message).

        `own_annotations` is the number of annotations added by the service, which are not counted.
        """
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


def _setting(name: str) -> str:
    return f"max_entity_{name}"


def _references(entity: Entity) -> dict[str, int]:
    """Count the references in each field of the spec."""
    spec = entity.get("spec", {})
    fields = (field.name for field in relations.FIELDS.get(entity["kind"].lower(), ()))
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

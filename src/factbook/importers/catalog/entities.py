"""Entities of another catalog as they are pushed: without what it computes."""

from collections.abc import Mapping
from typing import Any, Final

from factbook.catalog import kinds, ref
from factbook.catalog.push_rules import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.errors import InputError

Entity = dict[str, Any]

# Of the other catalog's own; what it says of an entity beside these is of the entity.
_COMPUTED: Final = ("uid", "etag")
_MARKS: Final = {
    MANAGED_BY_LOCATION: "imported-from-location",
    MANAGED_BY_ORIGIN_LOCATION: "imported-from-origin-location",
}


def pushed(entity: Entity, prefix: str) -> Entity:
    """The entity without what the other catalog has added, its namespaces with the prefix."""
    metadata = {key: value for key, value in entity["metadata"].items() if key not in _COMPUTED}
    own = _annotations(metadata)
    if own:
        metadata["annotations"] = {key: value for key, value in own.items() if key not in _MARKS}
    if prefix:
        metadata["namespace"] = prefix + (metadata.get("namespace") or DEFAULT_NAMESPACE)
    found = {"apiVersion": entity.get("apiVersion"), "kind": entity["kind"], "metadata": metadata}
    if "spec" in entity:
        found["spec"] = _prefixed(entity["kind"], entity["spec"], prefix)
    return found


def marks(entity: Entity) -> dict[str, str]:
    """Annotations that keep the locations by which the other catalog manages the entity."""
    own = _annotations(entity["metadata"])
    return {name: own[key] for key, name in _MARKS.items() if isinstance(own.get(key), str)}


def _annotations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found = metadata.get("annotations")
    return found if isinstance(found, dict) else {}


def _prefixed(kind: str, spec: Any, prefix: str) -> Any:
    """The spec with the prefix in its references; one without a namespace means the entity's."""
    if not prefix or not isinstance(spec, dict):
        return spec
    names = {field.name for field in kinds.RELATIONS.get(kind.lower(), ())}
    return {key: _refs(value, prefix) if key in names else value for key, value in spec.items()}


def _refs(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        return [_refs(one, prefix) for one in value]
    if not isinstance(value, str):
        return value
    try:
        kind, namespace, name = ref.split(value)
    except InputError:
        return value  # which the push reports
    if namespace is None:
        return value
    return f"{kind}:{prefix}{namespace}/{name}" if kind else f"{prefix}{namespace}/{name}"

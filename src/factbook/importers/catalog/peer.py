"""Reading of another catalog: one part with every entity that the filters let through.

They are pushed without what that catalog computes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from factbook.catalog import kinds, ref
from factbook.catalog.push_rules import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.errors import InputError
from factbook.importers.catalog.lists import EntityListing, listing
from factbook.importers.catalog.options import CatalogImportOptions
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.outbound import HttpClient

PART: Final = "entities"
Entity = dict[str, Any]

# Of the other catalog's own; what it says of an entity beside these is of the entity.
_COMPUTED: Final = ("uid", "etag")
_ORPHAN: Final = "backstage.io/orphan"
_MARKS: Final = {
    MANAGED_BY_LOCATION: "imported-from-location",
    MANAGED_BY_ORIGIN_LOCATION: "imported-from-origin-location",
}


async def read(
    client: HttpClient,
    options: CatalogImportOptions,
    show: Callable[[str], None] = lambda text: None,
) -> Snapshot:
    """A snapshot of the catalog without its orphans, which are counted.

    Its rights are the kinds of entities that were seen: a kind that is missing altogether is more
    often a provider or permission that failed there than entities that have gone.
    """
    place = options.place
    found = await listing(client, options.filters, show)
    live = {ref: one for ref, one in found.entities.items() if not _is_orphan(one)}
    part = SnapshotPart(
        PART,
        found.missing is None,
        tuple(_item(place, ref, entity, options) for ref, entity in live.items()),
        _problems(place, found),
        rights=frozenset(f"entities of kind {ref.partition(':')[0]}" for ref in found.entities),
    )
    orphans = len(found.entities) - len(live)
    return Snapshot((part,), {"orphans": orphans} if orphans else {})


def _item(
    place: str, ref: str, entity: dict[str, Any], options: CatalogImportOptions
) -> ImportedItem:
    uid = entity["metadata"].get("uid")
    return ImportedItem(
        _pushed(entity, options.namespace_prefix),
        f"{place}/{ref}",
        f"{place}/entity/{uid}" if isinstance(uid, str) and uid else "",
        marks=_marks(entity),
        raw=entity,
    )


def _is_orphan(entity: Entity) -> bool:
    """True if the other catalog no longer finds the entity where it was defined."""
    return str(_annotations(entity["metadata"]).get(_ORPHAN)).lower() == "true"


def _problems(place: str, found: EntityListing) -> tuple[ReadingProblem, ...]:
    if found.missing is None:
        return ()
    return (ReadingProblem(place, f"entities: {found.missing.reason}"),)


def _pushed(entity: Entity, prefix: str) -> Entity:
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


def _marks(entity: Entity) -> dict[str, str]:
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

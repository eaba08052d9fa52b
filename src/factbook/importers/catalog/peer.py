"""Reading of another catalog: one part with every entity that the filters let through."""

from collections.abc import Callable
from typing import Any, Final

from factbook.importers.catalog.entities import marks, pushed
from factbook.importers.catalog.lists import EntityListing, listing
from factbook.importers.catalog.options import CatalogImportOptions
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.outbound import HttpClient

PART: Final = "entities"


async def read(
    client: HttpClient,
    options: CatalogImportOptions,
    show: Callable[[str], None] = lambda text: None,
) -> Snapshot:
    """A snapshot of the catalog.

    Its rights are the kinds of entities that were seen: a kind that is missing altogether is more
    often a provider or permission that failed there than entities that have gone.
    """
    place = options.place
    found = await listing(client, options.filters, show)
    part = SnapshotPart(
        PART,
        found.missing is None,
        tuple(_item(place, ref, entity, options) for ref, entity in found.entities.items()),
        _problems(place, found),
        rights=frozenset(f"entities of kind {ref.partition(':')[0]}" for ref in found.entities),
    )
    return Snapshot((part,))


def _item(
    place: str, ref: str, entity: dict[str, Any], options: CatalogImportOptions
) -> ImportedItem:
    uid = entity["metadata"].get("uid")
    return ImportedItem(
        pushed(entity, options.namespace_prefix),
        f"{place}/{ref}",
        f"{place}/entity/{uid}" if isinstance(uid, str) and uid else "",
        marks=marks(entity),
        raw=entity,
    )


def _problems(place: str, found: EntityListing) -> tuple[ReadingProblem, ...]:
    if found.missing is None:
        return ()
    return (ReadingProblem(place, f"entities: {found.missing.reason}"),)

"""Importer of another catalog through its API: Backstage, Roadie, or another Factbook."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final
from urllib.parse import urlencode

import msgspec

from factbook.catalog import kinds, ref
from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.catalog.validation import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION
from factbook.errors import InputError
from factbook.importers.importer import Access, ImporterKind, ImporterOptions
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, report_too_many
from factbook.settings.option_tables import about, is_web_address

_NAMESPACE_PREFIX: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,30})")
_LONGEST_FILTER: Final = 1_000
_MOST_FILTERS: Final = 20

_ENTITIES_PATH: Final = "/api/catalog/entities/by-query"
# All fields except those computed by a catalog: relations and status.
_FIELDS: Final = "apiVersion,kind,metadata,spec"
# Page sizes: a page of large entities may be too large to send or to receive.
_SIZES: Final = (500, 100, 20)
_MOST_PAGES: Final = 4_000
# Limits, as all entities are in memory until written.
MOST_ENTITIES: Final = 500_000
MOST_BYTES: Final = 256 * 1024 * 1024
_CHANGED: Final = Missing(Outcome.INCOMPLETE, "the catalog changed while it was read")
_TWICE: Final = Missing(Outcome.INCOMPLETE, "an entity was listed twice")

Entity = dict[str, Any]

ENTITIES_PART: Final = "entities"

# Metadata of the other catalog itself; all other metadata belongs to the entity.
_COMPUTED: Final = ("uid", "etag")
_ORPHAN: Final = "backstage.io/orphan"
_MARKS: Final = {
    MANAGED_BY_LOCATION: "imported-from-location",
    MANAGED_BY_ORIGIN_LOCATION: "imported-from-origin-location",
}


class CatalogImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """Address of a catalog, and the entities to import."""

    address: Annotated[
        str,
        about("Needed. Address of the service, below which `/api/catalog` is, with `https://`."),
    ] = ""
    token: Annotated[str, about("Secret. Token that may read entities there.")] = ""
    filters: Annotated[
        tuple[str, ...],
        about(
            "Conditions such as `kind=component,spec.type=service`, all of which have to hold. Of "
            "several texts, one has to hold. Empty: every entity."
        ),
    ] = ()
    namespace_prefix: Annotated[
        str, about("Put before every namespace, also in references: `eu-` makes `eu-default`.")
    ] = ""

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not is_web_address(self.address):
            yield "address has to be a web address, such as https://backstage.example.com"
        if len(self.filters) > _MOST_FILTERS or not all(
            bool(text.strip()) and text.isprintable() and len(text) <= _LONGEST_FILTER
            for text in self.filters
        ):
            yield "filters have to be texts such as kind=component, at most 20"
        if self.namespace_prefix and not _NAMESPACE_PREFIX.fullmatch(self.namespace_prefix):
            yield (
                "namespace_prefix has to consist of lower-case letters, digits and dashes, "
                "at most 31"
            )

    @property
    def place(self) -> str:
        """The address without its scheme, which names the catalog in entities and problems."""
        return self.address.partition("://")[2].rstrip("/").lower()


class _PagePosition(msgspec.Struct, rename="camel"):
    next_cursor: str | None = None


class _EntityPage(msgspec.Struct, rename="camel"):
    items: list[Entity]
    total_items: int
    page_info: _PagePosition


@dataclass
class EntityListing:
    """The entities by reference in the order of the list, and the reason if it is not complete."""

    entities: dict[str, Entity] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None
    size: int = 0

    def take(self, page: _EntityPage, size: int) -> None:
        """Add the entities of a page of so many bytes."""
        self.size += size
        if self.total not in (None, page.total_items):
            self.missing = self.missing or _CHANGED
        self.total = page.total_items
        for entity in page.items:
            ref = _read_ref(entity)
            if ref is None:
                self.missing = self.missing or UNUSABLE
            elif ref in self.entities:
                self.missing = self.missing or _TWICE
            else:
                self.entities[ref] = entity

    @property
    def excess(self) -> Missing | None:
        """The reason to stop, if the list exceeds the limits."""
        if len(self.entities) > MOST_ENTITIES:
            return report_too_many(MOST_ENTITIES, "entities")
        return report_too_many(MOST_BYTES, "bytes of entities") if self.size > MOST_BYTES else None

    def ended(self) -> "EntityListing":
        """The listing after its last page."""
        count = len(self.entities)
        if count != self.total and self.missing is None:
            text = f"{count:,} of {self.total:,} were listed"
            self.missing = Missing(Outcome.INCOMPLETE, text)
        return self


async def list_catalog_entities(
    client: HttpClient, filters: Sequence[str], show: Callable[[str], None]
) -> EntityListing:
    """Every entity that passes one of the filters.

    A page without an answer is requested in smaller pieces. A failed page, a duplicate entity, or a
    number of entities that differs from the catalog's count makes the listing incomplete.
    """
    found = EntityListing()
    sizes, cursor = list(_SIZES), ""
    for _ in range(_MOST_PAGES):
        asked = [("cursor", cursor)] if cursor else [("filter", text) for text in filters]
        query = [*asked, ("limit", str(sizes[0])), ("fields", _FIELDS)]
        answer = await client.get(f"{_ENTITIES_PATH}?{urlencode(query)}", follow=True)
        if answer.outcome is Outcome.TRANSIENT and answer.status == 0 and len(sizes) > 1:
            del sizes[0]
            continue
        page = answer.read_as(_EntityPage)
        if isinstance(page, Missing):
            found.missing = page
            return found
        before = len(found.entities)
        found.take(page, len(answer.body))
        show(f"Read {len(found.entities):,} of {page.total_items:,} entities")
        cursor = page.page_info.next_cursor or ""
        if not cursor:
            return found.ended()
        if excess := found.excess:
            found.missing = excess
            return found
        if len(found.entities) == before:
            found.missing = REPEATED
            return found
    found.missing = report_too_many(_MOST_PAGES, "pages")
    return found


def _read_ref(entity: Entity) -> str | None:
    """The reference of an entity; None for one of an unknown form."""
    kind, metadata = entity.get("kind"), entity.get("metadata")
    if not isinstance(kind, str) or not isinstance(metadata, dict):
        return None
    name, namespace = metadata.get("name"), metadata.get("namespace") or DEFAULT_NAMESPACE
    if not (isinstance(name, str) and isinstance(namespace, str) and kind and name):
        return None
    return str(EntityRef.of(kind, namespace, name))


async def read_catalog(
    client: HttpClient,
    options: CatalogImportOptions,
    show: Callable[[str], None] = lambda text: None,
) -> Snapshot:
    """A snapshot of the catalog without its orphans, which are only counted.

    Rights are the kinds of entities seen: if a kind is missing entirely, the cause is more often a
    failed provider or permission there than removed entities.
    """
    place = options.place
    found = await list_catalog_entities(client, options.filters, show)
    live = {
        ref: one
        for ref, one in found.entities.items()
        if str(_read_annotations(one["metadata"]).get(_ORPHAN)).lower() != "true"
    }
    part = SnapshotPart(
        ENTITIES_PART,
        found.missing is None,
        tuple(_make_catalog_item(place, ref, entity, options) for ref, entity in live.items()),
        ()
        if found.missing is None
        else (ReadingProblem(place, f"entities: {found.missing.reason}"),),
        rights=frozenset(f"entities of kind {ref.partition(':')[0]}" for ref in found.entities),
    )
    orphans = len(found.entities) - len(live)
    return Snapshot((part,), {"orphans": orphans} if orphans else {})


def _make_catalog_item(
    place: str, ref: str, entity: dict[str, Any], options: CatalogImportOptions
) -> ImportedItem:
    uid = entity["metadata"].get("uid")
    annotations = _read_annotations(entity["metadata"])
    return ImportedItem(
        _strip_entity(entity, options.namespace_prefix),
        f"{place}/{ref}",
        f"{place}/entity/{uid}" if isinstance(uid, str) and uid else "",
        marks={
            name: annotations[key]
            for key, name in _MARKS.items()
            if isinstance(annotations.get(key), str)
        },
        raw=entity,
    )


def _strip_entity(entity: Entity, prefix: str) -> Entity:
    """The entity without the other catalog's additions, and with the prefix on its namespaces."""
    metadata = {key: value for key, value in entity["metadata"].items() if key not in _COMPUTED}
    own = _read_annotations(metadata)
    if own:
        metadata["annotations"] = {key: value for key, value in own.items() if key not in _MARKS}
    if prefix:
        metadata["namespace"] = prefix + (metadata.get("namespace") or DEFAULT_NAMESPACE)
    found = {"apiVersion": entity.get("apiVersion"), "kind": entity["kind"], "metadata": metadata}
    if "spec" in entity:
        found["spec"] = _prefix_spec(entity["kind"], entity["spec"], prefix)
    return found


def _read_annotations(metadata: Mapping[str, Any]) -> dict[str, Any]:
    found = metadata.get("annotations")
    return found if isinstance(found, dict) else {}


def _prefix_spec(kind: str, spec: Any, prefix: str) -> Any:
    """The spec with the prefix in its references; one without a namespace means the entity's."""
    if not prefix or not isinstance(spec, dict):
        return spec
    names = {field.name for field in kinds.RELATIONS.get(kind.lower(), ())}
    return {
        key: _prefix_refs(value, prefix) if key in names else value for key, value in spec.items()
    }


def _prefix_refs(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        return [_prefix_refs(one, prefix) for one in value]
    if not isinstance(value, str):
        return value
    try:
        kind, namespace, name = ref.split_ref(value)
    except InputError:
        return value  # which the push reports
    if namespace is None:
        return value
    return f"{kind}:{prefix}{namespace}/{name}" if kind else f"{prefix}{namespace}/{name}"


def _make_catalog_access(options: CatalogImportOptions) -> Access:
    headers = {"authorization": f"Bearer {options.token}"}
    token = Credential.fixed(f"the token for {options.place}", headers)
    return Access(
        base_url=options.address, authorize=lambda _: token if options.token else ANONYMOUS
    )


IMPORTER: Final = ImporterKind(
    id="catalog",
    title="Catalog",
    options=CatalogImportOptions,
    read=lambda context, options, show: read_catalog(context.client, options, show),
    access=_make_catalog_access,
    by_people=True,
)

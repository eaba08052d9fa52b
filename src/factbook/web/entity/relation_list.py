"""Relations of an entity: the first of each type, and all of them as a paged list."""

import re
from collections.abc import Iterable, Mapping, Sequence
from heapq import nsmallest
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from factbook.catalog.store import by_ref
from factbook.catalog.store.by_ref import DisplayName, EntityDetail
from factbook.http.requests import offloaded
from factbook.storage import Database
from factbook.web.site.formats import entity_path, name_of, naturally

# For each type of relation of the catalog, how it reads after the entity's name. The order is
# that of the groups.
CAPTIONS: Final = {
    "dependencyOf": "dependency of",
    "hasPart": "has part",
    "apiProvidedBy": "API provided by",
    "apiConsumedBy": "API consumed by",
    "ownerOf": "owner of",
    "parentOf": "parent of",
    "hasMember": "has member",
    "ownedBy": "owned by",
    "partOf": "part of",
    "dependsOn": "depends on",
    "providesApi": "provides API",
    "consumesApi": "consumes API",
    "childOf": "child of",
    "memberOf": "member of",
}
_ORDER: Final = {type_: place for place, type_ in enumerate(CAPTIONS)}

# Of these the titles are looked up, and whether they exist.
_LOOKED_UP: Final = 200
_SHOWN: Final = 8  # of a group


class EntityRelation(msgspec.Struct, rename="camel", frozen=True):
    """A relation as the catalog shows it."""

    type: str
    target_ref: str


class RelatedEntity(NamedTuple):
    """The other entity of a relation; one that is not in the catalog has no page."""

    ref: str
    kind: str
    title: str
    href: str
    exists: bool = True


class RelationGroup(NamedTuple):
    """The first relations of one type, the number of all, and the page that lists them."""

    type: str
    caption: str
    entities: list[RelatedEntity]
    total: int
    href: str

    @property
    def left(self) -> int:
        """Number of relations that are not shown."""
        return self.total - len(self.entities)


_read = msgspec.json.Decoder(list[EntityRelation]).decode


def of(shown: EntityDetail) -> list[EntityRelation]:
    """Every relation of the entity, by type and target."""
    return _read(shown.stored.relations)


async def groups(
    database: Database, relations: Sequence[EntityRelation], path: str
) -> list[RelationGroup]:
    """The first relations of each type; `path` is the page that lists all of them.

    A few relations are all looked up; of many only the displayed ones, by the names that they were
    chosen by.
    """
    chosen = await offloaded(_chosen, relations)
    refs = sorted({each.target_ref for each in chosen})
    names = await by_ref.display_names(database, refs)
    if len(chosen) < len(relations):
        names = {ref: DisplayName(name_of(ref), name_of(ref)) for ref in names}
    counts = {type_: count for type_, _, count in types(relations)}
    return grouped(((each.type, entity(each.target_ref, names)) for each in chosen), path, counts)


def grouped(
    related: Iterable[tuple[str, RelatedEntity]], path: str, counts: Mapping[str, int]
) -> list[RelationGroup]:
    """Group entities by the type of their relation, in the order of the types and of the titles.

    `counts` has the number of all relations of each type; of many the first eight are kept.
    """
    by_type: dict[str, set[RelatedEntity]] = {}
    for type_, one in related:
        by_type.setdefault(type_, set()).add(one)
    found = []
    for type_ in sorted(by_type, key=lambda type_: (_ORDER.get(type_, len(_ORDER)), type_)):
        # A row that says "and 1 more" would take as much room as the one itself.
        kept = _SHOWN if counts[type_] > _SHOWN + 1 else _SHOWN + 1
        entities = sorted(by_type[type_], key=_by_title)[:kept]
        href = f"{path}?type={quote(type_)}"
        found.append(RelationGroup(type_, caption(type_), entities, counts[type_], href))
    return found


async def listed(
    database: Database, relations: Sequence[EntityRelation]
) -> list[tuple[str, RelatedEntity]]:
    """(caption, entity) of some relations."""
    refs = list(dict.fromkeys(relation.target_ref for relation in relations))
    names = await by_ref.display_names(database, refs)
    return [(caption(one.type), entity(one.target_ref, names)) for one in relations]


def types(relations: Sequence[EntityRelation]) -> list[tuple[str, str, int]]:
    """(type, caption, number) of the relations of each type."""
    counts: dict[str, int] = {}
    for relation in relations:
        counts[relation.type] = counts.get(relation.type, 0) + 1
    return [(type_, caption(type_), count) for type_, count in sorted(counts.items())]


def caption(type_: str) -> str:
    """Caption for a type of relation; for an unknown one its words."""
    return CAPTIONS.get(type_) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", type_).lower()


def entity(ref: str, names: Mapping[str, DisplayName]) -> RelatedEntity:
    """The related entity of a reference; one without a name is not in the catalog."""
    named = names.get(ref)
    title = named.title if named else name_of(ref)
    return RelatedEntity(ref, ref.partition(":")[0], title, entity_path(ref), named is not None)


def _chosen(relations: Sequence[EntityRelation]) -> Sequence[EntityRelation]:
    """All relations if few, else the first of each type by name."""
    if len(relations) <= _LOOKED_UP:
        return relations
    by_type: dict[str, set[EntityRelation]] = {}
    for each in relations:
        by_type.setdefault(each.type, set()).add(each)
    return [each for some in by_type.values() for each in nsmallest(_SHOWN + 1, some, _by_name)]


def _by_name(relation: EntityRelation) -> tuple[str, str]:
    return naturally(name_of(relation.target_ref)), relation.target_ref


def _by_title(related: RelatedEntity) -> tuple[str, str]:
    return naturally(related.title), related.ref

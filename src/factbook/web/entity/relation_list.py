"""Relations of an entity: the first of each type, and all of them as a paged list."""

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from factbook.catalog.store import detail
from factbook.catalog.store.detail import DisplayName, EntityDetail
from factbook.http.requests import offloaded
from factbook.storage import Database
from factbook.web.charts.graph import Edge, Node, caption, relation_rows, relations_graph
from factbook.web.site.formatting import entity_path, name_of, naturally

# Of these the titles are looked up, and whether they exist.
_LOOKED_UP = 200
_OF_A_TYPE = 9  # as a group of the picture shows


class EntityRelation(msgspec.Struct, rename="camel", frozen=True):
    """A relation as the catalog shows it."""

    type: str
    target_ref: str


class Picture(NamedTuple):
    """The relations of an entity as a picture, and those that it shows as a list."""

    drawing: Markup
    rows: list[tuple[str, Node]]


_read = msgspec.json.Decoder(list[EntityRelation]).decode


def of(shown: EntityDetail) -> list[EntityRelation]:
    """Every relation of the entity, by type and target."""
    return _read(shown.stored.relations)


async def picture(
    database: Database, centre: Node, relations: Sequence[EntityRelation], path: str
) -> Picture:
    """The entity between those that it is related to.

    Of few relations all are looked up; of many those that are shown, under the names by which they
    were chosen.
    """
    chosen = await offloaded(_chosen, relations)
    refs = sorted({each.target_ref for each in chosen})
    names = await detail.names(database, refs)
    if len(chosen) < len(relations):
        names = {ref: DisplayName(name_of(ref), name_of(ref)) for ref in names}
    edges = [Edge(each.type, node(each.target_ref, names)) for each in chosen]
    shown = _first_of_each(edges)
    counts = {type_: count for type_, _, count in types(relations)}
    more = {type_: f"{path}?type={quote(type_)}" for type_ in counts}
    drawing = relations_graph(centre, edges, more, counts=counts, ident="relations")
    return Picture(drawing, shown)


async def listed(database: Database, relations: Sequence[EntityRelation]) -> list[tuple[str, Node]]:
    """(caption, entity) of some relations."""
    refs = list(dict.fromkeys(relation.target_ref for relation in relations))
    names = await detail.names(database, refs)
    return [(caption(one.type), node(one.target_ref, names)) for one in relations]


def types(relations: Sequence[EntityRelation]) -> list[tuple[str, str, int]]:
    """(type, caption, number) of the relations of each type."""
    counts: dict[str, int] = {}
    for relation in relations:
        counts[relation.type] = counts.get(relation.type, 0) + 1
    return [(type_, caption(type_), count) for type_, count in sorted(counts.items())]


def node(ref: str, names: Mapping[str, DisplayName]) -> Node:
    """An entity in the picture; one without a name is not in the catalog."""
    found, named = _unknown(ref), names.get(ref)
    return found._replace(title=named.title) if named else found._replace(exists=False)


def _unknown(ref: str) -> Node:
    return Node(ref, ref.partition(":")[0], name_of(ref), entity_path(ref))


def _chosen(relations: Sequence[EntityRelation]) -> Sequence[EntityRelation]:
    """All relations if few, else the first of each type by name."""
    if len(relations) <= _LOOKED_UP:
        return relations
    by_type: dict[str, set[EntityRelation]] = {}
    for each in relations:
        by_type.setdefault(each.type, set()).add(each)
    return [each for some in by_type.values() for each in nsmallest(_OF_A_TYPE, some, _by_name)]


def _by_name(relation: EntityRelation) -> tuple[str, str]:
    return naturally(name_of(relation.target_ref)), relation.target_ref


def _first_of_each(edges: Sequence[Edge]) -> list[tuple[str, Node]]:
    """(caption, entity) of the first of each type, in the order of the picture."""
    counts: dict[str, int] = {}
    found = []
    for name, each in relation_rows(edges):
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= _OF_A_TYPE:
            found.append((name, each))
    return found

"""Relations of an entity in both directions, as readers get them."""

from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from factbook.catalog import compliance, kinds
from factbook.catalog.kinds import Relation
from factbook.catalog.piecewise import ordered

# In a reference a quote is written with a backslash, so these are found between parts alone.
_START, _BETWEEN, _END = '[{"type":"', '"},{"type":"', '"}]'
_TARGET = '","targetRef":"'
_OWNED_BY = "ownedBy"

REVERSE = {
    "ownedBy": "ownerOf",
    "partOf": "hasPart",
    "providesApi": "apiProvidedBy",
    "consumesApi": "apiConsumedBy",
    "dependsOn": "dependencyOf",
    "memberOf": "hasMember",
    "childOf": "parentOf",
}
REVERSE |= {reverse: forward for forward, reverse in REVERSE.items()}


# The types that entities state; what is left of REVERSE shows only at the other end.
STATED = frozenset(field.type for fields in kinds.RELATIONS.values() for field in fields)


def render(relations: Iterable[Relation]) -> str:
    """The JSON array shown to readers: distinct, sorted by type and target."""
    by_type: dict[str, set[str]] = {}
    for type_, target in relations:
        by_type.setdefault(type_, set()).add(target)
    return msgspec.json.encode(
        [
            {"type": type_, "targetRef": target}
            for type_ in sorted(by_type)
            for target in ordered(by_type[type_])
        ]
    ).decode()


class RenderedRelations:
    """The text of `render`, to be changed without a look at the relations that stay.

    An entity with very many relations gets and loses them one by one, as others that point at it
    come and go. Reading and rendering all of them for each would be a thousand times the work.
    """

    def __init__(self, text: str) -> None:
        inner = text[len(_START) : -len(_END)]
        self._parts = inner.split(_BETWEEN) if inner else []

    @property
    def text(self) -> str:
        """The JSON array."""
        return f"{_START}{_BETWEEN.join(self._parts)}{_END}" if self._parts else "[]"

    @property
    def compliance(self) -> int:
        """The bits determined by the relations, as of `compliance.of_relations`."""
        places = (0, len(self._parts) - 1, self._place((_OWNED_BY, "")))
        owners = self._place((_OWNED_BY, "group:"))
        some = {self._parts[at] for at in (*places, owners) if 0 <= at < len(self._parts)}
        return compliance.of_relations(map(_relation, some))

    def change(self, asked: Iterable[Relation], there: set[Relation]) -> bool:
        """Leave of the relations asked for those that are there; returns whether any differed."""
        differed = False
        for relation in asked:
            place = self._place(relation)
            shown = self._parts[place : place + 1] == [part := _part(relation)]
            if relation in there and not shown:
                self._parts.insert(place, part)
            elif shown and relation not in there:
                del self._parts[place]
            else:
                continue
            differed = True
        return differed

    def _place(self, relation: Relation) -> int:
        return bisect_left(self._parts, relation, key=_relation)


def _relation(part: str) -> Relation:
    type_, _, target = part.partition(_TARGET)
    return type_, msgspec.json.decode(f'"{target}"') if "\\" in target else target


def _part(relation: Relation) -> str:
    type_, target = relation
    return f"{type_}{_TARGET}{msgspec.json.encode(target)[1:-1].decode()}"

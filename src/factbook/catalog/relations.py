"""Relations derived from an entity's spec, in both directions.

Source: the catalog API's table of well-known relations. The target need not exist; the inverse
relation appears once it does.
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from factbook.catalog import compliance
from factbook.catalog import ref as refs
from factbook.catalog.piecewise import ordered
from factbook.errors import InputError

Entity = dict[str, Any]
Relation = tuple[str, str]  # type and target reference

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


class _RelationField(NamedTuple):
    name: str
    target_kind: str | None  # of a reference without a kind; None: the reference needs one
    type: str


_OWNER = _RelationField("owner", "group", "ownedBy")
_SYSTEM = _RelationField("system", "system", "partOf")
_DEPENDS_ON = _RelationField("dependsOn", None, "dependsOn")
_DEPENDENCY_OF = _RelationField("dependencyOf", None, "dependencyOf")

FIELDS: dict[str, tuple[_RelationField, ...]] = {
    "component": (
        _OWNER,
        _SYSTEM,
        _RelationField("subcomponentOf", "component", "partOf"),
        _RelationField("providesApis", "api", "providesApi"),
        _RelationField("consumesApis", "api", "consumesApi"),
        _DEPENDS_ON,
        _DEPENDENCY_OF,
    ),
    "api": (_OWNER, _SYSTEM),
    "resource": (_OWNER, _SYSTEM, _DEPENDS_ON, _DEPENDENCY_OF),
    "system": (_OWNER, _RelationField("domain", "domain", "partOf")),
    "domain": (_OWNER, _RelationField("subdomainOf", "domain", "partOf")),
    "group": (
        _RelationField("parent", "group", "childOf"),
        _RelationField("children", "group", "parentOf"),
        _RelationField("members", "user", "hasMember"),
    ),
    "user": (_RelationField("memberOf", "group", "memberOf"),),
}

# The types that entities state; what is left of REVERSE shows only at the other end.
STATED = frozenset(field.type for fields in FIELDS.values() for field in fields)


def derive(kind: str, namespace: str, spec: Entity) -> tuple[set[Relation], list[tuple[str, str]]]:
    """The relations stated by a spec, and (field, message) for each invalid reference."""
    found: set[Relation] = set()
    problems = []
    for field in FIELDS.get(kind, ()):
        value = spec.get(field.name)
        if value is None or (field is _OWNER and not isinstance(value, str)):
            continue
        for text in value if isinstance(value, list) else (value,):
            if not isinstance(text, str) or not text:
                continue  # what kinds.spec_problems reports
            try:
                target = refs.canonical(text, kind=field.target_kind, namespace=namespace)
            except InputError as error:
                problems.append((field.name, f"spec.{field.name}: {error.message}"))
            else:
                found.add((field.type, target))
    return found, problems


def former(kind: str, namespace: str, spec: Entity) -> set[Relation]:
    """Relations that earlier releases also derived from a spec, and may have stored.

    They accepted a list of owners.
    """
    owners = spec.get("owner")
    if not isinstance(owners, list):
        return set()
    return {edge for owner in owners for edge in derive(kind, namespace, {"owner": owner})[0]}


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

"""Relations derived from an entity's spec, in both directions.

Source: the catalog API's table of well-known relations. The target need not exist; the inverse
relation appears once it does.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.piecewise import ordered
from factbook.errors import InputError

Entity = dict[str, Any]
Relation = tuple[str, str]  # type and target reference

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

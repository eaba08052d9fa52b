"""Well-known kinds: the fields and relations of their spec, and the facts of every entity.

Source: the catalog API's descriptor format and its table of well-known relations. Entities of other
kinds and API versions are stored unchecked; only strict validation rejects them. The target of a
relation need not exist; the inverse relation appears once it does.

Compliance is a bit set, computed in the transaction that writes the entity or one that points to
it, so a read reflects the catalog at that moment. OWNER_EXISTS is not stored: deleting a
group would change every entity it owns, so reads look the owner up. A blank value counts as absent,
and so does an owner that is not a string.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import ref as refs
from factbook.catalog.piecewise import ordered
from factbook.errors import InputError

Spec = dict[str, Any]

API_VERSIONS = ("backstage.io/v1alpha1", "backstage.io/v1beta1")
TEMPLATE_API_VERSION = "scaffolder.backstage.io/v1beta3"

# As users write them; references use lower case.
KINDS = (
    *("Component", "API", "Resource", "System", "Domain", "Group", "User", "Location"),
    *("Template", "AiResource"),
)
# The required and the optional fields of each kind's spec, with their types.
REQUIRED: dict[str, dict[str, type]] = {
    "component": {"type": str, "lifecycle": str, "owner": str},
    "api": {"type": str, "lifecycle": str, "owner": str, "definition": str},
    "resource": {"type": str, "owner": str},
    "system": {"owner": str},
    "domain": {"owner": str},
    "group": {"type": str, "children": list},
    "user": {"memberOf": list},
    "location": {},
    "template": {"type": str, "steps": list},
    "airesource": {"type": str, "lifecycle": str, "owner": str},
}
OPTIONAL: dict[str, dict[str, type]] = {
    "component": {
        "system": str,
        "subcomponentOf": str,
        "providesApis": list,
        "consumesApis": list,
        "dependsOn": list,
    },
    "api": {"system": str},
    "resource": {"system": str, "dependsOn": list, "dependencyOf": list},
    "system": {"domain": str, "type": str},
    "domain": {"subdomainOf": str, "type": str},
    "group": {"parent": str, "members": list, "profile": dict},
    "user": {"profile": dict},
    "location": {"type": str, "target": str, "targets": list},
    "template": {"owner": str},
    "airesource": {"system": str},
}
_WORDS: dict[type, str] = {str: "a non-empty string", list: "an array", dict: "an object"}
_NOT_TEXT: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "an empty text",
    bool: "true or false",
    type(None): "null",
}

Relation = tuple[str, str]  # type and target reference

HAS_TITLE = 1
HAS_DESCRIPTION = 2
HAS_TAGS = 4
HAS_OWNER = 8  # spec.owner is a string that is not blank
HAS_TECHDOCS_REF = 16
HAS_OWNER_RELATION = 32  # an ownedBy relation is derived; its target need not exist
HAS_GROUP_OWNER = 64  # and its target is a group
HAS_RELATIONSHIPS = 128  # any relation but ownedBy, in either direction
OWNER_EXISTS = 256  # a target of an ownedBy relation is in the catalog
# An owner was renamed since the entity was written, so its old name may now be another group's.
OWNER_RENAMED = 512

RELATION_BITS = HAS_OWNER_RELATION | HAS_GROUP_OWNER | HAS_RELATIONSHIPS
TECHDOCS_ANNOTATION = "backstage.io/techdocs-ref"
_TARGET = '","targetRef":"'
_OWNED_BY = "ownedBy"

_FORWARD = {
    "ownedBy": "ownerOf",
    "partOf": "hasPart",
    "providesApi": "apiProvidedBy",
    "consumesApi": "apiConsumedBy",
    "dependsOn": "dependencyOf",
    "memberOf": "hasMember",
    "childOf": "parentOf",
}
REVERSE_RELATIONS = _FORWARD | {reverse: forward for forward, reverse in _FORWARD.items()}

Document = Mapping[str, Any]

OWNER_EXISTS_FACT: Final = "ownerExists"


class _RelationField(NamedTuple):
    name: str
    target_kind: str | None  # default kind of a reference; None: the reference must have a kind
    type: str


_OWNER = _RelationField("owner", "group", "ownedBy")


_SYSTEM = _RelationField("system", "system", "partOf")


_DEPENDS_ON = _RelationField("dependsOn", None, "dependsOn")


_DEPENDENCY_OF = _RelationField("dependencyOf", None, "dependencyOf")


# The fields that hold references, with the relations they state.
RELATIONS: dict[str, tuple[_RelationField, ...]] = {
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


def spec_problems(api_version: str, kind: str, spec: Spec) -> list[tuple[str, str]]:
    """(field, message) for each problem in the spec of a well-known kind; usually empty."""
    kind = kind.lower()
    versions = (TEMPLATE_API_VERSION,) if kind == "template" else API_VERSIONS
    if kind not in REQUIRED or api_version not in versions:
        return []
    problems = []
    for field, type_ in REQUIRED[kind].items():
        if field not in spec:
            if not (field == "definition" and spec.get("type") == "mcp-server"):
                problems.append((field, f"spec.{field} is required for this kind"))
        elif not _has_type(spec[field], type_):
            problems.append((field, f"spec.{field} has to be {_WORDS[type_]}"))
    for field, type_ in OPTIONAL[kind].items():
        if field in spec and not _has_type(spec[field], type_):
            problems.append((field, f"spec.{field} has to be {_WORDS[type_]}"))
    return problems


def derive_relations(
    kind: str, namespace: str, spec: Spec
) -> tuple[set[Relation], list[tuple[str, str]]]:
    """The relations stated by a spec, and (field, message) for each invalid reference.

    The field has the position in a list: `dependsOn[1]`.
    """
    found: set[Relation] = set()
    problems = []
    for field in RELATIONS.get(kind, ()):
        value = spec.get(field.name)
        if value is None or value == "":
            continue  # treated as missing; spec_problems reports it
        is_list = isinstance(value, list) and field is not _OWNER
        for position, item in enumerate(value if is_list else (value,)):
            try:
                if not isinstance(item, str) or not item:
                    raise _no_reference(item, field, namespace)
                target = refs.canonicalize_target(item, kind=field.target_kind, namespace=namespace)
            except InputError as error:
                place = f"{field.name}[{position}]" if is_list else field.name
                problems.append((place, f"spec.{place}: {error.message}"))
            else:
                found.add((field.type, target))
    return found, problems


def _no_reference(item: object, field: _RelationField, namespace: str) -> InputError:
    match item:
        case {"kind": str(kind), "name": str(name), **more}:
            meant = f"{kind.lower()}:{more.get('namespace', namespace)}/{name}"
            return InputError(f"is an object; write the reference {meant} instead")
    example = f"{field.target_kind or 'component'}:{namespace}/name"
    return InputError(
        f"is {_NOT_TEXT.get(type(item), 'a number')}, and no reference like {example}"
    )


def former_relations(kind: str, namespace: str, spec: Spec) -> set[Relation]:
    """Additional relations that earlier releases derived from a spec and may have stored.

    Earlier releases accepted a list of owners, and references that no entity can have.
    """
    found: set[Relation] = set()
    for field in RELATIONS.get(kind, ()):
        value = spec.get(field.name)
        are_owners = field is _OWNER and isinstance(value, list)
        for text in value if isinstance(value, list) else (value,):
            # A bare name gets the entity's namespace and the field's kind.
            if isinstance(text, str) and (are_owners or "/" in text or ":" in text):
                with suppress(InputError):
                    edge = refs.canonicalize_ref(text, kind=field.target_kind, namespace=namespace)
                    if are_owners or not refs.is_possible_ref(edge):
                        found.add((field.type, edge))
    return found


def _has_type(value: object, type_: type) -> bool:
    return isinstance(value, type_) and not (type_ is str and not value)


def compute_document_bits(metadata: dict[str, Any], spec: dict[str, Any]) -> int:
    """The bits determined by the entity's own document."""
    return (
        (HAS_TITLE if _is_text(metadata.get("title")) else 0)
        | (HAS_DESCRIPTION if _is_text(metadata.get("description")) else 0)
        | (HAS_TAGS if metadata.get("tags") else 0)
        | (HAS_OWNER if _is_text(spec.get("owner")) else 0)
        | (
            HAS_TECHDOCS_REF
            if _is_text(metadata.get("annotations", {}).get(TECHDOCS_ANNOTATION))
            else 0
        )
    )


def _is_text(text: object) -> bool:
    """Return true if the value is a string that is not blank."""
    return isinstance(text, str) and bool(text.strip())


def compute_relation_bits(relations: Iterable[tuple[str, str]]) -> int:
    """The bits determined by an entity's relations in both directions."""
    bits = 0
    for type_, target in relations:
        if type_ == "ownedBy":
            bits |= HAS_OWNER_RELATION
            if target.startswith("group:"):
                bits |= HAS_GROUP_OWNER
        else:
            bits |= HAS_RELATIONSHIPS
    return bits


def replace_relation_bits(bits: int, relations: Iterable[tuple[str, str]]) -> int:
    """The bits, updated to these relations of the entity."""
    return bits & ~RELATION_BITS | compute_relation_bits(relations)


# Quotes in references are escaped with a backslash, so these only occur between parts.
_START, _BETWEEN, _END = '[{"type":"', '"},{"type":"', '"}]'


# The types that entities state; the other types in REVERSE appear only on the target.
STATED_RELATIONS = frozenset(field.type for fields in RELATIONS.values() for field in fields)


def render_relations(relations: Iterable[Relation]) -> str:
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
    """The text of `render_relations`, changed without reading the unchanged relations.

    An entity with very many relations gains and loses them one at a time, as entities that point at
    it are added and removed. Rendering all relations each time would be a thousand times the work.
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
        """The bits determined by the relations, as from `compute_relation_bits`."""
        places = (0, len(self._parts) - 1, self._place((_OWNED_BY, "")))
        owners = self._place((_OWNED_BY, "group:"))
        some = {self._parts[at] for at in (*places, owners) if 0 <= at < len(self._parts)}
        return compute_relation_bits(map(_parse_relation, some))

    def change(self, asked: Iterable[Relation], there: set[Relation]) -> bool:
        """Add or remove `asked` relations so that only those in `there` remain; true if changed."""
        differed = False
        for relation in asked:
            place = self._place(relation)
            type_, target = relation
            shown = self._parts[place : place + 1] == [
                part := f"{type_}{_TARGET}{msgspec.json.encode(target)[1:-1].decode()}"
            ]
            if relation in there and not shown:
                self._parts.insert(place, part)
            elif shown and relation not in there:
                del self._parts[place]
            else:
                continue
            differed = True
        return differed

    def _place(self, relation: Relation) -> int:
        return bisect_left(self._parts, relation, key=_parse_relation)


def _parse_relation(part: str) -> Relation:
    type_, _, target = part.partition(_TARGET)
    return type_, msgspec.json.decode(f'"{target}"') if "\\" in target else target


def _read_owner(entity: Document) -> Any:
    related = entity.get("relations") or ()
    return min((one["targetRef"] for one in related if one["type"] == "ownedBy"), default=None)


def _field_reader(part: str, name: str) -> Callable[[Document], Any]:
    def value(entity: Document) -> Any:
        found = entity.get(part)
        return found.get(name) if isinstance(found, dict) else None

    return value


# By fact name: a function that reads the fact from an entity as the catalog shows it.
ESSENTIAL_READERS: Final[Mapping[str, Callable[[Document], Any]]] = {
    "owner": _read_owner,
    "type": _field_reader("spec", "type"),
    "lifecycle": _field_reader("spec", "lifecycle"),
    "tags": _field_reader("metadata", "tags"),
    "labels": _field_reader("metadata", "labels"),
}


def list_essentials(entity: Document, *, owner_exists: bool) -> dict[str, Any]:
    """The facts of an entity; missing values are omitted."""
    found = {name: read(entity) for name, read in ESSENTIAL_READERS.items()}
    known = {name: value for name, value in found.items() if value is not None}
    return known if "owner" not in known else {**known, OWNER_EXISTS_FACT: owner_exists}

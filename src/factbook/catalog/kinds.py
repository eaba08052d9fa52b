"""The well-known kinds: the fields that their spec has, and the relations that it states.

Source: the catalog API's descriptor format and its table of well-known relations. Entities of other
kinds and API versions are stored unchecked; only strict validation rejects them. The target of a
relation need not exist; the inverse relation appears once it does.
"""

from contextlib import suppress
from typing import Any, NamedTuple

from factbook.catalog import ref as refs
from factbook.errors import InputError

Spec = dict[str, Any]

API_VERSIONS = ("backstage.io/v1alpha1", "backstage.io/v1beta1")
TEMPLATE_API_VERSION = "scaffolder.backstage.io/v1beta3"

# As they are written; references have them in lower case.
KINDS = (
    *("Component", "API", "Resource", "System", "Domain", "Group", "User", "Location"),
    *("Template", "AiResource"),
)
# For each kind, the fields that spec needs and those that it may have, with their types.
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


class _RelationField(NamedTuple):
    name: str
    target_kind: str | None  # of a reference without a kind; None: the reference needs one
    type: str


_OWNER = _RelationField("owner", "group", "ownedBy")
_SYSTEM = _RelationField("system", "system", "partOf")
_DEPENDS_ON = _RelationField("dependsOn", None, "dependsOn")
_DEPENDENCY_OF = _RelationField("dependencyOf", None, "dependencyOf")

# The fields that hold references, with what they say.
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
        elif not _is(spec[field], type_):
            problems.append((field, f"spec.{field} has to be {_WORDS[type_]}"))
    for field, type_ in OPTIONAL[kind].items():
        if field in spec and not _is(spec[field], type_):
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
            continue  # as if it were left out; spec_problems reports it
        is_list = isinstance(value, list) and field is not _OWNER
        for position, item in enumerate(value if is_list else (value,)):
            try:
                if not isinstance(item, str) or not item:
                    raise _no_reference(item, field, namespace)
                target = refs.target(item, kind=field.target_kind, namespace=namespace)
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
    """Relations that earlier releases also derived from a spec, and may have stored.

    They accepted a list of owners, and references that no entity can have.
    """
    found: set[Relation] = set()
    for field in RELATIONS.get(kind, ()):
        value = spec.get(field.name)
        are_owners = field is _OWNER and isinstance(value, list)
        for text in value if isinstance(value, list) else (value,):
            # Without a namespace and a kind it has those of the entity and the field.
            if isinstance(text, str) and (are_owners or "/" in text or ":" in text):
                with suppress(InputError):
                    edge = refs.canonical(text, kind=field.target_kind, namespace=namespace)
                    if are_owners or not refs.is_possible(edge):
                        found.add((field.type, edge))
    return found


def _is(value: object, type_: type) -> bool:
    return isinstance(value, type_) and not (type_ is str and not value)

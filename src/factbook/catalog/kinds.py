"""The well-known kinds: what their spec has to hold.

Source: the catalog API's descriptor format. Entities of other kinds, and of other API versions, are
stored as they come.
"""

from typing import Any

Spec = dict[str, Any]

API_VERSIONS = ("backstage.io/v1alpha1", "backstage.io/v1beta1")
TEMPLATE_API_VERSION = "scaffolder.backstage.io/v1beta3"

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


def spec_problems(api_version: str, kind: str, spec: Spec) -> list[tuple[str, str]]:
    """(field, message) for whatever the spec of a well-known kind misses; mostly empty."""
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


def _is(value: object, type_: type) -> bool:
    return isinstance(value, type_) and not (type_ is str and not value)

"""Advice on documents: parts without effect, fields in the wrong place, objects of another kind."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from factbook.catalog import kinds
from factbook.catalog.validators import Problem

_METADATA: Final = frozenset(
    {"name", "namespace", "title", "description", "labels", "annotations", "tags", "links"}
)
_SPEC: Final = frozenset(
    field
    for table in (kinds.REQUIRED, kinds.OPTIONAL)
    for fields in table.values()
    for field in fields
) | {field.name for fields in kinds.RELATIONS.values() for field in fields}

# Groups of Kubernetes' own kinds, and of those that are installed most.
_GROUPS: Final = frozenset(
    {"apps", "batch", "autoscaling", "policy", "extensions", "argoproj.io", "tekton.dev"}
)
_DOMAINS: Final = (
    *(".k8s.io", ".openshift.io", ".tekton.dev", ".fluxcd.io", ".knative.dev", ".istio.io"),
    *(".cert-manager.io", ".coreos.com", ".crossplane.io"),
)
_CORE: Final = frozenset(
    {
        *("ConfigMap", "Deployment", "Endpoints", "Event", "LimitRange", "List", "Namespace"),
        "Node",
        *("PersistentVolume", "PersistentVolumeClaim", "Pod", "ReplicationController", "Secret"),
        *("ResourceQuota", "Service", "ServiceAccount"),
    }
)

_FILES: Final = frozenset({"$text", "$json", "$yaml", "$openapi", "$asyncapi"})
# What fills a skeleton of a template in is written so; names hold no others either.
_PLACEHOLDER: Final = re.compile(r"\$\{\{[^{}]*\}\}")
_IN_NAMES: Final = re.compile(r"\$?\{\{[^{}]*\}\}|\{%[^%]*%\}|\$\{[^{}]*\}|<%[^%]*%>")
_LONGEST: Final = 100
_TEXTS: Final = frozenset({"definition", "description"})
_NAMES: Final = frozenset({"apiVersion", "kind", "metadata.name", "metadata.namespace"})
# An entity may have text around a placeholder here, but nothing else than one is no value.
_REQUIRED: Final = frozenset({"owner", "type"})


def unknown_field(key: str) -> str:
    """A message for an unknown field at the root of an entity, with the place where it belongs."""
    if key in _SPEC - _METADATA:
        return f"unknown field at the root; spec.{key} is meant"
    if key in _METADATA:
        return f"unknown field at the root; metadata.{key} is meant"
    return "unknown field; an entity has apiVersion, kind, metadata and spec"


def is_manifest(entity: Mapping[str, Any]) -> bool:
    """Return true if the document is a Kubernetes object."""
    version, kind = entity.get("apiVersion"), entity.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return False
    group = version.rpartition("/")[0]
    if not group:
        return version == "v1" and kind in _CORE
    return group in _GROUPS or f".{group}".endswith(_DOMAINS)


def nearest_kind(kind: str) -> str | None:
    """The well-known kind one edit or a change of case away; None if `kind` is itself well known.

    An edit replaces, omits or adds one letter, or swaps two adjacent ones.
    """
    return next(
        (known for known in kinds.KINDS if kind != known and _is_near(kind.lower(), known.lower())),
        None,
    )


def parts(entity: dict[str, Any], kind: str, document: bytes) -> Iterator[Problem]:
    """Yield each part that is stored but has no effect, with advice.

    `kind` is in lower case; `document` is the entity as it was sent.
    """
    if problem := _odd_kind(entity["apiVersion"], entity["kind"]):
        yield problem
    spec = entity.get("spec", {})
    if kind == "location":
        yield from _targets(spec)
    # Few documents hold what is looked for, and any character may be written as an escape.
    escaped = b"\\" in document and b"\\u" in document
    dollar = escaped or b"$" in document
    if dollar or b"{{" in document or b"{%" in document or b"<%" in document:
        yield from _unfilled(entity)
    if dollar:
        yield from _files("spec", spec)


@lru_cache(1024)  # every entity is asked about, and a catalog has few kinds
def _odd_kind(version: str, kind: str) -> Problem | None:
    """The advice on an object of Kubernetes, or on a kind that is nearly a well-known one."""
    if is_manifest({"apiVersion": version, "kind": kind}):
        return "", "is an object of Kubernetes, stored as an entity of that kind; leave it out"
    if (near := nearest_kind(kind)) and kind.lower() != near.lower():
        return "kind", f'"{kind}" is stored as a kind of its own; {near} is meant?'
    return None


def _targets(spec: dict[str, Any]) -> Iterator[Problem]:
    for field in ("target", "targets"):
        if spec.get(field):
            yield f"spec.{field}", "is stored and not read: push the entities that are there"


def _unfilled(entity: Mapping[str, Any]) -> Iterator[Problem]:
    """The first unfilled placeholder, and the number of other fields that contain one."""
    found = list(placeholders(entity))
    if found:
        path, sign = found[0]
        others = f"; other fields with one: {len(found) - 1}" if len(found) > 1 else ""
        yield path, f"{sign} is a placeholder that nothing fills in{others}"


def placeholders(entity: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The unfilled placeholders of an entity by field; a template has them on purpose.

    The entity is of any form.
    """
    if str(entity.get("kind")).lower() == "template":
        return
    for path, text in _texts(entity):
        form = _IN_NAMES if path in _NAMES else _PLACEHOLDER
        if isinstance(text, str) and (sign := form.search(text)):
            yield path, sign[0][:_LONGEST]


def template_sign(entity: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first field without which there is no entity, and the placeholder in it."""
    spec = _table(entity.get("spec"))
    alone = {f"spec.{field}": str(spec.get(field)).strip() for field in _REQUIRED}
    found = placeholders(entity)
    return next((one for one in found if one[0] in _NAMES or alone.get(one[0]) == one[1]), None)


def _texts(entity: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that a template fills in, each item of a list by itself."""
    metadata, spec = _table(entity.get("metadata")), _table(entity.get("spec"))
    for field in ("apiVersion", "kind"):
        yield field, entity.get(field)
    for field in ("name", "namespace", "title"):
        yield f"metadata.{field}", metadata.get(field)
    for key, value in _table(metadata.get("annotations")).items():
        yield f"metadata.annotations.{key}", value
    for field, value in spec.items():
        if field not in _TEXTS:
            for text in value if isinstance(value, list) else (value,):
                yield f"spec.{field}", text


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _files(path: str, value: Any) -> Iterator[Problem]:
    """Content to be read from another file, such as `$text: ./openapi.yaml`."""
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _files(f"{path}[{position}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in _FILES and len(value) == 1:
                yield path, f"{key}: {str(item)[:_LONGEST]} is not read: put its content there"
            else:
                yield from _files(f"{path}.{key}", item)


def _is_near(a: str, b: str) -> bool:
    if abs(len(a) - len(b)) > 1:
        return False
    at = next(
        (n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    a, b = a[at:], b[at:]
    swapped = a[:2] == b[1::-1] and a[2:] == b[2:]
    return swapped or a[1:] == b[1:] or a[1:] == b or a == b[1:]

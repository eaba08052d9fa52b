"""The catalog API's own rules for an entity, which are stricter than those of a push.

Source: the catalog API's descriptor format. Names, keys and values of labels, keys of annotations
and tags match its patterns; the root has no unknown fields; read-only fields are rejected; a kind
must be known in its API version and `spec` must fit it.
"""

from collections.abc import Iterator
from typing import Any

from factbook.catalog import location, strict_kinds, url, validation
from factbook.catalog import ref as refs
from factbook.catalog.push_rules import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION
from factbook.catalog.validation import Problem, array, form, mapping, record, string, text, visible
from factbook.errors import InputError

_NAME = "1-63 letters, digits and inner hyphens, underscores and dots"
_LONGEST_PREFIXED = 253 + 1 + 63


def problems(entity: Any) -> Iterator[Problem]:
    """Yield every reason why the entity is invalid, as (path, message)."""
    if isinstance(entity, dict) and (what := _taken_for(entity)):
        yield "", what
        return
    yield from _ENTITY("", entity)
    if not isinstance(entity, dict):
        return
    yield from _location_problems(entity.get("metadata"))
    kind, api_version = entity.get("kind"), entity.get("apiVersion")
    if isinstance(kind, str) and isinstance(api_version, str):
        yield from _kind_problems(kind, api_version, entity)


def _taken_for(entity: dict[str, Any]) -> str | None:
    """A message for a document that is not an entity at all, replacing all other checks."""
    return validation.MANIFEST if validation.is_manifest(entity) else validation.taken_for(entity)


def _kind_problems(kind: str, api_version: str, entity: dict[str, Any]) -> Iterator[Problem]:
    spec = entity.get("spec")
    schema = strict_kinds.schema(kind, spec)
    if schema is None:
        near = validation.nearest_kind(kind)
        meant = f"; {near} is meant?" if near else ""
        yield (
            "kind",
            f'"{kind[:63]}" is not a known kind (kinds are matched in their own case){meant}',
        )
    elif api_version not in schema.api_versions:
        known = " or ".join(schema.api_versions)
        yield "apiVersion", f"the kind {kind} is known in {known} only"
    elif "spec" not in entity:
        yield "spec", "is required for this kind"
    elif isinstance(spec, dict):
        yield from schema.spec("spec", spec)
        for field, default in schema.references.items():
            yield from _reference_problems(f"spec.{field}", spec.get(field), default)


def _reference_problems(path: str, value: Any, default: str | None) -> Iterator[Problem]:
    items = value if isinstance(value, list) else [value]
    for position, item in enumerate(items):
        if isinstance(item, str) and item:
            below = f"{path}[{position}]" if items is value else path
            try:
                kind, _, _ = refs.split(item)
            except InputError as error:
                yield below, error.message
            else:
                if kind is None and default is None:
                    yield below, f'"{item}" lacks a kind: write kind:namespace/name'


def _location_problems(metadata: Any) -> Iterator[Problem]:
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(annotations, dict):
        for key in (MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION):
            if isinstance(annotations.get(key), str):
                try:
                    location.parse(annotations[key])
                except InputError as error:
                    yield f"metadata.annotations.{key}", error.message


def _valid_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return validation.valid_object_name(name) and (not slash or validation.valid_subdomain(prefix))


_KEY = form(_valid_key, f"the key has to be [prefix/]name, the name {_NAME}")
_LABEL = form(
    lambda value: not value or validation.valid_object_name(value), f"has to be empty or {_NAME}"
)
_LINK = record(
    {"url": form(url.is_absolute, "has to be a URL with a scheme, e.g. https://example.com")},
    {"title": visible, "icon": visible, "type": text},
)
_METADATA = record(
    {"name": form(validation.valid_object_name, f"has to be {_NAME}")},
    {
        "namespace": form(
            validation.valid_namespace, "has to be 1-63 of a-z, 0-9 and inner hyphens", most=63
        ),
        "uid": text,
        "etag": text,
        "title": text,
        "description": string,
        "labels": mapping(_KEY, _LABEL),
        "annotations": mapping(_KEY, string),
        "tags": array(
            form(validation.valid_tag, "has to be 1-63 of a-z, 0-9, :, +, # and inner hyphens")
        ),
        "links": array(_LINK),
    },
)


def _foreign(path: str, value: Any) -> Iterator[Problem]:
    yield path, validation.unknown_field(path)


_ENTITY = record(
    {
        "apiVersion": form(
            validation.valid_api_version,
            "has to be of the form [prefix/]version, e.g. backstage.io/v1alpha1",
            most=_LONGEST_PREFIXED,
        ),
        "kind": form(
            validation.valid_kind,
            "has to be 1-63 letters and digits, beginning with a letter",
            most=63,
        ),
        "metadata": _METADATA,
    },
    {"spec": record()},
    others=_foreign,
)

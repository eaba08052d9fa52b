"""Validation of a pushed entity's envelope; all problems are reported together.

Source: the catalog API's descriptor format. `apiVersion`, `kind` and `namespace` follow it
strictly; `metadata.name` is more permissive unless the settings demand strict names, because real
cloud accounts are called `Master Account`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from factbook import invisible
from factbook.catalog import advice
from factbook.catalog.validators import (
    Problem,
    Validator,
    array,
    record,
    string,
    strings_by_key,
    text,
    texts,
)

MANIFEST = "this is an object of Kubernetes and no entity: leave it out"

Entity = dict[str, Any]

_DNS_LABEL = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*")
_KIND = re.compile(r"[a-zA-Z][a-z0-9A-Z]{0,62}")
_SUFFIX = re.compile(r"[a-z0-9A-Z]{1,63}")
_TAG = re.compile(r"[a-z0-9:+#]+(?:-[a-z0-9:+#]+)*")
_OBJECT_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
# Browsers and clients resolve them in paths, percent-encoded or not.
DOT_SEGMENTS = frozenset({".", ".."})
_ROOT = frozenset({"apiVersion", "kind", "metadata", "spec"})
_READ_ONLY_ROOT = ("relations", "status")
_READ_ONLY_METADATA = ("uid", "etag")


def problems(entity: Any, *, strict_names: bool = False) -> list[Problem]:
    """All reasons to reject an entity, but size and depth, as (path, message)."""
    if not isinstance(entity, dict):
        return [("", "an entity has to be an object")]
    what = taken_for(entity)
    found = [("", what)] if what else list(_root_problems(entity))
    metadata = entity.get("metadata")
    if isinstance(metadata, dict):
        found += _metadata_problems(metadata, strict_names)
    return found


def too_deep(max_depth: int) -> str:
    """The message for JSON nested deeper than the limit."""
    return f"JSON may be nested {max_depth} deep at most (max_json_depth, by default 64)"


def drop_read_only(entity: Entity) -> list[Problem]:
    """Remove read-only fields, which an entity read from the service carries; returns warnings."""
    warnings = []
    for key in _READ_ONLY_ROOT:
        if key in entity:
            del entity[key]
            warnings.append((key, f"{key} is written by the service; what was sent is ignored"))
    metadata = entity.get("metadata")
    if isinstance(metadata, dict):
        for key in _READ_ONLY_METADATA:
            if key in metadata:
                del metadata[key]
                told = f"metadata.{key} is written by the service; what was sent is ignored"
                warnings.append((f"metadata.{key}", told))
    return warnings


def normal_name(name: str) -> str:
    """The name as stored: trimmed, in Unicode's composed form (NFC), with its case preserved."""
    return (
        name
        if name.isascii() and name == name.strip()
        else unicodedata.normalize("NFC", name.strip())
    )


def taken_for(entity: Entity) -> str | None:
    """A message for a document whose foreign root fields show that it is not an entity."""
    if entity.keys() <= _ROOT:
        return None
    if not entity.keys() & _ROOT:
        return "apiVersion, kind and metadata are not there: this is no entity"
    if advice.is_manifest(entity):
        return MANIFEST
    return None


def _root_problems(entity: Entity) -> Iterator[Problem]:
    for key in sorted(entity.keys() - _ROOT):
        yield key, advice.unknown_field(key)
    for key in ("apiVersion", "kind"):
        if key not in entity:
            yield key, f"{key} is required"
        elif not isinstance(entity[key], str):
            yield key, f"{key} has to be a string"
    if isinstance(entity.get("apiVersion"), str) and not valid_api_version(entity["apiVersion"]):
        yield "apiVersion", "not of the form [prefix/]version, e.g. backstage.io/v1alpha1"
    if isinstance(entity.get("kind"), str) and not valid_kind(entity["kind"]):
        yield "kind", "has to be 1-63 letters and digits, beginning with a letter"
    if "metadata" not in entity:
        yield "metadata", "metadata is required"
    elif not isinstance(entity["metadata"], dict):
        yield "metadata", "metadata has to be an object"
    if "spec" in entity and not isinstance(entity["spec"], dict):
        yield "spec", "spec has to be an object"


def _metadata_problems(metadata: Entity, strict_names: bool) -> Iterator[Problem]:
    yield from _name_problems(metadata, strict_names)
    if "namespace" in metadata:
        namespace = metadata["namespace"]
        if not isinstance(namespace, str) or not valid_namespace(namespace):
            yield "metadata.namespace", "has to be 1-63 of a-z, 0-9 and inner hyphens"
    for key, check in _PARTS.items():
        if key in metadata:
            yield from check(f"metadata.{key}", metadata[key])


def _name_problems(metadata: Entity, strict: bool) -> Iterator[Problem]:
    name = metadata.get("name")
    if name is None:
        yield "metadata.name", "metadata.name is required"
    elif not isinstance(name, str):
        yield "metadata.name", "has to be a string"
    elif strict:
        if not valid_object_name(name):
            yield "metadata.name", "has to be 1-63 of letters, digits and inner -, _ and ."
    elif not _lenient_name(name):
        yield (
            "metadata.name",
            "has to be 1-253 printable characters without / and :, not blank, . or ..",
        )


def _lenient_name(name: str) -> bool:
    if len(name.strip()) > 4 * 253:  # what no name is composed of, and takes long to compose
        return False
    name = normal_name(name)
    is_segment = 0 < len(name) <= 253 and name not in DOT_SEGMENTS
    return is_segment and "/" not in name and ":" not in name and invisible.is_visible(name)


def _link(path: str, link: Any) -> Iterator[Problem]:
    if isinstance(link, dict) and "url" not in link:
        yield f"{path}.url", "url is required"
    yield from _LINK_TEXTS(path, link)


_LINK_TEXTS = record(None, dict.fromkeys(("url", "title", "icon", "type"), text))
_PARTS: Mapping[str, Validator] = {
    "title": text,
    "description": string,
    "labels": strings_by_key,
    "annotations": strings_by_key,
    "tags": texts,
    "links": array(_link),
}


def deeper_than(value: Any, levels: int) -> bool:
    """Return true if JSON is nested deeper than `levels` levels."""
    layer = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        layer = [
            child
            for item in layer
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not layer:
            return False
    return True


def valid_api_version(text: str) -> bool:
    """Return true for `[prefix/]version` with a DNS subdomain as its prefix."""
    return len(text) <= 253 + 1 + 63 and _is_api_version(text)


@lru_cache(maxsize=1024)
def _is_api_version(text: str) -> bool:
    prefix, slash, version = text.rpartition("/")
    if slash and not valid_subdomain(prefix):
        return False
    return _SUFFIX.fullmatch(version) is not None


def valid_kind(text: str) -> bool:
    """Return true for 1-63 letters and digits, beginning with a letter."""
    return _KIND.fullmatch(text) is not None


def valid_namespace(text: str) -> bool:
    """Return true for a DNS label of 1-63 characters, in which inner hyphens may repeat."""
    return len(text) <= 63 and _DNS_LABEL.fullmatch(text) is not None


def valid_object_name(text: str) -> bool:
    """Return true for a strict name: 1-63 letters, digits and inner hyphens, underscores, dots."""
    return len(text) <= 63 and _OBJECT_NAME.fullmatch(text) is not None


def valid_subdomain(text: str) -> bool:
    """Return true for a DNS subdomain of 1-253 characters."""
    return 0 < len(text) <= 253 and all(valid_namespace(part) for part in text.split("."))


def valid_tag(text: str) -> bool:
    """Return true for a strict tag: 1-63 of a-z, 0-9, `:`, `+`, `#` and single inner hyphens."""
    return len(text) <= 63 and _TAG.fullmatch(text) is not None

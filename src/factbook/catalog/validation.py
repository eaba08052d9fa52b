"""Validation of a pushed entity's envelope; all problems are reported together as (path, message).

Source: the catalog API's descriptor format. `apiVersion`, `kind` and `namespace` follow it
strictly; `metadata.name` is more permissive unless the settings demand strict names, because real
cloud accounts are called `Master Account`.

A validator takes the path of a value and the value. Validators of plain values return the problems
instead of yielding them: they run for every value of every pushed entity, and starting a generator
takes longer than the check. Advice is about parts that are stored but have no effect.

The catalog API's own validation is stricter than the rules of a push. URLs are parsed with Ada,
Node.js's URL parser, which reads URLs as browsers do (https://url.spec.whatwg.org).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import can_ada

from factbook import invisible
from factbook.catalog import kinds
from factbook.catalog import ref as refs
from factbook.catalog.kinds import (
    API_VERSIONS,
    KINDS,
    OPTIONAL,
    RELATIONS,
    REQUIRED,
    TEMPLATE_API_VERSION,
)
from factbook.errors import InputError

# Browsers ignore the first at both ends of a URL, and the second anywhere.
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED_IN_URLS = str.maketrans("", "", "\t\n\r")
# The host of a URL with a scheme that has host names.
_HOST = re.compile(
    r"(?:(?:https?|wss?|ftp):[/\\]*(?:[^/\\?#]*@)?|file:[/\\]{2})([^/\\?#]*)", re.IGNORECASE
)
# Characters of a non-plain host: combining marks take quadratic time.
_LONGEST_HOST = 2_000


def is_absolute_url(text: str) -> bool:
    """Return true if the text is an absolute URL."""
    return parse_url(text) is not None


def find_url_host(text: str) -> str:
    """The host, with its port, that a browser opens for this URL; "" if there is none."""
    parsed = parse_url(text)
    return "" if parsed is None else parsed.host


def parse_url(text: str) -> can_ada.URL | None:
    r"""The URL as a browser reads it, or None if the text isn't an absolute URL.

    Code that validates a foreign URL or shows its host must use this parser. Other parsers read
    `https://a.example\@b.example/` as a URL on b.example; browsers open a.example.
    """
    text = text.strip(_CONTROLS_AND_SPACE).translate(_IGNORED_IN_URLS)
    host = _HOST.match(text)
    if host and len(host[1]) > _LONGEST_HOST:
        name = host[1]
        needs_normalization = not name.isascii() or "%" in name or "xn--" in name.lower()
        if needs_normalization:
            return None
    try:
        return can_ada.parse(text)
    except (TypeError, ValueError):  # TypeError: an unpaired surrogate
        return None


MANAGED_BY_LOCATION = "backstage.io/managed-by-location"
MANAGED_BY_ORIGIN_LOCATION = "backstage.io/managed-by-origin-location"

Problem = tuple[str, str]  # where (a path below the entity) and what
Validator = Callable[[str, Any], Iterable[Problem]]

# The characters that JavaScript's trim() removes; str.strip() removes different ones.
BLANKS = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000\ufeff")
)


def anything(path: str, value: Any) -> Iterable[Problem]:
    """Any value."""
    return ()


def string(path: str, value: Any) -> Iterable[Problem]:
    """A string, which may be empty."""
    return () if isinstance(value, str) else ((path, "has to be a string"),)


def text(path: str, value: Any) -> Iterable[Problem]:
    """A string that is not empty."""
    valid = isinstance(value, str) and value
    return () if valid else ((path, "has to be a non-empty string"),)


def visible(path: str, value: Any) -> Iterable[Problem]:
    """A string that is not blank."""
    valid = isinstance(value, str) and value.strip(BLANKS)
    return () if valid else ((path, "has to be a string that is not blank"),)


def string_or_boolean(path: str, value: Any) -> Iterable[Problem]:
    """A string, or true or false."""
    valid = isinstance(value, str | bool)
    return () if valid else ((path, "has to be a string or a boolean"),)


def texts(path: str, value: Any) -> Iterable[Problem]:
    """An array of strings that are not empty."""
    if isinstance(value, list) and all(value) and _STRING.issuperset(map(type, value)):
        return ()
    return _TEXTS(path, value)


def strings_by_key(path: str, value: Any) -> Iterable[Problem]:
    """An object whose values are strings."""
    if isinstance(value, dict) and _STRING.issuperset(map(type, value.values())):
        return ()
    return _STRINGS_BY_KEY(path, value)


def form(valid: Callable[[str], bool], message: str, *, most: int | None = None) -> Validator:
    """A string of at most `most` characters that satisfies `valid`."""

    def check(path: str, value: Any) -> Iterable[Problem]:
        if isinstance(value, str) and (most is None or len(value) <= most) and valid(value):
            return ()
        return ((path, message),)

    return check


def word(*words: str) -> Validator:
    """One of the given strings."""
    return form(words.__contains__, f"has to be {' or '.join(words)}")


def array(items: Validator, *, least: int = 0) -> Validator:
    """An array of at least `least` items, each of which passes the validator."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, "has to be an array"
            return
        if len(value) < least:
            yield path, f"has to have {least} item{'s' if least > 1 else ''} at least"
        for position, item in enumerate(value):
            yield from items(f"{path}[{position}]", item)

    return check


def mapping(keys: Validator, values: Validator) -> Validator:
    """An object whose keys and values each pass a validator."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, "has to be an object"
            return
        for key, item in value.items():
            below = f"{path}.{key}"
            yield from keys(below, key)
            yield from values(below, item)

    return check


def record(
    required: Mapping[str, Validator] | None = None,
    optional: Mapping[str, Validator] | None = None,
    *,
    others: Validator = anything,
) -> Validator:
    """An object with the given fields; any other field is checked with `others`."""
    required, optional = required or {}, optional or {}
    known = {**required, **optional}

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, "has to be an object"
            return
        for name in required:
            if name not in value:
                yield _below(path, name), "is required"
        for name, item in value.items():
            yield from known.get(name, others)(_below(path, name), item)

    return check


_STRING: Final = frozenset({str})
_TEXTS: Final = array(text)
_STRINGS_BY_KEY: Final = mapping(anything, string)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_METADATA: Final = frozenset(
    {"name", "namespace", "title", "description", "labels", "annotations", "tags", "links"}
)
_SPEC: Final = frozenset(
    field
    for table in (kinds.REQUIRED, kinds.OPTIONAL)
    for fields in table.values()
    for field in fields
) | {field.name for fields in kinds.RELATIONS.values() for field in fields}

# API groups of Kubernetes itself, and of the most common extensions.
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
# Placeholders in a template's skeleton; names must not contain the other forms, either.
_PLACEHOLDER: Final = re.compile(r"\$\{\{[^{}]*\}\}")
_IN_NAMES: Final = re.compile(r"\$?\{\{[^{}]*\}\}|\{%[^%]*%\}|\$\{[^{}]*\}|<%[^%]*%>")
_LONGEST: Final = 100
_LONG_TEXTS: Final = frozenset({"definition", "description"})
_NAMES: Final = frozenset({"apiVersion", "kind", "metadata.name", "metadata.namespace"})
# In these fields, text around a placeholder is fine, but a placeholder alone is not a value.
_REQUIRED: Final = frozenset({"owner", "type"})


def unknown_field(key: str) -> str:
    """A message for an unknown field at an entity's root, with the place where it belongs."""
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


def unused_parts(entity: dict[str, Any], kind: str, document: bytes) -> Iterator[Problem]:
    """Yield each part that is stored but has no effect, with advice.

    `kind` is in lower case; `document` is the entity as it was sent.
    """
    if problem := _odd_kind(entity["apiVersion"], entity["kind"]):
        yield problem
    spec = entity.get("spec", {})
    if kind == "location":
        for field in ("target", "targets"):
            if spec.get(field):
                yield f"spec.{field}", "is stored and not read: push the entities that are there"
    # Search the bytes first, as few documents match; any character may be escaped, though.
    escaped = b"\\" in document and b"\\u" in document
    dollar = escaped or b"$" in document
    if dollar or b"{{" in document or b"{%" in document or b"<%" in document:
        yield from _unfilled(entity)
    if dollar:
        yield from _files("spec", spec)


@lru_cache(1024)  # called for every entity, and a catalog has few kinds
def _odd_kind(version: str, kind: str) -> Problem | None:
    """Advice on a Kubernetes object, or on a kind that resembles a well-known one."""
    if is_manifest({"apiVersion": version, "kind": kind}):
        return "", "is an object of Kubernetes, stored as an entity of that kind; leave it out"
    if (near := nearest_kind(kind)) and kind.lower() != near.lower():
        return "kind", f'"{kind}" is stored as a kind of its own; {near} is meant?'
    return None


def _unfilled(entity: Mapping[str, Any]) -> Iterator[Problem]:
    """The first unfilled placeholder, and the number of other fields that contain one."""
    found = list(placeholders(entity))
    if found:
        path, sign = found[0]
        others = f"; other fields with one: {len(found) - 1}" if len(found) > 1 else ""
        yield path, f"{sign} is a placeholder that nothing fills in{others}"


def placeholders(entity: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The unfilled placeholders of an entity by field; none for a template, which needs them.

    The entity may be invalid.
    """
    if str(entity.get("kind")).lower() == "template":
        return
    for path, text in _texts(entity):
        form = _IN_NAMES if path in _NAMES else _PLACEHOLDER
        if isinstance(text, str) and (sign := form.search(text)):
            yield path, sign[0][:_LONGEST]


def template_sign(entity: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first essential field with a placeholder, and the placeholder; None if there is none."""
    spec = _table(entity.get("spec"))
    alone = {f"spec.{field}": str(spec.get(field)).strip() for field in _REQUIRED}
    found = placeholders(entity)
    return next((one for one in found if one[0] in _NAMES or alone.get(one[0]) == one[1]), None)


def _texts(entity: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields that a template fills in, with each item of a list separately."""
    metadata, spec = _table(entity.get("metadata")), _table(entity.get("spec"))
    for field in ("apiVersion", "kind"):
        yield field, entity.get(field)
    for field in ("name", "namespace", "title"):
        yield f"metadata.{field}", metadata.get(field)
    for key, value in _table(metadata.get("annotations")).items():
        yield f"metadata.annotations.{key}", value
    for field, value in spec.items():
        if field not in _LONG_TEXTS:
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


MANIFEST = "this is an object of Kubernetes and no entity: leave it out"

Entity = dict[str, Any]

_DNS_LABEL = re.compile(r"[a-z0-9]+(?:-+[a-z0-9]+)*")
_KIND = re.compile(r"[a-zA-Z][a-z0-9A-Z]{0,62}")
_SUFFIX = re.compile(r"[a-z0-9A-Z]{1,63}")
_TAG = re.compile(r"[a-z0-9:+#]+(?:-[a-z0-9:+#]+)*")
_OBJECT_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
# Browsers and clients resolve these in paths, percent-encoded or not.
DOT_SEGMENTS = frozenset({".", ".."})
_ROOT = frozenset({"apiVersion", "kind", "metadata", "spec"})
_READ_ONLY_ROOT = ("relations", "status")
_READ_ONLY_METADATA = ("uid", "etag")


def problems(entity: Any, *, strict_names: bool = False) -> list[Problem]:
    """All reasons to reject an entity, except size and depth, as (path, message)."""
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
    """Remove the read-only fields of an entity read from the service; returns warnings."""
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
    if is_manifest(entity):
        return MANIFEST
    return None


def _root_problems(entity: Entity) -> Iterator[Problem]:
    for key in sorted(entity.keys() - _ROOT):
        yield key, unknown_field(key)
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
    if len(name.strip()) > 4 * 253:  # too long for any name, and slow to compose
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


_CHECKS: dict[type, Validator] = {str: text, list: array(text), dict: record()}

_PROFILE = record(None, dict.fromkeys(("displayName", "email", "picture"), text))
_PERMISSIONS = {"backstage:permissions": record(None, {"tags": array(string)})}
_PERMITTED = record(None, _PERMISSIONS)
_DECORATORS = array(record(None, {"id": string, "input": record()}))
_BUTTONS = dict.fromkeys(("backButtonText", "createButtonText", "reviewButtonText"), string)
_STEP = record(
    {"action": string},
    {"id": string, "name": string, "input": record(), "if": string_or_boolean} | _PERMISSIONS,
)
_SHOWN = {"if": string_or_boolean, "title": text, "icon": text}
_OUTPUT = record(
    None,
    {
        "links": array(record(None, _SHOWN | {"url": text, "entityRef": text})),
        "text": array(record(None, _SHOWN | {"content": string})),
    },
    others=string,
)
_RELATED: dict[str, dict[str, str | None]] = {
    kind: {field.name: field.target_kind for field in fields} for kind, fields in RELATIONS.items()
} | {"template": {"owner": "group"}, "airesource": {"owner": "group", "system": "system"}}

_STRICT_TEXTS = array(text)
_REMOTE = record({"type": text, "url": text})
_SKILL = dict.fromkeys(("disciplines", "categories", "agents", "dependsOn"), _STRICT_TEXTS) | {
    "allowedTools": text,
    "license": text,
    "compatibility": form(bool, "has to be a string of 1-500 characters", most=500),
}

_FORM = "is not of the form <type>:<target>, as url:https://host/path"
_IGNORED_IN_SCHEMES = str.maketrans("", "", "\t\n\r")

_NAME = "1-63 letters, digits and inner hyphens, underscores and dots"
_LONGEST_PREFIXED = 253 + 1 + 63
_LABEL = form(lambda value: not value or valid_object_name(value), f"has to be empty or {_NAME}")
_LINK = record(
    {"url": form(is_absolute_url, "has to be a URL with a scheme, e.g. https://example.com")},
    {"title": visible, "icon": visible, "type": text},
)


class Schema(NamedTuple):
    """The strict form of a kind: its API versions, its spec and the fields that hold references."""

    api_versions: tuple[str, ...]
    spec: Validator
    references: Mapping[str, str | None]  # field → the default kind of its references


def strict_schema(kind: str, spec: object) -> Schema | None:
    """The strict form of a kind, matched case-sensitively; `type` of the spec may vary it."""
    type_ = spec.get("type") if isinstance(spec, dict) else None
    sub_type = SCHEMAS.get((kind, type_)) if isinstance(type_, str) else None
    return sub_type or SCHEMAS.get((kind, ""))


def _optional_checks(fields: Mapping[str, type]) -> dict[str, Validator]:
    return {field: _CHECKS[type_] for field, type_ in fields.items()}


def _parameter_problems(path: str, value: Any) -> Iterator[Problem]:
    """Check the input of a template: one form, or a list of pages."""
    yield from (array(_PERMITTED) if isinstance(value, list) else _PERMITTED)(path, value)


# Strict checks of fields in addition to their type.
_REFINED: dict[str, dict[str, Validator]] = {
    "resource": {"dependencyOf": anything},
    "group": {"profile": _PROFILE},
    "user": {"profile": _PROFILE},
    "location": {"presence": word("required", "optional")},
    "template": {
        "steps": array(_STEP),
        "lifecycle": text,
        "parameters": _parameter_problems,
        "secrets": record(None, {"schema": record()}),
        "presentation": record(None, {"buttonLabels": record(None, _BUTTONS)}),
        "EXPERIMENTAL_recovery": record(None, {"EXPERIMENTAL_strategy": string}),
        "formDecorators": _DECORATORS,
        "EXPERIMENTAL_formDecorators": _DECORATORS,
        "output": _OUTPUT,
    },
}


def _strict_spec(kind: str, *api_versions: str) -> Schema:
    kind = kind.lower()
    required, optional = _optional_checks(REQUIRED[kind]), _optional_checks(OPTIONAL[kind])
    refined = _REFINED.get(kind, {})
    for field in required.keys() & refined.keys():
        required[field] = refined[field]
    spec = record(required, {**optional, **refined, **required})
    return Schema(api_versions, spec, _RELATED.get(kind, {}))


def _sub_type_schema(
    base: Schema,
    required: Mapping[str, Validator],
    optional: Mapping[str, Validator] | None = None,
    references: Mapping[str, str | None] | None = None,
) -> Schema:
    common = _optional_checks({"type": str, "lifecycle": str, "owner": str})
    spec = record({**common, **required}, {"system": text, **(optional or {})})
    return base._replace(spec=spec, references={**base.references, **(references or {})})


_API = _strict_spec("API", *API_VERSIONS)


_AI = _strict_spec("AiResource", API_VERSIONS[0])


# By kind, and by `spec.type` where a type has its own form.
SCHEMAS: dict[tuple[str, str], Schema] = {
    **{(kind, ""): _strict_spec(kind, *API_VERSIONS) for kind in KINDS},
    ("API", "mcp-server"): _sub_type_schema(_API, {"remotes": array(_REMOTE, least=1)}),
    ("Template", ""): _strict_spec("Template", TEMPLATE_API_VERSION),
    ("AiResource", ""): _AI,
    ("AiResource", "skill"): _sub_type_schema(_AI, {}, _SKILL, {"dependsOn": "airesource"}),
    ("AiResource", "rule"): _sub_type_schema(
        _AI, {"category": text, "rationale": text}, {"disciplines": _STRICT_TEXTS}
    ),
    ("AiResource", "plugin"): _sub_type_schema(
        _AI, {"skills": _STRICT_TEXTS}, {"version": text}, {"skills": "airesource"}
    ),
    ("AiResource", "marketplace"): _sub_type_schema(
        _AI, {"plugins": _STRICT_TEXTS}, {"version": text}, {"plugins": "airesource"}
    ),
}


class LocationRef(NamedTuple):
    """The origin of an entity: a type such as `url`, and a target of that type."""

    type: str
    target: str


def parse_location(text: str) -> LocationRef:
    """Parse a location; the first colon ends the type.

    Raises InputError for an empty part, for a URL without a type, and for a target that a browser
    would run as a script.
    """
    before, _, after = text.partition(":")
    location = LocationRef(before.strip(BLANKS), after.strip(BLANKS))
    if not (location.type and location.target):
        raise InputError(f"{_quote_location(text)} {_FORM}")
    if location.type in ("http", "https"):
        raise InputError(f"{_quote_location(text)} lacks its type: write url:{text[:100]}")
    scheme = location.target.lstrip(_CONTROLS_AND_SPACE).translate(_IGNORED_IN_SCHEMES)
    if scheme[:11].lower() == "javascript:":
        raise InputError(f"{_quote_location(text)} has a script as its target")
    return location


def _quote_location(text: str) -> str:
    return f'the location "{text[:100]}"'


def find_strict_problems(entity: Any) -> Iterator[Problem]:
    """Yield every reason why the entity is invalid, as (path, message)."""
    if isinstance(entity, dict):
        # Other checks would only add noise to a document that isn't an entity at all.
        other_form = MANIFEST if is_manifest(entity) else taken_for(entity)
        if other_form:
            yield "", other_form
            return
    yield from _ENTITY("", entity)
    if not isinstance(entity, dict):
        return
    yield from _location_problems(entity.get("metadata"))
    kind, api_version = entity.get("kind"), entity.get("apiVersion")
    if isinstance(kind, str) and isinstance(api_version, str):
        yield from _kind_problems(kind, api_version, entity)


def _kind_problems(kind: str, api_version: str, entity: dict[str, Any]) -> Iterator[Problem]:
    spec = entity.get("spec")
    schema = strict_schema(kind, spec)
    if schema is None:
        near = nearest_kind(kind)
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
                kind, _, _ = refs.split_ref(item)
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
                    parse_location(annotations[key])
                except InputError as error:
                    yield f"metadata.annotations.{key}", error.message


def _valid_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return valid_object_name(name) and (not slash or valid_subdomain(prefix))


_KEY = form(_valid_key, f"the key has to be [prefix/]name, the name {_NAME}")


_STRICT_METADATA = record(
    {"name": form(valid_object_name, f"has to be {_NAME}")},
    {
        "namespace": form(valid_namespace, "has to be 1-63 of a-z, 0-9 and inner hyphens", most=63),
        "uid": text,
        "etag": text,
        "title": text,
        "description": string,
        "labels": mapping(_KEY, _LABEL),
        "annotations": mapping(_KEY, string),
        "tags": array(form(valid_tag, "has to be 1-63 of a-z, 0-9, :, +, # and inner hyphens")),
        "links": array(_LINK),
    },
)


def _foreign_problems(path: str, value: Any) -> Iterator[Problem]:
    yield path, unknown_field(path)


_ENTITY = record(
    {
        "apiVersion": form(
            valid_api_version,
            "has to be of the form [prefix/]version, e.g. backstage.io/v1alpha1",
            most=_LONGEST_PREFIXED,
        ),
        "kind": form(
            valid_kind,
            "has to be 1-63 letters and digits, beginning with a letter",
            most=63,
        ),
        "metadata": _STRICT_METADATA,
    },
    {"spec": record()},
    others=_foreign_problems,
)

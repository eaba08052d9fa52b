"""The catalog API's own rules for an entity, which are stricter than those of a push."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from factbook.catalog import ref as refs
from factbook.catalog import url, validation
from factbook.catalog.kinds import (
    API_VERSIONS,
    KINDS,
    OPTIONAL,
    RELATIONS,
    REQUIRED,
    TEMPLATE_API_VERSION,
)
from factbook.catalog.sets import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION
from factbook.catalog.validation import (
    BLANKS,
    Problem,
    Validator,
    anything,
    array,
    form,
    mapping,
    record,
    string,
    string_or_boolean,
    text,
    visible,
    word,
)
from factbook.errors import InputError

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

_TEXTS = array(text)
_REMOTE = record({"type": text, "url": text})
_SKILL = dict.fromkeys(("disciplines", "categories", "agents", "dependsOn"), _TEXTS) | {
    "allowedTools": text,
    "license": text,
    "compatibility": form(bool, "has to be a string of 1-500 characters", most=500),
}

_FORM = "is not of the form <type>:<target>, as url:https://host/path"
_CONTROLS_AND_SPACE = "".join(map(chr, range(0x21)))
_IGNORED_IN_SCHEMES = str.maketrans("", "", "\t\n\r")

_NAME = "1-63 letters, digits and inner hyphens, underscores and dots"
_LONGEST_PREFIXED = 253 + 1 + 63
_LABEL = form(
    lambda value: not value or validation.valid_object_name(value), f"has to be empty or {_NAME}"
)
_LINK = record(
    {"url": form(url.is_absolute, "has to be a URL with a scheme, e.g. https://example.com")},
    {"title": visible, "icon": visible, "type": text},
)


class Schema(NamedTuple):
    """The strict form of a kind: its API versions, its spec and the fields that hold references."""

    api_versions: tuple[str, ...]
    spec: Validator
    references: Mapping[str, str | None]  # field → the kind of a reference that has none


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


# What the strict form of a field asks beside its type.
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


# By kind, and by the type in the spec where that has a form of its own.
SCHEMAS: dict[tuple[str, str], Schema] = {
    **{(kind, ""): _strict_spec(kind, *API_VERSIONS) for kind in KINDS},
    ("API", "mcp-server"): _sub_type_schema(_API, {"remotes": array(_REMOTE, least=1)}),
    ("Template", ""): _strict_spec("Template", TEMPLATE_API_VERSION),
    ("AiResource", ""): _AI,
    ("AiResource", "skill"): _sub_type_schema(_AI, {}, _SKILL, {"dependsOn": "airesource"}),
    ("AiResource", "rule"): _sub_type_schema(
        _AI, {"category": text, "rationale": text}, {"disciplines": _TEXTS}
    ),
    ("AiResource", "plugin"): _sub_type_schema(
        _AI, {"skills": _TEXTS}, {"version": text}, {"skills": "airesource"}
    ),
    ("AiResource", "marketplace"): _sub_type_schema(
        _AI, {"plugins": _TEXTS}, {"version": text}, {"plugins": "airesource"}
    ),
}


class LocationRef(NamedTuple):
    """The origin of an entity: a type such as `url`, and a target of that type."""

    type: str
    target: str


def parse_location(text: str) -> LocationRef:
    """Parse a location; the first colon ends the type.

    Raises InputError for an empty part, for an address that lacks its type, and for a target that a
    browser would run as a script.
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
    if isinstance(entity, dict) and (what := _missing_form(entity)):
        yield "", what
        return
    yield from _ENTITY("", entity)
    if not isinstance(entity, dict):
        return
    yield from _location_problems(entity.get("metadata"))
    kind, api_version = entity.get("kind"), entity.get("apiVersion")
    if isinstance(kind, str) and isinstance(api_version, str):
        yield from _kind_problems(kind, api_version, entity)


def _missing_form(entity: dict[str, Any]) -> str | None:
    """A message for a document that is not an entity at all, replacing all other checks."""
    return validation.MANIFEST if validation.is_manifest(entity) else validation.taken_for(entity)


def _kind_problems(kind: str, api_version: str, entity: dict[str, Any]) -> Iterator[Problem]:
    spec = entity.get("spec")
    schema = strict_schema(kind, spec)
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
    return validation.valid_object_name(name) and (not slash or validation.valid_subdomain(prefix))


_KEY = form(_valid_key, f"the key has to be [prefix/]name, the name {_NAME}")


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


def _foreign_problems(path: str, value: Any) -> Iterator[Problem]:
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
    others=_foreign_problems,
)

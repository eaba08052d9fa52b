"""The strict form of each well-known kind, which strict validation asks for.

Source: the catalog API's descriptor format.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from factbook.catalog.kinds import (
    API_VERSIONS,
    KINDS,
    OPTIONAL,
    RELATIONS,
    REQUIRED,
    TEMPLATE_API_VERSION,
)
from factbook.catalog.validation import (
    Problem,
    Validator,
    anything,
    array,
    form,
    record,
    string,
    string_or_boolean,
    text,
    word,
)


class Schema(NamedTuple):
    """The strict form of a kind: its API versions, its spec and the fields that hold references."""

    api_versions: tuple[str, ...]
    spec: Validator
    references: Mapping[str, str | None]  # field → the kind of a reference that has none


def schema(kind: str, spec: object) -> Schema | None:
    """The strict form of a kind, matched case-sensitively; `type` of the spec may vary it."""
    type_ = spec.get("type") if isinstance(spec, dict) else None
    sub_type = SCHEMAS.get((kind, type_)) if isinstance(type_, str) else None
    return sub_type or SCHEMAS.get((kind, ""))


_CHECKS: dict[type, Validator] = {str: text, list: array(text), dict: record()}


def _checks(fields: Mapping[str, type]) -> dict[str, Validator]:
    return {field: _CHECKS[type_] for field, type_ in fields.items()}


def _parameters(path: str, value: Any) -> Iterator[Problem]:
    """Check the input of a template: one form, or a list of pages."""
    yield from (array(_PERMITTED) if isinstance(value, list) else _PERMITTED)(path, value)


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

# What the strict form of a field asks beside its type.
_REFINED: dict[str, dict[str, Validator]] = {
    "resource": {"dependencyOf": anything},
    "group": {"profile": _PROFILE},
    "user": {"profile": _PROFILE},
    "location": {"presence": word("required", "optional")},
    "template": {
        "steps": array(_STEP),
        "lifecycle": text,
        "parameters": _parameters,
        "secrets": record(None, {"schema": record()}),
        "presentation": record(None, {"buttonLabels": record(None, _BUTTONS)}),
        "EXPERIMENTAL_recovery": record(None, {"EXPERIMENTAL_strategy": string}),
        "formDecorators": _DECORATORS,
        "EXPERIMENTAL_formDecorators": _DECORATORS,
        "output": _OUTPUT,
    },
}
_RELATED: dict[str, dict[str, str | None]] = {
    kind: {field.name: field.target_kind for field in fields} for kind, fields in RELATIONS.items()
} | {"template": {"owner": "group"}, "airesource": {"owner": "group", "system": "system"}}


def _strict(kind: str, *api_versions: str) -> Schema:
    kind = kind.lower()
    required, optional = _checks(REQUIRED[kind]), _checks(OPTIONAL[kind])
    refined = _REFINED.get(kind, {})
    for field in required.keys() & refined.keys():
        required[field] = refined[field]
    spec = record(required, {**optional, **refined, **required})
    return Schema(api_versions, spec, _RELATED.get(kind, {}))


def _sub_type(
    base: Schema,
    required: Mapping[str, Validator],
    optional: Mapping[str, Validator] | None = None,
    references: Mapping[str, str | None] | None = None,
) -> Schema:
    common = _checks({"type": str, "lifecycle": str, "owner": str})
    spec = record({**common, **required}, {"system": text, **(optional or {})})
    return base._replace(spec=spec, references={**base.references, **(references or {})})


_TEXTS = array(text)
_REMOTE = record({"type": text, "url": text})
_API = _strict("API", *API_VERSIONS)
_AI = _strict("AiResource", API_VERSIONS[0])
_SKILL = dict.fromkeys(("disciplines", "categories", "agents", "dependsOn"), _TEXTS) | {
    "allowedTools": text,
    "license": text,
    "compatibility": form(bool, "has to be a string of 1-500 characters", most=500),
}

# By kind, and by the type in the spec where that has a form of its own.
SCHEMAS: dict[tuple[str, str], Schema] = {
    **{(kind, ""): _strict(kind, *API_VERSIONS) for kind in KINDS},
    ("API", "mcp-server"): _sub_type(_API, {"remotes": array(_REMOTE, least=1)}),
    ("Template", ""): _strict("Template", TEMPLATE_API_VERSION),
    ("AiResource", ""): _AI,
    ("AiResource", "skill"): _sub_type(_AI, {}, _SKILL, {"dependsOn": "airesource"}),
    ("AiResource", "rule"): _sub_type(
        _AI, {"category": text, "rationale": text}, {"disciplines": _TEXTS}
    ),
    ("AiResource", "plugin"): _sub_type(
        _AI, {"skills": _TEXTS}, {"version": text}, {"skills": "airesource"}
    ),
    ("AiResource", "marketplace"): _sub_type(
        _AI, {"plugins": _TEXTS}, {"version": text}, {"plugins": "airesource"}
    ),
}

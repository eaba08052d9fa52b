"""The JSON Schema of predicates, whose keys are paths: no type could make it.

Source: the module factbook.catalog.predicates, which reads them.
"""

from typing import Any, Final

_PREDICATE: Final = {"$ref": "#/components/schemas/Predicate"}
_PREDICATES: Final = {"type": "array", "items": _PREDICATE}
_PRIMITIVE: Final = {"type": ["string", "number", "boolean"]}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}


def _alone(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An object that has this one member."""
    return {
        "type": "object",
        "properties": {name: schema},
        "required": [name],
        "additionalProperties": False,
    }


_VALUE: Final = [
    _PRIMITIVE,
    _alone("$exists", {"type": "boolean"}),
    _alone("$in", {"type": "array", "items": _PRIMITIVE}),
    _alone("$hasPrefix", {"type": "string"}),
    _alone("$contains", _PRIMITIVE),
]
_TEXT_OR_TEXTS: Final = {"anyOf": [{"type": "string"}, _alone("$in", _TEXTS)]}
_RELATION: Final = {
    "type": "object",
    "properties": {"type": _TEXT_OR_TEXTS, "targetRef": _TEXT_OR_TEXTS},
    "additionalProperties": False,
    "minProperties": 1,
}

PREDICATE: Final[dict[str, Any]] = {
    "title": "Predicate",
    "description": "Which entities are meant: dotted paths with their values, or `$all`, `$any` or "
    "`$not`. Nested 30 deep at most, with 500 conditions at most.",
    "type": "object",
    "anyOf": [
        _alone("$all", _PREDICATES),
        _alone("$any", _PREDICATES),
        _alone("$not", _PREDICATE),
        {
            "properties": {"relations": {"anyOf": [*_VALUE, _alone("$contains", _RELATION)]}},
            "propertyNames": {"pattern": "^(?!\\$)"},
            "additionalProperties": {"anyOf": _VALUE},
        },
    ],
}

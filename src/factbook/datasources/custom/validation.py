"""Report of every mistake of a definition at once.

A definition is read in two steps, and the second needs the result of the first. If the first
fails, the members it could not read are left out, so that the second can report on the rest.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from factbook.datasources.custom.definition import CustomSourceDefinition, parse
from factbook.errors import InvalidItemsError, Problem

_HANDLER: Final = "handlerDefinition"
_SCHEMA: Final = "schema"
# What stands for a wrong value of what has to be there.
_PLACE: Final = "x"
_REQUIRED: Final = ("id", "title")


def read(document: Any) -> CustomSourceDefinition:
    """The definition in a document; raises InvalidItemsError with every mistake."""
    try:
        return parse(document)
    except InvalidItemsError as error:
        found = error.problem_list
    raise InvalidItemsError([*found, *_further(document, found)])


def _further(document: Any, found: Iterable[Problem]) -> list[Problem]:
    """The problems of the document without the members that already have one."""
    paths = [problem["path"] for problem in found]
    if not isinstance(document, dict) or not _is_readable(document, paths):
        return []
    try:
        parse(_without(document, paths))
    except InvalidItemsError as error:
        return [one for one in error.problem_list if _is_news(one["path"], paths)]
    return []


def _is_readable(document: Mapping[str, Any], paths: Iterable[str]) -> bool:
    """True if the second step has something to read."""
    schema = document.get(_SCHEMA)
    is_handled = not any(path.partition(".")[0] == _HANDLER for path in paths)
    return is_handled and isinstance(schema, dict) and _SCHEMA not in paths


def _without(document: Mapping[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    schema: dict[str, Any] = dict(document[_SCHEMA])
    rest = dict(document)
    for path in paths:
        for name in [name for name in schema if f"{path}.".startswith(f"{_SCHEMA}.{name}.")]:
            del schema[name]
        if not path.startswith(f"{_SCHEMA}."):
            rest.pop(path.partition(".")[0].partition("[")[0], None)
    rest[_SCHEMA] = schema or {_PLACE: {"type": "string"}}
    return {name: _PLACE for name in _REQUIRED if name not in rest} | rest


def _is_news(path: str, known: Iterable[str]) -> bool:
    """True if a problem of the reduced document is one of the original and not yet reported."""
    is_made_up = path.startswith(f"{_SCHEMA}.{_PLACE}.") or path in {*_REQUIRED, _SCHEMA}
    of_the_id = path == f"{_HANDLER}.config.id" and "id" in known
    return not (is_made_up or of_the_id or path in known)

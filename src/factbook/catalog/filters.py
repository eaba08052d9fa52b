"""Filters of entities as people write them: parameters, predicates, and filters of definitions.

The filter of a definition is OR between objects, AND inside one, OR in a list value:

    [{"kind": ["component", "api"], "metadata.annotations.github.com/slug": {"exists": true}}]

Keys are dotted paths of the catalog's index; keys and values are compared case-insensitively.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.store.conditions import (
    EXISTS_VALUE,
    SQL,
    AllOf,
    AnyOf,
    Condition,
    EntityRange,
    Has,
    Not,
    flatten_document,
    make_search_text,
)

EntityFilter = Sequence[Mapping[str, Any]]

# SQLite takes expressions 1,000 deep, and PostgreSQL minutes to plan for as many conditions.
MOST_CONDITIONS: Final = 100
MOST_VALUES: Final = 1_000

_OWNER_PATH: Final = "relations.ownedby"

_Rows = set[tuple[str, str]]  # key, value
_Report = Callable[[str, str], None]


def matches_filter(entity_filter: EntityFilter | None, entity: dict[str, Any]) -> bool:
    """Return true if the filter matches the entity; None matches every entity."""
    return entity_filter is None or Matcher(entity).lets_through(entity_filter)


class Matcher:
    """An entity prepared for matching against many filters."""

    def __init__(self, entity: dict[str, Any]) -> None:
        self._rows = _index_rows(entity)
        self._keys = {key for key, _ in self._rows}

    def lets_through(self, entity_filter: EntityFilter | None) -> bool:
        """Return true if the filter matches the entity; None matches every entity."""
        return entity_filter is None or any(
            not self.lacking(conditions) for conditions in entity_filter
        )

    def lacking(self, conditions: Mapping[str, Any]) -> list[str]:
        """The paths of the conditions in one object of a filter that the entity does not meet."""
        return [
            key
            for key, wanted in conditions.items()
            if not _condition_holds(key.lower(), wanted, self._keys, self._rows)
        ]


def make_filter_condition(entity_filter: EntityFilter) -> SQL:
    """The filter as a condition on `entities e`."""
    alternatives = [
        AllOf([_value_condition(key.lower(), wanted) for key, wanted in conditions.items()])
        for conditions in entity_filter
    ]
    sql, values = AnyOf(alternatives).sql()
    return f"({sql})", values


def restrict_to_owner(entity_filter: EntityFilter | None, owner: str) -> EntityFilter:
    """The filter, which then lets through entities of this owner alone."""
    return [{**one, _unused_owner_path(one): owner} for one in entity_filter or [{}]]


def narrow_by_filter(entity_filter: EntityFilter | None, wanted: EntityRange) -> SQL:
    """Additional conditions on `entities e`: kind and namespace, and the filter, if any.

    The text begins with AND, or is empty.
    """
    columns = {"kind": wanted.kind, "namespace": wanted.namespace}
    given = {name: value for name, value in columns.items() if value is not None}
    sql = "".join(f" AND e.{name} = ?" for name in given)
    if entity_filter is None:
        return sql, list(given.values())
    condition, values = make_filter_condition(entity_filter)
    return f"{sql} AND {condition}", [*given.values(), *values]


def parse_entity_filter(value: object, path: str, report: _Report) -> EntityFilter:
    """Parse a filter: a list of objects, or JSON text of one; calls `report` with every problem."""
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            report(path, "is a string but not valid JSON")
            return []
    if not isinstance(value, list) or not value:
        report(path, "has to be a list of objects; leave it out to cover every entity")
        return []
    for position, conditions in enumerate(value):
        _check_conditions(conditions, f"{path}[{position}]", report)
    _check_filter_size(value, path, report)
    return value


def _unused_owner_path(conditions: Mapping[str, Any]) -> str:
    """The path of owners in a spelling that the conditions do not have, so that all of them hold.

    Paths are compared without regard to case, and there are fewer conditions than spellings.
    """
    spellings = itertools.product(*zip(_OWNER_PATH, _OWNER_PATH.upper(), strict=True))
    return next(path for path in map("".join, spellings) if path not in conditions)


def _condition_holds(key: str, wanted: Any, keys: set[str], rows: _Rows) -> bool:
    if isinstance(wanted, dict):
        return (key in keys) is wanted["exists"]
    if isinstance(wanted, list):
        return any(_condition_holds(key, one, keys, rows) for one in wanted)
    value = make_search_text(wanted)
    # What is too long to index equals nothing, as in the catalog's own filters.
    return value != EXISTS_VALUE and (key, value) in rows


def _value_condition(key: str, wanted: Any) -> Condition:
    if isinstance(wanted, dict):
        return Has(key) if wanted["exists"] else Not(Has(key))
    return Has(
        key, [value for one in _as_list(wanted) if (value := make_search_text(one)) != EXISTS_VALUE]
    )


def _as_list(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _index_rows(entity: dict[str, Any]) -> _Rows:
    """The index rows of the entity, including what the catalog keeps in columns and tables."""
    metadata = entity.get("metadata", {})
    columns = {
        "kind": entity.get("kind"),
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace") or DEFAULT_NAMESPACE,
        "metadata.uid": metadata.get("uid"),
    }
    relations = {
        (f"relations.{relation['type']}".lower(), make_search_text(relation["targetRef"]))
        for relation in entity.get("relations", ())
    }
    held = {(key, make_search_text(value)) for key, value in columns.items() if value is not None}
    return {(key, value) for key, value, _ in flatten_document(entity)} | held | relations


def _check_conditions(conditions: object, path: str, report: _Report) -> None:
    if not isinstance(conditions, dict):
        report(path, "has to be an object of dotted paths and values")
        return
    for key, wanted in conditions.items():
        if not key.strip("."):
            report(path, "has an empty path")
        elif any(isinstance(one, str) and "\0" in one for one in (key, *_as_list(wanted))):
            report(path, "has the character NUL, which no entity has")
        elif not _is_condition_value(wanted):
            report(
                f"{path}.{key}",
                'has to be a string, number or boolean, a list of them, or {"exists": true}',
            )


def _check_filter_size(given: list[Any], path: str, report: _Report) -> None:
    conditions = [wanted for one in given if isinstance(one, dict) for wanted in one.values()]
    if len(conditions) > MOST_CONDITIONS or len(given) > MOST_CONDITIONS:
        report(path, f"can have {MOST_CONDITIONS} objects and as many conditions at most")
    if sum(len(_as_list(wanted)) for wanted in conditions) > MOST_VALUES:
        report(path, f"can have {MOST_VALUES} values at most")


def _is_condition_value(wanted: object) -> bool:
    if isinstance(wanted, dict):
        return wanted.keys() == {"exists"} and isinstance(wanted["exists"], bool)
    if isinstance(wanted, list):
        return bool(wanted) and all(isinstance(one, str | int | float) for one in wanted)
    return isinstance(wanted, str | int | float)

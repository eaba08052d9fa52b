"""Entity filters as users write them: query parameters, predicates, and filters in definitions.

The filter of a definition is OR between objects, AND inside one, OR in a list value:

    [{"kind": ["component", "api"], "metadata.annotations.github.com/slug": {"exists": true}}]

Keys are dotted paths of the catalog's index; keys and values are compared case-insensitively.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.store.conditions import (
    EVERYTHING,
    EXISTS_VALUE,
    SQL,
    AllOf,
    AnyOf,
    Condition,
    EntityRange,
    Has,
    HasPrefix,
    Not,
    Related,
    flatten_document,
    make_search_text,
)
from factbook.errors import InputError, meant

EntityFilter = Sequence[Mapping[str, Any]]

# SQLite's limit is 1,000 nested expressions, and PostgreSQL needs minutes to plan that many.
MOST_CONDITIONS: Final = 100
MOST_VALUES: Final = 1_000

# More would exceed what SQLite nests in one expression.
_MOST_FILTER_CONDITIONS = 500
# Few enough for SQLite to nest in one expression, and more than anyone writes by hand.
_MOST_PREDICATE_CONDITIONS = 500
_DEEPEST = 30
_OPERATORS = "$exists, $in, $hasPrefix or $contains"

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
    alternatives = []
    for conditions in entity_filter:
        required: list[Condition] = []
        for path, value in conditions.items():
            key = path.lower()
            if isinstance(value, dict):
                required.append(Has(key) if value["exists"] else Not(Has(key)))
                continue
            texts = [make_search_text(each) for each in _as_list(value)]
            required.append(Has(key, [text for text in texts if text != EXISTS_VALUE]))
        alternatives.append(AllOf(required))
    sql, values = AnyOf(alternatives).sql()
    return f"({sql})", values


def restrict_to_owner(entity_filter: EntityFilter | None, owner: str) -> EntityFilter:
    """The filter, restricted to entities of this owner."""
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
    size_conditions = [wanted for one in value if isinstance(one, dict) for wanted in one.values()]
    if len(size_conditions) > MOST_CONDITIONS or len(value) > MOST_CONDITIONS:
        report(path, f"can have {MOST_CONDITIONS} objects and as many conditions at most")
    if sum(len(_as_list(wanted)) for wanted in size_conditions) > MOST_VALUES:
        report(path, f"can have {MOST_VALUES} values at most")
    return value


def _unused_owner_path(conditions: Mapping[str, Any]) -> str:
    """The owner path in a spelling that is not yet among the conditions, to keep all of them.

    Paths are case-insensitive, and there are more spellings than conditions.
    """
    spellings = itertools.product(*zip(_OWNER_PATH, _OWNER_PATH.upper(), strict=True))
    return next(path for path in map("".join, spellings) if path not in conditions)


def _condition_holds(key: str, wanted: Any, keys: set[str], rows: _Rows) -> bool:
    if isinstance(wanted, dict):
        return (key in keys) is wanted["exists"]
    if isinstance(wanted, list):
        return any(_condition_holds(key, one, keys, rows) for one in wanted)
    value = make_search_text(wanted)
    # As in the catalog's own filters, a value too long to index equals nothing.
    return value != EXISTS_VALUE and (key, value) in rows


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


def _is_condition_value(wanted: object) -> bool:
    if isinstance(wanted, dict):
        return wanted.keys() == {"exists"} and isinstance(wanted["exists"], bool)
    if isinstance(wanted, list):
        return bool(wanted) and all(isinstance(one, str | int | float) for one in wanted)
    return isinstance(wanted, str | int | float)


def parse_filters(filters: Iterable[str]) -> Condition:
    """Parse all `filter` parameters into one condition; without any, it matches every entity.

    Raises InputError for a condition without a key, and for too many conditions.
    """
    sets = [found for text in filters if (found := _parse_filter(text))]
    if sum(map(len, sets)) > _MOST_FILTER_CONDITIONS:
        raise InputError(f"A filter can have {_MOST_FILTER_CONDITIONS} conditions at most.")
    if not sets:
        return EVERYTHING
    alternatives = [AllOf([Has(key, values) for key, values in one.items()]) for one in sets]
    return alternatives[0] if len(alternatives) == 1 else AnyOf(alternatives)


def _parse_filter(text: str) -> dict[str, list[str] | None]:
    """The values of each key; None means that the key exists."""
    found: dict[str, list[str] | None] = {}
    for part in text.replace("\0", "").split(","):  # the index omits NUL
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key:
            raise InputError(f'The filter "{text}" has a condition without a key.')
        key = key.lower()
        values = found.setdefault(key, None)
        if equals and values is None:
            found[key] = [value.lower()]
        elif equals and values is not None:
            values.append(value.lower())
    return found


def parse_predicate(query: Any) -> Condition:
    """Parse a predicate into a condition. Raises InputError naming the invalid part."""
    return _PredicateParser().predicate(query, 0)


def list_predicate_fields(query: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The paths of a valid predicate in lower case, with their values; not those below `$not`."""
    waiting = [query]
    while waiting:
        for key, value in waiting.pop().items():
            if key in ("$all", "$any"):
                waiting += value
            elif not key.startswith("$") and value != {"$exists": False}:
                yield key.lower(), value


class _PredicateParser:
    def __init__(self) -> None:
        self._count = 0

    def predicate(self, query: Any, depth: int) -> Condition:
        if not isinstance(query, dict):
            raise InputError(
                'A predicate is an object such as {"kind": "component"}, '
                f"not {_quote_value(query)}."
            )
        if depth > _DEEPEST:
            raise InputError(f"A predicate can be nested {_DEEPEST} deep at most.")
        self._add(max(1, len(query)))
        for operator, combine in (("$all", AllOf), ("$any", AnyOf)):
            if operator in query:
                parts = _sole_operand(query, operator)
                if not isinstance(parts, list):
                    raise InputError(f"{operator} takes a list of predicates.")
                return combine([self.predicate(part, depth + 1) for part in parts])
        if "$not" in query:
            return Not(self.predicate(_sole_operand(query, "$not"), depth + 1))
        fields = [self._field(key, value) for key, value in query.items()]
        return AllOf(fields) if fields else EVERYTHING

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > _MOST_PREDICATE_CONDITIONS:
            raise InputError(
                f"A predicate can have {_MOST_PREDICATE_CONDITIONS} conditions at most."
            )

    def _field(self, key: str, value: Any) -> Condition:
        if key.startswith("$"):
            near = meant(key, ("$all", "$any", "$not"))
            raise InputError(f'"{key}" is no operator here{near}: use $all, $any, $not or a path.')
        path = key.lower().replace("\0", "")
        if _is_primitive(value):
            return Has(path, [make_search_text(value)])
        match value:
            case {"$exists": bool(wanted), **others} if not others:
                return Has(path) if wanted else Not(Has(path))
            case {"$in": list(values), **others} if not others and all(map(_is_primitive, values)):
                self._add(len(values))
                return Has(path, [make_search_text(one) for one in values])
            case {"$hasPrefix": str(prefix), **others} if not others:
                return HasPrefix(path, make_search_text(prefix))
            case {"$contains": dict(wanted), **others} if not others and path == "relations":
                return self._relation(wanted)
            case {"$contains": wanted, **others} if not others and _is_primitive(wanted):
                return Has(path, [make_search_text(wanted)])
        operator = next(iter(value), None) if isinstance(value, dict) else None
        suggestion = meant(operator, ("$exists", "$in", "$hasPrefix", "$contains"))
        raise InputError(
            f'The value of "{key}" has to be a string, number or boolean, or one of {_OPERATORS}; '
            f"not {_quote_value(value)}{suggestion}."
        )

    def _relation(self, wanted: dict[str, Any]) -> Condition:
        """Match a relation by type, target or both; each is a string or `$in` of strings."""
        if not wanted or wanted.keys() - {"type", "targetRef"}:
            raise InputError("$contains of relations takes an object with type, targetRef or both.")
        types, targets = (
            _relation_values(wanted[name]) if name in wanted else None
            for name in ("type", "targetRef")
        )
        self._add(len(types or ()) + len(targets or ()))
        return Related(types, targets)


def _relation_values(value: Any) -> list[str]:
    match value:
        case str():
            return [make_search_text(value)]
        case {"$in": list(values), **others} if not others and all(
            isinstance(one, str) for one in values
        ):
            return [make_search_text(one) for one in values]
    raise InputError(
        f'type and targetRef are a string or {{"$in": [...]}}, not {_quote_value(value)}.'
    )


def _sole_operand(query: dict[str, Any], operator: str) -> Any:
    if len(query) > 1:
        raise InputError(f"{operator} has to be the only key of its object.")
    return query[operator]


def _is_primitive(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _quote_value(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"

"""The predicate language of the catalog API: JSON with `$all`, `$any`, `$not` and field values.

Source: the catalog API reference. `{}` and an empty `$all` match every entity, an empty `$any`
none.

    {"$all": [{"kind": "component"}, {"$not": {"spec.lifecycle": {"$in": ["experimental"]}}}]}
"""

from collections.abc import Iterator
from typing import Any

from factbook.catalog import search
from factbook.catalog.store.conditions import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Condition,
    Has,
    HasPrefix,
    Not,
    Related,
)
from factbook.errors import InputError, meant

# What SQLite nests in one expression, and what anyone writes by hand.
_MOST = 500
_DEEPEST = 30
_OPERATORS = "$exists, $in, $hasPrefix or $contains"


def parse(query: Any) -> Condition:
    """Parse a predicate into a condition. Raises InputError naming the invalid part."""
    return _Parser().predicate(query, 0)


def fields(query: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The paths of a valid predicate in lower case, with their values; not those below `$not`."""
    waiting = [query]
    while waiting:
        for key, value in waiting.pop().items():
            if key in ("$all", "$any"):
                waiting += value
            elif not key.startswith("$") and value != {"$exists": False}:
                yield key.lower(), value


class _Parser:
    def __init__(self) -> None:
        self._count = 0

    def predicate(self, query: Any, depth: int) -> Condition:
        if not isinstance(query, dict):
            raise InputError(
                f'A predicate is an object such as {{"kind": "component"}}, not {_shown(query)}.'
            )
        if depth > _DEEPEST:
            raise InputError(f"A predicate can be nested {_DEEPEST} deep at most.")
        self._add(max(1, len(query)))
        for operator, combine in (("$all", AllOf), ("$any", AnyOf)):
            if operator in query:
                parts = _alone(query, operator)
                if not isinstance(parts, list):
                    raise InputError(f"{operator} takes a list of predicates.")
                return combine([self.predicate(part, depth + 1) for part in parts])
        if "$not" in query:
            return Not(self.predicate(_alone(query, "$not"), depth + 1))
        fields = [self._field(key, value) for key, value in query.items()]
        return AllOf(fields) if fields else EVERYTHING

    def _add(self, count: int) -> None:
        self._count += count
        if self._count > _MOST:
            raise InputError(f"A predicate can have {_MOST} conditions at most.")

    def _field(self, key: str, value: Any) -> Condition:
        if key.startswith("$"):
            near = meant(key, ("$all", "$any", "$not"))
            raise InputError(f'"{key}" is no operator here{near}: use $all, $any, $not or a path.')
        path = key.lower().replace("\0", "")
        if _is_primitive(value):
            return Has(path, [search.text(value)])
        match value:
            case {"$exists": bool(wanted), **others} if not others:
                return Has(path) if wanted else Not(Has(path))
            case {"$in": list(values), **others} if not others and all(map(_is_primitive, values)):
                self._add(len(values))
                return Has(path, [search.text(one) for one in values])
            case {"$hasPrefix": str(prefix), **others} if not others:
                return HasPrefix(path, search.text(prefix))
            case {"$contains": dict(wanted), **others} if not others and path == "relations":
                return self._relation(wanted)
            case {"$contains": wanted, **others} if not others and _is_primitive(wanted):
                return Has(path, [search.text(wanted)])
        raise InputError(
            f'The value of "{key}" has to be a string, number or boolean, or one of {_OPERATORS}; '
            f"not {_shown(value)}{_near(value)}."
        )

    def _relation(self, wanted: dict[str, Any]) -> Condition:
        """Match a relation by type, target or both; each is a string or `$in` of strings."""
        if not wanted or wanted.keys() - {"type", "targetRef"}:
            raise InputError("$contains of relations takes an object with type, targetRef or both.")
        types, targets = (
            _strings(wanted[name]) if name in wanted else None for name in ("type", "targetRef")
        )
        self._add(len(types or ()) + len(targets or ()))
        return Related(types, targets)


def _strings(value: Any) -> list[str]:
    match value:
        case str():
            return [search.text(value)]
        case {"$in": list(values), **others} if not others and all(
            isinstance(one, str) for one in values
        ):
            return [search.text(one) for one in values]
    raise InputError(f'type and targetRef are a string or {{"$in": [...]}}, not {_shown(value)}.')


def _near(value: Any) -> str:
    """The operators that are like the first one of a value."""
    key = next(iter(value), None) if isinstance(value, dict) else None
    return meant(key, ("$exists", "$in", "$hasPrefix", "$contains"))


def _alone(query: dict[str, Any], operator: str) -> Any:
    if len(query) > 1:
        raise InputError(f"{operator} has to be the only key of its object.")
    return query[operator]


def _is_primitive(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"

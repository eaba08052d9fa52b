"""Conditions of json-rules-engine, rewritten as rules.

    {"all": [{"fact": "hasOwner", "operator": "equal", "value": true}]}

Its names of facts have no source: `Resolve` finds it. Where the engine throws or guesses, since a
fact is missing, a rule is unknown.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from factbook.checks.rules.language import DEEPEST_CONDITION
from factbook.checks.takeover.remarks import Remarks

# The members `source` and `fact` for a name; raises LookupError, whose text says what is wrong.
Resolve = Callable[[str], Mapping[str, str]]

OPERATORS: Final = (
    "equal",
    "notEqual",
    "in",
    "notIn",
    "contains",
    "doesNotContain",
    "lessThan",
    "lessThanInclusive",
    "greaterThan",
    "greaterThanInclusive",
)
# Decorated operators that mean the same as one of ours; `not:` stands before any.
_DECORATED: Final = {
    "everyFact:notEqual": "doesNotContain",
    "everyValue:contains": "containsAll",
    "everyValue:notEqual": "notIn",
    "someFact:equal": "contains",
    "someFact:in": "containsAny",
    "someValue:contains": "containsAny",
    "someValue:equal": "in",
    "swap:contains": "in",
    "swap:in": "contains",
}
# Those that mean the contrary of one of ours.
_CONTRARY: Final = {
    "everyFact:notIn": "containsAny",
    "everyValue:doesNotContain": "containsAny",
    "swap:doesNotContain": "in",
    "swap:notIn": "contains",
}
_NULL: Final = {"equal": "isUnknown", "notEqual": "isKnown"}
_IGNORED: Final = ("name", "priority", "id")
_LEAF: Final = frozenset({"fact", "operator", "value", "path", "params", *_IGNORED})
_STEP: Final = re.compile(
    r"\.(?P<name>[A-Za-z_]\w*)|\[(?P<index>\d+|\*)\]|\[(?:'(?P<single>[^'\\]+)'|\"(?P<double>[^\"\\]+)\")\]",
    re.ASCII,
)


class Translation:
    """Rewrites the conditions of one rule; `shared` are the conditions that others name."""

    def __init__(
        self, resolve: Resolve, remarks: Remarks, shared: Mapping[str, Any] | None = None
    ) -> None:
        self._resolve = resolve
        self._remarks = remarks
        self._shared = shared or {}

    def of(self, condition: object, path: str, depth: int = 0) -> dict[str, Any]:
        """The condition as one of ours; what cannot be rewritten is remarked."""
        if not isinstance(condition, dict):
            self._remarks.refuse(path, "is not a condition")
            return {}
        if depth > 2 * DEEPEST_CONDITION:
            self._remarks.refuse(path, "is nested too deeply, or names itself")
            return {}
        for name in _IGNORED:
            if name in condition and name != "name":
                self._remarks.change(f"{path}.{name}", "is left out; it changes no result")
        if "condition" in condition:
            return self._named(condition["condition"], f"{path}.condition", depth)
        for name in ("all", "any"):
            if name in condition:
                return {name: self._each(condition[name], f"{path}.{name}", depth)}
        if "not" in condition:
            return {"not": self.of(condition["not"], f"{path}.not", depth + 1)}
        return self._leaf(condition, path)

    def _each(self, conditions: object, path: str, depth: int) -> list[dict[str, Any]]:
        if not isinstance(conditions, list) or not conditions:
            self._remarks.refuse(path, "has no conditions; the engine takes that for true")
            return []
        return [self.of(one, f"{path}[{i}]", depth + 1) for i, one in enumerate(conditions)]

    def _named(self, name: object, path: str, depth: int) -> dict[str, Any]:
        if not isinstance(name, str) or name not in self._shared:
            self._remarks.refuse(path, "names a condition that is not there")
            return {}
        return self.of(self._shared[name], path, depth + 1)

    def _leaf(self, condition: dict[str, Any], path: str) -> dict[str, Any]:
        for name in condition.keys() - _LEAF:
            self._remarks.refuse(f"{path}.{name}", "is not known here")
        if condition.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments of a program; facts have none")
        reference = self._reference(condition, path)
        operator = condition.get("operator")
        if "value" not in condition:
            self._remarks.refuse(f"{path}.value", "is missing")
        elif condition["value"] is None:
            return self._compared_with_null(reference, operator, path)
        value = condition.get("value")
        if isinstance(value, dict):
            value = self._other(value, f"{path}.value")
        return self._compared(reference, str(operator), value, path)

    def _compared(
        self, reference: dict[str, Any], operator: str, value: Any, path: str
    ) -> dict[str, Any]:
        if operator.startswith("not:"):
            return {"not": self._compared(reference, operator.removeprefix("not:"), value, path)}
        if operator in _CONTRARY:
            ours = _CONTRARY[operator]
            return {"not": {**reference, "operator": ours, "value": value}}
        if operator not in OPERATORS and operator not in _DECORATED:
            self._remarks.refuse(f"{path}.operator", f"{operator} is not one of the engine's own")
        elif operator in ("in", "notIn"):
            value = self._listed(value, f"{path}.value")
        return {**reference, "operator": _DECORATED.get(operator, operator), "value": value}

    def _listed(self, value: Any, path: str) -> Any:
        if isinstance(value, list) and any(one is None or one in (True, False) for one in value):
            if not all(type(one) in (int, float, str) for one in value):
                self._remarks.refuse(path, "has more than strings and numbers")
        elif isinstance(value, str):
            self._remarks.refuse(path, "is a text, in which the engine looks for a part")
        return value

    def _compared_with_null(
        self, reference: dict[str, Any], operator: object, path: str
    ) -> dict[str, Any]:
        if not isinstance(operator, str) or operator not in _NULL:
            self._remarks.refuse(f"{path}.value", "is null, which only equality can be asked of")
            return reference
        ours = _NULL[operator]
        self._remarks.change(path, f"compares with null; it asks with {ours} now")
        return {**reference, "operator": ours}

    def _other(self, value: dict[str, Any], path: str) -> dict[str, Any]:
        if "fact" not in value:
            self._remarks.refuse(path, "is an object, which no fact is compared with")
            return value
        if value.get("params"):
            self._remarks.refuse(f"{path}.params", "are arguments of a program; facts have none")
        return self._reference(value, path)

    def _reference(self, condition: Mapping[str, Any], path: str) -> dict[str, Any]:
        fact = condition.get("fact")
        try:
            if not isinstance(fact, str) or not fact:
                raise LookupError("is not the name of a fact")
            found: dict[str, Any] = dict(self._resolve(fact))
        except LookupError as error:
            self._remarks.refuse(f"{path}.fact", str(error.args[0]))
            found = {}
        if condition.get("path"):
            inside = jmespath_of(condition["path"])
            if inside is None:
                self._remarks.refuse(f"{path}.path", "has more than names and places")
            elif inside:
                found["path"] = inside
        return found


def jmespath_of(path: object) -> str | None:
    """A JSONPath of names and places as JMESPath: empty for the whole, None for any other."""
    if not isinstance(path, str) or not path.startswith("$"):
        return None
    steps, position = list[str](), 1
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return None
        name = found["name"] or found["single"] or found["double"]
        quoted = name if name is None or name.isidentifier() else f'"{name}"'
        steps.append(f".{quoted}" if name else f"[{found['index']}]")
        position = found.end()
    return "".join(steps).removeprefix(".")

"""Thresholds of RHDH: `<10`, `10-50`, `!=0`, `==true`, of which the first that matches counts."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

_NUMBER: Final = r"-?\d{1,15}(?:\.\d{1,15})?"
_COMPARISON: Final = re.compile(
    rf"(?P<sign>>=|<=|==|!=|>|<)\s*(?P<value>{_NUMBER}|true|false)", re.ASCII
)
_RANGE: Final = re.compile(rf"(?P<low>{_NUMBER})\s*-\s*(?P<high>{_NUMBER})", re.ASCII)
_OPERATORS: Final = {
    ">": "greaterThan",
    ">=": "greaterThanInclusive",
    "<": "lessThan",
    "<=": "lessThanInclusive",
    "==": "equal",
    "!=": "notEqual",
}

Value = float | bool


class Threshold(NamedTuple):
    """An expression as comparisons that all have to hold."""

    comparisons: tuple[tuple[str, Value], ...]

    def conditions(self, fact: Mapping[str, str]) -> list[dict[str, Any]]:
        """The comparisons as conditions on a fact."""
        return [
            {**fact, "operator": _OPERATORS[sign], "value": value}
            for sign, value in self.comparisons
        ]

    def matches(self, value: Value) -> bool:
        """Return true if all comparisons hold for the value."""
        return all(_holds(sign, value, wanted) for sign, wanted in self.comparisons)


def parse(text: object) -> Threshold | None:
    """The threshold in an expression; None if it is none."""
    if not isinstance(text, str):
        return None
    text = text.strip()
    if found := _COMPARISON.fullmatch(text):
        value = _value(found["value"])
        ordered = found["sign"] in (">", ">=", "<", "<=")
        return None if ordered and isinstance(value, bool) else Threshold(((found["sign"], value),))
    if found := _RANGE.fullmatch(text):
        low, high = _value(found["low"]), _value(found["high"])
        return Threshold(((">=", low), ("<=", high))) if low <= high else None
    return None


def first(thresholds: Sequence[Threshold], place: int, fact: Mapping[str, str]) -> dict[str, Any]:
    """The condition that the threshold at a place is the first of them that matches."""
    own = thresholds[place]
    earlier = [
        _joined("all", one.conditions(fact))
        for one in thresholds[:place]
        if any(one.matches(value) and own.matches(value) for value in _samples([one, own]))
    ]
    return _joined("all", [*own.conditions(fact), *({"not": one} for one in earlier)])


def some(conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The condition that one of several holds."""
    return _joined("any", conditions)


def _joined(name: str, conditions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return conditions[0] if len(conditions) == 1 else {name: list(conditions)}


def _samples(thresholds: Sequence[Threshold]) -> list[Value]:
    """A value on either side of everything that is compared with."""
    bounds = sorted({value for one in thresholds for _, value in one.comparisons})
    if any(isinstance(value, bool) for value in bounds):
        return [True, False]
    between = [(low + high) / 2 for low, high in pairwise(bounds)]
    return [bounds[0] - 1, *bounds, *between, bounds[-1] + 1]


def _value(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)


def _holds(sign: str, value: Value, wanted: Value) -> bool:
    match sign:
        case ">":
            return value > wanted
        case ">=":
            return value >= wanted
        case "<":
            return value < wanted
        case "<=":
            return value <= wanted
        case "==":
            return value == wanted
    return value != wanted

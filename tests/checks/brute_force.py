"""A slow evaluator of conditions, written from their description alone, to compare with.

It reads the JSON of a condition each time. True and false are pass and fail, None is unknown.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

Facts = Mapping[str, Mapping[str, Any]]
Reasons = Mapping[str, Mapping[str, str]]


def truth(rule: Mapping[str, Any], facts: Facts, reasons: Reasons, now: int) -> bool | None:
    if "all" in rule:
        parts = [truth(one, facts, reasons, now) for one in rule["all"]]
        return False if False in parts else None if None in parts else True
    if "any" in rule:
        parts = [truth(one, facts, reasons, now) for one in rule["any"]]
        return True if True in parts else None if None in parts else False
    if "not" in rule:
        found = truth(rule["not"], facts, reasons, now)
        return None if found is None else not found
    return leaf_truth(rule, facts, reasons, now)


def leaf_truth(rule: Mapping[str, Any], facts: Facts, reasons: Reasons, now: int) -> bool | None:
    value = facts.get(rule["source"], {}).get(rule["fact"])
    operator, wanted = rule["operator"], rule.get("value")
    if operator == "isKnown":
        return value is not None
    if operator == "isUnknown":
        return value is None
    if operator == "reasonIs":
        return value is None and reason(rule, reasons) == wanted
    if isinstance(wanted, dict) and "source" in wanted:
        wanted = facts.get(wanted["source"], {}).get(wanted["fact"])
    if value is None or (wanted is None and operator not in ("isEmpty", "isNotEmpty")):
        return None
    return compare(operator, value, wanted, now)


def reason(rule: Mapping[str, Any], reasons: Reasons) -> str:
    known = reasons.get(rule["source"], {})
    places = [rule["fact"], rule["fact"].split(".")[0], ""]
    return next((known[place] for place in places if place in known), "never-collected")


def compare(operator: str, value: Any, wanted: Any, now: int) -> bool:
    if operator in TIMES:
        moment = datetime.fromtimestamp(now / 1000, UTC)
        return TIMES[operator](datetime.fromisoformat(value), wanted, moment)
    return TESTS[operator](value, wanted)


def limit(wanted: str | dict[str, int], moment: datetime) -> datetime:
    if isinstance(wanted, dict):
        return moment + timedelta(**wanted)
    return datetime.fromisoformat(wanted)


TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equal": lambda value, wanted: bool(value == wanted),
    "notEqual": lambda value, wanted: bool(value != wanted),
    "in": lambda value, wanted: value in wanted,
    "notIn": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: wanted in value,
    "doesNotContain": lambda value, wanted: wanted not in value,
    "lessThan": lambda value, wanted: bool(value < wanted),
    "lessThanInclusive": lambda value, wanted: bool(value <= wanted),
    "greaterThan": lambda value, wanted: bool(value > wanted),
    "greaterThanInclusive": lambda value, wanted: bool(value >= wanted),
    "startsWith": lambda value, wanted: bool(value[: len(wanted)] == wanted),
    "endsWith": lambda value, wanted: bool(value[::-1][: len(wanted)] == wanted[::-1]),
    "matches": lambda value, wanted: re.search(wanted, value) is not None,
    "anyMatches": lambda value, wanted: any(
        isinstance(one, str) and re.search(wanted, one) is not None for one in value
    ),
    "containsAny": lambda value, wanted: any(one in value for one in wanted),
    "containsAll": lambda value, wanted: all(one in value for one in wanted),
    "isEmpty": lambda value, _: len(value) == 0,
    "isNotEmpty": lambda value, _: len(value) != 0,
    "sizeAtLeast": lambda value, wanted: len(value) >= wanted,
    "sizeAtMost": lambda value, wanted: len(value) <= wanted,
}

TIMES: Mapping[str, Callable[[datetime, Any, datetime], bool]] = {
    "before": lambda value, wanted, moment: value < limit(wanted, moment),
    "after": lambda value, wanted, moment: value > limit(wanted, moment),
    "olderThan": lambda value, wanted, moment: value < moment - timedelta(**wanted),
    "newerThan": lambda value, wanted, moment: value > moment - timedelta(**wanted),
}

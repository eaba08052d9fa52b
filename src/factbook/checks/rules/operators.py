"""The operators of conditions: which facts each takes, which value it wants, and its test."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from factbook.checks.rules import comparisons, wanted_values
from factbook.checks.rules.fact_reference import FactReference, read_reference
from factbook.checks.rules.wanted_values import ValueForm
from factbook.errors import not_a_member, one_of
from factbook.facts.members import Report
from factbook.facts.schema import FactType

# A test of a value; raises TypeError or ValueError for a value that it does not fit.
Test = Callable[[Any], bool]

_ORDERED: Final = frozenset[FactType]({"integer", "float"})
_SCALARS: Final = frozenset[FactType]({"integer", "float", "string", "boolean"})
_LISTED: Final = frozenset[FactType]({"integer", "float", "string"})
_TEXT: Final = frozenset[FactType]({"string"})
_TEXT_OR_SET: Final = frozenset[FactType]({"string", "set"})
_SETS: Final = frozenset[FactType]({"set"})
_SIZED: Final = frozenset[FactType]({"string", "set", "object"})
_TIMES: Final = frozenset[FactType]({"datetime"})
_ALL: Final = _SCALARS | _TIMES | _SIZED


class Operator(NamedTuple):
    """An operator; `words` is how a sentence tells it, with `{}` for the value.

    `test` makes the test of a value from what is wanted; it is None where the test needs more than
    the value: the time of the evaluation, what is known of the fact, or the cost of the search.
    `takes_fact` tells if the value may be another fact.
    """

    name: str
    types: frozenset[FactType]
    form: ValueForm
    words: str
    test: Callable[[Any], Test] | None = None
    takes_fact: bool = False


_TABLE: Final = (
    Operator("equal", _SCALARS, ValueForm.SCALAR, "is {}", comparisons.equal, True),
    Operator("notEqual", _SCALARS, ValueForm.SCALAR, "is not {}", comparisons.not_equal, True),
    Operator("in", _LISTED, ValueForm.LIST, "is one of {}", comparisons.is_in, True),
    Operator("notIn", _LISTED, ValueForm.LIST, "is none of {}", comparisons.is_not_in, True),
    Operator("contains", _TEXT_OR_SET, ValueForm.ITEM, "contains {}", comparisons.contains, True),
    Operator(
        "doesNotContain",
        _TEXT_OR_SET,
        ValueForm.ITEM,
        "does not contain {}",
        comparisons.lacks,
        True,
    ),
    Operator("lessThan", _ORDERED, ValueForm.NUMBER, "is less than {}", comparisons.less, True),
    Operator(
        "lessThanInclusive", _ORDERED, ValueForm.NUMBER, "is at most {}", comparisons.at_most, True
    ),
    Operator("greaterThan", _ORDERED, ValueForm.NUMBER, "is more than {}", comparisons.more, True),
    Operator(
        "greaterThanInclusive",
        _ORDERED,
        ValueForm.NUMBER,
        "is at least {}",
        comparisons.at_least,
        True,
    ),
    Operator("startsWith", _TEXT, ValueForm.TEXT, "starts with {}", comparisons.starts, True),
    Operator("endsWith", _TEXT, ValueForm.TEXT, "ends with {}", comparisons.ends, True),
    Operator("matches", _TEXT, ValueForm.PATTERN, "matches {}"),
    Operator("anyMatches", _SETS, ValueForm.PATTERN, "has one that matches {}"),
    Operator("containsAny", _SETS, ValueForm.LIST, "contains any of {}", comparisons.any_of, True),
    Operator("containsAll", _SETS, ValueForm.LIST, "contains all of {}", comparisons.all_of, True),
    Operator("isEmpty", _SIZED, ValueForm.NOTHING, "is empty", comparisons.empty),
    Operator("isNotEmpty", _SIZED, ValueForm.NOTHING, "is not empty", comparisons.not_empty),
    Operator(
        "sizeAtLeast", _SIZED, ValueForm.COUNT, "has a size of at least {}", comparisons.large
    ),
    Operator("sizeAtMost", _SIZED, ValueForm.COUNT, "has a size of at most {}", comparisons.small),
    Operator("before", _TIMES, ValueForm.TIME, "is before {}", None, True),
    Operator("after", _TIMES, ValueForm.TIME, "is after {}", None, True),
    Operator("olderThan", _TIMES, ValueForm.DURATION, "is more than {} ago"),
    Operator("newerThan", _TIMES, ValueForm.DURATION, "is less than {} ago"),
    Operator(
        "versionAtLeast",
        _TEXT,
        ValueForm.VERSION,
        "is version {} or later",
        comparisons.version,
        True,
    ),
    Operator(
        "versionBelow",
        _TEXT,
        ValueForm.VERSION,
        "is before version {}",
        comparisons.older_version,
        True,
    ),
    Operator("isKnown", _ALL, ValueForm.NOTHING, "is known"),
    Operator("isUnknown", _ALL, ValueForm.NOTHING, "is unknown"),
    Operator("reasonIs", _ALL, ValueForm.REASON, "is unknown because of {}"),
    Operator("freshWithin", _ALL, ValueForm.DURATION, "was collected within the last {}"),
)

OPERATORS: Final[Mapping[str, Operator]] = {one.name: one for one in _TABLE}

_TEXT_FORMS: Final = frozenset(
    {ValueForm.SCALAR, ValueForm.ITEM, ValueForm.LIST, ValueForm.TEXT, ValueForm.PATTERN}
)
# Operators that compare text: those that `caseSensitive` is for.
OF_TEXT: Final = frozenset(one.name for one in _TABLE if one.form in _TEXT_FORMS)
PATTERNS: Final = frozenset(one.name for one in _TABLE if one.form is ValueForm.PATTERN)
# Operators of other languages, in lower case, and ours.
_ELSEWHERE: Final[Mapping[str, str]] = {
    **dict.fromkeys(("=", "==", "eq", "is"), "equal"),
    **dict.fromkeys(("!=", "<>", "ne", "neq"), "notEqual"),
    **dict.fromkeys(("<", "lt"), "lessThan"),
    **dict.fromkeys(("<=", "lte"), "lessThanInclusive"),
    **dict.fromkeys((">", "gt"), "greaterThan"),
    **dict.fromkeys((">=", "gte"), "greaterThanInclusive"),
    **dict.fromkeys(("=~", "regex", "regexp", "like", "ilike"), "matches"),
    **dict.fromkeys(("includes", "has"), "contains"),
    "exists": "isKnown",
}

# They ask about the knowledge of a fact, and are not unknown themselves, unless an object is too
# large for a path.
KNOWLEDGE: Final = frozenset({"isKnown", "isUnknown", "reasonIs"})


_REFERENCE: Final = ("source", "fact", "path")


def read_value(operator: object, document: Mapping[str, Any], path: str, report: Report) -> Any:
    """Parse the members `operator` and `value` of a condition; reports mistakes with their path."""
    if "operator" not in document:
        report(f"{path}.operator", "is required")
        return None
    found = OPERATORS.get(operator) if isinstance(operator, str) else None
    if found is None:
        ours = _ELSEWHERE.get(str(operator).lower())
        report(f"{path}.operator", one_of(operator, OPERATORS, [ours] if ours else None))
        return None
    if found.form is ValueForm.NOTHING:
        if document.get("value") is not None:
            report(f"{path}.value", f"is not for the operator {found.name}, which takes none")
        return None
    if "value" not in document:
        report(f"{path}.value", f"is required by the operator {found.name}")
        return None
    value = document["value"]
    if _is_reference(value):
        return _read_other(found, value, f"{path}.value", report)
    return wanted_values.read(found.form, value, f"{path}.value", report)


def _is_reference(value: object) -> bool:
    return isinstance(value, dict) and "source" in value and "fact" in value


def _read_other(
    operator: Operator, value: Mapping[str, Any], path: str, report: Report
) -> FactReference:
    if not operator.takes_fact:
        report(path, f"cannot be another fact for the operator {operator.name}")
    for name in value.keys() - set(_REFERENCE):
        report(f"{path}.{name}", not_a_member(name, "reference to a fact", _REFERENCE))
    return read_reference(value, path, report)

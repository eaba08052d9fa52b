"""The language of rules: conditions, operators and values, and a rule in English.

A condition is a tree of `all`, `any` and `not` over comparisons. A comparison names a fact by its
source and its name, and for an object a path inside; its operator says which facts it takes and
the form of its value. Parsing reports every mistake with its path.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec import Struct

from factbook import clock, user_patterns
from factbook.catalog import kinds
from factbook.checks.rules import comparisons
from factbook.checks.rules.comparisons import Test
from factbook.clock import DAY
from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import expression_depth
from factbook.errors import InputError, not_a_member, one_of
from factbook.facts import datasource
from factbook.facts.datasource import LIFETIME_UNITS, TIMEOUT_UNITS, Duration
from factbook.facts.members import Report
from factbook.facts.schema import REASONS, FactType

# The catalog document of the entity.
ENTITY: Final = "entity"
# The states of other checks.
CHECKS: Final = "checks"
_LONGEST_NAME: Final = 300
# Few enough that the stack is never too short for them, wherever an evaluation begins.
_DEEPEST_EXPRESSION: Final = 50
MOST_LISTED_VALUES: Final = 500
LONGEST_VALUE: Final = 1_000
# A hundred years.
_LONGEST_DURATION: Final = 36_525 * DAY
DURATION_UNITS: Final = TIMEOUT_UNITS | LIFETIME_UNITS
_MOST_COUNTED: Final = 1_000_000_000
_ORDERED: Final = frozenset[FactType]({"integer", "float"})
_SCALARS: Final = frozenset[FactType]({"integer", "float", "string", "boolean"})
_LISTED: Final = frozenset[FactType]({"integer", "float", "string"})
_TEXT: Final = frozenset[FactType]({"string"})
_TEXT_OR_SET: Final = frozenset[FactType]({"string", "set"})
_SETS: Final = frozenset[FactType]({"set"})
_SIZED: Final = frozenset[FactType]({"string", "set", "object"})
_TIMES: Final = frozenset[FactType]({"datetime"})
_ALL: Final = _SCALARS | _TIMES | _SIZED
# They ask about the knowledge of a fact, and are not unknown themselves, unless an object is too
# large for a path.
KNOWLEDGE_OPERATORS: Final = frozenset({"isKnown", "isUnknown", "reasonIs"})
_REFERENCE_MEMBERS: Final = ("source", "fact", "path")
# More than any rule that people can follow.
MOST_CONDITIONS: Final = 200
DEEPEST_CONDITION: Final = 10
_NODES: Final = ("all", "any", "not")
_LEAF: Final = frozenset({"source", "fact", "path", "operator", "value", "caseSensitive"})
_MOST_NAMED_VALUES: Final = 10
_MOST_NAMED_CONDITIONS: Final = 20
# Words of a comparison with a time that moves on.
_FROM_NOW: Final = {"before": "is less than {} from now", "after": "is more than {} from now"}


class FactReference(Struct, frozen=True):
    """A fact; `path` is the JMESPath expression of the part of an object that is meant."""

    source: str
    fact: str
    path: str | None = None

    def __str__(self) -> str:
        inside = f" at {self.path}" if self.path else ""
        return f"{self.source} {self.fact}{inside}"


def read_fact_reference(document: Mapping[str, Any], path: str, report: Report) -> FactReference:
    """Parse the members `source`, `fact` and `path`; reports every mistake with its path."""
    for name in ("source", "fact"):
        value = document.get(name)
        if name not in document:
            report(f"{path}.{name}", "is required")
        elif not isinstance(value, str) or not 0 < len(value.strip()) <= _LONGEST_NAME:
            report(f"{path}.{name}", f"has to be a string of 1 to {_LONGEST_NAME} characters")
    inside = document.get("path")
    if inside is not None:
        _check_expression(inside, document.get("source"), f"{path}.path", report)
    source, fact = str(document.get("source")), str(document.get("fact"))
    # Known beside the document, and kept up to date where the catalog itself answers.
    if (source, fact) == (ENTITY, kinds.OWNER_EXISTS_FACT):
        source = "entity-ownership"
    return FactReference(source, fact, inside)


def _check_expression(text: object, source: object, path: str, report: Report) -> None:
    if not isinstance(text, str) or not text.strip():
        report(path, "has to be a JMESPath expression")
    elif source in (ENTITY, CHECKS):
        report(path, f"is for facts of type object; the source `{source}` has none")
    else:
        try:
            found = extraction.compile_expression(text)
        except InputError as error:
            report(path, error.message)
            return
        if expression_depth(found.parsed.parsed) > _DEEPEST_EXPRESSION:
            report(path, f"is nested more than {_DEEPEST_EXPRESSION} levels deep")


class ValueForm(Enum):
    """Kind of value that an operator wants."""

    NOTHING = "no value"
    SCALAR = "a string, a number, true or false"
    ITEM = "a string or a number"
    LIST = "a list of strings or numbers"
    NUMBER = "a number"
    COUNT = "a whole number from 0 on"
    TEXT = "a string that is not empty"
    PATTERN = "a regular expression"
    TIME = 'an ISO 8601 date, or date and time with a UTC offset, or {"days": 30} from now'
    DURATION = 'a duration such as {"days": 30}'
    VERSION = "a version such as 1.4 or 2.0.0-rc.1"
    REASON = "a reason for unknown values"


def read_form(form: ValueForm, value: object, path: str, report: Report) -> Any:
    """The value as it is given, if it has the form; else the mistake is reported."""
    problem = _FORM_CHECKS[form](value)
    if problem:
        report(path, problem)
    return value


def parse_moment(value: str) -> int:
    """The time of an ISO 8601 date, at its start, or date and time; raises ValueError."""
    found = clock.milliseconds(value if "T" in value.upper() else f"{value}T00:00Z")
    if found is None:
        raise ValueError(value)
    return found


def _problem_unless(fits: bool, form: ValueForm) -> str | None:
    return None if fits else f"has to be {form.value}"


def _is_filled_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= LONGEST_VALUE


def _is_finite_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_comparable_item(value: object) -> bool:
    return (isinstance(value, str) and len(value) <= LONGEST_VALUE) or _is_finite_number(value)


def _check_scalar(value: object) -> str | None:
    return _problem_unless(isinstance(value, bool) or _is_comparable_item(value), ValueForm.SCALAR)


def _check_item(value: object) -> str | None:
    return _problem_unless(_is_comparable_item(value), ValueForm.ITEM)


def _check_list(value: object) -> str | None:
    if not isinstance(value, list) or not value or not all(map(_is_comparable_item, value)):
        return f"has to be {ValueForm.LIST.value} that is not empty"
    return (
        f"can have {MOST_LISTED_VALUES} items at most" if len(value) > MOST_LISTED_VALUES else None
    )


def _check_number(value: object) -> str | None:
    return _problem_unless(_is_finite_number(value), ValueForm.NUMBER)


def _check_count(value: object) -> str | None:
    return _problem_unless(type(value) is int and 0 <= value <= _MOST_COUNTED, ValueForm.COUNT)


def _check_text(value: object) -> str | None:
    return _problem_unless(_is_filled_text(value), ValueForm.TEXT)


def _check_pattern(value: object) -> str | None:
    # Whether it can be evaluated is asked where a check is written: stored ones may be older.
    return _problem_unless(isinstance(value, str) and bool(value), ValueForm.PATTERN)


def _check_time(value: object) -> str | None:
    if isinstance(value, date):
        return "has to be in quotes, since YAML takes it for something else than text"
    if isinstance(value, dict):
        return _check_duration(value)
    try:
        parse_moment(value if isinstance(value, str) else "")
    except ValueError:
        return f"has to be {ValueForm.TIME.value}"
    return None


def _check_duration(value: object) -> str | None:
    if not isinstance(value, dict) or not value or value.keys() - DURATION_UNITS.keys():
        return f"has to be {ValueForm.DURATION.value}, of {', '.join(DURATION_UNITS)}"
    if any(type(count) is not int or not 0 < count <= _MOST_COUNTED for count in value.values()):
        return "has to have whole numbers from 1 on"
    return "is longer than a hundred years" if convert_duration(value) > _LONGEST_DURATION else None


def convert_duration(value: Duration) -> int:
    """The length of a duration in milliseconds; a month has 30 days."""
    return datasource.duration_milliseconds(value)


def _check_version(value: object) -> str | None:
    fits = isinstance(value, str) and comparisons.parse_version(value) is not None
    return _problem_unless(fits, ValueForm.VERSION)


def _check_reason(value: object) -> str | None:
    fits = isinstance(value, str) and value in REASONS
    return None if fits else one_of(value, REASONS)


_FORM_CHECKS: Final[dict[ValueForm, Callable[[object], str | None]]] = {
    ValueForm.SCALAR: _check_scalar,
    ValueForm.ITEM: _check_item,
    ValueForm.LIST: _check_list,
    ValueForm.NUMBER: _check_number,
    ValueForm.COUNT: _check_count,
    ValueForm.TEXT: _check_text,
    ValueForm.PATTERN: _check_pattern,
    ValueForm.TIME: _check_time,
    ValueForm.DURATION: _check_duration,
    ValueForm.VERSION: _check_version,
    ValueForm.REASON: _check_reason,
}


# A test of a value; raises TypeError or ValueError for a value that it does not fit.
ValueTest = Callable[[Any], bool]


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
    test: Callable[[Any], ValueTest] | None = None
    takes_fact: bool = False


_OPERATOR_TABLE: Final = (
    Operator("equal", _SCALARS, ValueForm.SCALAR, "is {}", comparisons.is_equal, True),
    Operator("notEqual", _SCALARS, ValueForm.SCALAR, "is not {}", comparisons.is_not_equal, True),
    Operator("in", _LISTED, ValueForm.LIST, "is one of {}", comparisons.is_in, True),
    Operator("notIn", _LISTED, ValueForm.LIST, "is none of {}", comparisons.is_not_in, True),
    Operator("contains", _TEXT_OR_SET, ValueForm.ITEM, "contains {}", comparisons.contains, True),
    Operator(
        "doesNotContain",
        _TEXT_OR_SET,
        ValueForm.ITEM,
        "does not contain {}",
        comparisons.does_not_contain,
        True,
    ),
    Operator("lessThan", _ORDERED, ValueForm.NUMBER, "is less than {}", comparisons.is_less, True),
    Operator(
        "lessThanInclusive",
        _ORDERED,
        ValueForm.NUMBER,
        "is at most {}",
        comparisons.is_at_most,
        True,
    ),
    Operator(
        "greaterThan", _ORDERED, ValueForm.NUMBER, "is more than {}", comparisons.is_more, True
    ),
    Operator(
        "greaterThanInclusive",
        _ORDERED,
        ValueForm.NUMBER,
        "is at least {}",
        comparisons.is_at_least,
        True,
    ),
    Operator("startsWith", _TEXT, ValueForm.TEXT, "starts with {}", comparisons.starts_with, True),
    Operator("endsWith", _TEXT, ValueForm.TEXT, "ends with {}", comparisons.ends_with, True),
    Operator("matches", _TEXT, ValueForm.PATTERN, "matches {}"),
    Operator("anyMatches", _SETS, ValueForm.PATTERN, "has one that matches {}"),
    Operator(
        "containsAny", _SETS, ValueForm.LIST, "contains any of {}", comparisons.contains_any, True
    ),
    Operator(
        "containsAll", _SETS, ValueForm.LIST, "contains all of {}", comparisons.contains_all, True
    ),
    Operator("isEmpty", _SIZED, ValueForm.NOTHING, "is empty", comparisons.is_empty),
    Operator("isNotEmpty", _SIZED, ValueForm.NOTHING, "is not empty", comparisons.is_not_empty),
    Operator(
        "sizeAtLeast",
        _SIZED,
        ValueForm.COUNT,
        "has a size of at least {}",
        comparisons.is_at_least_as_large,
    ),
    Operator(
        "sizeAtMost",
        _SIZED,
        ValueForm.COUNT,
        "has a size of at most {}",
        comparisons.is_at_most_as_large,
    ),
    Operator("before", _TIMES, ValueForm.TIME, "is before {}", None, True),
    Operator("after", _TIMES, ValueForm.TIME, "is after {}", None, True),
    Operator("olderThan", _TIMES, ValueForm.DURATION, "is more than {} ago"),
    Operator("newerThan", _TIMES, ValueForm.DURATION, "is less than {} ago"),
    Operator(
        "versionAtLeast",
        _TEXT,
        ValueForm.VERSION,
        "is version {} or later",
        comparisons.is_version_or_later,
        True,
    ),
    Operator(
        "versionBelow",
        _TEXT,
        ValueForm.VERSION,
        "is before version {}",
        comparisons.is_older_version,
        True,
    ),
    Operator("isKnown", _ALL, ValueForm.NOTHING, "is known"),
    Operator("isUnknown", _ALL, ValueForm.NOTHING, "is unknown"),
    Operator("reasonIs", _ALL, ValueForm.REASON, "is unknown because of {}"),
    Operator("freshWithin", _ALL, ValueForm.DURATION, "was collected within the last {}"),
)


OPERATORS: Final[Mapping[str, Operator]] = {one.name: one for one in _OPERATOR_TABLE}


_TEXT_FORMS: Final = frozenset(
    {ValueForm.SCALAR, ValueForm.ITEM, ValueForm.LIST, ValueForm.TEXT, ValueForm.PATTERN}
)


# Operators that compare text: those that `caseSensitive` is for.
TEXT_OPERATORS: Final = frozenset(one.name for one in _OPERATOR_TABLE if one.form in _TEXT_FORMS)


PATTERN_OPERATORS: Final = frozenset(
    one.name for one in _OPERATOR_TABLE if one.form is ValueForm.PATTERN
)


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


def read_operator_value(
    operator: object, document: Mapping[str, Any], path: str, report: Report
) -> Any:
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
    if _is_fact_value(value):
        return _read_other_fact(found, value, f"{path}.value", report)
    return read_form(found.form, value, f"{path}.value", report)


def _is_fact_value(value: object) -> bool:
    return isinstance(value, dict) and "source" in value and "fact" in value


def _read_other_fact(
    operator: Operator, value: Mapping[str, Any], path: str, report: Report
) -> FactReference:
    if not operator.takes_fact:
        report(path, f"cannot be another fact for the operator {operator.name}")
    for name in value.keys() - set(_REFERENCE_MEMBERS):
        report(f"{path}.{name}", not_a_member(name, "reference to a fact", _REFERENCE_MEMBERS))
    return read_fact_reference(value, path, report)


class FactCondition(Struct, frozen=True):
    """A fact compared by an operator with a value, or with another fact.

    With `ignores_case`, text is the same in upper and lower case.
    """

    fact: FactReference
    operator: str
    value: Any = None
    ignores_case: bool = False

    @property
    def test(self) -> Callable[[Any], Test] | None:
        """The test of a value from the one that is wanted; None if the operator has none."""
        test = OPERATORS[self.operator].test
        return comparisons.ignore_case(test) if test and self.ignores_case else test

    @property
    def pattern(self) -> str:
        """The regular expression, for the operators that have one."""
        return f"(?i){self.value}" if self.ignores_case else str(self.value)


class Every(Struct, frozen=True):
    """Each of the conditions holds: `all`."""

    conditions: tuple["Rule", ...]


class Some(Struct, frozen=True):
    """At least one of the conditions holds: `any`."""

    conditions: tuple["Rule", ...]


class Negation(Struct, frozen=True):
    """The condition does not hold: `not`."""

    condition: "Rule"


Rule = FactCondition | Every | Some | Negation


def read_condition(document: object, path: str, report: Report) -> Rule | None:
    """Parse a condition; calls `report` with every mistake and its path, and returns None then."""
    if not is_bounded(document):
        report(path, f"can have {MOST_CONDITIONS} conditions at most")
        return None
    return _read_nested(document, path, report, 1)


def walk_leaves(rule: Rule, path: str = "") -> Iterator[tuple[str, FactCondition]]:
    """Every comparison in the tree, with the path where it stands."""
    match rule:
        case FactCondition():
            yield path, rule
        case Negation():
            yield from walk_leaves(rule.condition, f"{path}.not")
        case Every() | Some():
            name = "all" if isinstance(rule, Every) else "any"
            for position, one in enumerate(rule.conditions):
                yield from walk_leaves(one, f"{path}.{name}[{position}]")


def find_refused_patterns(rule: Rule, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, reason) of each pattern in the tree that can't be evaluated."""
    for where, leaf in walk_leaves(rule, path):
        if leaf.operator in PATTERN_OPERATORS:
            try:
                user_patterns.compile_pattern(leaf.pattern)
            except InputError as error:
                yield f"{where}.value", error.message


def walk_references(rule: Rule) -> Iterator[FactReference]:
    """Every fact that the rule reads."""
    for _, leaf in walk_leaves(rule):
        yield leaf.fact
        if isinstance(leaf.value, FactReference):
            yield leaf.value


def is_bounded(document: object) -> bool:
    """True if there are no more conditions than a rule can have; counted until there are more."""
    count, level = 0, [document]
    while level and count + len(level) <= MOST_CONDITIONS:
        parts = [_nested_conditions(one) for one in level]
        count += sum(not below for below in parts)
        level = [one for below in parts for one in below]
    return count + len(level) <= MOST_CONDITIONS


def _nested_conditions(document: object) -> list[object]:
    if not isinstance(document, dict):
        return []
    found: list[object] = []
    for name in ("all", "any"):
        if isinstance(document.get(name), list):
            found.extend(document[name])
    return [*found, document["not"]] if "not" in document else found


def _read_nested(document: object, path: str, report: Report, depth: int) -> Rule | None:
    if not isinstance(document, dict):
        report(path, "has to be an object with `all`, `any`, `not`, or `source` and `fact`")
        return None
    if depth > DEEPEST_CONDITION:
        report(path, f"is nested more than {DEEPEST_CONDITION} levels deep")
        return None
    names = [name for name in _NODES if name in document]
    if not names:
        return _read_comparison(document, path, report)
    if len(document) > 1:
        others = ", ".join(f"`{name}`" for name in document if name != names[0])
        report(path, f"has {others} beside `{names[0]}`; put them into conditions of their own")
        return None
    return _read_node(names[0], document[names[0]], f"{path}.{names[0]}", report, depth)


def _read_node(name: str, value: object, path: str, report: Report, depth: int) -> Rule | None:
    if name == "not":
        condition = _read_nested(value, path, report, depth + 1)
        return Negation(condition) if condition else None
    if not isinstance(value, list) or not value:
        report(path, "has to be a list of conditions that is not empty")
        return None
    parts = [_read_nested(one, f"{path}[{i}]", report, depth + 1) for i, one in enumerate(value)]
    conditions = tuple(part for part in parts if part)
    if len(conditions) < len(parts):
        return None
    return Every(conditions) if name == "all" else Some(conditions)


def _read_comparison(document: dict[str, Any], path: str, report: Report) -> Rule | None:
    mistakes = 0

    def told(where: str, message: str) -> None:
        nonlocal mistakes
        mistakes += 1
        report(where, message)

    for name in document.keys() - _LEAF:
        told(f"{path}.{name}", not_a_member(name, "condition", sorted(_LEAF)))
    fact = read_fact_reference(document, path, told)
    operator = document.get("operator")
    value = read_operator_value(operator, document, path, told)
    is_sensitive = document.get("caseSensitive")
    if is_sensitive is not None:
        if operator not in [*TEXT_OPERATORS]:
            told(f"{path}.caseSensitive", f"is not for the operator {operator}")
        elif not isinstance(is_sensitive, bool):
            told(f"{path}.caseSensitive", "has to be true or false")
    return None if mistakes else FactCondition(fact, str(operator), value, is_sensitive is False)


def describe_rule(rule: Rule) -> str:
    """The rule in words: `issues.open (github) is less than 10, and …`."""
    text = _describe_node(rule)
    return f"{text[0].upper()}{text[1:]}." if text[:4] in ("The ", "the ") else f"{text}."


def _describe_node(rule: Rule) -> str:
    match rule:
        case FactCondition():
            return _describe_comparison(rule)
        case Negation():
            return f"not ({_describe_node(rule.condition)})"
        case Every():
            return _join_words([_describe_inner(one) for one in rule.conditions], "and")
        case Some():
            return _join_words([_describe_inner(one) for one in rule.conditions], "or")


def _describe_inner(rule: Rule) -> str:
    is_group = isinstance(rule, Every | Some) and len(rule.conditions) > 1
    return f"({_describe_node(rule)})" if is_group else _describe_node(rule)


def _describe_comparison(leaf: FactCondition) -> str:
    words = OPERATORS[leaf.operator].words
    if isinstance(leaf.value, dict) and leaf.operator in _FROM_NOW:
        words = _FROM_NOW[leaf.operator]
    case = " in any case" if leaf.ignores_case else ""
    return f"{_describe_fact(leaf.fact)} {words.format(_describe_value(leaf))}{case}"


def _describe_fact(fact: FactReference) -> str:
    if fact.source == ENTITY:
        return f"{fact.fact} of the entity"
    if fact.source == CHECKS:
        return f"the check {fact.fact}"
    inside = f" at {fact.path}" if fact.path else ""
    return f"{fact.fact} ({fact.source}){inside}"


def _describe_value(leaf: FactCondition) -> str:
    value, form = leaf.value, OPERATORS[leaf.operator].form
    if isinstance(value, FactReference):
        return _describe_fact(value)
    if isinstance(value, dict):
        return _join_words([_count_unit(count, unit) for unit, count in value.items()], "and")
    if isinstance(value, list):
        shown = [_quote_value(one) for one in value[:_MOST_NAMED_VALUES]]
        more = len(value) - len(shown)
        return _join_words([*shown, f"{more} more"] if more else shown, "or")
    plain = (
        form in (ValueForm.TIME, ValueForm.VERSION, ValueForm.REASON) or leaf.fact.source == CHECKS
    )
    return str(value) if plain else _quote_value(value)


def _count_unit(count: int, unit: str) -> str:
    return f"{count} {unit.removesuffix('s') if count == 1 else unit}"


def _quote_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _join_words(parts: Sequence[str], word: str) -> str:
    """The parts with commas and a word before the last; of many, only the first."""
    if len(parts) > _MOST_NAMED_CONDITIONS:
        parts = [*parts[:_MOST_NAMED_CONDITIONS], f"{len(parts) - _MOST_NAMED_CONDITIONS} more"]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return f"{parts[0]} {word} {parts[1]}"
    return f"{', '.join(parts[:-1])}, {word} {parts[-1]}"

"""The rule language: conditions, operators, values, and rules in English.

A condition is a tree of `all`, `any` and `not` over comparisons. A comparison names a fact by
source and name, with a path inside objects; its operator determines the fact types and the form of
the value. Parsing reports every mistake with its path.

Versions are dotted numbers with a pre-release and a build: Semantic Versioning and the usual forms
of PEP 440. Other texts have no order.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from enum import Enum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from msgspec import Struct

from factbook import clock, user_patterns
from factbook.catalog import kinds
from factbook.clock import DAY
from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import expression_depth
from factbook.errors import InputError, not_a_member, one_of
from factbook.facts import datasource
from factbook.facts.datasource import LIFETIME_UNITS, TIMEOUT_UNITS, Duration, Report
from factbook.facts.schema import REASONS, FactType

_LONGEST_VERSION: Final = 100
_MOST_DIGITS: Final = 18
_DIGITS: Final = re.compile(r"\d+", re.ASCII)


_VERSION: Final = re.compile(
    r"""v?
    (?P<release>\d+(?:\.\d+)*)
    (?:-(?P<semantic>[0-9a-z-]+(?:\.[0-9a-z-]+)*)|(?P<phase>a|b|rc)(?P<number>\d+)|\.post(?P<post>\d+))?
    (?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


# In pre-releases, numbers sort before words; a pre-release sorts before its release.
_VersionPart = tuple[int, int, str]


Version = tuple[tuple[int, ...], int, tuple[_VersionPart, ...]]


_PRE, _FINAL, _POST = 0, 1, 2


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """A sort key for a version; None for texts that aren't versions.

    A leading `v` and trailing zeros don't matter: v1.4 is 1.4.0.
    """
    found = _VERSION.fullmatch(text.strip()) if len(text) <= _LONGEST_VERSION else None
    if found is None or any(len(one) > _MOST_DIGITS for one in _DIGITS.findall(text)):
        return None
    release = [int(number) for number in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if found["semantic"]:
        parts = tuple(map(_parse_version_part, found["semantic"].lower().split(".")))
        return tuple(release), _PRE, parts
    if found["phase"]:
        word = {"a": "alpha", "b": "beta", "rc": "rc"}[found["phase"].lower()]
        return (
            tuple(release),
            _PRE,
            (_parse_version_part(word), _parse_version_part(found["number"])),
        )
    if found["post"]:
        return tuple(release), _POST, (_parse_version_part(found["post"]),)
    return tuple(release), _FINAL, ()


def _parse_version_part(text: str) -> _VersionPart:
    return (0, int(text), "") if _DIGITS.fullmatch(text) else (1, 0, text)


Test = Callable[[Any], bool]


def ignore_case(make: Callable[[Any], Test]) -> Callable[[Any], Test]:
    """The same comparison, ignoring case."""

    def made(wanted: Any) -> Test:
        test = make(_lower_value(wanted))
        return lambda value: test(_lower_value(value))

    return made


def _lower_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower_value(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def is_equal(wanted: Any) -> Test:
    """An equality test; unknown for a value of another type: 1 and true differ."""
    kind = _kind_of_value(wanted)

    def test(value: Any) -> bool:
        if type(value) is not kind and _kind_of_value(value) is not kind:
            raise TypeError
        return bool(value == wanted)

    def test_within(value: Any) -> bool:
        if type(value) is not kind:
            raise TypeError
        # Inside lists and objects, too, true isn't a number.
        return _are_same_item(value, wanted)

    return test_within if kind in (list, dict) else test


def is_not_equal(wanted: Any) -> Test:
    return _negate_test(is_equal(wanted))


def is_in(wanted: Sequence[Any]) -> Test:
    """A membership test; unknown if the value matches no item but some items are null."""
    items = frozenset(one for one in _take_list(wanted) if one is not None)
    kinds = set(map(_kind_of_value, items))
    if bool in kinds:
        raise TypeError
    is_whole = None not in wanted

    def test(value: Any) -> bool:
        if kinds and _kind_of_value(value) not in kinds:
            raise TypeError
        if value in items:
            return True
        if is_whole:
            return False
        raise TypeError

    return test


def is_not_in(wanted: Sequence[Any]) -> Test:
    return _negate_test(is_in(wanted))


def contains(wanted: Any) -> Test:
    """A test for a part of a text, or a member of a list; unknown if null members could match."""

    def test(value: Any) -> bool:
        if isinstance(value, str):
            return _take_text(wanted) in value
        if not _is_list_member(wanted):
            raise TypeError
        members = _take_members(value)
        return wanted in members or _if_all_known(value)

    return test


def does_not_contain(wanted: Any) -> Test:
    return _negate_test(contains(wanted))


def is_less(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value < bound
        raise TypeError

    return test


def is_at_most(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value <= bound
        raise TypeError

    return test


def is_more(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value > bound
        raise TypeError

    return test


def is_at_least(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value >= bound
        raise TypeError

    return test


def starts_with(wanted: str) -> Test:
    return lambda value: _take_text(value).startswith(wanted)


def ends_with(wanted: str) -> Test:
    return lambda value: _take_text(value).endswith(wanted)


def contains_any(wanted: Sequence[Any]) -> Test:
    """A test for at least one common member; unknown if null members could match."""
    items = _take_members(wanted)

    def test(value: Any) -> bool:
        return not items.isdisjoint(_take_members(value)) or _if_all_known([*value, *wanted])

    return test


def contains_all(wanted: Sequence[Any]) -> Test:
    """A test for all of these members; unknown if null members could match."""
    items = _take_members(wanted)

    def test(value: Any) -> bool:
        if items.issubset(_take_members(value)):
            return not _if_all_known(wanted)
        return _if_all_known(value)

    return test


def is_empty(_: None) -> Test:
    """A test for a text, list or object without content; unknown for other types."""
    return lambda value: _take_length(value) == 0


def is_not_empty(_: None) -> Test:
    return lambda value: _take_length(value) > 0


def is_at_least_as_large(wanted: int) -> Test:
    return lambda value: _size_of_value(value) >= wanted


def is_at_most_as_large(wanted: int) -> Test:
    return lambda value: _size_of_value(value) <= wanted


def is_version_or_later(wanted: str) -> Test:
    """A test for this version or a later one; unknown for text that is not a version."""
    least = _take_version(wanted)
    return lambda value: _take_version(value) >= least


def is_older_version(wanted: str) -> Test:
    return _negate_test(is_version_or_later(wanted))


def _negate_test(test: Test) -> Test:
    return lambda value: not test(value)


def _kind_of_value(value: Any) -> type:
    """The kind of a JSON value; all numbers are one kind, and true isn't a number."""
    kind = type(value)
    return float if kind is int else kind


def _are_same_item(one: Any, other: Any) -> bool:
    if _kind_of_value(one) is not _kind_of_value(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_are_same_item, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_same_item(one[k], other[k]) for k in one)
    return bool(one == other)


def _take_number(value: Any) -> float:
    if type(value) is int or type(value) is float:
        return value
    raise TypeError


def _take_text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _take_list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError
    return value


def _is_list_member(value: Any) -> bool:
    """Return true for values that sets can hold; true isn't a number."""
    return type(value) in (str, int, float)


def _take_members(value: Any) -> frozenset[Any]:
    return frozenset(filter(_is_list_member, _take_list(value)))


def _if_all_known(items: Sequence[Any]) -> bool:
    """False if all items can be compared, else raise TypeError."""
    if all(map(_is_list_member, items)):
        return False
    raise TypeError


def _size_of_value(value: Any) -> int:
    """The length; raises TypeError for a list with unknown items."""
    if isinstance(value, list) and None in value:
        raise TypeError
    return _take_length(value)


def _take_length(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise TypeError
    return len(value)


def _take_version(value: Any) -> Version:
    found = parse_version(_take_text(value))
    if found is None:
        raise ValueError(value)
    return found


# The catalog document of the entity.
ENTITY: Final = "entity"
# The states of other checks.
CHECKS: Final = "checks"
_LONGEST_NAME: Final = 300
# Shallow enough for the stack, wherever an evaluation starts.
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
# They ask whether a fact is known, and are only unknown themselves if an object is too large for a
# path.
KNOWLEDGE_OPERATORS: Final = frozenset({"isKnown", "isUnknown", "reasonIs"})
_REFERENCE_MEMBERS: Final = ("source", "fact", "path")
# More than in any readable rule.
MOST_CONDITIONS: Final = 200
DEEPEST_CONDITION: Final = 10
_NODES: Final = ("all", "any", "not")
_LEAF: Final = frozenset({"source", "fact", "path", "operator", "value", "caseSensitive"})
_MOST_NAMED_VALUES: Final = 10
_MOST_NAMED_CONDITIONS: Final = 20
# Words for comparisons with a time relative to now.
_FROM_NOW: Final = {"before": "is less than {} from now", "after": "is more than {} from now"}


class FactReference(Struct, frozen=True):
    """A fact; `path` is a JMESPath expression for a part of an object."""

    source: str
    fact: str
    path: str | None = None

    def __str__(self) -> str:
        inside = f" at {self.path}" if self.path else ""
        return f"{self.source} {self.fact}{inside}"


def read_fact_reference(document: Mapping[str, Any], path: str, report: Report) -> FactReference:
    """Parse the members `source`, `fact` and `path`; reports mistakes with their paths."""
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
    # Not in the document; the catalog's own source keeps this fact current.
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
    """The kind of value that an operator needs."""

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
    """Return the value unchanged; reports a mistake if it has the wrong form."""
    fits = _PLAIN_FORMS.get(form)
    if fits is not None:
        problem = None if fits(value) else f"has to be {form.value}"
    else:
        problem = _FORM_CHECKS[form](value)
    if problem:
        report(path, problem)
    return value


def parse_moment(value: str) -> int:
    """Parse an ISO 8601 date (its start) or date and time; raises ValueError."""
    found = clock.milliseconds(value if "T" in value.upper() else f"{value}T00:00Z")
    if found is None:
        raise ValueError(value)
    return found


def _is_finite_number(value: object) -> bool:
    return type(value) is int or (isinstance(value, float) and math.isfinite(value))


def _is_comparable_item(value: object) -> bool:
    return (isinstance(value, str) and len(value) <= LONGEST_VALUE) or _is_finite_number(value)


def _check_list(value: object) -> str | None:
    if not isinstance(value, list) or not value or not all(map(_is_comparable_item, value)):
        return f"has to be {ValueForm.LIST.value} that is not empty"
    return (
        f"can have {MOST_LISTED_VALUES} items at most" if len(value) > MOST_LISTED_VALUES else None
    )


def _check_time(value: object) -> str | None:
    if isinstance(value, date):
        return "has to be in quotes, since YAML reads it as a date otherwise"
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


def _check_reason(value: object) -> str | None:
    fits = isinstance(value, str) and value in REASONS
    return None if fits else one_of(value, REASONS)


# Forms whose only problem is that a value "has to be" of the form: true if it is.
_PLAIN_FORMS: Final[dict[ValueForm, Callable[[object], bool]]] = {
    ValueForm.SCALAR: lambda value: isinstance(value, bool) or _is_comparable_item(value),
    ValueForm.ITEM: _is_comparable_item,
    ValueForm.NUMBER: _is_finite_number,
    ValueForm.COUNT: lambda value: type(value) is int and 0 <= value <= _MOST_COUNTED,
    ValueForm.TEXT: lambda value: isinstance(value, str) and 0 < len(value) <= LONGEST_VALUE,
    # Writes check whether patterns can be evaluated: stored patterns may be older than that rule.
    ValueForm.PATTERN: lambda value: isinstance(value, str) and bool(value),
    ValueForm.VERSION: lambda value: isinstance(value, str) and parse_version(value) is not None,
}

# Problems of the other forms; None if the value fits.
_FORM_CHECKS: Final[dict[ValueForm, Callable[[object], str | None]]] = {
    ValueForm.LIST: _check_list,
    ValueForm.TIME: _check_time,
    ValueForm.DURATION: _check_duration,
    ValueForm.REASON: _check_reason,
}


# A test of a value; raises TypeError or ValueError for unsuitable values.
ValueTest = Callable[[Any], bool]


class Operator(NamedTuple):
    """An operator; `words` phrases it in a sentence, with `{}` for the value.

    `test` makes a test from the expected value. It is None if the test needs more than the value:
    the time of evaluation, reasons for unknown facts, or the cost of a search. `takes_fact`: the
    value may be another fact.
    """

    name: str
    types: frozenset[FactType]
    form: ValueForm
    words: str
    test: Callable[[Any], ValueTest] | None = None
    takes_fact: bool = False


_OPERATOR_TABLE: Final = (
    Operator("equal", _SCALARS, ValueForm.SCALAR, "is {}", is_equal, True),
    Operator("notEqual", _SCALARS, ValueForm.SCALAR, "is not {}", is_not_equal, True),
    Operator("in", _LISTED, ValueForm.LIST, "is one of {}", is_in, True),
    Operator("notIn", _LISTED, ValueForm.LIST, "is none of {}", is_not_in, True),
    Operator("contains", _TEXT_OR_SET, ValueForm.ITEM, "contains {}", contains, True),
    Operator(
        "doesNotContain",
        _TEXT_OR_SET,
        ValueForm.ITEM,
        "does not contain {}",
        does_not_contain,
        True,
    ),
    Operator("lessThan", _ORDERED, ValueForm.NUMBER, "is less than {}", is_less, True),
    Operator(
        "lessThanInclusive",
        _ORDERED,
        ValueForm.NUMBER,
        "is at most {}",
        is_at_most,
        True,
    ),
    Operator("greaterThan", _ORDERED, ValueForm.NUMBER, "is more than {}", is_more, True),
    Operator(
        "greaterThanInclusive",
        _ORDERED,
        ValueForm.NUMBER,
        "is at least {}",
        is_at_least,
        True,
    ),
    Operator("startsWith", _TEXT, ValueForm.TEXT, "starts with {}", starts_with, True),
    Operator("endsWith", _TEXT, ValueForm.TEXT, "ends with {}", ends_with, True),
    Operator("matches", _TEXT, ValueForm.PATTERN, "matches {}"),
    Operator("anyMatches", _SETS, ValueForm.PATTERN, "has one that matches {}"),
    Operator("containsAny", _SETS, ValueForm.LIST, "contains any of {}", contains_any, True),
    Operator("containsAll", _SETS, ValueForm.LIST, "contains all of {}", contains_all, True),
    Operator("isEmpty", _SIZED, ValueForm.NOTHING, "is empty", is_empty),
    Operator("isNotEmpty", _SIZED, ValueForm.NOTHING, "is not empty", is_not_empty),
    Operator(
        "sizeAtLeast",
        _SIZED,
        ValueForm.COUNT,
        "has a size of at least {}",
        is_at_least_as_large,
    ),
    Operator(
        "sizeAtMost",
        _SIZED,
        ValueForm.COUNT,
        "has a size of at most {}",
        is_at_most_as_large,
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
        is_version_or_later,
        True,
    ),
    Operator(
        "versionBelow",
        _TEXT,
        ValueForm.VERSION,
        "is before version {}",
        is_older_version,
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


# Operators that compare text, which can have `caseSensitive`.
TEXT_OPERATORS: Final = frozenset(one.name for one in _OPERATOR_TABLE if one.form in _TEXT_FORMS)


PATTERN_OPERATORS: Final = frozenset(
    one.name for one in _OPERATOR_TABLE if one.form is ValueForm.PATTERN
)


# Operators of other languages, in lower case, and the equivalents here.
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
    """Parse the members `operator` and `value` of a condition; reports mistakes with paths."""
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
            report(f"{path}.value", f"has to be left out: the operator {found.name} takes no value")
        return None
    if "value" not in document:
        report(f"{path}.value", f"is required by the operator {found.name}")
        return None
    value = document["value"]
    if isinstance(value, dict) and "source" in value and "fact" in value:
        return _read_other_fact(found, value, f"{path}.value", report)
    return read_form(found.form, value, f"{path}.value", report)


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

    With `ignores_case`, text comparisons ignore case.
    """

    fact: FactReference
    operator: str
    value: Any = None
    ignores_case: bool = False

    @property
    def test(self) -> Callable[[Any], Test] | None:
        """A function that makes a test from the expected value; None if the operator has none."""
        test = OPERATORS[self.operator].test
        return ignore_case(test) if test and self.ignores_case else test

    @property
    def pattern(self) -> str:
        """The regular expression of operators that have one."""
        return f"(?i){self.value}" if self.ignores_case else str(self.value)


class Every(Struct, frozen=True):
    """All conditions hold: `all`."""

    conditions: tuple["Rule", ...]


class Some(Struct, frozen=True):
    """At least one of the conditions holds: `any`."""

    conditions: tuple["Rule", ...]


class Negation(Struct, frozen=True):
    """The condition does not hold: `not`."""

    condition: "Rule"


Rule = FactCondition | Every | Some | Negation


def read_condition(document: object, path: str, report: Report) -> Rule | None:
    """Parse a condition; reports every mistake with its path, and then returns None."""
    if not is_bounded(document):
        report(path, f"can have {MOST_CONDITIONS} conditions at most")
        return None
    return _read_nested(document, path, report, 1)


def walk_leaves(rule: Rule, path: str = "") -> Iterator[tuple[str, FactCondition]]:
    """Every comparison in the tree, with its path."""
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
    """True if a rule may have this many conditions; stops counting at the limit."""
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
    """The rule in English: `issues.open (github) is less than 10, and …`."""
    text = _describe_node(rule)
    return f"{text[0].upper()}{text[1:]}." if text[:4] in ("The ", "the ") else f"{text}."


def _describe_node(rule: Rule) -> str:
    match rule:
        case FactCondition():
            words = OPERATORS[rule.operator].words
            if isinstance(rule.value, dict) and rule.operator in _FROM_NOW:
                words = _FROM_NOW[rule.operator]
            case = " in any case" if rule.ignores_case else ""
            return f"{_describe_fact(rule.fact)} {words.format(_describe_value(rule))}{case}"
        case Negation():
            return f"not ({_describe_node(rule.condition)})"
        case Every():
            return _join_words([_describe_inner(one) for one in rule.conditions], "and")
        case Some():
            return _join_words([_describe_inner(one) for one in rule.conditions], "or")


def _describe_inner(rule: Rule) -> str:
    is_group = isinstance(rule, Every | Some) and len(rule.conditions) > 1
    return f"({_describe_node(rule)})" if is_group else _describe_node(rule)


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
        return _join_words(
            [
                f"{count} {unit.removesuffix('s') if count == 1 else unit}"
                for unit, count in value.items()
            ],
            "and",
        )
    if isinstance(value, list):
        shown = [_quote_value(one) for one in value[:_MOST_NAMED_VALUES]]
        more = len(value) - len(shown)
        return _join_words([*shown, f"{more} more"] if more else shown, "or")
    plain = (
        form in (ValueForm.TIME, ValueForm.VERSION, ValueForm.REASON) or leaf.fact.source == CHECKS
    )
    return str(value) if plain else _quote_value(value)


def _quote_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _join_words(parts: Sequence[str], word: str) -> str:
    """Join the parts with commas and a word before the last; long lists are cut."""
    if len(parts) > _MOST_NAMED_CONDITIONS:
        parts = [*parts[:_MOST_NAMED_CONDITIONS], f"{len(parts) - _MOST_NAMED_CONDITIONS} more"]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return f"{parts[0]} {word} {parts[1]}"
    return f"{', '.join(parts[:-1])}, {word} {parts[-1]}"

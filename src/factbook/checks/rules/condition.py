"""Conditions: a tree of `all`, `any` and `not` over comparisons of facts.

    {"all": [
        {"source": "snyk", "fact": "scannerIssues.high", "operator": "lessThan", "value": 1},
        {"not": {"source": "entity", "fact": "spec.type", "operator": "equal", "value": "test"}}
    ]}

The source `entity` is the catalog document, by dotted path, and `checks` the state of another
check, by its id.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct

from factbook import user_patterns
from factbook.checks.rules import comparisons, operators
from factbook.checks.rules.comparisons import Test
from factbook.checks.rules.fact_reference import FactReference, read_reference
from factbook.errors import InputError, not_a_member
from factbook.facts.members import Report

# More than any rule that people can follow.
MOST_CONDITIONS: Final = 200
DEEPEST: Final = 10

_NODES: Final = ("all", "any", "not")
_LEAF: Final = frozenset({"source", "fact", "path", "operator", "value", "caseSensitive"})


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
        test = operators.OPERATORS[self.operator].test
        return comparisons.caseless(test) if test and self.ignores_case else test

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


def read(document: object, path: str, report: Report) -> Rule | None:
    """Parse a condition; calls `report` with every mistake and its path, and returns None then."""
    if not is_bounded(document):
        report(path, f"can have {MOST_CONDITIONS} conditions at most")
        return None
    return _read(document, path, report, 1)


def leaves(rule: Rule, path: str = "") -> Iterator[tuple[str, FactCondition]]:
    """Every comparison in the tree, with the path where it stands."""
    match rule:
        case FactCondition():
            yield path, rule
        case Negation():
            yield from leaves(rule.condition, f"{path}.not")
        case Every() | Some():
            name = "all" if isinstance(rule, Every) else "any"
            for position, one in enumerate(rule.conditions):
                yield from leaves(one, f"{path}.{name}[{position}]")


def refused_patterns(rule: Rule, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, reason) of each pattern in the tree that can't be evaluated."""
    for where, leaf in leaves(rule, path):
        if leaf.operator in operators.PATTERNS:
            try:
                user_patterns.compile_pattern(leaf.pattern)
            except InputError as error:
                yield f"{where}.value", error.message


def references(rule: Rule) -> Iterator[FactReference]:
    """Every fact that the rule reads."""
    for _, leaf in leaves(rule):
        yield leaf.fact
        if isinstance(leaf.value, FactReference):
            yield leaf.value


def is_bounded(document: object) -> bool:
    """True if there are no more conditions than a rule can have; counted until there are more."""
    count, level = 0, [document]
    while level and count + len(level) <= MOST_CONDITIONS:
        parts = [_parts(one) for one in level]
        count += sum(not below for below in parts)
        level = [one for below in parts for one in below]
    return count + len(level) <= MOST_CONDITIONS


def _parts(document: object) -> list[object]:
    if not isinstance(document, dict):
        return []
    found: list[object] = []
    for name in ("all", "any"):
        if isinstance(document.get(name), list):
            found.extend(document[name])
    return [*found, document["not"]] if "not" in document else found


def _read(document: object, path: str, report: Report, depth: int) -> Rule | None:
    if not isinstance(document, dict):
        report(path, "has to be an object with `all`, `any`, `not`, or `source` and `fact`")
        return None
    if depth > DEEPEST:
        report(path, f"is nested more than {DEEPEST} levels deep")
        return None
    names = [name for name in _NODES if name in document]
    if not names:
        return _read_leaf(document, path, report)
    if len(document) > 1:
        others = ", ".join(f"`{name}`" for name in document if name != names[0])
        report(path, f"has {others} beside `{names[0]}`; put them into conditions of their own")
        return None
    return _read_node(names[0], document[names[0]], f"{path}.{names[0]}", report, depth)


def _read_node(name: str, value: object, path: str, report: Report, depth: int) -> Rule | None:
    if name == "not":
        condition = _read(value, path, report, depth + 1)
        return Negation(condition) if condition else None
    if not isinstance(value, list) or not value:
        report(path, "has to be a list of conditions that is not empty")
        return None
    parts = [_read(one, f"{path}[{i}]", report, depth + 1) for i, one in enumerate(value)]
    conditions = tuple(part for part in parts if part)
    if len(conditions) < len(parts):
        return None
    return Every(conditions) if name == "all" else Some(conditions)


def _read_leaf(document: dict[str, Any], path: str, report: Report) -> Rule | None:
    mistakes = 0

    def told(where: str, message: str) -> None:
        nonlocal mistakes
        mistakes += 1
        report(where, message)

    for name in document.keys() - _LEAF:
        told(f"{path}.{name}", not_a_member(name, "condition", sorted(_LEAF)))
    fact = read_reference(document, path, told)
    operator = document.get("operator")
    value = operators.read_value(operator, document, path, told)
    is_sensitive = document.get("caseSensitive")
    if is_sensitive is not None:
        if operator not in [*operators.OF_TEXT]:
            told(f"{path}.caseSensitive", f"is not for the operator {operator}")
        elif not isinstance(is_sensitive, bool):
            told(f"{path}.caseSensitive", "has to be true or false")
    return None if mistakes else FactCondition(fact, str(operator), value, is_sensitive is False)

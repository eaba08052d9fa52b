"""Validation of a check against what it refers to: data sources, their facts, and other checks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.contradictions import report_constant
from factbook.checks.rules.language import (
    CHECKS,
    ENTITY,
    OPERATORS,
    FactCondition,
    FactReference,
    Operator,
    Rule,
    ValueForm,
)
from factbook.errors import Problem, Problems, one_of, suggestion
from factbook.facts.datasource import DataSource
from factbook.facts.members import Report
from factbook.facts.schema import TYPES, Fact, FactType

_STATES: Final = tuple(word for word in state.WORDS if word != "unknown")
_STATE_OPERATORS: Final = ("equal", "notEqual", "in", "notIn", "isKnown", "isUnknown")
_COLLECTED: Final = ("freshWithin", "reasonIs")
_NUMBERS: Final = frozenset[FactType]({"integer", "float"})
# Forms of values whose kind has to be that of the fact.
_OF_THE_FACT: Final = (ValueForm.SCALAR, ValueForm.ITEM, ValueForm.LIST)


class CheckContext(NamedTuple):
    """Targets of a check's references: data sources and other checks, by id."""

    sources: Mapping[str, DataSource]
    checks: Mapping[str, Check]


def problems(check: Check, context: CheckContext) -> list[Problem]:
    """Every mistake in what the check refers to, with its path; empty if it can be used."""
    mistakes = Problems()
    for path, rule in check.rules():
        check_rule(rule, path, context, mistakes.report)
    _check_cycle(check, context, mistakes.report)
    for path, fact in _shown_facts(check):
        _fact(fact, context, _at(path, mistakes.report))
    return mistakes.found


def _shown_facts(check: Check) -> Iterator[tuple[str, FactReference]]:
    for path, text in check.templates():
        for fact in check_definition.parse_template(text).facts():
            yield path, fact


def check_rule(rule: Rule, path: str, context: CheckContext, report: Report) -> None:
    """Report every mistake in what a condition refers to, with its path."""
    mistakes = 0

    def told(where: str, message: str) -> None:
        nonlocal mistakes
        mistakes += 1
        report(where, message)

    for where, leaf in language.walk_leaves(rule, path):
        _check_leaf(leaf, where, context, told)
    if not mistakes:
        report_constant(rule, path, lambda fact: _type(fact, context), report)


def _check_leaf(leaf: FactCondition, path: str, context: CheckContext, report: Report) -> None:
    operator = OPERATORS[leaf.operator]
    if leaf.fact.source == CHECKS:
        _check_state(leaf, path, context, report)
        return
    if leaf.fact.source == ENTITY and operator.name in _COLLECTED:
        report(f"{path}.operator", f"{operator.name} is for facts of data sources")
        return
    fact = _fact(leaf.fact, context, _below(path, report))
    if fact is not None:
        _check_type(leaf, operator, fact, path, report)
    if isinstance(leaf.value, FactReference):
        _check_other(leaf, leaf.value, fact, f"{path}.value", context, report)
    elif fact is not None and leaf.fact.path is None:
        _check_kind(leaf.value, operator, fact, f"{path}.value", report)


def _check_state(leaf: FactCondition, path: str, context: CheckContext, report: Report) -> None:
    if leaf.operator not in _STATE_OPERATORS:
        words = one_of(leaf.operator, _STATE_OPERATORS)
        report(f"{path}.operator", f"{words} for the state of a check")
    elif leaf.value is not None:
        for one in leaf.value if isinstance(leaf.value, list) else [leaf.value]:
            if one not in _STATES:
                hint = "; ask with isUnknown if it is unknown"
                report(f"{path}.value", f"{one_of(one, _STATES)}{hint}")
    if leaf.fact.fact not in context.checks:
        known = _near(leaf.fact.fact, list(context.checks))
        report(f"{path}.fact", f"names no check{known}")


def _fact(reference: FactReference, context: CheckContext, report: Report) -> Fact | None:
    """The fact of a data source; None for the entity's document, and for what does not exist.

    Mistakes are reported for the members `source` and `fact`.
    """
    if reference.source == ENTITY:
        return None
    source = context.sources.get(reference.source)
    if source is None:
        known = _near(reference.source, [*context.sources, ENTITY, CHECKS])
        report("source", f"names no data source{known}")
        return None
    facts = {fact.name: fact for fact in source.schema}
    if reference.fact not in facts:
        known = _near(reference.fact, list(facts))
        report("fact", f"names no fact of {source.id}{known}")
        return None
    return facts[reference.fact]


def _check_type(
    leaf: FactCondition, operator: Operator, fact: Fact, path: str, report: Report
) -> None:
    if leaf.fact.path is not None:
        if fact.type != "object":
            report(f"{path}.path", f"is for facts of type object; {fact.name} is {fact.type}")
        return
    if fact.type not in operator.types:
        others = [one.name for one in OPERATORS.values() if fact.type in one.types]
        hint = "; give a path into it" if fact.type == "object" else ""
        report(
            f"{path}.operator",
            f"{operator.name} does not take facts of type {fact.type}, as {fact.name} is{hint}; "
            f"these do: {', '.join(others)}",
        )


def _check_kind(value: Any, operator: Operator, fact: Fact, path: str, report: Report) -> None:
    if operator.form not in _OF_THE_FACT or fact.type not in operator.types or fact.type == "set":
        return
    for one in value if isinstance(value, list) else [value]:
        fits = TYPES["float" if fact.type == "integer" else fact.type].holds(one)
        if not fits:
            wanted = TYPES[fact.type].words
            report(path, f"has to be {wanted}, as {fact.name} is")
            return


def _check_other(
    leaf: FactCondition,
    other: FactReference,
    fact: Fact | None,
    path: str,
    context: CheckContext,
    report: Report,
) -> None:
    if other == leaf.fact:
        report(path, "is the fact itself, which it is compared with")
        return
    if other.source == CHECKS:
        report(f"{path}.source", "cannot be the state of a check")
        return
    found = _fact(other, context, _below(path, report))
    if found is None or fact is None or leaf.fact.path or other.path:
        return
    if not _comparable(OPERATORS[leaf.operator], fact.type, found.type):
        report(path, f"is of type {found.type}, which {fact.type} is not compared with")
    elif fact.unit != found.unit and {fact.type, found.type} <= _NUMBERS:
        report(path, f"is in {found.unit or 'no unit'}, and {fact.name} in {fact.unit or 'none'}")


def _comparable(operator: Operator, type_: FactType, other: FactType) -> bool:
    if operator.form is ValueForm.LIST:
        return other == "set"
    if type_ == "set":
        return other in _NUMBERS or other == "string"
    return type_ == other or {type_, other} <= _NUMBERS


def _type(reference: FactReference, context: CheckContext) -> FactType | None:
    source = context.sources.get(reference.source)
    if source is None or reference.path is not None:
        return None
    return next((fact.type for fact in source.schema if fact.name == reference.fact), None)


def _check_cycle(check: Check, context: CheckContext, report: Report) -> None:
    checks = {**context.checks, check.id: check}

    def reads(check_id: str) -> Iterable[str]:
        return check_definition.list_checks_read(checks[check_id]) if check_id in checks else ()

    for path, rule in check.rules():
        for where, leaf in language.walk_leaves(rule, path):
            if leaf.fact.source == CHECKS:
                way = check_definition.find_way_back(check.id, leaf.fact.fact, reads)
                if way:
                    report(f"{where}.fact", f"makes a cycle: {' → '.join(way)}")


def _at(path: str, report: Report) -> Report:
    return lambda _, message: report(path, message)


def _below(path: str, report: Report) -> Report:
    return lambda member, message: report(f"{path}.{member}", message)


def _near(name: str, names: Sequence[str]) -> str:
    return f".{suggestion(name, names)}".rstrip(".")

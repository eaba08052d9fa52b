"""Validation of checks and scorecards against what they refer to, and the permissions of authors.

Results tell about what a rule reads, and rules can ask for every value: who may not read a value
could find it by saving checks. So an author needs the permissions to read what a check reads.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, SOURCE_READ
from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.definitions.definition_versions import check_store
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, parse_check, parse_stored_check
from factbook.checks.rules.check_trial import report_constant
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
from factbook.datasources.registry import Registry
from factbook.definitions import documents
from factbook.errors import FactbookError, InvalidItemsError, Problem, Problems, one_of, suggestion
from factbook.facts.datasource import DataSource
from factbook.facts.members import Report
from factbook.facts.schema import TYPES, Fact, FactType
from factbook.storage import Database

_STATES: Final = tuple(word for word in state.WORDS if word != "unknown")
_STATE_OPERATORS: Final = ("equal", "notEqual", "in", "notIn", "isKnown", "isUnknown")
_COLLECTED: Final = ("freshWithin", "reasonIs")
_NUMBERS: Final = frozenset[FactType]({"integer", "float"})
# Forms of values whose kind has to be that of the fact.
_OF_THE_FACT: Final = (ValueForm.SCALAR, ValueForm.ITEM, ValueForm.LIST)
_PERMISSIONS_OF_SOURCES = {ENTITY: CATALOG_READ, CHECKS: CHECK_READ}
_READS_CHECKS: Final = f'"{CHECKS}"'.encode()


class CheckContext(NamedTuple):
    """Targets of a check's references: data sources and other checks, by id."""

    sources: Mapping[str, DataSource]
    checks: Mapping[str, Check]


def find_check_problems(check: Check, context: CheckContext) -> list[Problem]:
    """Every mistake in what the check refers to, with its path; empty if it can be used."""
    mistakes = Problems()
    for path, rule in check.rules():
        validate_rule(rule, path, context, mistakes.report)
    _validate_cycle(check, context, mistakes.report)
    for path, fact in _walk_template_facts(check):
        _find_fact(fact, context, _report_at(path, mistakes.report))
    return mistakes.found


def _walk_template_facts(check: Check) -> Iterator[tuple[str, FactReference]]:
    for path, text in check.templates():
        for fact in check_definition.parse_template(text).facts():
            yield path, fact


def validate_rule(rule: Rule, path: str, context: CheckContext, report: Report) -> None:
    """Report every mistake in what a condition refers to, with its path."""
    mistakes = 0

    def told(where: str, message: str) -> None:
        nonlocal mistakes
        mistakes += 1
        report(where, message)

    for where, leaf in language.walk_leaves(rule, path):
        _validate_comparison(leaf, where, context, told)
    if not mistakes:
        report_constant(rule, path, lambda fact: _find_fact_type(fact, context), report)


def _validate_comparison(
    leaf: FactCondition, path: str, context: CheckContext, report: Report
) -> None:
    operator = OPERATORS[leaf.operator]
    if leaf.fact.source == CHECKS:
        _validate_state(leaf, path, context, report)
        return
    if leaf.fact.source == ENTITY and operator.name in _COLLECTED:
        report(f"{path}.operator", f"{operator.name} is for facts of data sources")
        return
    fact = _find_fact(leaf.fact, context, _report_below(path, report))
    if fact is not None:
        _validate_type(leaf, operator, fact, path, report)
    if isinstance(leaf.value, FactReference):
        _validate_other_fact(leaf, leaf.value, fact, f"{path}.value", context, report)
    elif fact is not None and leaf.fact.path is None:
        _validate_kind(leaf.value, operator, fact, f"{path}.value", report)


def _validate_state(leaf: FactCondition, path: str, context: CheckContext, report: Report) -> None:
    if leaf.operator not in _STATE_OPERATORS:
        words = one_of(leaf.operator, _STATE_OPERATORS)
        report(f"{path}.operator", f"{words} for the state of a check")
    elif leaf.value is not None:
        for one in leaf.value if isinstance(leaf.value, list) else [leaf.value]:
            if one not in _STATES:
                hint = "; ask with isUnknown if it is unknown"
                report(f"{path}.value", f"{one_of(one, _STATES)}{hint}")
    if leaf.fact.fact not in context.checks:
        known = _suggest_near(leaf.fact.fact, list(context.checks))
        report(f"{path}.fact", f"names no check{known}")


def _find_fact(reference: FactReference, context: CheckContext, report: Report) -> Fact | None:
    """The fact of a data source; None for the entity's document, and for what does not exist.

    Mistakes are reported for the members `source` and `fact`.
    """
    if reference.source == ENTITY:
        return None
    source = context.sources.get(reference.source)
    if source is None:
        known = _suggest_near(reference.source, [*context.sources, ENTITY, CHECKS])
        report("source", f"names no data source{known}")
        return None
    facts = {fact.name: fact for fact in source.schema}
    if reference.fact not in facts:
        known = _suggest_near(reference.fact, list(facts))
        report("fact", f"names no fact of {source.id}{known}")
        return None
    return facts[reference.fact]


def _validate_type(
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


def _validate_kind(value: Any, operator: Operator, fact: Fact, path: str, report: Report) -> None:
    if operator.form not in _OF_THE_FACT or fact.type not in operator.types or fact.type == "set":
        return
    for one in value if isinstance(value, list) else [value]:
        fits = TYPES["float" if fact.type == "integer" else fact.type].holds(one)
        if not fits:
            wanted = TYPES[fact.type].words
            report(path, f"has to be {wanted}, as {fact.name} is")
            return


def _validate_other_fact(
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
    found = _find_fact(other, context, _report_below(path, report))
    if found is None or fact is None or leaf.fact.path or other.path:
        return
    if not _are_comparable_types(OPERATORS[leaf.operator], fact.type, found.type):
        report(path, f"is of type {found.type}, which {fact.type} is not compared with")
    elif fact.unit != found.unit and {fact.type, found.type} <= _NUMBERS:
        report(path, f"is in {found.unit or 'no unit'}, and {fact.name} in {fact.unit or 'none'}")


def _are_comparable_types(operator: Operator, type_: FactType, other: FactType) -> bool:
    if operator.form is ValueForm.LIST:
        return other == "set"
    if type_ == "set":
        return other in _NUMBERS or other == "string"
    return type_ == other or {type_, other} <= _NUMBERS


def _find_fact_type(reference: FactReference, context: CheckContext) -> FactType | None:
    source = context.sources.get(reference.source)
    if source is None or reference.path is not None:
        return None
    return next((fact.type for fact in source.schema if fact.name == reference.fact), None)


def _validate_cycle(check: Check, context: CheckContext, report: Report) -> None:
    checks = {**context.checks, check.id: check}

    def reads(check_id: str) -> Iterable[str]:
        return check_definition.list_checks_read(checks[check_id]) if check_id in checks else ()

    for path, rule in check.rules():
        for where, leaf in language.walk_leaves(rule, path):
            if leaf.fact.source == CHECKS:
                way = check_definition.find_way_back(check.id, leaf.fact.fact, reads)
                if way:
                    report(f"{where}.fact", f"makes a cycle: {' → '.join(way)}")


def _report_at(path: str, report: Report) -> Report:
    return lambda _, message: report(path, message)


def _report_below(path: str, report: Report) -> Report:
    return lambda member, message: report(f"{path}.{member}", message)


def _suggest_near(name: str, names: Sequence[str]) -> str:
    return f".{suggestion(name, names)}".rstrip(".")


def list_needed_permissions(check: Check) -> tuple[str, ...]:
    """The permissions to read what the check reads, sorted."""
    found = {
        _PERMISSIONS_OF_SOURCES.get(source, SOURCE_READ) for source in _walk_read_sources(check)
    }
    if check.applies_to is not None:
        found.add(CATALOG_READ)
    return tuple(sorted(found))


def _walk_read_sources(check: Check) -> Iterator[str]:
    for _, rule in check.rules():
        yield from (fact.source for fact in language.walk_references(rule))
    for _, text in check.templates():
        yield from check_definition.parse_template(text).sources()


CheckDocument = dict[str, Any]


async def read_check_document(
    document: CheckDocument,
    database: Database,
    registry: Registry,
    max_depth: int,
    check_id: str | None = None,
    authorize: Callable[[Check], None] = lambda _: None,
) -> Check:
    """The check in a document; raises the errors of `documents.read`.

    `authorize` is asked before anything is told about what the check refers to.
    """
    context = await _read_check_context(document, database, registry)
    parse = partial(_parse_valid_check, context=context, authorize=authorize)
    return await documents.read_definition(document, parse, max_depth, check_id)


async def read_scorecard_document(
    document: CheckDocument, database: Database, max_depth: int, scorecard_id: str | None = None
) -> Scorecard:
    """The scorecard in a document; raises the errors of `documents.read`."""
    known = {one.id for one in await check_store.everything(database)}
    parse = partial(scorecard.parse_scorecard, checks=known)
    return await documents.read_definition(document, parse, max_depth, scorecard_id)


def _parse_valid_check(
    document: CheckDocument, context: CheckContext, authorize: Callable[[Check], None]
) -> Check:
    found = parse_check(document)
    authorize(found)
    if problems := find_check_problems(found, context):
        raise InvalidItemsError(problems)
    return found


async def _read_check_context(
    document: CheckDocument, database: Database, registry: Registry
) -> CheckContext:
    """Sources that the document may refer to; other checks only where it can name one."""
    known = await registry.latest()
    if _READS_CHECKS not in msgspec.json.encode(document):
        return CheckContext(known.sources, {})
    stored = await check_store.everything(database)
    written = [one.written for one in stored]
    return CheckContext(known.sources, await asyncio.to_thread(_parse_written, written))


def _parse_written(written: list[CheckDocument]) -> Mapping[str, Check]:
    found: dict[str, Check] = {}
    for document in written:
        try:
            check = parse_stored_check(document)
        except FactbookError:
            continue  # an older release took it; nothing can be said of what it reads
        found[check.id] = check
    return found

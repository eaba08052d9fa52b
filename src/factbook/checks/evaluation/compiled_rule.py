"""Evaluation of a rule for an entity, in three values: pass, fail and unknown.

A rule is compiled to functions once. `all` fails if any part fails, and is unknown if any other is
unknown; `any` is its mirror; `not` turns pass and fail round. A comparison of a value that is
unknown, or that cannot be compared, is unknown.
"""

from collections.abc import Callable
from typing import Any, Final

from factbook import user_patterns
from factbook.checks.evaluation.rule_functions import CompiledRule, Evaluate, Read, reader
from factbook.checks.evaluation.time_conditions import TIME_CONDITIONS
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.comparisons import Test
from factbook.checks.rules.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.rules.fact_reference import CHECKS, ENTITY, FactReference
from factbook.checks.rules.operators import PATTERNS
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import InputError
from factbook.facts.reasons import NOT_APPLICABLE, word
from factbook.user_patterns import UserPattern

# A value that does not fit its operator, and an object that is too large for a path.
_BROKEN: Final = (TypeError, ValueError)


def compiled_rule(rule: Rule) -> CompiledRule:
    """The rule as functions."""
    match rule:
        case Every():
            parts = [compiled_rule(one) for one in rule.conditions]
            evaluate = _every(tuple(part.evaluate for part in parts))
            return CompiledRule(evaluate, tuple(due for part in parts for due in part.dues))
        case Some():
            parts = [compiled_rule(one) for one in rule.conditions]
            evaluate = _some(tuple(part.evaluate for part in parts))
            return CompiledRule(evaluate, tuple(due for part in parts for due in part.dues))
        case Negation():
            part = compiled_rule(rule.condition)
            return CompiledRule(_negation(part.evaluate), part.dues)
        case FactCondition():
            return _compiled_leaf(rule)


def _every(parts: tuple[Evaluate, ...]) -> Evaluate:
    if len(parts) == 2:
        return _both(*parts)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = PASS
        for part in parts:
            found = part(entity, now)
            if found != PASS:
                if found == FAIL:
                    return FAIL
                state = UNKNOWN
        return state

    return evaluate


def _both(first: Evaluate, second: Evaluate) -> Evaluate:
    """The same for two, as most rules are, without a loop."""

    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = first(entity, now)
        if state == FAIL:
            return FAIL
        other = second(entity, now)
        return other if other == FAIL or state == PASS else UNKNOWN

    return evaluate


def _some(parts: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        state = FAIL
        for part in parts:
            found = part(entity, now)
            if found != FAIL:
                if found == PASS:
                    return PASS
                state = UNKNOWN
        return state

    return evaluate


def _negation(part: Evaluate) -> Evaluate:
    opposite = {PASS: FAIL, FAIL: PASS, UNKNOWN: UNKNOWN}

    def evaluate(entity: CheckedEntity, now: int) -> int:
        return opposite[part(entity, now)]

    return evaluate


def _compiled_leaf(leaf: FactCondition) -> CompiledRule:
    special = _SPECIAL.get(leaf.operator)
    if special is not None:
        return special(leaf)
    test = leaf.test
    assert test is not None, leaf.operator
    if isinstance(leaf.value, FactReference):
        return CompiledRule(_fact_to_fact(reader(leaf.fact), reader(leaf.value), test), ())
    holds = test(leaf.value)
    if leaf.fact.source in (ENTITY, CHECKS) or leaf.fact.path is not None:
        return CompiledRule(_tested(reader(leaf.fact), holds), ())
    return CompiledRule(_stored(leaf.fact.source, leaf.fact.fact, holds), ())


def _stored(source: str, fact: str, holds: Test) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        found = entity.values.get(source)
        value = None if found is None else found.get(fact)
        if value is None:
            return UNKNOWN
        try:
            return PASS if holds(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _tested(read: Read, holds: Test) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            value = read(entity)
            if value is None:
                return UNKNOWN
            return PASS if holds(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _fact_to_fact(read: Read, other: Read, test: Callable[[Any], Test]) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            value, wanted = read(entity), other(entity)
            if value is None or wanted is None:
                return UNKNOWN
            return PASS if test(wanted)(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _is_known(leaf: FactCondition) -> CompiledRule:
    read = reader(leaf.fact)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            return FAIL if read(entity) is None else PASS
        except ValueError:
            return UNKNOWN

    return CompiledRule(evaluate, ())


def _is_unknown(leaf: FactCondition) -> CompiledRule:
    return CompiledRule(_negation(_is_known(leaf).evaluate), ())


def _matches(leaf: FactCondition) -> CompiledRule:
    """Search anywhere in the text, or in each of a set, unless the pattern has ^ and $."""
    read, wanted, of_set = reader(leaf.fact), leaf.pattern, leaf.operator == "anyMatches"
    try:
        user_patterns.compile_pattern(wanted)
    except InputError:
        # Of a check that an older release has stored.
        return CompiledRule(lambda entity, now: UNKNOWN, ())

    def evaluate(entity: CheckedEntity, now: int) -> int:
        # Compiled patterns take memory, so only the last ones are kept.
        pattern = user_patterns.compile_pattern(wanted)
        try:
            value = read(entity)
        except _BROKEN:
            return UNKNOWN
        if not of_set:
            return _search(pattern, value, entity)
        if not isinstance(value, list):
            return UNKNOWN
        states = set()
        for one in value:
            # Numbers are no text, and are known not to match.
            found = FAIL if type(one) in (int, float) else _search(pattern, one, entity)
            if found == PASS:
                return PASS
            states.add(found)
        return UNKNOWN if UNKNOWN in states else FAIL

    return CompiledRule(evaluate, ())


def _search(pattern: UserPattern, value: Any, entity: CheckedEntity) -> int:
    if type(value) is not str or len(value) > pattern.longest:
        return UNKNOWN
    try:
        text = value.encode()
        entity.spend(pattern.size * len(text))
    except _BROKEN:
        return UNKNOWN
    return PASS if pattern.occurs(text) else FAIL


def _reason_is(leaf: FactCondition) -> CompiledRule:
    fact, wanted, read = leaf.fact, leaf.value, reader(leaf.fact)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        try:
            if read(entity) is not None:
                return FAIL
        except ValueError:
            return UNKNOWN
        # What was collected has nothing at the path.
        is_collected = fact.path is not None and entity.value(fact) is not None
        reason = NOT_APPLICABLE if is_collected else word(entity.reason(fact))
        return PASS if reason == wanted else FAIL

    return CompiledRule(evaluate, ())


_SPECIAL: Final[dict[str, Callable[[FactCondition], CompiledRule]]] = {
    "isKnown": _is_known,
    "isUnknown": _is_unknown,
    "reasonIs": _reason_is,
    **dict.fromkeys(PATTERNS, _matches),
    **TIME_CONDITIONS,
}

"""Evaluation of a rule for an entity, in three values: pass, fail and unknown.

A rule is compiled to functions once. `all` fails if any part fails, and is unknown if any other is
unknown; `any` is its mirror; `not` turns pass and fail round. A comparison of a value that is
unknown, or that cannot be compared, is unknown.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from factbook import clock
from factbook.checks import operators, wanted_values
from factbook.checks.checked_entity import CheckedEntity
from factbook.checks.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.fact_reference import CHECKS, ENTITY, FactReference
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.datasources.custom import extraction
from factbook.facts.reasons import NOT_APPLICABLE, word
from factbook.outbound.outcomes import Missing

# The state for an entity at a time.
Evaluate = Callable[[CheckedEntity, int], int]
# The time at which the state may change although nothing is written; None if there is none.
Due = Callable[[CheckedEntity, int], int | None]
_Read = Callable[[CheckedEntity], Any]

# A value that does not fit its operator, and a pattern that takes too long.
_BROKEN: Final = (TypeError, ValueError, TimeoutError)


class CompiledRule(NamedTuple):
    """A rule as functions: its evaluation, and the times that its comparisons wait for."""

    evaluate: Evaluate
    dues: tuple[Due, ...]


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
    test = operators.OPERATORS[leaf.operator].test
    assert test is not None, leaf.operator
    if isinstance(leaf.value, FactReference):
        return CompiledRule(_fact_to_fact(reader(leaf.fact), reader(leaf.value), test), ())
    holds = test(leaf.value)
    if leaf.fact.source in (ENTITY, CHECKS) or leaf.fact.path is not None:
        return CompiledRule(_tested(reader(leaf.fact), holds), ())
    return CompiledRule(_stored(leaf.fact.source, leaf.fact.fact, holds), ())


def _stored(source: str, fact: str, holds: operators.Test) -> Evaluate:
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


def _tested(read: _Read, holds: operators.Test) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        value = read(entity)
        if value is None:
            return UNKNOWN
        try:
            return PASS if holds(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def _fact_to_fact(read: _Read, other: _Read, test: Callable[[Any], operators.Test]) -> Evaluate:
    def evaluate(entity: CheckedEntity, now: int) -> int:
        value, wanted = read(entity), other(entity)
        if value is None or wanted is None:
            return UNKNOWN
        try:
            return PASS if test(wanted)(value) else FAIL
        except _BROKEN:
            return UNKNOWN

    return evaluate


def reader(fact: FactReference) -> _Read:
    """A function that reads the fact of an entity; it gives None for what is unknown."""
    if fact.source == ENTITY:
        place = fact.fact
        return lambda entity: entity.at(place)
    if fact.path is None:
        return lambda entity: entity.value(fact)
    expression = extraction.expression(fact.path)

    def read(entity: CheckedEntity) -> Any:
        value = entity.value(fact)
        found = None if value is None else expression.of(value)
        return None if isinstance(found, Missing) else found

    return read


def _is_known(leaf: FactCondition) -> CompiledRule:
    read = reader(leaf.fact)
    return CompiledRule(lambda entity, now: FAIL if read(entity) is None else PASS, ())


def _is_unknown(leaf: FactCondition) -> CompiledRule:
    return CompiledRule(_negation(_is_known(leaf).evaluate), ())


def _reason_is(leaf: FactCondition) -> CompiledRule:
    fact, wanted, read = leaf.fact, leaf.value, reader(leaf.fact)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        if read(entity) is not None:
            return FAIL
        # What was collected has nothing at the path.
        is_collected = fact.path is not None and entity.value(fact) is not None
        reason = NOT_APPLICABLE if is_collected else word(entity.reason(fact))
        return PASS if reason == wanted else FAIL

    return CompiledRule(evaluate, ())


class _Deadline(NamedTuple):
    """A comparison that holds up to a time, or from it on: the time is that of a fact."""

    time: Callable[[CheckedEntity], int | None]
    before: int
    after: int

    def evaluate(self, entity: CheckedEntity, now: int) -> int:
        time = self.time(entity)
        if time is None:
            return UNKNOWN
        return self.before if now < time else self.after

    def due(self, entity: CheckedEntity, now: int) -> int | None:
        time = self.time(entity)
        return time if time is not None and now < time else None


def _deadline(
    time: Callable[[CheckedEntity], int | None], shift: int, before: int, after: int
) -> CompiledRule:
    def shifted(entity: CheckedEntity) -> int | None:
        found = time(entity)
        return None if found is None else found + shift

    found = _Deadline(shifted, before, after)
    return CompiledRule(found.evaluate, (found.due,))


def _moment_of(fact: FactReference) -> Callable[[CheckedEntity], int | None]:
    read = reader(fact)

    def time(entity: CheckedEntity) -> int | None:
        value = read(entity)
        return clock.milliseconds(value) if isinstance(value, str) else None

    return time


def _older(leaf: FactCondition) -> CompiledRule:
    length = wanted_values.duration(leaf.value)
    return _deadline(_moment_of(leaf.fact), length + 1, FAIL, PASS)


def _newer(leaf: FactCondition) -> CompiledRule:
    length = wanted_values.duration(leaf.value)
    return _deadline(_moment_of(leaf.fact), length, PASS, FAIL)


def _fresh(leaf: FactCondition) -> CompiledRule:
    length, fact = wanted_values.duration(leaf.value), leaf.fact
    return _deadline(lambda entity: entity.time(fact), length + 1, PASS, FAIL)


def _before(leaf: FactCondition) -> CompiledRule:
    if isinstance(leaf.value, dict):
        # From then on the fact is before the moment that moves on with the time.
        shift = 1 - wanted_values.duration(leaf.value)
        return _deadline(_moment_of(leaf.fact), shift, FAIL, PASS)
    return _ordered(leaf, lambda time, wanted: time < wanted)


def _after(leaf: FactCondition) -> CompiledRule:
    if isinstance(leaf.value, dict):
        shift = -wanted_values.duration(leaf.value)
        return _deadline(_moment_of(leaf.fact), shift, PASS, FAIL)
    return _ordered(leaf, lambda time, wanted: time > wanted)


def _ordered(leaf: FactCondition, holds: Callable[[int, int], bool]) -> CompiledRule:
    time = _moment_of(leaf.fact)
    other = _wanted_moment(leaf.value)

    def evaluate(entity: CheckedEntity, now: int) -> int:
        found, wanted = time(entity), other(entity)
        if found is None or wanted is None:
            return UNKNOWN
        return PASS if holds(found, wanted) else FAIL

    return CompiledRule(evaluate, ())


def _wanted_moment(value: FactReference | str) -> Callable[[CheckedEntity], int | None]:
    if isinstance(value, FactReference):
        return _moment_of(value)
    wanted = wanted_values.moment(value)
    return lambda entity: wanted


_SPECIAL: Final[dict[str, Callable[[FactCondition], CompiledRule]]] = {
    "isKnown": _is_known,
    "isUnknown": _is_unknown,
    "reasonIs": _reason_is,
    "freshWithin": _fresh,
    "olderThan": _older,
    "newerThan": _newer,
    "before": _before,
    "after": _after,
}

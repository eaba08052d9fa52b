"""Comparisons of facts with times, some of which turn out otherwise as time goes by."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from factbook import clock
from factbook.checks.evaluation.rule_functions import CompiledRule, reader
from factbook.checks.rules import wanted_values
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.condition import FactCondition
from factbook.checks.rules.fact_reference import FactReference
from factbook.checks.state import FAIL, PASS, UNKNOWN


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
        try:
            value = read(entity)
        except ValueError:
            return None
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


TIME_CONDITIONS: Final[Mapping[str, Callable[[FactCondition], CompiledRule]]] = {
    "freshWithin": _fresh,
    "olderThan": _older,
    "newerThan": _newer,
    "before": _before,
    "after": _after,
}

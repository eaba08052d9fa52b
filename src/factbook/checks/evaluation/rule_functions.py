"""Functions that rules are compiled to: of one entity at a time."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.fact_reference import ENTITY, FactReference
from factbook.datasources.custom import extraction
from factbook.outbound.outcomes import Missing

# The state for an entity at a time.
Evaluate = Callable[[CheckedEntity, int], int]
# The time at which the state may change although nothing is written; None if there is none.
Due = Callable[[CheckedEntity, int], int | None]
# Raises ValueError for a value that cannot be read.
Read = Callable[[CheckedEntity], Any]

# About a tenth of a second.
_MOST_STEPS: Final = 100_000
# A step of an expression takes about a microsecond.
_STEPS_OF_EXPRESSION: Final = 50


class CompiledRule(NamedTuple):
    """A rule as functions: its evaluation, and the times that its comparisons wait for."""

    evaluate: Evaluate
    dues: tuple[Due, ...]


def reader(fact: FactReference) -> Read:
    """A function that reads the fact of an entity; it gives None for what is unknown.

    It raises ValueError for an object that is too large for the expression of its path.
    """
    if fact.source == ENTITY:
        place = fact.fact
        return lambda entity: entity.at(place)
    if fact.path is None:
        return lambda entity: entity.value(fact)
    expression = extraction.expression(fact.path)

    def read(entity: CheckedEntity) -> Any:
        value = entity.value(fact)
        if value is None:
            return None
        most = min(_MOST_STEPS, entity.steps_left // _STEPS_OF_EXPRESSION)
        found, steps = expression.measured(value, most)
        entity.spend(steps * _STEPS_OF_EXPRESSION)
        if found is extraction.TOO_SLOW or found is extraction.TOO_LARGE:
            raise ValueError(fact.path)
        return None if isinstance(found, Missing) else found

    return read

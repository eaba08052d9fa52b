"""A check ready to be evaluated for many entities."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Final, NamedTuple

from factbook.checks import condition
from factbook.checks.checked_entity import CheckedEntity
from factbook.checks.condition import Rule
from factbook.checks.definition import Check
from factbook.checks.evaluation import compiled_rule
from factbook.checks.fact_reference import CHECKS, ENTITY
from factbook.checks.state import FAIL, INAPPLICABLE, PASS, UNKNOWN
from factbook.facts.entity_filter import Matcher


class CheckOutcome(NamedTuple):
    """The state of a check for one entity.

    `due` is the earliest time at which it may change although nothing is written, in milliseconds.
    """

    state: int
    due: int | None = None


_OUTCOMES: Final[Mapping[int, CheckOutcome]] = {
    state: CheckOutcome(state) for state in (PASS, FAIL, UNKNOWN, INAPPLICABLE)
}


class CompiledCheck:
    """A check as functions; `slot` is the place of its state among those of an entity.

    `sources` are the data sources whose facts it reads, `checks` the other checks, and
    `reads_entity` tells if it reads the document for more than `appliesTo`.
    """

    __slots__ = (
        "_applicable",
        "_dues",
        "_on_unknown",
        "_rule",
        "check",
        "checks",
        "reads_entity",
        "slot",
        "sources",
    )

    def __init__(self, check: Check, slot: int) -> None:
        self.check = check
        self.slot = slot
        facts = [fact for rule in _rules(check) for fact in condition.references(rule)]
        self.sources = frozenset(fact.source for fact in facts) - {ENTITY, CHECKS}
        self.checks = frozenset(fact.fact for fact in facts if fact.source == CHECKS)
        self.reads_entity = any(fact.source == ENTITY for fact in facts)
        rules = [compiled_rule(rule) for rule in _rules(check)]
        self._rule = rules[0].evaluate
        self._applicable = rules[1].evaluate if len(rules) > 1 else None
        self._dues = tuple(due for rule in rules for due in rule.dues)
        self._on_unknown = check.on_unknown

    def applies(self, matcher: Matcher) -> bool:
        """Return true if the check is about the entity."""
        return matcher.lets_through(self.check.applies_to)

    def evaluate(self, entity: CheckedEntity, now: int) -> CheckOutcome:
        """The outcome for an entity that the check applies to."""
        state = PASS if self._applicable is None else self._applicable(entity, now)
        if state == PASS:
            state = self._rule(entity, now)
        elif state == FAIL:
            state = INAPPLICABLE
        if state == UNKNOWN:
            state = self._on_unknown
        if not self._dues:
            return _OUTCOMES[state]
        times = [time for due in self._dues if (time := due(entity, now)) is not None]
        return CheckOutcome(state, min(times, default=None))


def compiled(check: Check, slot: int) -> CompiledCheck:
    """The check as functions; `slot` is the place of its state among those of an entity."""
    return CompiledCheck(check, slot)


def in_order(checks: Iterable[CompiledCheck]) -> list[CompiledCheck]:
    """The checks, each after those whose states it reads.

    Those of a cycle, which saving them refuses, come in any order.
    """
    by_id = {one.check.id: one for one in checks}
    sorter = TopologicalSorter({id_: one.checks & by_id.keys() for id_, one in by_id.items()})
    try:
        return [by_id[id_] for id_ in sorter.static_order()]
    except CycleError:
        return list(by_id.values())


def _rules(check: Check) -> list[Rule]:
    return [check.rule, *([check.applicable_when] if check.applicable_when else [])]

"""A check ready to be evaluated for many entities."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple, TypeVar

from factbook.checks.definitions import dependencies
from factbook.checks.definitions.check import Check
from factbook.checks.evaluation.compiled_rule import compiled_rule
from factbook.checks.evaluation.rule_functions import Evaluate
from factbook.checks.rules import condition
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.fact_reference import CHECKS, ENTITY
from factbook.checks.rules.operators import PATTERNS
from factbook.checks.state import FAIL, INAPPLICABLE, PASS, UNKNOWN
from factbook.facts.entity_filter import Matcher
from factbook.integrations import catalog


class CheckOutcome(NamedTuple):
    """The state of a check for one entity.

    `due` is the earliest time at which it may change although nothing is written, in milliseconds.
    """

    state: int
    due: int | None = None


_OUTCOMES: Final[Mapping[int, CheckOutcome]] = {
    state: CheckOutcome(state) for state in (PASS, FAIL, UNKNOWN, INAPPLICABLE)
}

# Operators that read why a value is unknown, or when it was collected.
_BEYOND_VALUES: Final = frozenset({"reasonIs", "freshWithin"})


class CompiledCheck:
    """A check as functions; `slot` is the place of its state among those of an entity.

    `sources` are the data sources whose facts it reads, `checks` the other checks. It may
    `reads_entity` for more than `appliesTo`, and `reads_owner`: whether the owner exists. If it
    `reads_values_only`, the values of facts are all that decides, whatever their reasons and times.
    It `is_costly` if it has patterns or paths, whose time depends on what they are applied to;
    `patterns` are those that can be evaluated, each with its fact.
    """

    __slots__ = (
        *("check", "checks", "evaluate", "has_failed", "is_costly", "patterns"),
        *("reads_entity", "reads_owner", "reads_values_only", "rule", "slot", "sources"),
    )

    def __init__(self, check: Check, slot: int) -> None:
        self.check = check
        self.slot = slot
        rules = [rule for _, rule in check.rules()]
        facts = [fact for rule in rules for fact in condition.references(rule)]
        leaves = [leaf for rule in rules for _, leaf in condition.leaves(rule)]
        self.sources = frozenset(fact.source for fact in facts) - {ENTITY, CHECKS}
        self.checks = frozenset(fact.fact for fact in facts if fact.source == CHECKS)
        self.reads_entity = any(fact.source == ENTITY for fact in facts)
        self.reads_owner = any(catalog.tells_of_owner(fact.source, fact.fact) for fact in facts)
        self.reads_values_only = not (
            self.checks
            or self.reads_entity
            or any(leaf.operator in _BEYOND_VALUES for leaf in leaves)
        )
        self.patterns = tuple(
            (leaf.fact, leaf.pattern)
            for leaf in leaves
            if leaf.operator in PATTERNS and not any(condition.refused_patterns(leaf))
        )
        self.is_costly = bool(self.patterns) or any(fact.path is not None for fact in facts)
        # The state for such an entity where the rule alone gives it, whatever the time is.
        self.rule = _rule_alone(check)
        # The outcome for an entity that the check applies to, at a time.
        self.evaluate = _evaluation(check) if self.rule is None else _plain(self.rule)
        if self.is_costly:
            self.rule = self.rule and _counted(self.rule)
            self.evaluate = _counted(self.evaluate)
        # An exception was raised by it, and has been logged.
        self.has_failed = False

    def applies(self, matcher: Matcher) -> bool:
        """Return true if the check is about the entity."""
        return matcher.lets_through(self.check.applies_to)


T = TypeVar("T")


def _counted(evaluate: Callable[[CheckedEntity, int], T]) -> Callable[[CheckedEntity, int], T]:
    """The same evaluation, which counts its steps as those of one check."""

    def counted(entity: CheckedEntity, now: int) -> T:
        entity.begin_check()
        return evaluate(entity, now)

    return counted


def _rule_alone(check: Check) -> Evaluate | None:
    """The rule of a check without a condition, of which no state changes as time passes."""
    rule = compiled_rule(check.rule)
    is_plain = check.applicable_when is None and check.on_unknown == UNKNOWN and not rule.dues
    return rule.evaluate if is_plain else None


def _evaluation(check: Check) -> Callable[[CheckedEntity, int], CheckOutcome]:
    """The evaluation for an entity."""
    rule = compiled_rule(check.rule)
    condition_rule = check.applicable_when and compiled_rule(check.applicable_when)
    dues = (*rule.dues, *(condition_rule.dues if condition_rule else ()))
    applicable = condition_rule.evaluate if condition_rule else None

    def evaluate(entity: CheckedEntity, now: int) -> CheckOutcome:
        state = PASS if applicable is None else applicable(entity, now)
        if state == PASS:
            state = rule.evaluate(entity, now)
        elif state == FAIL:
            state = INAPPLICABLE
        if state == UNKNOWN:
            state = check.on_unknown
        times = [time for due in dues if (time := due(entity, now)) is not None]
        return CheckOutcome(state, min(times)) if times else _OUTCOMES[state]

    return evaluate


def _plain(evaluate_rule: Evaluate) -> Callable[[CheckedEntity, int], CheckOutcome]:
    outcomes = _OUTCOMES

    def evaluate(entity: CheckedEntity, now: int) -> CheckOutcome:
        return outcomes[evaluate_rule(entity, now)]

    return evaluate


def compiled(check: Check, slot: int) -> CompiledCheck:
    """The check as functions; `slot` is the place of its state among those of an entity."""
    return CompiledCheck(check, slot)


def in_order(checks: Iterable[CompiledCheck]) -> list[CompiledCheck]:
    """The checks, each after those whose states it reads."""
    by_id = {one.check.id: one for one in checks}
    reads = {id_: one.checks for id_, one in by_id.items()}
    return [by_id[id_] for id_ in dependencies.in_order(reads)]

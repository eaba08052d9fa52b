"""Evaluation with some of the facts: what these decide, whatever the others may be."""

from collections.abc import Callable, Mapping

from factbook.checks.evaluation.compiled_check import CompiledCheck
from factbook.checks.evaluation.compiled_rule import compiled_rule
from factbook.checks.rules import condition
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.condition import Every, FactCondition, Negation, Rule, Some
from factbook.checks.rules.fact_reference import CHECKS, FactReference
from factbook.checks.state import FAIL, INAPPLICABLE, OUT, PASS, UNKNOWN
from factbook.facts.entity_filter import Matcher

_OPPOSITE = {PASS: FAIL, FAIL: PASS}


class PartialEvaluation:
    """The states of checks for one entity, as far as the facts that count decide them."""

    def __init__(
        self,
        checks: Mapping[str, CompiledCheck],
        entity: CheckedEntity,
        counts: Callable[[FactReference], bool],
        now: int,
    ) -> None:
        """`counts` tells of a fact, other than the state of a check, if it does."""
        self._checks = checks
        self._entity = entity
        self._matcher = Matcher(dict(entity.document))
        self._counts = counts
        self._now = now
        self._found: dict[str, int | None] = {}

    def state(self, check_id: str) -> int | None:
        """The state of a check; None if that depends on a fact that does not count."""
        if check_id not in self._found:
            self._found[check_id] = None  # of checks that read each other in a cycle
            one = self._checks.get(check_id)
            self._found[check_id] = UNKNOWN if one is None else self._state(one)
        return self._found[check_id]

    def _state(self, one: CompiledCheck) -> int | None:
        if not one.applies(self._matcher):
            return OUT
        check = one.check
        applicable = PASS if check.applicable_when is None else self._of(check.applicable_when)
        if applicable == FAIL:
            return INAPPLICABLE
        found = self._of(check.rule) if applicable == PASS else UNKNOWN
        if found != UNKNOWN:
            return found
        facts = (fact for _, rule in check.rules() for fact in condition.references(rule))
        return check.on_unknown if all(map(self.is_given, facts)) else None

    def _of(self, rule: Rule) -> int:
        """The state of a rule, in which a comparison of what does not count is unknown."""
        match rule:
            case Every():
                return self._first((FAIL, UNKNOWN), rule.conditions) or PASS
            case Some():
                return self._first((PASS, UNKNOWN), rule.conditions) or FAIL
            case Negation():
                found = self._of(rule.condition)
                return _OPPOSITE.get(found, found)
        return self._of_comparison(rule)

    def _first(self, wanted: tuple[int, int], rules: tuple[Rule, ...]) -> int | None:
        states = {self._of(rule) for rule in rules}
        return next((one for one in wanted if one in states), None)

    def _of_comparison(self, leaf: FactCondition) -> int:
        facts = [leaf.fact, *([leaf.value] if isinstance(leaf.value, FactReference) else [])]
        if not all(map(self.is_given, facts)):
            return UNKNOWN
        self._entity.begin_check()
        return compiled_rule(leaf).evaluate(self._entity, self._now)

    def is_given(self, fact: FactReference) -> bool:
        """Return true for a fact that counts, or the state of a check that depends on such."""
        if fact.source == CHECKS:
            return self.state(fact.fact) is not None
        return self._counts(fact)

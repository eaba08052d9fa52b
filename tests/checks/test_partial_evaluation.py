"""What some of the facts decide of a check holds whatever the others are."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks.rules.check_definition import Check
from factbook.checks.rules.language import FactReference, walk_references
from factbook.checks.rules.rule_evaluation import CompiledCheck, PartialEvaluation
from factbook.checks.state import FAIL, INAPPLICABLE, OUT, PASS, UNKNOWN
from tests.checks import random_rules
from tests.checks.making import NOW, check, entity, evaluated
from tests.soak import examples


def decided(*checks: Check, **facts: Any) -> int | None:
    """The state of the last check by the facts of `one` alone, where the first of two passes."""

    def counts(fact: FactReference) -> bool:
        return fact.source != "two"

    by_id = {one.id: CompiledCheck(one, 0) for one in checks}
    return PartialEvaluation(by_id, entity(facts, states={"first": PASS}), counts, NOW).state(
        checks[-1].id
    )


@pytest.mark.slow
@examples(150)
@given(
    random_rules.rules(),
    random_rules.facts(),
    st.lists(st.tuples(random_rules.facts(), random_rules.reasons()), min_size=1, max_size=4),
    st.sampled_from(["unknown", "fail", "pass"]),
)
def test_what_is_decided_is_so_whatever_else_is_known(
    rule: Any, facts: Any, others: Any, on_unknown: str
) -> None:
    one = check(rule, onUnknown=on_unknown)
    found = decided(one, **facts)
    for values, reasons in others:
        known = {"one": facts.get("one", {}), "two": values.get("two", {})}
        if found is not None:
            of_others = {"two": reasons.get("two", {})}
            assert evaluated(one, entity(known, of_others)).state == found
    if all(fact.source == "one" for fact in walk_references(one.rule)):
        assert found == evaluated(one, entity(facts)).state


def a_leaf(source: str, fact: str = "first.boolean", operator: str = "equal") -> dict[str, Any]:
    return {"source": source, "fact": fact, "operator": operator, "value": True}


def test_questions_about_knowledge_of_other_facts_are_open() -> None:
    for operator in ("isKnown", "isUnknown"):
        rule = {"source": "two", "fact": "first.boolean", "operator": operator}
        assert decided(check(rule), one={}) is None


def test_what_does_not_apply_is_decided_by_what_says_so() -> None:
    on = {"first.boolean": True}
    off = {"first.boolean": False}
    when = check(a_leaf("two"), applicableWhen=a_leaf("one"))
    assert (decided(when, one=off), decided(when, one=on)) == (INAPPLICABLE, None)
    late = check(a_leaf("one"), applicableWhen=a_leaf("two"), onUnknown="fail")
    assert decided(late, one=on) is None
    assert decided(check(a_leaf("two"), appliesTo={"kind": "api"}), one={}) == OUT


def test_checks_that_read_others_are_decided_if_these_are() -> None:
    other = {"source": "checks", "fact": "first", "operator": "equal", "value": "pass"}
    for source, found in (("one", PASS), ("two", None)):
        first = check(a_leaf(source), id="first")
        assert decided(first, check(other, id="second"), one={"first.boolean": True}) == found
    missing = {**other, "fact": "none"}
    assert decided(check(missing), one={}) == UNKNOWN
    guess = check(a_leaf("one"), onUnknown="fail")
    assert decided(guess, one={}) == FAIL

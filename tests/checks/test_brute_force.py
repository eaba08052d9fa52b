from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import KNOWLEDGE_OPERATORS, read_condition, walk_leaves
from factbook.checks.rules.rule_evaluation import CompiledCheck
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.clock import DAY
from tests.checks import random_rules
from tests.checks.brute_force import truth
from tests.checks.making import NOW, check, entity, evaluated
from tests.checks.sources import mistakes
from tests.soak import examples

FRESH = {"source": "one", "fact": "first.integer", "operator": "freshWithin", "value": {"days": 7}}
WHY = {"source": "one", "fact": "first.integer", "operator": "reasonIs", "value": "not-applicable"}
STATES = {True: PASS, False: FAIL, None: UNKNOWN}


@pytest.mark.slow
@examples(200)
@given(random_rules.rules(), random_rules.facts(), random_rules.reasons())
def test_a_rule_is_evaluated_as_its_description_says(rule: Any, facts: Any, reasons: Any) -> None:
    found = evaluated(check(rule), entity(facts, reasons))

    assert found.state == STATES[truth(rule, facts, reasons, NOW)]


@pytest.mark.slow
@examples(50)
@given(random_rules.rules(), random_rules.reasons())
def test_without_facts_only_questions_about_knowledge_are_answered(rule: Any, reasons: Any) -> None:
    operators = {leaf.operator for _, leaf in walk_leaves(check(rule).rule)}

    found = evaluated(check(rule), entity({}, reasons))

    if not operators & KNOWLEDGE_OPERATORS:
        assert found.state == UNKNOWN


@pytest.mark.slow
@examples(75)
@given(random_rules.rules(), random_rules.facts(), st.data())
def test_one_fact_more_turns_no_pass_into_a_fail(rule: Any, facts: Any, data: Any) -> None:
    """What is known already decides: a value that is found later changes only what was unknown."""
    operators = {leaf.operator for _, leaf in walk_leaves(check(rule).rule)}
    later = data.draw(random_rules.facts())
    more = {source: later.get(source, {}) | facts.get(source, {}) for source in {*facts, *later}}

    before, after = (evaluated(check(rule), entity(one)).state for one in (facts, more))

    assert before in (UNKNOWN, after) or operators & KNOWLEDGE_OPERATORS


@pytest.mark.slow
@examples(75)
@given(random_rules.rules(), random_rules.facts(), st.integers(0, 70 * DAY))
def test_nothing_changes_before_it_is_due(rule: Any, facts: Any, later: int) -> None:
    one, subject = check(rule), entity(facts)
    found = evaluated(one, subject)
    then = NOW + later if found.due is None else min(NOW + later, found.due - 1)

    assert then >= NOW
    assert evaluated(one, subject, then).state == found.state
    assert truth(rule, facts, {}, then) == truth(rule, facts, {}, NOW)


@pytest.mark.slow
@examples(100)
@given(
    st.one_of(random_rules.rules(), random_rules.leaves()),
    st.one_of(random_rules.facts(), random_rules.every_fact()),
    random_rules.reasons(),
    st.integers(0, 70 * DAY),
)
@example(FRESH, {"one": {"first.integer": 1}}, {}, 0)
@example(WHY, {}, {"one": {"": "not-applicable"}}, 0)
def test_what_values_alone_decide_has_the_same_outcome_without_reasons_and_times(
    rule: Any, facts: Any, reasons: Any, age: int
) -> None:
    found = CompiledCheck(check(rule), 0)
    whole = found.evaluate(entity(facts, reasons), NOW + age)

    if found.reads_values_only:
        assert found.evaluate(CheckedEntity.of_values(facts), NOW + age) == whole
    else:
        assert "reasonIs" in str(rule) or "freshWithin" in str(rule)


@examples(50)
@given(random_rules.rules())
def test_every_rule_is_read_without_a_mistake(rule: Any) -> None:
    mistakes = list[tuple[str, str]]()

    read_condition(rule, "rule", lambda path, message: mistakes.append((path, message)))

    assert mistakes == []


@pytest.mark.slow
@examples(100)
@given(random_rules.rules(), random_rules.every_fact())
def test_a_rule_is_only_refused_as_constant_if_it_is(rule: Any, facts: Any) -> None:
    message = mistakes(check(rule)).get("rule", "")

    found = truth(rule, facts, {}, NOW)

    if message.startswith("holds for every value"):
        assert found is not False
    if message.startswith("holds for no value"):
        assert found is not True

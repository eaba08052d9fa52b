"""Trial of a check with the tests that it carries."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions import templates
from factbook.checks.definitions.check import Check
from factbook.checks.definitions.check_test import CheckTest
from factbook.checks.evaluation.compiled_check import compiled
from factbook.checks.evaluation.explanation import Explanation, explain
from factbook.checks.rules import condition
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.contradictions import report_constant
from factbook.checks.rules.fact_reference import FactReference
from factbook.checks.rules.operators import KNOWLEDGE
from factbook.facts.entity_filter import Matcher
from factbook.facts.freshness import Latest

_ENTITY: Final[dict[str, Any]] = {"kind": "Component", "metadata": {"name": "test"}}
_STATES: Final = {state.word(one): one for one in (state.PASS, state.FAIL, state.UNKNOWN)}


class CheckTrial(NamedTuple):
    """Result of one test: the state that came of it, and what each comparison saw.

    `explanation` is None if the check is not about the entity of the test.
    """

    test: CheckTest
    state: str
    explanation: Explanation | None

    @property
    def passed(self) -> bool:
        """True if the state is the expected one."""
        return self.state == self.test.expect


def tried(check: Check, now: int) -> list[CheckTrial]:
    """The results of the tests of a check; `now` is the time of those that name none."""
    return [_result(check, test, test.at if test.at is not None else now) for test in check.tests]


def outcome(check: Check, test: CheckTest, now: int) -> str:
    """The state that a test gives, as a word."""
    return state.word(compiled(check, 0).evaluate(_entity(test, now), now).state)


def gaps(check: Check) -> Iterator[tuple[str, str]]:
    """Gaps in the tests of a check, names they use in vain, and parts that no value changes."""
    expected = {test.expect for test in check.tests}
    for word in _wanted(check):
        if word not in expected:
            yield "tests", f"have none that expects {word}"
    yield from _unread(check)
    found: list[tuple[str, str]] = []
    for path, rule in check.rules():
        report_constant(rule, path, lambda _: None, lambda *problem: found.append(problem))
    yield from found


def _wanted(check: Check) -> list[str]:
    """The states that tests have to show; a check may not be able to be unknown."""
    leaves = [leaf for _, rule in check.rules() for _, leaf in condition.leaves(rule)]
    can_be_unknown = any(leaf.operator not in KNOWLEDGE for leaf in leaves)
    keeps_unknown = can_be_unknown and check.on_unknown == state.UNKNOWN
    return ["pass", "fail", *(["unknown"] if keeps_unknown else [])]


def _unread(check: Check) -> Iterator[tuple[str, str]]:
    """The facts of tests that the check does not read: names with a mistake, mostly."""
    read = {(fact.source, fact.fact) for fact in _read(check)}
    for position, test in enumerate(check.tests):
        for source, facts in test.facts.items():
            for fact in facts:
                if (source, fact) not in read:
                    yield f"tests[{position}].facts.{source}.{fact}", "is not read by the check"


def _read(check: Check) -> Iterator[FactReference]:
    for _, rule in check.rules():
        yield from condition.references(rule)
    for _, text in check.templates():
        yield from templates.parse(text).facts()


def _result(check: Check, test: CheckTest, now: int) -> CheckTrial:
    entity = _entity(test, now)
    one = compiled(check, 0)
    if test.entity is not None and not one.applies(Matcher(dict(test.entity))):
        return CheckTrial(test, state.word(state.OUT), None)
    explanation = explain(check, entity, now)
    return CheckTrial(test, state.word(explanation.state), explanation)


def _entity(test: CheckTest, now: int) -> CheckedEntity:
    sources = [*test.facts, *(test.reasons.keys() - test.facts.keys())]
    facts = {
        source: Latest(
            {
                name: value
                for name, value in test.facts.get(source, {}).items()
                if value is not None
            },
            dict(test.reasons.get(source, {})),
            "",
            now,
        )
        for source in sources
    }
    states = {id_: _STATES.get(word, state.INAPPLICABLE) for id_, word in test.checks.items()}
    return CheckedEntity("component:default/test", test.entity or _ENTITY, facts, states)

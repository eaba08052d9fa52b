"""Trial of a check with the tests that it carries."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, CheckTest
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.contradictions import report_constant
from factbook.checks.rules.explanation import Explanation, explain_check
from factbook.checks.rules.language import KNOWLEDGE_OPERATORS, FactReference
from factbook.checks.rules.rule_evaluation import compile_check
from factbook.facts.entity_filter import Matcher
from factbook.facts.freshness import Latest

_ENTITY: Final[dict[str, Any]] = {"kind": "Component", "metadata": {"name": "test"}}
_STATES: Final = {state.name_state(one): one for one in (state.PASS, state.FAIL, state.UNKNOWN)}


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


def try_check(check: Check, now: int) -> list[CheckTrial]:
    """The results of the tests of a check; `now` is the time of those that name none."""
    return [
        _explain_test(check, test, test.at if test.at is not None else now) for test in check.tests
    ]


def evaluate_test(check: Check, test: CheckTest, now: int) -> str:
    """The state that a test gives, as a word."""
    return state.name_state(
        compile_check(check, 0).evaluate(_make_test_entity(test, now), now).state
    )


def list_test_gaps(check: Check) -> Iterator[tuple[str, str]]:
    """Gaps in the tests of a check, names they use in vain, and parts that no value changes."""
    expected = {test.expect for test in check.tests}
    for word in _list_expected(check):
        if word not in expected:
            yield "tests", f"have none that expects {word}"
    yield from _list_unread(check)
    found: list[tuple[str, str]] = []
    for path, rule in check.rules():
        report_constant(rule, path, lambda _: None, lambda *problem: found.append(problem))
    yield from found


def _list_expected(check: Check) -> list[str]:
    """The states that tests have to show; a check may not be able to be unknown."""
    leaves = [leaf for _, rule in check.rules() for _, leaf in language.walk_leaves(rule)]
    can_be_unknown = any(leaf.operator not in KNOWLEDGE_OPERATORS for leaf in leaves)
    keeps_unknown = can_be_unknown and check.on_unknown == state.UNKNOWN
    return ["pass", "fail", *(["unknown"] if keeps_unknown else [])]


def _list_unread(check: Check) -> Iterator[tuple[str, str]]:
    """The facts of tests that the check does not read: names with a mistake, mostly."""
    read = {(fact.source, fact.fact) for fact in _list_facts_read(check)}
    for position, test in enumerate(check.tests):
        for source, facts in test.facts.items():
            for fact in facts:
                if (source, fact) not in read:
                    yield f"tests[{position}].facts.{source}.{fact}", "is not read by the check"


def _list_facts_read(check: Check) -> Iterator[FactReference]:
    for _, rule in check.rules():
        yield from language.walk_references(rule)
    for _, text in check.templates():
        yield from check_definition.parse_template(text).facts()


def _explain_test(check: Check, test: CheckTest, now: int) -> CheckTrial:
    entity = _make_test_entity(test, now)
    one = compile_check(check, 0)
    if test.entity is not None and not one.applies(Matcher(dict(test.entity))):
        return CheckTrial(test, state.name_state(state.OUT), None)
    explanation = explain_check(check, entity, now)
    return CheckTrial(test, state.name_state(explanation.state), explanation)


def _make_test_entity(test: CheckTest, now: int) -> CheckedEntity:
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

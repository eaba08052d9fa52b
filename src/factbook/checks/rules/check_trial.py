"""Trials of a check without entities: its tests, and conditions that hold always or never.

Results don't reveal such mistakes. Each fact of a rule is tried with samples: values on either side
of everything that the rule compares the fact with. A comparison asks about one facet of a fact:
its value, size, time, age, or something that can only be true or false. Comparisons without
samples, such as patterns, count as able to hold and to fail.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from math import prod
from typing import Any, Final, NamedTuple

from factbook.catalog.filters import Matcher
from factbook.checks import state
from factbook.checks.rules import check_definition, language
from factbook.checks.rules.check_definition import Check, CheckTest
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import (
    KNOWLEDGE_OPERATORS,
    Every,
    FactCondition,
    FactReference,
    Negation,
    Rule,
    Some,
    walk_leaves,
)
from factbook.checks.rules.rule_evaluation import CompiledCheck, Explanation, explain_check
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.facts.datasource import Report
from factbook.facts.freshness import Latest
from factbook.facts.schema import FactType

# A value that no rule compares with.
_OTHER_TEXT: Final = "\0"
_OTHER_REASON: Final = "\0"
# Combinations of values tried per part of a rule.
_MOST_COMBINATIONS: Final = 300
_ALWAYS_HOLDS: Final = "holds for every value; to ask if there is one, use the operator isKnown"
_NEVER_HOLDS: Final = "holds for no value"
_ENTITY: Final[dict[str, Any]] = {"kind": "Component", "metadata": {"name": "test"}}
_STATES: Final = {state.name_state(one): one for one in (state.PASS, state.FAIL, state.UNKNOWN)}


_VALUES: Final = frozenset(
    {
        "equal",
        "notEqual",
        "in",
        "notIn",
        "lessThan",
        "lessThanInclusive",
        "greaterThan",
        "greaterThanInclusive",
    }
)


_SIZES: Final[dict[str, Callable[[int, int], bool]]] = {
    "isEmpty": lambda size, _: size == 0,
    "isNotEmpty": lambda size, _: size > 0,
    "sizeAtLeast": lambda size, wanted: size >= wanted,
    "sizeAtMost": lambda size, wanted: size <= wanted,
}


# Comparisons and their opposites.
_OPPOSITES: Final = {
    "notEqual": "equal",
    "notIn": "in",
    "doesNotContain": "contains",
    "greaterThanInclusive": "lessThan",
    "greaterThan": "lessThanInclusive",
    "versionBelow": "versionAtLeast",
}


class SampleFacet(NamedTuple):
    """The aspect of a fact in a comparison; facets with different `wanted` are independent."""

    fact: FactReference
    name: str
    wanted: str = ""


def sample_rule(
    rule: Rule, types: Callable[[FactReference], FactType | None]
) -> dict[SampleFacet, list[Any]]:
    """The samples of every facet that the rule asks about."""
    found: dict[SampleFacet, list[FactCondition]] = {}
    for _, leaf in walk_leaves(rule):
        asked = (
            knowledge_facet(leaf.fact) if leaf.operator in KNOWLEDGE_OPERATORS else find_facet(leaf)
        )
        found.setdefault(asked, []).append(leaf)
    return {asked: _list_samples(asked, same, types(asked.fact)) for asked, same in found.items()}


def knowledge_facet(fact: FactReference) -> SampleFacet:
    """The facet with reasons for being unknown as samples; None stands for a known fact."""
    return SampleFacet(fact, "knowledge")


def holds_for_reason(leaf: FactCondition, reason: str | None) -> bool:
    """The result of a comparison about knowledge, given the reason."""
    if leaf.operator == "reasonIs":
        return bool(reason == leaf.value)
    return (reason is None) is (leaf.operator == "isKnown")


def find_facet(leaf: FactCondition) -> SampleFacet:
    """The facet that a comparison of a known value is about."""
    if isinstance(leaf.value, FactReference):
        return _opaque_facet(leaf)
    if leaf.operator in _VALUES:
        return SampleFacet(leaf.fact, "value", "in any case" if leaf.ignores_case else "")
    if leaf.operator in _SIZES:
        return SampleFacet(leaf.fact, "size")
    if leaf.operator == "freshWithin":
        return SampleFacet(leaf.fact, "freshness")
    if leaf.operator in ("olderThan", "newerThan") or isinstance(leaf.value, dict):
        return SampleFacet(leaf.fact, "age")
    return (
        SampleFacet(leaf.fact, "moment")
        if leaf.operator in ("before", "after")
        else _opaque_facet(leaf)
    )


def sample_values(leaves: Iterable[FactCondition]) -> list[Any]:
    """Sample values for comparisons of a fact's value, with readable texts."""
    found = _surround_values([one for leaf in leaves for one in _as_list(leaf.value)], None)
    return ["other" if one == _OTHER_TEXT else one for one in found]


def holds_for_sample(leaf: FactCondition, sample: Any) -> bool:
    """The result of a comparison for a sample of its facet; raises TypeError if undefined."""
    match find_facet(leaf).name:
        case "value":
            return leaf.test is not None and leaf.test(leaf.value)(sample)
        case "size":
            return _SIZES[leaf.operator](sample, leaf.value)
        case "freshness":
            return bool(sample <= _bound_of_comparison(leaf))
        case "age":
            is_older = leaf.operator in ("olderThan", "before")
            return bool(
                sample > _bound_of_comparison(leaf)
                if is_older
                else sample < _bound_of_comparison(leaf)
            )
        case "moment":
            is_before = leaf.operator == "before"
            return bool(
                sample < _bound_of_comparison(leaf)
                if is_before
                else sample > _bound_of_comparison(leaf)
            )
    return bool(sample is (leaf.operator not in _OPPOSITES))


def _opaque_facet(leaf: FactCondition) -> SampleFacet:
    name = _OPPOSITES.get(leaf.operator, leaf.operator)
    return SampleFacet(leaf.fact, name, repr((leaf.value, leaf.ignores_case)))


def _list_samples(
    asked: SampleFacet, same: Iterable[FactCondition], type_: FactType | None
) -> list[Any]:
    match asked.name:
        case "knowledge":
            reasons = {leaf.value for leaf in same if leaf.operator == "reasonIs"}
            return [None, _OTHER_REASON, *sorted(reasons)]
        case "value":
            return _surround_values([one for leaf in same for one in _as_list(leaf.value)], type_)
        case "size":
            sizes = [leaf.value or 0 for leaf in same]
            return [size for size in _surround_numbers(sizes, is_whole=True) if size >= 0]
        case "freshness":
            ages = [_bound_of_comparison(leaf) for leaf in same]
            return [age for age in _surround_numbers(ages, is_whole=True) if age >= 0]
        case "age" | "moment":
            return _surround_numbers([_bound_of_comparison(leaf) for leaf in same], is_whole=True)
    return [True, False]


def _bound_of_comparison(leaf: FactCondition) -> int:
    """The age or time that a comparison has as its bound."""
    if not isinstance(leaf.value, dict):
        return language.parse_moment(leaf.value)
    length = language.convert_duration(leaf.value)
    return -length if leaf.operator in ("before", "after") else length


def _surround_values(wanted: list[Any], type_: FactType | None) -> list[Any]:
    numbers = [one for one in wanted if type(one) in (int, float)]
    texts = {one for one in wanted if isinstance(one, str)}
    found: list[Any] = _surround_numbers(numbers, is_whole=type_ == "integer") if numbers else []
    if texts:
        found += [*sorted(texts), _OTHER_TEXT]
    if any(isinstance(one, bool) for one in wanted):
        found += [True, False]
    return found


def _surround_numbers(bounds: Iterable[float], *, is_whole: bool) -> list[float]:
    """The bounds, and numbers below, between and above them."""
    ordered = sorted(set(bounds))
    if is_whole:
        near = {int(one // 1) + shift for one in ordered for shift in (-1, 0, 1)}
        return sorted(near)
    between = [(low + high) / 2 for low, high in pairwise(ordered)]
    return [ordered[0] - 1, *ordered, *between, ordered[-1] + 1]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


Types = Callable[[FactReference], FactType | None]


# The assumed sample of each facet, including the reason if a fact is unknown.
_Supposed = Mapping[SampleFacet, Any]


def report_constant(rule: Rule, path: str, types: Types, report: Report) -> None:
    """Report each part of a rule that holds always or never, innermost first."""
    _report_parts(rule, path, types, report)


def _report_parts(rule: Rule, path: str, types: Types, report: Report) -> bool:
    """Return true if a part was reported; the parts around it are skipped then."""
    parts = list(_walk_parts(rule, path))
    reported = [_report_parts(part, where, types, report) for where, part in parts]
    if True in reported:
        return True
    found = _find_constant(rule, types)
    if found is not None:
        report(path, _ALWAYS_HOLDS if found == PASS else _NEVER_HOLDS)
        return True
    return _report_pairs(rule, parts, types, report)


def _report_pairs(
    rule: Rule, parts: Sequence[tuple[str, Rule]], types: Types, report: Report
) -> bool:
    """Report constant comparisons of the same fact, when there are too many facts to try all."""
    if not isinstance(rule, Every | Some):
        return False
    by_fact: dict[FactReference, list[tuple[str, FactCondition]]] = {}
    for where, part in parts:
        if isinstance(part, FactCondition):
            by_fact.setdefault(part.fact, []).append((where, part))
    for same in by_fact.values():
        found = _find_constant(type(rule)(tuple(part for _, part in same)), types)
        if len(same) > 1 and found is not None:
            report(
                same[-1][0],
                f"together with {same[0][0]} {_ALWAYS_HOLDS if found == PASS else _NEVER_HOLDS}",
            )
            return True
    return False


def _walk_parts(rule: Rule, path: str) -> Iterator[tuple[str, Rule]]:
    match rule:
        case Negation():
            yield f"{path}.not", rule.condition
        case Every() | Some():
            name = "all" if isinstance(rule, Every) else "any"
            for position, one in enumerate(rule.conditions):
                yield f"{path}.{name}[{position}]", one


def _find_constant(rule: Rule, types: Types) -> int | None:
    """The only possible state of the rule, pass or fail; None if both are possible."""
    tried = sample_rule(rule, types)
    if prod(map(len, tried.values())) > _MOST_COMBINATIONS:
        return None
    seen = set[int]()
    for values in product(*tried.values()):
        seen.add(_evaluate_supposed(rule, dict(zip(tried, values, strict=True))))
        if {PASS, FAIL} <= seen:
            return None
    return FAIL if PASS not in seen else PASS


def _evaluate_supposed(rule: Rule, supposed: _Supposed) -> int:
    match rule:
        case FactCondition():
            return _evaluate_supposed_leaf(rule, supposed)
        case Negation():
            return {PASS: FAIL, FAIL: PASS}.get(
                _evaluate_supposed(rule.condition, supposed), UNKNOWN
            )
        case Every() | Some():
            states = {_evaluate_supposed(one, supposed) for one in rule.conditions}
            first, last = (FAIL, PASS) if isinstance(rule, Every) else (PASS, FAIL)
            return next((one for one in (first, UNKNOWN) if one in states), last)


def _evaluate_supposed_leaf(leaf: FactCondition, supposed: _Supposed) -> int:
    reason = supposed.get(knowledge_facet(leaf.fact))
    if leaf.operator in KNOWLEDGE_OPERATORS:
        return PASS if holds_for_reason(leaf, reason) else FAIL
    if reason is not None:
        return UNKNOWN
    try:
        return PASS if holds_for_sample(leaf, supposed[find_facet(leaf)]) else FAIL
    except (TypeError, ValueError):
        return UNKNOWN


class CheckTrial(NamedTuple):
    """Result of a test: the resulting state and the evidence of each comparison.

    `explanation` is None if the check doesn't apply to the test's entity.
    """

    test: CheckTest
    state: str
    explanation: Explanation | None

    @property
    def passed(self) -> bool:
        """True if the state is the expected one."""
        return self.state == self.test.expect


def try_check(check: Check, now: int) -> list[CheckTrial]:
    """Run a check's tests. Tests without a time run at `now`."""
    return [
        _explain_test(check, test, test.at if test.at is not None else now) for test in check.tests
    ]


def evaluate_test(check: Check, test: CheckTest, now: int) -> str:
    """The resulting state of a test, as a word."""
    return state.name_state(
        CompiledCheck(check, 0).evaluate(_make_test_entity(test, now), now).state
    )


def list_test_gaps(check: Check) -> Iterator[tuple[str, str]]:
    """Missing tests, facts in tests that the check doesn't read, and constant conditions."""
    expected = {test.expect for test in check.tests}
    leaves = [leaf for _, rule in check.rules() for _, leaf in language.walk_leaves(rule)]
    can_be_unknown = any(leaf.operator not in KNOWLEDGE_OPERATORS for leaf in leaves)
    keeps_unknown = can_be_unknown and check.on_unknown == state.UNKNOWN
    for word in ["pass", "fail", *(["unknown"] if keeps_unknown else [])]:
        if word not in expected:
            yield "tests", f"have none that expects {word}"
    yield from _list_unread(check)
    found: list[tuple[str, str]] = []
    for path, rule in check.rules():
        report_constant(rule, path, lambda _: None, lambda *problem: found.append(problem))
    yield from found


def _list_unread(check: Check) -> Iterator[tuple[str, str]]:
    """The facts of tests that the check doesn't read, usually misspelled."""
    facts = [fact for _, rule in check.rules() for fact in language.walk_references(rule)]
    for _, text in check.templates():
        facts += check_definition.parse_template(text).facts()
    read = {(fact.source, fact.fact) for fact in facts}
    for position, test in enumerate(check.tests):
        for source, values in test.facts.items():
            for name in values:
                if (source, name) not in read:
                    yield f"tests[{position}].facts.{source}.{name}", "is not read by the check"


def _explain_test(check: Check, test: CheckTest, now: int) -> CheckTrial:
    entity = _make_test_entity(test, now)
    one = CompiledCheck(check, 0)
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

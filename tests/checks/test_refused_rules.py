import json
from typing import Any

import pytest

from factbook.checks.rules.check_definition import parse_check
from factbook.errors import InvalidItemsError
from tests.checks.making import problems

LEAF: dict[str, Any] = {"source": "s", "fact": "f", "operator": "equal", "value": 1}


def leaf(**members: Any) -> dict[str, Any]:
    return LEAF | members


def test_a_rule_with_a_mistake_is_refused_with_its_path(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        ("text", "rule", "has to be an object"),
        ([], "rule", "has to be an object"),
        ({}, "rule.source", "is required"),
        ({"all": []}, "rule.all", "not empty"),
        ({"any": {}}, "rule.any", "has to be a list"),
        ({"not": [LEAF]}, "rule.not", "has to be an object"),
        ({"all": [LEAF], "any": [LEAF]}, "rule", "`any` beside `all`"),
        ({"all": [LEAF], "operator": "equal"}, "rule", "`operator` beside `all`"),
        ({"all": [LEAF, {"any": [leaf(source=3)]}]}, "rule.all[1].any[0].source", "a string"),
        (leaf(fact=""), "rule.fact", "1 to 300 characters"),
        (leaf(fact="x" * 301), "rule.fact", "1 to 300 characters"),
        (leaf(weight=3), "rule.weight", "is not a member"),
        (leaf(operator="like"), "rule.operator", "to be one of equal, notEqual"),
        (leaf(operator="like"), "rule.operator", "did you mean matches?"),
        (leaf(operator="EQUALS"), "rule.operator", "did you mean equal"),
        (leaf(operator="eq"), "rule.operator", "did you mean equal"),
        (leaf(operator="anyMatch"), "rule.operator", "did you mean anyMatches"),
        (leaf(operator="=>"), "rule.operator", "has to be one of equal, notEqual"),
        (leaf(caseSensitive="no"), "rule.caseSensitive", "has to be true or false"),
        (
            leaf(operator="lessThan", value=1, caseSensitive=False),
            "rule.caseSensitive",
            "is not for the operator lessThan",
        ),
        (leaf(operator=["equal"]), "rule.operator", "has to be one of"),
        ({"source": "s", "fact": "f"}, "rule.operator", "is required"),
        ({"source": "s", "fact": "f", "operator": "in"}, "rule.value", "is required by"),
        (leaf(operator="isKnown"), "rule.value", "takes no value"),
        (leaf(value={}), "rule.value", "a string, a number, true or false"),
        (leaf(value=float("nan")), "rule.value", "a string, a number"),
        (leaf(operator="in", value="a"), "rule.value", "a list of"),
        (leaf(operator="in", value=[]), "rule.value", "not empty"),
        (leaf(operator="in", value=[[1]]), "rule.value", "a list of"),
        (leaf(operator="in", value=[1] * 501), "rule.value", "500 items at most"),
        (leaf(operator="lessThan", value="1"), "rule.value", "has to be a number"),
        (leaf(operator="lessThan", value=True), "rule.value", "has to be a number"),
        (leaf(operator="sizeAtLeast", value=-1), "rule.value", "a whole number"),
        (leaf(operator="startsWith", value=""), "rule.value", "not empty"),
        (leaf(operator="matches", value="("), "rule.value", "is not a regular expression"),
        (
            leaf(operator="matches", value="(((a{999}){999}){9})"),
            "rule.value",
            "invalid repetition size",
        ),
        (leaf(operator="before", value="soon"), "rule.value", "ISO 8601"),
        (leaf(operator="before", value="2026-02-30"), "rule.value", "ISO 8601"),
        (leaf(operator="olderThan", value="30d"), "rule.value", "a duration"),
        (leaf(operator="olderThan", value={"days": 0}), "rule.value", "whole numbers"),
        (leaf(operator="olderThan", value={"days": True}), "rule.value", "whole numbers"),
        (leaf(operator="olderThan", value={"fortnights": 2}), "rule.value", "a duration"),
        (leaf(operator="olderThan", value={"months": 5000}), "rule.value", "a hundred years"),
        (leaf(operator="versionAtLeast", value="latest"), "rule.value", "a version"),
        (leaf(operator="reasonIs", value="because"), "rule.value", "has to be one of"),
        (leaf(path="a["), "rule.path", "is not a JMESPath expression"),
        (leaf(path=""), "rule.path", "JMESPath"),
        (leaf(source="entity", path="a"), "rule.path", "facts of type object"),
        (leaf(value={"source": "s", "fact": ""}), "rule.value.fact", "1 to 300"),
        (leaf(value={"source": "s", "fact": "f", "by": 1}), "rule.value.by", "not a member"),
        (
            leaf(operator="matches", value={"source": "s", "fact": "f"}),
            "rule.value",
            "cannot be another fact",
        ),
    ]
    for rule, path, words in cases:
        with subtests.test(rule=rule, path=path):
            assert words in problems(rule)[path]


def test_every_mistake_is_told_at_once() -> None:
    found = problems({"all": [leaf(operator="no"), LEAF, leaf(source="")]}, id="a b", owner="::")

    assert set(found) == {"rule.all[0].operator", "rule.all[2].source", "id", "owner"}


@pytest.mark.parametrize(
    "rule",
    [
        {"all": [LEAF] * 10_000},
        {"all": [{"any": [LEAF] * 100}] * 100},
        {"all": [LEAF] * 201},
    ],
)
def test_thousands_of_conditions_are_refused(rule: Any) -> None:
    assert problems(rule) == {"rule": "can have 200 conditions at most"}


def test_a_rule_nested_without_end_is_refused() -> None:
    rule: dict[str, Any] = LEAF
    for _ in range(5_000):
        rule = {"not": rule}

    found = problems(rule)

    assert list(found.values()) == ["is nested more than 10 levels deep"]
    assert found.keys() == {"rule" + ".not" * 10}


def test_a_hundred_conditions_beside_each_other_are_taken() -> None:
    assert problems({"all": [LEAF] * 200}) == {}


def test_a_check_with_a_mistake_is_refused_with_its_path(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any, str]] = [
        ("title", "", "title"),
        ("title", "x" * 5_001, "title"),
        ("owner", "group:", "owner"),
        ("appliesTo", [], "appliesTo"),
        ("appliesTo", {"kind": {"like": "c"}}, "appliesTo[0].kind"),
        ("applicableWhen", {"all": [3]}, "applicableWhen.all[0]"),
        ("onUnknown", "skip", "onUnknown"),
        ("severity", "high", "severity"),
        ("effectiveFrom", "tomorrow", "effectiveFrom"),
        ("labels", "a", "labels"),
        ("labels", [""], "labels[0]"),
        ("labels", ["a"] * 51, "labels"),
        ("messages", [], "messages"),
        ("messages", {"skip": "a"}, "messages.skip"),
        ("messages", {"fail": "{{ metadata.name"}, "messages.fail"),
        ("messages", {"pass": "{{ a + b }}"}, "messages.pass"),
        ("messages", {"unknown": "{{ facts.code }}"}, "messages.unknown"),
        ("fix", {"link": "javascript:alert(1)"}, "fix.link"),
        ("fix", {"link": "/settings"}, "fix.link"),
        ("fix", {"instructions": "{{}}"}, "fix.instructions"),
        ("tests", {}, "tests"),
        ("tests", [1], "tests[0]"),
        ("tests", [{"expect": "maybe"}], "tests[0].expect"),
        ("tests", [{"expect": "pass", "facts": []}], "tests[0].facts"),
        ("tests", [{"expect": "pass", "at": "noon"}], "tests[0].at"),
        ("tests", [{"expect": "pass", "fact": {}}], "tests[0].fact"),
        ("tests", [{}] * 101, "tests"),
        ("tests", [{"expect": "exempt"}], "tests[0].expect"),
        ("tests", [{"expect": "pass", "entity": 3}], "tests[0].entity"),
        ("tests", [{"expect": "pass", "entity": {"metadata": 3}}], "tests[0].entity.metadata"),
        ("tests", [{"expect": "pass", "entity": {"relations": [3]}}], "tests[0].entity.relations"),
        (
            "tests",
            [{"expect": "pass", "entity": json.loads("[" * 30 + "]" * 30)}],
            "tests[0].entity",
        ),
        ("weight", 2, "weight"),
    ]
    for member, value, path in cases:
        with subtests.test(member=member, value=value):
            assert list(problems(LEAF, **{member: value})) == [path]


@pytest.mark.parametrize("document", [None, [], "check", 3])
def test_a_document_that_is_no_object_is_refused(document: object) -> None:
    with pytest.raises(InvalidItemsError, match="has to be an object"):
        parse_check(document)

from collections.abc import Mapping
from typing import Any

import pytest

from factbook.checks.takeover import Remarks, Translation, make_jmespath
from tests.checks.making import problems
from tests.checks.public_rules import RULES


def resolve(fact: str) -> Mapping[str, str]:
    if fact == "ambiguous":
        raise LookupError("is a fact of several sources")
    return {"source": "s", "fact": fact}


def translated(
    condition: object, shared: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The rule, and the remarks by their path."""
    remarks = Remarks()
    found = Translation(resolve, remarks, shared).of(condition, "c")
    return found, {one.path: f"{one.kind}: {one.message}" for one in remarks.found}


def leaf(operator: str = "equal", value: Any = 1, **members: Any) -> dict[str, Any]:
    return {"fact": "f", "operator": operator, "value": value, **members}


def test_every_public_rule_becomes_one_that_is_taken(subtests: pytest.Subtests) -> None:
    for rule in RULES:
        with subtests.test(rule.place):
            found, remarks = translated(rule.conditions, rule.shared)

            assert remarks == {}
            assert problems(found) == {}


def test_decorated_operators_are_told_with_others(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any]] = [
        ("someFact:in", {"operator": "containsAny"}),
        ("everyValue:contains", {"operator": "containsAll"}),
        ("swap:contains", {"operator": "in"}),
        ("not:equal", {"not": "equal"}),
        ("not:everyFact:notIn", {"not": {"not": "containsAny"}}),
    ]
    for operator, expected in cases:
        with subtests.test(operator=operator):
            found, remarks = translated(leaf(operator, ["a"]))
            ours = expected

            assert remarks == {}
            while "not" in found:
                found, ours = found["not"], ours["not"]
            assert found["operator"] == (ours["operator"] if isinstance(ours, dict) else ours)


def test_what_cannot_be_taken_over_is_remarked_with_its_path(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        (None, "c", "refused: is not a condition"),
        ({"all": []}, "c.all", "refused: has no conditions"),
        ({"any": {}}, "c.any", "refused"),
        (leaf("startsWith"), "c.operator", "refused: startsWith isn't built into the engine"),
        (leaf("caseInsensitive:equal"), "c.operator", "refused"),
        (leaf("not:semver"), "c.operator", "refused: semver"),
        (leaf(params={"id": 1}), "c.params", "refused: are arguments"),
        (leaf(path="$..price"), "c.path", "refused: has more than names"),
        (leaf(path=".price"), "c.path", "refused"),
        (leaf(path="$.a[?(@.b)]"), "c.path", "refused"),
        (leaf(value={"a": 1}), "c.value", "refused: is an object"),
        (leaf(value={"fact": "ambiguous"}), "c.value.fact", "refused: is a fact of several"),
        (leaf(value={"fact": "g", "params": {"a": 1}}), "c.value.params", "refused"),
        (leaf("in", "active"), "c.value", "refused: is text"),
        (leaf("in", [True, "a"]), "c.value", "refused: has more than"),
        (leaf("lessThan", None), "c.value", "refused: is null"),
        (leaf(value=None), "c", "changed: compares with null; it becomes isUnknown"),
        ({"fact": "f", "operator": "equal"}, "c.value", "refused: is missing"),
        ({"fact": "", "operator": "equal", "value": 1}, "c.fact", "refused: is not the name"),
        ({**leaf(), "fact": "ambiguous"}, "c.fact", "refused: is a fact of several sources"),
        (leaf(priority=5), "c.priority", "changed: is left out"),
        (leaf(weight=5), "c.weight", "refused: isn't a member that conditions can have"),
        ({"condition": "other"}, "c.condition", "refused: names a condition that doesn't exist"),
    ]
    for condition, path, words in cases:
        with subtests.test(condition=condition, path=path):
            assert translated(condition)[1][path].startswith(words)


def test_a_condition_that_names_itself_is_refused() -> None:
    _, remarks = translated({"condition": "a"}, {"a": {"all": [{"condition": "a"}]}})

    assert list(remarks.values()) == ["refused: is nested too deeply, or names itself"]


def test_a_simple_path_is_told_in_the_other_language() -> None:
    expected: dict[object, str | None] = {
        "$": "",
        "$.price": "price",
        "$.a.b[0]": "a.b[0]",
        "$['a b'][\"c\"].d": '"a b".c.d',
        "$[0].a": "[0].a",
        "$.a[*].b": "a[*].b",
        "price": None,
        "$.a[1:2]": None,
        "$.a-b": None,
        3: None,
    }
    assert {path: make_jmespath(path) for path in expected} == expected

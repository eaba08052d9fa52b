from typing import Any

import pytest

from tests.checks.making import check
from tests.checks.sources import leaf, refused

OTHER_UNIT = {"source": "code", "fact": "delay"}
OTHER_TYPE = {"source": "code", "fact": "language"}


def test_a_rule_that_does_not_fit_its_facts_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        (leaf("protected", "equal", True, source="cod"), "rule.source", "Did you mean code?"),
        (leaf("protectd", "equal", True), "rule.fact", "Did you mean protected?"),
        (leaf("protected", "contains", "a"), "rule.operator", "does not take facts of type"),
        (leaf("languages", "equal", "a"), "rule.operator", "these do: contains"),
        (leaf("manifest", "equal", "a"), "rule.operator", "give a path into it"),
        (leaf("language", "equal", "a", path="b"), "rule.path", "for facts of type object"),
        (leaf("approvals", "equal", "2"), "rule.value", "has to be an integer"),
        (leaf("protected", "notEqual", "true"), "rule.value", "has to be a boolean"),
        (leaf("language", "in", ["go", 1]), "rule.value", "has to be a string"),
        (leaf("age", "lessThan", OTHER_UNIT), "rule.value", "is in seconds, and age in hours"),
        (leaf("open", "lessThan", OTHER_UNIT), "rule.value", "is in seconds, and open in none"),
        (leaf("open", "lessThan", OTHER_TYPE), "rule.value", "is of type string"),
        (leaf("open", "equal", {"source": "x", "fact": "y"}), "rule.value.source", "names no"),
        (leaf("open", "equal", {"source": "code", "fact": "y"}), "rule.value.fact", "names no"),
        (leaf("open", "equal", {"source": "code", "fact": "open"}), "rule.value", "itself"),
        (
            leaf("language", "equal", {"source": "checks", "fact": "y"}),
            "rule.value.source",
            "cannot be the state",
        ),
        (
            {"source": "entity", "fact": "kind", "operator": "freshWithin", "value": {"days": 1}},
            "rule.operator",
            "for facts of data sources",
        ),
        (
            {"source": "checks", "fact": "two", "operator": "equal", "value": "pass"},
            "rule.fact",
            "names no check",
        ),
    ]
    for rule, path, words in cases:
        with subtests.test(rule=rule, path=path):
            assert words in refused(rule)[path]


@pytest.mark.parametrize(
    ("operator", "value", "path"),
    [
        ("contains", "pass", "rule.operator"),
        ("equal", "passed", "rule.value"),
        ("equal", "unknown", "rule.value"),
        ("in", ["pass", "unknown"], "rule.value"),
    ],
)
def test_a_state_of_a_check_is_compared_with_states_only(
    operator: str, value: object, path: str
) -> None:
    other = check(leaf("protected", "equal", True), id="two")
    rule = {"source": "checks", "fact": "two", "operator": operator, "value": value}

    assert list(refused(rule, other)) == [path]


def test_checks_that_read_each_other_are_refused() -> None:
    def reading(id_: str) -> dict[str, Any]:
        return {"source": "checks", "fact": id_, "operator": "equal", "value": "pass"}

    two, three = check(reading("three"), id="two"), check(reading("one"), id="three")
    rule = {"all": [leaf("protected", "equal", True), reading("two")]}

    assert refused(rule, two, three) == {
        "rule.all[1].fact": "makes a cycle: one → two → three → one"
    }
    assert refused(rule, two, check(leaf("protected", "equal", True), id="three")) == {}
    assert "rule.fact" in refused(reading("one"))


def test_units_that_fit_are_compared() -> None:
    assert refused(leaf("age", "lessThan", {"source": "code", "fact": "longest"})) == {}
    assert refused(leaf("open", "lessThan", {"source": "code", "fact": "approvals"})) == {}


def test_a_template_names_facts_that_exist() -> None:
    found = refused(
        leaf("protected", "equal", True),
        messages={"fail": "{{ facts.code.languge }}", "pass": "{{ facts.other['a.b'] }}"},
    )

    assert found == {
        "messages.fail": "names no fact of code. Did you mean language, languages? There are: "
        "protected, approvals, open, age, longest, delay, language, languages, pushedAt, "
        "createdAt, manifest",
        "messages.pass": "names no data source. Did you mean one? There are: code, one, two, "
        "entity, checks",
    }


def both(*parts: object) -> dict[str, Any]:
    return {"all": list(parts)}


def either(*parts: object) -> dict[str, Any]:
    return {"any": list(parts)}


NEVER = [
    ("rule", both(leaf("open", "lessThan", 1), leaf("open", "greaterThan", 2))),
    ("rule", both(leaf("open", "greaterThan", 1), leaf("open", "lessThan", 2))),
    ("rule", both(leaf("language", "equal", "go"), leaf("language", "equal", "c"))),
    ("rule", both(leaf("language", "in", ["go"]), leaf("language", "notEqual", "go"))),
    ("rule", both(leaf("languages", "contains", "go"), leaf("languages", "doesNotContain", "go"))),
    ("rule", both(leaf("languages", "isEmpty"), leaf("languages", "sizeAtLeast", 1))),
    ("rule", both(leaf("open", "isUnknown"), leaf("open", "equal", 1))),
    ("rule", both(leaf("open", "reasonIs", "expired"), leaf("open", "reasonIs", "forbidden"))),
    (
        "rule",
        both(leaf("pushedAt", "before", "2026-01-01"), leaf("pushedAt", "after", "2026-02-01")),
    ),
    (
        "rule",
        both(
            leaf("pushedAt", "olderThan", {"days": 30}), leaf("pushedAt", "newerThan", {"days": 3})
        ),
    ),
    ("rule", leaf("approvals", "equal", 1.5)),
    (
        "rule.any[1]",
        either(
            leaf("open", "lessThan", 1), both(leaf("age", "lessThan", 0), leaf("age", "equal", 3))
        ),
    ),
]
ALWAYS = [
    ("rule", either(leaf("open", "lessThan", 5), leaf("open", "greaterThanInclusive", 5))),
    ("rule", either(leaf("open", "lessThan", 6), leaf("open", "greaterThan", 5))),
    ("rule", either(leaf("protected", "equal", True), leaf("protected", "equal", False))),
    ("rule", either(leaf("language", "notEqual", "go"), leaf("language", "notEqual", "c"))),
    ("rule", either(leaf("open", "isKnown"), leaf("open", "isUnknown"))),
    ("rule", leaf("languages", "sizeAtLeast", 0)),
    (
        "rule.all[0].not",
        both({"not": both(leaf("open", "lessThan", 1), leaf("open", "greaterThan", 2))}),
    ),
]


def test_a_condition_that_values_do_not_change_is_refused(subtests: pytest.Subtests) -> None:
    for path, rule in NEVER + ALWAYS:
        with subtests.test(path=path, rule=rule):
            found = refused(rule)

            assert list(found) == [path]
            assert "holds for" in found[path]


def test_a_contradiction_is_found_among_many_conditions() -> None:
    names = ("protected", "open", "approvals", "age", "longest", "delay", "language", "languages")
    many = [leaf(name, "isKnown") for name in names]
    rule = both(*many, leaf("open", "lessThan", 1), leaf("open", "greaterThan", 2))

    assert refused(rule) == {"rule.all[9]": "together with rule.all[1] holds for no value"}


def test_a_condition_that_values_change_is_taken(subtests: pytest.Subtests) -> None:
    rules: list[Any] = [
        leaf("open", "isKnown"),
        either(leaf("open", "isUnknown"), leaf("open", "lessThan", 1)),
        both(leaf("age", "greaterThan", 1), leaf("age", "lessThan", 2)),
        both(leaf("open", "greaterThan", 1), leaf("approvals", "lessThan", 1)),
        either(leaf("language", "matches", "^a"), leaf("language", "matches", "^b")),
        both(leaf("languages", "contains", "go"), leaf("languages", "contains", "c")),
        {"not": leaf("pushedAt", "before", "2026-01-01")},
        both(leaf("pushedAt", "after", "2026-01-01"), leaf("pushedAt", "olderThan", {"days": 1})),
        leaf("manifest", "equal", "module", path="type"),
        {"source": "entity", "fact": "spec.type", "operator": "in", "value": ["service", 1]},
    ]
    for rule in rules:
        with subtests.test(rule=rule):
            assert refused(rule) == {}

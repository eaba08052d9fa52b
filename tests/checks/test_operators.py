from typing import Any

import pytest

from factbook.checks.rules.language import OPERATORS
from factbook.checks.state import FAIL, PASS, UNKNOWN
from tests.checks.making import NOW, check, entity, evaluated, problems

P, F, U = PASS, FAIL, UNKNOWN


def test_an_operator_compares_values_of_its_kind_only(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, Any, int]] = [
        (1, "equal", 1.0, P),
        (True, "equal", 1, U),
        (0, "equal", False, U),
        ("1", "equal", 1, U),
        ("a", "equal", "A", F),
        ("1", "notEqual", 1, U),
        (False, "notEqual", True, P),
        (2, "in", [1, 2], P),
        ("2", "in", [1, 2], U),
        (True, "in", [1, 2], U),
        (3, "notIn", [1, 2], P),
        ("main", "contains", "ai", P),
        ("main", "contains", 1, U),
        ([1, "a"], "contains", "a", P),
        ([True], "contains", 1, U),
        ([True, 1], "contains", 1, P),
        ([{"a": "x"}], "doesNotContain", "x", U),
        ([True], "containsAny", [1], U),
        ([True], "containsAll", [1], U),
        ([True, 1], "containsAll", [1], P),
        ([], "doesNotContain", "a", P),
        (3, "contains", 3, U),
        (3, "lessThan", 3, F),
        (3, "lessThanInclusive", 3, P),
        (3, "greaterThan", 3, F),
        (3, "greaterThanInclusive", 3, P),
        (True, "lessThan", 3, U),
        ("2", "lessThan", 3, U),
        ("main", "startsWith", "ma", P),
        ("main", "endsWith", "ma", F),
        (["main"], "startsWith", "ma", U),
        ("release-1", "matches", "e-[0-9]", P),
        ("release-1", "matches", "^[0-9]", F),
        (12, "matches", "1", U),
        (["v1", "release-1"], "anyMatches", "^release", P),
        (["v1", 3], "anyMatches", "^[0-9]", F),
        ([None, "v1"], "anyMatches", "^release", U),
        ([None, "release-1"], "anyMatches", "^release", P),
        (["a" * 5_001, "b"], "anyMatches", "^a", U),
        ([], "anyMatches", "a", F),
        ("release-1", "anyMatches", "^release", U),
        (["Release-1"], "anyMatches", "^release", F),
        ([1, 2], "containsAny", [2, 3], P),
        ([1, 2], "containsAll", [2, 3], F),
        ([1, 2, 3], "containsAll", [2, 3], P),
        ("abc", "containsAll", ["a"], U),
        ([], "isEmpty", None, P),
        ("", "isNotEmpty", None, F),
        ({}, "isEmpty", None, P),
        (0, "isEmpty", None, U),
        ([1], "sizeAtLeast", 2, F),
        ({"a": 1}, "sizeAtMost", 1, P),
        ("1.10.0", "versionAtLeast", "1.9", P),
        ("v2", "versionAtLeast", "2.0.0", P),
        ("2.0.0-rc.1", "versionAtLeast", "2.0.0", F),
        ("1.0rc1", "versionBelow", "1.0", P),
        ("latest", "versionAtLeast", "1.0", U),
        ("latest", "versionBelow", "1.0", U),
        (3, "versionAtLeast", "1.0", U),
        ("2026-11-01T00:00:00Z", "before", "2026-11-02", P),
        ("2026-11-01T01:00:00+02:00", "before", "2026-11-01T00:00:00Z", P),
        ("2026-11-01T00:00:00Z", "after", "2026-11-01", F),
        ("yesterday", "before", "2026-11-02", U),
        (3, "olderThan", {"days": 1}, U),
    ]
    for value, operator, wanted, state in cases:
        with subtests.test(value=value, operator=operator, wanted=wanted):
            given = {} if wanted is None else {"value": wanted}
            rule = {"source": "s", "fact": "f", "operator": operator, **given}

            assert evaluated(check(rule), entity({"s": {"f": value}})).state == state


def test_a_comparison_ignores_case_if_it_says_so(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, Any, int]] = [
        ("Java", "equal", "jAVA", P),
        ("Java", "notEqual", "java", F),
        ("Ä", "equal", "ä", P),
        (1, "equal", "a", U),
        ("Java", "in", ["go", "java"], P),
        ("JAVA", "notIn", ["Java"], F),
        ("JavaScript", "contains", "SCRIPT", P),
        (["Java"], "contains", "java", P),
        (["Java", 1], "doesNotContain", 1, F),
        ("Main", "startsWith", "ma", P),
        ("MAIN", "endsWith", "in", P),
        ("Release", "matches", "^release$", P),
        ("Release", "matches", "(?-i)^release$", F),
        (["v1", "Release"], "anyMatches", "^(RE|x)", P),
        (["Go"], "containsAny", ["java", "GO"], P),
        (["Go", "C"], "containsAll", ["c", "go"], P),
    ]
    for value, operator, wanted, state in cases:
        with subtests.test(value=value, operator=operator, wanted=wanted):
            rule = {"source": "s", "fact": "f", "operator": operator, "value": wanted}
            plain, given = entity({"s": {"f": value}}), {"caseSensitive": False}
            assert evaluated(check({**rule, **given}), plain).state == state
            exact = evaluated(check(rule), plain).state
            assert evaluated(check({**rule, "caseSensitive": True}), plain).state == exact
    other = {"source": "s", "fact": "g"}
    rule = {"source": "s", "fact": "f", "operator": "equal", "value": other, "caseSensitive": False}
    assert evaluated(check(rule), entity({"s": {"f": "A", "g": "a"}})).state == P


def test_no_operator_but_those_about_knowledge_answers_without_a_fact(
    subtests: pytest.Subtests,
) -> None:
    for operator in OPERATORS:
        with subtests.test(operator=operator):
            wanted = WANTED.get(OPERATORS[operator].form.name)
            given = {} if wanted is None else {"value": wanted}
            rule = {"source": "s", "fact": "f", "operator": operator, **given}

            found = evaluated(
                check(rule), entity({"s": {"other": 1}}, {"s": {"f": "forbidden"}})
            ).state

            assert found == {"isKnown": F, "isUnknown": P, "reasonIs": P}.get(operator, U)


WANTED: dict[str, Any] = {
    "SCALAR": "a",
    "ITEM": "a",
    "LIST": ["a"],
    "NUMBER": 1,
    "COUNT": 1,
    "TEXT": "a",
    "PATTERN": "a",
    "TIME": "2026-01-01",
    "DURATION": {"days": 1},
    "VERSION": "1.0",
    "REASON": "forbidden",
}


def test_a_fact_is_fresh_until_it_is_too_old() -> None:
    one = check({"source": "s", "fact": "f", "operator": "freshWithin", "value": {"hours": 1}})
    hour = 3_600_000

    fresh = evaluated(one, entity({"s": {"f": 1}}), NOW + hour)
    old = evaluated(one, entity({"s": {"f": 1}}), NOW + hour + 1)
    kept = evaluated(one, entity({"s": {"f": 1}}, kept={"s": {"f": NOW - 2 * hour}}))

    assert (fresh.state, fresh.due) == (PASS, NOW + hour + 1)
    assert (old.state, old.due) == (FAIL, None)
    assert kept.state == FAIL


@pytest.mark.parametrize(
    ("operator", "days", "state", "due_in"),
    [
        ("olderThan", 10, PASS, None),
        ("olderThan", 30, FAIL, 10),
        ("newerThan", 30, PASS, 10),
        ("newerThan", 20, FAIL, None),
    ],
)
def test_a_comparison_with_the_time_tells_when_it_turns(
    operator: str, days: int, state: int, due_in: int | None
) -> None:
    day = 86_400_000
    rule = {"source": "s", "fact": "f", "operator": operator, "value": {"days": days}}
    pushed = "2025-11-04T16:00:00.000Z"
    now = 1_762_272_000_000 + 20 * day

    found = evaluated(check(rule), entity({"s": {"f": pushed}}), now)

    assert found.state == state
    late = None if found.due is None else round((found.due - now) / day, 6)
    assert late == due_in


def test_a_time_ahead_is_compared_with_a_moment_that_moves_on() -> None:
    rule = {"source": "s", "fact": "f", "operator": "after", "value": {"days": 30}}
    day = 86_400_000
    end = 1_762_272_000_000 + 31 * day
    subject = entity({"s": {"f": "2025-12-05T16:00:00Z"}})

    found = evaluated(check(rule), subject, end - 31 * day)

    assert (found.state, found.due) == (PASS, end - 30 * day)
    assert evaluated(check(rule), subject, end - 30 * day).state == FAIL


def test_a_pattern_that_re2_lacks_is_refused_with_its_path() -> None:
    leaf = {"source": "s", "fact": "f", "operator": "matches", "value": "^(?!a)"}

    found = problems({"all": [leaf, {**leaf, "value": "a++"}]})
    assert "write a second condition" in found["rule.all[0].value"]
    assert "a possessive repeat" in found["rule.all[1].value"]


def test_patterns_of_a_check_that_take_too_many_steps_together_are_unknown() -> None:
    leaf = {"source": "s", "fact": "f", "operator": "matches", "value": "b" * 480}
    one = check({"any": [leaf] * 11})

    assert evaluated(one, entity({"s": {"f": "a" * 1_000}})).state == UNKNOWN
    assert evaluated(one, entity({"s": {"f": "a" * 900}})).state == FAIL


@pytest.mark.parametrize("operator", ["all", "any"])
def test_a_text_is_matched_up_to_a_length_whatever_the_machine_does(operator: str) -> None:
    rule = {"source": "s", "fact": "f", "operator": "matches", "value": "^a+$"}
    one = check({operator: [rule]})

    assert evaluated(one, entity({"s": {"f": "a" * 5_000}})).state == PASS
    assert evaluated(one, entity({"s": {"f": "a" * 5_001}})).state == UNKNOWN


def test_a_value_inside_an_object_is_read_by_its_path() -> None:
    rule = {"source": "s", "fact": "f", "path": "jobs[0].name", "operator": "equal", "value": "ci"}
    one = check(rule)

    assert evaluated(one, entity({"s": {"f": {"jobs": [{"name": "ci"}]}}})).state == PASS
    assert evaluated(one, entity({"s": {"f": {"jobs": []}}})).state == UNKNOWN
    assert evaluated(one, entity({"s": {"f": 3}})).state == UNKNOWN


@pytest.mark.parametrize(("reason", "state"), [("not-applicable", P), ("never-collected", F)])
def test_an_object_without_the_path_was_collected(reason: str, state: int) -> None:
    rule = {"source": "s", "fact": "f", "path": "a.b", "operator": "reasonIs", "value": reason}

    assert evaluated(check(rule), entity({"s": {"f": {"x": 1}}})).state == state


def test_facts_are_compared_with_each_other() -> None:
    other = {"source": "t", "fact": "most"}
    one = check({"source": "s", "fact": "n", "operator": "lessThan", "value": other})

    assert evaluated(one, entity({"s": {"n": 1}, "t": {"most": 2}})).state == PASS
    assert evaluated(one, entity({"s": {"n": 2}, "t": {"most": 2}})).state == FAIL
    assert evaluated(one, entity({"s": {"n": 2}})).state == UNKNOWN
    assert evaluated(one, entity({"s": {"n": 2}, "t": {"most": "2"}})).state == UNKNOWN


@pytest.mark.parametrize("operator", ["in", "notIn", "containsAny", "containsAll"])
def test_a_text_is_no_list_of_its_letters(operator: str) -> None:
    other = {"source": "s", "fact": "other"}
    one = check({"source": "s", "fact": "f", "operator": operator, "value": other})

    assert evaluated(one, entity({"s": {"f": "java", "other": "java"}})).state == UNKNOWN


def test_a_list_is_no_item_of_another() -> None:
    other = {"source": "s", "fact": "other"}
    one = check({"source": "s", "fact": "f", "operator": "doesNotContain", "value": other})

    assert evaluated(one, entity({"s": {"f": ["x"], "other": ["x"]}})).state == UNKNOWN


def test_a_check_reads_the_state_of_another(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, object, int, int]] = [
        ("equal", "pass", 1, PASS),
        ("equal", "pass", 2, FAIL),
        ("equal", "pass", 3, UNKNOWN),
        ("equal", "pass", 0, UNKNOWN),
        ("equal", "exempt", 16 | 2, PASS),
        ("equal", "not-applicable", 4, PASS),
        ("equal", "not-applicable", 5, PASS),
        ("in", ["pass", "exempt"], 16 | 3, PASS),
        ("isUnknown", None, 3, PASS),
    ]
    for operator, value, state, expected in cases:
        with subtests.test(operator=operator, value=value, state=state):
            given = {} if value is None else {"value": value}
            one = check({"source": "checks", "fact": "two", "operator": operator, **given})

            assert evaluated(one, entity(states={"two": state})).state == expected


def test_lists_and_objects_are_equal_as_in_json(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, Any, int]] = [
        ([1], [1.0], P),
        ([1], [True], F),
        ([0], [False], F),
        ([[1]], [[True]], F),
        ({"a": {"b": [1]}}, {"a": {"b": [True]}}, F),
        ({"a": {"b": [1]}}, {"a": {"b": [1.0]}}, P),
        ({"a": 1, "b": None}, {"b": None, "a": 1}, P),
        ({"a": 1}, {"a": 1, "b": None}, F),
        ([1, 2], [2, 1], F),
        ([1], [1, 1], F),
        (["1"], [1], F),
        ([], {}, U),
        ([1], 1, U),
        (1, [1], U),
        (1, True, U),
    ]
    for value, other, state in cases:
        with subtests.test(value=value, other=other, state=state):
            rule = {"source": "s", "fact": "f", "operator": "equal", "value": OTHER}
            opposite = {P: F, F: P, U: U}[state]
            given = entity({"s": {"f": value, "g": other}})

            assert evaluated(check(rule), given).state == state
            assert evaluated(check({**rule, "operator": "notEqual"}), given).state == opposite


def test_a_value_may_be_one_of_a_list_with_unknown_items(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, Any, int]] = [
        (1, [1, None], P),
        (2, [1, None], U),
        (2, [None], U),
        (2, [], F),
        ("a", [], F),
        ("a", [1, None], U),
        ("a", [1], U),
        ("a", [1, "b"], F),
        (True, [1], U),
        (1, [True], U),
        (1, [[1]], U),
        ([1], [1], U),
        ([1], [], U),
        (1, "1", U),
    ]
    for value, items, state in cases:
        with subtests.test(value=value, items=items, state=state):
            rule = {"source": "s", "fact": "f", "operator": "in", "value": OTHER}
            opposite = {P: F, F: P, U: U}[state]
            given = entity({"s": {"f": value, "g": items}})

            assert evaluated(check(rule), given).state == state
            assert evaluated(check({**rule, "operator": "notIn"}), given).state == opposite


OTHER = {"source": "s", "fact": "g"}

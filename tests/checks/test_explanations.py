from typing import Any

import pytest

from factbook.checks.rules.rule_evaluation import Evidence, explain_check
from factbook.checks.state import FAIL, INAPPLICABLE, PASS, UNKNOWN
from tests.checks.making import NOW, check, entity
from tests.checks.sources import leaf

RULE = {"all": [leaf("protected", "equal", True), leaf("approvals", "greaterThanInclusive", 2)]}


def test_an_explanation_has_what_each_comparison_saw() -> None:
    subject = entity({"code": {"protected": True, "approvals": 1}})

    found = explain_check(check(RULE), subject, NOW)

    first, second = found.because
    assert found.state == FAIL
    assert (first.path, first.state, first.value) == ("rule.all[0]", PASS, True)
    assert (second.path, second.state, second.value, second.wanted) == ("rule.all[1]", FAIL, 1, 2)
    assert (second.collected_at, second.reason, second.stale) == (NOW, None, False)


@pytest.mark.parametrize(
    ("facts", "reasons", "reason"),
    [
        ({"protected": True}, {"approvals": "forbidden: no scope"}, "forbidden: no scope"),
        ({"protected": True}, {"": "no-annotation"}, "no-annotation"),
        ({"protected": True}, {}, "never-collected"),
        (
            {"protected": True, "approvals": "two"},
            {},
            "check-error: greaterThanInclusive can't be applied to this value",
        ),
    ],
)
def test_what_is_unknown_has_its_reason(facts: Any, reasons: Any, reason: str) -> None:
    found = explain_check(check(RULE), entity({"code": facts}, {"code": reasons}), NOW)

    assert (found.state, found.reasons) == (UNKNOWN, [reason])


def test_a_value_missing_in_an_object_has_its_reason() -> None:
    rule = leaf("manifest", "equal", "esm", path="type")

    found = explain_check(check(rule), entity({"code": {"manifest": {}}}), NOW)

    assert found.reasons == ["not-applicable: manifest has nothing at type"]


def test_a_missing_annotation_has_its_reason() -> None:
    rule = {"source": "entity", "fact": "metadata.title", "operator": "equal", "value": "a"}

    found = explain_check(check(rule), entity(), NOW)

    assert found.reasons == ["not-applicable: the entity has no metadata.title"]


def test_the_other_fact_of_a_comparison_is_shown() -> None:
    rule = leaf("age", "lessThan", {"source": "code", "fact": "longest"})

    known = explain_check(check(rule), entity({"code": {"age": 1, "longest": 2}}), NOW)
    unknown = explain_check(
        check(rule), entity({"code": {"age": 1}}, {"code": {"": "expired"}}), NOW
    )

    assert (known.because[0].value, known.because[0].wanted) == (1, 2)
    assert (unknown.state, unknown.reasons) == (UNKNOWN, ["expired"])


def test_a_check_on_another_that_is_unknown_says_so() -> None:
    rule = {"source": "checks", "fact": "two", "operator": "equal", "value": "pass"}

    assert explain_check(check(rule), entity(states={"two": UNKNOWN}), NOW).reasons == [
        "check-unknown"
    ]
    assert explain_check(check(rule), entity(), NOW).reasons == ["never-collected"]


def test_a_value_kept_while_its_vendor_fails_is_stale() -> None:
    facts = {"code": {"protected": True, "approvals": 2}}

    found = explain_check(check(RULE), entity(facts, kept={"code": {"approvals": NOW - 5}}), NOW)

    assert (found.state, found.stale) == (PASS, True)
    assert [(one.stale, one.collected_at) for one in found.because] == [
        (False, NOW),
        (True, NOW - 5),
    ]


def test_the_message_and_the_fix_are_those_of_the_state() -> None:
    one = check(
        RULE,
        messages={"pass": "Good.", "fail": "{{ facts.code.approvals }} of 2", "unknown": "?"},
        fix={"link": "https://x.example/{{ metadata.name }}", "instructions": "Ask {{ kind }}."},
    )
    document = {"kind": "Component", "metadata": {"name": "shop"}}
    results = [
        explain_check(one, entity({"code": {"protected": True, **more}}, document=document), NOW)
        for more in ({"approvals": 2}, {"approvals": 1}, {})
    ]

    assert [found.message for found in results] == ["Good.", "1 of 2", "?"]
    assert [found.fix_link for found in results] == [None, *["https://x.example/shop"] * 2]
    assert [found.fix_instructions for found in results] == [None, *["Ask Component."] * 2]


def test_a_check_that_is_not_applied_shows_why() -> None:
    one = check(RULE, applicableWhen=leaf("language", "equal", "go"))

    found = explain_check(one, entity({"code": {"language": "c"}}), NOW)

    assert found.state == INAPPLICABLE
    assert [(e.path, e.value) for e in found.because] == [("applicableWhen", "c")]


def test_a_long_value_is_cut() -> None:
    facts = {"languages": ["go"] * 1_000, "language": "x" * 10_000, "manifest": {"a": ["b"] * 999}}
    names = [leaf(name, "isKnown") for name in facts]

    found = explain_check(check({"all": names}), entity({"code": facts}), NOW)

    assert all(len(str(shown(one))) < 700 for one in found.because)


def shown(one: Evidence) -> Any:
    return one.value
